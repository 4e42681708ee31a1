"""The user-item edges of a graph, renumbered; its core, and candidates that are sampled."""

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import EdgeStorage, NodeStorage
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import EdgeType
from torch_geometric.utils import index_to_mask, scatter, select

from pyg_recmetrics.checks import (
    as_tensor,
    check_device,
    check_finite,
    check_finite_number,
    check_natural_number,
    check_pairs,
    check_positive_integer,
    check_shape,
)
from pyg_recmetrics.task.edges import coalesce_edges, number_pairs, to_bipartite
from pyg_recmetrics.task.graph import (
    UserItemEdges,
    check_graph,
    choose_edge_type,
    count_nodes,
    count_users,
    find_truth,
    is_named_reverse,
    opposite_edges,
    read_data,
    read_edge_index,
)
from pyg_recmetrics.utils import warn

#: A graph of users and items.
Graph: TypeAlias = Data | HeteroData


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct (user, item) pairs, sorted, and the pair of every edge.

    Attributes:
        user: Users of shape `[num_pairs]`.
        item: Items of shape `[num_pairs]`.
        of_edge: The pair of every edge, of shape `[num_edges]`.
    """

    user: Tensor
    item: Tensor
    of_edge: Tensor


@dataclass(frozen=True, eq=False)
class EdgeGroup:
    """The user-item edges of one edge store: one type of a `HeteroData`, or all of a `Data`.

    Attributes:
        edge_type: The type of the edges, `None` in a homogeneous graph.
        edges: Users over items in local ids, of shape `[2, num_edges]`.
        is_forward: Which edges run from users to items, of shape `[num_edges]`.
    """

    edge_type: EdgeType | None
    edges: Tensor
    is_forward: Tensor

    def store(self, data: Graph) -> EdgeStorage:
        """Returns the edge store of this group in `data`, with the edges in the same order."""
        return data.edge_stores[0] if self.edge_type is None else data[self.edge_type]


@dataclass(frozen=True, eq=False)
class Interactions:
    """All user-item edges of a graph, in both directions, one group after the other.

    Attributes:
        num_users: The number of users.
        num_items: The number of items.
        user_type: The node type of users, `None` in a homogeneous graph.
        groups: The edges of each store. The first group holds the edges from users to items; in a
            `HeteroData`, the others hold reverse edges of the same pairs.
    """

    num_users: int
    num_items: int
    user_type: str | None
    groups: list[EdgeGroup]

    @cached_property
    def pairs(self) -> Pairs:
        """The distinct pairs that the edges connect."""
        edges = torch.cat([group.edges for group in self.groups], dim=1)
        (user, item), of_edge = number_pairs(edges, self.num_items)
        return Pairs(user, item, of_edge)

    @property
    def degree(self) -> Tensor:
        """The number of items of every user, of shape `[num_users]`."""
        return torch.bincount(self.pairs.user, minlength=self.num_users)

    @property
    def can_be_truth(self) -> Tensor:
        """The edges to learn from and to test with, a mask of shape `[num_edges]`.

        These run from users to items. A pair without such an edge has its reverse edge instead.
        """
        is_forward = torch.cat([group.is_forward for group in self.groups])
        if bool(is_forward.all()):
            return is_forward
        pairs = self.pairs.of_edge[is_forward]
        has_forward: Tensor = index_to_mask(pairs, self.pairs.user.size(0))
        return is_forward | ~has_forward[self.pairs.of_edge]

    def split_by_group(self, value: Tensor) -> tuple[Tensor, ...]:
        """Divides a value for every edge into the values of each group."""
        sizes = [group.edges.size(1) for group in self.groups]
        values: tuple[Tensor, ...] = value.split(sizes)
        return values

    def time(self, data: Graph, name: str) -> Tensor | None:
        """Returns the time of every edge, of shape `[num_edges]`, or `None` without times.

        Reverse edges without a time have the time of their pair, the latest of a repeated pair.
        """
        stores = [group.store(data) for group in self.groups]
        if name not in stores[0]:
            return None
        pairs = self.split_by_group(self.pairs.of_edge)
        times = [
            _check_time(store[name], name, pair) if name in store else None
            for store, pair in zip(stores, pairs, strict=True)
        ]
        latest = scatter(times[0], pairs[0], dim_size=self.pairs.user.size(0), reduce="max")
        of_groups = zip(times, pairs, strict=True)
        return torch.cat([latest[pair] if time is None else time for time, pair in of_groups])

    def reduce_by_pair(self, value: Tensor, reduce: str) -> Tensor:
        """Reduces a value for every edge to the `"min"` or `"max"` of every pair."""
        size = self.pairs.user.size(0)
        reduced: Tensor = scatter(value, self.pairs.of_edge, dim_size=size, reduce=reduce)
        return reduced


def read_interactions(
    data: Graph, edge_type: EdgeType | None, num_users: int | None
) -> Interactions:
    """Finds the user-item edges of a graph that is not split yet."""
    check_graph(data, num_users=num_users, edge_type=edge_type)
    if isinstance(data, HeteroData):
        return _read_hetero(data, edge_type)
    num_users, num_items = count_users(data, num_users)
    edge_index = read_edge_index(data)
    edges = to_bipartite(edge_index, "edge_index", num_users)
    check_pairs(edges, "edge_index", num_users, num_items)
    groups = [EdgeGroup(None, edges, is_forward=edge_index[0] < num_users)]
    return Interactions(num_users, num_items, None, groups)


def _read_hetero(data: HeteroData, edge_type: EdgeType | None) -> Interactions:
    found = [
        key
        for key in data.edge_types
        if "edge_index" in data[key] and key[0] != key[2] and not is_named_reverse(key)
    ]
    edge_type = choose_edge_type(data, edge_type, found, "connects two types of nodes")
    num_users, num_items = count_nodes(data, edge_type[0]), count_nodes(data, edge_type[2])
    edges = read_edge_index(data[edge_type])
    check_pairs(edges, "edge_index", num_users, num_items)
    groups = [EdgeGroup(edge_type, edges, torch.ones_like(edges[0], dtype=torch.bool))]
    pairs = coalesce_edges(edges, num_items)
    for key, reverse in opposite_edges(data, edge_type).items():
        check_device(reverse, f"data{list(key)}", edges.device, "edge_type")
        check_pairs(reverse, "edge_index", num_users, num_items)
        if torch.equal(coalesce_edges(reverse, num_items), pairs):
            groups.append(EdgeGroup(key, reverse, torch.zeros_like(reverse[0], dtype=torch.bool)))
    return Interactions(num_users, num_items, edge_type[0], groups)


def _check_time(value: object, name: str, edge: Tensor) -> Tensor:
    time = as_tensor(value, name)
    check_shape(time, name, tuple(edge.shape), "a time for every edge")
    check_device(time, name, edge.device, "edge_index")
    check_finite(time, name)
    return time


def nodes_of(data: Graph, node_type: str | None) -> NodeStorage:
    """Returns the store of a type of nodes, or the only one of a homogeneous graph."""
    return data.node_stores[0] if node_type is None else data[node_type]


def remember_ids(data: Graph, node_type: str | None) -> None:
    """Writes down the number of each node as `n_id`, unless the nodes already have one."""
    store = nodes_of(data, node_type)
    if "n_id" not in store:
        device = data.edge_stores[0]["edge_index"].device
        store["n_id"] = torch.arange(store.num_nodes, device=device)


def users_first(data: Graph, interactions: Interactions, users: Tensor) -> Graph:
    """Renumbers users so that the given `users` are first. All other nodes stay in order."""
    is_other = ~index_to_mask(users, interactions.num_users)
    order = torch.cat([users, is_other.nonzero().flatten()])
    if interactions.user_type is None:
        items = torch.arange(interactions.num_items, device=users.device)
        order = torch.cat([order, items + interactions.num_users])
    data, node_type = copy.copy(data), interactions.user_type
    remember_ids(data, node_type)
    store = nodes_of(data, node_type)
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


@dataclass(eq=False)
class KCore(BaseTransform):
    r"""Keeps the largest graph in which each user has at least `k` items, and each item `k` users.

    The transform removes users and items with fewer. This leaves others with fewer, so it repeats
    until nothing changes. Repeated edges count once. Apply this transform before a split.

    The remaining users and items are renumbered without gaps, in the order they had, as PyG's
    :class:`~torch_geometric.transforms.LargestConnectedComponents` does it. Removed items are
    therefore no longer candidates. All attributes of nodes and edges, and edges of other types,
    follow. `n_id` of the nodes is the number that each had before. A warning counts what leaves.

    Args:
        k (int): The smallest number of distinct edges of a user or item that is kept.
        edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        num_users (int, optional): See :class:`PerUserSplit`. `num_users` of the result is the
            number of users that are left. (default: `None`)

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If `k` is not a positive integer, the edges of the data are not found, they
            are already split, or nothing is left.

    Example:
        >>> import warnings
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_recmetrics.transforms import KCore
        >>> data = Data(num_nodes=6, num_users=3)  # three users, three items
        >>> data.edge_index = torch.tensor([[0, 1, 1, 1, 2, 2], [3, 3, 4, 5, 4, 5]])
        >>> with warnings.catch_warnings(record=True) as said:
        ...     warnings.simplefilter("always")
        ...     core = KCore(2)(data)
        >>> print(said[0].message)
        KCore(k=2) leaves out 1 of 3 users and 1 of 3 items
        >>> core.n_id.tolist(), core.num_users
        ([1, 2, 4, 5], 2)
        >>> core.edge_index.tolist()
        [[0, 0, 1, 1], [2, 3, 2, 3]]
    """

    k: int
    edge_type: EdgeType | None = field(default=None, repr=False)
    num_users: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.k = check_positive_integer(self.k, "k")

    def forward(self, data: Data | HeteroData) -> Data | HeteroData:
        """Returns the graph that is left."""
        interactions = read_interactions(data, self.edge_type, self.num_users)
        for group in interactions.groups:
            if label := next((key for key in group.store(data) if "label_index" in key), None):
                raise ValueError(f"'data' needs to be filtered before it is split (got {label!r})")
        has_user, has_item = self._core(interactions)
        if not bool(has_user.any()):
            raise ValueError(f"'k' needs to leave a user and an item (got {self.k})")
        lost = [f"{int((~has).sum())} of {has.numel()}" for has in (has_user, has_item)]
        if not bool(has_user.all() and has_item.all()):
            warn(f"{self} leaves out {lost[0]} users and {lost[1]} items")
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


#: The largest number of random numbers that are drawn at once.
_MAX_DRAWS = 2**24


@dataclass(eq=False)
class SampledCandidates(BaseTransform):
    r"""Lets each user's truth compete with a few sampled items instead of all items.

    Many publications rank the truth of a user among, for example, 99 sampled items. Use this
    transform to reproduce their numbers, and rank all items otherwise. Krichene and Rendle,
    `"On Sampled Metrics for Item Recommendation" <https://doi.org/10.1145/3394486.3403226>`_ (KDD
    2020), show that a sampled metric differs from the same metric of the full ranking even in
    expectation, and that it can put recommenders into another order. With few samples, all
    sampled metrics lose sight of the top of the list and come to say the same as the area under
    the ROC curve. Without this transform, :func:`~pyg_recmetrics.evaluate` ranks all items, and is
    fast.

    Each user with truth gets a sample of its own, without replacement, of the items that it has
    neither a message-passing edge nor a truth edge with in this part of the split. The sample is
    smaller if there are not enough such items. The sample and the truth itself are the candidates
    of the user, edges from users to items in `candidate_edge_index`, which
    :meth:`RankingTask.from_data` reads. Apply the transform to one part of a split, or in a
    :class:`~torch_geometric.transforms.Compose` to all of them.

    Args:
        num_negatives (int): The number of items to sample for each user. (default: `99`)
        popularity (float): The exponent of popularity. The probability of an item is proportional
            to its number of message-passing edges to the power of this exponent: `0.0` samples
            uniformly, `1.0` by popularity. Items without such edges are only sampled with `0.0`.
            (default: `0.0`)
        seed (int): Equal seeds give equal samples, on every device and whatever the order of
            the edges. (default: `0`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth; of opposite ones, that from `"user"`
            nodes)
        num_users (int, optional): The number of users in a homogeneous `Data`.
            (default: `None`, the `num_users` of the data)

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If an argument is out of its range, or the data has no ground truth.

    Example:
        >>> from pyg_recmetrics import RankingTask, datasets
        >>> from pyg_recmetrics.transforms import LeaveLastOut, SampledCandidates
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=5)
        >>> *_, test = LeaveLastOut()(data)
        >>> task = RankingTask.from_data(SampledCandidates(num_negatives=9)(test))
        >>> task.num_candidates.unique()
        tensor([10])
    """

    num_negatives: int = 99
    popularity: float = 0.0
    seed: int = 0
    edge_type: EdgeType | None = field(default=None, repr=False)
    num_users: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.num_negatives = check_positive_integer(self.num_negatives, "num_negatives")
        self.popularity = check_finite_number(self.popularity, "popularity")
        self.seed = check_natural_number(self.seed, "seed")

    def forward(self, data: Data | HeteroData) -> Data | HeteroData:
        """Returns the data with its candidates."""
        edges = read_data(data, self.edge_type, self.num_users)
        sampled = self._sample(edges)
        num_sampled = torch.bincount(sampled[0], minlength=edges.num_users)
        is_short = num_sampled[edges.truth[0].unique().cpu()] < self.num_negatives
        if bool(is_short.any()):
            warn(
                f"{self} finds fewer items than it is to sample for {int(is_short.sum())} of "
                f"{is_short.numel()} users"
            )
        candidates = torch.cat([edges.truth.cpu(), sampled], dim=1)
        if isinstance(data, Data):
            candidates[1] += edges.num_users
        data = copy.copy(data)
        find_truth(data, self.edge_type)["candidate_edge_index"] = candidates.to(edges.truth.device)
        return data

    def _sample(self, edges: UserItemEdges) -> Tensor:
        # All on the CPU: random numbers, and the order of equal ones, differ by device.
        truth, seen = edges.truth.cpu(), edges.seen.cpu()
        num_items = edges.num_items
        weight = self._weight(coalesce_edges(seen, num_items)[1], num_items)
        users = truth[0].unique()
        excluded = coalesce_edges(torch.cat([truth, seen], dim=1), num_items)
        excluded = excluded[:, torch.isin(excluded[0], users)]
        excluded[0] = torch.searchsorted(users, excluded[0])  # the row of each user in `users`
        generator = torch.Generator().manual_seed(self.seed)
        num_rows = max(1, _MAX_DRAWS // num_items)
        sampled = []
        for start in range(0, users.numel(), num_rows):
            chunk = users[start : start + num_rows]
            bounds = torch.tensor([start, start + chunk.numel()], device="cpu")
            first, end = torch.searchsorted(excluded[0].contiguous(), bounds)
            # The earliest of exponential arrivals with these rates are a sample without
            # replacement (Efraimidis and Spirakis, "Weighted random sampling with a reservoir").
            uniform = torch.rand(chunk.numel(), num_items, generator=generator, device="cpu")
            arrival = uniform.log_().neg_().div_(weight)
            arrival[excluded[0, first:end] - start, excluded[1, first:end]] = torch.inf
            num_sampled = min(self.num_negatives, num_items)
            earliest = arrival.topk(num_sampled, dim=1, largest=False)
            is_sampled = earliest.values.isfinite()
            user = chunk[:, None].expand_as(is_sampled)[is_sampled]
            sampled.append(torch.stack([user, earliest.indices[is_sampled]]))
        return torch.cat([truth[:, :0], *sampled], dim=1)

    def _weight(self, item: Tensor, num_items: int) -> Tensor:
        """Returns how likely each item is relative to others, of shape `[num_items]`."""
        degree = torch.bincount(item, minlength=num_items).float()
        if self.popularity == 0:
            return torch.ones_like(degree)
        return torch.where(degree > 0, degree**self.popularity, 0)
