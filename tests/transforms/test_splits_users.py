"""Who is evaluated, separated from training or joined to it, composed with how edges are split."""

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics.transforms import JoinedUsers, LeaveLastOut, PerUserSplit, SeparatedUsers
from tests.support.cases.graphs import (
    FORMS,
    WITHOUT_LEFT_OUT,
    as_sets,
    count_by_user,
    drawn_users,
    interactions,
    message_passing,
    random_graphs,
    rounded,
    truth,
    user_store,
)

pytestmark = WITHOUT_LEFT_OUT


def eligible(graph, test, options):
    users = []
    for user in range(graph.num_users):
        degree = len(graph.items(user))
        num_test = rounded(degree, test)
        if (
            degree > 0
            and num_test >= options["min_pos_test"]
            and graph.num_items - (degree - num_test) >= options["min_items_pool"]
            and (num_test < degree or options["consider_cold_start"])
            and graph.num_items - degree >= 2
        ):
            users.append(user)
    return users


@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(max_users=8, max_edges=40),
    test=st.sampled_from([0.25, 0.3, 0.5, 0.9]),
    users=st.sampled_from([(0.5, None), (None, 2), (0.9, 3), (None, None), (0.01, 10)]),
    options=st.fixed_dictionaries(
        {
            "min_pos_test": st.integers(0, 2),
            "min_items_pool": st.integers(0, 6),
            "consider_cold_start": st.booleans(),
        }
    ),
    seed=st.integers(0, 3),
)
def test_as_many_are_drawn_as_are_wanted_of_those_who_fulfil_all_conditions(
    form, graph, test, users, options, seed
):
    fraction, max_users = users
    arguments = dict(fraction=fraction, max_users=max_users, **options)
    can_be_drawn = eligible(graph, test, options)
    data = graph.data(form)
    separate = PerUserSplit(num_test=test, users=SeparatedUsers(**arguments), seed=seed)
    if not can_be_drawn:
        with pytest.raises(ValueError, match="a user who can be evaluated"):
            separate(data)
        return
    *_, test_part = separate(data)
    num_drawn = graph.num_users if max_users is None else max_users
    if fraction is not None:
        num_drawn = min(num_drawn, max(1, round(graph.num_users * fraction)))
    drawn = drawn_users(test_part)
    assert len(drawn) == min(num_drawn, len(can_be_drawn))
    assert set(drawn) <= set(can_be_drawn)


def as_before(part, pairs):
    """The pairs of a part in the numbers that users had before they were joined."""
    ids = user_store(part).n_id.tolist()
    return {(ids[user], item) for user, item in pairs(part)}


@given(
    form=st.sampled_from(FORMS),
    graph=random_graphs(max_users=8, max_items=9, max_edges=40),
    how=st.sampled_from(
        [
            LeaveLastOut,
            lambda **options: LeaveLastOut(num_val=0, num_test=2, **options),
            lambda **options: LeaveLastOut(num_val=0.3, num_test=0.4, **options),
            lambda **options: LeaveLastOut(time_attr=None, **options),
            lambda **options: PerUserSplit(num_val=0.3, num_test=0.4, **options),
            lambda **options: PerUserSplit(num_val=2, num_test=1, **options),
        ]
    ),
    fraction=st.sampled_from([0.2, 0.5, 0.9]),
    seed=st.integers(0, 3),
    data=st.data(),
)
def test_laws_of_who_and_how_together(form, graph, how, fraction, seed, data):
    whole = graph.data(form)
    of_all = how(seed=seed)(whole)
    separate = how(users=SeparatedUsers(fraction=fraction), seed=seed)
    join = how(users=JoinedUsers(fraction=fraction), seed=seed)
    counts = [count_by_user(set(truth(part))) for part in of_all]
    can_be_drawn = [
        user
        for user in range(graph.num_users)
        if counts[0][user] > 0
        and counts[2][user] > 0
        and graph.num_items - len(graph.items(user)) >= 2
    ]
    if not can_be_drawn:
        for split in (separate, join):
            with pytest.raises(ValueError, match="a user who can be evaluated"):
                split(whole)
        return
    separated, joined = separate(whole), join(whole)
    drawn = drawn_users(separated[2])
    of_drawn = {pair for pair in graph.pairs if pair[0] in drawn}
    num_drawn = min(len(can_be_drawn), max(1, round(graph.num_users * fraction)))
    assert len(drawn) == num_drawn
    assert set(drawn) <= set(can_be_drawn)

    # Who: both draw the same users, and only these are evaluated and have truth to test with.
    for parts, numbers in ((separated, drawn), (joined, list(range(len(drawn))))):
        assert "eval_mask" not in user_store(parts[0])
        for part in parts[1:]:
            assert drawn_users(part) == numbers
            assert {user for user, _ in truth(part)} <= set(numbers)
        assert {user for user, _ in truth(parts[2])} == set(numbers)
    others = [user for user in range(graph.num_users) if user not in drawn]
    assert user_store(joined[2]).n_id[: graph.num_users].tolist() == drawn + others
    assert torch.equal(user_store(joined[2]).x, user_store(joined[2]).n_id)

    # How: each drawn user has as many items in validation and test as if all were evaluated.
    for part, expected in zip(separated[1:], counts[1:], strict=True):
        found = count_by_user(set(truth(part)))
        assert found == {user: expected[user] for user in drawn if expected[user]}

    # Parts are disjoint, nothing leaks, and together they are complete.
    for parts in (separated, joined):
        truths = [set(truth(part)) for part in parts]
        assert not truths[0] & truths[1]
        assert not truths[0] & truths[2]
        assert not truths[1] & truths[2]
        assert truths[0] == message_passing(parts[0])
        for part in parts[1:]:
            assert not set(truth(part)) & message_passing(part)
        assert message_passing(parts[1]) | truths[1] == message_passing(parts[2])
    assert message_passing(separated[0]) == graph.pairs - of_drawn
    assert message_passing(separated[2]) | set(truth(separated[2])) == graph.pairs
    for part_number in (1, 2):
        assert as_before(joined[part_number], truth) == set(truth(separated[part_number]))
        assert as_before(joined[part_number], message_passing) == message_passing(
            separated[part_number]
        )
    assert message_passing(joined[0]) == message_passing(joined[1])

    # The same seed makes the same split, whatever the order of the edges and the form of the graph.
    order = data.draw(st.permutations(range(len(graph.edges))))
    for transform, parts in ((separate, separated), (join, joined)):
        assert as_sets(transform(graph.data(form, order))) == as_sets(parts)
        assert as_sets(transform(graph.data("hetero"))) == as_sets(parts)


def test_every_user_can_be_drawn():
    data = interactions()
    times_drawn = torch.zeros(60)
    for seed in range(50):
        split_users = PerUserSplit(users=SeparatedUsers(fraction=0.5), seed=seed)
        times_drawn += split_users(data)[2]["user"].eval_mask
    # 25 of 50 times on average, give or take less than 5 deviations of 3.5.
    assert 25 - 17 < times_drawn.min() <= times_drawn.max() < 25 + 17
