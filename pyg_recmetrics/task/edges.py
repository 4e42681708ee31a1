"""What a task is made of: user-item edges, which of them are truth, and its other arguments.

Edges are `[2, num_edges]` tensors of user ids over item ids. A *coalesced* edge list is sorted by
(user, item) and holds every edge once, as :func:`torch_geometric.utils.coalesce` returns it.
Queries of several columns, triples and events are numbered, and then read as edges, too.
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.index import index2ptr
from torch_geometric.typing import Adj
from torch_geometric.utils import index_to_mask, is_sparse, lexsort, scatter

from pyg_recmetrics.checks import (
    EdgesLike,
    TensorLike,
    as_edges,
    as_tensor,
    check_boolean,
    check_choice,
    check_device,
    check_edges,
    check_finite_number,
    check_ids,
    check_integers,
    check_labels,
    check_mask,
    check_num_pairs,
    check_pairs,
    check_positive_integer,
    check_shape,
    check_weight,
    check_weighted_edges,
    is_sparse_matrix,
    read_labels,
    shape_of,
)
from pyg_recmetrics.kernels.entries import max_id, spread
from pyg_recmetrics.utils import Memory, warn, written_as

#: How many bits a rank takes beside the user of an edge. All larger ranks are alike.
_BITS_OF_RANK = 32

#: How many results are kept of what metrics found out.
_MAX_KNOWN = 16

#: If so many edges should go to some items by chance, but none does, their numbering is in doubt.
_MANY_BY_CHANCE = 20

#: How to treat truth that is not among the candidates.
Missing: TypeAlias = Literal["count", "drop"]


def read_count(count: int | None, name: str, truth: EdgesLike) -> int:
    """Returns the number of users or items: as given, or as the shape of a matrix says."""
    if count is None:
        shape = shape_of(truth) if is_sparse_matrix(truth) else ()
        if len(shape) != 2:
            raise ValueError(
                f"'{name}' needs to be given for edges: only a matrix, a graph, embeddings and "
                f"scores know it by themselves (got None); write {name}=... in the same call"
            )
        count = shape[0] if name == "num_users" else shape[1]
    return check_positive_integer(count, name)


def read_truth(truth: EdgesLike, num_users: int, num_items: int) -> tuple[Tensor, Tensor | None]:
    """Returns ground-truth edges in local ids, whose numbering is recognised, and their weights.

    Raises:
        TypeError: If edges do not hold numbers.
        ValueError: If ids are wrong, or their numbering is in doubt.
    """
    if is_sparse_matrix(truth):
        edges, weight = check_weighted_edges(truth, None, "data", "weight", num_users, num_items)
    else:
        edges, weight = _to_local(check_edges(truth, "data"), num_users, num_items), None
    check_pairs(edges, "data", num_users, num_items)
    return edges, weight


def read_message_passing(
    edge_index: EdgesLike, num_nodes: int, device: torch.device
) -> tuple[Tensor, Adj, Tensor | None]:
    """Returns message-passing edges, and the same with their weights as models take them."""
    nodes = check_edges(edge_index, "edge_index", num_nodes, num_nodes)
    check_ids(nodes, "edge_index", "node", num_nodes)
    check_device(nodes, "edge_index", device, "data")
    if not (isinstance(edge_index, EdgeIndex) or is_sparse_matrix(edge_index)):
        return nodes, nodes, None
    # A model propagates over a sparse tensor as it is, and may use what else an `EdgeIndex` knows.
    if isinstance(edge_index, EdgeIndex) or is_sparse(edge_index):
        return nodes, edge_index, None
    edges, weight = check_weighted_edges(edge_index, None, "edge_index", "weight", num_nodes)
    if weight is not None and not weight.is_floating_point():  # by which messages are multiplied
        weight = weight.to(torch.get_default_dtype())
    return nodes, edges, weight


def _to_local(edges: Tensor, num_users: int, num_items: int) -> Tensor:
    """Returns edges from users to items in local ids, if their numbering is beyond doubt.

    Local items are numbered from 0 on, those of a homogeneous graph from `num_users` on. Edges in
    neither numbering stay as they are.
    """
    if edges.size(1) == 0:
        return edges
    (_, low), (high_user, high) = torch.stack(edges.aminmax(dim=1)).tolist()
    if high_user < num_users <= low and high < num_items:
        raise ValueError(
            f"'data' needs to be numbered beyond doubt (got items from {low} to {high} for "
            f"{num_users} users and 'num_items' of {num_items}, which may be numbered from 0 or "
            f"from 'num_users' on); write RankingTask(edge_label_index, num_users={num_users}, "
            f"num_items={num_items}, seen=...), where items are numbered from 0 on, after "
            f"edge_label_index[1] -= {num_users} if they are not"
        )
    if max(high_user, high) < num_users + num_items:
        with suppress(ValueError):  # edges of two users or two items are in another numbering
            return to_bipartite(edges, "data", num_users)
    return edges


def to_bipartite(edges: Tensor, name: str, num_users: int) -> Tensor:
    """Edges between users and items, in local ids and from users to items."""
    is_between = (edges < num_users).sum(dim=0) == 1
    if not bool(is_between.all()):
        raise ValueError(
            f"'{name}' needs to connect users, numbered below {num_users}, with items, numbered "
            f"from 'num_users' on (got {int((~is_between).sum())} edges of two users or two items)"
        )
    # Either direction says the same: the user comes first from here on.
    return torch.sort(edges, dim=0).values - edges.new_tensor([[0], [num_users]])


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


def find_relevant(
    edges: Tensor, weight: Tensor | None, threshold: float | None, num_items: int
) -> tuple[Tensor, Tensor | None]:
    """Returns the coalesced edges that are relevant, and their weights."""
    if edges.size(1) == 0:
        raise ValueError("'truth' needs to hold at least one edge (got none)")
    if weight is None:
        return coalesce_edges(edges, num_items), None
    truth, weight_of_truth = coalesce_truth(edges, weight, num_items, threshold)
    if truth.size(1):
        return truth, weight_of_truth
    largest = f"{float(weight.max()):g}"
    if threshold is None:
        raise ValueError(
            f"'weight' needs to be positive for at least one edge (got at most {largest})"
        )
    raise ValueError(
        f"'threshold' needs to be reached by the weight of at least one edge "
        f"(got {threshold:g}, and weights of at most {largest})"
    )


def truth_of(
    truth: Tensor, weight: Tensor | None, users: Tensor, num_users: int
) -> tuple[Tensor, Tensor | None]:
    """Returns the truth of some users, and its weights."""
    return select(truth, weight, index_to_mask(users, num_users)[truth[0]])


def keep_retrievable(
    truth: Tensor,
    weight: Tensor | None,
    excluded: Tensor,
    candidates: Tensor | None,
    num_items: int,
    missing: Missing,
) -> tuple[Tensor, Tensor | None]:
    """Returns the truth that can be retrieved or counts as missed, and warns of all other."""
    in_seen = contains(excluded, truth, num_items)
    if candidates is None and not bool(in_seen.any()):
        return truth, weight
    again = written_as("exclude_seen=False", "--include-seen")
    remedy = (
        f"in a test part, truth that a model learns from is a leak; a training part needs '{again}'"
    )
    reason = "are also in 'seen', or the 'edge_index' of a graph"
    note = f". If users may get an item again, write {again}"
    is_kept = _take_out(torch.ones_like(in_seen), in_seen, reason, remedy, note)
    if missing == "drop":
        is_missing = ~are_candidates(truth, candidates, num_items)
        remedy = "add relevant items to the 'candidates'"
        note = (
            ". A recall of 1 then stands for {:.4f} of all truth; if the candidates come from a "
            "first stage, what it has missed counts with missing='count'"
        )
        is_kept = _take_out(is_kept, is_missing, "are not among the 'candidates'", remedy, note)
    return select(truth, weight, is_kept)


def _take_out(is_kept: Tensor, is_lost: Tensor, reason: str, remedy: str, note: str = "") -> Tensor:
    """Returns a mask of the truth that is left, and warns of what is lost."""
    is_left = is_kept & ~is_lost
    num_kept, num_left = int(is_kept.sum()), int(is_left.sum())
    if num_left < num_kept:
        warn(
            f"ground-truth edges that {reason}: {num_kept - num_left} of {num_kept}. They can "
            f"never be retrieved, and are taken out of the truth{note.format(num_left / num_kept)}"
        )
    if num_left == 0:
        raise ValueError(
            f"'truth' needs to hold an edge that can be retrieved: {remedy} (got only edges that "
            f"{reason})"
        )
    return is_left


def count_candidates(
    candidates: Tensor | None, excluded: Tensor, num_users: int, num_items: int
) -> Tensor:
    """Returns how many items can be recommended to each user, of shape `[num_users]`."""
    if candidates is None:
        return num_items - torch.bincount(excluded[0], minlength=num_users)
    user = excluded[0, are_candidates(excluded, candidates, num_items)]
    num_excluded = torch.bincount(user, minlength=num_users)
    if candidates.dim() == 1:
        return candidates.numel() - num_excluded
    return torch.bincount(candidates[0], minlength=num_users) - num_excluded


def are_candidates(edges: Tensor, candidates: Tensor | None, num_items: int) -> Tensor:
    """Returns whether each edge is one to a candidate of its user, of shape `[num_edges]`."""
    if candidates is None:
        return torch.ones_like(edges[0], dtype=torch.bool)
    if candidates.dim() == 1:
        return torch.isin(edges[1], candidates)
    return contains(candidates, edges, num_items)


def select(truth: Tensor, weight: Tensor | None, is_kept: Tensor) -> tuple[Tensor, Tensor | None]:
    """Returns the truth that is kept, and its weights."""
    return truth[:, is_kept], None if weight is None else weight[is_kept]


def _keys(edges: Tensor, num_items: int) -> Tensor:
    """A number for each pair of a user and an item."""
    return edges[0] * num_items + edges[1]


def _from_keys(keys: Tensor, num_items: int) -> Tensor:
    user = keys.div(num_items, rounding_mode="floor")
    return torch.stack([user, keys - user * num_items])


class TruthByUser:
    """Ground-truth edges, grouped by user.

    Args:
        user (torch.Tensor): The user of every edge, sorted, of shape `[num_edges]`.
        ptr (torch.Tensor): The edges of user `u` are those from `ptr[u]` to `ptr[u + 1]`. Of shape
            `[num_users + 1]`.
    """

    def __init__(self, user: Tensor, ptr: Tensor) -> None:
        self.user, self.ptr = user, ptr
        self._known = Memory(_MAX_KNOWN)

    @classmethod
    def of(cls, user: Tensor, num_users: int) -> "TruthByUser":
        """Groups edges by their users, given in ascending order."""
        return cls(user, index2ptr(user, num_users))

    @property
    def num_users(self) -> int:
        """The number of users, with or without truth."""
        return self.ptr.numel() - 1

    @cached_property
    def degree(self) -> Tensor:
        """The number of relevant items R of every user, of shape `[num_users]`."""
        return self.ptr.diff()

    @cached_property
    def has_none(self) -> Tensor:
        """Whether each user has no truth, of shape `[num_users]`."""
        return self.degree == 0

    @cached_property
    def num_with_truth(self) -> int:
        """The number of users with truth."""
        return self.num_users - int(self.has_none.sum())

    @cached_property
    def position(self) -> Tensor:
        """The 1-based position of every edge among its user's edges, of shape `[num_edges]`."""
        return torch.arange(1, self.user.numel() + 1, device=self.user.device) - self.ptr[self.user]

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """Returns what a metric found out about the truth before, or finds it out.

        Args:
            key (hashable): The name of what it is, and all that it depends on besides the truth.
            make (callable): Finds it out.
        """
        return self._known.once(key, make)


