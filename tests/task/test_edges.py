"""Coalesced edges, against sets and dictionaries in plain Python."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.task.edges import (
    coalesce_edges,
    coalesce_truth,
    contains,
    count_zero_ratings,
)
from tests.support.cases.strategies import edges

NUM_USERS, NUM_ITEMS = 4, 6
PAIR = st.tuples(st.integers(0, NUM_USERS - 1), st.integers(0, NUM_ITEMS - 1))
PAIRS = st.lists(PAIR, max_size=20)


def as_list(edge_index):
    return list(zip(*edge_index.tolist(), strict=True))


@given(pairs=PAIRS)
def test_coalesced_edges_are_a_sorted_set(pairs):
    assert as_list(coalesce_edges(edges(pairs), NUM_ITEMS)) == sorted(set(pairs))


@given(coalesced=st.sets(PAIR), pairs=PAIRS)
def test_edges_are_found_as_in_a_set(coalesced, pairs):
    mask = contains(edges(sorted(coalesced)), edges(pairs), NUM_ITEMS)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [pair in coalesced for pair in pairs]


def test_the_last_item_of_a_user_is_not_the_first_of_the_next():
    coalesced = edges([(0, NUM_ITEMS - 1), (2, 0)])
    asked = edges([(1, 0), (0, NUM_ITEMS - 1), (1, NUM_ITEMS - 1), (2, 0), (3, NUM_ITEMS - 1)])
    assert contains(coalesced, asked, NUM_ITEMS).tolist() == [False, True, False, True, False]


def test_the_largest_ids_do_not_overflow():
    num_nodes = math.isqrt(2**63 - 1)
    last = num_nodes - 1
    pairs = [(last, last), (0, last), (last, 0), (last, last), (1, 0)]
    coalesced = coalesce_edges(edges(pairs), num_nodes)
    assert as_list(coalesced) == sorted(set(pairs))
    asked = edges([(last, last), (last, last - 1), (0, last), (1, 1)])
    assert contains(coalesced, asked, num_nodes).tolist() == [True, False, True, False]


@given(weighted=st.lists(st.tuples(PAIR, st.integers(-2, 5)), max_size=20))
@pytest.mark.parametrize("threshold", [None, 3, 4.5])
def test_truth_has_the_largest_of_its_weights_from_the_threshold_on(threshold, weighted):
    largest = {}
    for pair, weight in weighted:
        if weight > 0 if threshold is None else weight >= threshold:
            largest[pair] = max(weight, largest.get(pair, weight))
    weights = torch.tensor([weight for _, weight in weighted], dtype=torch.double)
    pairs = edges([pair for pair, _ in weighted])
    coalesced, weight = coalesce_truth(pairs, weights, NUM_ITEMS, threshold)
    assert dict(zip(as_list(coalesced), weight.tolist(), strict=True)) == largest


@pytest.mark.parametrize(
    ("weights", "num_zero"),
    [
        ([], 0),
        ([0, 1, 1, 0], 0),
        ([True, False], 0),
        ([0, 2, 5, 0], 2),
        ([0.5, 0.0, -1.0], 2),
        ([-1, 1], 1),
    ],
)
def test_zero_is_a_rating_unless_all_weights_are_labels(weights, num_zero):
    assert count_zero_ratings(torch.tensor(weights)) == num_zero
