"""What a report on several data sets is about."""

import pytest

from pyg_recmetrics import Benchmark, compare, evaluate
from pyg_recmetrics.reporting.benchmark_contents import BenchmarkContents
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK


def test_the_metric_is_the_first_that_every_user_has(small_benchmark):
    contents = BenchmarkContents.of(small_benchmark)
    assert str(contents.metric) == "ndcg@3"
    results = evaluate(GOOD_SCORES, TASK, ["coverage@2", "mrr"], keep_items=True)
    found = BenchmarkContents.of(Benchmark({"A": {"x": results}, "B": {"x": results}}))
    assert str(found.metric) == "mrr"
    assert found.comparison is None
    alone = evaluate(GOOD_SCORES, TASK, "coverage@2", keep_items=True)
    with pytest.raises(ValueError, match="no metric of single users in common"):
        BenchmarkContents.of(Benchmark({"A": {"x": alone}, "B": {"x": alone}}))


def test_a_comparison_says_which_metric(small_benchmark):
    comparison = small_benchmark.compare("recall@3", baseline="None")
    contents = BenchmarkContents.of(small_benchmark, comparison)
    assert str(contents.metric) == "recall@3"
    assert contents.comparison is contents.main_comparison is comparison


def test_a_comparison_is_of_the_results(small_benchmark):
    other = Benchmark({**small_benchmark, "Small": small_benchmark["Wide"]})
    with pytest.raises(ValueError, match=r"^Small: 'comparison' needs to be of these results"):
        BenchmarkContents.of(small_benchmark, other.compare("ndcg@3"))
    with pytest.raises(TypeError, match="'comparison' needs to be what 'compare' of the benchmark"):
        BenchmarkContents.of(small_benchmark, compare(small_benchmark["Small"]))


def test_the_best_is_best_on_most_data_sets():
    good, bad = (evaluate(scores, TASK, "mrr") for scores in (GOOD_SCORES, BAD_SCORES))
    found = BenchmarkContents.of(
        Benchmark({"A": {"x": bad, "y": good}, "B": {"x": bad, "y": good}})
    )
    assert found.best == "y"
    some = {"A": {"x": good, "y": bad}, "B": {"y": good, "z": bad}, "C": {"y": good, "z": bad}}
    assert BenchmarkContents.of(Benchmark(some)).best == "y"


def test_many_pairs_are_those_of_the_best():
    good, bad = (evaluate(scores, TASK, "mrr") for scores in (GOOD_SCORES, BAD_SCORES))
    results = dict.fromkeys("abcd", bad) | {"e": good}
    contents = BenchmarkContents.of(Benchmark({"A": results, "B": results}))
    assert len(contents.comparison.pairs) == 10
    assert contents.main_comparison.pairs == [(x, "e") for x in "abcd"]