def order_of_edges(user: Tensor, rank: Tensor) -> Tensor:
    """Returns edges sorted by user and rank; equal ranks stay in order: `[num_edges]`.

    Args:
        user (torch.Tensor): The user of every edge, of shape `[num_edges]`.
        rank (torch.Tensor): Their ranks, which may be halves.
    """
    if rank.is_floating_point():
        order: Tensor = lexsort([rank, user])
        return order
    # Both fit into one number, and to sort once takes half the time.
    key = rank.clamp(max=2**_BITS_OF_RANK - 1).bitwise_or_(user << _BITS_OF_RANK)
    if key.device.type == "cpu":  # where NumPy takes half the time again
        return torch.from_numpy(key.numpy().argsort(kind="stable"))
    return key.argsort(stable=True)


def read_person(
    person: Any, num_users: int, device: torch.device, user_ids: Sequence[Hashable] | None
) -> Tensor | None:
    """Returns the number of the person that each user belongs to, of shape `[num_users]`."""
    if person is None:
        return None
    check_labels(person, "person", user_ids)
    return number_persons(person, "user", num_users).to(device)


def number_persons(person: Any, what: str, num_wanted: int) -> Tensor:
    """Returns the number of the person of each user, or of each of something else."""
    number, _ = read_labels(person, "person", what, num_wanted)
    if num_without := int((number < 0).sum()):
        raise ValueError(
            f"'person' needs to name a person for every {what} (got none for {num_without} of them)"
        )
    return number


