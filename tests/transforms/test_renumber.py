"""Renumbering users: the graph stays the same, and every node knows its earlier number."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData

from pyg_recmetrics.transforms import JoinedUsers, PerUserSplit
from pyg_recmetrics.transforms.interactions import read_interactions
from pyg_recmetrics.transforms.renumber import remember_ids, users_first
from tests.support.cases.graphs import (
    FORMS,
    USER_ITEM,
    edges_with_ids,
    interactions,
    random_graphs,
    user_store,
)


def renumbered(data, users):
    return users_first(data, read_interactions(data, None, None, None), torch.tensor(users))


def in_earlier_numbers(data):
    """The edges with the numbers that users had before."""
    ids = user_store(data).n_id.tolist()
    return {(ids[user], item, edge_id) for user, item, edge_id in edges_with_ids(data)}


@st.composite
def some_users(draw, graph):
    users = draw(st.permutations(range(graph.num_users)))
    return users[: draw(st.integers(1, graph.num_users))]


@given(form=st.sampled_from(FORMS), graph=random_graphs(), data=st.data())
def test_given_users_come_first_and_all_other_nodes_stay_in_order(form, graph, data):
    users = data.draw(some_users(graph))
    before = graph.data(form)
    after = renumbered(before, users)
    others = [user for user in range(graph.num_users) if user not in users]
    num_items = graph.num_items if isinstance(before, Data) else 0
    items = range(graph.num_users, graph.num_users + num_items)
    assert user_store(after).n_id.tolist() == [*users, *others, *items]
    assert torch.equal(user_store(after).x, user_store(after).n_id)  # attributes follow
    assert in_earlier_numbers(after) == edges_with_ids(before)
    for store, store_before in zip(after.edge_stores, before.edge_stores, strict=True):
        assert torch.equal(store.time, store_before.time)
        assert torch.equal(store.edge_id, store_before.edge_id)


@given(form=st.sampled_from(FORMS), graph=random_graphs(), data=st.data())
def test_the_data_is_left_as_it_was(form, graph, data):
    before, same = graph.data(form), graph.data(form)
    renumbered(before, data.draw(some_users(graph)))
    assert "n_id" not in user_store(before)
    assert str(before.to_dict()) == str(same.to_dict())


@given(form=st.sampled_from(FORMS), graph=random_graphs(), data=st.data())
def test_numbers_from_before_the_first_time_are_kept(form, graph, data):
    before = graph.data(form)
    after = renumbered(before, data.draw(some_users(graph)))
    after = renumbered(after, data.draw(some_users(graph)))
    assert torch.equal(user_store(after).x, user_store(after).n_id)
    assert in_earlier_numbers(after) == edges_with_ids(before)


def test_labels_and_candidates_are_renumbered_with_their_users():
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = 3, 4
    data[USER_ITEM].edge_index = torch.tensor([[0, 1, 2], [0, 1, 3]])
    data[USER_ITEM].edge_label_index = torch.tensor([[0, 2], [2, 2]])
    data[USER_ITEM].candidate_edge_index = torch.tensor([[1, 1], [0, 3]])
    after = renumbered(data, [2])[USER_ITEM]
    assert after.edge_index.tolist() == [[1, 2, 0], [0, 1, 3]]
    assert after.edge_label_index.tolist() == [[1, 0], [2, 2]]
    assert after.candidate_edge_index.tolist() == [[2, 2], [0, 3]]


def test_other_types_of_edges_are_renumbered_too():
    data = interactions()
    views = ("user", "views", "item")
    data[views].edge_index = data[USER_ITEM].edge_index[:, :9]
    data["user", "knows", "user"].edge_index = torch.tensor([[0, 1], [1, 2]])
    joined, *_ = PerUserSplit(edge_type=USER_ITEM, users=JoinedUsers())(data)
    ids = joined["user"].n_id
    for key, ends in ((views, (True, False)), (("user", "knows", "user"), (True, True))):
        for new, old, is_user in zip(
            joined[key].edge_index, data[key].edge_index, ends, strict=True
        ):
            assert torch.equal(ids[new] if is_user else new, old)


class TestRememberIds:
    def test_nodes_are_counted(self):
        data = interactions()
        remember_ids(data, "item")
        assert data["item"].n_id.tolist() == list(range(40))
        assert "n_id" not in data["user"]
        homogeneous = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=3)
        remember_ids(homogeneous, None)
        assert homogeneous.n_id.tolist() == [0, 1, 2]

    def test_numbers_that_are_there_are_kept(self):
        data = interactions()
        data["user"].n_id = torch.arange(60).flip([0])
        remember_ids(data, "user")
        assert data["user"].n_id.tolist() == list(range(59, -1, -1))
