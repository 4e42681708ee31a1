"""What users without truth count as in a mean, and when they are an error."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.metrics.empty_target_action import (
    check_num_without_truth,
    counts_in_mean,
    fill_without_truth,
)

ACTIONS = {"skip": math.nan, "neg": 0.0, "pos": 1.0, "error": math.nan}


@given(
    users=st.lists(st.tuples(st.floats(0, 1) | st.just(math.nan), st.integers(0, 2))),
    action=st.sampled_from(sorted(ACTIONS)),
    num_cut_offs=st.integers(1, 3),
)
def test_users_without_truth_count_as_is_said_at_every_cut_off(users, action, num_cut_offs):
    value = torch.tensor([value for value, _ in users], dtype=torch.double)
    degree = torch.tensor([degree for _, degree in users], dtype=torch.long)
    expected = [value if degree else ACTIONS[action] for value, degree in users]
    counted = pytest.approx(expected, abs=0, nan_ok=True)
    assert fill_without_truth(value, degree, action).tolist() == counted
    for column in fill_without_truth(value.repeat(num_cut_offs, 1).t(), degree, action).t():
        assert column.tolist() == counted
    has_value = ~fill_without_truth(torch.ones_like(value), degree, action).isnan()
    assert torch.equal(counts_in_mean(degree, action), has_value)


def test_users_without_truth_are_an_error_only_if_that_is_asked_for():
    for action in ("skip", "neg", "pos"):
        check_num_without_truth(3, action)
    check_num_without_truth(0, "error")
    with pytest.raises(ValueError, match=r"every user to have ground truth .*\(got 1 without\)"):
        check_num_without_truth(1, "error")
