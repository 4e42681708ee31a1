"""Zeros and ones as 16-bit integers, which are counted four at a time.

The results of many comparisons take longer to add up than to compute. Written as 16-bit integers
instead of booleans, four of them are one 64-bit integer, and are added up at once: this *packs*
four counts into a number.
"""

import torch
from torch import Tensor

#: So many flags have counts that can be packed.
MOST_FLAGS = 2**16


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
