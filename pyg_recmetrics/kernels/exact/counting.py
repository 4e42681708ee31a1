"""All ranks of few items among many, without sorting: the kernel counts what scores higher."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from pyg_recmetrics.kernels import card
from pyg_recmetrics.kernels.card import Error, Ranked
from pyg_recmetrics.kernels.devices import Scratch, at_once
from pyg_recmetrics.kernels.entries import UserItems, in_parts
from pyg_recmetrics.kernels.exact.ranks import Ranks

#: How many comparisons are done at once, so that their results stay in the cache of a processor.
#: Single precision counts as many without an error.
NUM_COMPARISONS = 2**18


def count_ranks(
    tiles: Iterable[tuple[int, Tensor]], ranked: UserItems, own: Tensor, scratch: Scratch
) -> Ranks:
    """Ranks some columns of each row by counting what scores higher, and what scores the same.

    Args:
        tiles (iterable): The scores `[num_rows, num_columns]` of some columns after the other, each
            with the first of these columns. A column that must not be counted holds `-inf`.
        ranked (tuple): The rows and the columns of what is ranked, sorted by row.
        own (torch.Tensor): The scores of what is ranked, of shape `[num_ranked]`.
        scratch (Scratch): The buffers to compute in.
    """
    row, column = ranked
    counts = torch.zeros((3, own.numel()), dtype=torch.long, device=own.device)
    for first, scores in tiles:
        for part in scores.split(NUM_COMPARISONS, dim=1):
            counts += count_around(part, Ranked(row, column - first, own, own), None, scratch)
            first += part.size(1)
    num_above, num_equal, num_before = counts
    # A column ties with itself.
    return Ranks(1 + num_above + num_before, num_above, num_equal - 1)


def count_around(scores: Tensor, ranked: Ranked, error: Error | None, scratch: Scratch) -> Tensor:
    """Counts scores that are surely above the high ends, those between the ends, and some of these.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`. A column that must not be
            counted holds `-inf`.
        ranked (Ranked): What they are compared with.
        error (tuple, optional): How far they can be off. If it is `None`, both ends are the same.
        scratch (Scratch): The buffers to compute in.

    Returns:
        Counts of shape `[3, num_ranked]`: how many scores are above; how many may be between the
        ends, the own one among them; and how many of these are in front of the own column. The last
        may be missing if there is an error.
    """
    if card.has_kernel(scores.device):
        return card.count(scores, ranked, error)
    parts = []
    for part, lower, upper in _gathered(scores, ranked, error, scratch):
        flags = scratch("counting.flags", tuple(lower.shape), scores.dtype)
        # As numbers instead of booleans, the results are several times faster to sum.
        counts = [torch.gt(lower, part.high, out=flags).sum(dim=1)]
        if error is None:
            counts.append(torch.eq(upper, part.low, out=flags).sum(dim=1))
            columns = torch.arange(scores.size(1), dtype=scores.dtype, device=scores.device)
            counts.append(flags.mul_(torch.lt(columns, part.column, out=lower)).sum(dim=1))
        else:
            counts.append(torch.ge(upper, part.low, out=flags).sum(dim=1).sub_(counts[0]))
        parts.append(torch.stack(counts))
    return torch.cat(parts, dim=1).long()


def find_around(
    scores: Tensor, ranked: Ranked, error: Error | None, num: Tensor, total: int, scratch: Scratch
) -> Tensor:
    """Returns where the other scores are that may be between the ends, of shape `[2, total]`.

    These are the numbers of what is ranked, and columns, in any order.

    Args:
        scores (torch.Tensor): See :func:`count_around`.
        ranked (Ranked): See :func:`count_around`.
        error (tuple, optional): See :func:`count_around`.
        num (torch.Tensor): How many others were counted, of shape `[num_ranked]`; zero where none
            of them matters.
        total (int): Their sum.
        scratch (Scratch): The buffers to compute in.
    """
    ranked = ranked._replace(low=ranked.low.masked_fill(num == 0, torch.inf))
    if card.has_kernel(scores.device):
        return card.find(scores, ranked, error, num, total)
    columns, found, first = torch.arange(scores.size(1), device=scores.device), [], 0
    for part, lower, upper in _gathered(scores, ranked, error, scratch):
        is_close = (upper >= part.low) & (lower <= part.high) & (columns != part.column)
        number, column = is_close.nonzero(as_tuple=True)
        found.append(torch.stack([number + first, column]))
        first += part.row.numel()
    return torch.cat(found, dim=1)


def _gathered(
    scores: Tensor, ranked: Ranked, error: Error | None, scratch: Scratch
) -> Iterator[tuple[Ranked, Tensor, Tensor]]:
    """Yields the least and the largest scores of the rows of some ranked items after the other."""
    at_a_time = max(1, at_once(NUM_COMPARISONS, scores.device) // scores.size(1))
    for row, *at in in_parts(at_a_time, *ranked):
        part = Ranked(row, *(values.unsqueeze(1) for values in at))
        others = scratch("counting.others", (row.numel(), scores.size(1)), scores.dtype)
        torch.index_select(scores, 0, row, out=others)
        if error is None:
            yield part, others, others
        else:
            margin = error[0].index_select(0, row).unsqueeze(1) * error[1]
            yield part, others - margin, others + margin


def ranks_among_close(
    number: Tensor, other: Tensor, item: Tensor, score: Tensor, own: Tensor, num_above: Tensor
) -> Ranks:
    """Ranks items by comparing their exact scores with those of others that are close.

    Args:
        number (torch.Tensor): The numbers of what is ranked, of shape `[num_pairs]`.
        other (torch.Tensor): An item that is close to each, of the same shape.
        item (torch.Tensor): The item that is ranked, of the same shape.
        score (torch.Tensor): The exact score of the other item, of the same shape.
        own (torch.Tensor): The exact score of the item that is ranked, of the same shape.
        num_above (torch.Tensor): How many items are proved to score higher: `[num_ranked]`.
    """
    is_tied = score == own
    above, tied, before = (
        torch.zeros_like(num_above).scatter_add_(0, number, flags.long())
        for flags in (score > own, is_tied, is_tied & (other < item))
    )
    num_above = num_above + above
    return Ranks(1 + num_above + before, num_above, tied)
