r"""All ranks of few items among many, from scores in single precision and a bound on their error.

A product in single precision takes half the time of one in double precision. The kernel compares
16-bit integers: the scores of a user are scaled by a power of two to the range of these integers
and cut off, which is monotone. Let :math:`\alpha_u` be the bound on the error of the product
(:mod:`pyg_recmetrics.kernels.bounds`), :math:`z = \text{int16}(x)` the integer of the score of an
item, and :math:`c` the exact score of a relevant item. Then

- :math:`z > \text{int16}(c + \alpha_u)` proves that the item ranks above the relevant one,
- :math:`z < \text{int16}(c - \alpha_u)` proves that it ranks below.

Fewer than one item in 10,000 lies between. These items are compared by their exact scores. To find
them, the kernel counts the items above each of the two thresholds, in short stretches of items. It
only looks into the stretches in which the two counts differ.
"""

from collections.abc import Iterator
from typing import TypeAlias

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.kernels.bounds import ErrorBound
from pyg_recmetrics.kernels.packed_counts import MAX_FLAGS, pack_counts, unpack_counts
from pyg_recmetrics.kernels.ranks import Ranks
from pyg_recmetrics.kernels.rounded_items import RoundedItems
from pyg_recmetrics.kernels.scratch import Scratch

#: How many scores are computed at once, so that they stay in the caches until they are compared.
NUM_SCORES_IN_TILE = 2**21

#: How many comparisons are made of these scores. It bounds the memory of their counts.
NUM_COMPARISONS_IN_TILE = 2**25

#: How many comparisons are done at once, so that their flags stay in the caches.
NUM_COMPARISONS_AT_ONCE = 2**21

#: How many items a stretch has.
STRETCH = 128

#: The rows and the items of some edges, sorted by row.
UserItems: TypeAlias = tuple[Tensor, Tensor]

#: How many users are taken at once. With more of them, the product gets no faster.
MAX_ROWS = 1024

_LARGEST = torch.iinfo(torch.int16).max
_MASKED = torch.iinfo(torch.int16).min


