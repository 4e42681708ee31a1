"""Finds out whether message-passing edges make sense for a model of users and items."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse, to_edge_index


class _Counts(NamedTuple):
    """How many edges of each kind there are, leaving out self-loops, and the largest node id."""

    user_to_item: int
    item_to_user: int
    between_users: int
    between_items: int
    #: How many would connect items with users if items were numbered first.
    items_first: int
    largest: int

    @property
    def total(self) -> int:
        return sum(self[:4])

    @property
    def within(self) -> int:
        return self.between_users + self.between_items


def find_doubt(edge_index: Adj, num_users: int, num_items: int) -> str | None:
    """Returns what is odd about message-passing edges, and how to mend it; `None` if nothing is.

    Users and items exchange messages over edges in both directions. Further edges, such as those
    between users who know each other, are as good as any, unless the whole graph looks as if it was
    meant in another numbering.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges.
        num_users (int): The number of users, who come first.
        num_items (int): The number of items, which come after them.
    """
    edges = _to_edges(edge_index)
    if edges is None or edges.size(1) == 0:
        return None
    counts = _count(edges, num_users, num_items)
    problems, remedies = [], []
    if problem := _numbering_problem(counts, num_users, num_items):
        problems.append(problem)
        remedies.append("number users from 0 on, and add 'num_users' to item ids")
    if problem := _direction_problem(counts):
        problems.append(problem)
        remedies.append("add the reverse edges, as PyG's 'ToUndirected' does")
    if not problems:
        return None
    return (
        f"'edge_index' looks wrong: {', and '.join(problems)}. A model such as LightGCN expects "
        f"edges between users and items in both directions, with items numbered from "
        f"'num_users' ({num_users}) on. To mend this, {'; and '.join(remedies)}"
    )


def _to_edges(edge_index: Adj) -> Tensor | None:
    if is_sparse(edge_index):
        transposed: Tensor = to_edge_index(edge_index)[0]  # as PyG's adjacency matrices are
        return transposed.flip([0])
    return edge_index if isinstance(edge_index, Tensor) else None


def _count(edges: Tensor, num_users: int, num_items: int) -> _Counts:
    source, target = edges
    is_edge = source != target
    from_item, to_item = source >= num_users, target >= num_users
    counts = [
        ~from_item & to_item,
        from_item & ~to_item,
        ~from_item & ~to_item & is_edge,
        from_item & to_item & is_edge,
        (source < num_items) != (target < num_items),
    ]
    return _Counts(*torch.stack([*(mask.sum() for mask in counts), edges.max()]).tolist())


def _numbering_problem(counts: _Counts, num_users: int, num_items: int) -> str | None:
    if counts.within == 0:
        return None
    is_local = counts.between_items == 0 and counts.largest < max(num_users, num_items)
    is_items_first = counts.items_first == counts.total
    is_apart = counts.within == counts.total
    if not (is_local or is_items_first or is_apart):
        return None
    found = [
        f"{number} of {counts.total} edges connect {kind} with {kind}"
        for number, kind in ((counts.between_users, "users"), (counts.between_items, "items"))
        if number
    ]
    return " and ".join(found)


def _direction_problem(counts: _Counts) -> str | None:
    if counts.user_to_item and not counts.item_to_user:
        return "no edge runs from an item to a user"
    if counts.item_to_user and not counts.user_to_item:
        return "no edge runs from a user to an item"
    return None
