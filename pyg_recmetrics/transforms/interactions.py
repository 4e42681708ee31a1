"""Where the user-item edges of a graph are, and which of them say the same."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import EdgeStorage
from torch_geometric.typing import EdgeType
from torch_geometric.utils import scatter

from pyg_recmetrics.checks import check_bipartite, check_edge_type, check_finite, check_tensor
from pyg_recmetrics.task.graph import (
    count_nodes,
    count_users,
    is_opposite,
    read_edge_index,
    to_bipartite,
)


class Pairs(NamedTuple):
    """Distinct (user, item) pairs, sorted, and the pair of every edge.

    Attributes:
        user: Users of shape `[num_pairs]`.
        item: Items of shape `[num_pairs]`.
        of_edge: The pair of every edge, of shape `[num_edges]`.
    """

    user: Tensor
    item: Tensor
    of_edge: Tensor


@dataclass(frozen=True)
class Place:
    """An edge store with user-item edges: one direction of a `HeteroData`, or a whole `Data`.

    Attributes:
        edge_type: The type of the edges, `None` in a homogeneous graph.
        edges: Users over items in local ids, of shape `[2, num_edges]`.
        is_forward: Which edges run from users to items, of shape `[num_edges]`.
    """

    edge_type: EdgeType | None
    edges: Tensor
    is_forward: Tensor

    def store(self, data: Data | HeteroData) -> EdgeStorage:
        """The edge store in `data`, which has the edges in the same order."""
        return data.edge_stores[0] if self.edge_type is None else data[self.edge_type]


@dataclass(frozen=True)
class Interactions:
    """All user-item edges of a graph, in both directions, one place after the other.

    Attributes:
        num_users: The number of users.
        num_items: The number of items.
        user_type: The node type of users, `None` in a homogeneous graph.
        places: Where the edges are.
        pairs: Which edges say the same.
    """

    num_users: int
    num_items: int
    user_type: str | None
    places: list[Place]
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

        These run from users to items; where a pair has no such edge, the reverse one is taken.
        """
        is_forward = torch.cat([place.is_forward for place in self.places])
        if bool(is_forward.all()):
            return is_forward
        has_forward = is_forward.new_zeros(self.pairs.user.size(0))
        has_forward[self.pairs.of_edge[is_forward]] = True
        return is_forward | ~has_forward[self.pairs.of_edge]

    def split(self, of_edge: Tensor) -> tuple[Tensor, ...]:
        """Takes a value for every edge apart into those of each place."""
        values: tuple[Tensor, ...] = of_edge.split([place.edges.size(1) for place in self.places])
        return values

    def time(self, data: Data | HeteroData, name: str) -> Tensor | None:
        """The time of every edge, of shape `[num_edges]`, `None` if there are no times.

        A reverse edge that has no time of its own has that of its pair, the latest if the pair
        is repeated.
        """
        stores = [place.store(data) for place in self.places]
        if name not in stores[0]:
            return None
        times = [
            _check_time(store[name], name, place)
            for store, place in zip(stores, self.places, strict=True)
            if name in store
        ]
        if len(times) == len(stores):
            return torch.cat(times)
        forward, *reverse = self.split(self.pairs.of_edge)
        latest = scatter(times[0], forward, dim_size=self.pairs.user.size(0), reduce="max")
        own = [store.get(name) for store in stores[1:]]
        filled = [
            latest[pair] if time is None else time for pair, time in zip(reverse, own, strict=True)
        ]
        return torch.cat([times[0], *filled])

    def per_pair(self, value: Tensor, reduce: str) -> Tensor:
        """Reduces a value for every edge to one for every pair: `"min"` or `"max"`."""
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
    if isinstance(data, HeteroData):
        if num_users is not None:
            raise ValueError(
                "'num_users' applies to homogeneous 'Data'; 'HeteroData' knows its own"
            )
        return _read_hetero(data, edge_type, rev_edge_type)
    if not isinstance(data, Data):
        raise TypeError(
            f"'data' needs to be a 'Data' or 'HeteroData' object (got {type(data).__name__})"
        )
    for value, name in ((edge_type, "edge_type"), (rev_edge_type, "rev_edge_type")):
        if value is not None:
            raise ValueError(f"'{name}' applies to 'HeteroData'; homogeneous 'Data' has but one")
    num_users, num_items = count_users(data, num_users)
    edge_index = read_edge_index(data)
    place = Place(
        None, to_bipartite(edge_index, "edge_index", num_users), edge_index[0] < num_users
    )
    check_bipartite(place.edges, "edge_index", num_users, num_items)
    pairs = _pair_up([place], num_items)
    return Interactions(num_users, num_items, None, [place], pairs)