def read_query(query: TensorLike | None, num_users: int, device: torch.device) -> Tensor | None:
    """Returns the query that each user stands for, of shape `[num_users, num_columns]`."""
    if query is None:
        return None
    rows = check_integers(query, "query")
    if rows.dim() != 2 or rows.size(0) != num_users or rows.size(1) == 0:
        raise ValueError(
            f"'query' needs to have shape [{num_users}, num_columns], a row for every user "
            f"(got {list(rows.shape)})"
        )
    check_device(rows, "query", device, "truth")
    return rows


def read_num_relations(num_relations: int | None, query: Tensor | None) -> int | None:
    """Returns the number of relations, if queries consist of an entity and a relation."""
    if num_relations is None:
        return None
    num_relations = check_positive_integer(num_relations, "num_relations")
    if query is None or query.size(1) != 2:
        raise ValueError(
            f"'num_relations' needs a 'query' of two columns, an entity and a relation "
            f"(got {'none' if query is None else list(query.shape)})"
        )
    check_ids(query[:, 1], "query", "relation", 2 * num_relations)
    return num_relations


def read_seen(
    seen: EdgesLike | None, num_users: int, num_items: int, device: torch.device
) -> Tensor:
    """Returns the coalesced edges to what users have seen."""
    if seen is None:
        return torch.empty(2, 0, dtype=torch.long, device=device)
    edges = check_edges(seen, "seen", num_users, num_items)
    check_pairs(edges, "seen", num_users, num_items)
    check_device(edges, "seen", device, "truth")
    return coalesce_edges(edges, num_items)


