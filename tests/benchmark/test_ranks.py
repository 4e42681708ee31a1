"""Ranks and lifts, against scipy and loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.benchmark.ranks import complete_data_sets, lifts, mean_ranks, ranks

stats = pytest.importorskip("scipy.stats")

MEANS = {"A": {"x": 0.2, "y": 0.1, "z": 0.3}, "B": {"x": 0.4, "y": 0.4}, "C": {"x": 0.1, "z": 0.2}}


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7]), min_size=1, max_size=8), st.booleans())
def test_they_are_those_of_scipy(values, higher_is_better):
    found = ranks(dict(enumerate(values)), higher_is_better)
    expected = stats.rankdata([-x if higher_is_better else x for x in values])
    assert list(found.values()) == pytest.approx(expected)


def test_what_differs_by_rounding_is_equal():
    assert ranks({"a": 0.1 + 0.2, "b": 0.3}, True) == {"a": 1.5, "b": 1.5}


def test_mean_ranks_are_over_data_sets_that_have_all():
    assert complete_data_sets(MEANS, ["x", "y"]) == ["A", "B"]
    assert mean_ranks(MEANS, ["x", "y"], True) == {"x": 1.25, "y": 1.75}
    assert mean_ranks(MEANS, ["x", "y", "z"], True) == {"x": 2, "y": 3, "z": 1}
    assert mean_ranks(MEANS, ["x", "z"], False) == {"x": 1, "z": 2}
    none = mean_ranks({"A": {"x": 1.0}, "B": {"y": 1.0}}, ["x", "y"], True)
    assert all(map(math.isnan, none.values()))


def test_lifts_are_geometric_means_over_data_sets_that_have_both():
    found = lifts(MEANS, ["x", "y", "z"], "x")
    assert found["x"] == 0
    assert found["y"] == pytest.approx(100 * (np.sqrt(0.5 * 1) - 1))
    assert found["z"] == pytest.approx(100 * (np.sqrt(1.5 * 2) - 1))
    assert math.isnan(lifts({"A": {"x": 0.0, "y": 1.0}}, ["x", "y"], "y")["x"])
    assert math.isnan(lifts({"A": {"x": 1.0}, "B": {"y": 1.0}}, ["x"], "y")["x"])
