"""Fast counting of comparisons between 16-bit integers.

The result of a comparison is stored as a flag: a zero or a one in an integer of the same size as
the numbers that were compared. A processor makes such flags faster than booleans, and adds them up
faster still: four 16-bit flags are read as one 64-bit integer and added at once. The result
*packs* four counts into one number.
"""

import torch
from torch import Tensor

#: A packed count cannot overflow as long as it is over no more flags than this.
MAX_FLAGS = 2**16


def pack_counts(flags: Tensor, out: Tensor | None = None) -> Tensor:
    """Counts the ones along the last dimension.

    Args:
        flags (torch.Tensor): Zeros and ones of shape `[..., num_flags]`, as `torch.int16`. Their
            number is a multiple of four, and at most :obj:`MAX_FLAGS`.
        out (torch.Tensor, optional): The tensor to write the result to. (default: `None`)

    Returns:
        One number for four counts, each over a quarter of the flags, of shape `[...]`.
    """
    return torch.sum(flags.view(torch.int64), dim=-1, out=out)


def unpack_counts(packed: Tensor) -> Tensor:
    """Adds up the four counts in each number."""
    return packed.unsqueeze(-1).view(torch.int16).sum(dim=-1)
