"""Reads user-item edges out of PyG data, whatever of PyG's conventions it follows.

One part of a split has truth and message-passing edges, see :func:`read_data`. A graph that is not
split yet has pairs of users and items, see :func:`read_interactions`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage, EdgeStorage
from torch_geometric.typing import EdgeType
from torch_geometric.utils import index_to_mask, scatter

from pyg_recmetrics.checks import (
    as_tensor,
    check_device,
    check_edges,
    check_finite,
    check_mask,
    check_pairs,
    check_positive_integer,
    check_shape,
    check_weight,
)
from pyg_recmetrics.task.edges import (
    coalesce_edges,
    contains,
    count_zero_ratings,
    number_pairs,
    to_bipartite,
)
from pyg_recmetrics.utils import warn

#: What is missing in data that has not been split.
_NEEDS_TRUTH = (
    "'data' needs to hold ground truth as 'edge_label_index': pass one part of a split, as "
    "'RandomLinkSplit' of PyG and 'pyg_recmetrics.transforms' make it, or the ground-truth edges "
    "themselves in place of a graph, with its edges as 'edge_index'"
)


@dataclass(frozen=True, eq=False)
class UserItemEdges:
    """One part of a split: truth and seen in local ids, message passing in homogeneous ones."""

    #: What holds the truth.
    store: EdgeStorage
    num_users: int
    num_items: int
    truth: Tensor
    #: The labels of the truth, all of them positive; `None` if there are none.
    weight: Tensor | None
    #: How many edges are no truth because their rating is zero or less.
    num_zero_ratings: int
    seen: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    #: The users to evaluate and the candidates, in local ids, where the data has them.
    users: Tensor | None = None
    candidates: Tensor | None = None
    #: The edges of all other types between users and items, from users to items.
    others: dict[EdgeType, Tensor] = field(default_factory=dict)
    #: Whether the seen edges join nodes of one type, most of them in both directions.
    runs_both_ways: bool = False


def read_data(
    data: Data | HeteroData, edge_type: EdgeType | None, num_users: int | None, name: str = "data"
) -> UserItemEdges:
    """Reads one part of a split."""
    check_graph(data, num_users=num_users, edge_type=edge_type, name=name)
    store = find_truth(data, edge_type)
    truth, weight, num_zero_ratings = _read_truth(store)
    seen = edge_index = read_edge_index(store)
    edge_weight, candidates = store.get("edge_weight"), store.get("candidate_edge_index")
    if edge_weight is not None:
        check_weight(edge_weight, "edge_weight", edge_index, "edge_index")
    if candidates is not None:
        candidates = check_edges(candidates, "candidate_edge_index")
    if isinstance(data, HeteroData):
        source, relation, destination = store._key
        num_users, num_items = count_nodes(data, source), count_nodes(data, destination)
        users = _read_users(data[source], num_users)
        others = other_edges(data, store._key)
        runs_both_ways = source == destination and _run_both_ways(seen, num_users)
        if runs_both_ways:
            others[source, f"reverse of {relation}", destination] = seen.flip([0])
        edge_index = to_homogeneous(seen, num_users)
        edge_weight = None if edge_weight is None else torch.cat([edge_weight, edge_weight])
    else:
        num_users, num_items = count_users(data, num_users)
        users, others, runs_both_ways = _read_users(data, num_users + num_items), {}, False
        truth = to_bipartite(truth, "edge_label_index", num_users)
        seen = to_bipartite(seen, "edge_index", num_users)
        if candidates is not None:
            candidates = to_bipartite(candidates, "candidate_edge_index", num_users)
    check_pairs(truth, "edge_label_index", num_users, num_items)
    check_pairs(seen, "edge_index", num_users, num_items)
    return UserItemEdges(
        store=store,
        num_users=num_users,
        num_items=num_items,
        truth=truth,
        weight=weight,
        num_zero_ratings=num_zero_ratings,
        seen=seen,
        edge_index=edge_index,
        edge_weight=edge_weight,
        users=users,
        candidates=candidates,
        others=others,
        runs_both_ways=runs_both_ways,
    )


def check_graph(
    data: object, *, num_users: int | None, edge_type: EdgeType | None, name: str = "data"
) -> None:
    """Raises if `data` is not a graph, or if an argument belongs to the other kind of graph."""
    if isinstance(edge_type, Data | HeteroData):
        raise TypeError(
            f"'{name}' needs to be one part of a split, whose 'edge_index' says what users have "
            f"seen (got two); write RankingTask.from_data(test)"
        )
    if isinstance(data, HeteroData):
        if num_users is not None:
            raise ValueError(
                f"'num_users' applies to homogeneous 'Data' only; in a 'HeteroData' it is the "
                f"number of user nodes (got {num_users!r})"
            )
    elif not isinstance(data, Data):
        raise TypeError(
            f"'{name}' needs to be a 'Data' or 'HeteroData' object (got {type(data).__name__}); "
            f"pass one part of a split, or put edges into "
            f"graph['user', 'rates', 'item'].edge_index and .edge_label_index of "
            f"graph = HeteroData()"
        )
    elif edge_type is not None:
        raise ValueError(
            f"'edge_type' applies to 'HeteroData' only; a homogeneous 'Data' has a single type of "
            f"edges (got {edge_type!r})"
        )


#: The smallest plausible ratio: one negative for so many positives.
_FEWEST_NEGATIVES = 10


def check_ratings(edges: UserItemEdges) -> None:
    """Raises or warns if `RandomLinkSplit` has added one to the ratings of a part, or may have.

    It does so with integers if it samples negatives: a multiple of the ratings, or a part of them.
    From zero stars on, such ratings look like those from one star on that nothing was added to.
    """
    weight, num_ratings = edges.weight, edges.truth.size(1)
    if weight is None or weight.is_floating_point() or bool((weight == weight[:1]).all()):
        return
    names = {"edge_label", "neg_edge_label"}.intersection(edges.store.keys())
    labels = [edges.store[name] for name in names]
    num_zero = sum(int((as_tensor(label, "edge_label") == 0).sum()) for label in labels)
    is_few = num_zero * _FEWEST_NEGATIVES < num_ratings
    if is_few or 0 not in (num_zero % num_ratings, num_ratings % num_zero):
        return
    remedy = (
        "split with neg_sampling_ratio=0.0, or, if these are the ratings themselves, pass them as "
        "floats, edge_label.float()"
    )
    if (low := int(weight.min())) > 1:
        raise ValueError(
            f"'edge_label' needs to hold the ratings themselves, to which 'RandomLinkSplit' adds "
            f"one if it samples negatives: {remedy} (got {num_zero} zeros beside {num_ratings} "
            f"ratings from {low} on)"
        )
    warn(
        f"'edge_label' has {num_zero} zeros beside {num_ratings} ratings, which are read as they "
        f"are. 'RandomLinkSplit' adds one to integers if it samples negatives, so what was 0 would "
        f"be 1: {remedy}"
    )


def warn_of_one_direction(edges: UserItemEdges) -> None:
    """Warns if truth has pairs of nodes of one type once, and the seen edges have them twice."""
    if not edges.runs_both_ways:  # nor is anything sorted for it
        return
    truth, seen = (coalesce_edges(x, edges.num_items) for x in (edges.truth, edges.seen))
    truth = truth[:, truth[0] != truth[1]]
    is_known = contains(truth, truth.flip([0]), edges.num_items)
    is_known |= contains(seen, truth.flip([0]), edges.num_items)
    if 2 * int(is_known.sum()) < truth.size(1):
        warn(
            "'edge_index' runs in both directions, and the ground truth in one, so that the other "
            "half of it counts as wrong, and nodes may get themselves. With task = "
            "RankingTask.from_data(data), write RankingTask(to_undirected(task.truth), "
            "num_users=n, num_items=n, "
            "seen=torch.cat([task.seen, torch.arange(n).expand(2, -1)], dim=1))"
        )


def check_directions(edges: UserItemEdges) -> None:
    """Raises if `RandomLinkSplit` took a graph with edges in both directions for a directed one."""
    num_nodes = edges.num_users + edges.num_items
    is_forward = edges.edge_index[0] < edges.num_users
    if bool(is_forward.all()) or not bool(is_forward.any()):
        return
    truth = check_edges(edges.store[f"{_truth_name(edges.store)}_index"], "edge_label_index")
    index = coalesce_edges(edges.edge_index, num_nodes)
    is_there = contains(index, truth, num_nodes)
    is_mirrored = contains(index, truth.flip([0]), num_nodes)
    num_mirrored = int((is_mirrored & ~is_there).sum())
    if 2 * num_mirrored > edges.truth.size(1):
        raise ValueError(
            f"'data' needs to be split with RandomLinkSplit(is_undirected=True), as its edges run "
            f"in both directions (got {num_mirrored} of {edges.truth.size(1)} ground-truth edges "
            f"whose opposite is in 'edge_index')"
        )


def find_truth(data: Data | HeteroData, edge_type: EdgeType | None) -> EdgeStorage:
    """The edge store that holds the ground truth."""
    if isinstance(data, Data):
        return data.edge_stores[0]
    labelled = [store._key for store in data.edge_stores if _truth_name(store) is not None]
    if edge_type is None and not labelled:
        raise ValueError(f"{_NEEDS_TRUTH} (got none in {data.edge_types})")
    # Splits may label reverse edges, too. They are the truth only if nothing else is labelled.
    forward = [key for key in labelled if not is_named_reverse(key)]
    return data[choose_edge_type(data, edge_type, forward or labelled, "holds ground truth")]


def count_users(data: Data, num_users: int | None) -> tuple[int, int]:
    """Returns how many users and items a homogeneous graph has.

    The number of users comes from the argument, or else from `data.num_users`.
    """
    if num_users is None:
        num_users = data.get("num_users")
    if num_users is None:
        raise ValueError(
            "'num_users' needs to be given for homogeneous 'Data', as an argument or as "
            "'data.num_users': users come first, and items are numbered from 'num_users' on"
        )
    num_users = check_positive_integer(num_users, "num_users")
    if num_users >= data.num_nodes:
        raise ValueError(
            f"'num_users' needs to be less than the number of nodes {data.num_nodes} "
            f"(got {num_users}); for nodes that are recommended to each other, "
            f"write RankingTask(to_undirected(truth), num_users=n, num_items=n, seen=...), as "
            f"'Friends' does in docs/queries.md"
        )
    return num_users, data.num_nodes - num_users


def choose_edge_type(
    data: HeteroData, edge_type: EdgeType | None, found: list[EdgeType], description: str
) -> EdgeType:
    """Returns the edge type that the user gave, or else the only one that was found.

    If all that were found connect the same two types of nodes, those from `"user"` nodes count.
    PyG's datasets have such nodes, and reverse edges with a name of their own.

    Args:
        data (HeteroData): The graph.
        edge_type (tuple, optional): The edge type that the user gave.
        found (list of tuple): The edge types to choose from otherwise.
        description (str): What these edge types have in common, for the error.
    """
    if edge_type is not None:
        if not isinstance(edge_type, tuple) or edge_type not in data.edge_types:
            raise ValueError(
                f"'edge_type' needs to be one of {data.edge_types} (got {edge_type!r})"
            )
        return edge_type
    if len({frozenset((key[0], key[2])) for key in found}) == 1:
        found = [key for key in found if key[0] == "user"] or found
        source, _, destination = found[0]
        if source != destination and (source == "item" or destination == "user"):
            raise ValueError(
                f"'edge_type' needs to be given for edges from {source!r} to {destination!r}, "
                f"where the items are the users: split the edges from users to items, or pass "
                f"edge_type={found[0]} if users are to be ranked for items (got None)"
            )
    if len(found) != 1:
        raise ValueError(
            f"'edge_type' needs to be given, the type of the edges from users to items, unless "
            f"exactly one type of edges {description} (got {found})"
        )
    return found[0]


def is_named_reverse(edge_type: EdgeType) -> bool:
    """Whether edges have the name that `ToUndirected` of PyG gives to reverse edges."""
    relation: str = edge_type[1]
    return relation.startswith("rev_")


def count_nodes(data: HeteroData, node_type: str) -> int:
    """The number of nodes of a type."""
    num_nodes = data[node_type].num_nodes
    if num_nodes is None:
        raise ValueError(f"'data[{node_type!r}].num_nodes' needs to be set (got None)")
    return int(num_nodes)


def _truth_name(store: BaseStorage) -> str | None:
    # `RandomLinkSplit(split_labels=True)` keeps positive and negative edges apart.
    names = ("edge_label", "pos_edge_label")
    return next((name for name in names if f"{name}_index" in store), None)


def _read_truth(store: Data | EdgeStorage) -> tuple[Tensor, Tensor | None, int]:
    name = _truth_name(store)
    if name is None:
        raise ValueError(f"{_NEEDS_TRUTH} (got {sorted(store.keys())})")
    truth = check_edges(store[f"{name}_index"], f"{name}_index")
    label = store.get(name)
    if label is None:
        return truth, None, 0
    label = as_tensor(label, name)
    check_weight(label, name, truth, f"{name}_index")
    # Negatives go before anything is checked: in a homogeneous graph they join any two nodes.
    is_positive = label > 0
    return truth[:, is_positive], label[is_positive], count_zero_ratings(label)


def _read_users(store: BaseStorage | Data, num_nodes: int) -> Tensor | None:
    mask = store.get("eval_mask")
    if mask is None:
        return None
    return check_mask(mask, "eval_mask", (num_nodes,)).nonzero().flatten()


def other_edges(data: HeteroData, edge_type: EdgeType) -> dict[EdgeType, Tensor]:
    """The edges of all other types between users and items, flipped to run from users to items."""
    others = {}
    for key, is_reverse in _other_types(data, edge_type):
        edges = read_edge_index(data[key])
        others[key] = edges.flip([0]) if is_reverse else edges
    return others


def _run_both_ways(edges: Tensor, num_nodes: int) -> bool:
    """Returns whether most edges between nodes of one type have their opposite."""
    index = coalesce_edges(edges[:, edges[0] != edges[1]], num_nodes)
    return 2 * int(contains(index, index.flip([0]), num_nodes).sum()) > index.size(1)


def _other_types(data: HeteroData, edge_type: EdgeType) -> Iterator[tuple[EdgeType, bool]]:
    """Yields the other types of edges between users and items, and whether they begin at items."""
    source, _, destination = edge_type
    for key in data.edge_types:
        is_reverse = (key[2], key[0]) == (source, destination)
        is_between = is_reverse or (key[0], key[2]) == (source, destination)
        if is_between and key != edge_type and "edge_index" in data[key]:
            yield key, is_reverse


def to_homogeneous(edges: Tensor, num_users: int) -> Tensor:
    """Edges between users and items in both directions, with the numbers of items after users."""
    forward = edges + edges.new_tensor([[0], [num_users]])
    return torch.cat([forward, forward.flip([0])], dim=1)


def read_edge_index(store: Data | EdgeStorage) -> Tensor:
    """The message-passing edges."""
    if "edge_index" not in store:
        raise ValueError(
            f"'data' needs to hold message-passing edges, which are what users have seen, as "
            f"'edge_index' (got {sorted(store.keys())})"
        )
    return check_edges(store["edge_index"], "edge_index")


# Graphs that are not split yet.

#: A graph of users and items.
Graph: TypeAlias = Data | HeteroData


@dataclass(frozen=True, eq=False)
class Interactions:
    """All user-item edges of a graph, in both directions, those of one type after the other.

    Attributes:
        num_users: The number of users.
        num_items: The number of items.
        edge_types: The types of the edges, `None` in a homogeneous graph. The first runs from users
            to items; in a `HeteroData`, the others hold reverse edges of the same pairs.
        num_edges: The number of edges of each type.
        user: The users of the distinct pairs that edges connect, of shape `[num_pairs]`. Pairs are
            sorted.
        item: Their items, of shape `[num_pairs]`.
        pair: The pair of every edge, of shape `[num_edges]`.
        can_be_truth: The edges to learn from and to test with, a mask of shape `[num_edges]`. These
            run from users to items. A pair without such an edge has its reverse edge instead.
    """

    num_users: int
    num_items: int
    edge_types: list[EdgeType | None]
    num_edges: list[int]
    user: Tensor
    item: Tensor
    pair: Tensor
    can_be_truth: Tensor

    @property
    def user_type(self) -> str | None:
        """The node type of users, `None` in a homogeneous graph."""
        edge_type = self.edge_types[0]
        return None if edge_type is None else edge_type[0]

    @property
    def degree(self) -> Tensor:
        """The number of items of every user, of shape `[num_users]`."""
        return torch.bincount(self.user, minlength=self.num_users)

    def stores(self, data: Graph) -> list[EdgeStorage]:
        """Returns the edge stores of `data`, one for each type, with the edges in this order."""
        return [data.edge_stores[0] if key is None else data[key] for key in self.edge_types]

    def split_by_type(self, value: Tensor) -> tuple[Tensor, ...]:
        """Divides a value for every edge into the values of each type."""
        values: tuple[Tensor, ...] = value.split(self.num_edges)
        return values

    def time(self, data: Graph, name: str) -> Tensor | None:
        """Returns the time of every edge, of shape `[num_edges]`, or `None` without times.

        Reverse edges without a time have the time of their pair, the latest of a repeated pair.
        """
        stores, pairs = self.stores(data), self.split_by_type(self.pair)
        if name not in stores[0]:
            return None
        times: list[Tensor] = []
        for store, pair in zip(stores, pairs, strict=True):
            if name in store:
                times.append(_check_time(store[name], name, pair))
            else:
                latest = scatter(times[0], pairs[0], dim_size=self.user.numel(), reduce="max")
                times.append(latest[pair])
        return torch.cat(times)

    def reduce_by_pair(self, value: Tensor, reduce: str) -> Tensor:
        """Reduces a value for every edge to the `"min"` or `"max"` of every pair."""
        reduced: Tensor = scatter(value, self.pair, dim_size=self.user.numel(), reduce=reduce)
        return reduced


def read_interactions(
    data: Graph, edge_type: EdgeType | None, num_users: int | None
) -> Interactions:
    """Finds the user-item edges of a graph that is not split yet."""
    check_graph(data, num_users=num_users, edge_type=edge_type)
    edges: dict[EdgeType | None, Tensor]
    if isinstance(data, HeteroData):
        edge_type = _choose_interactions(data, edge_type)
        num_users, num_items = count_nodes(data, edge_type[0]), count_nodes(data, edge_type[2])
        forward = read_edge_index(data[edge_type])
        check_pairs(forward, "edge_index", num_users, num_items)
        edges = {edge_type: forward, **_reverse_edges(data, edge_type, forward, num_items)}
        num_edges = sum(each.size(1) for each in edges.values())
        is_forward = torch.arange(num_edges, device=forward.device) < forward.size(1)
    else:
        num_users, num_items = count_users(data, num_users)
        edge_index = read_edge_index(data)
        edges = {None: to_bipartite(edge_index, "edge_index", num_users)}
        check_pairs(edges[None], "edge_index", num_users, num_items)
        is_forward = edge_index[0] < num_users
    (user, item), pair = number_pairs(torch.cat([*edges.values()], dim=1), num_items)
    has_forward = index_to_mask(pair[is_forward], user.numel())
    return Interactions(
        num_users=num_users,
        num_items=num_items,
        edge_types=[*edges],
        num_edges=[each.size(1) for each in edges.values()],
        user=user,
        item=item,
        pair=pair,
        can_be_truth=is_forward | ~has_forward[pair],
    )


def _choose_interactions(data: HeteroData, edge_type: EdgeType | None) -> EdgeType:
    """Returns the type of the edges from users to items."""
    found = [
        key
        for key in data.edge_types
        if "edge_index" in data[key] and key[0] != key[2] and not is_named_reverse(key)
    ]
    return choose_edge_type(data, edge_type, found, "connects two types of nodes")


def _reverse_edges(
    data: HeteroData, edge_type: EdgeType, forward: Tensor, num_items: int
) -> dict[EdgeType, Tensor]:
    """The edges of each type that holds the same pairs as the forward edges, from items to users.

    They are flipped to run from users to items.
    """
    pairs = coalesce_edges(forward, num_items)
    reverse = {}
    for key, is_reverse in _other_types(data, edge_type):
        if is_reverse:
            edges = read_edge_index(data[key]).flip([0])
            check_device(edges, f"data{list(key)}", forward.device, "edge_type")
            check_pairs(edges, "edge_index", count_nodes(data, key[2]), num_items)
            if torch.equal(coalesce_edges(edges, num_items), pairs):
                reverse[key] = edges
    return reverse


def _check_time(value: object, name: str, edge: Tensor) -> Tensor:
    time = as_tensor(value, name)
    check_shape(time, name, tuple(edge.shape), "a time for every edge")
    check_device(time, name, edge.device, "edge_index")
    check_finite(time, name)
    return time.byte() if time.dtype == torch.bool else time
