"""All ranks of few items among many, without sorting: the kernel counts what scores higher."""

import torch
from torch import Tensor

from pyg_recmetrics.kernels.scratch import Scratch

#: How many comparisons are done at once, so that their results stay in the cache of a processor.
NUM_COMPARISONS = 2**19


def count_ranks(scores: Tensor, row: Tensor, column: Tensor, scratch: Scratch) -> Tensor:
    """Ranks some columns of each row by counting what scores higher.

    Equal scores rank the lower column first: a column in front counts if it scores as high or
    higher, a column behind counts only if it scores higher.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`. A column that must not
            be counted holds `-inf`.
        row (torch.Tensor): The rows of what is ranked, of shape `[num_ranked]`.
        column (torch.Tensor): The columns of what is ranked, of shape `[num_ranked]`.
        scratch (Scratch): The buffers to compute in.

    Returns:
        The 1-based ranks, of shape `[num_ranked]`.
    """
    own = scores[row, column]
    # What is above the next smaller number is as high or higher.
    below_own = own.nextafter(torch.full_like(own, -torch.inf))
    rank = torch.ones_like(row)
    num_columns = scores.size(1)
    width = max(1, min(num_columns, NUM_COMPARISONS // max(1, row.numel())))
    for start in range(0, num_columns, width):
        end = min(start + width, num_columns)
        threshold = torch.where(column >= end, below_own, own)
        rank += count_above(scores[:, start:end], row, threshold, scratch)
    return rank + _count_ties_in_strip(scores, row, column, own.unsqueeze(1), width)


def count_above(scores: Tensor, row: Tensor, threshold: Tensor, scratch: Scratch) -> Tensor:
    """Counts the scores above a threshold in each of some rows: `[num_thresholds]`."""
    counts = []
    rows_at_once = max(1, NUM_COMPARISONS // scores.size(1))
    for rows, thresholds in zip(
        row.split(rows_at_once), threshold.split(rows_at_once), strict=True
    ):
        shape = (rows.numel(), scores.size(1))
        others = scratch("count_above.others", shape, scores.dtype)
        torch.index_select(scores, 0, rows, out=others)
        # As numbers instead of booleans, the results are several times faster to sum.
        is_above = scratch("count_above.is_above", shape, scores.dtype)
        torch.gt(others, thresholds.unsqueeze(1), out=is_above)
        counts.append(is_above.sum(dim=1))
    return torch.cat(counts).long()


def count_ties_before(scores: Tensor, row: Tensor, column: Tensor, own: Tensor) -> Tensor:
    """Counts the columns in front of a column that score `own`, and never the column itself.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`.
        row (torch.Tensor): The rows of what is ranked, of shape `[num_ranked]`.
        column (torch.Tensor): The columns of what is ranked, of shape `[num_ranked]`.
        own (torch.Tensor): Their scores, which may be rounded differently from those in `scores`.

    Returns:
        The counts, of shape `[num_ranked]`. A count is one too low, by intention, where rounding
        puts a column above itself, so that it makes up for that in :func:`count_above`.
    """
    counts = [torch.zeros(0, dtype=torch.long, device=row.device)]
    columns = torch.arange(scores.size(1), device=row.device)
    rows_at_once = max(1, NUM_COMPARISONS // scores.size(1))
    parts = (values.split(rows_at_once) for values in (row, column, own))
    for some_rows, some_columns, some_own in zip(*parts, strict=True):
        is_before = columns < some_columns.unsqueeze(1)
        is_tie = scores[some_rows] == some_own.unsqueeze(1)
        is_own_above = scores[some_rows, some_columns] > some_own
        counts.append((is_tie & is_before).sum(dim=1) - is_own_above.long())
    return torch.cat(counts)


def _count_ties_in_strip(
    scores: Tensor, row: Tensor, column: Tensor, own: Tensor, width: int
) -> Tensor:
    """Counts the ties in front of a column, from the start of the strip that it lies in."""
    offset = torch.arange(width, device=scores.device)
    start = column // width * width
    before = start.unsqueeze(1) + offset
    is_before = before < column.unsqueeze(1)
    others = scores[row.unsqueeze(1), before.clamp_(max=scores.size(1) - 1)]
    return ((others == own) & is_before).sum(dim=1)
