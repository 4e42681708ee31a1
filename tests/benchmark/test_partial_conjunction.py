"""Partial conjunctions, against their formulas and scipy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.benchmark.partial_conjunction import (
    count_with_confidence,
    partial_conjunctions,
)
from pyg_recmetrics.results.multiple_tests import holm

stats = pytest.importorskip("scipy.stats")

p_values_of = st.lists(st.floats(1e-12, 1), min_size=1, max_size=7)


def naive_count(p_values, alpha, combine):
    """The largest `u` all of whose predecessors are rejected, as Dror et al. define it."""
    count = 0
    for u in range(1, len(p_values) + 1):
        if combine(sorted(p_values)[u - 1 :]) > alpha:
            break
        count = u
    return count


@given(p_values_of, st.sampled_from([0.01, 0.05, 0.2]))
def test_without_independence_it_is_what_holms_method_rejects(p_values, alpha):
    found = count_with_confidence(p_values, alpha, independent=False)
    assert found == sum(p <= alpha for p in holm(p_values))
    assert found == naive_count(p_values, alpha, lambda rest: len(rest) * min(rest))


@given(p_values_of, st.sampled_from([0.01, 0.05, 0.2]))
def test_with_independence_it_is_fishers_combination(p_values, alpha):
    found = count_with_confidence(p_values, alpha, independent=True)

    def fisher(rest):
        return stats.combine_pvalues(rest, "fisher").pvalue

    assert found == naive_count(p_values, alpha, fisher)


@given(p_values_of, st.booleans())
def test_it_does_not_decrease_and_knows_no_order(p_values, independent):
    found = partial_conjunctions(p_values, independent)
    assert found == sorted(found)
    assert found == partial_conjunctions(p_values[::-1], independent)
    assert len(found) == len(p_values)
    assert max(found) <= 1


def test_many_small_effects_are_counted_together():
    p_values = [0.04, 0.06, 0.05, 0.07]
    assert count_with_confidence(p_values, 0.05, independent=False) == 0
    assert count_with_confidence(p_values, 0.05, independent=True) == 3


def test_a_p_value_of_zero_is_a_small_one():
    assert partial_conjunctions([0.0, 1.0], independent=True)[0] < 1e-300
    assert count_with_confidence([], 0.05, independent=True) == 0
