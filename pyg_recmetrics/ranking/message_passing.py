"""Reads message-passing edges, and finds out whether they make sense for users and items."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from pyg_recmetrics.checks import check_matrix, check_weighted_edges
from pyg_recmetrics.inputs import EdgesLike, TensorLike, as_tensor, to_coordinates


class _Counts(NamedTuple):
    """How many edges of each kind there are, leaving out self-loops."""

    user_to_item: int
    item_to_user: int
    between_users: int
    between_items: int


def read_message_passing(
    edge_index: EdgesLike | None, edge_weight: TensorLike | None, num_nodes: int
) -> tuple[Adj | None, Tensor | None]:
    """Returns message-passing edges and their weights, as models take them."""
    check_matrix(edge_index, "edge_index", num_nodes, num_nodes)
    # A model propagates over a sparse tensor as it is, and may use what else an `EdgeIndex` knows.
    if edge_index is None or isinstance(edge_index, EdgeIndex) or is_sparse(edge_index):
        edges, weight = edge_index, edge_weight
    else:
        edges, weight = check_weighted_edges(edge_index, edge_weight, "edge_index", "edge_weight")
    return edges, None if weight is None else _as_floats(as_tensor(weight, "edge_weight"))


def _as_floats(weight: Tensor) -> Tensor:
    """Returns integers as floats, by which messages can be multiplied."""
    return weight if weight.is_floating_point() else weight.to(torch.get_default_dtype())


def find_doubt(edge_index: Adj, num_users: int) -> str | None:
    """Returns what is odd about message-passing edges, and how to mend it; `None` if nothing is.

    Users and items exchange messages over edges in both directions. Edges between users, or between
    items, may be meant. Far more often, ids are in another numbering.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges.
        num_users (int): The number of users, who come first. Items come after them.
    """
    edges = _to_edges(edge_index)
    if edges is None or edges.size(1) == 0:
        return None
    counts = _count(edges, num_users)
    problems, remedies = [], []
    if problem := _numbering_problem(counts):
        problems.append(problem)
        remedies.append("number users from 0 on, and add 'num_users' to item ids")
    if problem := _direction_problem(counts):
        problems.append(problem)
        remedies.append("add the reverse edges, as PyG's 'ToUndirected' does")
    if not problems:
        return None
    return (
        f"'edge_index' looks odd: {', and '.join(problems)}. A model such as LightGCN expects "
        f"edges between users and items in both directions, with items numbered from "
        f"'num_users' ({num_users}) on. To mend this, {'; and '.join(remedies)}"
    )


def _to_edges(edge_index: Adj) -> Tensor | None:
    if is_sparse(edge_index):
        transposed, _ = to_coordinates(edge_index)  # as PyG's adjacency matrices are
        return transposed.flip([0])
    return as_tensor(edge_index, "edge_index") if isinstance(edge_index, Tensor) else None


def _count(edges: Tensor, num_users: int) -> _Counts:
    source, target = edges
    is_edge = source != target
    from_item, to_item = source >= num_users, target >= num_users
    counts = [
        ~from_item & to_item,
        from_item & ~to_item,
        ~from_item & ~to_item & is_edge,
        from_item & to_item & is_edge,
    ]
    return _Counts(*torch.stack([mask.sum() for mask in counts]).tolist())


def _numbering_problem(counts: _Counts) -> str | None:
    found = [
        f"{number} of {sum(counts)} edges connect {kind} with {kind}"
        for number, kind in ((counts.between_users, "users"), (counts.between_items, "items"))
        if number
    ]
    return " and ".join(found) or None


def _direction_problem(counts: _Counts) -> str | None:
    if 2 * counts.item_to_user < counts.user_to_item:
        return f"{counts.item_to_user or 'no'} edges run from items to users"
    if 2 * counts.user_to_item < counts.item_to_user:
        return f"{counts.user_to_item or 'no'} edges run from users to items"
    return None
