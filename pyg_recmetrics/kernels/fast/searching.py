r"""The first of each user's ranking, from fast scores and a bound on their error.

A metric needs the ranks of a few items, or the top of a list. Nearly all items are far from both,
and fast scores tell so. The search finds the few that may matter, and looks closely at them alone.

**What is within reach.** The fast scores of a user are cut into blocks
(:mod:`~pyg_recmetrics.kernels.fast.blocks`). If the largest scores of as many blocks as the user's
depth are at least :math:`t`, then as many items have an exact score of at least
:math:`t - \alpha`, where :math:`\alpha` is the bound. So an item with a lower exact score is beyond
the depth. All others are found in blocks whose largest score is at least :math:`t - 2 \alpha`. If
no lists are wanted, what matters starts at the lowest relevant item within reach; and a user
without any is not looked at further.

**The sieve.** A first pass looks at a sixteenth of the items in the same way, or at an eighth if
there are many positions: those of the largest norms, which are likely to have high scores. It
leaves out many users and relevant items. By the Cauchy-Schwarz inequality, an item whose norm is
too small for the score that matters has no chance. As items are in the order of their norms, only
the first of them take part in the second pass.

**The order** of the items that were found follows from their scores in single precision, wherever
two neighbours differ by more than twice the bound. Others are compared by their exact scores, and
equal ones by item id. If no lists are wanted, only those are that may stand beside a relevant item.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.kernels.devices import at_once
from pyg_recmetrics.kernels.entries import Entries, max_id
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.fast.blocks import Blocks
from pyg_recmetrics.kernels.fast.fast_scores import FastScores
from pyg_recmetrics.kernels.scratch import Scratch

#: The number of blocks is a multiple of this, so that they can be joined to larger ones.
MAX_JOINED = 16

#: How many maxima tell what is within reach. There are at least twice as many as positions down to
#: the depth, so that few of these share one.
NUM_MAXIMA = 160

#: How many users are taken at once. With more of them, nothing gets faster.
MAX_ROWS = 2048

#: How many items are put in order at once.
NUM_FOUND = 2**20

#: How many values are looked at at once, so that they stay in the caches.
NUM_VALUES = 2**22

#: How many columns are looked at at once.
MAX_COLUMNS = 2**17

#: How deep one user is ranked, or each of several users.
_Depth = TypeVar("_Depth", int, Tensor)


class Found(NamedTuple):
    """What a search found out.

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


