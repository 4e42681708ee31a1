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

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.kernels.bounds import BoundedRanking, Depth, ErrorBound, UserItems
from pyg_recmetrics.kernels.packed_counts import MAX_FLAGS, pack_counts, unpack_counts
from pyg_recmetrics.kernels.ranks import Ranks
from pyg_recmetrics.kernels.scores import inner_products, scaled_by_row
from pyg_recmetrics.kernels.scratch import Scratch

#: How many scores are computed at once, so that they stay in the caches until they are compared.
NUM_SCORES_IN_TILE = 2**21

#: How many comparisons are made of these scores. It bounds the memory of their counts.
NUM_COMPARISONS_IN_TILE = 2**25

#: How many comparisons are done at once, so that their flags stay in the caches.
NUM_COMPARISONS_AT_ONCE = 2**21

#: How many items a stretch has.
STRETCH = 128

#: How many users are taken at once. With more of them, the product gets no faster.
MAX_ROWS = 1024

_LARGEST = torch.iinfo(torch.int16).max
_MASKED = torch.iinfo(torch.int16).min


class BoundedCount(BoundedRanking):
    """Proves all ranks, however deep, from scores in single precision."""

    dtype = torch.float32
    group_size = STRETCH

    def num_rows(self, depth: int) -> int:
        return max(1, min(MAX_ROWS, NUM_COMPARISONS_IN_TILE // (depth * MAX_ROWS)))

    def ranks(
        self, users: Tensor, depth: Tensor, relevant: UserItems, seen: UserItems, scratch: Scratch
    ) -> tuple[Ranks, Tensor]:
        row, item = relevant
        num_rows = users.numel()
        if row.numel() == 0:
            return Ranks.unknown(item), torch.zeros_like(users, dtype=torch.bool)
        user = scaled_by_row(self.user[users])
        single = user.float()
        score = inner_products(user, row, self.item, item)
        bound = ErrorBound(user, single, 1.01 * (user.size(1) + 1) * 2.0**-24)
        error = bound.of_any(self.bound)
        scale = _scale_to_int16(bound.norm * self.bound.norm.max() + 2 * error)
        low, high = (
            (limit * scale[row]).short() for limit in (score - error[row], score + error[row])
        )
        number = torch.arange(row.numel(), device=row.device)
        slot = number - index2ptr(row, num_rows)[row]
        ranked = _side_by_side(number, row, slot, num_rows, fill=-1)
        low, high = (_side_by_side(x, row, slot, num_rows, fill=_LARGEST) for x in (low, high))
        num_above = torch.zeros_like(ranked)
        num_close = torch.zeros_like(users)
        found = []
        single *= scale.float().unsqueeze(1)
        for first, keys in self._tiles(single, seen, low.size(1), scratch):
            above, close = _counts(keys, low, high, scratch)
            num_above += above
            num_close += unpack_counts(close.sum(dim=2)).sum(dim=1)
            is_crowded = num_close > _max_close(depth)
            if is_crowded.any():
                close[is_crowded] = 0
            at_row, at_slot, other = _find_close(keys, close, low, high)
            found.append((ranked[at_row, at_slot], at_row, other + first))
        numbers, rows, others = (torch.cat(parts) for parts in zip(*found, strict=True))
        pairs = numbers, rows, others
        return self.ranks_among(pairs, user, item, score, num_above[row, slot]), is_crowded

    def _tiles(
        self, user: Tensor, seen: UserItems, num_slots: int, scratch: Scratch
    ) -> Iterator[tuple[int, Tensor]]:
        """Scores one tile of the items after the other, as 16-bit integers.

        Yields:
            The first item, and integers of shape `[num_rows, num_stretches, STRETCH]`.
        """
        row, item = seen
        num_rows = user.size(0)
        max_width = min(NUM_SCORES_IN_TILE, NUM_COMPARISONS_IN_TILE // num_slots) // num_rows
        width = max(1, min(MAX_FLAGS, max_width) // STRETCH) * STRETCH
        tile_of_seen = item // width
        order = tile_of_seen.argsort(stable=True)
        num_tiles = -(-self.rounded.size(0) // width)
        num_seen = torch.bincount(tile_of_seen, minlength=num_tiles).tolist()
        rows_and_columns = zip(
            row[order].split(num_seen), (item % width)[order].split(num_seen), strict=True
        )
        for tile, (row_in_tile, column) in enumerate(rows_and_columns):
            items = self.rounded[tile * width : (tile + 1) * width]
            shape = (num_rows, items.size(0))
            scores = scratch("bounded_count.scores", shape, torch.float32)
            torch.mm(user, items.t(), out=scores)
            keys = scratch("bounded_count.keys", shape, torch.int16).copy_(scores)
            keys[:, max(0, self.item.size(0) - tile * width) :] = _MASKED
            keys.view(-1).index_fill_(0, row_in_tile * shape[1] + column, _MASKED)
            yield tile * width, keys.view(num_rows, -1, STRETCH)


def _max_close(depth: Depth) -> Depth:
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
