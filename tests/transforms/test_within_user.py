"""Splits within users: how their pairs are ordered, and which of them are held out."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.transforms import LeaveLastOut, PerUserSplit, SeparatedUsers
from pyg_recmetrics.transforms.cut import TEST, TRAIN, VAL
from pyg_recmetrics.transforms.interactions import read_interactions
from pyg_recmetrics.transforms.within_user import (
    WithinUserSplit,
    hold_out_last,
    shuffle_within_users,
)
from tests.support.cases.graphs import FORMS, count_by_user, interactions, random_graphs, truth


def interactions_of(graph, form="hetero", order=None):
    return read_interactions(graph.data(form, order), None, None, None)


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

    def test_the_global_random_state_is_not_touched(self):
        edges = read_interactions(interactions(), None, None, None)
        state = torch.get_rng_state()
        assert shuffled(edges, 0) != shuffled(edges, 1)
        assert torch.equal(torch.get_rng_state(), state)


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


class HighestItemsLast(WithinUserSplit):
    """Holds out the items with the highest ids."""

    def __init__(self, num_val, num_test, users=None):
        super().__init__(num_val, num_test, users, 0, None, None, None)

    def order(self, data, interactions, generator):
        return torch.arange(interactions.pairs.user.numel())  # pairs are sorted


@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    val=st.integers(0, 2),
    test=st.integers(1, 3),
)
def test_a_subclass_only_gives_an_order(form, graph, val, test):
    split_data = HighestItemsLast(val, test)(graph.data(form))
    for user in range(graph.num_users):
        items = sorted(graph.items(user))
        num_test = min(test, max(len(items) - 1, 0))
        num_val = min(val, max(len(items) - 1, 0) - num_test)
        train_items, val_items, test_items = (
            sorted({item for other, item in truth(stage_data) if other == user})
            for stage_data in split_data
        )
        assert train_items + val_items + test_items == items
        assert (len(val_items), len(test_items)) == (num_val, num_test)


@given(graph=random_graphs(max_users=8, max_items=9, max_edges=40))
def test_only_pairs_of_drawn_users_are_held_out(graph):
    split = HighestItemsLast(1, 1, users=SeparatedUsers(fraction=0.5))
    degrees = [len(graph.items(user)) for user in range(graph.num_users)]
    if not any(2 <= degree <= graph.num_items - 2 for degree in degrees):
        with pytest.raises(ValueError, match="a user who can be evaluated"):
            split(graph.data("hetero"))
        return
    _, val, test = split(graph.data("hetero"))
    drawn = set(test["user"].eval_mask.nonzero().flatten().tolist())
    assert count_by_user(set(truth(test))) == dict.fromkeys(drawn, 1)
    assert set(count_by_user(set(truth(val)))) <= drawn


def test_a_subclass_has_to_give_an_order():
    with pytest.raises(TypeError, match="order"):
        WithinUserSplit(1, 1, None, 0, None, None, None)


@pytest.mark.parametrize("split", [PerUserSplit, LeaveLastOut])
class TestArguments:
    @pytest.mark.parametrize("users", ["separated", SeparatedUsers, 0.1])
    def test_users_are_one_of_two_kinds(self, split, users):
        with pytest.raises(TypeError, match=r"'users' needs to be 'SeparatedUsers\(\.\.\.\)'"):
            split(users=users)

    @pytest.mark.parametrize(
        "flag", ["split_type", "users_test_fraction", "max_test_users", "min_pos_test"]
    )
    def test_there_is_no_flag(self, split, flag):
        with pytest.raises(TypeError, match=flag):
            split(**{flag: "separated"})
