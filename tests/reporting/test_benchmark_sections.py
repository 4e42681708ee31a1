"""The page of a report on several data sets, and its sections."""

import pytest

from pyg_recmetrics import Benchmark, compare, evaluate
from pyg_recmetrics.reporting.benchmark_sections import BENCHMARK_SECTIONS, BenchmarkContents
from pyg_recmetrics.reporting.parts import Drawing, Missing, Remarks
from tests.support.cases.small_benchmark import DETERMINISTIC
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK
from tests.support.machines.missing_packages import hide_package


@pytest.fixture(scope="module")
def comparison(small_benchmark):
    return small_benchmark.compare("ndcg@3", baseline="None", deterministic=DETERMINISTIC)


@pytest.fixture(scope="module")
def contents(small_benchmark, comparison):
    return BenchmarkContents.of(small_benchmark, comparison)


def parts(section, contents):
    return list(BENCHMARK_SECTIONS[section](contents))


def test_the_page_opens_with_the_answer(contents, small_benchmark, comparison):
    claims, warnings, *rest = parts("Result", contents)
    assert claims == Remarks(comparison.claims(), "claims")
    assert "Fair was not run on Long." in warnings.texts
    assert any("at most: " in text and "on Small" in text for text in warnings.texts)
    means = rest[-1]
    assert str(means.table) == str(small_benchmark.table("ndcg@3"))


def test_each_data_set_has_two_pictures(contents):
    found = parts("Each data set", contents)
    assert [type(part) for part in found] == [Drawing] * 6
    captions = [part.caption for part in found]
    assert captions[::2] == [f"The mean ndcg@3 on {x}." for x in ("Small", "Wide", "Long")]


def test_the_comparison_says_no_sentence_twice(contents, comparison):
    whole, *folded = parts("Comparison", contents)
    assert not set(whole.table.notes) & set(comparison.claims())
    assert list(whole.of_row) == [(("Good", "None"), ()), (("Fair", "None"), ())]
    assert [part.fold for part in folded] == [f"All numbers on {x}" for x in comparison]
    for part, of_one in zip(folded, comparison.values(), strict=True):
        assert str(part.table) == str(of_one)
        assert len(part.of_row) == len(part.table.rows)


def test_other_metrics_are_folded(contents):
    assert [part.fold for part in parts("Other metrics", contents)] == ["recall@3", "coverage@3"]


def test_trade_offs_are_drawn_for_metrics_of_lists(contents):
    found = parts("Trade-offs", contents)
    assert [type(part) for part in found] == [Drawing] * 3
    result = evaluate(GOOD_SCORES, TASK, "mrr")
    without = BenchmarkContents.of(Benchmark({"A": {"x": result}, "B": {"x": result}}))
    assert parts("Trade-offs", without) == [
        Missing("Trade-offs", "they need a metric of lists, such as 'coverage@20'")
    ]


def test_sizes_and_recipes_are_those_of_each(contents, small_benchmark):
    (sizes,) = parts("Data sets", contents)
    assert [row[0] for row in sizes.table.rows] == list(small_benchmark)
    first = small_benchmark["Small"]["None"]
    assert sizes.table.rows[0][1] == str(first.user_counts.num_evaluated)
    recipes = parts("Recipe", contents)
    assert recipes[0].text.startswith("Small. Metrics: ndcg@3")


def test_the_page_is_complete(made, small_benchmark, comparison):
    page = made(small_benchmark, comparison=comparison, title="On <three> data sets")
    assert page.headings == ["On <three> data sets", *BENCHMARK_SECTIONS]
    assert page.tags["svg"] == 9
    text = " ".join(page.text.split())
    assert "Good, Fair, None, on 3 data sets: Small, Wide, Long." in text
    for claim in comparison.claims():
        assert text.count(claim) == 1
    assert len(page.ids) == len(set(page.ids))
    assert not any(link.startswith("http") for link in page.values("href") + page.values("src"))


def test_the_same_benchmark_gives_the_same_page(made):
    results = {"x": evaluate(GOOD_SCORES, TASK, "mrr")}
    one, other = (made(Benchmark({"A": results, "B": results})).source for _ in range(2))
    assert one == other


def test_a_split_is_one_of_a_data_set(made, small_benchmark, split):
    with pytest.raises(ValueError, match="'split' needs to be left out for a benchmark"):
        made(small_benchmark, split=split)


def test_without_packages_the_page_says_what_to_install(made, monkeypatch):
    good, bad = (evaluate(scores, TASK, "mrr") for scores in (GOOD_SCORES, BAD_SCORES))
    benchmark = Benchmark({"A": {"x": good, "y": bad}, "B": {"x": good, "y": bad}})
    for package in ("scipy", "matplotlib"):
        hide_package(monkeypatch, package)
    page = made(benchmark)
    assert "statistics" in page.text.partition("Left out\n")[2]
    assert "plot" in page.text.partition("Left out\n")[2]
    assert page.tags["svg"] == 0


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