def warn_about_numbering(truth: Tensor, seen: Tensor, num_users: int, num_items: int) -> None:
    """Warns if items look as if they were numbered from `num_users` on, or counted with users."""
    num_edges = truth.size(1) + seen.size(1)
    if num_users >= num_items or num_edges * num_users <= _MANY_BY_CHANCE * num_items:
        return
    low, high = torch.cat([truth[1], seen[1]]).aminmax()
    if int(low) >= num_users:
        warn(
            f"none of {num_edges} edges has an item below {num_users}, the number of users. If "
            f"items are numbered from 'num_users' on, as in a homogeneous graph, write "
            f"edges - torch.tensor([[0], [{num_users}]]), and 'num_items' without the users"
        )
    elif int(high) + 1 == num_items - num_users:
        warn(
            f"the last {num_users} of {num_items} items have no edge, as many as there are users. "
            f"If 'num_items' counts all nodes of a homogeneous graph, write num_items={high + 1}"
        )


def read_candidates(
    candidates: EdgesLike | None, num_users: int, num_items: int, device: torch.device
) -> Tensor | None:
    """Returns the sorted items that all users share, or the coalesced edges of each user."""
    if candidates is None:
        return None
    read, _ = as_edges(candidates, "candidates", num_users, num_items, or_items=True)
    check_device(read, "candidates", device, "truth")
    if read.dim() == 1:
        check_ids(read, "candidates", "item", num_items)
        shared: Tensor = torch.unique(read)
        return shared
    check_pairs(read, "candidates", num_users, num_items)
    return coalesce_edges(read, num_items)


