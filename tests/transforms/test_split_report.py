"""A report counts what a split leaks, and what is missing in it."""

import pytest
import torch
from hypothesis import given, strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import erdos_renyi_graph

from pyg_recmetrics import RankingTask, datasets, transforms
from pyg_recmetrics.transforms import KCore, LeaveLastOut, check_split
from tests.support.cases.graphs import (
    FORMS,
    USER_ITEM,
    WITHOUT_LEFT_OUT,
    Graph,
    interactions,
    random_graphs,
)

pytestmark = WITHOUT_LEFT_OUT


class TestCheckSplit:
    @given(form=st.sampled_from(FORMS), graph=random_graphs(), seed=st.integers(0, 99))
    def test_it_counts_what_a_careless_split_leaks(self, form, graph, seed):
        if len(graph.edges) * (2 if form == "undirected" else 1) < 5:
            return
        torch.manual_seed(seed)
        hetero = {"edge_types": USER_ITEM} if form.startswith("hetero") else {}
        parts = RandomLinkSplit(0.2, 0.3, neg_sampling_ratio=0.0, **hetero)(graph.data(form))
        report, num_leaks = check_split(*parts), 0
        for part, found, earlier in zip(
            parts, (report.train, report.val, report.test), (None, [0], [0, 1]), strict=True
        ):
            pairs = pairs_of(part, graph, "edge_index")
            label = pairs_of(part, graph, "edge_label_index")
            assert found.num_edges == len(pairs)
            assert found.num_truth == len(label)
            assert found.num_users_without_truth == graph.num_users - len({u for u, _ in label})
            assert found.num_empty_items == graph.num_items - len({i for _, i in label | pairs})
            assert found.num_empty_users == graph.num_users - len({u for u, _ in label | pairs})
            assert found.num_cold_users == len({u for u, _ in label} - {u for u, _ in pairs})
            assert found.num_cold_items == len({i for _, i in label} - {i for _, i in pairs})
            if earlier is None:
                assert found.num_leaks is None
                continue
            assert found.num_leaks == len(label & pairs)
            leaking = form == "hetero and reverse"
            assert found.num_reverse_leaks == (len(label & graph.pairs) if leaking else 0)
            before = set()
            for number in earlier:
                before |= pairs_of(parts[number], graph, "edge_index", "edge_label_index")
            assert found.num_earlier == len(label & before)
            num_leaks += found.num_leaks + found.num_reverse_leaks + found.num_earlier
        assert report.has_leaks == (num_leaks > 0)

    @pytest.mark.parametrize("is_undirected", [True, False])
    def test_truth_between_nodes_of_one_type_leaks_if_its_opposite_is_there(self, is_undirected):
        torch.manual_seed(0)
        data, friend = HeteroData(), ("user", "friend", "user")
        data["user"].num_nodes, data[friend].edge_index = 40, erdos_renyi_graph(40, 0.3)
        options = {"edge_types": friend, "neg_sampling_ratio": 0.0}
        parts = RandomLinkSplit(**options, is_undirected=is_undirected)(data)
        edges, truth = parts[2][friend].edge_index.tolist(), parts[2][friend].edge_label_index
        opposite = set(zip(*reversed(edges), strict=True))
        num_leaks = len(opposite & set(zip(*truth.tolist(), strict=True)))
        assert (num_leaks == 0) == is_undirected
        assert check_split(*parts).test.num_reverse_leaks == num_leaks
        said = "ground truth in one.*to_undirected" if is_undirected else f"^{num_leaks} .*undir"
        with pytest.warns(match=said):
            RankingTask.from_data(parts[2])

    def test_truth_of_validation_that_a_test_forgot_to_exclude_is_found(self):
        train, val, test = LeaveLastOut()(interactions())
        edges = test[USER_ITEM]
        edges.edge_index, edges.time = train[USER_ITEM].edge_index, train[USER_ITEM].time
        report = check_split(train, val, test)
        asked = set(edges.edge_label_index[0].tolist())
        num_asked = sum(user in asked for user in val[USER_ITEM].edge_label_index[0].tolist())
        assert (report.test.num_unmasked, report.has_leaks) == (num_asked, False)
        assert report.findings() == [
            f"{num_asked} truth edges of earlier parts are candidates of the test, which count as "
            f"wrong"
        ]

    def test_message_passing_edges_after_the_truth_of_their_user_are_found(self):
        train, val, test = LeaveLastOut()(interactions())
        edges = test[USER_ITEM]
        first = dict(zip(edges.edge_label_index[0].tolist(), edges.edge_label_time, strict=True))
        edges.time = edges.time.max() + edges.time.min() - edges.time  # time runs backwards
        seen = zip(edges.edge_index[0].tolist(), edges.time, strict=True)
        num_later = sum(bool(time > first[user]) for user, time in seen if user in first)
        assert check_split(train, val, test).test.num_later == num_later > 0

    def test_times_of_nodes_are_not_those_of_edges(self):
        graph = Graph(2, 3, [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)], [1, 2, 3, 4, 5])
        parts = LeaveLastOut()(graph.data("undirected"))
        assert check_split(*parts).test.num_later == 0
        for part in parts:
            part.time = torch.arange(part.num_nodes)
        assert check_split(*parts).test.num_later is None

    def test_parts_on_different_devices_are_refused(self, device):
        if device.type == "cpu":
            pytest.skip("needs two devices")
        train, val, test = LeaveLastOut()(interactions())
        with pytest.raises(ValueError, match="'val' needs to be on the device of 'train'"):
            check_split(train, val.to(device), test)

    def test_parts_that_do_not_fit_each_other_are_refused(self):
        train, val, test = LeaveLastOut()(interactions())
        with pytest.raises(ValueError, match="the same users and items"):
            check_split(train, val, LeaveLastOut()(KCore(5)(interactions()))[2])
        test["item"].num_nodes = 5
        with pytest.raises(ValueError, match=r"'edge_label_index' .* item ids in \[0, 5\)"):
            check_split(train, val, test)

    @pytest.mark.parametrize("name", ["train", "val", "test"])
    def test_what_is_no_graph_is_refused(self, name):
        parts = dict(zip(("train", "val", "test"), LeaveLastOut()(interactions()), strict=True))
        parts[name] = RankingTask.from_data(parts[name], exclude_seen=False)
        with pytest.raises(TypeError, match=f"'{name}' needs to be .* 'HeteroData' object"):
            check_split(**parts)


