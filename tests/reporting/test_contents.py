"""What a report is about: recommenders of one task, and the split that they are of."""

import re

import pytest
import torch

from pyg_recmetrics import Benchmark, Runs, compare, datasets, evaluate, transforms
from pyg_recmetrics.reporting.contents import Contents, of_data_sets
from tests.support.cases.small_task import GOOD_SCORES, TASK


def test_one_recommender_has_no_name(popular, runs):
    for given, every in (
        (runs, runs),
        (Runs(runs), runs),
        (popular, [popular]),
        ([popular], [popular]),
    ):
        contents = Contents.of(given, None)
        assert list(contents.recommenders) == [""]
        assert list(contents.recommenders[""].runs) == contents.every == every
        assert contents.first is every[0]


def test_metrics_are_those_of_users_that_all_results_have(task, popular):
    other = evaluate(torch.rand(60), task, ["mrr", "coverage@10", "recall@10"])
    contents = Contents.of({"a": popular, "b": other}, None)
    assert list(map(str, contents.metrics)) == ["recall@10"]
    assert str(contents.main_metric) == "recall@10"


def test_checks_of_a_split_may_be_given(popular, split):
    checked = transforms.check_split(*split)
    assert Contents.of(popular, checked).split is checked
    assert Contents.of(popular, split).split == checked


def test_another_split_is_refused(popular, split):
    data = datasets.synthetic_interactions(num_users=300, num_items=40, mean_degree=9)
    with pytest.raises(ValueError, match="'split' does not match the results: neither its test"):
        Contents.of(popular, transforms.PerUserSplit(seed=7)(data))
    assert Contents.of(popular, (split[0], split[2], split[0])).split is not None


def test_homogeneous_data_need_not_say_who_is_a_user(split):
    parts = [part.to_homogeneous() for part in split]
    result = evaluate(torch.rand(60), parts[2], "recall@5", num_users=120)
    assert not Contents.of(result, parts).split.has_leaks


@pytest.mark.parametrize(
    ("results", "parts", "error", "message"),
    [
        ({}, None, ValueError, "'results' needs to hold at least one 'EvaluationResult'"),
        ([], None, ValueError, "'results' needs to hold at least one run"),
        (
            {"a": 1},
            None,
            TypeError,
            "'results' needs to hold 'EvaluationResult' or 'Runs' (got int",
        ),
        ("x", None, TypeError, "'results' needs to hold 'EvaluationResult'"),
        (None, 3, TypeError, "'split' needs to be training, validation and test data"),
        (None, (1, 2), TypeError, "'split' needs to be training, validation and"),
        (None, (1, 2, 3), TypeError, "'data' needs to be a 'Data' or 'HeteroData'"),
    ],
)
def test_odd_arguments_are_named(results, parts, error, message, popular):
    with pytest.raises(error, match=re.escape(message)):
        Contents.of(popular if results is None else results, parts)


def test_results_are_of_the_same_task(popular, split):
    other = evaluate(torch.rand(60), split[1], "recall@5")
    with pytest.raises(ValueError, match="needs to be of the same task"):
        Contents.of({"a": popular, "b": other}, None)


class TestDataSets:
    """Contents of a report on several data sets."""

    def test_a_comparison_says_which_metric(self, small_benchmark):
        comparison = small_benchmark.compare("recall@3", baseline="None")
        contents, on_all = of_data_sets(small_benchmark, comparison)
        assert on_all is comparison
        assert list(contents) == list(small_benchmark)
        for data_set, of_one in contents.items():
            assert str(of_one.main_metric) == "recall@3"
            assert of_one.comparison is comparison[data_set]

    def test_the_metric_is_the_first_that_every_user_has(self, small_benchmark):
        contents, _ = of_data_sets(small_benchmark, None)
        assert {str(x.main_metric) for x in contents.values()} == {"ndcg@3"}
        result = evaluate(GOOD_SCORES, TASK, ["coverage@2", "mrr"], keep_items=True)
        contents, comparison = of_data_sets(Benchmark({key: {"x": result} for key in "AB"}), None)
        assert {str(x.main_metric) for x in contents.values()} == {"mrr"}
        assert comparison is None

    def test_a_comparison_is_of_the_results(self, small_benchmark):
        other = Benchmark({**small_benchmark, "Small": small_benchmark["Wide"]})
        with pytest.raises(ValueError, match=r"^Small: .* differs in Good, Fair, None"):
            of_data_sets(small_benchmark, other.compare("ndcg@3"))
        with pytest.raises(TypeError, match="'comparison' needs to be a 'BenchmarkComparison'"):
            of_data_sets(small_benchmark, compare(small_benchmark["Small"]))
