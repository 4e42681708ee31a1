"""Which edges of a graph are its user-item edges, and what is said if that is unclear."""

from collections import Counter

import pytest
import torch
from hypothesis import given, strategies as st
from torch_geometric.data import Data, HeteroData

from pyg_recmetrics import RankingTask
from pyg_recmetrics.transforms import (
    JoinedUsers,
    KCore,
    PerUserSplit,
    SampledCandidates,
    SeparatedUsers,
    TemporalSplit,
    check_split,
)
from tests.support.cases.graphs import (
    FORMS,
    ITEM_USER,
    USER_ITEM,
    WITHOUT_LEFT_OUT,
    Graph,
    as_sets,
    count_by_user,
    edges_with_ids,
    interactions,
    message_passing,
    random_graphs,
)

pytestmark = WITHOUT_LEFT_OUT


class TestFindingEdges:
    def test_other_types_are_left_alone_or_renumbered(self):
        data, views, knows = interactions(), ("user", "views", "item"), ("user", "knows", "user")
        data[views].edge_index = data[USER_ITEM].edge_index[:, :9]
        data[knows].edge_index = torch.tensor([[0, 1], [1, 2]])
        with pytest.raises(ValueError, match=r"'edge_type' needs to be given.*'rates'.*'views'"):
            PerUserSplit()(data)
        for part in PerUserSplit(edge_type=USER_ITEM)(data):
            assert torch.equal(part[views].edge_index, data[views].edge_index)
        joined, *_ = PerUserSplit(edge_type=USER_ITEM, users=JoinedUsers())(data)
        ids, (user, item) = joined["user"].n_id, joined[views].edge_index
        assert torch.equal(torch.stack([ids[user], item]), data[views].edge_index)
        assert torch.equal(ids[joined[knows].edge_index], data[knows].edge_index)

    @pytest.mark.parametrize("name", ["rated_by", "rev_rates"])
    def test_edges_from_users_are_meant_whatever_their_reverse_is_called(self, name):
        graph, data = interactions(), HeteroData()
        for node_type in ("item", "user"):
            data[node_type].num_nodes = graph[node_type].num_nodes
        data["item", name, "user"].edge_index = graph[ITEM_USER].edge_index
        data[USER_ITEM].edge_index = graph[USER_ITEM].edge_index
        found, expected = PerUserSplit()(data), PerUserSplit(edge_type=USER_ITEM)(data)
        for part, other in zip(found, expected, strict=True):
            truth = part[USER_ITEM].edge_label_index
            assert torch.equal(truth, other[USER_ITEM].edge_label_index)
        test = found[2]
        test["item", name, "user"].edge_label_index = test[USER_ITEM].edge_label_index.flip([0])
        assert RankingTask.from_data(test).num_users == graph["user"].num_nodes

    def test_a_type_is_the_reverse_if_it_holds_the_same_edges(self):
        data = interactions()
        data["item", "bought_by", "user"].edge_index = data[ITEM_USER].edge_index[:, :30]
        *_, test = PerUserSplit(edge_type=USER_ITEM)(data)
        assert test["item", "bought_by", "user"].num_edges == 30
        assert test[ITEM_USER].num_edges == test[USER_ITEM].num_edges
        with pytest.warns(UserWarning, match="ground-truth edges leak: they are among the edges"):
            RankingTask.from_data(test)
        assert check_split(*PerUserSplit(edge_type=USER_ITEM)(data)).test.num_reverse_leaks > 0

    @pytest.mark.parametrize(
        ("transform", "message"),
        [
            (PerUserSplit(edge_type=("a", "b", "c")), r"'edge_type' needs to be one of \[\('user'"),
            (PerUserSplit(num_users=4), "'num_users' applies to homogeneous"),
            (TemporalSplit(time_attr="when"), "needs to hold the times of edges as 'when'"),
            (SampledCandidates(), "'edge_label_index'"),
            (
                PerUserSplit(users=SeparatedUsers(min_pos_test=50)),
                "of which none .*min_pos_test=50",
            ),
        ],
    )
    def test_what_does_not_fit_is_named(self, transform, message):
        with pytest.raises(ValueError, match=message):
            transform(interactions())

    def test_homogeneous_graphs_need_to_know_their_users(self):
        data = Graph(2, 3, [(0, 1)], [0]).data("homogeneous")
        del data.num_users
        with pytest.raises(ValueError, match="'num_users' needs to be given"):
            PerUserSplit()(data)
        train, *_ = PerUserSplit(num_users=2)(data)
        assert train.num_users == 2

    def test_reverse_edges_on_another_device_are_refused(self):
        data = interactions()
        data[ITEM_USER].edge_index = data[ITEM_USER].edge_index.to("meta")
        with pytest.raises(ValueError, match=r"'rev_rates'.* needs to be on the device"):
            PerUserSplit()(data)

    def test_times_are_checked(self):
        data = interactions()
        data[USER_ITEM].time = torch.full((data[USER_ITEM].num_edges,), torch.nan)
        with pytest.raises(ValueError, match="'time' needs to hold finite numbers"):
            TemporalSplit()(data)
        data[USER_ITEM].time = torch.zeros(3)
        with pytest.raises(ValueError, match="'time' needs to hold a time for every edge"):
            TemporalSplit()(data)
        data[USER_ITEM].time = torch.zeros(data[USER_ITEM].num_edges, device="meta")
        with pytest.raises(ValueError, match="'time' needs to be on the device of 'edge_index'"):
            TemporalSplit()(data)


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
