"""An evaluator and metric classes in a LightningModule."""

import logging

import pytest
import torch

from pyg_recmetrics import Evaluator, evaluate, modules
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK

EDGES = torch.tensor([[0, 3], [3, 0]])


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

    def module(self, pl, evaluator):
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

            def on_train_epoch_end(self):
                result = evaluator.to(self.device)(self)
                self.log_dict(result.to_dict("_"))
                self.trainer.should_stop |= evaluator.should_stop

            def recommend(self, edge_index, edge_weight=None, *, src_index, dst_index, k):
                assert not self.training
                return dst_index[self.scores.topk(k).indices].expand(len(src_index), -1)

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
        evaluator = Evaluator(TASK, ["mrr@4", "recall@1"], edge_index=EDGES, patience=3)
        trainer = self.trainer(pl, [], max_epochs=50)
        self.fit(trainer, self.module(pl, evaluator))
        assert len(evaluator.history) == 5
        assert trainer.current_epoch == 5
        assert evaluator.history.best_index == 1
        assert evaluator.best.to_dict() == evaluate(GOOD_SCORES, TASK, evaluator.metrics)
        for name, mean in evaluator.history[-1].items():
            logged = trainer.callback_metrics[name.replace("@", "_")]
            assert float(logged) == pytest.approx(mean)

    def test_metric_classes_are_logged_over_mini_batches(self, pl):
        trainer = self.trainer(pl, [], max_epochs=2)
        self.fit(trainer, self.module(pl, Evaluator(TASK, "mrr@4", edge_index=EDGES)))
        wanted = evaluate(GOOD_SCORES, TASK, "recall@1")["recall@1"]
        assert float(trainer.callback_metrics["val_recall"]) == pytest.approx(wanted)
