r"""All ranks of few items among many, without sorting: by counting what scores higher.

:func:`count_ranks` counts in a matrix of exact scores. :class:`BoundedCount` counts in a product in
single precision, which takes half the time of one in double precision: with a bound
:math:`\alpha_u` on its error (:mod:`pyg_recmetrics.bounds`), a score :math:`x` of an item and the
exact score :math:`c` of a relevant one,

- :math:`x > c + \alpha_u` proves that the item ranks above it,
- :math:`x < c - \alpha_u` proves that it ranks below it,

and what lies between, less than one item in 10,000, is compared by its exact score. To find it,
both thresholds are counted, in short stretches of items: only where the counts differ is anything
looked at.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.bounds import NUM_SCORES, BoundedRanking, ErrorBound, UserItems, most_close
from pyg_recmetrics.scores import inner_products, scaled_by_row
from pyg_recmetrics.topk import Scratch

#: How many comparisons are done at once: their results shall stay in the cache of a processor.
NUM_COMPARISONS = 2**19

#: The same for comparisons that read scores in place.
NUM_COMPARISONS_IN_PLACE = 2**21

#: In how long a stretch of items differing counts are looked for.
STRETCH = 512

#: How many scores are computed at once: they shall stay in the caches until they are compared.
NUM_SCORES_IN_TILE = 2**22

#: How many users are taken at once: with more, a product gets no faster.
MOST_ROWS = 1024


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
        return max(1, min(MOST_ROWS, NUM_SCORES // (most_close(depth) * STRETCH)))

    def ranks(
        self, users: Tensor, depth: Tensor, relevant: UserItems, seen: UserItems, scratch: Scratch
    ) -> tuple[Tensor, Tensor]:
        row, item = relevant
        num_rows = users.numel()
        user = scaled_by_row(self.user[users])
        single = user.float()
        score = inner_products(user, row, self.item, item)
        bound = ErrorBound(user, single, 1.01 * (user.size(1) + 1) * 2.0**-24)
        low, high = _thresholds(score, bound.of_any(self.bound)[row])
        place = torch.arange(row.numel()) - index2ptr(row, num_rows)[row]
        edge = _by_place(torch.arange(row.numel()), row, place, num_rows, fill=-1)
        low, high = (_by_place(x, row, place, num_rows, fill=torch.inf) for x in (low, high))
        num_above = torch.zeros(low.shape, dtype=torch.long)
        num_close = torch.zeros(num_rows, dtype=torch.long)
        found = []
        for first, scores in self._tiles(single, seen, scratch):
            above, close = _counts(scores, low, high, scratch)
            num_above += above
            stretch = item // STRETCH - first
            own = ((stretch >= 0) & (stretch < scores.size(1))).nonzero().squeeze(1)
            close[row[own], place[own], stretch[own]] -= 1  # an item is close to itself
            num_close += close.sum(dim=(1, 2), dtype=torch.long)
            close[num_close > most_close(depth)] = 0
            at_row, at_place, other = _find_close(scores, close, low, high)
            found.append((edge[at_row, at_place], at_row, other + first * STRETCH))
        at_edge, row_of_edge, other = (torch.cat(parts) for parts in zip(*found, strict=True))
        wins = self.wins(user, row_of_edge, other, item[at_edge], score[at_edge])
        rank = 1 + num_above[row, place]
        rank += torch.bincount(at_edge[wins], minlength=rank.numel())
        return rank, num_close > most_close(depth)

    def _tiles(
        self, user: Tensor, seen: UserItems, scratch: Scratch
    ) -> Iterator[tuple[int, Tensor]]:
        """Scores of one part of the items after the other, which stay in the caches.

        Yields:
            The first stretch, and scores of shape `[num_rows, num_stretches, STRETCH]`.
        """
        row, item = seen
        num_rows = user.size(0)
        width = max(1, NUM_SCORES_IN_TILE // (num_rows * STRETCH)) * STRETCH
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
            scores[:, max(0, self.item.size(0) - place * width) :] = -torch.inf
            scores.view(-1).index_fill_(0, row_in_tile * shape[1] + column, -torch.inf)
            yield place * width // STRETCH, scores.view(num_rows, -1, STRETCH)


def _thresholds(score: Tensor, bound: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers below and above which a score proves its order, rounded outwards."""
    infinity = torch.tensor(torch.inf)
    low, high = (score - bound).float(), (score + bound).float()
    return low.nextafter(-infinity), high.nextafter(infinity)


def _by_place(value: Tensor, row: Tensor, place: Tensor, num_rows: int, fill: float) -> Tensor:
    """Puts the values of the edges of every row side by side: `[num_rows, max(place) + 1]`."""
    matrix = value.new_full((num_rows, int(place.max()) + 1), fill)
    matrix[row, place] = value
    return matrix


def _counts(scores: Tensor, low: Tensor, high: Tensor, scratch: Scratch) -> tuple[Tensor, Tensor]:
    """Counts what is above `high`, and in every stretch what is between `low` and `high`.

    Returns:
        The counts, of shape `[num_rows, num_places]` and `[num_rows, num_places, num_stretches]`.
    """
    num_rows, num_stretches, _ = scores.shape
    num_places = low.size(1)
    scores, low, high = scores.unsqueeze(1), low[:, :, None, None], high[:, :, None, None]
    num_above = scores.new_empty(num_rows, num_places, num_stretches)
    num_close = torch.empty_like(num_above)
    at_once = max(1, NUM_COMPARISONS_IN_PLACE // (num_places * num_stretches * STRETCH))
    for start in range(0, num_rows, at_once):
        rows = slice(start, start + at_once)
        others = scores[rows]
        shape = (others.size(0), num_places, num_stretches, STRETCH)
        # As numbers instead of booleans, the results are several times faster to sum.
        is_beyond = scratch("is_beyond", shape, scores.dtype)
        torch.ge(others, low[rows], out=is_beyond)
        torch.sum(is_beyond, dim=3, out=num_close[rows])
        torch.gt(others, high[rows], out=is_beyond)
        torch.sum(is_beyond, dim=3, out=num_above[rows])
    num_close -= num_above
    return num_above.sum(dim=2, dtype=torch.long), num_close


def _find_close(
    scores: Tensor, num_close: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Looks into the stretches that hold something close: rows, places and columns of it."""
    row, place, stretch = num_close.nonzero(as_tuple=True)
    value = scores[row, stretch]
    is_close = value >= low[row, place].unsqueeze(1)
    is_close &= value <= high[row, place].unsqueeze(1)
    found, column = is_close.nonzero(as_tuple=True)
    return row[found], place[found], stretch[found] * STRETCH + column