def pairs_of(part, graph, *names):
    """The pairs of a user and an item that edges of these names connect, in either direction."""
    store = part if isinstance(part, Data) else part[USER_ITEM]
    shift = graph.num_users if isinstance(part, Data) else 0
    edges = [edge for name in names for edge in store[name].t().tolist()]
    return {(min(edge), max(edge) - shift) if shift else tuple(edge) for edge in edges}


@pytest.mark.parametrize(
    "split", [transforms.LeaveLastOut(), transforms.TemporalSplit(num_val=0.1, num_test=0.2)]
)
@pytest.mark.parametrize("seed", range(3))
def test_times_of_a_user_and_of_all_are_compared(split, seed):
    data = datasets.synthetic_interactions(num_users=40, num_items=30, mean_degree=6, seed=seed)
    parts = split(data)
    report = transforms.check_split(*parts)
    assert "lost times" not in str(report)
    for part, stage in zip(parts[1:], (report.val, report.test), strict=True):
        store = part.edge_stores[0]
        last = store.time.max()
        assert stage.num_before_others == sum(time < last for time in store.edge_label_time)
        assert stage.num_later == 0
        assert stage.num_timed == store.edge_index.size(1) + store.edge_label_index.size(1)
        del store.edge_label_time
    report = transforms.check_split(*parts)
    assert report.test.num_before_others is None
    assert "not all edges have times" in str(report)
