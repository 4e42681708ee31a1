"""A float is a fraction and an integer an absolute number, of validation and then of the test."""

import inspect

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from pyg_recmetrics.transforms import LeaveLastOut, PerUserSplit, TemporalSplit
from tests.support.cases.graphs import (
    FORMS,
    Graph,
    count_by_user,
    interactions,
    random_graphs,
    rounded,
    truth,
)

ALL_SPLITS = pytest.mark.parametrize("split", [PerUserSplit, LeaveLastOut, TemporalSplit])
FRACTIONS = st.floats(0.05, 0.9)


def held_out(num_items, val, test):
    """How many items of a user validate and test, in plain Python."""
    keeps_an_item = (type(val) is int and val > 0) or type(test) is int
    available = max(num_items - 1, 0) if keeps_an_item else num_items
    wanted = [
        amount if type(amount) is int else rounded(num_items, amount) for amount in (val, test)
    ]
    num_test = min(wanted[1], available)
    return min(wanted[0], available - num_test), num_test


@ALL_SPLITS
def test_validation_comes_before_the_test(split):
    names = list(inspect.signature(split).parameters)
    assert names[:2] == ["num_val", "num_test"]


@ALL_SPLITS
def test_all_arguments_have_names(split):
    kinds = {parameter.kind for parameter in inspect.signature(split).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(TypeError):
        split(0.1, 0.2)


@pytest.mark.parametrize("split", [PerUserSplit, LeaveLastOut])
@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    val=st.one_of(st.just(0.0), FRACTIONS, st.integers(0, 3)),
    test=st.one_of(FRACTIONS, st.integers(1, 3)),
)
def test_amounts_of_each_user(split, form, graph, val, test):
    assume(isinstance(val, int) or isinstance(test, int) or val + test < 1)
    parts = split(num_val=val, num_test=test)(graph.data(form))
    counts = [count_by_user(set(truth(part))) for part in parts]
    for user in range(graph.num_users):
        num_items = len(graph.items(user))
        num_val, num_test = held_out(num_items, val, test)
        expected = [num_items - num_val - num_test, num_val, num_test]
        assert [count[user] for count in counts] == expected
        if num_items and (type(test) is int or (type(val) is int and val > 0)):
            assert counts[0][user] >= 1


def test_one_item_is_not_all_items():
    # Each of two users has four items: an integer counts them, and a float divides them.
    graph = Graph(2, 6, [(user, item) for user in range(2) for item in range(4)], [0] * 8)
    for split in (PerUserSplit, LeaveLastOut):
        for val, test, expected in (
            (1, 1, [4, 2, 2]),
            (0, 3, [2, 0, 6]),
            (9, 1, [2, 4, 2]),
            (1, 9, [2, 0, 6]),
            (0.25, 0.5, [2, 2, 4]),
            (1, 0.5, [2, 2, 4]),
            (0.5, 3, [2, 0, 6]),
            (0, 0.9, [0, 0, 8]),
            (1, 0.9, [2, 0, 6]),
        ):
            parts = split(num_val=val, num_test=test)(graph.data("hetero"))
            assert [len(truth(part)) for part in parts] == expected


def test_no_validation_is_the_same_in_either_way():
    data = interactions()
    for split in (PerUserSplit, LeaveLastOut, TemporalSplit):
        fraction, number = (split(num_val=zero, num_test=0.9)(data) for zero in (0.0, 0))
        for part, same in zip(fraction, number, strict=True):
            assert truth(part) == truth(same)


@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    val=st.one_of(st.just(0.0), FRACTIONS, st.integers(0, 5)),
    test=st.one_of(FRACTIONS, st.integers(1, 5)),
)
def test_amounts_of_all_pairs(form, graph, val, test):
    assume(isinstance(val, int) or isinstance(test, int) or val + test < 1)
    # No two pairs share a moment, so that parts are as large as asked for.
    pairs = sorted(graph.pairs)
    graph = Graph(graph.num_users, graph.num_items, pairs, list(range(len(pairs))))
    assume(graph.num_users + graph.num_items not in (len(pairs), 2 * len(pairs)))
    num_val, num_test = (
        amount if type(amount) is int else rounded(len(pairs), amount) for amount in (val, test)
    )
    split = TemporalSplit(num_val=val, num_test=test)
    if num_val + num_test >= len(pairs):
        with pytest.raises(ValueError, match=f"got {len(pairs)} pairs, of which {num_val} val"):
            split(graph.data(form))
        return
    parts = split(graph.data(form))
    num_train = len(pairs) - num_val - num_test
    assert [len(truth(part)) for part in parts] == [num_train, num_val, num_test]


@ALL_SPLITS
@pytest.mark.parametrize(
    "value", [0, -1, 0.0, 1.0, 1.5, -0.1, float("nan"), float("inf"), True, "a", None]
)
def test_a_test_is_a_fraction_or_a_positive_integer(split, value):
    message = r"'num_test' needs to be a positive integer or a fraction in \(0, 1\) \(got "
    with pytest.raises(ValueError, match=message):
        split(num_test=value)


@ALL_SPLITS
@pytest.mark.parametrize(
    "value", [-1, 1.0, 1.5, -0.1, float("nan"), float("inf"), False, "a", None, torch.tensor(1.0)]
)
def test_validation_is_a_fraction_or_a_natural_number(split, value):
    message = r"'num_val' needs to be a non-negative integer or a fraction in \[0, 1\) \(got "
    with pytest.raises(ValueError, match=message):
        split(num_val=value)


@ALL_SPLITS
def test_fractions_leave_something_to_train_with(split):
    with pytest.raises(ValueError, match=r"need to sum to less than one \(got 0.5 and 0.5\)"):
        split(num_val=0.5, num_test=0.5)
    split(num_val=3, num_test=0.9)
    split(num_val=0.9, num_test=3)
