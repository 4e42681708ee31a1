"""The table of means on data sets."""

import math

import pytest

from pyg_recmetrics import Benchmark, Runs, evaluate
from pyg_recmetrics.benchmark.means import notes_of_all
from pyg_recmetrics.tables import Best
from tests.support.cases.small_benchmark import METRICS, SKILLS
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK


@pytest.mark.parametrize("metric", METRICS)
def test_every_mean_is_that_of_its_result_with_its_interval(benchmark, metric):
    frame = benchmark.to_pandas(metric, level=0.9)
    assert len(frame) == 8
    for row in frame.itertuples():
        result = benchmark[row.data_set][row.recommender]
        assert row.num_runs == len(result.runs) == SKILLS[row.recommender][1]
        if isinstance(result, Runs):
            expected = result.mean(metric, 0.9)[:3]
        elif metric in result.per_user:
            expected = (result[metric], *result.confidence_interval(metric, 0.9))
        else:
            expected = (result[metric], math.nan, math.nan)
        assert (row.value, row.low, row.high) == pytest.approx(expected, nan_ok=True)


def test_the_best_of_each_data_set_is_bold(benchmark):
    table = benchmark.table("ndcg@3")
    assert table.head == ("ndcg@3", "Small", "Wide", "Long")
    cells = {
        (row[0], head): cell
        for row in table.rows
        for head, cell in zip(table.head, row, strict=True)
    }
    assert cells["Fair", "Long"] == "-"
    bold = {key for key, cell in cells.items() if isinstance(cell, Best)}
    assert bold == {("Good", data_set) for data_set in ("Small", "Wide", "Long")}
    result = benchmark["Wide"]["Good"].mean("ndcg@3")
    assert cells["Good", "Wide"].startswith(f"{result.value:.4f} ± ")


def test_notes_stand_once_and_name_their_data_sets(benchmark):
    notes = {"A": ["all", "two"], "B": ["all", "one"], "C": ["all", "two"]}
    assert notes_of_all(notes) == ["all", "A, C: two", "B: one"]
    assert notes_of_all({"A": [], "B": []}) == []
    shown = benchmark.table("ndcg@3").notes
    assert "bold: the best mean of a data set, significantly better or not" in shown
    runs = "runs: 3 of Good, 2 of Fair; their ± allows for other runs, too"
    assert f"Small, Wide: {runs}" in shown


def test_equal_means_are_bold_together_and_a_single_one_is_not():
    metrics = ["mrr", "mean_rank"]
    good, bad = (evaluate(scores, TASK, metrics) for scores in (GOOD_SCORES, BAD_SCORES))
    found = Benchmark({"A": {"x": good, "y": good, "z": bad}, "B": {"x": good}})
    rows = found.table("mrr").rows
    bold = {(row[0], place) for row in rows for place, x in enumerate(row) if isinstance(x, Best)}
    assert bold == {("x", 1), ("y", 1)}
    # Lower is better.
    rows = found.table("mean_rank").rows
    bold = {(row[0], place) for row in rows for place, x in enumerate(row) if isinstance(x, Best)}
    assert bold == {("x", 1), ("y", 1)}


def test_few_users_are_said():
    result = evaluate(GOOD_SCORES, TASK, "mrr")
    notes = Benchmark({"A": {"x": result}, "B": {"x": result}}).table().notes
    assert any("there are few users (2)" in note for note in notes)


def test_a_metric_that_a_result_lacks_is_named_with_its_data_set(benchmark):
    with pytest.raises(ValueError, match=r"^Small, Good: 'k' needs to be at most"):
        benchmark.table("ndcg@4")
    # Others are measured from the rankings.
    assert benchmark.table("precision@2").head[0] == "precision@2"