def _read_hetero(
    data: HeteroData, edge_type: EdgeType | None, rev_edge_type: EdgeType | None
) -> Interactions:
    edge_type = _find_edge_type(data, edge_type)
    num_users, num_items = count_nodes(data, edge_type[0]), count_nodes(data, edge_type[2])
    if rev_edge_type is None:
        opposite = [
            key
            for key in data.edge_types
            if is_opposite(key, edge_type) and "edge_index" in data[key]
        ]
    else:
        opposite = [_check_reverse(data, edge_type, rev_edge_type)]
    places = []
    for key in (edge_type, *opposite):
        edges = read_edge_index(data[key])
        edges = edges if key == edge_type else edges.flip([0])
        check_bipartite(edges, "edge_index", num_users, num_items)
        places.append(Place(key, edges, torch.full_like(edges[0], key == edge_type).bool()))
    pairs = _pair_up(places, num_items)
    reverse = _are_reverse(places, pairs)
    if rev_edge_type is not None and not reverse[0]:
        raise ValueError(
            f"'rev_edge_type' needs to hold the reverse edges of {edge_type}, and only these "
            f"(got {rev_edge_type})"
        )
    if not all(reverse):
        found = zip(places[1:], reverse, strict=True)
        places = [places[0]] + [place for place, is_reverse in found if is_reverse]
        pairs = _pair_up(places, num_items)
    return Interactions(num_users, num_items, edge_type[0], places, pairs)


def _find_edge_type(data: HeteroData, edge_type: EdgeType | None) -> EdgeType:
    if edge_type is not None:
        return check_edge_type(edge_type, data)
    found = [
        key
        for key in data.edge_types
        if "edge_index" in data[key] and key[0] != key[2] and not key[1].startswith("rev_")
    ]
    if len(found) != 1:
        raise ValueError(
            f"'edge_type' needs to be given, the type of the edges from users to items, unless "
            f"there is but one between two types of nodes (got {found})"
        )
    return found[0]


def _check_reverse(data: HeteroData, edge_type: EdgeType, rev_edge_type: EdgeType) -> EdgeType:
    if rev_edge_type not in data.edge_types or not is_opposite(rev_edge_type, edge_type):
        raise ValueError(
            f"'rev_edge_type' needs to be a type of edges from {edge_type[2]!r} to "
            f"{edge_type[0]!r} in {data.edge_types} (got {rev_edge_type!r})"
        )
    return rev_edge_type


def _are_reverse(places: list[Place], pairs: Pairs) -> list[bool]:
    """Whether each place but the first has the edges of the first one, and no others."""
    holds = []
    for of_place in pairs.of_edge.split([place.edges.size(1) for place in places]):
        held = torch.zeros_like(pairs.user, dtype=torch.bool)
        held[of_place] = True
        holds.append(held)
    return [torch.equal(holds[0], other) for other in holds[1:]]


def _pair_up(places: list[Place], num_items: int) -> Pairs:
    edges = torch.cat([place.edges for place in places], dim=1)
    key, order = (edges[0] * num_items + edges[1]).sort(stable=True)  # faster than unstable
    is_first = torch.ones_like(key, dtype=torch.bool)
    is_first[1:] = key[1:] != key[:-1]
    of_edge = torch.empty_like(order)
    of_edge[order] = is_first.cumsum(0) - 1
    key = key[is_first]
    user = key.div(num_items, rounding_mode="floor")
    return Pairs(user, key - user * num_items, of_edge)


def _check_time(value: object, name: str, place: Place) -> Tensor:
    time = check_tensor(value, name)
    if time.shape != place.edges.shape[1:]:
        raise ValueError(
            f"'{name}' needs to have shape [{place.edges.size(1)}], a time for every edge "
            f"(got {list(time.shape)})"
        )
    check_finite(time, name)
    return time