class BoundedCount:
    """Proves all ranks, however deep, from scores in single precision.

    Args:
        items (RoundedItems): The items, in single precision.
    """

    def __init__(self, items: RoundedItems) -> None:
        self.items = items

    def num_rows(self, depth: int) -> int:
        """Returns how many users are ranked at once, if they are ranked down to `depth`."""
        return max(1, min(MAX_ROWS, NUM_COMPARISONS_IN_TILE // (depth * MAX_ROWS)))

    def ranks(
        self, user: Tensor, depth: Tensor, relevant: UserItems, seen: UserItems, scratch: Scratch
    ) -> tuple[Ranks, Tensor]:
        """Ranks the relevant items of some users.

        Args:
            user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`.
            depth (torch.Tensor): How deep each of them is ranked, of shape `[num_rows]`.
            relevant (tuple): The rows and the items to rank, of shape `[num_relevant]` each.
            seen (tuple): The rows and the items that must not be retrieved.
            scratch (Scratch): The buffers to compute in.

        Returns:
            The ranks of the relevant items, and which users could not be settled, of shape
            `[num_rows]`. The ranks of these users are not valid.
        """
        row, item = relevant
        num_rows = depth.numel()
        if row.numel() == 0:
            return Ranks.unknown(item), torch.zeros_like(depth, dtype=torch.bool)
        scaled = self.items.factors.for_single(user)
        single = scaled.float()
        score = self.items.factors.exact_scores(user, row, item)
        bound = ErrorBound(scaled, single, 1.01 * (user.size(1) + 1) * 2.0**-24)
        error = bound.of_items(self.items.rounded_norm, self.items.error)
        scale = _scale_to_int16(bound.norm * self.items.norm[0] + 2 * error)
        low, high = (
            (limit * scale[row]).short() for limit in (score - error[row], score + error[row])
        )
        number = torch.arange(row.numel(), device=row.device)
        slot = number - index2ptr(row, num_rows)[row]
        ranked = _side_by_side(number, row, slot, num_rows, fill=-1)
        low, high = (_side_by_side(x, row, slot, num_rows, fill=_LARGEST) for x in (low, high))
        num_above = torch.zeros_like(ranked)
        num_close = torch.zeros_like(depth)
        found = []
        single *= scale.float().unsqueeze(1)
        seen = (seen[0], self.items.column[seen[1]])
        for first, keys in self._tiles(single, seen, low.size(1), scratch):
            above, close = _counts(keys, low, high, scratch)
            num_above += above
            num_close += unpack_counts(close.sum(dim=2)).sum(dim=1)
            is_crowded = num_close > _max_close(depth)
            if is_crowded.any():
                close[is_crowded] = 0
            at_row, at_slot, other = _find_close(keys, close, low, high)
            found.append((ranked[at_row, at_slot], at_row, self.items.item[other + first]))
        numbers, rows, others = (torch.cat(parts) for parts in zip(*found, strict=True))
        pairs = numbers, rows, others
        return self._ranks_among(pairs, user, item, score, num_above[row, slot]), is_crowded

    def _tiles(
        self, user: Tensor, seen: UserItems, num_slots: int, scratch: Scratch
    ) -> Iterator[tuple[int, Tensor]]:
        """Scores one tile of the items after the other, as 16-bit integers.

        Yields:
            The first item, and integers of shape `[num_rows, num_stretches, STRETCH]`.
        """
        row, column = seen
        num_rows = user.size(0)
        max_width = min(NUM_SCORES_IN_TILE, NUM_COMPARISONS_IN_TILE // num_slots) // num_rows
        width = max(1, min(MAX_FLAGS, max_width) // STRETCH) * STRETCH
        num_columns = self.items.item.numel()
        num_padded = -(-num_columns // STRETCH) * STRETCH
        for start in range(0, num_padded, width):
            end = min(start + width, num_padded)
            shape = (num_rows, end - start)
            scores = scratch("bounded_count.scores", shape, torch.float32)
            torch.mm(user, self.items.rounded(start, end).t(), out=scores)
            keys = scratch("bounded_count.keys", shape, torch.int16).copy_(scores)
            keys[:, max(0, num_columns - start) :] = _MASKED
            inside = ((column >= start) & (column < end)).nonzero().squeeze(1)
            keys.view(-1).index_fill_(0, row[inside] * shape[1] + column[inside] - start, _MASKED)
            yield start, keys.view(num_rows, -1, STRETCH)

    def _ranks_among(
        self,
        close: tuple[Tensor, Tensor, Tensor],
        user: Tensor,
        item: Tensor,
        score: Tensor,
        num_above: Tensor,
    ) -> Ranks:
        """Ranks items of known score, by comparing them with the exact scores of close ones.

        Args:
            close (tuple): What is not proved to rank above or below: the number of an item to
                rank, the row of its user, and the other item.
            user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`.
            item (torch.Tensor): The items to rank, of shape `[num_ranked]`.
            score (torch.Tensor): Their exact scores, of shape `[num_ranked]`.
            num_above (torch.Tensor): How many items are proved to score higher than each.
        """
        ranked, row, other = close
        is_other = (other != item[ranked]).nonzero().squeeze(1)
        ranked, row, other = (values[is_other] for values in close)
        others_score, own = self.items.factors.exact_scores(user, row, other), score[ranked]
        is_tied = others_score == own
        is_before = is_tied & (other < item[ranked])
        above, tied, before = (
            torch.bincount(ranked[flags], minlength=item.numel())
            for flags in (others_score > own, is_tied, is_before)
        )
        num_above = num_above + above
        return Ranks(1 + num_above + before, num_above, tied)


def _max_close(depth: Tensor) -> Tensor:
    """Returns how many undecided items a user may have before it is left unsettled."""
    return 32 * depth + 256


def _scale_to_int16(largest: Tensor) -> Tensor:
    """Returns the power of two that scales numbers up to `largest` to the range of `int16`."""
    return (15 - (1.001 * largest).frexp().exponent).double().exp2()


def _side_by_side(value: Tensor, row: Tensor, slot: Tensor, num_rows: int, fill: int) -> Tensor:
    """Puts the values of the edges of a row side by side: `[num_rows, num_slots]`."""
    matrix = value.new_full((num_rows, int(slot.max()) + 1), fill)
    matrix[row, slot] = value
    return matrix


def _counts(keys: Tensor, low: Tensor, high: Tensor, scratch: Scratch) -> tuple[Tensor, Tensor]:
    """Counts the keys above `high`, and in every stretch those from `low` to `high`.

    Returns:
        The counts, of shape `[num_rows, num_slots]`, and those of shape
        `[num_rows, num_slots, num_stretches]`, packed.
    """
    num_rows, num_stretches, _ = keys.shape
    num_slots = low.size(1)
    keys, low, high = keys.unsqueeze(1), low[:, :, None, None], high[:, :, None, None]
    num_above = torch.empty(
        num_rows, num_slots, num_stretches, dtype=torch.long, device=keys.device
    )
    num_close = torch.empty_like(num_above)
    max_rows = max(1, NUM_COMPARISONS_AT_ONCE // (num_slots * num_stretches * STRETCH))
    rows_at_once = min(num_rows, max_rows)
    shape = (rows_at_once, num_slots, num_stretches, STRETCH)
    flags = scratch("bounded_count.flags", shape, keys.dtype)
    for start in range(0, num_rows, rows_at_once):
        rows = slice(start, start + rows_at_once)
        others = keys[rows]
        is_beyond = flags[: others.size(0)]
        pack_counts(torch.ge(others, low[rows], out=is_beyond), out=num_close[rows])
        pack_counts(torch.gt(others, high[rows], out=is_beyond), out=num_above[rows])
    num_close -= num_above
    return unpack_counts(num_above.sum(dim=2)), num_close


def _find_close(
    keys: Tensor, num_close: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Looks into the stretches that hold something close, and returns its rows, slots, columns."""
    row, slot, stretch = num_close.nonzero(as_tuple=True)
    value = keys[row, stretch]
    is_close = value >= low[row, slot].unsqueeze(1)
    is_close &= value <= high[row, slot].unsqueeze(1)
    found, column = is_close.nonzero(as_tuple=True)
    return row[found], slot[found], stretch[found] * STRETCH + column
