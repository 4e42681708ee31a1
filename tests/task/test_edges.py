"""Edges: as whoever has only these gives them, and coalesced, against sets and dictionaries."""

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from pyg_recmetrics import Evaluator, RankingTask, evaluate
from pyg_recmetrics.task.edges import coalesce_edges, contains
from tests.support.cases.strategies import edges

NUM_USERS, NUM_ITEMS = 4, 6


def as_list(edge_index):
    return list(zip(*edge_index.tolist(), strict=True))


def test_the_largest_ids_do_not_overflow():
    num_nodes = math.isqrt(2**63 - 1)
    last = num_nodes - 1
    pairs = [(last, last), (0, last), (last, 0), (last, last), (1, 0)]
    coalesced = coalesce_edges(edges(pairs), num_nodes)
    assert as_list(coalesced) == sorted(set(pairs))
    asked = edges([(last, last), (last, last - 1), (0, last), (1, 1)])
    assert contains(coalesced, asked, num_nodes).tolist() == [True, False, True, False]


SHIFT = torch.tensor([[0], [NUM_USERS]])
SEEN = torch.tensor([[0, 1, 2, 3, 3], [0, 3, 1, 2, 5]])
TRUTH_OF_GIVEN_EDGES = torch.tensor([[0, 0, 1, 3], [3, 5, 0, 4]])
MESSAGES = torch.cat([SEEN + SHIFT, (SEEN + SHIFT).flip([0])], dim=1)
COUNTS = {"num_users": NUM_USERS, "num_items": NUM_ITEMS}


def read(truth, **options):
    return Evaluator(truth, "mrr", **({"edge_index": MESSAGES} | COUNTS | options)).task


@pytest.mark.parametrize(
    "truth",
    [
        TRUTH_OF_GIVEN_EDGES,
        TRUTH_OF_GIVEN_EDGES + SHIFT,
        (TRUTH_OF_GIVEN_EDGES + SHIFT).flip([0]),
        torch.cat([TRUTH_OF_GIVEN_EDGES + SHIFT, (TRUTH_OF_GIVEN_EDGES + SHIFT).flip([0])], dim=1),
        EdgeIndex(TRUTH_OF_GIVEN_EDGES),
        scipy.sparse.coo_array(
            (np.ones(4), TRUTH_OF_GIVEN_EDGES.numpy()), shape=(NUM_USERS, NUM_ITEMS)
        ),
    ],
)
def test_edges_in_every_form_are_a_task(truth):
    wanted = RankingTask(TRUTH_OF_GIVEN_EDGES, seen=SEEN, **COUNTS)
    for exclude_seen in (None, True, False):
        task = read(truth, exclude_seen=exclude_seen)
        assert torch.equal(task.truth, wanted.truth)
        assert torch.equal(task.seen, wanted.seen)
        assert task.exclude_seen is (exclude_seen is not False)
        assert task.weight is None
        assert torch.equal(task.edge_index, MESSAGES)


def test_a_matrix_knows_its_shape_and_its_weights():
    ratings = scipy.sparse.coo_array(
        ([5, 1, 3, 4], TRUTH_OF_GIVEN_EDGES.numpy()), shape=(NUM_USERS, NUM_ITEMS)
    )
    task = Evaluator(ratings, "ndcg@2").task
    assert (task.num_users, task.num_items) == (NUM_USERS, NUM_ITEMS)
    order = torch.argsort(TRUTH_OF_GIVEN_EDGES[0], stable=True)
    assert torch.equal(task.truth, TRUTH_OF_GIVEN_EDGES[:, order])
    assert sorted(task.weight.tolist()) == [1, 3, 4, 5]
    with pytest.raises(ValueError, match=r"'data' needs to be a matrix of shape \[4, 7\]"):
        read(ratings, num_items=7)


@given(st.data(), st.integers(1, 6), st.integers(1, 12))
def test_a_numbering_is_recognised_or_refused(data, num_users, num_items):
    pairs = st.tuples(st.integers(0, num_users - 1), st.integers(0, num_items - 1))
    truth = torch.tensor(data.draw(st.lists(pairs, min_size=1, max_size=8))).t()
    counts = {"num_users": num_users, "num_items": num_items}
    wanted = RankingTask(truth, **counts).truth
    for numbered in (truth, truth + torch.tensor([[0], [num_users]])):
        if num_users <= int(numbered[1].min()) <= int(numbered[1].max()) < num_items:
            with pytest.raises(ValueError, match="beyond doubt"):
                Evaluator(numbered, "mrr", **counts)
        else:
            assert torch.equal(Evaluator(numbered, "mrr", **counts).task.truth, wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_users": None}, "'num_users' needs to be given for edges"),
        ({"num_items": None}, "'num_items' needs to be given for edges"),
        ({"num_items": 0}, "'num_items' needs to be a positive integer"),
        ({"edge_index": SEEN}, "'edge_index' needs to connect users, numbered below 4"),
        ({"edge_index": MESSAGES + 1}, "'edge_index' needs to hold node ids"),
        ({"num_items": 5, "edge_index": None}, r"'data' needs to hold item ids in \[0, 5\)"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        read(TRUTH_OF_GIVEN_EDGES, **options)


def test_options_of_edges_are_none_for_what_knows_better():
    task = RankingTask(TRUTH_OF_GIVEN_EDGES, **COUNTS)
    with pytest.raises(ValueError, match="'exclude_seen' says how to read a graph or"):
        evaluate(torch.rand(6), task, "mrr", exclude_seen=False)
    data = Data(edge_index=MESSAGES, edge_label_index=TRUTH_OF_GIVEN_EDGES + SHIFT, num_nodes=10)
    with pytest.raises(ValueError, match="'num_items' needs to be None for a graph"):
        evaluate(torch.rand(6), data, "mrr", num_users=4, num_items=6)
    result = evaluate(torch.rand(6), data, "mrr", num_users=4, exclude_seen=False)
    assert result.task.exclude_seen is False
