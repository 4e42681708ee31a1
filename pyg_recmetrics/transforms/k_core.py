"""Graphs without users and items that have few edges."""

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

    Users and items with fewer are removed, which leaves others with fewer, until nothing changes.
    Repeated edges count once.

    What is left is numbered anew, without gaps and in the order it had, as PyG's
    :class:`~torch_geometric.transforms.LargestConnectedComponents` does it: items that were
    removed are not candidates any more. All attributes of nodes and edges, and edges of other
    types, follow; `n_id` of the nodes is the number that each had before. To be applied before a
    split.

    Args:
        k (int): The smallest number of edges of a user or item that is kept.
        edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        rev_edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        num_users (int, optional): See :class:`PerUserSplit`. The result knows its own.
            (default: `None`)

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If `k` is not a positive integer, the edges of the data are not found, they
            are split already, or nothing is left.

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
        for place in interactions.places:
            if label := next((key for key in place.store(data) if "label_index" in key), None):
                raise ValueError(f"'data' needs to be filtered before it is split (got {label!r})")
        has_user, has_item = self._core(interactions)
        if not bool(has_user.any()):
            raise ValueError(f"'k' needs to leave a user and an item (got {self.k})")
        edge_type = interactions.places[0].edge_type
        if edge_type is None:
            remember_ids(data, None)
            core = data.subgraph(torch.cat([has_user, has_item]))
            core.num_users = int(has_user.sum())
            return core
        kept = {edge_type[0]: has_user, edge_type[2]: has_item}
        for node_type in kept:
            remember_ids(data, node_type)
        for other in {key[end] for key in data.edge_types for end in (0, 2)} - set(kept):
            # PyG would keep them all, too, but look for them on the CPU.
            kept[other] = torch.ones_like(has_user[:1]).expand(data[other].num_nodes)
        return data.subgraph(kept)

    def _core(self, interactions: Interactions) -> tuple[Tensor, Tensor]:
        """The users and the items that are left, as masks."""
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
