"""What the package computes, in one function. Read this file first.

A model recommends items, a boolean adjacency says which of them are right, and the hits of each
user are added up. The rest of the package gives the same numbers for other models and other data,
checks what it is given, ranks equal scores in a defined order, and is faster. Its tests compare it
with this file. `degree` and `scatter` are those of PyG, which uses `torch_scatter` where it is
installed.
"""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import degree, scatter


@torch.no_grad()
def evaluate(
    model: Any,
    truth: Tensor,
    edge_index: Tensor,
    num_users: int,
    num_items: int,
    ks: tuple[int, ...] = (20,),
    exclude_seen: bool = True,
    batch_size: int = 1024,
) -> dict[str, Tensor]:
    r"""Measures R-precision, and precision, recall, NDCG and hit rate at each `k`, for every user.

    Users are numbered from `0` on, and items from `num_users` on, as in a homogeneous graph. Edges
    may run in either direction. The function trusts its arguments, and uses the model as it is:
    call `model.eval()` first. :func:`pyg_recmetrics.evaluate` checks its arguments, and switches
    models to eval mode.

    .. math::
        \text{R-precision} = \frac{h_R}{R}, \quad \text{precision@}k = \frac{h_k}{k}, \quad
        \text{recall@}k = \frac{h_k}{R}, \quad \text{hit rate@}k = [h_k > 0], \quad
        \text{ndcg@}k = \frac{\sum_{j:\, r_j \leq k} 1 / \log_2(r_j + 1)}
        {\sum_{j=1}^{\min(k, R)} 1 / \log_2(j + 1)}

    where `R` is the number of relevant items of a user, its degree in the ground truth, :math:`r_j`
    is the rank of the `j`-th of them, and :math:`h_k` is how many of them have a rank of at most
    `k`.

    Args:
        model: A model with `recommend(edge_index, src_index=, dst_index=, k=)`, which returns the
            best `k` nodes of `dst_index` for each node of `src_index`, such as PyG's
            :class:`~torch_geometric.nn.models.LightGCN`.
        truth (torch.Tensor): The ground-truth edges, of shape `[2, num_edges]`. Those that a user
            has seen do not count if `exclude_seen` is `True`.
        edge_index (torch.Tensor): The edges that the model propagates over, of shape
            `[2, num_edges]`. They also say which items each user has seen.
        num_users (int): The number of users.
        num_items (int): The number of items.
        ks (tuple of int, optional): The cut-offs. (default: `(20,)`)
        exclude_seen (bool, optional): Whether the items that a user has seen are left out of its
            ranking. (default: `True`)
        batch_size (int, optional): The number of users in a chunk. (default: `1024`)

    Returns:
        The metrics by name, such as `"ndcg@20"`: double-precision tensors of shape `[num_users]` in
        [0, 1], on the device of the edges; `NaN` for users without relevant items.

    Source: Manning et al., "Introduction to Information Retrieval" (2008), section 8.4.

    Example:
        >>> import torch
        >>> from torch_geometric.nn import LightGCN
        >>> from pyg_recmetrics import plain
        >>> edges = torch.tensor([[0, 1], [2, 3]])  # two users, three items
        >>> edge_index = torch.cat([edges, edges.flip(0)], dim=1)
        >>> model = LightGCN(num_nodes=5, embedding_dim=8, num_layers=2)
        >>> truth = torch.tensor([[0, 0], [3, 4]])
        >>> plain.evaluate(model, truth, edge_index, num_users=2, num_items=3, ks=(1,))["recall@1"]
        tensor([0.5000,    nan], dtype=torch.float64)
    """
    items = torch.arange(num_users, num_users + num_items, device=truth.device)
    chunks = []
    for users in torch.arange(num_users, device=truth.device).split(batch_size):
        # Mark: a boolean adjacency of the users and all nodes, on the device.
        seen = _adjacency(edge_index, users, num_users + num_items) & exclude_seen
        relevant = _adjacency(truth, users, num_users + num_items) & ~seen

        # Count: the number of relevant items of each user, its degree in the ground truth.
        degrees = degree(relevant.nonzero()[:, 0], len(users), dtype=torch.long)

        # Recommend: k = max degree items, and as many more as are left out because they were seen.
        k = max((*ks, int(degrees.max()))) + int(seen.sum(dim=1).max())
        lists = model.recommend(edge_index, src_index=users, dst_index=items, k=min(k, num_items))

        # Scatter: the hits of each user, by their ranks among the items that are not left out.
        row, place = relevant.gather(1, lists).nonzero().t()
        rank = (~seen.gather(1, lists)).cumsum(dim=1)[row, place]
        chunks.append(_add_up(row, rank, degrees, ks))
    return {name: torch.cat([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _adjacency(edges: Tensor, users: Tensor, num_nodes: int) -> Tensor:
    """Marks the edges of consecutive users: a boolean matrix `[len(users), num_nodes]`."""
    user, item = edges.sort(dim=0).values  # the user has the lower number
    is_here = (user >= users[0]) & (user <= users[-1])
    marked = torch.zeros(len(users), num_nodes, dtype=torch.bool, device=edges.device)
    marked[user[is_here] - users[0], item[is_here]] = True
    return marked


def _add_up(row: Tensor, rank: Tensor, degrees: Tensor, ks: tuple[int, ...]) -> dict[str, Tensor]:
    """Adds up what the hits of each user are worth, by metric."""

    def total(value: Tensor) -> Any:
        return scatter(value.double(), row, dim_size=len(degrees)).where(degrees > 0, torch.nan)

    values = {"r_precision": total(rank <= degrees[row]) / degrees}
    for k in ks:
        hits = total(rank <= k)
        values |= {f"precision@{k}": hits / k, f"recall@{k}": hits / degrees}
        discount = 1 / torch.arange(2, k + 2, device=rank.device).double().log2()
        gain = total((rank <= k) * discount[rank.clamp(max=k) - 1])
        values[f"ndcg@{k}"] = gain / discount.cumsum(dim=0)[degrees.clamp(1, k) - 1]
        values[f"hit_rate@{k}"] = hits.clamp(max=1)
    return values
