r"""The first of each user's ranking, from a product of all scores that stays in the caches.

Where there are few items, most of the time of a search goes to its many steps, and not to the
product. This way has few steps. It computes all scores of some users in single precision, each
within a bound :math:`\alpha` of the exact one (:mod:`~pyg_recmetrics.kernels.fast.bounds`), and
compares relevant items with all others: a score that is more than :math:`2 \alpha` higher ranks
above, one that is more than :math:`2 \alpha` lower ranks below. The few that lie between are
*close*, and are compared by their exact scores.

If users have many relevant items, most of these are out of reach, and need no comparisons. The
scores of a user are cut into blocks. If the largest scores of as many blocks as the user's depth
are at least :math:`t`, then all items below :math:`t - 2 \alpha` rank beyond the depth. The others
are compared with those scores only that reach the lowest of them.

**An example.** A user is ranked down to the first two of eight items, with :math:`\alpha = 0.01`.
The scores are 0.90, 0.50, 0.75, 0.30, 0.20, 0.74, 0.57 and 0.10, in four blocks: 0 and 4, 1 and 5,
2 and 6, 3 and 7. Their largest scores are 0.90, 0.74, 0.75 and 0.30, so :math:`t = 0.75`. If items
5 and 6 are relevant, item 6 is out of reach. The scores 0.90, 0.75 and 0.74 reach that of item 5.
The first of them surely ranks above it. The second is close, so two exact scores decide whether
item 5 has rank two or three.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import at_once
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.factors import ItemFactors
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.fast.bounds import (
    ErrorBound,
    error_in_single,
    error_of_product,
    largest_norms,
    rounding_in_single,
)
from pyg_recmetrics.kernels.fast.nth_largest import nth_largest
from pyg_recmetrics.kernels.fast.rank_counting import UserItems
from pyg_recmetrics.kernels.scratch import Scratch

#: How many scores are computed at once. Fewer of them would stay in nearer caches, but there would
#: be more steps.
NUM_SCORES = 2**21

#: How many comparisons are done at once.
NUM_COMPARISONS = 2**20

#: All relevant items are compared with all scores if these are at most so many comparisons for each
#: user. With more of them, it takes less time to find out first what is within reach.
MAX_COMPARISONS_OF_USER = 2**12

#: The number of blocks is a multiple of this one, so that a processor finds their maxima together,
#: and at least so many times the depth, since some blocks hold several of the best items.
_BLOCKS_TOGETHER, _BLOCKS_PER_POSITION = 64, 2

#: So many flags are looked at together, as one integer.
_FLAGS_IN_WORD = 8

#: Two scores are close if they differ by no more than so many bounds, see
#: :mod:`~pyg_recmetrics.kernels.fast.searching`.
_BOUNDS_IF_CLOSE = 2.001

#: How many items may matter to a user: so many per position, and some more. A user with more is
#: left unsettled. These numbers decide about time and memory alone, and not about ranks.
_FOUND_PER_POSITION, _SPARE_FOUND = 4, 64

#: Returns the exact scores of pairs of a row and a column, of shape `[num_pairs]`.
Exactly = Callable[[Tensor, Tensor], Tensor]


class _Relevant(NamedTuple):
    """What is ranked, of shape `[num_ranked]` each.

    Attributes:
        row: The rows, which stay what they are.
        column: The columns.
        low: Scores below this one are surely lower.
        high: Scores above this one are surely higher.
    """

    row: Tensor
    column: Tensor
    low: Tensor
    high: Tensor

    def of(self, index: Tensor | slice) -> "_Relevant":
        return _Relevant(*(values[index] for values in self))


class _Others(NamedTuple):
    """What is compared with what is ranked, side by side.

    Attributes:
        score: The scores of shape `[?, num_others]`; `-inf` for none.
        entries: The columns that they belong to, row by row; `None` if all are in order.
    """

    score: Tensor
    entries: Entries | None

    def column(self, row: Tensor, slot: Tensor) -> Tensor:
        """Returns the columns of some scores."""
        return slot if self.entries is None else self.entries.column[self.entries.ptr[row] + slot]


class DirectRanking:
    """Ranks down to a depth by products of embeddings in single precision.

    Args:
        factors (ItemFactors): The embeddings of all items.
        candidates (torch.Tensor or None): The items that may be recommended, sorted, if not all
            may be.
    """

    def __init__(self, factors: ItemFactors, candidates: Tensor | None) -> None:
        self.factors, self.item = factors, candidates
        self.column: Tensor | None = None
        self.table = factors.single(slice(None) if candidates is None else candidates)
        self.num_columns = self.table.size(0)
        # What nobody may be recommended goes to one more column.
        self.width = width_of_scores(self.num_columns + (candidates is not None))
        if candidates is not None:
            self.column = torch.full((factors.num_items,), self.num_columns, device=factors.device)
            self.column[candidates] = torch.arange(self.num_columns, device=factors.device)
        self.norm = largest_norms(self.table).max()

    @property
    def num_rows(self) -> int:
        """How many users are ranked at once."""
        return max(1, at_once(NUM_SCORES, self.factors.device) // self.width)

    def error_of(self, user: Tensor) -> Tensor:
        """Returns the bound for users in single precision that are given as they are.

        Items need to be moderate (:class:`~pyg_recmetrics.kernels.exact.factors.ItemFactors`), and
        so do users.
        """
        return error_of_product(largest_norms(user), self.norm, user.size(1))

    def rounded(self, user: Tensor) -> tuple[Tensor, Tensor]:
        """Rounds the scaled embeddings of users, and returns them with their bound."""
        scaled = self.factors.for_single(user)
        single = scaled.float()
        # The exact score is rounded, too, and so is what scores are compared with.
        bound = ErrorBound(scaled, single, rounding_in_single(user.size(1) + 2))
        return single, bound.of(self.norm, error_in_single(self.norm))

    def ranks(
        self,
        user: Tensor,
        error: Tensor,
        depth: Tensor,
        max_depth: int,
        relevant: UserItems,
        seen: UserItems,
        exactly: Exactly,
        scratch: Scratch,
    ) -> tuple[Ranks, Tensor]:
        """Ranks the relevant items of some users.

        Args:
            user (torch.Tensor): The users in single precision, of shape `[num_rows, dim]`.
            error (torch.Tensor): Their bounds, of shape `[num_rows]`.
            depth (torch.Tensor): How deep each of them is ranked, of shape `[num_rows]`.
            max_depth (int): The largest of these.
            relevant (tuple): The rows and the items to rank, sorted by row.
            seen (tuple): The rows and the items that must not be retrieved.
            exactly (callable): Returns the exact scores of pairs of a row and an item.
            scratch (Scratch): The buffers to compute in.

        Returns:
            The ranks of the relevant items, and which users could not be settled, of shape
            `[num_rows]`. The ranks of these users are not valid.
        """
        shape = user.size(0), self.width
        scores = scratch("direct_ranking.scores", shape, torch.float32)
        torch.mm(user, self.table.t(), out=scores[:, : self.num_columns])
        scores[:, self.num_columns :] = -torch.inf
        (row, column), (seen_row, seen_column) = map(self._in_columns, (relevant, seen))
        scores.view(-1).index_fill_(0, seen_row * self.width + seen_column, -torch.inf)
        return rank_directly(
            scores, error, depth, max_depth, (row, column), self._by_column(exactly), scratch
        )

    def _by_column(self, exactly: Exactly) -> Exactly:
        item = self.item
        return exactly if item is None else lambda row, column: exactly(row, item[column])

    def _in_columns(self, pairs: UserItems) -> UserItems:
        row, item = pairs
        return row, item if self.column is None else self.column[item]


def width_of_scores(num_columns: int) -> int:
    """Returns how many columns a matrix of scores needs to have."""
    return -(-num_columns // _FLAGS_IN_WORD) * _FLAGS_IN_WORD


def rank_directly(
    scores: Tensor,
    error: Tensor,
    depth: Tensor,
    max_depth: int,
    relevant: tuple[Tensor, Tensor],
    exactly: Exactly,
    scratch: Scratch,
) -> tuple[Ranks, Tensor]:
    """Ranks some columns of each row; equal exact scores by the lower column.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, width]`, see :func:`width_of_scores`. A
            column that must not be retrieved holds `-inf`.
        error (torch.Tensor): How far the scores of each row can be from the exact ones, of shape
            `[num_rows]`, in double precision. It also covers the rounding of a sum of a score and
            a few bounds to the type of the scores.
        depth (torch.Tensor): How deep each row is ranked, of shape `[num_rows]`.
        max_depth (int): The largest of these.
        relevant (tuple): The rows and the columns to rank, sorted by row, of shape `[num_ranked]`.
            Their scores are finite.
        exactly (callable): Returns exact scores.
        scratch (Scratch): The buffers to compute in.

    Returns:
        The ranks, and which rows could not be settled, of shape `[num_rows]`. The ranks of these
        rows are not valid.
    """
    row, column = relevant
    own = scores.view(-1).index_select(0, row * scores.size(1) + column)
    margin = error.mul(_BOUNDS_IF_CLOSE).to(scores.dtype)
    is_unsettled = torch.zeros_like(depth, dtype=torch.bool)
    if row.numel() * scores.size(1) <= MAX_COMPARISONS_OF_USER * depth.numel():
        margin = margin[row]
        ranked = _Relevant(row, column, own - margin, own + margin)
        return _ranks_among(_Others(scores, None), row, ranked, exactly, scratch), is_unsettled
    lowest = _reached(scores, depth, max_depth) - margin
    edge = (own >= lowest[row]).nonzero().squeeze(1)
    rows, place = row[edge].unique_consecutive(return_inverse=True)
    own, margin = own[edge], margin[row[edge]]
    ranked = _Relevant(row[edge], column[edge], own - margin, own + margin)
    threshold = own.new_full(rows.shape, torch.inf).scatter_reduce_(0, place, ranked.low, "amin")
    found, score = _find(scores, rows, threshold, scratch)
    is_crowded = found.ptr.diff() > _FOUND_PER_POSITION * depth[rows] + _SPARE_FOUND
    is_unsettled[rows] = is_crowded
    if bool(is_crowded.any()):
        # One row with many scores would make all others as long.
        is_left = (~is_crowded[found.row]).nonzero().squeeze(1)
        found = Entries(found.row[is_left], found.column[is_left], rows.numel())
        score = score[is_left]
    others = _Others(found.side_by_side(score, -torch.inf), found)
    ranks = Ranks.unknown(column)
    ranks.update(edge, _ranks_among(others, place, ranked, exactly, scratch))
    return ranks, is_unsettled


def _reached(scores: Tensor, depth: Tensor, max_depth: int) -> Tensor:
    """Returns a score that as many columns of a row reach as it is deep, of shape `[num_rows]`."""
    num_blocks = -(-_BLOCKS_PER_POSITION * max_depth // _BLOCKS_TOGETHER) * _BLOCKS_TOGETHER
    maxima, block_size = scores, scores.size(1) // num_blocks
    if block_size > 1:
        end = block_size * num_blocks
        maxima = scores[:, :end].unflatten(1, (block_size, num_blocks)).amax(dim=1)
        rest = scores[:, end:]
        with_rest = maxima[:, : rest.size(1)]
        torch.maximum(with_rest, rest, out=with_rest)
    reached = nth_largest(maxima, depth, max_depth)
    return reached.masked_fill_(depth > maxima.size(1), -torch.inf)


def _find(
    scores: Tensor, rows: Tensor, threshold: Tensor, scratch: Scratch
) -> tuple[Entries, Tensor]:
    """Returns the columns of some rows that reach the threshold of their row, and their scores."""
    width = scores.size(1)
    part = scores if rows.numel() == scores.size(0) else scores.index_select(0, rows)
    flags = scratch("direct_ranking.flags", tuple(part.shape), torch.bool)
    torch.ge(part, threshold.unsqueeze(1), out=flags)
    # Nearly all flags are false. To look at several of them at once takes a fraction of the time.
    word = flags.view(torch.int64).view(-1).nonzero().squeeze(1)
    found, offset = flags.view(-1, _FLAGS_IN_WORD)[word].nonzero(as_tuple=True)
    place = word[found] * _FLAGS_IN_WORD + offset
    row = place.div(width, rounding_mode="floor")
    score = part.view(-1).index_select(0, place)
    return Entries(row, place - row * width, rows.numel()), score


def _ranks_among(
    others: _Others, place: Tensor, ranked: _Relevant, exactly: Exactly, scratch: Scratch
) -> Ranks:
    """Ranks what is relevant among other scores, which include its own.

    Args:
        others (_Others): The others, in as many rows as there are places.
        place (torch.Tensor): The row of the others that each is compared with: `[num_ranked]`.
        ranked (_Relevant): What is ranked.
        exactly (callable): Returns exact scores.
        scratch (Scratch): The buffers to compute in.
    """
    counts = []
    for part in _slices(max(1, place.numel()), NUM_COMPARISONS // max(1, others.score.size(1))):
        score = others.score.index_select(0, place[part])
        # As numbers instead of booleans, the results are several times faster to make and to sum.
        flags = scratch("direct_ranking.numbers", tuple(score.shape), score.dtype)
        above = torch.gt(score, ranked.high[part].unsqueeze(1), out=flags).sum(dim=1)
        not_below = torch.ge(score, ranked.low[part].unsqueeze(1), out=flags).sum(dim=1)
        counts.append(torch.stack([above, not_below]))
    num_above, num_not_below = torch.cat(counts, dim=1).long()
    ranks = Ranks(num_above + 1, num_above, torch.zeros_like(place))
    # What is ranked is not below itself.
    is_open = (num_not_below > num_above + 1).nonzero().squeeze(1)
    for part in _slices(is_open.numel(), NUM_COMPARISONS // max(1, others.score.size(1))):
        index = is_open[part]
        score = others.score.index_select(0, place[index])
        left = ranked.of(index)
        is_close = (score >= left.low.unsqueeze(1)) & (score <= left.high.unsqueeze(1))
        number, slot = is_close.nonzero(as_tuple=True)
        column = others.column(place[index][number], slot)
        ranks.update(index, _settled(num_above[index], left, number, column, exactly))
    return ranks


def _settled(
    num_above: Tensor, ranked: _Relevant, number: Tensor, column: Tensor, exactly: Exactly
) -> Ranks:
    """Ranks what is relevant by the exact scores of what is close to it.

    Args:
        num_above (torch.Tensor): How many others are surely above each, of shape `[num_ranked]`.
        ranked (_Relevant): What is ranked.
        number (torch.Tensor): Which of them something is close to, of shape `[num_close]`.
        column (torch.Tensor): The columns of what is close.
        exactly (callable): Returns exact scores.
    """
    score = exactly(ranked.row[number], column)
    is_own = column == ranked.column[number]
    # Everything is close to itself.
    own = score[is_own.nonzero().squeeze(1)][number]
    is_tied = score == own
    above, tied, before = (
        torch.zeros_like(num_above).scatter_add_(0, number, flags.long())
        for flags in (score > own, is_tied, is_tied & (column < ranked.column[number]))
    )
    num_above = num_above + above
    return Ranks(1 + num_above + before, num_above, tied - 1)


def _slices(size: int, step: int) -> Iterator[slice]:
    step = max(1, step)
    return (slice(start, start + step) for start in range(0, size, step))
