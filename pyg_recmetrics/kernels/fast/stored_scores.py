r"""Ranks and lists from the largest scores of each row, where few items make it quick to store all.

A product in double precision is within :math:`e` of the exact inner product
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
within :math:`w`, its rank is one more than the number of those above. What is close, or ties, is
left to other kernels. A list is proved by the gaps between its scores, and that behind the last.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.kernels.card import Error, Ranked
from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import Entries, UserItems
from pyg_recmetrics.kernels.exact.counting import count_around, find_around, ranks_among_close
from pyg_recmetrics.kernels.exact.ranks import Ranks

#: How many items may be close to a relevant one: so many, and one of so many. The user of an item
#: with more is left unsettled. These numbers decide about time and memory alone.
_MAX_CLOSE, _ITEMS_PER_CLOSE = 64, 1024

#: How many more of the largest scores are looked at than a list is long.
SPARE = 8


class Layout:
    """Where the relevant and the masked items of some rows stand, whatever their scores are.

    Rows are cut into tiles, whose scores are stored one after the other.

    Args:
        relevant (tuple): The rows and the items to rank, sorted by row, of shape `[num_relevant]`.
        masked (tuple): The rows and the items that must not be retrieved, sorted by row.
        is_hidden (torch.Tensor or None): Whether each item cannot be recommended to any user.
        shape (tuple): The number of rows, and that of items.
        rows_at_once (int): How many rows a tile has. The last has the rest.

    Attributes:
        relevant: Where the relevant items of each tile stand among its scores.
        masked: Where the masked ones do.
    """

    def __init__(
        self,
        relevant: UserItems,
        masked: UserItems,
        is_hidden: Tensor | None,
        shape: tuple[int, int],
        rows_at_once: int,
    ) -> None:
        (self.row, _), device = relevant, relevant[0].device
        self.is_hidden, (num_rows, self.num_items) = is_hidden, shape
        start = torch.arange(0, num_rows + rows_at_once, rows_at_once, device=device)
        rows = Entries(*relevant, num_rows)
        pairs = (relevant, masked)
        ends = [torch.searchsorted(row.contiguous(), start) for row, _ in pairs]
        # All that the host has to know comes in one copy.
        numbers = *(end.diff() for end in ends), rows.ptr.diff().amax(dim=0, keepdim=True)
        *sizes, num_slots = torch.cat(numbers).tolist()
        places = [item.add(row % rows_at_once, alpha=self.num_items) for row, item in pairs]
        num_tiles = start.numel() - 1
        self.relevant = places[0].split(sizes[:num_tiles])
        self.masked = places[1].split(sizes[num_tiles:])
        self._slot = rows.slot.add_(self.row, alpha=num_slots)
        edge = torch.arange(self.row.numel(), device=device)
        beside = torch.zeros(num_rows * num_slots, dtype=torch.long, device=device)
        self._beside = beside.scatter_(0, self._slot, edge).view(num_rows, num_slots)

    def mask_(self, scores: Tensor, number: int) -> Tensor:
        """Overwrites the scores of a tile that must not be retrieved."""
        scores.view(-1).index_fill_(0, self.masked[number], -torch.inf)
        return scores if self.is_hidden is None else scores.masked_fill_(self.is_hidden, -torch.inf)

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
        span: How far all scores of each row are apart, masked ones, too: finite if all of them are,
            and small; `None` if it is not needed. Of shape `[num_rows]`.
    """

    value: Tensor
    item: Tensor
    own: Tensor
    span: Tensor | None


def largest(
    tiles: Iterable[Tensor], layout: Layout, k: int, makes_lists: bool, looks_at_all: bool
) -> Largest:
    """Returns the largest scores of each row.

    Args:
        tiles (iterable): The scores of the rows of each tile, which may be overwritten.
        layout (Layout): Where what matters stands.
        k (int): How many scores of each row.
        makes_lists (bool): Whether to return their items, too.
        looks_at_all (bool): Whether to find out how far all scores are apart.
    """
    values, items, own, spans = [], [], [], []
    for number, scores in enumerate(tiles):
        if looks_at_all:
            low, high = scores.aminmax(dim=1)
            spans.append(high.sub_(low))
        layout.mask_(scores, number)
        own.append(scores.take(layout.relevant[number]))
        value, item = _largest(scores, k, makes_lists)
        values.append(value)
        items.append(item)
    return Largest(
        torch.cat(values).double(),
        torch.cat(items) if makes_lists else items[0],
        torch.cat(own).double(),
        torch.cat(spans) if looks_at_all else None,
    )


def _largest(scores: Tensor, k: int, makes_lists: bool) -> tuple[Tensor, Tensor]:
    """Returns the largest values in ascending order, and their items best first, if wanted."""
    if makes_lists:
        value, item = scores.topk(k, dim=1)
        return value.flip(1), item
    # NumPy does it by vector instructions, in place, as to copy takes as long.
    values, first = scores.numpy(), scores.size(1) - k
    if first > 0:
        values.partition(first, axis=1)
    return torch.from_numpy(np.sort(values[:, first:], axis=1)), scores[:, :0]


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
    return score.abs().mul_(2.0**-21).add_(error, alpha=2.002).add_(2.0**-140)
