"""The user-item edges of a graph, wherever they are stored, and the distinct pairs among them."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import EdgeStorage
from torch_geometric.typing import EdgeType
from torch_geometric.utils import index_to_mask, scatter

from pyg_recmetrics.checks import check_bipartite, check_device, check_finite
from pyg_recmetrics.inputs import as_tensor
from pyg_recmetrics.task.graph import (
    check_graph,
    choose_edge_type,
    count_nodes,
    count_users,
    is_named_reverse,
    is_opposite,
    read_edge_index,
    to_bipartite,
)


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

    def store(self, data: Data | HeteroData) -> EdgeStorage:
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
        pairs: The distinct pairs that the edges connect.
    """

    num_users: int
    num_items: int
    user_type: str | None
    groups: tuple[EdgeGroup, ...]
    pairs: Pairs

    @property
    def device(self) -> torch.device:
        """The device of the edges."""
        return self.pairs.user.device

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

    def time(self, data: Data | HeteroData, name: str) -> Tensor | None:
        """Returns the time of every edge, of shape `[num_edges]`, or `None` without times.

        Reverse edges without a time have the time of their pair, the latest of a repeated pair.
        """
        stores = [group.store(data) for group in self.groups]
        if name not in stores[0]:
            return None
        times = {
            number: _check_time(store[name], name, self.groups[number].edges[0])
            for number, store in enumerate(stores)
            if name in store
        }
        if len(times) < len(stores):
            pairs = self.split_by_group(self.pairs.of_edge)
            num_pairs = self.pairs.user.size(0)
            latest = scatter(times[0], pairs[0], dim_size=num_pairs, reduce="max")
            times = {number: times.get(number, latest[pair]) for number, pair in enumerate(pairs)}
        return torch.cat(list(times.values()))

    def reduce_by_pair(self, value: Tensor, reduce: str) -> Tensor:
        """Reduces a value for every edge to the `"min"` or `"max"` of every pair."""
        size = self.pairs.user.size(0)
        reduced: Tensor = scatter(value, self.pairs.of_edge, dim_size=size, reduce=reduce)
        return reduced


def read_interactions(
    data: Data | HeteroData,
    edge_type: EdgeType | None,
    rev_edge_type: EdgeType | None,
    num_users: int | None,
) -> Interactions:
    """Finds the user-item edges of a graph that is not split yet."""
    check_graph(data, num_users=num_users, edge_type=edge_type, rev_edge_type=rev_edge_type)
    if isinstance(data, HeteroData):
        return _read_hetero(data, edge_type, rev_edge_type)
    return _read_homogeneous(data, num_users)


def _read_homogeneous(data: Data, num_users: int | None) -> Interactions:
    num_users, num_items = count_users(data, num_users)
    edge_index = read_edge_index(data)
    edges = to_bipartite(edge_index, "edge_index", num_users)
    check_bipartite(edges, "edge_index", num_users, num_items)
    groups = (EdgeGroup(None, edges, is_forward=edge_index[0] < num_users),)
    return Interactions(num_users, num_items, None, groups, _find_pairs(groups, num_items))


def _read_hetero(
    data: HeteroData, edge_type: EdgeType | None, rev_edge_type: EdgeType | None
) -> Interactions:
    edge_type = _find_edge_type(data, edge_type)
    num_users, num_items = count_nodes(data, edge_type[0]), count_nodes(data, edge_type[2])
    found: list[EdgeGroup] = []
    for key in (edge_type, *_find_opposite(data, edge_type, rev_edge_type)):
        edges = read_edge_index(data[key])
        edges = edges if key == edge_type else edges.flip([0])
        if found:
            check_device(edges, "rev_edge_type", found[0].edges.device, "edge_type")
        check_bipartite(edges, "edge_index", num_users, num_items)
        found.append(EdgeGroup(key, edges, torch.full_like(edges[0], key == edge_type).bool()))
    groups = tuple(found)
    pairs = _find_pairs(groups, num_items)
    is_reverse = _hold_the_same_pairs(groups, pairs)
    if rev_edge_type is not None and not is_reverse[0]:
        raise ValueError(
            f"'rev_edge_type' needs to hold the reverse edges of {edge_type}, and no others "
            f"(got {rev_edge_type})"
        )
    if not all(is_reverse):
        opposite = zip(groups[1:], is_reverse, strict=True)
        groups = (groups[0], *(group for group, keep in opposite if keep))
        pairs = _find_pairs(groups, num_items)
    return Interactions(num_users, num_items, edge_type[0], groups, pairs)


def _find_edge_type(data: HeteroData, edge_type: EdgeType | None) -> EdgeType:
    found = [
        key
        for key in data.edge_types
        if "edge_index" in data[key] and key[0] != key[2] and not is_named_reverse(key)
    ]
    return choose_edge_type(data, edge_type, found, "connects two types of nodes")


def _find_opposite(
    data: HeteroData, edge_type: EdgeType, rev_edge_type: EdgeType | None
) -> list[EdgeType]:
    """Returns the edge types that may hold the reverse edges."""
    if rev_edge_type is None:
        return [
            key
            for key in data.edge_types
            if is_opposite(key, edge_type) and "edge_index" in data[key]
        ]
    if rev_edge_type not in data.edge_types or not is_opposite(rev_edge_type, edge_type):
        raise ValueError(
            f"'rev_edge_type' needs to be a type of edges from {edge_type[2]!r} to "
            f"{edge_type[0]!r} in {data.edge_types} (got {rev_edge_type!r})"
        )
    return [rev_edge_type]


def _hold_the_same_pairs(groups: tuple[EdgeGroup, ...], pairs: Pairs) -> list[bool]:
    """Whether each group after the first one connects exactly the pairs of the first one."""
    pairs_of_groups = pairs.of_edge.split([group.edges.size(1) for group in groups])
    first, *others = (index_to_mask(pair, pairs.user.size(0)) for pair in pairs_of_groups)
    return [torch.equal(first, other) for other in others]


def _find_pairs(groups: tuple[EdgeGroup, ...], num_items: int) -> Pairs:
    edges = torch.cat([group.edges for group in groups], dim=1)
    key, order = (edges[0] * num_items + edges[1]).sort(stable=True)  # faster than unstable
    is_first = torch.ones_like(key, dtype=torch.bool)
    is_first[1:] = key[1:] != key[:-1]
    of_edge = torch.empty_like(order)
    of_edge[order] = is_first.cumsum(0) - 1
    key = key[is_first]
    user = key.div(num_items, rounding_mode="floor")
    return Pairs(user, key - user * num_items, of_edge)


def _check_time(value: object, name: str, user: Tensor) -> Tensor:
    time = as_tensor(value, name)
    if time.shape != user.shape:
        raise ValueError(
            f"'{name}' needs to have shape {list(user.shape)}, a time for every edge "
            f"(got {list(time.shape)})"
        )
    check_device(time, name, user.device, "edge_index")
    check_finite(time, name)
    return time
