r"""All ranks of few items among many, without sorting: by counting what scores higher.

:func:`count_ranks` counts in a matrix of exact scores. :class:`BoundedCount` counts in a product in
single precision, which takes half the time of one in double precision, and compares 16-bit
integers: a user's scores, scaled by a power of two to the range of these and cut off, which is
monotone. With a bound :math:`\alpha_u` on the error of the product
(:mod:`pyg_recmetrics.bounds`), an integer :math:`z = \text{int16}(x)` of the score of an item, and
the exact score :math:`c` of a relevant one,

- :math:`z > \text{int16}(c + \alpha_u)` proves that the item ranks above it,
- :math:`z < \text{int16}(c - \alpha_u)` proves that it ranks below it,

and what lies between, less than one item in 10,000, is compared by its exact score. To find it,
both thresholds are counted, in short stretches of items: only where the counts differ is anything
looked at.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.bounds import BoundedRanking, Depth, ErrorBound, UserItems
from pyg_recmetrics.flags import MOST_FLAGS, pack_counts, unpack_counts
from pyg_recmetrics.scores import inner_products, scaled_by_row
from pyg_recmetrics.topk import Scratch

#: How many comparisons are done at once: their results shall stay in the cache of a processor.
NUM_COMPARISONS = 2**19

#: The same for comparisons that read scores in place.
NUM_COMPARISONS_IN_PLACE = 2**21

#: In how long a stretch of items differing counts are looked for.
STRETCH = 128

#: How many scores are computed at once: they shall stay in the caches until they are compared.
NUM_SCORES_IN_TILE = 2**21

#: How many comparisons are done of such scores: their counts shall not take more than they do.
NUM_COMPARISONS_IN_TILE = 2**25

#: How many users are taken at once: with more, a product gets no faster.
MOST_ROWS = 1024

_LARGEST = torch.iinfo(torch.int16).max
_MASKED = torch.iinfo(torch.int16).min


def count_ranks(scores: Tensor, row: Tensor, column: Tensor, scratch: Scratch) -> Tensor:
    """Ranks some columns of each row by counting what scores higher.

    Equal scores rank the lower column first: the columns before it are counted if they score as
    high or higher, those behind it only if they score higher.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`. What must not be counted
            holds `-inf`.
        row (torch.Tensor): The rows of what is ranked, of shape `[num_ranked]`.
        column (torch.Tensor): The columns of what is ranked, of shape `[num_ranked]`.
        scratch (Scratch): Where to keep what is needed on the way.

    Returns:
        The 1-based ranks, of shape `[num_ranked]`.
    """
    own = scores[row, column]
    # What is above the next smaller number is as high or higher.
    below_own = own.nextafter(torch.full_like(own, -torch.inf))
    rank = torch.ones_like(row)
    num_columns = scores.size(1)
    width = max(1, min(num_columns, NUM_COMPARISONS // max(1, row.numel())))
    for start in range(0, num_columns, width):
        end = min(start + width, num_columns)
        threshold = torch.where(column >= end, below_own, own)
        rank += count_above(scores[:, start:end], row, threshold, scratch)
    return rank + _ties_within(scores, row, column, own.unsqueeze(1), width)


def _ties_within(scores: Tensor, row: Tensor, column: Tensor, own: Tensor, width: int) -> Tensor:
    """Counts equal scores before a column, from the start of the stretch that it lies in."""
    place = torch.arange(width, device=scores.device)
    start = column // width * width
    before = start.unsqueeze(1) + place
    is_before = before < column.unsqueeze(1)
    others = scores[row.unsqueeze(1), before.clamp_(max=scores.size(1) - 1)]
    return ((others == own) & is_before).sum(dim=1)


def count_above(scores: Tensor, row: Tensor, threshold: Tensor, scratch: Scratch) -> Tensor:
    """Counts what is above a threshold in each of some rows."""
    counts = []
    at_once = max(1, NUM_COMPARISONS // scores.size(1))
    for rows, thresholds in zip(row.split(at_once), threshold.split(at_once), strict=True):
        shape = (rows.numel(), scores.size(1))
        others = torch.index_select(scores, 0, rows, out=scratch("others", shape, scores.dtype))
        # As numbers instead of booleans, the results are several times faster to sum.
        is_above = scratch("is_above", shape, scores.dtype)
        torch.gt(others, thresholds.unsqueeze(1), out=is_above)
        counts.append(is_above.sum(dim=1))
    return torch.cat(counts).long()


def count_ties_before(scores: Tensor, row: Tensor, column: Tensor, own: Tensor) -> Tensor:
    """Counts what equals the score of a column in front of it, and not the column itself."""
    counts = [torch.zeros(0, dtype=torch.long, device=row.device)]
    columns = torch.arange(scores.size(1), device=row.device)
    at_once = max(1, NUM_COMPARISONS // scores.size(1))
    parts = (values.split(at_once) for values in (row, column, own))
    for some_rows, some_columns, some_own in zip(*parts, strict=True):
        is_before = columns < some_columns.unsqueeze(1)
        is_tie = scores[some_rows] == some_own.unsqueeze(1)
        # However it was rounded in the tile, its own score is not above itself.
        is_own_above = scores[some_rows, some_columns] > some_own
        counts.append((is_tie & is_before).sum(dim=1) - is_own_above.long())
    return torch.cat(counts)


class BoundedCount(BoundedRanking):
    """Finds all ranks, however deep, from scores in single precision."""

    dtype = torch.float32
    group_size = STRETCH

    def batch_size(self, depth: int) -> int:
        return max(1, min(MOST_ROWS, NUM_COMPARISONS_IN_TILE // (depth * MOST_ROWS)))

    def ranks(
        self, users: Tensor, depth: Tensor, relevant: UserItems, seen: UserItems, scratch: Scratch
    ) -> tuple[Tensor, Tensor]:
        row, item = relevant
        num_rows = users.numel()
        user = scaled_by_row(self.user[users])
        single = user.float()
        score = inner_products(user, row, self.item, item)
        bound = ErrorBound(user, single, 1.01 * (user.size(1) + 1) * 2.0**-24)
        error = bound.of_any(self.bound)
        scale = _scale_to_int16(bound.norm * self.bound.norm.max() + 2 * error)
        low, high = (
            (limit * scale[row]).short() for limit in (score - error[row], score + error[row])
        )
        place = torch.arange(row.numel()) - index2ptr(row, num_rows)[row]
        edge = _by_place(torch.arange(row.numel()), row, place, num_rows, fill=-1)
        low, high = (_by_place(x, row, place, num_rows, fill=_LARGEST) for x in (low, high))
        num_above = torch.zeros(low.shape, dtype=torch.long)
        num_close = torch.zeros(num_rows, dtype=torch.long)
        found = []
        single *= scale.float().unsqueeze(1)
        for first, keys in self._tiles(single, seen, low.size(1), scratch):
            above, close = _counts(keys, low, high, scratch)
            num_above += above
            num_close += unpack_counts(close.sum(dim=2)).sum(dim=1)
            is_crowded = num_close > _most_close(depth)
            if is_crowded.any():
                close[is_crowded] = 0
            at_row, at_place, other = _find_close(keys, close, low, high)
            found.append((edge[at_row, at_place], at_row, other + first))
        at_edge, row_of_edge, other = (torch.cat(parts) for parts in zip(*found, strict=True))
        # An item is close to itself.
        is_other = (other != item[at_edge]).nonzero().squeeze(1)
        at_edge, row_of_edge, other = (x[is_other] for x in (at_edge, row_of_edge, other))
        wins = self.wins(user, row_of_edge, other, item[at_edge], score[at_edge])
        rank = 1 + num_above[row, place]
        rank += torch.bincount(at_edge[wins], minlength=rank.numel())
        return rank, is_crowded

    def _tiles(
        self, user: Tensor, seen: UserItems, num_places: int, scratch: Scratch
    ) -> Iterator[tuple[int, Tensor]]:
        """Scores of one part of the items after the other, as 16-bit integers.

        Yields:
            The first item, and integers of shape `[num_rows, num_stretches, STRETCH]`.
        """
        row, item = seen
        num_rows = user.size(0)
        most = min(NUM_SCORES_IN_TILE, NUM_COMPARISONS_IN_TILE // num_places) // num_rows
        width = max(1, min(MOST_FLAGS, most) // STRETCH) * STRETCH
        tile = item // width
        order = tile.argsort(stable=True)
        num_tiles = -(-self.rounded.size(0) // width)
        num_seen = torch.bincount(tile, minlength=num_tiles).tolist()
        rows_and_columns = zip(
            row[order].split(num_seen), (item % width)[order].split(num_seen), strict=True
        )
        for place, (row_in_tile, column) in enumerate(rows_and_columns):
            items = self.rounded[place * width : (place + 1) * width]
            shape = (num_rows, items.size(0))
            scores = torch.mm(user, items.t(), out=scratch("single", shape, torch.float32))
            keys = scratch("keys", shape, torch.int16).copy_(scores)
            keys[:, max(0, self.item.size(0) - place * width) :] = _MASKED
            keys.view(-1).index_fill_(0, row_in_tile * shape[1] + column, _MASKED)
            yield place * width, keys.view(num_rows, -1, STRETCH)


def _most_close(depth: Depth) -> Depth:
    """How many items may be close to what is ranked, before a user is left to the exact path."""
    return 32 * depth + 256


def _scale_to_int16(largest: Tensor) -> Tensor:
    """The power of two that takes numbers up to `largest` close to those of 16-bit integers."""
    return (15 - (1.001 * largest).frexp().exponent).double().exp2()


def _by_place(value: Tensor, row: Tensor, place: Tensor, num_rows: int, fill: int) -> Tensor:
    """Puts the values of the edges of every row side by side: `[num_rows, max(place) + 1]`."""
    matrix = value.new_full((num_rows, int(place.max()) + 1), fill)
    matrix[row, place] = value
    return matrix


def _counts(keys: Tensor, low: Tensor, high: Tensor, scratch: Scratch) -> tuple[Tensor, Tensor]:
    """Counts what is above `high`, and in every stretch what is between `low` and `high`.

    Returns:
        The counts, of shape `[num_rows, num_places]`, and those of shape
        `[num_rows, num_places, num_stretches]`, packed.
    """
    num_rows, num_stretches, _ = keys.shape
    num_places = low.size(1)
    keys, low, high = keys.unsqueeze(1), low[:, :, None, None], high[:, :, None, None]
    num_above = torch.empty(num_rows, num_places, num_stretches, dtype=torch.long)
    num_close = torch.empty_like(num_above)
    most = max(1, NUM_COMPARISONS_IN_PLACE // (num_places * num_stretches * STRETCH))
    at_once = min(num_rows, most)
    flags = scratch("flags", (at_once, num_places, num_stretches, STRETCH), keys.dtype)
    for start in range(0, num_rows, at_once):
        rows = slice(start, start + at_once)
        others = keys[rows]
        is_beyond = flags[: others.size(0)]
        pack_counts(torch.ge(others, low[rows], out=is_beyond), out=num_close[rows])
        pack_counts(torch.gt(others, high[rows], out=is_beyond), out=num_above[rows])
    num_close -= num_above
    return unpack_counts(num_above.sum(dim=2)), num_close


def _find_close(
    keys: Tensor, num_close: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Looks into the stretches that hold something close: rows, places and columns of it."""
    row, place, stretch = num_close.nonzero(as_tuple=True)
    value = keys[row, stretch]
    is_close = value >= low[row, place].unsqueeze(1)
    is_close &= value <= high[row, place].unsqueeze(1)
    found, column = is_close.nonzero(as_tuple=True)
    return row[found], place[found], stretch[found] * STRETCH + column
