"""Where items stand among all others: in given lists, by sorting scores, or by counting them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.kernels import card
from pyg_recmetrics.kernels.card import Error, Ranked
from pyg_recmetrics.kernels.devices import Scratch, at_once
from pyg_recmetrics.kernels.entries import UserItems, in_parts

#: The rank of an edge whose item was not retrieved. It is larger than any k.
NOT_RETRIEVED = torch.iinfo(torch.int64).max

#: How many comparisons are done at once, so that their results stay in the cache of a processor.
#: Single precision counts as many without an error.
NUM_COMPARISONS = 2**18

#: The bits of an integer of 64 bits in which :func:`top_k` packs the column.
_LOW_HALF = 0xFFFFFFFF

#: What `_in_order_` makes of minus infinity.
_NEG_INF = -0x7F800001


def ranks_in_lists(lists: Tensor, row: Tensor, item: Tensor, num_items: int) -> Tensor:
    """Returns the rank of every edge (`row`, `item`) in its row of `lists`.

    Args:
        lists (torch.Tensor): Item ids of shape `[num_rows, K]`, best first; `-1` is no item.
        row (torch.Tensor): The rows of the edges, of shape `[num_edges]`.
        item (torch.Tensor): The items of the edges. Edges are sorted by (row, item).
        num_items (int): The number of items.

    Returns:
        The 1-based ranks, of shape `[num_edges]`; :obj:`NOT_RETRIEVED` for items that are not in
        the list.
    """
    num_edges = row.numel()
    rank = torch.full((num_edges + 1,), NOT_RETRIEVED, device=row.device)
    if num_edges == 0 or lists.numel() == 0:
        return rank[:num_edges]
    # Every entry looks up its edge. If there is one, it offers its position as the rank of that.
    edge_key = row * num_items + item
    row_key = torch.arange(lists.size(0), device=lists.device).unsqueeze(1) * num_items
    # Lists may be the transpose of a matrix, of which torch would warn.
    entry_key = torch.where(lists < 0, -1, lists + row_key).contiguous()
    edge = torch.searchsorted(edge_key, entry_key).clamp_(max=num_edges - 1)
    edge = torch.where(edge_key[edge] == entry_key, edge, num_edges)
    position = torch.arange(1, lists.size(1) + 1, device=lists.device).expand_as(lists)
    return rank.scatter_reduce_(0, edge.flatten(), position.flatten(), "amin")[:num_edges]


def are_edges(lists: Tensor, row: Tensor, item: Tensor, num_items: int, scratch: Scratch) -> Tensor:
    """Returns which entries of `lists` have an edge (`row`, `item`): `[num_rows, K]`.

    Args:
        lists (torch.Tensor): Item ids of shape `[num_rows, K]`; `-1` is no item.
        row (torch.Tensor): The rows of the edges, of shape `[num_edges]`.
        item (torch.Tensor): The items of the edges. No edge comes twice.
        num_items (int): The number of items.
        scratch (Scratch): The buffers to compute in.
    """
    # Every row and item has one bit. Booleans would take eight times the memory, and to search
    # through sorted edges would take several times as long. The first bit of a row is that of `-1`.
    shape = (lists.size(0), num_items // 64 + 1)
    words = scratch("are_edges.words", shape, torch.long).zero_()
    of_edge, of_entry = item + 1, lists + 1
    bit = torch.ones_like(item) << (of_edge & 63)
    words.view(-1).scatter_add_(0, row * shape[1] + (of_edge >> 6), bit)
    found = words.gather(1, of_entry >> 6).bitwise_right_shift_(of_entry & 63)
    return found.bitwise_and_(1).bool()


def first_kept(lists: Tensor, is_kept: Tensor, k: int) -> Tensor:
    """Returns the first `k` entries of each list that are kept: `[num_rows, k]`.

    `-1` stands where there are fewer.

    Args:
        lists (torch.Tensor): Entries of shape `[num_rows, K]`.
        is_kept (torch.Tensor): Which of them are kept, of the same shape.
        k (int): How many to return.
    """
    # One more column takes all other entries.
    column = torch.where(is_kept, is_kept.cumsum(dim=1) - 1, k).clamp_(max=k)
    kept = lists.new_full((lists.size(0), k + 1), -1)
    return kept.scatter_(1, column, lists)[:, :k]


def without_repeats(lists: Tensor) -> Tensor:
    """Replaces every repetition of an item within a list by the padding `-1`."""
    ordered, order = lists.sort(dim=1, stable=True)
    ordered[:, 1:].masked_fill_(ordered[:, 1:] == ordered[:, :-1], -1)
    return torch.empty_like(lists).scatter_(1, order, ordered)


def find_runs(*keys: Tensor) -> tuple[Tensor, Tensor]:
    """Finds for every position the run of neighbours that agree with it in all keys.

    Args:
        *keys (torch.Tensor): Values of shape `[num_positions]` each.

    Returns:
        Where the run of each position starts, and how long it is, of shape `[num_positions]` each.
    """
    # Extremes so far find both ends of a run without waiting for the device.
    position = torch.arange(keys[0].numel(), device=keys[0].device)
    is_first = torch.ones_like(position, dtype=torch.bool)
    is_first[1:] = torch.stack([key[1:] != key[:-1] for key in keys]).any(dim=0)
    is_last = torch.ones_like(is_first)
    is_last[:-1] = is_first[1:]
    first = torch.where(is_first, position, 0).cummax(dim=0).values
    last = torch.where(is_last, position, keys[0].numel()).flip(0).cummin(dim=0).values.flip(0)
    return first, last - first + 1


class Ranks(NamedTuple):
    """Where some items stand among all candidates of their user, of shape `[num_ranked]` each.

    Attributes:
        rank: The 1-based rank. Of equal scores, the lower item id ranks first.
        num_above: How many candidates score higher.
        num_tied: How many other candidates have the same score; `-1` for an item that is no
            candidate.
    """

    rank: Tensor
    num_above: Tensor
    num_tied: Tensor

    @classmethod
    def unknown(cls, item: Tensor) -> "Ranks":
        """Returns what is known of items that are out of reach: nothing ties with them."""
        beyond = torch.full_like(item, NOT_RETRIEVED)
        return cls(beyond, beyond.clone(), torch.zeros_like(item))

    def update(self, index: Tensor, ranks: "Ranks") -> None:
        """Overwrites, in place, what is known of some items."""
        for known, new in zip(self, ranks, strict=True):
            known.scatter_(0, index, new)

    def leave_out(self, is_left_out: Tensor) -> None:
        """Notes, in place, that the items of a mask `[num_ranked]` are no candidates."""
        self.rank.masked_fill_(is_left_out, NOT_RETRIEVED)
        self.num_above.masked_fill_(is_left_out, NOT_RETRIEVED)
        self.num_tied.masked_fill_(is_left_out, -1)

    def forget_beyond(self, depth: Tensor) -> None:
        """Forgets, in place, what lies below the depth of an item, of shape `[num_ranked]`."""
        is_out_of_reach = self.num_above >= depth
        self.num_above.masked_fill_(is_out_of_reach, NOT_RETRIEVED)
        self.num_tied.masked_fill_(is_out_of_reach, 0)
        self.rank.masked_fill_(self.rank > depth, NOT_RETRIEVED)


def ranks_within_rows(row: Tensor, score: Tensor) -> Ranks:
    """Ranks scored entries within their row; equal scores in the order in which they are given.

    Args:
        row (torch.Tensor): The row of every entry, of shape `[num_entries]`.
        score (torch.Tensor): Their scores, of shape `[num_entries]`.
    """
    order = score.argsort(descending=True, stable=True)
    order = order[row[order].argsort(stable=True)]
    row, score = row[order], score[order]
    position = torch.arange(order.numel(), device=order.device)
    start_of_row, _ = find_runs(row)
    start_of_run, num_equal = find_runs(row, score)
    in_order = (1 + position - start_of_row, start_of_run - start_of_row, num_equal - 1)
    return Ranks(*(torch.empty_like(found).scatter_(0, order, found) for found in in_order))


# The exact and deterministic top-k of a score matrix.


class TopK(NamedTuple):
    """The best columns of every row, best first.

    Attributes:
        column: Columns of shape `[num_rows, k]`; `-1` where no column is left.
        key: Numbers in the order of the scores of these columns, of shape `[num_rows, k]`. Equal
            scores have equal keys.
    """

    column: Tensor
    key: Tensor


def top_k(scores: Tensor, k: int, scratch: Scratch) -> TopK:
    """Returns the `k` best columns of every row, best first, equal scores by the lower column.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]` in single or double
            precision. A column that must not be retrieved holds `-inf`. **Overwritten.**
        k (int): The number of columns, at most `num_columns`.
        scratch (Scratch): The buffers to compute in.
    """
    if scores.dtype == torch.float64:
        values, columns = scores.sort(dim=1, descending=True, stable=True)
        values, columns = values[:, :k], columns[:, :k]
        return TopK(columns.masked_fill(values.isneginf(), -1), values)
    # `torch.topk` leaves open which of two equal values it returns. So a score and its column are
    # packed into one integer of 64 bits, and no two of these are equal.
    last = scores.size(1) - 1
    columns_from_last = torch.arange(last, -1, -1, device=scores.device)
    packed = scratch("top_k.packed", tuple(scores.shape), torch.int64).copy_(_in_order_(scores))
    packed.bitwise_left_shift_(32).bitwise_or_(columns_from_last)
    best = packed.topk(k, dim=1).values
    key = best >> 32
    column = (last - (best & _LOW_HALF)).masked_fill_(key == _NEG_INF, -1)
    return TopK(column, key)


def _in_order_(scores: Tensor) -> Tensor:
    """Turns scores in single precision into integers in the same order, in place."""
    # Adding zero turns the negative zero, which equals zero but has other bits, into zero.
    bits = scores.add_(0.0).view(torch.int32)
    # Read as an integer, a non-negative float keeps its order and a negative one reverses it:
    # flipping all bits but the sign of the negative ones mends that.
    return bits.bitwise_xor_((bits >> 31).bitwise_and_(0x7FFFFFFF))


# All ranks of few items among many, without sorting: what scores higher is counted.


def count_ranks(
    tiles: Iterable[tuple[int, Tensor]], ranked: UserItems, own: Tensor, scratch: Scratch
) -> Ranks:
    """Ranks some columns of each row by counting what scores higher, and what scores the same.

    Args:
        tiles (iterable): The scores `[num_rows, num_columns]` of some columns after the other, each
            with the first of these columns. A column that must not be counted holds `-inf`.
        ranked (tuple): The rows and the columns of what is ranked, sorted by row.
        own (torch.Tensor): The scores of what is ranked, of shape `[num_ranked]`.
        scratch (Scratch): The buffers to compute in.
    """
    row, column = ranked
    counts = torch.zeros((3, own.numel()), dtype=torch.long, device=own.device)
    for first, scores in tiles:
        for part in scores.split(NUM_COMPARISONS, dim=1):
            counts += count_around(part, Ranked(row, column - first, own, own), None, scratch)
            first += part.size(1)
    num_above, num_equal, num_before = counts
    # A column ties with itself.
    return Ranks(1 + num_above + num_before, num_above, num_equal - 1)


def count_around(scores: Tensor, ranked: Ranked, error: Error | None, scratch: Scratch) -> Tensor:
    """Counts scores that are surely above the high ends, those between the ends, and some of these.

    Args:
        scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`. A column that must not be
            counted holds `-inf`.
        ranked (Ranked): What they are compared with.
        error (tuple, optional): How far they can be off. If it is `None`, both ends are the same.
        scratch (Scratch): The buffers to compute in.

    Returns:
        Counts of shape `[3, num_ranked]`: how many scores are above; how many may be between the
        ends, the own one among them; and how many of these are in front of the own column. The last
        may be missing if there is an error.
    """
    if card.has_kernel(scores.device):
        return card.count(scores, ranked, error)
    parts = []
    columns = torch.arange(scores.size(1), dtype=scores.dtype, device=scores.device)
    for part, lower, upper in _gathered(scores, ranked, error, scratch):
        # As numbers instead of booleans, the results are several times faster to sum.
        flags = scratch("counting.flags", tuple(lower.shape), scores.dtype)
        num_above = torch.gt(lower, part.high, out=flags).sum(dim=1)
        if error is not None:
            num_close = torch.ge(upper, part.low, out=flags).sum(dim=1) - num_above
            parts.append(torch.stack([num_above, num_close]))
            continue
        num_close = torch.eq(upper, part.low, out=flags).sum(dim=1)
        is_before = torch.lt(columns, part.column, out=lower)
        num_before = flags.mul_(is_before).sum(dim=1)
        parts.append(torch.stack([num_above, num_close, num_before]))
    return torch.cat(parts, dim=1).long()


def find_around(
    scores: Tensor, ranked: Ranked, error: Error | None, num: Tensor, total: int, scratch: Scratch
) -> Tensor:
    """Returns where the other scores are that may be between the ends, of shape `[2, total]`.

    These are the numbers of what is ranked, and columns, in any order.

    Args:
        scores (torch.Tensor): See :func:`count_around`.
        ranked (Ranked): See :func:`count_around`.
        error (tuple, optional): See :func:`count_around`.
        num (torch.Tensor): How many others were counted, of shape `[num_ranked]`; zero where none
            of them matters.
        total (int): Their sum.
        scratch (Scratch): The buffers to compute in.
    """
    ranked = ranked._replace(low=ranked.low.masked_fill(num == 0, torch.inf))
    if card.has_kernel(scores.device):
        return card.find(scores, ranked, error, num, total)
    columns = torch.arange(scores.size(1), device=scores.device)
    found, first = [], 0
    for part, lower, upper in _gathered(scores, ranked, error, scratch):
        is_close = (upper >= part.low) & (lower <= part.high) & (columns != part.column)
        number, column = is_close.nonzero(as_tuple=True)
        found.append(torch.stack([number + first, column]))
        first += part.row.numel()
    return torch.cat(found, dim=1)


def _gathered(
    scores: Tensor, ranked: Ranked, error: Error | None, scratch: Scratch
) -> Iterator[tuple[Ranked, Tensor, Tensor]]:
    """Yields the least and the largest scores of the rows of some ranked items after the other."""
    at_a_time = max(1, at_once(NUM_COMPARISONS, scores.device) // scores.size(1))
    for row, *at in in_parts(at_a_time, *ranked):
        part = Ranked(row, *(values.unsqueeze(1) for values in at))
        others = scratch("counting.others", (row.numel(), scores.size(1)), scores.dtype)
        torch.index_select(scores, 0, row, out=others)
        if error is None:
            yield part, others, others
        else:
            margin = error[0].index_select(0, row).unsqueeze(1) * error[1]
            yield part, others - margin, others + margin


def ranks_among_close(
    number: Tensor, other: Tensor, item: Tensor, score: Tensor, own: Tensor, num_above: Tensor
) -> Ranks:
    """Ranks items by comparing their exact scores with those of others that are close.

    Args:
        number (torch.Tensor): The numbers of what is ranked, of shape `[num_pairs]`.
        other (torch.Tensor): An item that is close to each, of the same shape.
        item (torch.Tensor): The item that is ranked, of the same shape.
        score (torch.Tensor): The exact score of the other item, of the same shape.
        own (torch.Tensor): The exact score of the item that is ranked, of the same shape.
        num_above (torch.Tensor): How many items are proved to score higher: `[num_ranked]`.
    """
    is_tied = score == own

    def num_of(flags: Tensor) -> Tensor:
        return torch.zeros_like(num_above).scatter_add_(0, number, flags.long())

    above = num_above + num_of(score > own)
    return Ranks(1 + above + num_of(is_tied & (other < item)), above, num_of(is_tied))
