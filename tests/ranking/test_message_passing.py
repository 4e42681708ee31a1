"""Which message-passing edges are warned about: those in a wrong numbering, and one-way streets."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import LightGCN
from torch_geometric.utils import to_torch_csr_tensor, to_undirected

from pyg_recmetrics import RankingTask, evaluate, rank
from pyg_recmetrics.ranking.message_passing import find_doubt
from tests.support.cases.recommender_forms import PlainModel, RecordingModel

NUM_USERS, NUM_ITEMS = 4, 6

#: Every user and every item has an edge. User 0 and item 0 share an id, as in a self-loop.
LOCAL = torch.tensor([[0, 0, 1, 1, 2, 3, 3], [0, 1, 2, 3, 4, 5, 0]])
FORWARD = LOCAL + torch.tensor([[0], [NUM_USERS]])
BOTH = torch.cat([FORWARD, FORWARD.flip([0])], dim=1)
FRIENDS = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
SIMILAR = FRIENDS + NUM_USERS
LOOPS = torch.arange(NUM_USERS + NUM_ITEMS).expand(2, -1)
ITEMS_FIRST = LOCAL + torch.tensor([[NUM_ITEMS], [0]])


def doubt(*edges, num_users=NUM_USERS):
    return find_doubt(torch.cat(edges, dim=1), num_users)


@pytest.mark.parametrize(
    "edges",
    [
        (BOTH,),
        (BOTH, LOOPS),
        (BOTH, BOTH),
        (LOOPS,),
        (BOTH[:, :0],),
        (FORWARD, FORWARD.flip([0])[:, :4]),
        (FORWARD[:, :1], FORWARD.flip([0])[:, :1]),
    ],
)
def test_sensible_graphs_are_not_doubted(edges):
    assert doubt(*edges) is None


@pytest.mark.parametrize(
    ("edges", "problem"),
    [
        ((FORWARD,), "no edges run from items to users"),
        ((FORWARD, FORWARD.flip([0])[:, :3]), "3 edges run from items to users"),
        ((BOTH, FRIENDS), "4 of 18 edges connect users with users"),
        ((BOTH, SIMILAR), "4 of 18 edges connect items with items"),
        ((BOTH - 1,), "connect users with users"),
        ((FORWARD.flip([0]),), "no edges run from users to items"),
        ((FORWARD, LOOPS, FRIENDS), "no edges run from items to users"),
        ((LOCAL,), "4 of 6 edges connect users with users, and no edges run from items"),
        ((LOCAL, LOCAL.flip([0])), "8 of 12 edges connect users with users"),
        ((FRIENDS,), "4 of 4 edges connect users with users"),
        ((SIMILAR,), "4 of 4 edges connect items with items"),
        ((FRIENDS, SIMILAR), "4 of 8 .* users with users and 4 of 8 .* items with items"),
        ((ITEMS_FIRST, ITEMS_FIRST.flip([0])), "4 of 14 edges connect items with items"),
    ],
)
def test_what_is_odd_is_told(edges, problem):
    message = doubt(*edges)
    assert re.search(problem, message), message
    assert "'num_users' (4) on" in message


@pytest.mark.parametrize(
    ("edges", "mentions_ids", "mentions_direction"),
    [
        ((LOCAL,), True, True),
        ((LOCAL, LOCAL.flip([0])), True, False),
        ((FORWARD,), False, True),
        ((FRIENDS,), True, False),
    ],
)
def test_only_the_remedy_that_helps_is_named(edges, mentions_ids, mentions_direction):
    message = doubt(*edges)
    assert ("add 'num_users' to item ids" in message) == mentions_ids
    assert ("add the reverse edges" in message) == mentions_direction


@given(num_users=st.integers(1, 30), num_items=st.integers(1, 30), seed=st.integers(0, 10**6))
def test_edges_between_users_and_items_in_both_directions_are_never_doubted(
    num_users, num_items, seed
):
    generator = torch.Generator().manual_seed(seed)
    user = torch.randint(num_users, (40,), generator=generator)
    item = torch.randint(num_items, (40,), generator=generator) + num_users
    edges = to_undirected(torch.stack([user, item]))
    assert find_doubt(edges, num_users) is None
    assert find_doubt(edges[:, edges[0] < edges[1]], num_users) is not None


@pytest.mark.parametrize("size", [(NUM_USERS, NUM_ITEMS), (NUM_ITEMS, NUM_USERS), (6, 6)])
def test_edges_in_local_ids_are_found_whatever_there_is_more_of(size):
    num_users, num_items = size
    edges = torch.cartesian_prod(torch.arange(num_users), torch.arange(num_items)).t()
    for local in (edges, to_undirected(edges)):
        assert "connect users with users" in doubt(local, num_users=num_users)


class TestModels:
    task = RankingTask(LOCAL, num_users=NUM_USERS, num_items=NUM_ITEMS)
    scores = torch.rand(NUM_USERS, NUM_ITEMS)

    @pytest.mark.parametrize(
        "model",
        [
            LightGCN(NUM_USERS + NUM_ITEMS, 4, 1),
            RecordingModel(scores, NUM_USERS),
            PlainModel(scores, NUM_USERS),
        ],
    )
    def test_models_that_propagate_warn_once(self, model):
        for edge_index in (LOCAL, FORWARD):
            with pytest.warns(UserWarning, match="'edge_index' looks odd") as warned:
                rank(model, self.task, edge_index=edge_index, batch_size=1)
            assert len(warned) == 1
            assert warned[0].filename == __file__
        rank(model, self.task, edge_index=BOTH)

    def test_nothing_else_does(self):
        def recommend(src_index, dst_index, k):
            return dst_index[:k].expand(len(src_index), -1)

        for recommender in (self.scores, recommend):
            rank(recommender, self.task, edge_index=LOCAL)

    @pytest.mark.filterwarnings("ignore:Sparse")  # which PyTorch calls beta
    def test_sparse_matrices_are_looked_at(self):
        model = LightGCN(NUM_USERS + NUM_ITEMS, 4, 1)
        size = (NUM_USERS + NUM_ITEMS,) * 2
        transposed = to_torch_csr_tensor(FORWARD.flip([0]), size=size)
        with pytest.warns(UserWarning, match="no edges run from items to users"):
            by_matrix = rank(model, self.task, edge_index=transposed)
        with pytest.warns(UserWarning, match="no edges run from items to users"):
            by_edges = rank(model, self.task, edge_index=FORWARD)
        assert torch.equal(by_matrix.rank, by_edges.rank)
        rank(model, self.task, edge_index=to_torch_csr_tensor(BOTH, size=size))


def test_a_real_graph(lastfm):
    task = RankingTask.from_data(lastfm)
    model = LightGCN(task.num_users + task.num_items, embedding_dim=4, num_layers=1)
    evaluate(model, lastfm, ["recall@20"])
    with pytest.warns(UserWarning, match="connect users with users, and no edges run from items"):
        evaluate(model, lastfm, ["recall@20"], edge_index=task.seen)
    shifted = task.seen + torch.tensor([[0], [task.num_users]])
    with pytest.warns(UserWarning, match="looks odd: no edges run from items to users"):
        evaluate(model, lastfm, ["recall@20"], edge_index=shifted)
