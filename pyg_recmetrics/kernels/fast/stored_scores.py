r"""Ranks and lists from the largest scores of each row, where few items make it quick to store all.

A product, in single or double precision, is within :math:`e` of the exact inner product
(:mod:`~pyg_recmetrics.kernels.exact.scores`). Scores that are given are exact, so :math:`e = 0`.
Let :math:`y` be the stored score of a relevant item and :math:`x` that of another one. With

.. math::
    w = 2.002 \, e + 2^{-21} \, |y| + 2^{-140} ,

:math:`x > y + w` proves that the other item scores higher, and :math:`x < y - w` that it scores
lower: the ends :math:`x - e` and :math:`y + e` of what the exact products can be are farther apart
than two neighbours in single precision, which differ by at most :math:`2^{-22} \, (|y| + e)` or
:math:`2^{-149}`. So they are rounded to different numbers.

Of each row, the kernel keeps the largest scores, one more than the row is deep. As many of them as
the row is deep above a relevant item prove that the item is out of reach. If none but its own is
within :math:`w`, its rank is one more than the number of those above. The few rows of which this
does not settle all ranks are multiplied again in double precision, where nearly nothing is close.
What still is, or ties, is left to other kernels. A list is proved by the gaps between its scores,
and that behind the last.

A GPU counts all scores that are within :math:`w` of a relevant one, instead of keeping the largest,
and compares them by their exact scores.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.kernels.card import Error, Ranked
from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import Entries, UserItems, largest_values, max_id
from pyg_recmetrics.kernels.exact.ranks import Ranks, count_around, find_around, ranks_among_close

#: How many items may be close to a relevant one: so many, and one of so many. The user of an item
#: with more is left unsettled. These numbers decide about time and memory alone.
_MAX_CLOSE, _ITEMS_PER_CLOSE = 64, 1024

#: How many scores of users with open ranks are looked at again. If there are more, nothing is.
_NUM_SETTLED = 2**21

#: How far apart two scores have to be to tell which is higher: a share of one, for rounding; a bit
#: more than twice the error of each; and a number that is not lost where scores are tiny.
_OF_SCORE, _OF_ERROR, _AT_LEAST = 2.0**-21, 2.002, 2.0**-140

#: How many more of the largest scores are looked at than a list is long.
SPARE = 8


class Layout:
    """Where the relevant items of some rows stand, whatever the scores are.

    Args:
        relevant (tuple): The rows and the items to rank, sorted by row, of shape `[num_relevant]`.
        shape (tuple): The number of rows, and that of items.

    Attributes:
        place (torch.Tensor): Where they stand among all scores, of shape `[num_relevant]`.
    """

    def __init__(self, relevant: UserItems, shape: tuple[int, int]) -> None:
        self.row, self.item = relevant
        self.num_rows, self.num_items = shape
        self.place = self.item.add(self.row, alpha=self.num_items)
        rows = Entries(*relevant, self.num_rows)
        num_slots = max_id(rows.ptr.diff())
        self._slot = rows.slot.add_(self.row, alpha=num_slots)
        edge = torch.arange(self.row.numel(), device=self.row.device)
        beside = edge.new_zeros(self.num_rows * num_slots)
        self._beside = beside.scatter_(0, self._slot, edge).view(self.num_rows, num_slots)

    def num_below(self, ascending: Tensor, values: Tensor, or_same: bool) -> Tensor:
        """Returns how many numbers of its row are below each value, of shape `[num_relevant]`.

        Args:
            ascending (torch.Tensor): The numbers of each row, of shape `[num_rows, num]`.
            values (torch.Tensor): A value for each relevant item, of shape `[num_relevant]`.
            or_same (bool): Whether those that are the same count, too.
        """
        beside = torch.searchsorted(ascending, values.take(self._beside), right=or_same)
        return beside.take(self._slot)


class Largest(NamedTuple):
    """The largest scores of each row.

    Attributes:
        value: The scores, in ascending order, of shape `[num_rows, k]`.
        item: Their items, best first, of the same shape, if lists are wanted.
        own: The scores of the relevant items, of shape `[num_relevant]`.
    """

    value: Tensor
    item: Tensor | None
    own: Tensor


def largest(scores: Tensor, layout: Layout, k: int, makes_lists: bool) -> Largest:
    """Returns the largest scores of each row.

    Args:
        scores (torch.Tensor): The scores, of shape `[num_rows, num_items]`; `-inf` for those that
            must not be retrieved. **Overwritten.**
        layout (Layout): Where what matters stands.
        k (int): How many scores of each row.
        makes_lists (bool): Whether to return their items, too.
    """
    own = scores.take(layout.place).double()
    if makes_lists:
        value, item = scores.topk(k, dim=1)
        return Largest(value.flip(1).double(), item, own)
    return Largest(largest_values(scores, k).double(), None, own)


def ranks_among(
    found: Largest, layout: Layout, depth: Tensor, error: Tensor | None
) -> tuple[Ranks, Tensor]:
    """Ranks the relevant items among the largest scores of their row.

    Args:
        found (Largest): The largest scores, at least one more of each row than it is deep, or all.
        layout (Layout): Where what matters stands.
        depth (torch.Tensor): How deep each item is ranked, of shape `[num_relevant]`.
        error (torch.Tensor, optional): How far the scores of each row can be from the exact
            products, of shape `[num_rows]`. (default: `None`, they are exact)

    Returns:
        The ranks down to the depth, and which items this does not settle, of shape
        `[num_relevant]`.
    """
    low = high = found.own
    if error is not None:
        width = _window(found.own, error.index_select(0, layout.row))
        low, high = found.own - width, found.own + width
    num_kept = found.value.size(1)
    num_up_to = layout.num_below(found.value, high, or_same=True)
    num_below = layout.num_below(found.value, low, or_same=False)
    num_above, num_tied = num_kept - num_up_to, num_up_to - num_below - 1
    # What was not kept is below a score that is kept and too low.
    is_open = num_tied > 0
    if num_kept < layout.num_items:
        is_open |= num_below == 0
    # What has no score is ranked below everything.
    is_open &= (num_above < depth).logical_and_(found.own > -torch.inf)
    return Ranks(num_above + 1, num_above, num_tied), is_open


def settle_(
    ranks: Ranks,
    is_open: Tensor,
    layout: Layout,
    masked: UserItems,
    products: Callable[[Tensor], tuple[Tensor, Tensor]],
) -> None:
    """Ranks, in place, what is open by better products of all items of its rows.

    The few rows are looked at by NumPy, which takes a fraction of the time to be asked.

    Args:
        ranks (Ranks): The ranks of the relevant items.
        is_open (torch.Tensor): Which of them are not settled, of shape `[num_relevant]`.
        layout (Layout): Where the relevant items stand.
        masked (tuple): The rows and the items that must not be retrieved.
        products (callable): Returns products of some rows with all items, `-inf` for those that
            no user can be recommended; and how far those of each row can be off.
    """
    edge = np.flatnonzero(is_open.numpy())
    if not 0 < edge.size * layout.num_items <= _NUM_SETTLED:
        return
    rows, number = np.unique(layout.row.numpy()[edge], return_inverse=True)
    scores, error = (values.numpy() for values in products(torch.from_numpy(rows)))
    row, item = (values.numpy() for values in masked)
    place = np.full(layout.num_rows, -1)
    place[rows] = np.arange(rows.size)
    is_of_rows = place[row] >= 0
    scores[place[row[is_of_rows]], item[is_of_rows]] = -np.inf
    scores = scores[number]
    own = scores[np.arange(edge.size), layout.item.numpy()[edge]]
    width = _OF_SCORE * np.abs(own) + _OF_ERROR * error[number] + _AT_LEAST
    num_above = (scores > (own + width)[:, None]).sum(axis=1)
    num_tied = (scores >= (own - width)[:, None]).sum(axis=1) - num_above - 1
    found = num_above + 1, num_above, num_tied, num_tied > 0
    for known, new in zip((*ranks, is_open), found, strict=True):
        known.numpy()[edge] = new


def lists_among(
    value: Tensor, item: Tensor, width: int, error: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Returns the best items of each row, and which rows this does not settle.

    Args:
        value (torch.Tensor): The largest scores of each row in ascending order, at least one more
            than `width`, or all.
        item (torch.Tensor): Their items, best first.
        width (int): How many items are wanted.
        error (torch.Tensor, optional): See :func:`ranks_among`.

    Returns:
        Items `[num_rows, width]`, `-1` where none is left, and a mask of shape `[num_rows]`.
    """
    value = value.flip(1)[:, : width + 1]
    upper, lower = value[:, :-1], value[:, 1:]
    gap = 0.0 if error is None else _window(upper, error.unsqueeze(1))
    is_close = (upper - lower <= gap).logical_and_(upper > -torch.inf)
    lists = item[:, :width].masked_fill(value[:, :width].isneginf(), -1)
    return lists, is_close.any(dim=1)


