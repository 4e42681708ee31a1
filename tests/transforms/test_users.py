"""Who is evaluated, separated from training or joined to it, composed with how edges are split."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.transforms import (
    JoinedUsers,
    LeaveLastOut,
    PerUserSplit,
    SeparatedUsers,
)
from tests.support.cases.graphs import (
    FORMS,
    Graph,
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
def test_users_are_drawn_and_either_separated_or_joined(form, graph, test, users, options, seed):
    fraction, max_users = users
    arguments = dict(fraction=fraction, max_users=max_users, **options)
    can_be_drawn = eligible(graph, test, options)
    data = graph.data(form)
    separate = PerUserSplit(num_test=test, users=SeparatedUsers(**arguments), seed=seed)
    if not can_be_drawn:
        with pytest.raises(ValueError, match="a user who can be evaluated"):
            separate(data)
        return
    train, val, test_part = separate(data)
    num_drawn = graph.num_users if max_users is None else max_users
    if fraction is not None:
        num_drawn = min(num_drawn, max(1, round(graph.num_users * fraction)))
    drawn = drawn_users(test_part)
    assert len(drawn) == min(num_drawn, len(can_be_drawn))
    assert set(drawn) <= set(can_be_drawn)

    # The remainder has all of the others; the test has that and what is left of the drawn ones.
    assert message_passing(train) == {pair for pair in graph.pairs if pair[0] not in drawn}
    assert message_passing(test_part) | set(truth(test_part)) == graph.pairs
    assert {user for user, _ in truth(test_part)} <= set(drawn)
    assert message_passing(val) == message_passing(test_part)
    assert set(truth(train)) == message_passing(train)
    assert not truth(val)
    for user in drawn:
        num_items = len(graph.items(user))
        assert count_by_user(set(truth(test_part)))[user] == rounded(num_items, test)

    # Joined: the same, but for the message passing in training, and for the numbers of users.
    joined = PerUserSplit(num_test=test, users=JoinedUsers(**arguments), seed=seed)(data)
    order = drawn + [user for user in range(graph.num_users) if user not in drawn]
    for part in joined:
        ids = user_store(part).n_id
        assert ids[: graph.num_users].tolist() == order
        assert torch.equal(user_store(part).x, ids)
    assert as_before(joined[2], truth) == set(truth(test_part))
    assert as_before(joined[2], message_passing) == message_passing(test_part)
    assert message_passing(joined[0]) == message_passing(joined[2])
    assert drawn_users(joined[2]) == list(range(len(drawn)))


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
    assert user_store(joined[2]).n_id[: len(drawn)].tolist() == drawn

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


@pytest.mark.parametrize("users", [SeparatedUsers(fraction=0.5), JoinedUsers(fraction=0.5)])
def test_the_last_items_of_drawn_users_are_left_out(users):
    # Everybody has the items 0 to 4, one after the other, and then item 0 again.
    edges = [(user, item) for user in range(6) for item in (0, 1, 2, 3, 4, 0)]
    data = Graph(6, 8, edges, list(range(6)) * 6).data("hetero")
    train, val, test = LeaveLastOut(num_val=1, num_test=2, users=users)(data)
    numbers = drawn_users(test)
    assert len(numbers) == 3
    assert set(truth(test)) == {(user, item) for user in numbers for item in (0, 4)}
    assert set(truth(val)) == {(user, 3) for user in numbers}
    trained = {item for user, item in message_passing(train) if user in numbers}
    assert trained == (set() if isinstance(users, SeparatedUsers) else {1, 2})


def test_every_user_can_be_drawn():
    data = interactions()
    times_drawn = torch.zeros(60)
    for seed in range(50):
        split_users = PerUserSplit(users=SeparatedUsers(fraction=0.5), seed=seed)
        times_drawn += split_users(data)[2]["user"].eval_mask
    # 25 of 50 times on average, give or take less than 5 deviations of 3.5.
    assert 25 - 17 < times_drawn.min() <= times_drawn.max() < 25 + 17


@pytest.mark.parametrize("kind", [SeparatedUsers, JoinedUsers])
class TestValues:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"fraction": 2}, r"'fraction' needs to be a number .* \(got 2\)"),
            ({"fraction": True}, "'fraction' needs to be a number between"),
            ({"max_users": 0}, "'max_users' needs to be a positive"),
            ({"min_pos_test": -1}, "'min_pos_test' needs to be a non-negative"),
            ({"min_items_pool": 0.5}, "'min_items_pool' needs to be a non-neg"),
        ],
    )
    def test_wrong_arguments_are_named(self, kind, arguments, message):
        with pytest.raises(ValueError, match=message):
            kind(**arguments)

    def test_a_condition_that_is_no_boolean_is_named(self, kind):
        with pytest.raises(TypeError, match="'consider_cold_start' needs to be a boolean"):
            kind(consider_cold_start="no")


def test_conditions_are_named_if_nobody_fulfils_them():
    with pytest.raises(ValueError, match=r"60 users, none of whom .*min_pos_test=50"):
        PerUserSplit(users=SeparatedUsers(min_pos_test=50))(interactions())
