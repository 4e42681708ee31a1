"""Splits within users: how their pairs are ordered, and which of them are held out."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from pyg_recmetrics.transforms import (
    LeaveLastOut,
    PerUserSplit,
    SeparatedUsers,
    TemporalSplit,
)
from pyg_recmetrics.transforms.cut import TEST, TRAIN, VAL
from pyg_recmetrics.transforms.interactions import read_interactions
from pyg_recmetrics.transforms.splits import hold_out_last, shuffle_within_users
from tests.support.cases.graphs import (
    FORMS,
    ITEM_USER,
    USER_ITEM,
    Graph,
    apply_split,
    as_sets,
    count_by_user,
    edges_with_ids,
    interactions,
    message_passing,
    random_graphs,
    rounded,
    truth,
)

#: What is left out is looked at in `test_cut.py`.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* leaves "),
    pytest.mark.filterwarnings("ignore:SampledCandidates.* finds fewer items"),
]


def interactions_of(graph, form="hetero", order=None):
    return read_interactions(graph.data(form, order), None, None)


def shuffled(edges, seed):
    return shuffle_within_users(edges, torch.Generator().manual_seed(seed)).tolist()


class TestShuffle:
    @given(form=st.sampled_from(FORMS), graph=random_graphs(), seed=st.integers(0, 5))
    def test_every_pair_is_there_once_and_users_stay_in_order(self, form, graph, seed):
        edges = interactions_of(graph, form)
        order = shuffled(edges, seed)
        assert sorted(order) == list(range(len(graph.pairs)))
        users = edges.pairs.user[order].tolist()
        assert users == sorted(users)

    @given(graph=random_graphs(), seed=st.integers(0, 5), data=st.data())
    def test_the_seed_decides_whatever_the_order_of_the_edges(self, graph, seed, data):
        order = data.draw(st.permutations(range(len(graph.edges))))
        again = shuffled(interactions_of(graph, order=order), seed)
        assert shuffled(interactions_of(graph), seed) == again


@given(form=st.sampled_from(FORMS), graph=random_graphs(), data=st.data())
def test_the_last_pairs_in_the_order_are_held_out(form, graph, data):
    edges = interactions_of(graph, form)
    pairs = list(zip(edges.pairs.user.tolist(), edges.pairs.item.tolist(), strict=True))
    numbers = st.lists(st.integers(0, 3), min_size=graph.num_users, max_size=graph.num_users)
    num_val, num_test = data.draw(numbers), data.draw(numbers)
    order, stage_of = [], {}
    for user in range(graph.num_users):
        own = [number for number, pair in enumerate(pairs) if pair[0] == user]
        own = data.draw(st.permutations(own))
        order += own
        from_last = [TEST] * num_test[user] + [VAL] * num_val[user] + [TRAIN] * len(own)
        for number, stage in zip(reversed(own), from_last, strict=False):
            stage_of[pairs[number]] = stage
    assignment = hold_out_last(
        edges, torch.tensor(order), torch.tensor(num_val), torch.tensor(num_test)
    )
    stages = [stage_of[pairs[number]] for number in edges.pairs.of_edge.tolist()]
    assert assignment.truth_of.tolist() == stages
    # Truth that is held out passes messages from the next stage on.
    later = {TRAIN: TRAIN, VAL: TEST, TEST: TEST + 1}
    assert assignment.message_passing_from.tolist() == [later[stage] for stage in stages]
    assert assignment.users is None


@pytest.mark.parametrize("split", [PerUserSplit, LeaveLastOut])
class TestArguments:
    @pytest.mark.parametrize("users", ["separated", SeparatedUsers, 0.1])
    def test_users_are_one_of_two_kinds(self, split, users):
        with pytest.raises(TypeError, match=r"'users' needs to be 'SeparatedUsers\(\.\.\.\)'"):
            split(users=users)


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


@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    test=st.floats(0.05, 0.94),
    share=st.floats(0, 0.9),
    seed=st.integers(0, 5),
)
def test_users_are_split_by_exact_counts(form, graph, test, share, seed):
    val = share * (1 - test)
    _, val_data, test_data = PerUserSplit(num_val=val, num_test=test, seed=seed)(graph.data(form))
    for user in range(graph.num_users):
        num_items = len(graph.items(user))
        for part, fraction in ((val_data, val), (test_data, test)):
            num_expected = rounded(num_items, fraction)
            assert count_by_user(set(truth(part)))[user] == num_expected


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


def test_wrong_arguments_are_named_of_per_user():
    with pytest.raises(ValueError, match="'seed' needs to be a non-negative integer"):
        PerUserSplit(seed=-1)


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
def test_wrong_arguments_are_named_of_temporal(make, message):
    with pytest.raises(ValueError, match=message):
        make()
