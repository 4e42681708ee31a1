r"""The first of each user's ranking, from a product of all scores that stays in the caches.

Where there are few items, most of the time of a search goes to its many steps, and not to the
product. This way has few steps. It computes all scores of some users in single precision, each
within a bound :math:`\alpha` of the exact one (:mod:`~pyg_recmetrics.kernels.fast.rounded_items`),
and compares relevant items with all others: a score that is more than :math:`2 \alpha` higher ranks
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

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch, at_once
from pyg_recmetrics.kernels.entries import Entries, UserItems
from pyg_recmetrics.kernels.exact.counting import slices
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.exact.scores import ItemFactors
from pyg_recmetrics.kernels.fast.rounded_items import (
    ErrorBound,
    error_in_single,
    error_of_product,
    largest_norm,
    matrix_product,
    one_of_few_to,
    rounding_in_single,
)
from pyg_recmetrics.kernels.fast.searching import find_at_least, largest_values

#: How many scores are computed at once. Fewer of them would stay in nearer caches, but there would
#: be more steps.
NUM_SCORES = 2**21

#: Up to so many scores are computed in double precision, which takes no longer than to settle by
#: exact scores what is close in single precision.
NUM_SCORES_IN_DOUBLE = 2**15

#: How many comparisons are done at once.
NUM_COMPARISONS = 2**20

#: All relevant items are compared with all scores if these are at most so many comparisons for each
#: user. With more of them, it takes less time to find out first what is within reach.
MAX_COMPARISONS_OF_USER = 2**12

#: The scores of a user are cut into so many blocks, whose maxima a processor finds together; or
#: into more, until there are so many for each position. With as many blocks as positions, some
#: would hold several of the best items, and others none.
_NUM_BLOCKS, _BLOCKS_PER_POSITION = 64, 2

#: Scores can be cut into so many times as many blocks if a block then holds a few columns.
_MAX_SPLIT = 4

#: Two scores are close if they differ by no more than so many bounds, see
#: :mod:`~pyg_recmetrics.kernels.fast.searching`.
_BOUNDS_IF_CLOSE = 2.001

#: How many items may matter to a user: so many per position, and some more. A user with more is
#: left unsettled. These numbers decide about time and memory alone, and not about ranks.
_FOUND_PER_POSITION, _SPARE_FOUND = 4, 64

#: A user is left unsettled, too, if more pairs than so many for each column are close. To compute
#: the exact scores of all columns and to sort them takes as long.
_CLOSE_PER_COLUMN = 2

#: Returns the exact scores of pairs of a row and a column, of shape `[num_pairs]`.
Exactly = Callable[[Tensor, Tensor], Tensor]


class Cells(NamedTuple):
    """Some cells of a matrix, of shape `[num_cells]` each, sorted by row.

    Attributes:
        row: Their rows.
        column: Their columns.
        place: Where they are in the matrix, read row by row.
    """

    row: Tensor
    column: Tensor
    place: Tensor

    @classmethod
    def of(cls, row: Tensor, column: Tensor, width: int) -> "Cells":
        """Returns cells of a matrix of a given width."""
        return cls(row, column, row * width + column)


class RankedDirectly(NamedTuple):
    """The ranks of relevant items.

    Attributes:
        ranks: The ranks, of shape `[num_found]`.
        is_unsettled: Which rows could not be settled, of shape `[num_rows]`; `None` if all could.
        edge: Which of the relevant items the ranks are those of, none of an unsettled row; `None`
            for all of them. The others of a settled row are out of reach.
    """

    ranks: Ranks
    is_unsettled: Tensor | None = None
    edge: Tensor | None = None


class _Relevant(NamedTuple):
    """What is ranked, of shape `[num_ranked]` each.

    Attributes:
        row: The rows.
        column: The columns.
        low: Scores below this one are surely lower.
        high: Scores above this one are surely higher.
    """

    row: Tensor
    column: Tensor
    low: Tensor
    high: Tensor

    def of(self, index: Tensor | slice) -> "_Relevant":
        if isinstance(index, slice):
            return _Relevant(*(values[index] for values in self))
        # To index takes several times as long.
        return _Relevant(*(values.index_select(0, index) for values in self))


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


class _Counts(NamedTuple):
    """How many other scores of its row there are for each of what is ranked, `[num_ranked]` each.

    Attributes:
        num_above: How many are surely above it.
        num_close: How many are close to it.
    """

    num_above: Tensor
    num_close: Tensor

    def of(self, index: Tensor) -> "_Counts":
        return _Counts(*(values.index_select(0, index) for values in self))


class DirectRanking:
    """Ranks down to a depth by products of embeddings.

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
        self.width = width_of_scores(self.num_columns)
        if candidates is not None:
            # What nobody may be recommended has a column to the right of all others.
            self.width = width_of_scores(self.num_columns + 1)
            self.column = torch.full((factors.num_items,), self.num_columns, device=factors.device)
            self.column[candidates] = torch.arange(self.num_columns, device=factors.device)
        self.norm = largest_norm(self.table)
        if self.width > self.num_columns:
            self.table = F.pad(self.table, (0, 0, 0, self.width - self.num_columns))

    @property
    def num_rows(self) -> int:
        """How many users are ranked at once."""
        return max(1, one_of_few_to(at_once(NUM_SCORES, self.factors.device) // self.width))

    def given(self, user: Tensor) -> tuple[Tensor, Tensor]:
        """Returns users that are given in single precision, with the bounds of their products.

        Items need to be moderate (:class:`~pyg_recmetrics.kernels.exact.scores.ItemFactors`), and
        so do users.
        """
        if user.size(0) * self.width > NUM_SCORES_IN_DOUBLE:
            return user, error_of_product(user, self.norm, user.size(1) + 2)
        # All that matters is rounded once, which is the exact score.
        user = user.double()
        return user, error_of_product(user, self.norm, 1)

    def rounded(self, user: Tensor) -> tuple[Tensor, Tensor]:
        """Rounds the scaled embeddings of users, and returns them with the bounds of products."""
        scaled = self.factors.for_single(user)
        single = scaled.float()
        # The exact score is rounded, too, and so is what scores are compared with.
        bound = ErrorBound(scaled, single, rounding_in_single(user.size(1) + 2))
        return single, bound.of(self.norm, error_in_single(self.norm))

    def cells(self, pairs: UserItems) -> Cells:
        """Returns where the scores of some items are, given rows and items."""
        return Cells.of(pairs[0], self._column_of(pairs[1]), self.width)

    def ranks(
        self,
        user: Tensor,
        error: Tensor,
        depth: Tensor,
        max_depth: int,
        relevant: Cells,
        seen: Cells,
        exactly: Exactly,
        scratch: Scratch,
    ) -> RankedDirectly:
        """Ranks the relevant items of some users.

        Args:
            user (torch.Tensor): The users, of shape `[num_rows, dim]`, in the precision of the
                product.
            error (torch.Tensor): Their bounds, of shape `[num_rows]`.
            depth (torch.Tensor): How deep each of them is ranked, of shape `[num_rows]`.
            max_depth (int): The largest of these.
            relevant (Cells): The scores of the items to rank, see :meth:`cells`.
            seen (Cells): Those of the items that must not be retrieved.
            exactly (callable): Returns the exact scores of pairs of a row and an item.
            scratch (Scratch): The buffers to compute in.
        """
        table = self.table.to(user.dtype)
        scores = matrix_product(user, table, scratch, "direct_ranking.scores")
        scores[:, self.num_columns :].fill_(-torch.inf)
        scores.view(-1).index_fill_(0, seen.place, -torch.inf)
        by_column = self._by_column(exactly)
        return rank_directly(scores, error, depth, max_depth, relevant, by_column, scratch)

    def _by_column(self, exactly: Exactly) -> Exactly:
        item = self.item
        return exactly if item is None else lambda row, column: exactly(row, item[column])

    def _column_of(self, item: Tensor) -> Tensor:
        return item if self.column is None else self.column[item]


def width_of_scores(num_columns: int) -> int:
    """Returns how many columns a matrix of scores needs to have."""
    multiple = _NUM_BLOCKS * _MAX_SPLIT
    if num_columns < multiple:  # there are few blocks, whatever their size
        return num_columns
    if num_columns < _MAX_SPLIT * multiple:
        multiple = _NUM_BLOCKS
    return -(-num_columns // multiple) * multiple


def rank_directly(
    scores: Tensor,
    error: Tensor,
    depth: Tensor,
    max_depth: int,
    relevant: Cells,
    exactly: Exactly,
    scratch: Scratch,
) -> RankedDirectly:
    """Ranks some columns of each row; equal exact scores by the lower column.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, width]`, see :func:`width_of_scores`. A
            column that must not be retrieved holds `-inf`.
        error (torch.Tensor): How far the scores of each row can be from the exact ones, of shape
            `[num_rows]`, in double precision. It also covers the rounding of a sum of a score and
            a few bounds to the type of the scores.
        depth (torch.Tensor): How deep each row is ranked, of shape `[num_rows]`.
        max_depth (int): The largest of these.
        relevant (Cells): What to rank. Its scores are finite.
        exactly (callable): Returns exact scores.
        scratch (Scratch): The buffers to compute in.
    """
    row, column = relevant.row, relevant.column
    own = scores.view(-1).index_select(0, relevant.place)
    margin = error.mul(_BOUNDS_IF_CLOSE).to(scores.dtype)
    if row.numel() * scores.size(1) <= MAX_COMPARISONS_OF_USER * depth.numel():
        margin = margin.index_select(0, row)
        ranked = _Relevant(row, column, own - margin, own + margin)
        others = _Others(scores, None)
        return RankedDirectly(_ranks(others, ranked, _counts(others, ranked, scratch), exactly))
    blocks = _in_blocks(scores, max_depth)
    maxima = blocks.amax(dim=1)
    lowest = _reached(maxima, depth, max_depth) - margin
    edge = (own >= lowest.index_select(0, row)).nonzero().squeeze(1)
    row, column, own = (values.index_select(0, edge) for values in (row, column, own))
    margin = margin.index_select(0, row)
    ranked = _Relevant(row, column, own - margin, own + margin)
    # Rows of which nothing is within reach look for nothing.
    threshold = torch.full_like(lowest, torch.inf).scatter_reduce_(0, row, ranked.low, "amin")
    found, score = _find(blocks, maxima, threshold)
    is_crowded = found.ptr.diff() > _FOUND_PER_POSITION * depth + _SPARE_FOUND
    if bool(is_crowded.any()):
        # One row with many scores would make all others as long. Its counts are not used.
        left = _not_in(is_crowded, found.row)
        found, score = Entries(found.row[left], found.column[left], depth.numel()), score[left]
    others = _Others(found.side_by_side(score, -torch.inf), found)
    counts = _counts(others, ranked, scratch)
    num_close = torch.zeros_like(depth).index_add_(0, row, counts.num_close)
    is_unsettled = is_crowded | (num_close > _CLOSE_PER_COLUMN * scores.size(1))
    if not bool(is_unsettled.any()):
        return RankedDirectly(_ranks(others, ranked, counts, exactly), None, edge)
    left = _not_in(is_unsettled, row)
    ranks = _ranks(others, ranked.of(left), counts.of(left), exactly)
    return RankedDirectly(ranks, is_unsettled, edge[left])


def _not_in(is_row: Tensor, row: Tensor) -> Tensor:
    """Returns which entries are not in some rows."""
    return (~is_row).index_select(0, row).nonzero().squeeze(1)


def _in_blocks(scores: Tensor, max_depth: int) -> Tensor:
    """Returns scores in blocks of every so many columns: `[num_rows, block_size, num_blocks]`."""
    num_rows, width = scores.shape
    num_blocks = _NUM_BLOCKS
    while num_blocks < _BLOCKS_PER_POSITION * max_depth:
        num_blocks *= 2
    if width % num_blocks > 0:
        num_blocks = width
    return scores.view(num_rows, width // num_blocks, num_blocks)


def _reached(maxima: Tensor, depth: Tensor, max_depth: int) -> Tensor:
    """Returns a score that as many columns of a row reach as it is deep, of shape `[num_rows]`."""
    top = largest_values(maxima, max_depth)
    last = (depth - 1).clamp_(max=top.size(1) - 1).unsqueeze(1)
    return top.gather(1, last).squeeze(1).masked_fill_(depth > top.size(1), -torch.inf)


def _find(blocks: Tensor, maxima: Tensor, threshold: Tensor) -> tuple[Entries, Tensor]:
    """Returns the columns that reach the threshold of their row, and their scores."""
    row, block = find_at_least(maxima, threshold)
    score = blocks[row, :, block]
    found, offset = find_at_least(score, threshold.index_select(0, row))
    row, block = row.index_select(0, found), block.index_select(0, found)
    score = score.flatten().index_select(0, found * score.size(1) + offset)
    return Entries(row, offset * blocks.size(2) + block, threshold.numel()), score


def _counts(others: _Others, ranked: _Relevant, scratch: Scratch) -> _Counts:
    """Counts the other scores of its row, which include its own, for all that is ranked."""
    step = NUM_COMPARISONS // max(1, others.score.size(1))
    if ranked.row.numel() <= step:
        return _count(others.score, ranked, scratch)
    parts = slices(ranked.row.numel(), step)
    counts = [_count(others.score, ranked.of(part), scratch) for part in parts]
    return _Counts(*(torch.cat(count) for count in zip(*counts, strict=True)))


def _ranks(others: _Others, ranked: _Relevant, counts: _Counts, exactly: Exactly) -> Ranks:
    """Ranks what is relevant among other scores of its row, given how many are above."""
    ranks = Ranks(counts.num_above + 1, counts.num_above, torch.zeros_like(ranked.row))
    is_open = (counts.num_close > 0).nonzero().squeeze(1)
    for part in slices(is_open.numel(), NUM_COMPARISONS // max(1, others.score.size(1))):
        index = is_open[part]
        left = ranked.of(index)
        score = others.score.index_select(0, left.row)
        is_close = (score >= left.low.unsqueeze(1)) & (score <= left.high.unsqueeze(1))
        number, slot = is_close.nonzero(as_tuple=True)
        column = others.column(left.row[number], slot)
        num_above = counts.num_above[index]
        ranks.update(index, _settled(num_above, left, number, column, exactly))
    return ranks


def _count(scores: Tensor, ranked: _Relevant, scratch: Scratch) -> _Counts:
    score = scores.index_select(0, ranked.row)
    # As numbers instead of booleans, the results are several times faster to make and to sum.
    flags = scratch("direct_ranking.numbers", tuple(score.shape), score.dtype)
    above = torch.gt(score, ranked.high.unsqueeze(1), out=flags).sum(dim=1)
    not_below = torch.ge(score, ranked.low.unsqueeze(1), out=flags).sum(dim=1)
    # What is ranked is close to itself.
    return _Counts(above.long(), (not_below - above).long() - 1)


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
    score, own_column = exactly(ranked.row[number], column), ranked.column[number]
    # Everything is close to itself.
    own = score[column == own_column][number]
    is_tied = score == own
    flags = torch.stack([score > own, is_tied, is_tied & (column < own_column)])
    counts = num_above.new_zeros(3, num_above.numel()).index_add_(1, number, flags.long())
    num_above, before = counts[0].add_(num_above), counts[2]
    return Ranks(num_above + before + 1, num_above, counts[1] - 1)
