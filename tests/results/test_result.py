"""EvaluationResult: its mapping of means, its values per user, and how it prints."""

import copy
import math
import pickle
from collections.abc import Mapping

import numpy as np
import pytest
import torch

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    Runs,
    conventions,
    evaluate,
    metrics,
    rank,
)
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.machines.missing_packages import hide_package

METRICS = ["recall@2", "ndcg@3", "r_precision"]
LISTS = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
TRUTH = torch.tensor([[0, 0, 1], [1, 2, 2]])


@pytest.fixture
def ranked():
    return RankedEdges.from_topk(LISTS, TRUTH)


@pytest.fixture
def result(ranked):
    return EvaluationResult(ranked, ["recall@1", "recall@3", "r_precision", "mrr@3"])


def pickled(result):
    return pickle.loads(pickle.dumps(result))


class TestResult:
    def test_it_is_a_mapping_of_names_to_means(self, result):
        assert isinstance(result, Mapping)
        assert list(result) == ["recall@1", "recall@3", "r_precision", "mrr@3"]
        assert result["recall@1"] == 0.25
        assert result[metrics.parse("recall@3")] == 1
        assert isinstance(result["recall@1"], float)
        assert result.to_dict() == dict(result)
        assert result.to_dict() is not result.to_dict()

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

    def test_a_ranking_says_who_is_evaluated(self):
        task = RankingTask(TRUTH, num_users=3, num_items=3, users=torch.tensor([1, 2]))
        ranked = rank(LISTS, task, k=3)
        assert ranked.users.tolist() == [1, 2]
        for options in ({}, {"task": task}):
            result = EvaluationResult(ranked, "recall@3", empty_target_action="neg", **options)
            assert result["recall@3"] == 0.5  # one who finds everything, and one without truth
            assert (result.num_evaluated, result.num_without_truth) == (1, 1)

    def test_users_without_truth_can_be_an_error(self, ranked):
        with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
            EvaluationResult(ranked, ["recall@1"], empty_target_action="error")
        task = RankingTask(TRUTH, num_users=3, num_items=3, users=torch.tensor([0, 1]))
        EvaluationResult(ranked, ["recall@1"], task=task, empty_target_action="error")

    def test_an_unknown_action_is_named(self, ranked):
        with pytest.raises(ValueError, match=r"\['skip', 'neg', 'pos', 'error'\] \(got 'drop'\)"):
            EvaluationResult(ranked, ["recall@1"], empty_target_action="drop")

    def test_printing(self, result):
        assert str(result).splitlines() == [
            "metric                                     @1               @3",
            "--------------------------------------------------------------",
            "recall                        0.2500 ± 3.1766           1.0000",
            "r_precision  0.2500 ± 3.1766",
            "mrr                                            0.6667 ± 4.2354",
            "±: 95% confidence interval of the mean over users",
            "intervals may be too narrow: there are few users (2)",
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

    def test_no_frame_of_names(self, result):
        pd = pytest.importorskip("pandas", reason="needs pandas")
        with pytest.raises(TypeError, match=r"use 'result\.to_pandas\(per_user=True\)'"):
            pd.DataFrame(result.per_user)
        for make in (pd.DataFrame, np.asarray, lambda result: pd.DataFrame({"a": result})):
            with pytest.raises(TypeError, match=r"use 'result\.to_pandas\(\)' or 'result\.to_dict"):
                make(result)
        assert pd.Series(result).to_dict() == result.to_dict()
        assert pd.DataFrame([result, result])["mrr@3"].tolist() == [result["mrr@3"]] * 2

    def test_nothing_in_it_can_be_set(self, result):
        for name in ("empty_target_action", "ranked", "num_tied", "comment"):
            with pytest.raises(
                AttributeError, match=f"'EvaluationResult.{name}' .* another one of"
            ):
                setattr(result, name, None)
        assert result.empty_target_action == "skip"

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
    def test_copies(self, result, copied):
        again = copied(result)
        assert again == result
        assert again.num_tied == result.num_tied
        assert again.tie_range("mrr@3") == result.tie_range("mrr@3")

    def test_pandas_is_asked_for_by_name(self, result, monkeypatch):
        hide_package(monkeypatch, "pandas")
        with pytest.raises(ImportError, match=r"pip install 'pyg-recmetrics\[frames\]'"):
            result.to_pandas()


class TestContributions:
    @pytest.fixture
    def task(self):
        return random_task(60, 12, truth_share=0.2, seen_share=0.2)

    @pytest.fixture
    def result(self, task):
        return evaluate(random_scores(task, 1), task, METRICS)

    def test_their_mean_is_the_metric(self, task, result):
        for metric in METRICS:
            values = result.contributions(metric)
            assert values.shape == (task.num_users,)
            assert float(values.nanmean()) == pytest.approx(result[metric])

    @pytest.mark.parametrize(("action", "value"), [("neg", 0.0), ("pos", 1.0)])
    def test_empty_target_action_decides_who_counts(self, task, action, value):
        users = torch.arange(1, task.num_users)
        without = task.degree[users] == 0
        assert without.any()
        chosen = RankingTask(
            task.truth,
            num_users=task.num_users,
            num_items=task.num_items,
            seen=task.seen,
            users=users,
        )
        scores = random_scores(task, 1)
        skipped = evaluate(scores, chosen, METRICS).contributions("recall@2")
        assert torch.equal(skipped[users].isnan(), without)
        counted = evaluate(scores, chosen, METRICS, empty_target_action=action)
        values = counted.contributions("recall@2")
        assert values[users][without].unique().tolist() == [value]
        assert torch.equal(values[users][~without], skipped[users][~without])
        assert values[:1].isnan().all()
        skipping = evaluate(scores, chosen, METRICS)
        low, _ = skipping.confidence_interval("recall@2")
        assert counted.confidence_interval("recall@2")[0] != pytest.approx(low)

    def test_other_metrics_of_the_same_ranking(self, task, result):
        scores = random_scores(task, 1)
        expected = evaluate(scores, task, "map@3").per_user["map@3"]
        assert torch.equal(result.contributions("map@3").nan_to_num(-1), expected.nan_to_num(-1))
        micro = evaluate(scores, task, "precision@2", convention="implicit")
        ndcg = evaluate(scores, task, "ndcg@2", convention="implicit")
        mean = float(ndcg.contributions("precision@2").nanmean())
        assert mean == pytest.approx(micro["precision@2"], rel=1e-14)
        with pytest.raises(ValueError, match=r"at most 3, the depth"):
            result.contributions("recall@9")
        with pytest.raises(ValueError, match="known metrics"):
            result.contributions("recal@2")

    @pytest.mark.parametrize(
        "name",
        [
            "adjusted_mean_rank",
            "adjusted_mean_rank_index",
            "roc_auc(weight=candidates)",
            "roc_auc(weight=relevant)",
        ],
    )
    def test_ratios_of_sums_have_values_intervals_and_runs(self, task, name, tmp_path):
        results = [evaluate(random_scores(task, seed), task, name) for seed in (1, 2)]
        first = results[0]
        values = first.contributions(name)
        assert float(values.nanmean()) == pytest.approx(first[name], rel=1e-12)
        low, high = first.confidence_interval(name)
        assert low < first[name] < high
        mean_of_runs = (results[0][name] + results[1][name]) / 2
        assert Runs(results).mean(name).value == pytest.approx(mean_of_runs)
        first.save(tmp_path / "result.npz")
        assert EvaluationResult.load(tmp_path / "result.npz")[name] == first[name]


class TestFormats:
    def test_a_result_in_markdown(self):
        task = random_task(40, 9, truth_share=0.25, seen_share=0.25)
        names = ["recall@2", "recall@3", "ndcg(gain=exponential)@3", "r_precision"]
        lines = evaluate(random_scores(task, 1), task, names).to_markdown().splitlines()
        assert lines[0] == "| metric |  | @2 | @3 |"
        assert lines[2].startswith("| recall |  | 0.")


class TestCurve:
    """Column `k - 1` is what the same convention has for each user at `k`."""

    @pytest.mark.parametrize("convention", conventions.CONVENTIONS)
    @pytest.mark.parametrize("metric", ["map", "ndcg", "recall", "precision", "mrr", "coverage"])
    @pytest.mark.filterwarnings("ignore:.*depending on the order of ties")
    def test_it_keeps_the_convention(self, convention, metric):
        task = random_task(30, 12, truth_share=0.3, seen_share=0.4)
        scores = random_scores(task, seed=3)
        every = [f"{metric}@{k}" for k in range(1, 13)]
        try:
            conventions.get(convention).resolve_all(metrics.parse_all(every))
        except ValueError:
            pytest.skip("it does not have the metric")
        result = evaluate(scores, task, every, convention=convention)
        curve = result.curve(metric, max_k=12)
        for k, name in enumerate(every, start=1):
            value = result.per_user.get(name)
            wanted = torch.tensor(result[name]).double() if value is None else value
            torch.testing.assert_close(curve[..., k - 1], wanted, equal_nan=True)

    def test_what_it_does_not_take(self):
        task = RankingTask([[0], [1]], num_users=1, num_items=4)
        result = evaluate(torch.rand(4), task, "mrr@2")
        with pytest.raises(ValueError, match="spelled without a cut-off"):
            result.curve("mrr@2", max_k=2)
        with pytest.raises(TypeError, match="'metric' needs to be a string"):
            result.curve(3, max_k=2)
