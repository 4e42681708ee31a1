"""The core is what is left when nothing changes any more."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from pyg_recmetrics.transforms import KCore, PerUserSplit
from tests.support.cases.graphs import (
    FORMS,
    USER_ITEM,
    as_sets,
    count_by_user,
    edges_with_ids,
    interactions,
    message_passing,
    random_graphs,
)


@given(form=st.sampled_from(FORMS), graph=random_graphs(max_edges=40), k=st.integers(1, 4))
def test_the_core_is_what_is_left_when_nothing_changes_any_more(form, graph, k):
    left, before = graph.pairs, None
    while left != before:
        before = left
        users, items = count_by_user(left), Counter(item for _, item in left)
        left = {(user, item) for user, item in left if users[user] >= k and items[item] >= k}
    data = graph.data(form)
    if not left:
        with pytest.raises(ValueError, match="'k' needs to leave a user and an item"):
            KCore(k)(data)
        return
    core = KCore(k)(data)
    users, items = sorted({user for user, _ in left}), sorted({item for _, item in left})
    if isinstance(core, Data):
        ids = core.n_id.tolist()
        assert core.num_users == len(users)
        assert core.num_nodes == len(ids)
        assert torch.equal(core.x, core.n_id)
        ids = [ids[: len(users)], [item - graph.num_users for item in ids[len(users) :]]]
    else:
        ids = [core["user"].n_id.tolist(), core["item"].n_id.tolist()]
        assert (core["user"].num_nodes, core["item"].num_nodes) == (len(users), len(items))
        assert torch.equal(core["user"].x, core["user"].n_id)
    assert ids == [users, items]
    for user, item, edge_id in edges_with_ids(core):
        assert graph.edges[edge_id] == (users[user], items[item])
    assert {(users[user], items[item]) for user, item in message_passing(core)} == left
    assert as_sets(PerUserSplit()(core))  # it can be split


def test_a_core_is_taken_before_a_split():
    with pytest.raises(ValueError, match=r"filtered before it is split \(got 'edge_label_index'\)"):
        KCore(2)(PerUserSplit()(interactions())[0])


def test_a_core_with_edges_of_other_types():
    data = interactions()
    data["item", "in", "genre"].edge_index = torch.stack([torch.arange(40), torch.arange(40) % 3])
    data["genre"].num_nodes = 3
    core = KCore(5, edge_type=USER_ITEM)(data)
    item, genre = core["item", "in", "genre"].edge_index
    assert core["item"].num_nodes == item.numel() < 40
    assert torch.equal(core["item"].n_id[item] % 3, genre)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="'k' needs to be a positive integer"):
        KCore(0)


def test_it_says_what_it_is():
    assert repr(KCore(5)) == "KCore(5)"
