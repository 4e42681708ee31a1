"""What a task makes of its arguments, against loops over edges."""

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.task import preparation
from pyg_recmetrics.task.edges import coalesce_edges

NUM_USERS, NUM_ITEMS = 4, 5
EDGES = st.lists(st.tuples(st.integers(0, NUM_USERS - 1), st.integers(0, NUM_ITEMS - 1)))
CANDIDATES = st.none() | st.lists(st.integers(0, NUM_ITEMS - 1)) | EDGES.map(set)


def to_tensor(edges):
    return coalesce_edges(torch.tensor(list(edges), dtype=torch.long).view(-1, 2).t(), NUM_ITEMS)


def read(candidates):
    """The candidates as a task holds them, and the items of each user as a set."""
    if candidates is None:
        return None, [set(range(NUM_ITEMS))] * NUM_USERS
    if isinstance(candidates, list):
        items = torch.tensor(candidates, dtype=torch.long).unique()
        return items, [set(candidates)] * NUM_USERS
    of_user = [{i for u, i in candidates if u == user} for user in range(NUM_USERS)]
    return to_tensor(candidates), of_user


@given(excluded=EDGES, candidates=CANDIDATES)
def test_candidates_are_what_is_not_excluded(excluded, candidates):
    tensor, of_user = read(candidates)
    count = preparation.count_candidates(tensor, to_tensor(excluded), NUM_USERS, NUM_ITEMS)
    left = [items - {i for u, i in excluded if u == user} for user, items in enumerate(of_user)]
    assert count.tolist() == [len(items) for items in left]


@given(
    truth=EDGES.filter(len),
    excluded=EDGES,
    candidates=CANDIDATES,
    missing=st.sampled_from(["count", "drop"]),
)
def test_truth_that_can_be_retrieved_is_kept_with_its_weights(truth, excluded, candidates, missing):
    tensor, of_user = read(candidates)
    edges = to_tensor(truth)
    weight = 1 + torch.arange(edges.size(1)).double()
    pairs = list(zip(*edges.tolist(), strict=True))
    wanted = [
        number
        for number, (user, item) in enumerate(pairs)
        if (user, item) not in excluded and item in of_user[user]
    ]
    missed = [number for number in range(len(pairs)) if pairs[number] not in excluded]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = (edges, weight, to_tensor(excluded), tensor, NUM_ITEMS, missing)
        if not wanted:
            with pytest.raises(ValueError, match="'truth' needs to hold an edge that can be"):
                preparation.keep_retrievable(*arguments)
            return
        kept, weight_of_kept = preparation.keep_retrievable(*arguments)
    left = missed if missing == "count" else wanted
    assert kept.tolist() == edges[:, left].tolist()
    assert weight_of_kept.tolist() == weight[left].tolist()