def read_missing(missing: Missing | None, candidates: Tensor | None) -> Missing:
    """Returns how to treat truth that is no candidate.

    Candidates that all users share say which part of the catalogue is looked at. A user's own
    candidates are what others have retrieved, so what is not among them has been missed.
    """
    if missing is None:
        return "count" if candidates is not None and candidates.dim() == 2 else "drop"
    check_choice(missing, "missing", get_args(Missing))
    return missing


def read_users(users: TensorLike | None, num_users: int, device: torch.device) -> Tensor:
    """Returns the sorted ids of the users to evaluate."""
    if users is None:
        return torch.arange(num_users, device=device)
    ids = check_integers(users, "users")
    check_device(ids, "users", device, "truth")
    if ids.dim() != 1:
        raise ValueError(f"'users' needs to have shape [num_users] (got {list(ids.shape)})")
    check_ids(ids, "users", "user", num_users)
    evaluated: Tensor = torch.unique(ids)
    return evaluated


def read_weight(weight: Tensor | None, edges: Tensor) -> Tensor | None:
    """Returns the weight of every edge in double precision, of shape `[num_edges]`."""
    return None if weight is None else check_weight(weight, "weight", edges, "truth")


def read_threshold(threshold: float | None, weight: Tensor | None) -> float | None:
    """Returns the smallest weight of a relevant item, in the precision in which weights came."""
    if threshold is None:
        warn_about_zero_ratings(0 if weight is None else count_zero_ratings(weight))
        return None
    if check_finite_number(threshold, "threshold") <= 0:
        raise ValueError(f"'threshold' needs to be positive (got {threshold!r})")
    if weight is None:
        raise ValueError(
            f"'threshold' needs a 'weight' of every edge, or data with an 'edge_label' "
            f"(got {threshold!r} and no weights)"
        )
    if not weight.is_floating_point():
        return threshold
    # A rating of 4.1 reaches a threshold of 4.1, also as 4.0999999 in single precision.
    return float(torch.tensor(threshold, dtype=weight.dtype, device="cpu"))


def check_truth_of(users: Tensor, truth: Tensor) -> None:
    """Raises if none of the users to evaluate has ground truth."""
    if truth.size(1) == 0:
        raise ValueError(
            f"'users' (or the 'eval_mask' of data) needs to hold a user with ground truth "
            f"(got {users.numel()} users, none with ground truth)"
        )


def warn_about_low_ratings(rating: Tensor) -> None:
    """Warns of positive ratings that differ, as the lowest is relevant without a threshold."""
    if rating.numel() == 0:
        return
    low, high = float(rating.min()), float(rating.max())
    if 0 < low < high:
        warn(
            f"all {rating.numel()} ratings count as relevant, from {low:g} to {high:g}. If low "
            f"ones are not relevant, pass the smallest that is as 'threshold'"
        )


