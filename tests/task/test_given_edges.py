"""Ground-truth edges in place of a graph: in local ids or those of a graph, never in doubt."""

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import LightGCN

from pyg_recmetrics import Evaluator, RankingTask, evaluate

NUM_USERS, NUM_ITEMS = 4, 6
SHIFT = torch.tensor([[0], [NUM_USERS]])
SEEN = torch.tensor([[0, 1, 2, 3, 3], [0, 3, 1, 2, 5]])
TRUTH = torch.tensor([[0, 0, 1, 3], [3, 5, 0, 4]])
MESSAGES = torch.cat([SEEN + SHIFT, (SEEN + SHIFT).flip([0])], dim=1)
COUNTS = {"num_users": NUM_USERS, "num_items": NUM_ITEMS}


def read(truth, **options):
    return Evaluator(truth, "mrr", **({"edge_index": MESSAGES} | COUNTS | options)).task


@pytest.mark.parametrize(
    "truth",
    [
        TRUTH,
        TRUTH + SHIFT,
        (TRUTH + SHIFT).flip([0]),
        torch.cat([TRUTH + SHIFT, (TRUTH + SHIFT).flip([0])], dim=1),
        TRUTH.numpy(),
        TRUTH.tolist(),
        tuple(TRUTH),
        EdgeIndex(TRUTH),
        scipy.sparse.coo_array((np.ones(4), TRUTH.numpy()), shape=(NUM_USERS, NUM_ITEMS)),
        torch.sparse_coo_tensor(TRUTH, torch.ones(4), (4, 6), check_invariants=True),
    ],
)
def test_edges_in_every_form_are_a_task(truth):
    wanted = RankingTask(TRUTH, seen=SEEN, **COUNTS)
    for exclude_seen in (None, True, False):
        task = read(truth, exclude_seen=exclude_seen)
        assert torch.equal(task.truth, wanted.truth)
        assert torch.equal(task.seen, wanted.seen)
        assert task.exclude_seen is (exclude_seen is not False)
        assert task.weight is None
        assert torch.equal(task.edge_index, MESSAGES)


def test_a_matrix_knows_its_shape_and_its_weights():
    ratings = scipy.sparse.coo_array(([5, 1, 3, 4], TRUTH.numpy()), shape=(NUM_USERS, NUM_ITEMS))
    task = Evaluator(ratings, "ndcg@2", threshold=3).task
    assert (task.num_users, task.num_items) == (NUM_USERS, NUM_ITEMS)
    assert task.truth.tolist() == [[0, 1, 3], [3, 0, 4]]
    assert task.weight.tolist() == [5, 3, 4]
    with pytest.raises(ValueError, match=r"'data' needs to be a matrix of shape \[4, 7\]"):
        read(ratings, num_items=7)


def test_the_call_of_the_blog():
    """`recommend`, degrees and a sum per user by hand, for a model that masks nothing."""
    torch.manual_seed(0)
    model = LightGCN(NUM_USERS + NUM_ITEMS, embedding_dim=4, num_layers=2).eval()
    result = evaluate(
        model,
        TRUTH + SHIFT,
        "r_precision",
        edge_index=MESSAGES,
        num_users=NUM_USERS,
        exclude_seen=False,
    )
    degree = torch.bincount(TRUTH[0], minlength=NUM_USERS)
    lists = model.recommend(
        MESSAGES,
        src_index=torch.arange(NUM_USERS),
        dst_index=torch.arange(NUM_USERS, NUM_USERS + NUM_ITEMS),
        k=int(degree.max()),
    )
    values = [
        len(
            {*lists[user, : degree[user]].tolist()}
            & {*(TRUTH + SHIFT)[1, TRUTH[0] == user].tolist()}
        )
        / int(degree[user])
        for user in range(NUM_USERS)
        if degree[user]
    ]
    assert result["r_precision"] == pytest.approx(sum(values) / len(values))


@given(st.data(), st.integers(1, 6), st.integers(1, 12))
def test_a_numbering_is_recognised_or_refused(data, num_users, num_items):
    pairs = st.tuples(st.integers(0, num_users - 1), st.integers(0, num_items - 1))
    truth = torch.tensor(data.draw(st.lists(pairs, min_size=1, max_size=8))).t()
    counts = {"num_users": num_users, "num_items": num_items}
    wanted = RankingTask(truth, **counts).truth
    for edges in (truth, truth + torch.tensor([[0], [num_users]])):
        if num_users <= int(edges[1].min()) <= int(edges[1].max()) < num_items:
            with pytest.raises(ValueError, match="beyond doubt"):
                Evaluator(edges, "mrr", **counts)
        else:
            assert torch.equal(Evaluator(edges, "mrr", **counts).task.truth, wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_users": None}, "'num_users' needs to be given for edges"),
        ({"num_items": None}, "'num_items' needs to be given for edges"),
        ({"num_items": 0}, "'num_items' needs to be a positive integer"),
        ({"edge_index": SEEN}, "'edge_index' needs to connect users, numbered below 4"),
        ({"edge_index": MESSAGES + 1}, "'edge_index' needs to hold node ids"),
        ({"threshold": 3}, "'threshold' needs"),
        ({"edge_type": ("user", "rates", "item")}, "'edge_type' applies to 'HeteroData' only"),
        ({"num_items": 5, "edge_index": None}, r"'data' needs to hold item ids in \[0, 5\)"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        read(TRUTH, **options)


def test_options_of_edges_are_none_for_what_knows_better():
    task = RankingTask(TRUTH, **COUNTS)
    for option in ({"num_items": 6}, {"exclude_seen": False}):
        with pytest.raises(ValueError, match=f"'{next(iter(option))}' says how to read a graph or"):
            evaluate(torch.rand(6), task, "mrr", **option)
    data = Data(edge_index=MESSAGES, edge_label_index=TRUTH + SHIFT, num_nodes=10)
    with pytest.raises(ValueError, match="'num_items' needs to be None for a graph"):
        evaluate(torch.rand(6), data, "mrr", num_users=4, num_items=6)
    result = evaluate(torch.rand(6), data, "mrr", num_users=4, exclude_seen=False)
    assert result.task.exclude_seen is False


def test_a_graph_without_truth_says_what_is_missing():
    data = HeteroData({"user": {"num_nodes": 4}, "item": {"num_nodes": 6}})
    data["user", "likes", "item"].edge_index = SEEN
    with pytest.raises(ValueError, match=r"'RandomLinkSplit' .* or the ground-truth edges") as told:
        evaluate(torch.rand(6), data, "mrr")
    assert "'edge_label_index'" in str(told.value)
