"""Where items stand among all others: their ranks, how many others tie with them, and lists."""

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch

#: The rank of an edge whose item was not retrieved. It is larger than any k.
NOT_RETRIEVED = torch.iinfo(torch.int64).max


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
