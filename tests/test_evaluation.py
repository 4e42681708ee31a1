"""evaluate(), Evaluator and EvaluationResult."""

import builtins
import math
from collections.abc import Mapping

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import LightGCN
from torch_geometric.transforms import RandomLinkSplit

from pyg_recmetrics import (
    EvaluationResult,
    Evaluator,
    RankedEdges,
    RankingTask,
    datasets,
    evaluate,
    metrics,
)

LISTS = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
TRUTH = torch.tensor([[0, 0, 1], [1, 2, 2]])


@pytest.fixture
def ranked():
    return RankedEdges.from_topk(LISTS, TRUTH)


@pytest.fixture
def result(ranked):
    return EvaluationResult(ranked, ["recall@1", "recall@3", "r_precision", "mrr@3"])


class TestResult:
    def test_it_is_a_mapping_of_names_to_means(self, result):
        assert isinstance(result, Mapping)
        assert list(result) == ["recall@1", "recall@3", "r_precision", "mrr@3"]
        assert result["recall@1"] == 0.25
        assert result[metrics.parse("recall@3")] == 1
        assert isinstance(result["recall@1"], float)
        assert result.to_dict() == dict(result)
        assert result.to_dict() is not result.to_dict()

    def test_a_metric_can_be_spelled_in_other_ways(self, ranked):
        result = EvaluationResult(ranked, ["ndcg(gain=linear)@3"])
        assert result["ndcg(gain=linear)@3"] == result["ndcg( gain=linear ) @3"]

    def test_a_metric_that_was_not_evaluated_is_a_key_error(self, result):
        with pytest.raises(KeyError, match=r"recall@2 was not evaluated, only recall@1, "):
            result["recall@2"]
        with pytest.raises(KeyError, match="known metrics, such as"):
            result["recal@1"]
        assert "recall@2" not in result
        assert "recal@1" not in result
        assert "recall@1" in result

    def test_there_is_a_value_for_every_user(self, result):
        assert set(result.per_user) == set(result)
        assert result.per_user["recall@1"].tolist() == pytest.approx(
            [0.5, 0.0, math.nan], nan_ok=True
        )
        with pytest.raises(TypeError):
            result.per_user["recall@1"] = 0

    def test_more_metrics_of_the_same_ranking_can_be_computed(self, result):
        assert metrics.map(result.ranked, k=3).nanmean() > 0

    @pytest.mark.parametrize(
        ("action", "mean"), [("skip", 0.25), ("neg", 0.5 / 3), ("pos", 1.5 / 3)]
    )
    def test_what_users_without_truth_count_as(self, ranked, action, mean):
        result = EvaluationResult(ranked, ["recall@1"], empty_target_action=action)
        assert result["recall@1"] == pytest.approx(mean)
        assert result.per_user["recall@1"].isnan().tolist() == [False, False, True]

    def test_users_without_truth_can_be_an_error(self, ranked):
        with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
            EvaluationResult(ranked, ["recall@1"], empty_target_action="error")
        task = RankingTask(TRUTH, num_users=3, num_items=3, users=torch.tensor([0, 1]))
        EvaluationResult(ranked, ["recall@1"], task=task, empty_target_action="error")

    def test_an_unknown_action_is_named(self, ranked):
        with pytest.raises(ValueError, match=r"\['skip', 'neg', 'pos', 'error'\] \(got 'drop'\)"):
            EvaluationResult(ranked, ["recall@1"], empty_target_action="drop")

    def test_users_are_counted(self, ranked):
        result = EvaluationResult(ranked, ["recall@1"])
        assert (result.num_evaluated, result.num_without_truth) == (2, 1)
        assert result.num_with_few_candidates is None
        task = RankingTask(TRUTH, num_users=3, num_items=3, users=torch.tensor([0, 1]))
        result = EvaluationResult(ranked, ["recall@1"], task=task)
        assert (result.num_evaluated, result.num_without_truth) == (2, 0)

    def test_printing(self, result):
        assert str(result).splitlines() == [
            "metric                                   @1              @3",
            "-----------------------------------------------------------",
            "recall                       0.2500 ± .4900  1.0000 ± .0000",
            "r_precision  0.2500 ± .4900",
            "mrr                                          0.6667 ± .6533",
            "±: 95% confidence interval of the mean over users",
            "2 users evaluated, 1 without ground truth",
        ]
        assert repr(result) == (
            "EvaluationResult(recall@1: 0.2500, recall@3: 1.0000, r_precision: 0.2500, "
            "mrr@3: 0.6667)"
        )

    def test_pandas(self, result):
        frame = result.to_pandas()
        assert frame.loc["recall@3"].to_dict() == {"metric": "recall", "k": 3, "value": 1.0}
        assert frame["k"].isna().tolist() == [False, False, True, False]

    def test_pandas_is_asked_for_by_name(self, result, monkeypatch):
        original = builtins.__import__

        def without_pandas(name, *args, **kwargs):
            if name == "pandas":
                raise ImportError(name)
            return original(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without_pandas)
        with pytest.raises(ImportError, match=r"pip install 'pyg-recmetrics\[pandas\]'"):
            result.to_pandas()


