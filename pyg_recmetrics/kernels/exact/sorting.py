"""The exact and deterministic top-k of a score matrix."""

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch

#: The bits of an integer of 64 bits that stand behind a key of :func:`key_of`.
LOW_HALF = 0xFFFFFFFF

#: What `_sortable_keys` makes of the bits of minus infinity.
_NEG_INF = -0x7F800001


class TopK(NamedTuple):
    """The best columns of every row, best first.

    Attributes:
        column: Columns of shape `[num_rows, k]`; `-1` where no column is left.
        key: Numbers in the order of the scores of these columns, of shape `[num_rows, k]`. Equal
            scores have equal keys.
    """

    column: Tensor
    key: Tensor


def top_k(scores: Tensor, k: int, scratch: Scratch) -> TopK:
    """Returns the `k` best columns of every row, best first, equal scores by the lower column.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]` in single or double
            precision. A column that must not be retrieved holds `-inf`. **Overwritten.**
        k (int): The number of columns, at most `num_columns`.
        scratch (Scratch): The buffers to compute in.
    """
    if scores.dtype == torch.float64:
        values, columns = (x[:, :k] for x in scores.sort(dim=1, descending=True, stable=True))
        return TopK(columns.masked_fill(values.isneginf(), -1), values)
    last = scores.size(1) - 1
    columns_from_last = torch.arange(last, -1, -1, device=scores.device)
    keys = _sortable_keys(scores, columns_from_last, scratch).topk(k, dim=1).values
    key = keys >> 32
    column = (last - (keys & LOW_HALF)).masked_fill_(key == _NEG_INF, -1)
    return TopK(column, key)


def key_of(scores: Tensor) -> Tensor:
    """Returns the keys that :func:`top_k` compares scores in single precision by."""
    return put_in_order_((scores + 0.0).view(torch.int32))


def put_in_order_(bits: Tensor, flip: Tensor | None = None) -> Tensor:
    """Converts the bits of numbers to integers in the order of the numbers, or back, in place.

    Args:
        bits (torch.Tensor): The bits, as integers of the same size.
        flip (torch.Tensor, optional): A buffer of the same shape and type. (default: `None`)
    """
    # Read as an integer, a non-negative float keeps its order and a negative one reverses it:
    # flipping all bits but the sign of the negative ones mends that.
    flip = torch.bitwise_right_shift(bits, 8 * bits.element_size() - 1, out=flip)
    return bits.bitwise_xor_(flip.bitwise_and_(torch.iinfo(bits.dtype).max))


def _sortable_keys(scores: Tensor, low_half: Tensor, scratch: Scratch) -> Tensor:
    """Packs a score and an integer into one 64-bit integer that sorts by the one, then the other.

    `torch.topk` leaves open which of two equal values it returns. No two keys are equal.
    """
    # Adding zero turns the negative zero, which equals zero but has other bits, into zero.
    bits = scores.add_(0.0).view(torch.int32)
    flip = scratch("top_k.flip", tuple(bits.shape), torch.int32)
    put_in_order_(bits, flip)
    keys = scratch("top_k.keys", tuple(bits.shape), torch.int64).copy_(bits)
    return keys.bitwise_left_shift_(32).bitwise_or_(low_half)
