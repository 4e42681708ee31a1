"""What tables of several recommenders or data sets have in common."""

import math

import pytest

from pyg_recmetrics.benchmark.means import by_data_set, with_best
from pyg_recmetrics.results.notes import notes_of_all
from pyg_recmetrics.tables import Best
from tests.support.cases.small_benchmark import all_results


def test_notes_stand_once_and_name_their_data_sets():
    notes = {"A": ["all", "two"], "B": ["all", "one"], "C": ["all", "two"]}
    assert notes_of_all(notes) == ["all", "A, C: two", "B: one"]
    assert notes_of_all({"A": [], "B": []}) == []


def test_results_of_data_sets_are_told_from_those_of_one():
    of_all = all_results()
    assert list(by_data_set(of_all)) == list(of_all)
    assert by_data_set(of_all["Small"]) == {"": of_all["Small"]}
    result = of_all["Small"]["None"][0]
    for results in ({"a": result}, result, [result], {}):
        assert by_data_set(results) == {"": results}


@pytest.mark.parametrize(("metric", "wanted"), [("mrr", "xy"), ("mean_rank", "z")])
def test_the_best_are_those_whose_means_differ_by_rounding(metric, wanted):
    cells = {"x": (0.3, ".3"), "y": (0.1 + 0.2, ".3"), "z": (0.2, ".2"), "n": (math.nan, "-")}
    found = dict(zip("nxyzw", with_best(cells, "nxyzw", metric), strict=True))
    assert found == {name: text for name, (_, text) in cells.items()} | {"w": "-"}
    assert {name for name, cell in found.items() if isinstance(cell, Best)} == set(wanted)