class TestEvaluate:
    task = RankingTask(
        torch.tensor([[0, 0, 1], [1, 2, 2]]),
        num_users=4,
        num_items=3,
        seen=torch.tensor([[1, 3, 3], [0, 0, 1]]),
    )
    scores = torch.tensor([[0.2, 0.1, 0.3], [0.9, 0.8, 0.7], [0, 0, 0], [0, 0, 0]])

    def test_all_that_a_user_asks_for(self):
        result = evaluate(self.scores, self.task, ["recall@1", "precision@3", "r_precision"])
        assert result.to_dict() == {
            "recall@1": 0.25,
            "precision@3": 0.5,
            "r_precision": 0.25,
        }
        assert (result.num_evaluated, result.num_without_truth) == (2, 2)
        assert result.num_with_few_candidates == 1
        assert str(result).endswith(
            "2 users evaluated, 2 without ground truth, 1 with fewer than 3 candidates"
        )

    def test_the_default_metrics(self):
        assert list(evaluate(self.scores, self.task)) == [
            "r_precision",
            "precision@20",
            "recall@20",
            "ndcg@20",
        ]

    def test_a_single_metric(self):
        assert list(evaluate(self.scores, self.task, "recall@2")) == ["recall@2"]

    def test_some_users_only(self):
        task = RankingTask(TRUTH, num_users=4, num_items=3, users=torch.tensor([1, 3]))
        result = evaluate(self.scores, task, ["recall@3"], empty_target_action="neg")
        assert (result.num_evaluated, result.num_without_truth) == (1, 1)
        assert result["recall@3"] == 0.5
        assert result.per_user["recall@3"].isnan().tolist() == [True, False, True, True]

    def test_an_evaluator_is_called_again_and_again(self):
        evaluator = Evaluator(self.task, ["recall@1"])
        assert evaluator(self.scores)["recall@1"] == evaluator(self.scores)["recall@1"] == 0.25
        assert evaluator(-self.scores)["recall@1"] != 0.25
        assert repr(evaluator).endswith("seen=[2, 3]), metrics=[recall@1])")

    def test_r_precision_alone_is_exact_for_deep_users(self):
        truth = torch.stack([torch.zeros(30, dtype=torch.long), torch.arange(30)])
        task = RankingTask(truth, num_users=1, num_items=100)
        score = torch.zeros(100)
        score[10:40] = 1
        assert evaluate(score, task, "r_precision")["r_precision"] == pytest.approx(20 / 30)

    def test_data_is_read_and_models_propagate_over_its_edges(self):
        data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=8)
        *_, test = RandomLinkSplit(edge_types=("user", "rates", "item"))(data)
        model = LightGCN(90, embedding_dim=8, num_layers=2)
        task = RankingTask.from_data(test)
        result = evaluate(model, test, edge_type=("user", "rates", "item"))
        user, item = model.get_embedding(task.edge_index).detach().split([50, 40])
        assert result.to_dict() == evaluate((user, item), task).to_dict()
        homogeneous = Data(
            edge_index=task.edge_index,
            edge_label_index=task.truth + torch.tensor([[0], [50]]),
            num_nodes=90,
        )
        assert evaluate(model, homogeneous, num_users=50).to_dict() == result.to_dict()

    def test_other_edges_and_weights_can_be_propagated_over(self):
        edge_index = torch.tensor([[0, 4, 1, 5], [4, 0, 5, 1]])
        weight = torch.tensor([1.0, 1.0, 0.1, 0.1])
        model = LightGCN(7, embedding_dim=8, num_layers=2, normalize=False)
        embedding = model.get_embedding(edge_index, weight).detach()
        got = evaluate(model, self.task, edge_index=edge_index, edge_weight=weight)
        assert got.to_dict() == evaluate((embedding[:4], embedding[4:]), self.task).to_dict()

    def test_options_that_do_not_apply_are_named(self):
        with pytest.raises(ValueError, match=r"'num_users' applies to data.*\(got 4\)"):
            evaluate(self.scores, self.task, num_users=4)
        with pytest.raises(ValueError, match="'edge_type' applies to data"):
            evaluate(self.scores, self.task, edge_type=("a", "b", "c"))
        with pytest.raises(TypeError, match=r"'data' needs to be .*\(got str\)"):
            evaluate(self.scores, "data")
        with pytest.raises(ValueError, match=r"such as \['recall'"):
            evaluate(self.scores, self.task, ["recal@20"])

    def test_progress_is_shown(self, capsys):
        evaluate(self.scores, self.task, progress=True)
        assert "2/2" in capsys.readouterr().err
