"""The ranks of few columns of a score matrix, without sorting it."""

import torch
from torch import Tensor

from pyg_recmetrics.topk import Scratch

#: How many comparisons are done at once: their results shall stay in the cache of a processor.
NUM_COMPARISONS = 2**19


def count_ranks(scores: Tensor, row: Tensor, column: Tensor, scratch: Scratch) -> Tensor:
    """Ranks some columns of each row by counting what scores higher.

    Equal scores rank the lower column first: the columns before it are counted if they score as
    high or higher, those behind it only if they score higher.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`. What must not be counted
            holds `-inf`.
        row (torch.Tensor): The rows of what is ranked, of shape `[num_ranked]`.
        column (torch.Tensor): The columns of what is ranked, of shape `[num_ranked]`.
        scratch (Scratch): Where to keep what is needed on the way.

    Returns:
        The 1-based ranks, of shape `[num_ranked]`.
    """
    own = scores[row, column].unsqueeze(1)
    # What is above the next smaller number is as high or higher.
    below_own = own.nextafter(torch.full_like(own, -torch.inf))
    rank = torch.ones_like(row)
    num_columns = scores.size(1)
    width = max(1, min(num_columns, NUM_COMPARISONS // max(1, row.numel())))
    for start in range(0, num_columns, width):
        end = min(start + width, num_columns)
        shape = (row.numel(), end - start)
        others = scratch("others", shape, scores.dtype)
        torch.index_select(scores[:, start:end], 0, row, out=others)
        threshold = torch.where(column.unsqueeze(1) >= end, below_own, own)
        # As numbers instead of booleans, the results are several times faster to sum.
        is_above = torch.gt(others, threshold, out=scratch("is_above", shape, scores.dtype))
        rank += is_above.sum(dim=1).long()
    return rank + _ties_within(scores, row, column, own, width)


def _ties_within(scores: Tensor, row: Tensor, column: Tensor, own: Tensor, width: int) -> Tensor:
    """Counts equal scores before a column, from the start of the stretch that it lies in."""
    place = torch.arange(width, device=scores.device)
    start = column // width * width
    before = start.unsqueeze(1) + place
    is_before = before < column.unsqueeze(1)
    others = scores[row.unsqueeze(1), before.clamp_(max=scores.size(1) - 1)]
    return ((others == own) & is_before).sum(dim=1)
