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
    # Extremes so far find both ends of a run without waiting for the device.
    position = torch.arange(keys[0].numel(), device=keys[0].device)
    is_first = torch.ones_like(position, dtype=torch.bool)
    is_first[1:] = torch.stack([key[1:] != key[:-1] for key in keys]).any(dim=0)
    is_last = torch.ones_like(is_first)
    is_last[:-1] = is_first[1:]
    first = torch.where(is_first, position, 0).cummax(dim=0).values
    last = torch.where(is_last, position, keys[0].numel()).flip(0).cummin(dim=0).values.flip(0)
    return first, last - first + 1
