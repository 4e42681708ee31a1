"""Lists of recommended items, and the ranks of items in them."""

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
    row_key = torch.arange(lists.size(0), device=lists.device).unsqueeze(1) * num_items
    entry_key = torch.where(lists < 0, -1, lists + row_key)
    position = torch.arange(1, lists.size(1) + 1, device=lists.device).expand_as(lists)
    return _first_positions(entry_key, position, row * num_items + item)


def ranks_in_ragged_lists(
    listed: Tensor, ptr: Tensor, row: Tensor, item: Tensor, num_items: int
) -> Tensor:
    """Returns the ranks that :func:`ranks_in_lists` does, in lists of different length.

    Args:
        listed (torch.Tensor): The item ids of one list after the other, of shape `[num_entries]`,
            best first; `-1` is no item.
        ptr (torch.Tensor): The list of row `r` is that from `ptr[r]` to `ptr[r + 1]`. Of shape
            `[num_rows + 1]`.
        row (torch.Tensor): See :func:`ranks_in_lists`.
        item (torch.Tensor): See :func:`ranks_in_lists`.
        num_items (int): The number of items.
    """
    rows = torch.arange(ptr.numel() - 1, device=ptr.device)
    entry_row = rows.repeat_interleave(ptr.diff())
    entry_key = torch.where(listed < 0, -1, listed + entry_row * num_items)
    position = torch.arange(1, listed.numel() + 1, device=ptr.device) - ptr[entry_row]
    return _first_positions(entry_key, position, row * num_items + item)


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


def _first_positions(entry_key: Tensor, position: Tensor, edge_key: Tensor) -> Tensor:
    """Returns the first position of every edge among the entries of lists.

    Every entry looks up its edge. If there is one, the entry offers its position as the rank of
    that edge.

    Args:
        entry_key (torch.Tensor): What tells apart the entries of all lists; `-1` is no item.
        position (torch.Tensor): Their 1-based positions, of the same shape.
        edge_key (torch.Tensor): What tells apart the edges, in ascending order: `[num_edges]`.
    """
    num_edges = edge_key.numel()
    rank = torch.full((num_edges + 1,), NOT_RETRIEVED, device=edge_key.device)
    if num_edges == 0 or entry_key.numel() == 0:
        return rank[:num_edges]
    # Lists may be the transpose of a matrix, of which torch would warn.
    edge = torch.searchsorted(edge_key, entry_key.contiguous()).clamp_(max=num_edges - 1)
    edge = torch.where(edge_key[edge] == entry_key, edge, num_edges)
    return rank.scatter_reduce_(0, edge.flatten(), position.flatten(), "amin")[:num_edges]
