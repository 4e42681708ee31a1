"""The history of an evaluator, in plain loops and as a callback of Lightning."""

import builtins
import logging
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_examples import run

from pyg_recmetrics import Evaluator, RankingTask, evaluate, modules
from pyg_recmetrics.metrics import parse
from pyg_recmetrics.results.history import History

TASK = RankingTask(torch.tensor([[0, 0, 1], [1, 2, 2]]), num_users=3, num_items=4)


class Result(dict):
    """As much of a result as a history looks at."""

    def __getitem__(self, metric):
        return super().__getitem__(str(metric))

    def to_dict(self):
        return dict(self)


def history_of(values, monitor="recall@2", patience=None):
    history = History(parse(monitor), patience)
    for value in values:
        history.append(Result({monitor: value}))
    return history


class TestHistory:
    @given(
        values=st.lists(st.sampled_from([0.1, 0.2, 0.3, math.nan])),
        patience=st.integers(1, 3),
        monitor=st.sampled_from(["recall@2", "mean_rank"]),
    )
    def test_the_best_and_when_to_stop(self, values, patience, monitor):
        history = history_of(values, monitor, patience)
        sign = -1 if monitor == "mean_rank" else 1
        known = [sign * value for value in values if not math.isnan(value)]
        if not known:
            assert history.best is history.best_index is None
            assert not history.is_best
            assert history.should_stop == (len(values) >= patience)
            return
        first = [sign * value for value in values].index(max(known))
        assert history.best_index == first
        assert history.best == {monitor: values[first]}
        assert history.is_best == (first == len(values) - 1)
        assert history.should_stop == (len(values) - first > patience)

    def test_it_is_a_sequence_of_means(self):
        history = history_of([0.1, 0.3, 0.2])
        assert [row["recall@2"] for row in history] == [0.1, 0.3, 0.2]
        assert history[-1] == {"recall@2": 0.2}
        assert history[:2] == [{"recall@2": 0.1}, {"recall@2": 0.3}]
        assert repr(history) == "History(3 evaluations, monitor=recall@2)"
        assert str(history).splitlines()[3] == "1       0.3000  best"
        history.clear()
        assert (len(history), history.best, str(history)) == (0, None, "no evaluation so far")

    def test_without_patience_it_never_stops(self):
        assert not history_of([0.3, *[0.1] * 50]).should_stop

    @pytest.mark.parametrize("patience", [0, -1, 1.5, True])
    def test_patience_is_checked(self, patience):
        with pytest.raises(ValueError, match="'patience' needs to be a positive integer"):
            History(parse("recall@2"), patience)


class TestEvaluator:
    good, bad = torch.tensor([0.0, 0.2, 0.3, 0.1]), torch.tensor([0.3, 0.2, 0.1, 0.4])

    def test_in_a_plain_loop(self):
        evaluator = Evaluator(TASK, ["recall@2", "mrr@4"], monitor="mrr@4", patience=2)
        stopped = []
        for scores in (self.bad, self.good, self.bad, self.bad):
            evaluator(scores)
            stopped.append(evaluator.should_stop)
        assert stopped == [False, False, False, True]
        assert evaluator.best.to_dict() == evaluate(self.good, TASK, ["recall@2", "mrr@4"])
        assert evaluator.best.per_user["mrr@4"].tolist()[:2] == [1.0, 1.0]
        assert evaluator.history[0] == evaluate(self.bad, TASK, ["recall@2", "mrr@4"])
        assert list(evaluator.history[0]) == ["recall@2", "mrr@4"]

    def test_less_can_be_better(self):
        evaluator = Evaluator(TASK, ["mean_rank"])
        evaluator(self.bad)
        evaluator(self.good)
        assert evaluator.history.is_best

    def test_the_first_metric_is_monitored_or_another_one_of_them(self):
        assert Evaluator(TASK, ["recall@2", "mrr@4"]).history.monitor == parse("recall@2")
        with pytest.raises(ValueError, match=r"one of \[recall@2\] \(got recall@3\)"):
            Evaluator(TASK, ["recall@2"], monitor="recall@3")

    def test_on_another_device_it_adds_to_the_same_history(self, device):
        category = torch.zeros(TASK.num_items, dtype=torch.long)
        names = ["recall@2", "diversity@2"]
        evaluator = Evaluator(TASK, names, edge_weight=torch.ones(2), item_category=category)
        moved = evaluator.to(device)
        moved(self.good.to(device))
        assert moved.task.device.type == device.type
        assert len(evaluator.history) == 1
        assert evaluator.task.device.type == "cpu"

    def test_lightning_is_asked_for_by_name(self, monkeypatch):
        original = builtins.__import__

        def without_lightning(name, *args, **kwargs):
            if name.startswith("lightning"):
                raise ImportError(name)
            return original(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without_lightning)
        with pytest.raises(ImportError, match=r"pip install 'pyg-recmetrics\[lightning\]'"):
            Evaluator(TASK).as_callback()


def test_the_example_of_a_plain_loop_stops_and_goes_back_to_the_best(monkeypatch, capsys):
    evaluator, result = run(monkeypatch, "early_stopping.py")
    assert evaluator.should_stop
    assert len(evaluator.history) == evaluator.history.best_index + 6
    assert result["recall@20"] > 0.3
    assert " best\n" in capsys.readouterr().out


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
                self.scores = torch.nn.Parameter(TestEvaluator.bad.clone())
                self.metric = modules.Recall(k=1)

            def training_step(self, batch):
                return self.scores.sum() * 0

            def on_train_epoch_start(self):
                better = self.current_epoch == 1
                self.scores.data = TestEvaluator.good if better else TestEvaluator.bad

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
        assert evaluator.best.to_dict() == evaluate(TestEvaluator.good, TASK, evaluator.metrics)
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

    def test_the_module_itself_is_evaluated_if_nothing_is_said(self, pl):
        class Recommending(type(self.module(pl))):
            def recommend(self, edge_index, edge_weight=None, *, src_index, dst_index, k):
                assert not self.training
                return dst_index[self.scores.topk(k).indices].expand(len(src_index), -1)

        evaluator = Evaluator(TASK, ["mrr@4"], edge_index=torch.tensor([[0], [3]]))
        module = Recommending()
        trainer = self.trainer(pl, [evaluator.as_callback()], max_epochs=2)
        self.fit(trainer, module)
        assert evaluator.history[1] == evaluate(TestEvaluator.good, TASK, ["mrr@4"])

    def test_metric_classes_are_logged_over_mini_batches(self, pl):
        trainer = self.trainer(pl, [], max_epochs=2)
        self.fit(trainer, self.module(pl))
        wanted = evaluate(TestEvaluator.good, TASK, "recall@1")["recall@1"]
        assert float(trainer.callback_metrics["val_recall"]) == pytest.approx(wanted)

    def test_the_example(self, pl, monkeypatch, capsys):
        evaluator, logged = run(monkeypatch, "lightning_module.py", "--epochs", "8")
        assert len(evaluator.history) == 8
        assert evaluator.best["recall@20"] > 0.28
        for ours, theirs in (("ndcg@20", "val_ndcg"), ("recall@20", "val_recall")):
            assert float(logged[theirs]) == pytest.approx(evaluator.history[-1][ours], abs=1e-6)
        assert "users evaluated" in capsys.readouterr().out
