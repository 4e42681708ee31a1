"""Splits within users: how their pairs are ordered, and which of them are held out."""

from collections import Counter

import pytest
import torch
from hypothesis import given, strategies as st
from torch_geometric.data import Data

from pyg_recmetrics.transforms import LeaveLastOut, PerUserSplit, TemporalSplit
from tests.support.cases.graphs import (
    FORMS,
    ITEM_USER,
    USER_ITEM,
    WITHOUT_LEFT_OUT,
    Graph,
    apply_split,
    as_sets,
    edges_with_ids,
    interactions,
    message_passing,
    random_graphs,
    rounded,
    truth,
)

pytestmark = WITHOUT_LEFT_OUT


@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    val=st.integers(0, 2),
    test=st.integers(1, 3),
)
def test_the_last_items_are_left_out(form, graph, val, test):
    parts = LeaveLastOut(num_val=val, num_test=test)(graph.data(form))
    for user in range(graph.num_users):
        last = {}
        for (other, item), time in zip(graph.edges, graph.times, strict=True):
            if other == user:
                last[item] = max(time, last.get(item, time))
        mine = [{item for other, item in set(truth(part)) if other == user} for part in parts]
        if last:
            num_test = min(test, len(last) - 1)
            num_val = min(val, len(last) - 1 - num_test)
            assert [len(items) for items in mine[1:]] == [num_val, num_test]
        for earlier, later in ((0, 1), (1, 2), (0, 2)):
            for earlier_item in mine[earlier]:
                for later_item in mine[later]:
                    assert last[earlier_item] <= last[later_item]


def test_without_times_there_is_a_warning_unless_it_is_wanted():
    data = interactions()
    del data[USER_ITEM].time
    with pytest.warns(UserWarning, match="'time_attr=None' if this is what you want") as warned:
        *_, test = LeaveLastOut()(data)
    assert [warning.filename for warning in warned] == [__file__]
    *_, same = LeaveLastOut(time_attr=None)(data)
    assert truth(test) == truth(same)


def test_items_are_drawn_evenly_for_each_user():
    edges = [(user, item) for user in range(2000) for item in range(4)]
    data = Graph(2000, 4, edges, [0] * len(edges)).data("hetero")
    *_, test = PerUserSplit(num_test=0.5)(data)
    chosen = torch.zeros(2000, 4)
    chosen[tuple(test[USER_ITEM].edge_label_index)] = 1
    # Each of the six pairs of items is as likely: 333 of 2000, give or take 4 deviations of 17.
    counts = Counter(map(tuple, chosen.tolist()))
    assert len(counts) == 6
    assert all(abs(count - 2000 / 6) < 4 * 17 for count in counts.values())


@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    val=st.floats(0, 0.4),
    test=st.floats(0.1, 0.5),
)
def test_the_future_never_trains_the_past(form, graph, val, test):
    parts = apply_split(TemporalSplit(num_val=val, num_test=test), graph, form)
    if parts is None:
        return
    first = {}
    for pair, time in zip(graph.edges, graph.times, strict=True):
        first[pair] = min(time, first.get(pair, time))
    for part in parts[1:]:
        for pair in truth(part):
            for *_, edge_id in edges_with_ids(part):
                assert graph.times[edge_id] < first[pair]
    for earlier, later in ((0, 1), (1, 2), (0, 2)):
        for earlier_pair in truth(parts[earlier]):
            for later_pair in truth(parts[later]):
                assert first[earlier_pair] < first[later_pair]
    # Nothing but edges of the same moment makes a part smaller, and nothing larger.
    ordered = sorted(first.values())
    num_test = rounded(len(first), test)
    num_val = rounded(len(first), val)
    cut = ordered[len(ordered) - num_test - 1]
    assert len(set(truth(parts[2]))) == sum(time > cut for time in ordered) <= num_test
    last_of_train = ordered[len(ordered) - num_test - num_val - 1]
    assert message_passing(parts[0]) == {
        pair for pair, time in first.items() if time <= last_of_train
    }


@given(form=st.sampled_from(FORMS), graph=random_graphs())
def test_truth_of_who_is_new_can_be_dropped(form, graph):
    kept = apply_split(TemporalSplit(num_val=0.3, num_test=0.3), graph, form)
    if kept is None:
        return
    for options, position in (({"new_users": "drop"}, 0), ({"new_items": "drop"}, 1)):
        parts = TemporalSplit(num_val=0.3, num_test=0.3, **options)(graph.data(form))
        for part, whole in zip(parts, kept, strict=True):
            assert edges_with_ids(part) == edges_with_ids(whole)
            old = {pair[position] for pair in message_passing(whole)}
            assert truth(part) == [pair for pair in truth(whole) if pair[position] in old]


def test_a_reverse_edge_without_time_has_that_of_its_edge():
    graph = Graph(2, 3, [(0, 0), (0, 1), (1, 0), (1, 2), (0, 2)], [5, 1, 4, 2, 3])
    data = graph.data("hetero and reverse")
    expected = as_sets(TemporalSplit(num_val=0.2, num_test=0.4)(data))
    del data[ITEM_USER].time
    assert as_sets(TemporalSplit(num_val=0.2, num_test=0.4)(data)) == expected
    assert as_sets(LeaveLastOut()(data)) == as_sets(
        LeaveLastOut()(graph.data("hetero and reverse"))
    )


def test_a_reverse_edge_without_time_is_not_known_before_all_repetitions():
    graph = Graph(1, 3, [(0, 0), (0, 0), (0, 1), (0, 2)], [1, 9, 2, 5])
    data = graph.data("hetero and reverse")
    del data[ITEM_USER].time
    train, _, test = TemporalSplit(num_val=0.0, num_test=1 / 3)(data)
    for part in (train, test):
        assert part[USER_ITEM].edge_index.tolist() == [[0, 0], [0, 1]]
        assert part[ITEM_USER].edge_index.tolist() == [[1], [0]]


def test_times_are_those_of_edges_even_if_there_are_as_many_nodes():
    data = Data(num_nodes=5, num_users=2, time=torch.arange(5))
    data.edge_index = torch.tensor([[0, 0, 0, 1, 1], [2, 3, 4, 2, 3]])
    for part, num_edges in zip(
        TemporalSplit(num_val=0.2, num_test=0.2)(data), (3, 3, 4), strict=True
    ):
        assert part.time.tolist() == list(range(num_edges))
