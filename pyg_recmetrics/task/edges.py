"""Coalesced user-item edges.

Edges are `[2, num_edges]` tensors of user ids over item ids. A *coalesced* edge list is sorted by
(user, item) and holds every edge once, as :func:`torch_geometric.utils.coalesce` returns it.
"""

import math

import torch
from torch import Tensor
from torch_geometric.utils import coalesce

from pyg_recmetrics.checks import check_positive_integer

#: The largest number of users, and of items. Every pair of nodes has a key of 64 bits.
MAX_NUM_NODES = math.isqrt(2**63 - 1)


def check_num_nodes(value: object, name: str) -> int:
    """Returns `value` if it is a number of users or items whose pairs can be told apart."""
    num_nodes = check_positive_integer(value, name)
    if num_nodes > MAX_NUM_NODES:
        raise ValueError(
            f"'{name}' needs to be at most {MAX_NUM_NODES}, so that edges can be sorted in 64 bits "
            f"(got {value})"
        )
    return num_nodes


def coalesce_edges(edges: Tensor, num_users: int, num_items: int) -> Tensor:
    """Sorts user-item edges by user and item, and removes repeated ones."""
    # Without a number of nodes, PyG would search all edges for the largest id.
    coalesced: Tensor = coalesce(edges, num_nodes=max(num_users, num_items))
    return coalesced


def coalesce_truth(
    edges: Tensor, weight: Tensor | None, num_nodes: int, threshold: float | None = None
) -> tuple[Tensor, Tensor | None]:
    """Coalesces ground-truth edges, and drops those whose weight says that they are none.

    These are the weights below the threshold, or those of zero or less if there is none. A repeated
    edge keeps its largest weight, whatever the order of the edges.
    """
    if weight is not None:
        is_relevant = weight > 0 if threshold is None else weight >= threshold
        edges, weight = edges[:, is_relevant], weight[is_relevant]
    edges, weight = coalesce(edges, weight, num_nodes=num_nodes, reduce="max")
    return edges, weight


def count_zero_ratings(weight: Tensor) -> int:
    """Counts the weights of zero or less among ratings; zero if all weights are labels 0 and 1."""
    is_label = (weight == 0) | (weight == 1)
    return 0 if bool(is_label.all()) else int((weight <= 0).sum())


def contains(coalesced: Tensor, edges: Tensor, num_items: int) -> Tensor:
    """Returns a mask `[num_edges]` of the `edges` that are among the `coalesced` ones."""
    if coalesced.size(1) == 0:
        return edges.new_zeros(edges.size(1), dtype=torch.bool)
    keys = coalesced[0] * num_items + coalesced[1]
    wanted = edges[0] * num_items + edges[1]
    nearest = torch.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    return keys[nearest] == wanted
