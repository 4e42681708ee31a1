"""Lists of recommended items, and the ranks of items in them."""

import torch
from torch import Tensor

#: The rank of an edge whose item was not retrieved. It is larger than any k.
NOT_RETRIEVED = torch.iinfo(torch.int64).max


def ranks_in_lists(lists: Tensor, row: Tensor, item: Tensor, num_items: int) -> Tensor:
    """Returns the rank of every edge (`row`, `item`) in its row of `lists`.

    Every entry of every list looks up its edge. If there is one, the entry offers its position as
    the rank of that edge. The first position wins.

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
    rank = torch.full((num_edges + 1,), NOT_RETRIEVED, device=lists.device)
    if num_edges == 0 or lists.numel() == 0:
        return rank[:num_edges]
    edge_key = row * num_items + item
    row_key = torch.arange(lists.size(0), device=lists.device).unsqueeze(1) * num_items
    entry_key = torch.where(lists < 0, -1, lists + row_key)
    edge = torch.searchsorted(edge_key, entry_key).clamp_(max=num_edges - 1)
    edge = torch.where(edge_key[edge] == entry_key, edge, num_edges)
    position = torch.arange(1, lists.size(1) + 1, device=lists.device).expand_as(edge)
    return rank.scatter_reduce_(0, edge.flatten(), position.flatten(), "amin")[:num_edges]


def without_repeats(lists: Tensor) -> Tensor:
    """Replaces every repetition of an item within a list by the padding `-1`."""
    ordered, order = lists.sort(dim=1, stable=True)
    ordered[:, 1:].masked_fill_(ordered[:, 1:] == ordered[:, :-1], -1)
    return torch.empty_like(lists).scatter_(1, order, ordered)