def rows_to_search(depth: int, device: torch.device) -> int:
    """Returns how many users are searched at once, if they are ranked down to `depth`."""
    return max(1, at_once(min(MAX_ROWS, NUM_FOUND // _max_found(depth)), device))


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
        relevant: tuple[Tensor, Tensor],
        masked: tuple[Tensor, Tensor],
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
        rows = torch.arange(num_rows, device=depth.device)
        own = scores.of_items(rows, Entries(row, item, num_rows))
        # Nothing is as large as NaN, so that it is never within reach.
        self.own = self.relevant.side_by_side(own, torch.nan)
        self.is_unsettled = torch.zeros_like(depth, dtype=torch.bool)
        # At least as many items as the user's depth have this score or a higher one.
        self.reach = torch.full(depth.shape, -torch.inf, dtype=torch.double, device=depth.device)

    def run(self) -> Found:
        """Searches, and returns what was found."""
        is_sieved = self._sieve()
        lowest = self._lowest(slice(None))
        width = torch.full_like(self.depth, self.scores.item.numel())
        if is_sieved:
            width = self.scores.num_within_reach(lowest)
        width.masked_fill_(lowest == torch.inf, 0)
        width, rows = width.sort(descending=True, stable=True)
        rows = rows[: int((width > 0).sum())]
        return self._in_order(rows, self._find(rows, _rounded_up(width)))

    def _sieve(self) -> bool:
        """Looks at the first columns, to find what is out of reach because of these alone.

        Returns:
            Whether these are enough to find anything.
        """
        width = min(self.scores.num_in_sieve, MAX_COLUMNS)
        num_needed = 2 * Blocks.block_size * self.max_depth
        if width // 2 >= num_needed:
            width //= 2
        width = width // _multiple() * _multiple()
        if width < num_needed:
            return False
        rows = torch.arange(self.depth.numel(), device=self.depth.device)
        for part in _parts(torch.full_like(rows, width), 0):
            blocks = self.scores.blocks(rows[part], 0, width, self.scratch)
            blocks.hide(self.masked, part, 0)
            self._raise_reach(rows[part], blocks.best(), self.scores.lowest_in_order)
        return True

    def _find(self, rows: Tensor, width: Tensor) -> Entries:
        """Returns the items that may matter to each of some rows.

        Args:
            rows (torch.Tensor): The rows to look at.
            width (torch.Tensor): How many of the first columns to look at for each, descending.
        """
        relevant, masked = self.relevant.of(rows), self.masked.of(rows)
        num_found, found = torch.zeros_like(rows), [(rows[:0], rows[:0])]
        for start in range(0, max_id(width), MAX_COLUMNS):
            for part in _parts(width, start):
                end, some = min(int(width[part.start]), start + MAX_COLUMNS), rows[part]
                blocks = self.scores.blocks(some, start, end, self.scratch)
                best, lowest = self._best(some, blocks, masked, part, start)
                # What is relevant need not be found, as it is known already.
                blocks.hide(relevant, part, start)
                row, column = self._take(some, blocks, best, lowest)
                num_found[part] += torch.bincount(row, minlength=some.numel())
                # One user with many items would make the rows of all others as long.
                row, column = self._drop_crowded(some, num_found[part], row, column)
                found.append((row + part.start, self.scores.item[column + start]))
        row, item = (torch.cat(values) for values in zip(*found, strict=True))
        if bool((row[1:] < row[:-1]).any()):  # if there is more than one column tile
            row, order = row.sort(stable=True)
            item = item[order]
        return Entries(row, item, rows.numel())

    def _best(
        self, rows: Tensor, blocks: Blocks, masked: Entries, part: slice, start: int
    ) -> tuple[Tensor, Tensor]:
        """Masks values, and finds the largest of each block, and the lowest that matter.

        Returns:
            Values of shape `[len(rows), num_blocks]` and `[len(rows)]`.
        """
        blocks.hide(masked, part, start)
        best = blocks.best()
        lowest_in_order = self.scores.lowest_in_order
        self._raise_reach(rows, best, lowest_in_order)
        lowest = self._lowest_value(rows)
        if bool((lowest >= lowest_in_order).all()):
            return best, lowest
        blocks.put_in_order_()
        blocks.hide(masked, part, start)
        best = blocks.best()
        self._raise_reach(rows, best, _least(best.dtype))
        return best, self._lowest_value(rows)

    def _raise_reach(self, rows: Tensor, best: Tensor, lowest: float) -> None:
        """Learns from the largest values of blocks, of shape `[num, num_blocks]`, what is in reach.

        Args:
            rows (torch.Tensor): The rows, of shape `[num]`.
            best (torch.Tensor): The largest values.
            lowest (float): Values below this one are in no order.
        """
        num_wanted = max(2 * self.max_depth, min(8 * self.max_depth, NUM_MAXIMA))
        num_joined = MAX_JOINED
        while num_joined > 1 and best.size(1) < num_wanted * num_joined:
            num_joined //= 2
        best = best.view(rows.numel(), num_joined, -1).amax(dim=1)
        depth = self.depth[rows].unsqueeze(1)
        top = best.topk(min(self.max_depth, best.size(1)), dim=1).values
        value = top.gather(1, (depth - 1).clamp(max=top.size(1) - 1)).squeeze(1)
        score = self.scores.to_score(value).sub_(self.scores.error[rows])
        is_known = (depth.squeeze(1) <= top.size(1)) & (value >= lowest)
        self.reach[rows] = torch.where(is_known, score, -torch.inf).maximum(self.reach[rows])

    def _take(
        self, rows: Tensor, blocks: Blocks, best: Tensor, lowest: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns where the values are that may matter, as rows and columns, sorted by row."""
        lowest = lowest.unsqueeze(1)
        row, block = _at_least(best, lowest, out=torch.empty_like(best))
        num_blocks = torch.bincount(row, minlength=rows.numel())
        row, block = self._drop_crowded(rows, num_blocks, row, block)
        values = blocks.values(row, block)
        found, offset = _at_least(values, lowest[row], out=values)
        return row[found], offset * best.size(1) + block[found]

    def _drop_crowded(
        self, rows: Tensor, num_found: Tensor, row: Tensor, found: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Leaves rows unsettled for which too much was found, and drops what was found for them."""
        is_crowded = num_found > _max_found(self.depth[rows])
        if not bool(is_crowded.any()):
            return row, found
        self.is_unsettled[rows] |= is_crowded
        is_left = ~is_crowded[row]
        return row[is_left], found[is_left]

    def _is_open(self, rows: Tensor | slice) -> Tensor:
        """Returns which relevant items may be within reach, of shape `[num_rows, num_slots]`."""
        lowest = self.reach[rows] - self.scores.error_of_items[rows]
        return self.own[rows] >= lowest.unsqueeze(1)

    def _lowest(self, rows: Tensor | slice) -> Tensor:
        """Returns the lowest exact score that matters; `inf` if none does."""
        lowest = self.reach[rows]
        if not self.makes_lists:
            own = self.own[rows].masked_fill(~self._is_open(rows), torch.inf)
            lowest = own.amin(dim=1) - self.scores.error_of_items[rows]
        return lowest.masked_fill(self.is_unsettled[rows], torch.inf)

    def _lowest_value(self, rows: Tensor) -> Tensor:
        """Returns the lowest value of a score that matters."""
        value = self.scores.to_value(self._lowest(rows) - self.scores.error[rows])
        return value.clamp(min=_least(value.dtype))

    def _in_order(self, rows: Tensor, found: Entries) -> Found:
        """Puts what is relevant to some rows, and what was found for them, in order."""
        row, slot = self._is_open(rows).nonzero(as_tuple=True)
        edge = self.relevant.ptr[rows[row]] + slot
        relevant = Entries(row, self.item[edge], rows.numel())
        parts = (relevant, self.own[rows[row], slot]), (found, self.scores.of_items(rows, found))
        item = torch.cat([entries.side_by_side(entries.column, -1) for entries, _ in parts], 1)
        score = torch.cat([entries.side_by_side(own, -torch.inf) for entries, own in parts], 1)
        score, order = score.sort(dim=1, descending=True)
        item = item.gather(1, order)
        num_relevant = max_id(relevant.slot) + 1
        self._settle(rows, item, score, order, num_relevant)
        lists = None
        if self.makes_lists:
            lists = torch.full((self.depth.numel(), item.size(1)), -1, device=item.device)
            lists[rows] = item.masked_fill(score == -torch.inf, -1)
        numbers = torch.arange(order.size(1), device=order.device).expand_as(order)
        position = torch.empty_like(order).scatter_(1, order, numbers)
        position = position[:, :num_relevant].contiguous()
        score = score.neg_()  # as numbers are searched for in ascending order
        own = score.gather(1, position)
        above = torch.searchsorted(score, own)
        tied = torch.searchsorted(score, own, right=True) - above - 1
        ranks = Ranks.unknown(self.item)
        place = row, relevant.slot
        ranks.update(edge, Ranks(*(values[place] for values in (position + 1, above, tied))))
        return Found(ranks, lists, self.is_unsettled)

    def _settle(
        self, rows: Tensor, item: Tensor, score: Tensor, order: Tensor, num_relevant: int
    ) -> None:
        """Puts items in the order of their exact scores, in place, where these may be another.

        Args:
            rows (torch.Tensor): The rows, of shape `[num_rows]`.
            item (torch.Tensor): Their items in the order of their scores, `[num_rows, num_slots]`.
            score (torch.Tensor): The scores.
            order (torch.Tensor): Where the items stood before they were put in order.
            num_relevant (int): What stood in front of this place is relevant.
        """
        error = 2.001 * self.scores.error_of_items[rows].unsqueeze(1)
        is_near = F.pad(score[:, :-1] - score[:, 1:] <= error, (1, 1))
        row, column = (is_near[:, 1:] | is_near[:, :-1]).nonzero(as_tuple=True)
        if not self.makes_lists:
            # What is not close to anything relevant may stand in any order.
            run = (~is_near[row, column]).cumsum(0)
            run_of_relevant = run[order[row, column] < num_relevant]
            matters = torch.zeros(max_id(run) + 1, dtype=torch.bool, device=run.device)
            left = matters.index_fill_(0, run_of_relevant, True)[run].nonzero().squeeze(1)
            row, column = row[left], column[left]
        exact = self.scores.exactly(rows[row], item[row, column]).to(score.dtype)
        # The others stay where they are, and so does each run of items that are close.
        new = item[row, column].argsort()
        new = new[exact[new].argsort(descending=True, stable=True)]
        new = new[row[new].argsort(stable=True)]
        score[row, column] = exact[new]
        for values in (item, order):
            values[row, column] = values[row, column[new]]


def _max_found(depth: _Depth) -> _Depth:
    """Returns how many items may matter to a user before it is left unsettled."""
    return 4 * depth + 64


def _at_least(values: Tensor, lowest: Tensor, out: Tensor) -> tuple[Tensor, ...]:
    """Returns the rows and the columns of values that are at least the lowest of their row."""
    # A processor makes flags of the size of what it compares faster than booleans.
    return torch.ge(values, lowest, out=out).nonzero(as_tuple=True)


def _least(dtype: torch.dtype) -> float:
    """Returns the least value that may stand for a score."""
    return torch.finfo(dtype).min if dtype.is_floating_point else torch.iinfo(dtype).min + 1


def _multiple() -> int:
    """Returns what the number of columns is a multiple of, so that blocks can be joined."""
    return Blocks.block_size * MAX_JOINED


def _rounded_up(width: Tensor) -> Tensor:
    return (width + _multiple() - 1) // _multiple() * _multiple()


def _parts(width: Tensor, start: int) -> Iterator[slice]:
    """Yields slices of rows that are looked at together, given how many columns each row has."""
    widths = width[width > start].tolist()
    num_values = at_once(NUM_VALUES, width.device)
    first, num_rows = 0, len(widths)
    while first < num_rows:
        num_columns = min(widths[first] - start, MAX_COLUMNS)
        end = min(first + max(1, num_values // num_columns), num_rows)
        yield slice(first, end)
        first = end