def ranks_by_counting(
    scores: Tensor,
    relevant: UserItems,
    depth: Tensor,
    error: Error,
    exactly: Callable[[Tensor, Tensor], Tensor],
    scratch: Scratch,
) -> tuple[Ranks, Tensor | None]:
    """Ranks relevant items, however deep, by counting scores and by exact scores of those close.

    Args:
        scores (torch.Tensor): The scores of all items, of shape `[num_rows, num_items]`; `-inf` for
            those that must not be retrieved.
        relevant (tuple): The rows and the items to rank, sorted by row, of shape `[num_relevant]`.
        depth (torch.Tensor): How deep each item is ranked, of shape `[num_relevant]`.
        error (tuple): How far scores can be off: a number for each row, and one for each item.
        exactly (callable): Returns the exact scores of rows and items.
        scratch (Scratch): The buffers to compute in.

    Returns:
        See :func:`ranks_among`; `None` if this settles all items.
    """
    row, item = relevant
    own = scores.take(item.add(row, alpha=scores.size(1)))
    window = _window(own, error[0].index_select(0, row) * error[1].index_select(0, item))
    ranked = Ranked(row, item, own.sub(window, alpha=0.5), own.add(window, alpha=0.5))
    num_above, num_close, *_ = count_around(scores, ranked, error, scratch)
    num_left = num_close.sub_(1).masked_fill_(num_above >= depth, 0)  # without itself
    is_open = num_left > _MAX_CLOSE + scores.size(1) // _ITEMS_PER_CLOSE
    num_left.masked_fill_(is_open, 0)
    total, num_open = torch.stack([num_left, is_open]).sum(dim=1).tolist()
    unsettled = is_open if num_open else None
    if total == 0:
        return Ranks(num_above + 1, num_above, num_left), unsettled
    number, other = find_around(scores, ranked, error, num_left, total, scratch)
    row, item = (values.index_select(0, number) for values in relevant)
    own, score = exactly(row.repeat(2), torch.cat([item, other])).view(2, -1)
    return ranks_among_close(number, other, item, score, own, num_above), unsettled


