"""Which edges of a graph are its user-item edges, and what is said if that is unclear."""

import pytest
import torch
from torch_geometric.data import HeteroData

from pyg_recmetrics import RankingTask
from pyg_recmetrics.transforms import (
    LeaveLastOut,
    PerUserSplit,
    TemporalSplit,
    check_split,
)
from tests.support.cases.graphs import ITEM_USER, USER_ITEM, Graph, interactions


class TestFindingEdges:
    def test_other_types_are_left_alone(self):
        data = interactions()
        views = ("user", "views", "item")
        data[views].edge_index = data[USER_ITEM].edge_index[:, :9]
        data["user", "knows", "user"].edge_index = torch.tensor([[0, 1], [1, 2]])
        with pytest.raises(ValueError, match=r"'edge_type' needs to be given.*'rates'.*'views'"):
            PerUserSplit()(data)
        parts = PerUserSplit(edge_type=USER_ITEM)(data)
        for part in parts:
            assert torch.equal(part[views].edge_index, data[views].edge_index)

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
        with pytest.raises(ValueError, match="hold the reverse edges"):
            PerUserSplit(edge_type=USER_ITEM, rev_edge_type=("item", "bought_by", "user"))(data)
        with pytest.warns(UserWarning, match="ground-truth edges leak: their reverse edges"):
            RankingTask.from_data(test)
        assert check_split(*PerUserSplit(edge_type=USER_ITEM)(data)).test.num_reverse_leaks > 0
        del data["item", "bought_by", "user"]
        given_type = PerUserSplit(edge_type=USER_ITEM, rev_edge_type=ITEM_USER)
        assert as_edges(given_type(data)) == as_edges(PerUserSplit()(data))

    @pytest.mark.parametrize(
        ("transform", "message"),
        [
            (PerUserSplit(edge_type=("a", "b", "c")), r"'edge_type' needs to be one of \[\('user'"),
            (PerUserSplit(rev_edge_type=USER_ITEM), "'rev_edge_type' needs to be a type of edges"),
            (PerUserSplit(num_users=4), "'num_users' applies to homogeneous"),
            (TemporalSplit(time_attr="when"), "needs to hold the times of edges as 'when'"),
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
        with pytest.raises(ValueError, match=r"'edge_type' applies to 'HeteroData'"):
            PerUserSplit(edge_type=USER_ITEM, num_users=2)(data)
        with pytest.raises(TypeError, match=r"'Data' or 'HeteroData' object \(got dict\)"):
            PerUserSplit()({})

    def test_reverse_edges_on_another_device_are_refused(self):
        data = interactions()
        data[ITEM_USER].edge_index = data[ITEM_USER].edge_index.to("meta")
        with pytest.raises(ValueError, match="'rev_edge_type' needs to be on the device"):
            PerUserSplit()(data)

    def test_times_are_checked(self):
        data = interactions()
        data[USER_ITEM].time = torch.full((data[USER_ITEM].num_edges,), torch.nan)
        with pytest.raises(ValueError, match="'time' needs to hold finite numbers"):
            TemporalSplit()(data)
        data[USER_ITEM].time = torch.zeros(3)
        with pytest.raises(ValueError, match="'time' needs to have shape"):
            TemporalSplit()(data)
        data[USER_ITEM].time = torch.zeros(data[USER_ITEM].num_edges, device="meta")
        with pytest.raises(ValueError, match="'time' needs to be on the device of 'edge_index'"):
            TemporalSplit()(data)
        del data[USER_ITEM].time
        with pytest.warns(UserWarning, match="no 'time', so items are left out at random"):
            LeaveLastOut()(data)


def as_edges(parts):
    return [
        {
            key: store.edge_index.tolist()
            for key, store in zip(part.edge_types, part.edge_stores, strict=True)
        }
        for part in parts
    ]
