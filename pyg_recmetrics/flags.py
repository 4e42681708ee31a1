"""Flags, the results of comparing 16-bit integers: zeros and ones of the same size.

A processor compares numbers to results of their own size, of which booleans are made one by one:
they take longer to make than to compare, and longer still to add up. Four flags are one 64-bit
integer, and are added at once: this *packs* four counts into a number.
"""

import torch
from torch import Tensor

#: So many flags have counts that can be packed.
MOST_FLAGS = 2**16


def is_above(value: Tensor, limit: Tensor) -> Tensor:
    """Flags what is above the limit of its row: `[num_rows, num_values]`."""
    return torch.gt(value, limit.unsqueeze(1), out=torch.empty_like(value))


def is_at_least(value: Tensor, limit: Tensor) -> Tensor:
    """Flags what is at least the limit of its row: `[num_rows, num_values]`."""
    return torch.ge(value, limit.unsqueeze(1), out=torch.empty_like(value))


def count_flags(flags: Tensor) -> Tensor:
    """Counts the ones along the last dimension, whose size is a multiple of four."""
    parts = flags.split(MOST_FLAGS, dim=-1)
    return torch.stack([unpack_counts(pack_counts(part)) for part in parts]).sum(dim=0)


def pack_counts(flags: Tensor, out: Tensor | None = None) -> Tensor:
    """Counts the ones along the last dimension.

    Args:
        flags (torch.Tensor): Zeros and ones of shape `[..., num_flags]`, as `torch.int16`. Their
            number is a multiple of four, and at most :obj:`MOST_FLAGS`.
        out (torch.Tensor, optional): Where to write the result to. (default: `None`)

    Returns:
        Four counts each of a quarter of the ones, as one number, of shape `[...]`.
    """
    return torch.sum(flags.view(torch.int64), dim=-1, out=out)


def unpack_counts(packed: Tensor) -> Tensor:
    """Adds up the four counts that a number is packed from."""
    return packed.unsqueeze(-1).view(torch.int16).sum(dim=-1)
