"""Coalesced user-item edges.

Edges are `[2, num_edges]` tensors of user ids over item ids. A *coalesced* edge list is sorted by
(user, item) and holds every edge once, as :func:`torch_geometric.utils.coalesce` returns it.
"""

import torch
from torch import Tensor
from torch_geometric.utils import scatter


def coalesce_edges(edges: Tensor, num_items: int) -> Tensor:
    """Sorts user-item edges by user and item, and removes repeated ones."""
    # PyG's own `coalesce` numbers pairs of nodes, which overflows if either ids are large.
    return _from_keys(_keys(edges, num_items).unique(), num_items)


def number_pairs(edges: Tensor, num_items: int) -> tuple[Tensor, Tensor]:
    """Returns the same, and the number of the pair of every edge, of shape `[num_edges]`."""
    keys, pair = _keys(edges, num_items).unique(return_inverse=True)
    return _from_keys(keys, num_items), pair


def coalesce_truth(
    edges: Tensor, weight: Tensor | None, num_items: int, threshold: float | None = None
) -> tuple[Tensor, Tensor | None]:
    """Coalesces ground-truth edges, and drops those whose weight says that they are none.

    These are the weights below the threshold, or those of zero or less if there is none. A repeated
    edge keeps its largest weight, whatever the order of the edges.
    """
    if weight is None:
        return coalesce_edges(edges, num_items), None
    is_relevant = weight > 0 if threshold is None else weight >= threshold
    edges, weight = edges[:, is_relevant], weight[is_relevant]
    pairs, pair = number_pairs(edges, num_items)
    return pairs, scatter(weight, pair, dim_size=pairs.size(1), reduce="max")


def count_zero_ratings(weight: Tensor) -> int:
    """Counts the weights of zero or less among ratings; zero if all weights are labels 0 and 1."""
    is_label = (weight == 0) | (weight == 1)
    return 0 if bool(is_label.all()) else int((weight <= 0).sum())


def contains(coalesced: Tensor, edges: Tensor, num_items: int) -> Tensor:
    """Returns a mask `[num_edges]` of the `edges` that are among the `coalesced` ones."""
    if coalesced.size(1) == 0:
        return edges.new_zeros(edges.size(1), dtype=torch.bool)
    keys, wanted = _keys(coalesced, num_items), _keys(edges, num_items)
    nearest = torch.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    return keys[nearest] == wanted


def _keys(edges: Tensor, num_items: int) -> Tensor:
    """A number for each pair of a user and an item."""
    return edges[0] * num_items + edges[1]


def _from_keys(keys: Tensor, num_items: int) -> Tensor:
    user = keys.div(num_items, rounding_mode="floor")
    return torch.stack([user, keys - user * num_items])
