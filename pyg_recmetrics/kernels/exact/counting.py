"""All ranks of few items among many, without sorting: the kernel counts what scores higher."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch, at_once
from pyg_recmetrics.kernels.entries import Entries, SortedRows, max_id
from pyg_recmetrics.kernels.exact.ranks import Ranks

#: How many comparisons are done at once, so that their results stay in the cache of a processor.
NUM_COMPARISONS = 2**19

#: How many columns form a strip. Ties are counted in each strip, to know how many are in front.
STRIP = 256

#: How many strips are looked at together: the scores of a row stay in the nearest cache.
STRIPS_AT_ONCE = 8

#: How many times as many places as entries there may be if entries are put side by side.
MAX_PLACES = 4


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
    counts = [torch.zeros_like(ranked.row) for _ in range(3)]
    for first, scores in tiles:
        end = (ranked.column - first).clamp_(0, scores.size(1))
        for count, in_tile in zip(counts, _count(scores, ranked, own, end, scratch), strict=True):
            count += in_tile
    num_above, num_equal, num_before = counts
    # A column ties with itself.
    return Ranks(1 + num_above + num_before, num_above, num_equal - 1)


def _count(
    scores: Tensor, ranked: SortedRows, own: Tensor, end: Tensor, scratch: Scratch
) -> tuple[Tensor, ...]:
    """Counts what scores higher than `own`, the same, and the same in front of a column `end`."""
    row = ranked.row
    if _fit_side_by_side(ranked):
        limit = ranked.side_by_side(own, torch.inf)
        strip = ranked.side_by_side(end // STRIP, 0)
        counts = _count_in_strips(scores, None, limit, strip, scratch)[:, row, ranked.slot]
    else:
        limit, strip = own.unsqueeze(1), (end // STRIP).unsqueeze(1)
        counts = _count_in_strips(scores, row, limit, strip, scratch).squeeze(2)
    num_above, num_equal, num_before = counts
    return num_above, num_equal, num_before + _count_ties_in_strip(scores, row, own, end)


def _fit_side_by_side(entries: SortedRows) -> bool:
    """Returns whether rows have about as many entries as the one with the most of them."""
    if entries.row.device.type != "cpu":  # the host would have to wait for their number
        return False
    num_places: int = (entries.ptr.numel() - 1) * (max_id(entries.slot) + 1)
    return num_places <= MAX_PLACES * entries.row.numel()


def _count_in_strips(
    scores: Tensor, row: Tensor | None, limit: Tensor, strip: Tensor, scratch: Scratch
) -> Tensor:
    """Counts the scores above limits, those equal to them, and these in front of a strip.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`.
        row (torch.Tensor or None): The rows to look at; `None` for all of them.
        limit (torch.Tensor): The limits of each of these rows, of shape `[num_rows, num_limits]`.
        strip (torch.Tensor): A strip for each limit.
        scratch (Scratch): The buffers to compute in.

    Returns:
        The counts, of shape `[3, num_rows, num_limits]`.
    """
    counts = torch.zeros((3, *limit.shape), dtype=torch.long, device=scores.device)
    max_columns = STRIPS_AT_ONCE * STRIP
    num_comparisons = at_once(NUM_COMPARISONS, scores.device)
    limits_at_once = max(1, min(limit.size(1), num_comparisons // max_columns))
    rows_at_once = max(1, num_comparisons // (limits_at_once * max_columns))
    for start in range(0, scores.size(1), max_columns):
        part = scores[:, start : start + max_columns]
        num_strips = -(-part.size(1) // STRIP)
        strips = torch.arange(num_strips, device=scores.device) + start // STRIP
        for rows in slices(limit.size(0), rows_at_once):
            others = (part[rows] if row is None else part[row[rows]]).unsqueeze(1)
            for columns in slices(limit.size(1), limits_at_once):
                limits = limit[rows, columns].unsqueeze(2)
                # As numbers instead of booleans, the results are several times faster to sum.
                shape = (*limits.shape[:2], num_strips * STRIP)
                flags = scratch("counting.flags", shape, scores.dtype)
                flags[:, :, part.size(1) :] = 0
                is_true = flags[:, :, : part.size(1)]
                torch.gt(others, limits, out=is_true)
                counts[0, rows, columns] += flags.sum(dim=2).long()
                torch.eq(others, limits, out=is_true)
                num_equal = flags.unflatten(2, (-1, STRIP)).sum(dim=3)
                counts[1, rows, columns] += num_equal.sum(dim=2).long()
                num_equal.masked_fill_(strips >= strip[rows, columns].unsqueeze(2), 0)
                counts[2, rows, columns] += num_equal.sum(dim=2).long()
    return counts


def _count_ties_in_strip(scores: Tensor, row: Tensor, own: Tensor, end: Tensor) -> Tensor:
    """Counts the ties in front of a column, from the start of the strip that it lies in.

    The column may be that behind the last one.
    """
    counts = [torch.zeros_like(row[:0])]
    strip = torch.arange(STRIP, device=scores.device)
    for rows in slices(row.numel(), max(1, at_once(NUM_COMPARISONS, row.device) // STRIP)):
        before = (end[rows] // STRIP * STRIP).unsqueeze(1) + strip
        is_before = before < end[rows].unsqueeze(1)
        others = scores[row[rows].unsqueeze(1), before.clamp_(max=scores.size(1) - 1)]
        counts.append(((others == own[rows].unsqueeze(1)) & is_before).sum(dim=1))
    return torch.cat(counts)


def slices(size: int, step: int) -> Iterator[slice]:
    """Returns slices of so many entries, which cover all."""
    step = max(1, step)
    return (slice(start, start + step) for start in range(0, size, step))
