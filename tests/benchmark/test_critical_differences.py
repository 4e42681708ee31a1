"""Critical differences, against scipy and formulas by hand."""

import math
from itertools import combinations

import numpy as np
import pytest

from pyg_recmetrics.benchmark import CriticalDifferences
from pyg_recmetrics.metrics import parse
from pyg_recmetrics.results.multiple_tests import holm
from tests.support.cases.small_benchmark import many_data_sets

stats = pytest.importorskip("scipy.stats")

NDCG = parse("ndcg@20")


def critical(means, names=("a", "b", "c"), level=0.95):
    return CriticalDifferences(means, names, NDCG, level)


def as_array(means):
    return np.array([list(of_one.values()) for of_one in means.values()])


@pytest.mark.parametrize("lead", [0.0, 0.1])
@pytest.mark.parametrize("number", [8, 12, 60])
def test_tests_are_those_of_scipy_and_by_hand(number, lead):
    means = many_data_sets(number, lead=lead)
    found, values = critical(means), as_array(means)
    ranks = stats.rankdata(-values, axis=1)
    assert [found.mean_ranks[name] for name in "abc"] == pytest.approx(ranks.mean(axis=0))
    # Friedman's statistic of ranks without ties.
    statistic = 12 * number / (3 * 4) * ((ranks.mean(axis=0) - 2) ** 2).sum()
    assert found.p_friedman == pytest.approx(stats.chi2.sf(statistic, 2))
    assert list(found.mean_ranks.values()) == sorted(found.mean_ranks.values())
    for row in found:
        differences = values[:, "abc".index(row.a)] - values[:, "abc".index(row.b)]
        assert row.p_value == pytest.approx(stats.wilcoxon(differences).pvalue)
    assert [row.p_adjusted for row in found] == pytest.approx(holm([row.p_value for row in found]))
    for row in found:
        is_found = row.p_adjusted <= 0.05 and found.p_friedman <= 0.05
        assert row.is_significant == is_found
    assert any(row.is_significant for row in found) == (lead > 0)


def test_friedmans_test_allows_for_equal_means():
    means = many_data_sets(10)
    for place, of_one in enumerate(means.values()):
        if place % 2:
            of_one["b"] = of_one["a"]
    expected = stats.friedmanchisquare(*as_array(means).T).pvalue
    assert critical(means).p_friedman == pytest.approx(expected)


def test_without_friedmans_test_nothing_is_told_apart():
    # The first two are apart on every data set, and six others are not.
    names = [f"m{i}" for i in range(8)]
    means = many_data_sets(12, names)
    for of_one in means.values():
        of_one["m0"] = of_one["m1"] + 1e-4
    found = critical(means, names)
    (pair,) = (row for row in found if {row.a, row.b} == {"m0", "m1"})
    assert pair.p_adjusted <= 0.05
    assert not found.any_differs
    assert not pair.is_significant
    assert "Friedman's test: no difference is found" in " ".join(found.table().notes)


def test_equal_recommenders_do_not_differ():
    means = {data_set: dict.fromkeys("abc", 0.1) for data_set in "ABCDEFGH"}
    found = critical(means)
    assert found.p_friedman == 1
    assert {row.p_adjusted for row in found} == {1}
    assert {*found.mean_ranks.values()} == {2}


def test_two_recommenders_need_no_friedman_test():
    means = many_data_sets(6, "ab", lead=1.0)
    found = critical(means, "ab")
    assert math.isnan(found.p_friedman)
    assert [row.is_significant for row in found] == [True]
    assert found[0].p_value == pytest.approx(2 / 2**6)


@pytest.mark.parametrize(
    ("number", "names", "needed"),
    [
        *((4, "ab", 6), (5, "ab", 6), (6, "ab", None)),
        *((6, "abc", 7), (7, "abc", None)),
        *((7, "abcd", 8), (8, "abcd", None)),
        *((2, "abcdefg", 8), (8, "abcdefg", None)),
    ],
)
def test_too_few_data_sets_are_refused(number, names, needed):
    means = many_data_sets(number, names)
    if needed is None:
        assert len(critical(means, names)) == len(list(combinations(names, 2)))
        return
    with pytest.raises(ValueError, match=rf"needs {needed} data sets .* \(got {number}\)"):
        critical(means, names)


@pytest.mark.parametrize("number", [5, 6, 7])
@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_what_is_refused_could_not_have_found_anything(number, names):
    # The first is ahead on every data set, which is all that the test can see.
    means = many_data_sets(number, names, lead=10.0)
    pairs = len(list(combinations(names, 2)))
    values = as_array(means)
    p = stats.wilcoxon(values[:, 0] - values[:, 1]).pvalue
    try:
        found = critical(means, names)
    except ValueError:
        assert pairs * p > 0.05
    else:
        assert any(row.p_adjusted <= 0.05 for row in found)


def test_eight_data_sets_are_said_to_be_too_few_for_many_recommenders():
    names = "abcdefg"
    notes = critical(many_data_sets(8, names, lead=1.0), names).table().notes
    assert "8 data sets are too few to tell any two of 7 recommenders apart" in notes
    notes = critical(many_data_sets(8, lead=1.0)).table().notes
    assert not any("too few" in note for note in notes)


def test_data_sets_without_all_recommenders_are_left_out():
    means = many_data_sets(10)
    del means["set 3"]["b"]
    found = critical(means)
    assert len(found.data_sets) == 9
    assert found.table().notes[-1] == "left out, without all recommenders: set 3"


def test_the_table_lists_who_is_not_told_apart():
    found = critical(many_data_sets(20, lead=1.0))
    table = found.table()
    assert [row[0] for row in table.rows] == list(found.mean_ranks)
    assert table.rows[0] == ("a", "1.00", "-")
    first, second = (row[0] for row in table.rows[1:])
    assert table.rows[1][2] == second
    assert found.not_told_apart(second) == (first,)
    assert list(found.to_pandas().columns) == list(found[0]._fields)
    assert "3 pairs, 2 significant" in repr(found)


def test_one_recommender_has_nobody_to_differ_from():
    with pytest.raises(ValueError, match="two recommenders or more"):
        critical(many_data_sets(9, "a"), "a")
