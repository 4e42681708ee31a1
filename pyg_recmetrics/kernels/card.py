"""One kernel for a card: it reads stored scores, and counts or lists those around what is ranked.

A card compares as fast as it reads. So each program compares the scores of some columns with a few
neighbours among what is ranked, which mostly are of one row: that row is read from memory once.
"""

# Triton reads annotations, which are left as they are until it is there.
from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

#: The language of the kernel. Triton comes with torch for CUDA on Linux, and takes long to import.
tl: Any = None

#: How many ranked items a program compares with how many columns at once, and how many times.
_TOGETHER, _WIDTH, _STEPS = 4, 512, 16

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


@cache
def has_kernel(device: torch.device) -> bool:
    """Returns whether the kernel runs on a device."""
    return device.type == "cuda" and find_spec("triton") is not None


def count(scores: Tensor, ranked: Ranked, error: Error | None) -> Tensor:
    """See :func:`pyg_recmetrics.kernels.exact.ranks.count_around`."""
    counts = torch.zeros((3, ranked.row.numel()), dtype=torch.int32, device=scores.device)
    _launch(scores, ranked, error, counts, counts, finds=False)
    return counts.long()


def find(scores: Tensor, ranked: Ranked, error: Error | None, num: Tensor, total: int) -> Tensor:
    """See :func:`pyg_recmetrics.kernels.exact.ranks.find_around`."""
    pairs = num.new_empty((2, total))
    _launch(scores, ranked, error, pairs, num.cumsum(0).sub_(num), finds=True)
    return pairs


def _launch(
    scores: Tensor, ranked: Ranked, error: Error | None, out: Tensor, place: Tensor, finds: bool
) -> None:
    num_ranked, num_columns = ranked.row.numel(), scores.size(1)
    if num_ranked == 0:
        return
    pairs, ends = torch.stack(ranked[:2]), torch.stack(ranked[2:])
    factor, norm = map(scores.new_zeros, scores.shape) if error is None else error
    grid = (-(-num_ranked // _TOGETHER), -(-num_columns // (_WIDTH * _STEPS)))
    sizes = scores.stride(0), num_columns, num_ranked, out.size(1)
    tensors = pairs, ends, factor, norm, out, place
    with torch.cuda.device_of(scores):
        # Two numbers are rounded apart from each other, as in torch.
        options = {"enable_fp_fusion": False}
        _kernel()[grid](scores, *sizes, *tensors, finds, _TOGETHER, _WIDTH, _STEPS, **options)


@cache
def _kernel() -> Any:
    global tl
    import triton
    import triton.language as tl

    return triton.jit(_around)


def _around(  # type: ignore
    scores,
    stride,
    num_columns,
    num_ranked,
    size,
    pairs,
    ends,
    factors,
    norms,
    out,
    place,
    finds: tl.constexpr,
    together: tl.constexpr,
    width: tl.constexpr,
    steps: tl.constexpr,
):
    number = tl.program_id(0) * together + tl.arange(0, together)
    is_ranked = number < num_ranked
    # A row is numbered in 64 bits, as a matrix may have more scores than 32 bits can number.
    row = tl.load(pairs + number, mask=is_ranked, other=0)[:, None]
    own = tl.load(pairs + num_ranked + number, mask=is_ranked, other=0)[:, None]
    low = tl.load(ends + number, mask=is_ranked, other=float("inf"))[:, None]
    high = tl.load(ends + num_ranked + number, mask=is_ranked, other=float("inf"))[:, None]
    factor = tl.load(factors + row)
    if tl.min(tl.min(low, axis=1), axis=0) < float("inf"):
        above = tl.zeros((together, width), tl.int32)
        close = tl.zeros((together, width), tl.int32)
        before = tl.zeros((together, width), tl.int32)
        for step in range(steps):
            other = (tl.program_id(1) * steps + step) * width + tl.arange(0, width)[None, :]
            is_column = other < num_columns
            score = tl.load(scores + row * stride + other, mask=is_column, other=float("-inf"))
            error = factor * tl.load(norms + other, mask=is_column, other=0.0)
            is_above = score - error > high
            is_close = (score + error >= low) & (score - error <= high) & is_column
            if finds:
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
        if not finds:
            tl.atomic_add(out + number, tl.sum(above, axis=1), mask=is_ranked)
            tl.atomic_add(out + size + number, tl.sum(close, axis=1), mask=is_ranked)
            tl.atomic_add(out + 2 * size + number, tl.sum(before, axis=1), mask=is_ranked)