def warn_about_zero_ratings(num_zero: int) -> None:
    """Warns if edges are left out of the truth because their rating is zero or less."""
    if num_zero:
        warn(
            f"{num_zero} edges have a rating of zero or less and are ignored; all others count as "
            f"relevant. If some of these are not, pass the smallest that is as 'threshold'",
        )


def digest_of(fields: Mapping[str, object]) -> str:
    """Returns what tells the arguments of a task from those of any other, on whatever device."""
    hashed = hashlib.blake2b(digest_size=16)
    for name, value in sorted(fields.items()):
        said = f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else repr(value)
        hashed.update(f"{name} {len(said)} {said} ".encode(errors="backslashreplace"))
        if isinstance(value, Tensor):
            hashed.update(value.cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()


# Queries of several columns, triples and events, which are numbered.

#: Queries: a tuple of columns of shape `[num_edges]`, or rows of shape `[num_edges, num_columns]`.
QueriesLike: TypeAlias = TensorLike | Sequence[TensorLike]


def read_queries(
    query: QueriesLike, item: TensorLike, num_items: int, seen: Any, candidates: Any, person: Any
) -> dict[str, Any]:
    """Numbers queries in lexicographic order, each of them once.

    Returns:
        The arguments of a :class:`RankingTask`. Its seen edges may be truth, too.
    """
    num_items = check_positive_integer(num_items, "num_items")
    given = _read_rows(query, "query")
    items = _read_items(item, "item", num_items, given, "query")
    if items.numel() == 0:
        raise ValueError("'query' needs to hold at least one query (got none)")
    number = _number(given)
    rows = given.new_empty(max_id(number) + 1, given.size(1))
    rows[number] = given
    check_num_pairs("query", rows.size(0), num_items)
    if isinstance(candidates, tuple):
        candidates = _edges_of_queries(candidates, "candidates", rows, num_items)
    elif candidates is not None and (shared := as_tensor(candidates, "candidates")).dim() != 1:
        raise ValueError(
            f"'candidates' needs to have shape [num_candidates] for all queries, or to be a pair "
            f"of the columns of queries and of an item for each (got {list(shared.shape)})"
        )
    return {
        "truth": torch.stack([number, items]),
        "num_users": rows.size(0),
        "num_items": num_items,
        "seen": None if seen is None else _edges_of_queries(seen, "seen", rows, num_items),
        "candidates": candidates,
        "person": None if person is None else _person_of_queries(person, number, rows),
        "query": rows,
    }


def _edges_of_queries(part: Any, name: str, rows: Tensor, num_items: int) -> Tensor:
    """Reads items of any queries, and returns the edges of those that are asked.

    Args:
        part (tuple): The columns of queries, and an item for each.
        name (str): The name of the argument.
        rows (torch.Tensor): The queries that are asked, in order.
        num_items (int): The number of items.
    """
    if not isinstance(part, tuple | list) or len(part) != 2:
        raise ValueError(
            f"'{name}' needs to be a pair of the columns of queries, as in 'query', and of an "
            f"item for each (got {type(part).__name__})"
        )
    query, item = part
    given = _read_rows(query, name)
    if given.size(1) != rows.size(1):
        raise ValueError(
            f"'{name}' needs to hold queries of as many columns as 'query', {rows.size(1)} "
            f"(got {given.size(1)})"
        )
    items = _read_items(item, name, num_items, given, name)
    check_device(items, name, rows.device, "query")
    # The queries that are asked are in order, and so are their numbers.
    asked, number = _number(torch.cat([rows, given])).tensor_split([rows.size(0)])
    is_asked = torch.isin(number, asked)
    return torch.stack([torch.searchsorted(asked, number[is_asked]), items[is_asked]])


def _person_of_queries(person: Any, query: Tensor, rows: Tensor) -> Tensor:
    """Returns the person of each query, which is that of all of its edges."""
    label = number_persons(person, "edge", query.numel()).to(query.device)
    of_query = label.new_zeros(rows.size(0)).scatter_(0, query, label)
    differing = query[label != of_query[query]]
    if differing.numel():
        raise ValueError(
            f"'person' needs to be the same for all edges of a query (got several for the query "
            f"{tuple(rows[differing[0]].tolist())})"
        )
    return of_query


def read_relevant(
    edges: Tensor, weight: TensorLike | None, threshold: float | None, num_items: int
) -> Tensor:
    """Returns the edges that are truth, coalesced. The others have too little weight."""
    raw = None if weight is None else as_tensor(weight, "weight")
    in_double = read_weight(raw, edges)
    if threshold is not None:
        threshold = read_threshold(threshold, raw)
    return coalesce_truth(edges, in_double, num_items, threshold)[0]


def _number(rows: Tensor) -> Tensor:
    """Returns the number of each row among distinct rows, in their lexicographic order."""
    number = torch.zeros_like(rows[:, 0])
    for column in rows.unbind(1):  # `unique(dim=0)` takes ten times as long
        values, value = column.unique(return_inverse=True)
        number = (number * values.numel() + value).unique(return_inverse=True)[1]
    return number


def _read_rows(value: Any, name: str) -> Tensor:
    """Returns queries of shape `[num_edges, num_columns]`, which may come as their columns."""
    if isinstance(value, tuple | list):
        given = [check_integers(column, name) for column in value]
        columns = given
        # A list of lists may be rows as well as columns.
        is_plain = columns != [] and not any(isinstance(column, tuple | list) for column in value)
    else:
        given = [check_integers(value, name)]
        columns = list(given[0].unbind(1)) if given[0].dim() == 2 else given
        is_plain = len(columns) > 0
    if not is_plain or any(column.shape != (columns[0].numel(),) for column in columns):
        raise ValueError(
            f"'{name}' needs to be a tuple of columns, tensors of shape [num_edges], or a tensor "
            f"of shape [num_edges, num_columns] (got {[list(part.shape) for part in given]})"
        )
    for column in columns:
        check_device(column, name, columns[0].device, f"{name}[0]")
        _check_not_negative(column, name)
    return torch.stack(columns, dim=1)


def _check_not_negative(column: Tensor, name: str) -> None:
    if column.numel() and int(column.min()) < 0:
        raise ValueError(f"'{name}' needs to hold no negative numbers (got {int(column.min())})")


def _read_items(value: TensorLike, name: str, num_items: int, rows: Tensor, owner: str) -> Tensor:
    """Returns the item of each edge."""
    items = check_integers(value, name)
    check_shape(items, name, (rows.size(0),), "an item for each query")
    check_device(items, name, rows.device, owner)
    check_ids(items, name, "item", num_items)
    return items


def read_events(
    src: TensorLike,
    dst: TensorLike,
    t: TensorLike,
    is_test: TensorLike,
    num_items: int,
    repeats: bool,
) -> tuple[Tensor, int, dict[str, Any]]:
    """Reads events in any order, as queries of a source and the number of a moment.

    Memory is that of the edges that are left out.

    Returns:
        All moments in their order, how many of the events that are asked for repeat an earlier
        one, and the arguments of :meth:`RankingTask.from_queries`.

    Raises:
        TypeError: If `repeats` is not a boolean, or events do not hold numbers.
        ValueError: If shapes, dtypes or devices do not fit, ids are out of range, or there is no
            event to rank.
    """
    num_items = check_positive_integer(num_items, "num_items")
    source, item = check_integers(src, "src"), check_integers(dst, "dst")
    time = check_integers(t, "t")
    for column, name in ((source, "src"), (item, "dst"), (time, "t")):
        check_shape(column, name, (source.numel(),), "a number for every event of 'src'")
        check_device(column, name, source.device, "src")
    _check_not_negative(source, "src")
    check_ids(item, "dst", "item", num_items)
    is_asked = check_mask(is_test, "is_test", source.shape)
    check_device(is_asked, "is_test", source.device, "src")
    sources, source = source.unique(return_inverse=True)
    moments, moment = time.unique(return_inverse=True)
    check_num_pairs("src", sources.numel(), num_items)
    # What a source is connected to is seen from the first time on.
    (source_of_pair, item_of_pair), pair = number_pairs(torch.stack([source, item]), num_items)
    first = scatter(moment, pair, dim_size=source_of_pair.numel(), reduce="min")
    if not check_boolean(repeats, "repeats"):
        is_asked = is_asked & (first[pair] == moment)
    if not bool(is_asked.any()):
        which = "" if repeats else " that is the first of its source and destination"
        raise ValueError(f"'is_test' needs to be true for an event{which} (got none)")
    met, order = (source_of_pair * moments.numel() + first).sort()
    asked = (source * moments.numel() + moment)[is_asked].unique()
    asked_source, asked_moment = asked // moments.numel(), asked % moments.numel()
    start = torch.searchsorted(met, asked - asked_moment)
    end = torch.searchsorted(met, asked)
    query, place = spread(start, end - start)
    seen = (sources[asked_source[query]], asked_moment[query]), item_of_pair[order[place]]
    num_repeated = int((is_asked & (first[pair] < moment)).sum())
    person = sources[source[is_asked]]
    read = {
        "query": (person, moment[is_asked]),
        "item": item[is_asked],
        "num_items": num_items,
        "seen": seen,
        "person": person,
    }
    return moments, num_repeated, read


#: Triples `(head, relation, tail)`, of shape `[3, num_triples]`.
TriplesLike: TypeAlias = TensorLike | Sequence[TensorLike]


def read_triples(
    test: TriplesLike, known: Any, num_entities: int, num_relations: int | None
) -> tuple[int, dict[str, Any]]:
    """Reads the number of relations, and the arguments of :meth:`RankingTask.from_queries`.

    Returns:
        The number of relations, and the arguments. Relation `num_relations + r` asks for the head
        of a triple with relation `r`.
    """
    num_entities = check_positive_integer(num_entities, "num_entities")
    parts = known if isinstance(known, tuple | list) else [] if known is None else [known]
    asked = _read(test, "test", num_entities)
    others = [_read(part, "known", num_entities) for part in parts]
    if num_relations is None:
        num_relations = 1 + max_id(*(triples[1] for triples in (asked, *others)))
    num_relations = check_positive_integer(num_relations, "num_relations")
    check_ids(asked[1], "test", "relation", num_relations)
    for triples in others:
        check_ids(triples[1], "known", "relation", num_relations)
        check_device(triples, "known", asked.device, "test")
    if not others:
        warn(
            "'known' is not given, so triples that the model was trained on compete with those of "
            "'test'. For filtered ranks, pass the parts of the split, as in known=[train, valid]"
        )
    query, item = _questions(asked, num_relations)
    seen = _questions(torch.cat(others, dim=1), num_relations) if others else None
    return num_relations, {"query": query, "item": item, "num_items": num_entities, "seen": seen}


def _read(triples: TriplesLike, name: str, num_entities: int) -> Tensor:
    """Returns triples of shape `[3, num_triples]`."""
    read = check_integers(triples, name)
    if read.dim() != 2 or read.size(0) != 3:
        raise ValueError(
            f"'{name}' needs to hold heads, relations and tails in shape [3, num_triples] "
            f"(got {list(read.shape)})"
        )
    for entity in (read[0], read[2]):
        check_ids(entity, name, "entity", num_entities)
    return read


def _questions(triples: Tensor, num_relations: int) -> tuple[Tensor, Tensor]:
    """Returns the entity and the relation of each query as rows, and the entity it asks for."""
    head, relation, tail = triples
    heads = torch.stack([tail, relation + num_relations, head])
    both = torch.cat([triples, heads], dim=1)
    return both[:2].t(), both[2]
