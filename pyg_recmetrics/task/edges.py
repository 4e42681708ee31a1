"""Coalesced user-item edges.

Edges are `[2, num_edges]` tensors of user ids over item ids. A *coalesced* edge list is sorted by
(user, item) and holds every edge once, as :func:`torch_geometric.utils.coalesce` returns it.
"""

import torch
from torch import Tensor
from torch_geometric.utils import coalesce


def coalesce_edges(edges: Tensor, num_users: int, num_items: int) -> Tensor:
    """Sorts user-item edges by user and item, and removes repeated ones."""
    # Without a number of nodes, PyG would search all edges for the largest id.
    coalesced: Tensor = coalesce(edges, num_nodes=max(num_users, num_items))
    return coalesced


def coalesce_truth(
    edges: Tensor, weight: Tensor | None, num_nodes: int
) -> tuple[Tensor, Tensor | None]:
    """Coalesces ground-truth edges, and drops those without a positive weight.

    A repeated edge keeps its largest weight, whatever the order of the edges.
    """
    if weight is not None:
        edges, weight = edges[:, weight > 0], weight[weight > 0]
    edges, weight = coalesce(edges, weight, num_nodes=num_nodes, reduce="max")
    return edges, weight


def contains(coalesced: Tensor, edges: Tensor, num_items: int) -> Tensor:
    """Returns a mask `[num_edges]` of the `edges` that are among the `coalesced` ones."""
    if coalesced.size(1) == 0:
        return edges.new_zeros(edges.size(1), dtype=torch.bool)
    keys = coalesced[0] * num_items + coalesced[1]
    wanted = edges[0] * num_items + edges[1]
    nearest = torch.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    return keys[nearest] == wanted
