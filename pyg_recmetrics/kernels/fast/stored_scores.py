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

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.kernels.entries import SortedRows, UserItems
from pyg_recmetrics.kernels.exact.ranks import Ranks


class Layout:
    """Where the relevant and the masked items of some rows stand, whatever their scores are.

    Rows are cut into tiles, whose scores are stored one after the other.

    Args:
        relevant (tuple): The rows and the items to rank, sorted by row, of shape `[num_relevant]`.
        masked (tuple): The rows and the items that must not be retrieved, sorted by row.
        hidden (torch.Tensor or None): The items that nobody can be recommended.
        num_rows (int): The number of rows.
        num_items (int): The number of items.
        rows_at_once (int): How many rows a tile has. The last has the rest.

    Attributes:
        relevant: Where the relevant items of each tile stand among its scores.
        masked: Where the masked ones do.
    """

    def __init__(
        self,
        relevant: UserItems,
        masked: UserItems,
        hidden: Tensor | None,
        num_rows: int,
        num_items: int,
        rows_at_once: int,
    ) -> None:
        (self.row, _), device = relevant, relevant[0].device
        self.hidden, self.shape = hidden, (num_rows, num_items)
        start = torch.arange(0, num_rows + rows_at_once, rows_at_once, device=device)
        rows = SortedRows(self.row, num_rows)
        ends = [torch.searchsorted(part[0].contiguous(), start) for part in (relevant, masked)]
        # All that the host has to know comes in one copy.
        *ends_on_host, num_slots = torch.cat([*ends, rows.ptr.diff().amax(keepdim=True)]).tolist()
        parts = ends_on_host[: start.numel()], ends_on_host[start.numel() :]
        self.relevant, self.masked = (
            self._in_tiles(*pairs, of_tiles, rows_at_once)
            for pairs, of_tiles in zip((relevant, masked), parts, strict=True)
        )
        num_slots = max(1, num_slots)
        self._slot = rows.slot.add_(self.row, alpha=num_slots)
        edge = torch.arange(self.row.numel(), device=device)
        beside = torch.zeros(num_rows * num_slots, dtype=torch.long, device=device)
        self._beside = beside.scatter_(0, self._slot, edge).view(num_rows, num_slots)

    def _in_tiles(
        self, row: Tensor, item: Tensor, ends: list[int], rows_at_once: int
    ) -> tuple[Tensor, ...]:
        place = (row % rows_at_once).mul_(self.shape[1]).add_(item)
        return place.split([end - start for start, end in zip(ends, ends[1:], strict=False)])

    def mask_(self, scores: Tensor, number: int) -> Tensor:
        """Overwrites the scores of a tile that must not be retrieved."""
        scores.view(-1).index_fill_(0, self.masked[number], -torch.inf)
        return scores if self.hidden is None else scores.index_fill_(1, self.hidden, -torch.inf)

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
        item: Their items, best first, of the same shape; `None` if no lists are wanted.
        own: The scores of the relevant items, of shape `[num_relevant]`.
        span: How far all scores of each row are apart, masked ones, too: finite if all of them are,
            and small; `None` if nobody asked. Of shape `[num_rows]`.
    """

    value: Tensor
    item: Tensor | None
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
        if makes_lists:
            value, item = scores.topk(k, dim=1)
            items.append(item)
            values.append(value.flip(1))
        else:
            values.append(_largest_values(scores, k))
    item = torch.cat(items) if makes_lists else None
    span = torch.cat(spans) if looks_at_all else None
    return Largest(torch.cat(values).double(), item, torch.cat(own).double(), span)


def _largest_values(scores: Tensor, k: int) -> Tensor:
    """Returns the largest values of each row, in ascending order."""
    if scores.device.type != "cpu":
        return scores.topk(k, dim=1).values.flip(1)
    # NumPy does it by vector instructions.
    values, first = scores.numpy(), scores.size(1) - k
    if first > 0:
        values = np.partition(values, first, axis=1)[:, first:]
    return torch.from_numpy(np.sort(values, axis=1))


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
    if found.own.numel() == 0:
        return Ranks.unknown(layout.row), torch.zeros_like(layout.row, dtype=torch.bool)
    low = high = found.own
    if error is not None:
        width = _window(found.own, error.index_select(0, layout.row))
        low, high = found.own - width, found.own + width
    num_kept, num_items = found.value.size(1), layout.shape[1]
    num_above = num_kept - layout.num_below(found.value, high, or_same=True)
    num_tied = num_kept - 1 - layout.num_below(found.value, low, or_same=False) - num_above
    # What was not kept is below a score that is kept and too low.
    is_open = num_tied > 0
    if num_kept < num_items:
        is_open |= num_above + num_tied >= num_kept - 1
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


def _window(score: Tensor, error: Tensor) -> Tensor:
    """Returns how far another score has to be from each to tell which of both is higher."""
    return score.abs().mul_(2.0**-21).add_(error, alpha=2.002).add_(2.0**-140)