def best_by_scores(
    scores: Tensor, width: int, error: Error, exactly: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Returns the best items of each row by the exact scores of those with the largest scores.

    Args:
        scores (torch.Tensor): See :func:`ranks_by_counting`.
        width (int): How many items are wanted.
        error (tuple): See :func:`ranks_by_counting`.
        exactly (callable): See :func:`ranks_by_counting`.

    Returns:
        See :func:`lists_among`.
    """
    value, item = scores.topk(min(width + SPARE, scores.size(1)), dim=1)
    row = torch.arange(scores.size(0), device=scores.device).repeat_interleave(item.size(1))
    item = item.sort(dim=1).values  # so that of equal scores, the lower item stands first
    exact = exactly(row, item.flatten()).view(item.shape).add_(0.0)
    exact.masked_fill_(scores.gather(1, item).isneginf(), -torch.inf)
    exact, order = exact.sort(dim=1, descending=True, stable=True)
    lists = item.gather(1, order).masked_fill_(exact.isneginf(), -1)[:, :width]
    # No item that was not looked at scores more than this.
    limit = (value[:, -1].double() + error[0].double() * error[1].amax()).float()
    is_open = (exact[:, lists.size(1) - 1] <= limit).logical_and_(value[:, -1] > -torch.inf)
    return lists, is_open if item.size(1) < scores.size(1) else is_open.zero_()


def _window(score: Tensor, error: Tensor) -> Tensor:
    """Returns how far another score has to be from each to tell which of both is higher."""
    return score.abs().mul_(_OF_SCORE).add_(error, alpha=_OF_ERROR).add_(_AT_LEAST)
