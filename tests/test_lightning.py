"""An evaluator as a callback of Lightning, and metric classes in a LightningModule."""

import logging

import pytest
import torch

from pyg_recmetrics import Evaluator, evaluate, modules
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK


@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec")  # in Lightning
@pytest.mark.filterwarnings("ignore:.*does not have many workers")
@pytest.mark.filterwarnings("ignore:.*The number of training batches")
class TestLightning:
    @pytest.fixture
    def pl(self):
        pl = pytest.importorskip("lightning.pytorch", reason="needs Lightning")
        logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
        return pl

    def trainer(self, pl, callbacks, **options):
        return pl.Trainer(
            accelerator="cpu",
            callbacks=callbacks,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            **options,
        )

    def fit(self, trainer, module):
        users = torch.utils.data.DataLoader(TASK.users, batch_size=2)
        trainer.fit(module, torch.utils.data.DataLoader(torch.zeros(4, 1)), users)

    def module(self, pl):
        class Module(pl.LightningModule):
            """Its item scores are best after two epochs."""

            def __init__(self):
                super().__init__()
                self.scores = torch.nn.Parameter(BAD_SCORES.clone())
                self.metric = modules.Recall(k=1)

            def training_step(self, batch):
                return self.scores.sum() * 0

            def on_train_epoch_start(self):
                better = self.current_epoch == 1
                self.scores.data = GOOD_SCORES if better else BAD_SCORES

            def validation_step(self, batch):
                lists = self.scores.detach().topk(1).indices.expand(len(batch), -1)
                row, item = TASK.truth
                mask = (row >= batch.min()) & (row <= batch.max())
                self.metric.update(lists, torch.stack([row[mask] - batch.min(), item[mask]]))
                self.log("val_recall", self.metric)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.0)

        return Module()

    def test_it_evaluates_logs_and_stops(self, pl):
        evaluator = Evaluator(TASK, ["mrr@4", "recall@1"], patience=3)
        trainer = self.trainer(
            pl, [evaluator.as_callback(lambda module: module.scores.detach())], max_epochs=50
        )
        self.fit(trainer, self.module(pl))
        assert len(evaluator.history) == 5
        assert trainer.current_epoch == 5
        assert evaluator.history.best_index == 1
        assert evaluator.best.to_dict() == evaluate(GOOD_SCORES, TASK, evaluator.metrics)
        for name, mean in evaluator.history[-1].items():
            assert float(trainer.callback_metrics[name]) == pytest.approx(mean)

    def test_other_callbacks_can_monitor_it(self, pl):
        evaluator = Evaluator(TASK, ["mrr@4"])
        stopping = pl.callbacks.EarlyStopping("mrr@4", mode="max", patience=2)
        callback = evaluator.as_callback(lambda module: module.scores.detach())
        trainer = self.trainer(pl, [callback, stopping], max_epochs=50)
        self.fit(trainer, self.module(pl))
        assert len(evaluator.history) == 4

    def test_not_after_every_epoch(self, pl):
        evaluator = Evaluator(TASK, ["mrr@4"])
        callback = evaluator.as_callback(lambda module: module.scores.detach(), every_n_epochs=2)
        trainer = self.trainer(pl, [callback], max_epochs=5)
        self.fit(trainer, self.module(pl))
        assert len(evaluator.history) == 2
        with pytest.raises(ValueError, match="'every_n_epochs' needs to be a positive integer"):
            evaluator.as_callback(every_n_epochs=0)
        with pytest.raises(TypeError, match=r"'recommender' needs to be a function .*\(got str\)"):
            evaluator.as_callback("model")

    def test_names_without_signs_that_loggers_drop(self, pl):
        evaluator = Evaluator(TASK, ["mrr@4", "ndcg(gain=exponential)@2"])
        callback = evaluator.as_callback(lambda module: module.scores.detach(), sep="_")
        stopping = pl.callbacks.EarlyStopping("ndcg_gain_exponential_2", mode="max", patience=2)
        trainer = self.trainer(pl, [callback, stopping], max_epochs=50)
        self.fit(trainer, self.module(pl))
        assert len(evaluator.history) == 4
        for name, metric in (("mrr_4", "mrr@4"), (stopping.monitor, evaluator.metrics[1])):
            mean = evaluator.history[-1][str(metric)]
            assert float(trainer.callback_metrics[name]) == pytest.approx(mean)
        with pytest.raises(ValueError, match="'sep' needs to be one of"):
            evaluator.as_callback(sep="/")

    def test_the_module_itself_is_evaluated_if_nothing_is_said(self, pl):
        class Recommending(type(self.module(pl))):
            def recommend(self, edge_index, edge_weight=None, *, src_index, dst_index, k):
                assert not self.training
                return dst_index[self.scores.topk(k).indices].expand(len(src_index), -1)

        evaluator = Evaluator(TASK, ["mrr@4"], edge_index=torch.tensor([[0, 3], [3, 0]]))
        module = Recommending()
        trainer = self.trainer(pl, [evaluator.as_callback()], max_epochs=2)
        self.fit(trainer, module)
        assert evaluator.history[1] == evaluate(GOOD_SCORES, TASK, ["mrr@4"])

    def test_metric_classes_are_logged_over_mini_batches(self, pl):
        trainer = self.trainer(pl, [], max_epochs=2)
        self.fit(trainer, self.module(pl))
        wanted = evaluate(GOOD_SCORES, TASK, "recall@1")["recall@1"]
        assert float(trainer.callback_metrics["val_recall"]) == pytest.approx(wanted)
