"""Reads queries of several columns, triples and events, and numbers them."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from pyg_recmetrics.checks import (
    TensorLike,
    as_tensor,
    check_boolean,
    check_device,
    check_ids,
    check_integers,
    check_mask,
    check_num_pairs,
    check_positive_integer,
    check_shape,
)
from pyg_recmetrics.kernels.entries import max_id, spread
from pyg_recmetrics.task.edges import (
    coalesce_truth,
    number_pairs,
    number_persons,
    read_threshold,
    read_weight,
)
from pyg_recmetrics.utils import warn

#: Queries: a tuple of columns of shape `[num_edges]`, or rows of shape `[num_edges, num_columns]`.
QueriesLike: TypeAlias = TensorLike | Sequence[TensorLike]


class Queries:
    """Queries that are asked, each of them once, and the items that are relevant to them.

    Args:
        query (tuple of torch.Tensor): The columns of the query of each edge.
        item (torch.Tensor): The item of each edge.
        num_items (int): The number of items.

    Attributes:
        rows (torch.Tensor): The queries in lexicographic order, of shape `[num_queries,
            num_columns]`.
        truth (torch.Tensor): The number of the query of each edge, over its item: `[2, num_edges]`.
    """

    def __init__(self, query: Any, item: TensorLike, num_items: int) -> None:
        rows = _read_rows(query, "query")
        items = _read_items(item, "item", num_items, rows, "query")
        if items.numel() == 0:
            raise ValueError("'query' needs to hold at least one query (got none)")
        self.num_items = num_items
        number = _number(rows)
        self.rows = rows.new_empty(max_id(number) + 1, rows.size(1))
        self.rows[number] = rows
        self.truth = torch.stack([number, items])
        check_num_pairs("query", self.rows.size(0), num_items)

    def edges(self, part: Any, name: str) -> Tensor:
        """Reads items of any queries, and returns the edges of those that are asked.

        Args:
            part (tuple): The columns of queries, and an item for each.
            name (str): The name of the argument.
        """
        if not isinstance(part, tuple | list) or len(part) != 2:
            raise ValueError(
                f"'{name}' needs to be a pair of the columns of queries, as in 'query', and of an "
                f"item for each (got {_shape_in_words(part)})"
            )
        rows = _read_rows(part[0], name)
        if rows.size(1) != self.rows.size(1):
            raise ValueError(
                f"'{name}' needs to hold queries of as many columns as 'query', "
                f"{self.rows.size(1)} (got {rows.size(1)})"
            )
        items = _read_items(part[1], name, self.num_items, rows, name)
        check_device(items, name, self.rows.device, "query")
        number = _number(torch.cat([self.rows, rows]))
        own, others = number.split([self.rows.size(0), rows.size(0)])
        asked = own.new_full((max_id(number) + 1,), -1)
        asked[own] = torch.arange(own.numel(), device=own.device)
        edges = torch.stack([asked[others], items])
        return edges[:, edges[0] >= 0]

    def candidates(self, candidates: Any) -> TensorLike | None:
        """Returns the items that all queries share, or the edges to those of each query."""
        if candidates is None:
            return None
        if isinstance(candidates, tuple):
            return self.edges(candidates, "candidates")
        shared = as_tensor(candidates, "candidates")
        if shared.dim() != 1:
            raise ValueError(
                f"'candidates' needs to have shape [num_candidates] for all queries, or to be a "
                f"pair of the columns of queries and of an item for each "
                f"(got {list(shared.shape)})"
            )
        return shared

    def relevant(self, weight: TensorLike | None, threshold: float | None) -> Tensor:
        """Returns the edges that are truth, coalesced. The others have too little weight."""
        raw = None if weight is None else as_tensor(weight, "weight")
        in_double = read_weight(raw, self.truth)
        if threshold is not None:
            threshold = read_threshold(threshold, raw)
        return coalesce_truth(self.truth, in_double, self.num_items, threshold)[0]

    def person(self, person: Any) -> Tensor | None:
        """Returns the person of each query, which is that of all of its edges."""
        if person is None:
            return None
        label = number_persons(person, "edge", self.truth.size(1))
        label, query = label.to(self.rows.device), self.truth[0]
        of_query = label.new_zeros(self.rows.size(0)).scatter_(0, query, label)
        if len(differing := (label != of_query[query]).nonzero()):
            named = tuple(self.rows[query[differing[0, 0]]].tolist())
            raise ValueError(
                f"'person' needs to be the same for all edges of a query (got several for the "
                f"query {named})"
            )
        return of_query


def _number(rows: Tensor) -> Tensor:
    """Returns the number of each row among distinct rows, in their lexicographic order."""
    number = torch.zeros_like(rows[:, 0])
    for column in rows.unbind(1):  # `unique(dim=0)` takes ten times as long
        values, value = column.unique(return_inverse=True)
        number = (number * values.numel() + value).unique(return_inverse=True)[1]
    return number


def _read_rows(value: Any, name: str) -> Tensor:
    """Returns queries of shape `[num_edges, num_columns]`, which may come as their columns."""
    columns = value if isinstance(value, tuple | list) else [value]
    parts = [check_integers(column, name) for column in columns]
    shapes = [list(part.shape) for part in parts]
    is_matrix = columns is not value and parts[0].dim() == 2 and parts[0].size(1) > 0
    are_columns = len(set(map(tuple, shapes))) == 1 and len(shapes[0]) == 1
    if not (is_matrix or are_columns) or any(
        isinstance(column, list | tuple) for column in columns
    ):
        raise ValueError(
            f"'{name}' needs to be a tuple of columns, tensors of shape [num_edges], or a tensor "
            f"of shape [num_edges, num_columns] (got {shapes})"
        )
    for part in parts:
        check_device(part, name, parts[0].device, f"{name}[0]")
        _check_not_negative(part, name)
    return parts[0] if is_matrix else torch.stack(parts, dim=1)


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


def _shape_in_words(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"shape {list(shape)}"


def read_events(
    src: TensorLike,
    dst: TensorLike,
    t: TensorLike,
    is_test: TensorLike,
    num_items: int,
    repeats: bool,
) -> tuple[Tensor, dict[str, Any]]:
    """Reads events in any order, as queries of a source and the number of a moment.

    Memory is that of the edges that are left out.

    Returns:
        All moments in their order, and the arguments of :meth:`RankingTask.from_queries`.

    Raises:
        TypeError: If `repeats` is not a boolean, or events do not hold numbers.
        ValueError: If shapes, dtypes or devices do not fit, ids are out of range, or there is no
            event to rank.
    """
    num_items = check_positive_integer(num_items, "num_items")
    source, item, time = _read_events(src, dst, t, num_items)
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
        raise ValueError(
            "'is_test' needs to be true for an event"
            + ("" if repeats else " that is the first of its source and destination")
            + " (got none)"
        )
    met, order = (source_of_pair * moments.numel() + first).sort()
    asked = torch.stack([source[is_asked], moment[is_asked]])
    asked_source, asked_moment = asked.unique(dim=1)
    start_of_source = asked_source * moments.numel()
    start = torch.searchsorted(met, start_of_source)
    end = torch.searchsorted(met, start_of_source + asked_moment)
    query, place = spread(start, end - start)
    seen = (sources[asked_source[query]], asked_moment[query]), item_of_pair[order[place]]
    return moments, {
        "query": (sources[asked[0]], asked[1]),
        "item": item[is_asked],
        "num_items": num_items,
        "seen": seen,
        "person": sources[asked[0]],
    }


def _read_events(
    src: TensorLike, dst: TensorLike, t: TensorLike, num_items: int
) -> tuple[Tensor, Tensor, Tensor]:
    named = (("src", src), ("dst", dst), ("t", t))
    source, item, time = columns = [check_integers(value, name) for name, value in named]
    for (name, _), column in zip(named, columns, strict=True):
        check_shape(column, name, (source.numel(),), "a number for every event of 'src'")
        check_device(column, name, source.device, "src")
    _check_not_negative(source, "src")
    check_ids(item, "dst", "item", num_items)
    return source, item, time


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
