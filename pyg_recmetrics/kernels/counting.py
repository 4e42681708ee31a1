"""All ranks of few items among many, without sorting: the kernel counts what scores higher."""

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.kernels.ranks import Ranks
from pyg_recmetrics.kernels.scratch import Scratch

#: How many comparisons are done at once, so that their results stay in the cache of a processor.
NUM_COMPARISONS = 2**19

#: How many columns form a strip. Ties are counted in each strip, to know how many are in front.
STRIP = 256

#: How many strips are looked at together: the scores of a row stay in the nearest cache.
STRIPS_AT_ONCE = 8


def count_ranks(scores: Tensor, row: Tensor, column: Tensor, scratch: Scratch) -> Ranks:
    """Ranks some columns of each row by counting what scores higher, and what scores the same.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`. A column that must not
            be counted holds `-inf`.
        row (torch.Tensor): The rows of what is ranked, of shape `[num_ranked]`.
        column (torch.Tensor): The columns of what is ranked, of shape `[num_ranked]`.
        scratch (Scratch): The buffers to compute in.
    """
    own = scores[row, column]
    if scores.device.type == "cpu":
        slot = _slots(row, scores.size(0))
        num_slots = int(slot.max()) + 1 if row.numel() > 0 else 0
        limit = own.new_full((scores.size(0), num_slots), torch.inf)
        limit[row, slot] = own
        counts = _count_in_strips(scores, None, limit, scratch)
        num_above, num_equal = (count[row, slot] for count in counts)
    else:  # to put what is ranked side by side, the host would have to wait for its number
        counts = _count_in_strips(scores, row, own.unsqueeze(1), scratch)
        num_above, num_equal = (count.squeeze(1) for count in counts)
    strip = torch.arange(num_equal.size(1), device=row.device)
    is_in_front = strip < (column // STRIP).unsqueeze(1)
    num_before = num_equal.masked_fill(~is_in_front, 0).sum(dim=1)
    num_before += _count_ties_in_strip(scores, row, column, own)
    num_above = num_above.sum(dim=1)
    # A column ties with itself.
    return Ranks(1 + num_above + num_before, num_above, num_equal.sum(dim=1) - 1)


def _slots(row: Tensor, num_rows: int) -> Tensor:
    """Numbers the entries of each row."""
    row, order = row.sort(stable=True)
    number = torch.arange(row.numel(), device=row.device) - index2ptr(row, num_rows)[row]
    return torch.empty_like(row).scatter_(0, order, number)


def _count_in_strips(
    scores: Tensor, row: Tensor | None, limit: Tensor, scratch: Scratch
) -> tuple[Tensor, Tensor]:
    """Counts the scores above limits, and those equal to them, in every strip of columns.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`.
        row (torch.Tensor or None): The rows to look at; `None` for all of them.
        limit (torch.Tensor): The limits of each of these rows, of shape `[num_rows, num_limits]`.
        scratch (Scratch): The buffers to compute in.

    Returns:
        The counts, of shape `[num_rows, num_limits, num_strips]` each.
    """
    num_rows, num_limits = limit.shape
    num_strips = -(-scores.size(1) // STRIP)
    shape = (num_rows, num_limits, num_strips)
    num_above, num_equal = (
        torch.empty(shape, dtype=torch.long, device=scores.device) for _ in range(2)
    )
    rows_at_once = max(1, NUM_COMPARISONS // (max(1, num_limits) * STRIPS_AT_ONCE * STRIP))
    for first in range(0, num_strips, STRIPS_AT_ONCE):
        part = scores[:, first * STRIP : (first + STRIPS_AT_ONCE) * STRIP]
        strips = slice(first, first + -(-part.size(1) // STRIP))
        for start in range(0, num_rows, rows_at_once):
            rows = slice(start, start + rows_at_once)
            others = (part[rows] if row is None else part[row[rows]]).unsqueeze(1)
            limits = limit[rows].unsqueeze(2)
            # As numbers instead of booleans, the results are several times faster to sum.
            shape = (*limits.shape[:2], (strips.stop - first) * STRIP)
            flags = scratch("counting.flags", shape, scores.dtype)
            flags[:, :, part.size(1) :] = 0
            for compare, count in ((torch.gt, num_above), (torch.eq, num_equal)):
                compare(others, limits, out=flags[:, :, : part.size(1)])
                count[rows, :, strips] = flags.unflatten(2, (-1, STRIP)).sum(dim=3)
    return num_above, num_equal


def _count_ties_in_strip(scores: Tensor, row: Tensor, column: Tensor, own: Tensor) -> Tensor:
    """Counts the ties in front of a column, from the start of the strip that it lies in."""
    before = (column // STRIP * STRIP).unsqueeze(1) + torch.arange(STRIP, device=scores.device)
    is_before = before < column.unsqueeze(1)
    others = scores[row.unsqueeze(1), before.clamp_(max=scores.size(1) - 1)]
    return ((others == own.unsqueeze(1)) & is_before).sum(dim=1)


def count_above_and_tied(
    scores: Tensor, row: Tensor, own: Tensor, scratch: Scratch
) -> tuple[Tensor, Tensor]:
    """Counts in each of some rows the scores above `own`, and those equal to it: `[num_ranked]`."""
    num_above, num_tied = [], []
    rows_at_once = max(1, NUM_COMPARISONS // scores.size(1))
    for rows, limit in zip(row.split(rows_at_once), own.split(rows_at_once), strict=True):
        shape = (rows.numel(), scores.size(1))
        others = scratch("counting.others", shape, scores.dtype)
        torch.index_select(scores, 0, rows, out=others)
        # As numbers instead of booleans, the results are several times faster to sum.
        is_true = scratch("counting.is_true", shape, scores.dtype)
        num_above.append(torch.gt(others, limit.unsqueeze(1), out=is_true).sum(dim=1))
        num_tied.append(torch.eq(others, limit.unsqueeze(1), out=is_true).sum(dim=1))
    return torch.cat(num_above).long(), torch.cat(num_tied).long()


def count_ties_before(scores: Tensor, row: Tensor, column: Tensor, own: Tensor) -> Tensor:
    """Counts the columns in front of a column that score `own`.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`.
        row (torch.Tensor): The rows of what is ranked, of shape `[num_ranked]`.
        column (torch.Tensor): The columns of what is ranked, of shape `[num_ranked]`.
        own (torch.Tensor): Their scores, of shape `[num_ranked]`.

    Returns:
        The counts, of shape `[num_ranked]`.
    """
    counts = [torch.zeros(0, dtype=torch.long, device=row.device)]
    columns = torch.arange(scores.size(1), device=row.device)
    rows_at_once = max(1, NUM_COMPARISONS // scores.size(1))
    parts = (values.split(rows_at_once) for values in (row, column, own))
    for some_rows, some_columns, some_own in zip(*parts, strict=True):
        is_before = columns < some_columns.unsqueeze(1)
        is_tie = scores[some_rows] == some_own.unsqueeze(1)
        counts.append((is_tie & is_before).sum(dim=1))
    return torch.cat(counts)
