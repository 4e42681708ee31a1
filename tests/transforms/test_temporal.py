"""All edges are split at the same moments, and the future never trains the past."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from pyg_recmetrics.transforms import LeaveLastOut, TemporalSplit
from tests.support.cases.graphs import (
    FORMS,
    ITEM_USER,
    USER_ITEM,
    Graph,
    apply_split,
    as_sets,
    edges_with_ids,
    message_passing,
    random_graphs,
    rounded,
    truth,
)


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


def test_a_repetition_is_neither_truth_nor_known_before_its_time():
    graph = Graph(1, 3, [(0, 0), (0, 1), (0, 0), (0, 2)], [1, 2, 3, 4])
    train, val, test = TemporalSplit(num_val=0.0, num_test=1 / 3)(graph.data("hetero"))
    assert {edge_id for *_, edge_id in edges_with_ids(train)} == {0, 1}
    assert {edge_id for *_, edge_id in edges_with_ids(test)} == {0, 1}
    assert truth(test) == [(0, 2)]
    train, val, test = TemporalSplit(num_val=1 / 3, num_test=1 / 3)(
        Graph(1, 3, [(0, 0), (0, 1), (0, 0), (0, 2)], [1, 2, 2, 4]).data("hetero")
    )
    assert [truth(part) for part in (train, val, test)] == [[(0, 0)], [(0, 1)], [(0, 2)]]
    assert {edge_id for *_, edge_id in edges_with_ids(val)} == {0}
    assert {edge_id for *_, edge_id in edges_with_ids(test)} == {0, 1, 2}


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TemporalSplit(new_users="ignore"), r"'new_users' .*\['keep', 'drop'\]"),
        (lambda: TemporalSplit(new_items=None), r"'new_items' .*\(got None\)"),
    ],
)
def test_wrong_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_it_says_what_it_is():
    assert repr(TemporalSplit()) == (
        "TemporalSplit(num_val=0.1, num_test=0.2, time_attr='time', new_users='keep', "
        "new_items='keep')"
    )
