"""All ranks of few items among many, without sorting: the kernel counts what scores higher."""

from collections.abc import Iterable

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch, at_once
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.ranks import Ranks

#: How many comparisons are done at once, so that their results stay in the cache of a processor.
#: Single precision counts as many without an error.
NUM_COMPARISONS = 2**18


def count_ranks(
    tiles: Iterable[tuple[int, Tensor]], ranked: Entries, own: Tensor, scratch: Scratch
) -> Ranks:
    """Ranks some columns of each row by counting what scores higher, and what scores the same.

    Args:
        tiles (iterable): The scores `[num_rows, num_columns]` of some columns after the other, each
            with the first of these columns. A column that must not be counted holds `-inf`.
        ranked (Entries): The rows and the columns of what is ranked.
        own (torch.Tensor): The scores of what is ranked, of shape `[num_ranked]`.
        scratch (Scratch): The buffers to compute in.
    """
    counts = torch.zeros((3, own.numel()), dtype=torch.long, device=own.device)
    for first, scores in tiles:
        for part in scores.split(NUM_COMPARISONS, dim=1):
            counts += _count(part, ranked.row, own, ranked.column - first, scratch)
            first += part.size(1)
    num_above, num_equal, num_before = counts
    # A column ties with itself.
    return Ranks(1 + num_above + num_before, num_above, num_equal - 1)


def _count(scores: Tensor, row: Tensor, own: Tensor, end: Tensor, scratch: Scratch) -> Tensor:
    """Counts what scores higher than `own`, the same, and the same in front of a column `end`."""
    columns = torch.arange(scores.size(1), dtype=scores.dtype, device=scores.device)
    counts = torch.empty((3, row.numel()), dtype=torch.long, device=scores.device)
    at_a_time = max(1, at_once(NUM_COMPARISONS, scores.device) // scores.size(1))
    for start in range(0, row.numel(), at_a_time):
        part = slice(start, start + at_a_time)
        limit, shape = own[part].unsqueeze(1), (row[part].numel(), scores.size(1))
        others, flags = (scratch(f"counting.{x}", shape, scores.dtype) for x in ("others", "flags"))
        torch.index_select(scores, 0, row[part], out=others)
        # As numbers instead of booleans, the results are several times faster to sum.
        counts[0, part] = torch.gt(others, limit, out=flags).sum(dim=1)
        counts[1, part] = torch.eq(others, limit, out=flags).sum(dim=1)
        is_before = torch.lt(columns, end[part].unsqueeze(1), out=others)
        counts[2, part] = flags.mul_(is_before).sum(dim=1)
    return counts
