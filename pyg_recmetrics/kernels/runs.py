"""Runs of equal neighbours, such as those of equal scores in a sorted list."""

import torch
from torch import Tensor


def find_runs(*keys: Tensor) -> tuple[Tensor, Tensor]:
    """Finds for every position the run of neighbours that agree with it in all keys.

    Args:
        *keys (torch.Tensor): Values of shape `[num_positions]` each.

    Returns:
        Where the run of each position starts, and how long it is, of shape `[num_positions]` each.
    """
    is_first = torch.ones_like(keys[0], dtype=torch.bool)
    is_first[1:] = torch.stack([key[1:] != key[:-1] for key in keys]).any(dim=0)
    run = is_first.cumsum(dim=0) - 1
    return is_first.nonzero().squeeze(1)[run], torch.bincount(run)[run]
