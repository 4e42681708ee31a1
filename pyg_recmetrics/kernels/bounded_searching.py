r"""The ranks of few items among many, from scores in half precision and a bound on their error.

A metric needs the ranks of a user's few relevant items, not a sorted list. A matrix product in
`bfloat16` costs a fraction of one in single precision. For nearly every item, it tells whether the
item ranks above a relevant one. The kernel compares the few other items by their exact scores.

**The bound.** The product of two `bfloat16` numbers is exact in single precision, in which the
products are added up. :mod:`pyg_recmetrics.kernels.bounds` says how far their sum :math:`x` can be
from the exact score; call this distance :math:`\alpha_u`. The sum is rounded once more to
:math:`s = \text{bf16}(x)`. Rounding is monotone: from :math:`x \leq y` follows
:math:`s \leq \text{bf16}(y)`. So for a relevant item with exact score :math:`c`,

- :math:`s > \text{bf16}(c + \alpha_u)` proves that an item ranks above it,
- :math:`s < \text{bf16}(c - \alpha_u)` proves that an item ranks below it,

and the last rounding costs nothing.

**The search.** The items are cut into strided blocks. If as many blocks as the user's depth have
a maximum above :math:`\text{bf16}(c + \alpha_u)`, then as many items rank above, and the relevant
item is not retrieved. For the others, only blocks with a maximum of at least
:math:`\text{bf16}(c - \alpha_u)` can hold an item that matters. Most of these items are proved to
rank above. The few in between are compared by their exact scores, and by item id where the scores
are equal. All comparisons read the bits of `bfloat16` as 16-bit integers, whose order agrees with
that of the numbers as long as these are positive. A user is left unsettled if a threshold is not
positive, or if too many items are close (for example, because all have the same embedding).

**The sieve.** A first pass looks at a sixteenth of the items in the same way: those of the largest
norms, which are likely to have high scores. Relevant items that are out of reach because of these
alone are settled. Users of whom no relevant item is left are not searched for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.kernels.bounds import BoundedRanking, Depth, ErrorBound, UserItems
from pyg_recmetrics.kernels.packed_counts import count_flags, is_above, is_at_least
from pyg_recmetrics.kernels.ranks import Ranks
from pyg_recmetrics.kernels.scores import inner_products, scaled_by_row
from pyg_recmetrics.kernels.scratch import Scratch

#: How many items a block has.
BLOCK_SIZE = 16

#: How many blocks form a group. Groups are what is counted above a relevant item.
GROUP_SIZE = 4

#: The sieve holds one in so many items.
PART_IN_SIEVE = 16

#: How many users are taken at once. With more of them, nothing gets faster.
MAX_ROWS = 2048

#: How many scores are computed at once, so that they stay in the caches until they are looked at.
NUM_SCORES_AT_ONCE = 2**23

#: How many pairs of a relevant item and one that may rank above it are looked at together.
NUM_PAIRS = 2**26

#: How many comparisons are done at once.
NUM_COMPARISONS = 2**19

_LARGEST = torch.iinfo(torch.int16).max

#: Less than the bits of any number that is not negative.
_MASKED = -1


@dataclass(frozen=True, eq=False)
class _Batch:
    """Some users and their edges, sorted by user: the relevant items, and those to mask.

    Attributes:
        user (torch.Tensor): Rounded embeddings of shape `[num_rows, dim]`.
        depth (torch.Tensor): How deep each user is ranked, of shape `[num_rows]`.
        row (torch.Tensor): The rows of relevant items, of shape `[num_relevant]`.
        low (torch.Tensor): An item with fewer bits than these is proved to rank below.
        high (torch.Tensor): An item with more bits than these is proved to rank above.
        masked (tuple): The rows and the columns to mask, of shape `[num_masked]` each.
    """

    user: Tensor
    depth: Tensor
    row: Tensor
    low: Tensor
    high: Tensor
    masked: UserItems

    def part(self, edge: Tensor) -> tuple[Tensor, "_Batch"]:
        """Returns the rows of the users of some relevant items, and a batch of these items only."""
        is_left = torch.zeros_like(self.depth, dtype=torch.bool)
        is_left[self.row[edge]] = True
        rows, new_row = is_left.nonzero().squeeze(1), is_left.cumsum(0) - 1
        row, column = self.masked
        masked = is_left[row].nonzero().squeeze(1)
        return rows, _Batch(
            self.user[rows],
            self.depth[rows],
            new_row[self.row[edge]],
            self.low[edge],
            self.high[edge],
            (new_row[row[masked]], column[masked]),
        )

    def chunks(self, size: int) -> Iterator[tuple[int, "_Batch"]]:
        """Yields chunks of users, each with the row that it starts at."""
        num_chunks = -(-self.user.size(0) // size)
        row, column = self.masked
        num_relevant, num_masked = (
            torch.bincount(rows // size, minlength=num_chunks).tolist() for rows in (self.row, row)
        )
        parts = zip(
            self.user.split(size),
            self.depth.split(size),
            (self.row % size).split(num_relevant),
            self.low.split(num_relevant),
            self.high.split(num_relevant),
            zip((row % size).split(num_masked), column.split(num_masked), strict=True),
            strict=True,
        )
        for number, part in enumerate(parts):
            yield number * size, _Batch(*part)


class BoundedSearch(BoundedRanking):
    """Proves ranks down to a depth from scores in half precision."""

    dtype = torch.bfloat16
    group_size = 4 * BLOCK_SIZE * GROUP_SIZE

    def __init__(self, user: Tensor, item: Tensor) -> None:
        super().__init__(user, item)
        num_items, part = item.size(0), PART_IN_SIEVE * self.group_size
        self.num_in_sieve = min(num_items, -(-num_items // part) * self.group_size)
        largest = self.bound.norm.topk(self.num_in_sieve).indices
        self.sieve = self.padded(item[largest])
        self.column_in_sieve = torch.full((num_items,), -1, device=item.device)
        self.column_in_sieve[largest] = torch.arange(self.num_in_sieve, device=item.device)

    def num_rows(self, depth: int) -> int:
        # Up to `depth` relevant items of a user are compared with all items that may rank above.
        return max(1, min(MAX_ROWS, NUM_PAIRS // (depth * _max_candidates(depth))))

    def ranks(
        self, users: Tensor, depth: Tensor, relevant: UserItems, seen: UserItems, scratch: Scratch
    ) -> tuple[Ranks, Tensor]:
        row, item = relevant
        user = scaled_by_row(self.user[users])
        rounded = user.bfloat16()
        score = inner_products(user, row, self.item, item)
        bound = ErrorBound(user, rounded, rounding_of_sum=user.size(1) * 2.0**-22)
        batch = _Batch(
            rounded, depth, row, *_thresholds(score, bound.of_any(self.bound)[row]), seen
        )
        ranks = Ranks.unknown(item)
        is_unsettled = torch.zeros_like(users, dtype=torch.bool)
        edge = self._sieved(batch, scratch).nonzero().squeeze(1)
        if edge.numel() == 0:
            return ranks, is_unsettled
        rows, batch = batch.part(edge)
        size = _rows_at_once(self.rounded.size(0))
        found = zip(*(self._search(*c, scratch) for c in batch.chunks(size)), strict=True)
        is_open, is_unsettled[rows], *candidates = (torch.cat(parts) for parts in found)
        is_left = (is_open & ~is_unsettled[rows][batch.row]).nonzero().squeeze(1)
        if is_left.numel() == 0:
            return ranks, is_unsettled
        edge, row = edge[is_left], batch.row[is_left]
        value, candidate = _side_by_side(rows.numel(), *candidates)
        num_above, pair, slot = _compare(value[row], batch.low[is_left], batch.high[is_left])
        other, value = candidate[row[pair], slot], value[row[pair], slot]
        # The bound for the item at hand is tighter, and leaves a fraction of these pairs.
        row, item, score = rows[row[pair]], item[edge], score[edge]
        low, high = _thresholds(score[pair], bound.of_pairs(row, self.bound, other))
        num_above += torch.bincount(pair[value > high], minlength=edge.numel())
        is_close = ((value >= low) & (value <= high)).nonzero().squeeze(1)
        close = pair[is_close], row[is_close], other[is_close]
        ranks.update(edge, self.ranks_among(close, user, item, score, num_above))
        return ranks, is_unsettled

    def _sieved(self, batch: _Batch, scratch: Scratch) -> Tensor:
        """Returns which relevant items the sieve does not prove to be out of reach."""
        row, column = batch.masked[0], self.column_in_sieve[batch.masked[1]]
        in_sieve = (column >= 0).nonzero().squeeze(1)
        batch = replace(batch, masked=(row[in_sieve], column[in_sieve]))
        is_open = []
        for _, chunk in batch.chunks(_rows_at_once(self.sieve.size(0))):
            best = _blocks(chunk, self.sieve, self.num_in_sieve, scratch).amax(dim=1)
            is_open.append(_is_within_depth(chunk, best, scratch))
        return torch.cat(is_open)

    def _search(
        self, start: int, batch: _Batch, scratch: Scratch
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Looks at all items, for the users of a batch.

        Returns:
            Which relevant items may be retrieved; which users cannot be settled; and the rows
            (counted from `start`), bits and ids of the items that may rank above.
        """
        blocks = _blocks(batch, self.rounded, self.item.size(0), scratch)
        num_rows, _, num_blocks = blocks.shape
        best = torch.amax(
            blocks, dim=1, out=scratch("bounded_search.best", (num_rows, num_blocks), blocks.dtype)
        )
        groups = best.view(num_rows, GROUP_SIZE, -1).amax(dim=1)
        is_open = _is_within_depth(batch, groups, scratch)
        lowest = torch.full((num_rows,), _LARGEST, dtype=blocks.dtype, device=blocks.device)
        lowest.scatter_reduce_(0, batch.row[is_open], batch.low[is_open], "amin")
        is_unsettled = lowest <= 0
        lowest.masked_fill_(is_unsettled, _LARGEST)
        max_candidates = _max_candidates(batch.depth)
        row, block = is_at_least(best, lowest).nonzero(as_tuple=True)
        is_crowded, row, block = _at_most(max_candidates, row, block)
        taken = blocks[row, :, block]
        found, offset = is_at_least(taken, lowest[row]).nonzero(as_tuple=True)
        item = offset * num_blocks + block[found]
        is_cut, row, value, item = _at_most(max_candidates, row[found], taken[found, offset], item)
        return is_open, is_unsettled | is_crowded | is_cut, row + start, value, item


