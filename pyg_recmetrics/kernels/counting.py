"""All ranks of few items among many, without sorting: the kernel counts what scores higher."""

import torch
from torch import Tensor

from pyg_recmetrics.kernels.ranks import Ranks
from pyg_recmetrics.kernels.scratch import Scratch

#: How many comparisons are done at once, so that their results stay in the cache of a processor.
NUM_COMPARISONS = 2**19


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
    num_above, num_before = torch.zeros_like(row), torch.zeros_like(row)
    num_tied = torch.full_like(row, -1)  # since a column ties with itself
    num_columns = scores.size(1)
    width = max(1, min(num_columns, NUM_COMPARISONS // max(1, row.numel())))
    for start in range(0, num_columns, width):
        above, tied = count_above_and_tied(scores[:, start : start + width], row, own, scratch)
        num_above += above
        num_tied += tied
        num_before += tied.masked_fill_(column < start + width, 0)
    num_before += _count_ties_in_strip(scores, row, column, own.unsqueeze(1), width)
    return Ranks(1 + num_above + num_before, num_above, num_tied)


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
