r"""The first of each user's ranking, from fast scores and a bound on their error.

A metric needs the ranks of a few items, or the top of a list. Nearly all items are far from both,
and fast scores tell so. The search finds the few that may matter, and looks closely at them alone.

**What is within reach.** The fast scores of a user are cut into blocks. If the largest scores of as
many blocks as the user's depth are at least :math:`t`, then as many items have an exact score of at
least :math:`t - \alpha`, where :math:`\alpha` is the bound. This is the *reach* of the user: an
item with a lower exact score is beyond the depth. All others are found in blocks whose largest
score is at least :math:`t - 2 \alpha`. If no lists are wanted, what matters starts at the lowest
relevant item within reach; and a user without any is not looked at further. The lowest exact score
that matters is the *threshold*.

**The sieve.** A first pass looks at a sixteenth of the items in the same way, or at an eighth if
there are many positions: those of the largest norms, which are likely to have high scores. It
leaves out many users and relevant items. By the Cauchy-Schwarz inequality, an item whose norm is
too small for the score that matters has no chance. As items are in the order of their norms, only
the first of them take part in the second pass.

**The order** of the items that were found follows from their scores in single precision, wherever
two neighbours differ by more than twice the bound on these. Others are *close*. They are compared
by their exact scores, and equal ones by item id.

So the steps are: the sieve raises the reach of each user. The threshold says how many of the first
columns to look at. In these, what reaches the threshold is found, block by block, while the reach
rises further. What was found is sorted by scores in single precision, and what is close by exact
scores. A user with too many items that may matter is left unsettled.

**An example.** A user's list of the best two of eight items is wanted. Fast scores are within
:math:`\alpha = 0.1` of the exact ones, and scores in single precision within 0.01. There are four
blocks of two items.

================  =====  =====  =====  =====  =====  =====  =====  =====
item                  0      1      2      3      4      5      6      7
================  =====  =====  =====  =====  =====  =====  =====  =====
block                 0      1      2      3      0      1      2      3
fast score         0.90   0.50   0.75   0.30   0.20   0.72   0.57   0.10
within reach          x             x                    x      x
single precision   0.84          0.70                 0.71   0.54
close                               x                    x
exact score       0.843         0.704                0.702  0.543
place                 1             2                    3      4
================  =====  =====  =====  =====  =====  =====  =====  =====

The largest scores of the blocks are 0.90, 0.72, 0.75 and 0.30. So :math:`t = 0.75`, and the reach
is 0.65: items 0 and 2 have at least this score. Fast scores from 0.55 on may stand for as much.
No item of block 3 has one, which is known without a look at its two scores. In the other blocks,
four scores are high enough. In single precision, items 5 and 2 differ by no more than 0.02. So
their exact scores are computed, and no others. They turn the two round: the list is 0, 2. If item 6
was the only relevant one and no list was wanted, the search would end at the reach, as the score of
the item in single precision is too low.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import lexsort

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import Entries, UserItems, largest_values, max_id, nonzero
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.fast.rounded_items import (
    ErrorBound,
    RoundedItems,
    error_in_single,
    matrix_product,
    one_of_few_from,
    one_of_few_to,
    rounding_in_single,
)

#: How many values form a block. It has every `num_blocks`-th value of a row, so that a processor
#: finds the largest values of neighbouring blocks together. The first columns tend to have the
#: highest scores, and lie in different blocks.
BLOCK_SIZE = 16


#: The bits of minus infinity in `bfloat16`.
_BITS_OF_NOTHING = -(2**7)


def nothing_of(dtype: torch.dtype) -> float:
    """Returns what stands for no value: minus infinity, or its bits."""
    return -torch.inf if dtype.is_floating_point else _BITS_OF_NOTHING


def in_order(values: Tensor) -> Tensor:
    """Returns the bits of numbers as integers in the order of the numbers, and numbers as they are.

    The bits of negative numbers are in the opposite order. What is in order becomes bits again.
    """
    if values.is_floating_point():
        return values
    return torch.where(values < 0, torch.iinfo(values.dtype).min - values, values)


class FastScores(ABC):
    """Scores of all items for the users of a chunk, close to the exact ones.

    Items have *columns*. A *value* stands for a score, in a type of numbers that is fast to look
    at. From a score that is at least as large as another follows a value that is, too.

    Attributes:
        item (torch.Tensor): The item of each column, of shape `[num_columns]`.
        column (torch.Tensor): The column of each item, of shape `[num_items]`; `-1` for items that
            no user may be recommended.
        num_in_sieve (int): So many of the first columns are likely to have the highest scores, the
            first of them more than others. Zero if there are no such columns.
        error (torch.Tensor): How far the score of a value can be from the exact one, for each
            user, of shape `[num_rows]`.
        error_of_items (torch.Tensor): How far the scores of some items can be from the exact ones,
            for each user, of shape `[num_rows]`. Zero if they are exact.
    """

    item: Tensor
    column: Tensor
    num_in_sieve: int
    error: Tensor
    error_of_items: Tensor

    @abstractmethod
    def values(self, rows: Tensor, start: int, end: int, scratch: Scratch) -> Tensor:
        """Returns the values of some columns for some rows, of shape `[num_asked, end - start]`.

        Behind the last column, the matrix can hold anything. It may be overwritten, and is valid
        until the next call.

        Args:
            rows (torch.Tensor): The rows, of shape `[num_asked]`.
            start (int): The first column.
            end (int): The end of the columns, which may lie behind the last one.
            scratch (Scratch): The buffers to compute in.
        """

    @abstractmethod
    def to_value(self, score: Tensor) -> Tensor:
        """Returns the values of scores, in order, each of which is more than no value is."""

    @abstractmethod
    def to_score(self, value: Tensor) -> Tensor:
        """Returns the lowest scores that have the given values, which are in order."""

    @abstractmethod
    def of_items(self, row: Tensor, item: Tensor) -> Tensor:
        """Returns the scores of pairs of a row and an item, of shape `[num_pairs]`."""

    @abstractmethod
    def exactly(self, row: Tensor, item: Tensor) -> Tensor:
        """Returns the exact scores of pairs of a row and an item, of shape `[num_pairs]`."""

    @abstractmethod
    def num_within_reach(self, score: Tensor) -> Tensor:
        """Returns for each row how many of the first columns can have at least a score."""


#: One in so many columns may belong to the sieve.
_PART_IN_SIEVE = 8


class FastProducts(FastScores):
    """Products of the rounded embeddings of some users and all items.

    Args:
        user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`, in
            double precision.
        items (RoundedItems): The items.
    """

    def __init__(self, user: Tensor, items: RoundedItems) -> None:
        self.user, self.items = user, items
        self.item, self.column = items.item, items.column
        self.num_in_sieve = self.item.numel() // _PART_IN_SIEVE
        scaled = items.factors.for_single(user)
        self.rounded, self.single = scaled.to(items.dtype), scaled.float()
        dim = user.size(1)
        # A processor may cut off what it adds up, at 2**-23 of the largest number.
        self.bound = ErrorBound(scaled, self.rounded, rounding_of_sum=dim * 2.0**-22)
        self.error = self.bound.of(items.rounded_norm, items.error)
        # The exact score is rounded, too.
        of_single = ErrorBound(scaled, self.single, rounding_of_sum=rounding_in_single(dim + 1))
        largest = items.norm[0]
        self.error_of_items = of_single.of(largest, error_in_single(largest))
        self.is_bfloat16 = items.dtype == torch.bfloat16

    def of_items(self, row: Tensor, item: Tensor) -> Tensor:
        return self.items.factors.single_scores(self.single, row, item)

    def exactly(self, row: Tensor, item: Tensor) -> Tensor:
        return self.items.factors.exact_scores(self.user, row, item)

    def num_within_reach(self, score: Tensor) -> Tensor:
        norm = score / self.bound.norm
        return torch.searchsorted(-self.items.norm, -norm, right=True)

    def values(self, rows: Tensor, start: int, end: int, scratch: Scratch) -> Tensor:
        user, items = self.rounded.index_select(0, rows), self.items.rounded(start, end)
        scores = matrix_product(user, items, scratch, "fast_products")
        return scores.view(torch.int16) if self.is_bfloat16 else scores

    def to_value(self, score: Tensor) -> Tensor:
        value = _finite(score.to(self.items.dtype))
        return in_order(value.view(torch.int16)) if self.is_bfloat16 else value

    def to_score(self, value: Tensor) -> Tensor:
        if not self.is_bfloat16:
            return value.double()
        number = in_order(value).view(torch.bfloat16).double()
        # Numbers are rounded to a neighbour that differs by at most the last of eight bits.
        return number - 2.0**-8 * number.abs()


class GivenScores(FastScores):
    """Rows of a matrix, which are only read.

    Args:
        matrix (torch.Tensor): Scores of shape `[?, num_items]`.
        row (torch.Tensor): Which of its rows belong to the users, of shape `[num_rows]`.
        candidates (torch.Tensor or None): The items that may be recommended, if not all may be.

    Attributes:
        highest (torch.Tensor): NaN or `inf` if one of the scores is.
        num_missing (torch.Tensor): How many candidates of each user have a score of `-inf`, of
            shape `[num_rows]`.
    """

    num_in_sieve = 0

    def __init__(self, matrix: Tensor, row: Tensor, candidates: Tensor | None) -> None:
        self.matrix, self.row, self.candidates = matrix, row, candidates
        self.dtype = torch.promote_types(matrix.dtype, torch.float32)
        num_items = matrix.size(1)
        every = torch.arange(num_items, device=row.device)
        self.item = self.column = every
        if candidates is not None:
            self.item, self.column = candidates, torch.full_like(every, -1)
            self.column[candidates] = every[: candidates.numel()]
        self.error = self.error_of_items = torch.zeros_like(row, dtype=torch.double)
        self.highest = torch.zeros((), device=row.device)
        self.num_missing = torch.zeros_like(row)

    def values(self, rows: Tensor, start: int, end: int, scratch: Scratch) -> Tensor:
        values = scratch("given_scores", (rows.numel(), end - start), self.dtype)
        last = min(end, self.item.numel())
        given = values[:, : last - start]
        self._read(rows, slice(start, last), out=given)
        lowest, highest = given.aminmax()
        self.highest = self.highest.maximum(highest)
        if bool(lowest.isneginf()):
            self.num_missing[rows] += given.isneginf().sum(dim=1)
        return values

    def to_value(self, score: Tensor) -> Tensor:
        return _finite(score.to(self.dtype))

    def to_score(self, value: Tensor) -> Tensor:
        return value.double()

    def of_items(self, row: Tensor, item: Tensor) -> Tensor:
        return self.exactly(row, item)

    def exactly(self, row: Tensor, item: Tensor) -> Tensor:
        return self.matrix[self.row[row], item].to(self.dtype)

    def num_within_reach(self, score: Tensor) -> Tensor:
        # All are looked at, also to find out which of them are missing.
        return torch.full_like(self.row, self.item.numel())

    def _read(self, rows: Tensor, columns: slice, out: Tensor) -> None:
        row = self.row[rows]
        if self.candidates is not None:
            out.copy_(self.matrix[row.unsqueeze(1), self.candidates[columns]])
        elif self.matrix.dtype == out.dtype:
            torch.index_select(self.matrix[:, columns], 0, row, out=out)
        else:
            out.copy_(self.matrix[row, columns])


def _finite(value: Tensor) -> Tensor:
    """Replaces minus infinity, which stands for nothing, by the lowest number."""
    return value.clamp(min=torch.finfo(value.dtype).min)


# What is looked for in each row of a matrix.


def sorted_rows(values: Tensor) -> tuple[Tensor, Tensor]:
    """Sorts each row in descending order, equal values in any order.

    NumPy sorts by vector instructions, in a fraction of the time that torch takes.

    Args:
        values (torch.Tensor): Values of shape `[num_rows, num_columns]`, none of them `NaN`.

    Returns:
        The values, and the columns that they come from.
    """
    column = torch.from_numpy(np.argsort(-values.numpy(), axis=1))
    return values.gather(1, column), column


def find_at_least(values: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the rows and the columns of values that reach the threshold of their row, in order.

    Args:
        values (torch.Tensor): Values of shape `[num_rows, num_columns]`.
        threshold (torch.Tensor): The thresholds, of shape `[num_rows]`.
    """
    return nonzero(values.numpy() >= threshold.unsqueeze(1).numpy())


#: How many blocks the sieve has for each position, at least. If the best items are dealt to blocks
#: at random, twice as many blocks as positions reach down to about 1.4 times as many positions,
#: since some blocks hold several of the best.
_MIN_BLOCKS_PER_POSITION = 2

#: How many users are taken at once. With more of them, nothing gets faster.
MAX_ROWS = 2048

#: How many items are put in order at once.
NUM_FOUND = 2**20

#: How many values are looked at at once, so that they stay in the caches.
NUM_VALUES = 2**22

#: How many columns are looked at at once.
MAX_COLUMNS = 2**17

#: Two scores are close if they differ by no more than so many bounds. Only if it is no more than
#: two can exact scores have another order. What is beyond two makes up for rounding: of the
#: difference, which single precision changes by a part of `2**-24`, and of its limit, by less.
_BOUNDS_IF_CLOSE = 2.001

#: How many items may matter to a user: so many per position, and some more. A user with more is
#: left unsettled, as the longest row decides how long all rows are that are sorted together. So
#: these numbers decide about time and memory alone, and not about ranks. For the embeddings of a
#: LightGCN on Gowalla, a half or the double of them take the same time, and no user is left.
_FOUND_PER_POSITION, _SPARE_FOUND = 4, 64

#: How deep one user is ranked, or each of several users.
_Depth = TypeVar("_Depth", int, Tensor)


class Found(NamedTuple):
    """Ranks and lists that a search found.

    Attributes:
        ranks: The ranks of the relevant items.
        lists: The best items, of shape `[num_rows, ?]`, best first; `-1` where none is left.
            `None` if no lists are wanted.
        is_unsettled: For which users too many items may matter, of shape `[num_rows]`. What else
            was found out about these is not valid.
    """

    ranks: Ranks
    lists: Tensor | None
    is_unsettled: Tensor


class Search:
    """Searches for the items that may matter to the users of a chunk, and puts them in order.

    Args:
        scores (FastScores): The fast scores of the users.
        depth (torch.Tensor): How deep each user is ranked, of shape `[num_rows]`.
        relevant (tuple): The rows and the items to rank, sorted by row, of shape `[num_relevant]`.
        masked (tuple): The rows and the items that must not be retrieved, sorted by row.
        makes_lists (bool): Whether the best items are wanted, and not only ranks.
        scratch (Scratch): The buffers to compute in.
    """

    def __init__(
        self,
        scores: FastScores,
        depth: Tensor,
        relevant: UserItems,
        masked: UserItems,
        makes_lists: bool,
        scratch: Scratch,
    ) -> None:
        self.scores, self.depth, self.makes_lists = scores, depth, makes_lists
        self.scratch = scratch
        self.max_depth = int(depth.max())
        num_rows = depth.numel()
        row, item = relevant
        self.item = item
        self.relevant = Entries(row, scores.column[item], num_rows)
        self.masked = Entries(masked[0], scores.column[masked[1]], num_rows)
        # Comparisons with NaN are false, so padding is never within reach.
        self.relevant_scores = self.relevant.side_by_side(scores.of_items(row, item), torch.nan)
        self.is_unsettled = torch.zeros_like(depth, dtype=torch.bool)
        # At least as many items as the user's depth have this exact score or a higher one.
        self.reach = torch.full(depth.shape, -torch.inf, dtype=torch.double, device=depth.device)

    def run(self) -> Found:
        """Searches, and returns what was found."""
        self._sieve()
        rows, found = self._find()
        ranking = self._sort(rows, found)
        ranks = Ranks.unknown(self.item)
        ranks.update(ranking.edge, ranking.ranks())
        return Found(ranks, self._lists(rows, ranking), self.is_unsettled)

    def _find(self) -> tuple[Tensor, Entries]:
        """Returns the rows for which anything may matter, and what may matter to each."""
        width = self.scores.num_within_reach(self._threshold(slice(None)))
        width, rows = width.sort(descending=True, stable=True)
        rows = rows[: int((width > 0).sum())]
        return rows, self._items_within_reach(rows, width)

    def _sieve(self) -> None:
        """Looks at the first columns, to find what is out of reach because of these alone."""
        num_needed = _MIN_BLOCKS_PER_POSITION * self.max_depth * BLOCK_SIZE
        width = min(self.scores.num_in_sieve, MAX_COLUMNS)
        if width // 2 >= num_needed:
            width //= 2
        width = width // BLOCK_SIZE * BLOCK_SIZE
        if width < num_needed:
            return
        rows = torch.arange(self.depth.numel(), device=self.depth.device)
        for part, _ in _parts_of_rows(width, torch.full_like(rows, width), 0):
            values = self._values(rows[part], self.masked, part, 0, width)
            self._learn_from_maxima(rows[part], _in_blocks(values))

    def _items_within_reach(self, rows: Tensor, width: Tensor) -> Entries:
        """Returns the items that may matter to each of some rows, but those that are relevant.

        Args:
            rows (torch.Tensor): The rows to look at.
            width (torch.Tensor): How many of the first columns to look at for each, descending.
        """
        relevant, masked = self.relevant.of(rows), self.masked.of(rows)
        num_found = torch.zeros_like(rows)
        found_rows, found_items = [rows[:0]], [rows[:0]]
        for start in range(0, max_id(width), MAX_COLUMNS):
            for part, end in _parts_of_rows(self.scores.item.numel(), width, start):
                row, column = self._places_in_part(rows[part], relevant, masked, part, start, end)
                num_found[part] += torch.bincount(row, minlength=part.stop - part.start)
                # One user with many items would make the rows of all others as long.
                row, column = self._drop_crowded(rows[part], num_found[part], row, column)
                found_rows.append(row + part.start)
                found_items.append(self.scores.item.index_select(0, column + start))
        row, item = torch.cat(found_rows), torch.cat(found_items)
        if bool((row[1:] < row[:-1]).any()):  # if there is more than one column tile
            row, order = row.sort(stable=True)
            item = item[order]
        return Entries(row, item, rows.numel())

    def _places_in_part(
        self, rows: Tensor, relevant: Entries, masked: Entries, part: slice, start: int, end: int
    ) -> tuple[Tensor, Tensor]:
        """Returns where the values of some rows and columns are that may matter, sorted by row.

        What is relevant need not be found, as it is known already. What the values took is free
        afterwards, so that those of the next part take the same memory.
        """
        values = self._values(rows, masked, part, start, end)
        blocks = _in_blocks(values)
        maxima, has_low = self._learn_from_maxima(rows, blocks)
        threshold = self._value_of_threshold(rows)
        relevant.fill_(values, part, start, nothing_of(values.dtype))
        row, block = find_at_least(maxima, threshold)
        num_blocks = torch.bincount(row, minlength=rows.numel())
        row, block = self._drop_crowded(rows, num_blocks, row, block)
        found = blocks[row, :, block]
        asked, offset = find_at_least(
            in_order(found) if has_low else found, threshold.index_select(0, row)
        )
        # To index takes several times as long.
        row, block = row.index_select(0, asked), block.index_select(0, asked)
        return row, offset * maxima.size(1) + block

    def _values(self, rows: Tensor, masked: Entries, part: slice, start: int, end: int) -> Tensor:
        """Returns values of some rows and columns, and :func:`nothing_of` them elsewhere.

        Args:
            rows (torch.Tensor): The rows, of shape `[num]`.
            masked (Entries): The entries of a larger matrix that have no values.
            part (slice): The rows of this matrix.
            start (int): The first column.
            end (int): The end of the columns, which may lie behind the last one.
        """
        values = self.scores.values(rows, start, end, self.scratch)
        nothing = nothing_of(values.dtype)
        values[:, max(0, self.scores.item.numel() - start) :] = nothing
        masked.fill_(values, part, start, nothing)
        return values

    def _learn_from_maxima(self, rows: Tensor, blocks: Tensor) -> tuple[Tensor, bool]:
        """Raises the reach of rows by the largest value of each block.

        Returns:
            These values, and whether those of the blocks are to be put in order, as negative ones
            may matter. The bits of positive ones are in order, and more than those of others.
        """
        maxima = blocks.amax(dim=1)
        are_bits = not maxima.is_floating_point()
        self._raise_reach(rows, maxima, lowest=0.0 if are_bits else -torch.inf)
        if not are_bits or bool((self._threshold(rows) > self.scores.error[rows]).all()):
            return maxima, False
        # The bits of the largest negative number are the smallest.
        maxima = torch.where(maxima < 0, in_order(blocks.amin(dim=1)), maxima)
        self._raise_reach(rows, maxima, lowest=-torch.inf)
        return maxima, True

    def _raise_reach(self, rows: Tensor, maxima: Tensor, lowest: float) -> None:
        """Learns from the maxima of blocks, of shape `[num, num_blocks]`, what is within reach.

        They are in order from the lowest one on.
        """
        depth, num = self.depth[rows], min(self.max_depth, maxima.size(1))
        top = largest_values(maxima.clone(), num)
        t = top.gather(1, (num - depth).clamp_(min=0).unsqueeze(1)).squeeze(1)
        # As many items of each row as it is deep have this exact score.
        reach = self.scores.to_score(t) - self.scores.error[rows]
        reach = torch.where((depth <= num) & (t >= lowest), reach, -torch.inf)
        self.reach[rows] = reach.maximum(self.reach[rows])

    def _drop_crowded(
        self, rows: Tensor | slice, num_found: Tensor, row: Tensor, found: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Leaves rows unsettled for which too much was found, and drops what was found for them."""
        is_crowded = num_found > _max_found(self.depth[rows])
        if not bool(is_crowded.any()):
            return row, found
        self.is_unsettled[rows] |= is_crowded
        is_left = ~is_crowded[row]
        return row[is_left], found[is_left]

    def _is_within_reach(self, rows: Tensor | slice) -> Tensor:
        """Returns which relevant items may be within reach, of shape `[num_rows, num_slots]`."""
        lowest = self.reach[rows] - self.scores.error_of_items[rows]
        return self.relevant_scores[rows] >= lowest.unsqueeze(1)

    def _threshold(self, rows: Tensor | slice) -> Tensor:
        """Returns the lowest exact score that matters; `inf` if none does."""
        threshold = self.reach[rows]
        if not self.makes_lists:
            is_beyond = ~self._is_within_reach(rows)
            lowest = self.relevant_scores[rows].masked_fill(is_beyond, torch.inf).amin(dim=1)
            threshold = lowest - self.scores.error_of_items[rows]
        return threshold.masked_fill(self.is_unsettled[rows], torch.inf)

    def _value_of_threshold(self, rows: Tensor) -> Tensor:
        """Returns the lowest value of a score that matters."""
        return self.scores.to_value(self._threshold(rows) - self.scores.error[rows])

    def _sort(self, rows: Tensor, found: Entries) -> "_SortedItems":
        """Puts what is relevant to some rows, and what was found for them, in order."""
        row, slot = self._is_within_reach(rows).nonzero(as_tuple=True)
        edge = self.relevant.ptr[rows[row]] + slot
        relevant = Entries(row, self.item[edge], rows.numel())
        of_relevant = self.relevant_scores[rows[row], slot]
        of_found = self.scores.of_items(rows[found.row], found.column)
        items = [relevant.side_by_side(relevant.column, -1), found.side_by_side(found.column, -1)]
        scores = [
            relevant.side_by_side(of_relevant, -torch.inf),
            found.side_by_side(of_found, -torch.inf),
        ]
        score, origin = sorted_rows(torch.cat(scores, dim=1))
        item = torch.cat(items, dim=1).gather(1, origin)
        ranking = _SortedItems(item, score, origin, edge, relevant, items[0].size(1))
        self._sort_exactly(rows, ranking)
        return ranking

    def _sort_exactly(self, rows: Tensor, ranking: "_SortedItems") -> None:
        """Sorts close items by their exact scores, in place."""
        item, score, origin = ranking.item, ranking.score, ranking.origin
        margin = _BOUNDS_IF_CLOSE * self.scores.error_of_items[rows].unsqueeze(1)
        is_close = F.pad(score[:, :-1] - score[:, 1:] <= margin, (1, 1))
        row, place = (is_close[:, 1:] | is_close[:, :-1]).nonzero(as_tuple=True)
        exact = self.scores.exactly(rows[row], item[row, place]).to(score.dtype)
        # The others stay where they are, and so does each run of items that are close.
        order = lexsort([item[row, place], -exact, row])
        score[row, place] = exact[order]
        for values in (item, origin):
            values[row, place] = values[row, place[order]]

    def _lists(self, rows: Tensor, ranking: "_SortedItems") -> Tensor | None:
        """Returns the items of some rows in order, if lists are wanted."""
        if not self.makes_lists:
            return None
        item = ranking.item
        lists = torch.full((self.depth.numel(), item.size(1)), -1, device=item.device)
        lists[rows] = item.masked_fill(ranking.score == -torch.inf, -1)
        return lists


class _SortedItems(NamedTuple):
    """Items that may matter to some rows, best first.

    Attributes:
        item: The items, of shape `[num_rows, num_places]`; `-1` for none.
        score: Their scores; `-inf` for none.
        origin: In which slot each item stood before all were put in order.
        edge: Which edges are ranked, of shape `[num_ranked]`.
        relevant: The rows and the items of these edges.
        num_slots: So many of the first slots were those of relevant items.
    """

    item: Tensor
    score: Tensor
    origin: Tensor
    edge: Tensor
    relevant: Entries
    num_slots: int

    def ranks(self) -> Ranks:
        """Returns the ranks of the relevant items, of shape `[num_ranked]`."""
        number = torch.arange(self.origin.size(1), device=self.origin.device)
        number = number.expand_as(self.origin)
        place = torch.empty_like(self.origin).scatter_(1, self.origin, number)
        place = place[:, : self.num_slots].contiguous()
        score = -self.score  # as numbers are searched for in ascending order
        relevant_scores = score.gather(1, place)
        num_above = torch.searchsorted(score, relevant_scores)
        num_tied = torch.searchsorted(score, relevant_scores, right=True) - num_above - 1
        slots = self.relevant.row, self.relevant.slot
        return Ranks(*(values[slots] for values in (place + 1, num_above, num_tied)))


def rows_to_search(depth: int) -> int:
    """Returns how many users are searched at once, if they are ranked down to `depth`."""
    return max(1, min(MAX_ROWS, NUM_FOUND // _max_found(depth)))


def _max_found(depth: _Depth) -> _Depth:
    """Returns how many items may matter to a user before it is left unsettled."""
    return _FOUND_PER_POSITION * depth + _SPARE_FOUND


def _in_blocks(values: Tensor) -> Tensor:
    """Returns the values of a matrix by block, of shape `[num_rows, BLOCK_SIZE, num_blocks]`."""
    return values.view(values.size(0), BLOCK_SIZE, -1)


def _parts_of_rows(num_columns: int, width: Tensor, start: int) -> Iterator[tuple[slice, int]]:
    """Yields slices of rows that are looked at together, and where their columns end.

    Rows are looked at as far as the first of their part.

    Args:
        num_columns (int): How many columns there are.
        width (torch.Tensor): How many columns each row has, descending, of shape `[num_rows]`.
        start (int): The first column.
    """
    widths = (width[width > start] - start).clamp_(max=MAX_COLUMNS).tolist()
    last = -(-num_columns // BLOCK_SIZE) * BLOCK_SIZE
    first = 0
    while first < len(widths):
        num_blocks = one_of_few_from(-(-widths[first] // BLOCK_SIZE))
        end = min(start + min(num_blocks * BLOCK_SIZE, MAX_COLUMNS), last)
        stop = first + max(1, one_of_few_to(NUM_VALUES // (end - start)))
        part = slice(first, min(stop, len(widths)))
        yield part, end
        first = part.stop
