"""What users without truth count as in a mean, and when they are an error."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.metrics.empty_target_action import (
    check_empty_target_action,
    check_num_without_truth,
    counts_in_mean,
    fill_without_truth,
)

ACTIONS = {"skip": math.nan, "neg": 0.0, "pos": 1.0, "error": math.nan}


@given(
    users=st.lists(st.tuples(st.floats(0, 1) | st.just(math.nan), st.integers(0, 2))),
    action=st.sampled_from(sorted(ACTIONS)),
)
def test_values_of_users_without_truth_are_filled(users, action):
    value = torch.tensor([value for value, _ in users], dtype=torch.double)
    degree = torch.tensor([degree for _, degree in users], dtype=torch.long)
    before = value.clone()
    filled = fill_without_truth(value, degree, action)
    expected = [value if degree else ACTIONS[action] for value, degree in users]
    assert filled.tolist() == pytest.approx(expected, abs=0, nan_ok=True)
    assert torch.equal(value.nan_to_num(-1), before.nan_to_num(-1))


@pytest.mark.parametrize("action", ACTIONS)
def test_who_counts_in_a_mean_has_a_value_there(action):
    degree = torch.tensor([1, 0, 5])
    filled = fill_without_truth(torch.ones(3).double(), degree, action)
    assert torch.equal(counts_in_mean(degree, action), ~filled.isnan())


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("num_cut_offs", [1, 2, 3])
def test_so_are_values_at_many_cut_offs(action, num_cut_offs):
    value = torch.arange(3 * num_cut_offs).double().view(3, num_cut_offs) + 2
    filled = fill_without_truth(value, torch.tensor([1, 0, 5]), action)
    assert torch.equal(filled[[0, 2]], value[[0, 2]])
    assert filled[1].tolist() == pytest.approx([ACTIONS[action]] * num_cut_offs, nan_ok=True)


@pytest.mark.parametrize("action", ACTIONS)
def test_actions_have_names(action):
    check_empty_target_action(action)


@pytest.mark.parametrize("action", ["drop", "", "SKIP", None])
def test_an_unknown_action_is_named(action):
    message = r"'empty_target_action' needs .*\['skip', 'neg', 'pos', 'error'\] \(got "
    with pytest.raises(ValueError, match=message):
        check_empty_target_action(action)


def test_users_without_truth_are_an_error_only_if_that_is_asked_for():
    for action in ("skip", "neg", "pos"):
        check_num_without_truth(3, action)
    check_num_without_truth(0, "error")
    with pytest.raises(ValueError, match=r"every user to have ground truth .*\(got 3 without\)"):
        check_num_without_truth(3, "error")
