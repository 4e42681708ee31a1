"""Zeros and ones as 16-bit integers, which are counted and found four at a time.

The results of many comparisons take longer to add up than to compute. Written as 16-bit integers
instead of booleans, four of them are one 64-bit integer, and are added or skipped at once.
"""

import torch
from torch import Tensor

_PER_WORD = 4

#: So many ones, one above the other, are less than a 16-bit integer can hold.
_MOST_WORDS = 2**15 - 1


def count_flags(flags: Tensor) -> Tensor:
    """Counts the ones along the last dimension, whose size is a multiple of four.

    Args:
        flags (torch.Tensor): Zeros and ones of shape `[..., num_flags]`, as `torch.int16`.

    Returns:
        The counts, of shape `[...]`.
    """
    words = flags.view(torch.int64)
    sums = [part.sum(dim=-1, keepdim=True) for part in words.split(_MOST_WORDS, dim=-1)]
    return torch.cat(sums, dim=-1).view(torch.int16).sum(dim=-1)
