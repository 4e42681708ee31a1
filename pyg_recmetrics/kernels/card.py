"""One kernel for a card: it reads stored scores, and counts or lists those around what is ranked.

A card compares as fast as it reads. So each program compares the scores of some columns with a few
neighbours among what is ranked, which mostly are of one row: that row is read from memory once.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

#: The language of the kernel. Triton comes with torch for CUDA on Linux, and takes long to import.
tl: Any = None

#: How many ranked items a program compares with how many columns at once, and how many times.
_NUM_RANKED, _NUM_COLUMNS, _NUM_STEPS = 4, 512, 16

#: How far scores can be off: at most a number for each row times one for each column.
Error: TypeAlias = tuple[Tensor, Tensor]


class Ranked(NamedTuple):
    """What is ranked, and where the scores begin and end that may be the same as its own.

    Attributes:
        row: The rows, of shape `[num_ranked]`, sorted.
        column: The columns.
        low: The lowest of these scores, in the precision of all scores.
        high: The highest.
    """

    row: Tensor
    column: Tensor
    low: Tensor
    high: Tensor


def has_kernel(device: torch.device) -> bool:
    """Returns whether the kernel runs on a device."""
    return device.type == "cuda" and _is_there()


@cache
def _is_there() -> bool:
    return find_spec("triton") is not None


def count(scores: Tensor, ranked: Ranked, error: Error | None) -> Tensor:
    """See :func:`pyg_recmetrics.kernels.exact.counting.count_around`."""
    counts = torch.zeros((3, ranked.row.numel()), dtype=torch.int32, device=scores.device)
    _launch(scores, ranked, error, counts, counts, finds=False)
    return counts.long()


def find(scores: Tensor, ranked: Ranked, error: Error | None, num: Tensor, total: int) -> Tensor:
    """See :func:`pyg_recmetrics.kernels.exact.counting.find_around`."""
    pairs = num.new_empty((2, total))
    _launch(scores, ranked, error, pairs, num.cumsum(0).sub_(num), finds=True)
    return pairs


def _launch(
    scores: Tensor, ranked: Ranked, error: Error | None, out: Tensor, place: Tensor, finds: bool
) -> None:
    num_ranked, num_columns = ranked.row.numel(), scores.size(1)
    if num_ranked == 0:
        return
    kernel, ranked = _kernel(), Ranked(*(values.contiguous() for values in ranked))
    factor, norm = map(scores.new_zeros, scores.shape) if error is None else error
    grid = (-(-num_ranked // _NUM_RANKED), -(-num_columns // (_NUM_COLUMNS * _NUM_STEPS)))
    sizes = scores.stride(0), num_columns, num_ranked, out.size(1)
    with torch.cuda.device_of(scores):
        kernel[grid](
            *(scores, *sizes, *ranked, factor, norm, out, place, finds),
            *(_NUM_RANKED, _NUM_COLUMNS, _NUM_STEPS),
        )


@cache
def _kernel() -> Any:
    global tl
    import triton
    import triton.language as tl

    return triton.jit(_around)


def _around(
    scores: Any,
    stride: Any,
    num_columns: Any,
    num_ranked: Any,
    size: Any,
    row: Any,
    column: Any,
    low: Any,
    high: Any,
    factor: Any,
    norm: Any,
    out: Any,
    place: Any,
    FINDS: "tl.constexpr",  # noqa: N803
    RANKED: "tl.constexpr",  # noqa: N803
    COLUMNS: "tl.constexpr",  # noqa: N803
    STEPS: "tl.constexpr",  # noqa: N803
) -> None:
    number = tl.program_id(0) * RANKED + tl.arange(0, RANKED)
    is_ranked = number < num_ranked
    low = tl.load(low + number, mask=is_ranked, other=float("inf"))[:, None]
    if tl.min(tl.min(low, axis=1), axis=0) < float("inf"):
        high = tl.load(high + number, mask=is_ranked, other=float("inf"))[:, None]
        own = tl.load(column + number, mask=is_ranked, other=0)[:, None]
        # A row is numbered in 64 bits, as a matrix may have more scores than 32 bits can number.
        row = tl.load(row + number, mask=is_ranked, other=0)[:, None]
        factor = tl.load(factor + row)
        above = tl.zeros((RANKED, COLUMNS), tl.int32)
        close = tl.zeros((RANKED, COLUMNS), tl.int32)
        before = tl.zeros((RANKED, COLUMNS), tl.int32)
        for step in range(STEPS):
            other = (tl.program_id(1) * STEPS + step) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
            is_column = other < num_columns
            score = tl.load(scores + row * stride + other, mask=is_column, other=float("-inf"))
            error = factor * tl.load(norm + other, mask=is_column, other=0.0)
            is_above = score - error > high
            is_close = (score + error >= low) & (score - error <= high) & is_column
            if FINDS:
                is_other = is_close & (other != own)
                flags = is_other.to(tl.int64)
                num = tl.sum(flags, axis=1)
                first = tl.atomic_add(place + number, num, mask=is_ranked & (num > 0))
                at = out + first[:, None] + tl.cumsum(flags, axis=1) - 1
                tl.store(at, number[:, None], mask=is_other)
                tl.store(at + size, other, mask=is_other)
            else:
                above += is_above.to(tl.int32)
                close += is_close.to(tl.int32)
                before += (is_close & (other < own)).to(tl.int32)
        if not FINDS:
            tl.atomic_add(out + number, tl.sum(above, axis=1), mask=is_ranked)
            tl.atomic_add(out + size + number, tl.sum(close, axis=1), mask=is_ranked)
            tl.atomic_add(out + 2 * size + number, tl.sum(before, axis=1), mask=is_ranked)
