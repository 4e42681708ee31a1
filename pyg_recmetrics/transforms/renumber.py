"""Renumbering nodes, and writing down which number each had before."""

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import index_to_mask, select

from pyg_recmetrics.transforms.interactions import Interactions


def remember_ids(data: Data | HeteroData, node_type: str | None) -> None:
    """Writes down the number of each node as `n_id`, unless the nodes already have one."""
    store = data.node_stores[0] if node_type is None else data[node_type]
    if "n_id" not in store:
        device = data.edge_stores[0]["edge_index"].device
        store["n_id"] = torch.arange(store.num_nodes, device=device)


def users_first(
    data: Data | HeteroData, interactions: Interactions, users: Tensor
) -> Data | HeteroData:
    """Renumbers users so that the given `users` are first. All other nodes stay in order."""
    is_other = ~index_to_mask(users, interactions.num_users)
    order = torch.cat([users, is_other.nonzero().flatten()])
    if interactions.user_type is None:
        items = torch.arange(interactions.num_items, device=users.device)
        order = torch.cat([order, items + interactions.num_users])
    return _reorder(data, interactions.user_type, order)


def _reorder(data: Data | HeteroData, node_type: str | None, order: Tensor) -> Data | HeteroData:
    data = copy.copy(data)
    remember_ids(data, node_type)
    store = data.node_stores[0] if node_type is None else data[node_type]
    for key in store.node_attrs():
        store[key] = select(store[key], order, data.__cat_dim__(key, store[key], store))
    new_id = torch.empty_like(order)
    new_id[order] = torch.arange(order.numel(), device=order.device)
    for edges in data.edge_stores:
        ends = (None, None) if node_type is None else (edges._key[0], edges._key[2])
        for key, value in list(edges.items()):
            # `edge_index`, `edge_label_index`, and whatever else holds pairs of nodes.
            if key.endswith("edge_index") or key.endswith("edge_label_index"):
                rows = zip(value, ends, strict=True)
                renumbered = [new_id[row] if end == node_type else row for row, end in rows]
                edges[key] = torch.stack(renumbered)
    return data
