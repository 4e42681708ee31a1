"""Users for whom a metric is undefined, and what they count as in a mean."""

from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_choice

#: What a user without truth counts as in a mean, in torchmetrics' words.
EmptyTargetAction: TypeAlias = Literal["skip", "neg", "pos", "error"]

_VALUE_WITHOUT_TRUTH = {"skip": torch.nan, "neg": 0.0, "pos": 1.0, "error": torch.nan}


def check_empty_target_action(action: str) -> None:
    """Raises if there is no such action."""
    check_choice(action, "empty_target_action", get_args(EmptyTargetAction))


def check_num_without_truth(num_without_truth: int) -> None:
    """Raises if there are users without truth, as the action `"error"` does."""
    if num_without_truth:
        raise ValueError(
            f"'empty_target_action' needs every user to have ground truth if it is 'error' "
            f"(got {num_without_truth} without)"
        )


def counts_in_mean(degree: Tensor, action: EmptyTargetAction) -> Tensor:
    """Returns whether each user counts in a mean, of shape `[num_users]`.

    Args:
        degree (torch.Tensor): The number of relevant items of every user, of shape `[num_users]`.
        action (str): What users without truth count as.
    """
    return (degree > 0) | (action in ("neg", "pos"))


def num_filled(num_without_truth: int, action: EmptyTargetAction) -> int:
    """Returns how many users without truth count in a mean."""
    return num_without_truth if action in ("neg", "pos") else 0


def weight_of_truth(
    num_counted: int, num_without_truth: int, action: EmptyTargetAction
) -> tuple[float, float]:
    """Returns the share of users with truth in a mean over all users, and what the others add.

    Args:
        num_counted (int): How many users count in the mean.
        num_without_truth (int): How many users have no truth.
        action (str): What these count as.
    """
    num_others = num_filled(num_without_truth, action)
    if num_others == 0:
        return 1.0, 0.0
    share = (num_counted - num_others) / num_counted
    return share, 1 - share if action == "pos" else 0.0


def fill_without_truth(value: Tensor, degree: Tensor, action: EmptyTargetAction) -> Tensor:
    """Returns what every user counts as in a mean; `NaN` for users who are left out.

    Args:
        value (torch.Tensor): The value of every user, of shape `[num_users]` or
            `[num_users, num_cut_offs]`.
        degree (torch.Tensor): The number of relevant items of every user, of shape `[num_users]`.
        action (str): What users without truth count as.
    """
    has_no_truth = (degree == 0).view(-1, *(1 for _ in value.shape[1:]))
    return value.masked_fill(has_no_truth, _VALUE_WITHOUT_TRUTH[action])
