"""The core of a graph: what is left without users and items that have few edges."""

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import EdgeType

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.transforms.interactions import Interactions, read_interactions
from pyg_recmetrics.transforms.renumber import remember_ids


class KCore(BaseTransform):
    r"""Keeps the largest graph in which each user has at least `k` items, and each item `k` users.

    The transform removes users and items with fewer. This leaves others with fewer, so it repeats
    until nothing changes. Repeated edges count once. Apply this transform before a split.

    The remaining users and items are renumbered without gaps, in the order they had, as PyG's
    :class:`~torch_geometric.transforms.LargestConnectedComponents` does it. Removed items are
    therefore no longer candidates. All attributes of nodes and edges, and edges of other types,
    follow. `n_id` of the nodes is the number that each had before.

    Args:
        k (int): The smallest number of distinct edges of a user or item that is kept.
        edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        rev_edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        num_users (int, optional): See :class:`PerUserSplit`. `num_users` of the result is the
            number of users that are left. (default: `None`)

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If `k` is not a positive integer, the edges of the data are not found, they
            are already split, or nothing is left.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_recmetrics.transforms import KCore
        >>> data = Data(num_nodes=6, num_users=3)  # three users, three items
        >>> data.edge_index = torch.tensor([[0, 1, 1, 1, 2, 2], [3, 3, 4, 5, 4, 5]])
        >>> core = KCore(2)(data)
        >>> core.n_id.tolist(), core.num_users
        ([1, 2, 4, 5], 2)
        >>> core.edge_index.tolist()
        [[0, 0, 1, 1], [2, 3, 2, 3]]
    """

    def __init__(
        self,
        k: int,
        edge_type: EdgeType | None = None,
        rev_edge_type: EdgeType | None = None,
        num_users: int | None = None,
    ) -> None:
        self.k = check_positive_integer(k, "k")
        self.edge_type = edge_type
        self.rev_edge_type = rev_edge_type
        self.num_users = num_users

    def forward(self, data: Data | HeteroData) -> Data | HeteroData:
        """Returns the graph that is left."""
        interactions = read_interactions(data, self.edge_type, self.rev_edge_type, self.num_users)
        for group in interactions.groups:
            if label := next((key for key in group.store(data) if "label_index" in key), None):
                raise ValueError(f"'data' needs to be filtered before it is split (got {label!r})")
        has_user, has_item = self._core(interactions)
        if not bool(has_user.any()):
            raise ValueError(f"'k' needs to leave a user and an item (got {self.k})")
        edge_type = interactions.groups[0].edge_type
        if edge_type is None:
            remember_ids(data, None)
            core = data.subgraph(torch.cat([has_user, has_item]))
            core.num_users = int(has_user.sum())
            return core
        kept = {edge_type[0]: has_user, edge_type[2]: has_item}
        for node_type in kept:
            remember_ids(data, node_type)
        for other in {key[end] for key in data.edge_types for end in (0, 2)} - set(kept):
            # Without a mask, PyG would keep all nodes, too, but it would number them on the CPU.
            kept[other] = torch.ones_like(has_user[:1]).expand(data[other].num_nodes)
        return data.subgraph(kept)

    def _core(self, interactions: Interactions) -> tuple[Tensor, Tensor]:
        """Returns the users and the items that are left, as masks."""
        user, item = interactions.pairs.user, interactions.pairs.item
        while True:
            num_items = torch.bincount(user, minlength=interactions.num_users)
            num_users = torch.bincount(item, minlength=interactions.num_items)
            stays = (num_items[user] >= self.k) & (num_users[item] >= self.k)
            if bool(stays.all()):
                return num_items > 0, num_users > 0
            user, item = user[stays], item[stays]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.k})"
