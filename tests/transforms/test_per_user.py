"""Items of each user are split at random, and in exact numbers."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.transforms import JoinedUsers, PerUserSplit
from tests.support.cases.graphs import (
    FORMS,
    USER_ITEM,
    Graph,
    count_by_user,
    interactions,
    random_graphs,
    rounded,
    truth,
)


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


def test_seeds_make_different_splits():
    data = interactions()
    made = {
        tuple(PerUserSplit(seed=seed)(data)[2]["rates"].edge_label_index[1].tolist())
        for seed in range(5)
    }
    assert len(made) == 5


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


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="'seed' needs to be a non-negative integer"):
        PerUserSplit(seed=-1)


def test_it_says_what_it_is():
    assert repr(PerUserSplit()) == "PerUserSplit(num_val=0.0, num_test=0.3, users=None, seed=0)"
    assert repr(PerUserSplit(num_val=1, users=JoinedUsers())) == (
        "PerUserSplit(num_val=1, num_test=0.3, users=JoinedUsers(fraction=0.1, max_users=10000, "
        "min_items_pool=2, min_pos_test=1, consider_cold_start=False), seed=0)"
    )