def _max_candidates(depth: Depth) -> Depth:
    """How many items may be looked at closely, before a user is left unsettled."""
    return 4 * depth + 64


def has_fast_bfloat16() -> bool:
    """Returns whether the processor has instructions for products in `bfloat16`."""
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def _thresholds(score: Tensor, bound: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the bits below and above which a rounded score proves the order of two items."""
    low, high = score - bound, (score + bound).clamp(min=0)
    return low.bfloat16().view(torch.int16), high.bfloat16().view(torch.int16)


def _rows_at_once(num_items: int) -> int:
    # A product of fewer than 64 users is slow, unless each of them has very many scores.
    max_rows = max(1, 8 * NUM_SCORES_AT_ONCE // num_items)
    return min(max_rows, max(64, NUM_SCORES_AT_ONCE // num_items))


def _blocks(batch: _Batch, items: Tensor, num_items: int, scratch: Scratch) -> Tensor:
    """Returns the bits of the scores of items, of shape `[num_rows, BLOCK_SIZE, num_blocks]`."""
    shape = (batch.user.size(0), items.size(0))
    scores = torch.mm(
        batch.user, items.t(), out=scratch("bounded_search.scores", shape, torch.bfloat16)
    )
    bits = scores.view(torch.int16)
    bits[:, num_items:] = _MASKED
    row, column = batch.masked
    bits.view(-1).index_fill_(0, row * shape[1] + column, _MASKED)
    return bits.view(shape[0], BLOCK_SIZE, -1)


def _is_within_depth(batch: _Batch, best: Tensor, scratch: Scratch) -> Tensor:
    """Returns whether fewer maxima than the depth are above a relevant item: `[num_relevant]`."""
    num_above = [torch.zeros_like(batch.row[:0])]
    rows_at_once = max(1, NUM_COMPARISONS // best.size(1))
    parts = (values.split(rows_at_once) for values in (batch.row, batch.high))
    for row, high in zip(*parts, strict=True):
        above = scratch("bounded_search.above", (row.numel(), best.size(1)), best.dtype)
        torch.index_select(best, 0, row, out=above).gt_(high.unsqueeze(1))
        num_above.append(count_flags(above))
    return torch.cat(num_above) < batch.depth[batch.row]


def _at_most(max_values: Tensor, row: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
    """Leaves out rows with too many values.

    Returns:
        Which rows these are, and the rows and the values that are left.
    """
    is_beyond = torch.bincount(row, minlength=max_values.numel()) > max_values
    if not is_beyond.any():
        return is_beyond, row, *values
    left = (~is_beyond[row]).nonzero().squeeze(1)
    return is_beyond, row[left], *(x[left] for x in values)


def _side_by_side(num_rows: int, row: Tensor, value: Tensor, item: Tensor) -> tuple[Tensor, Tensor]:
    """Puts the bits and the ids of every row side by side, and pads them with masked ones."""
    ptr = index2ptr(row, num_rows)
    slot = torch.arange(row.numel(), device=row.device) - ptr[row]
    # Flags are counted four at a time.
    shape = (num_rows, -(-int(ptr.diff().max()) // 4) * 4)
    values = value.new_full(shape, _MASKED)
    values[row, slot] = value
    items = item.new_zeros(shape)
    items[row, slot] = item
    return values, items


def _compare(value: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Counts the bits of every row above `high`, and finds those from `low` to `high`."""
    above = is_above(value, high)
    row, column = (is_at_least(value, low) - above).nonzero(as_tuple=True)
    return count_flags(above), row, column
