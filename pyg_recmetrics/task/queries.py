"""Reads queries of several columns, triples and events, and numbers them."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from pyg_recmetrics.checks import (
    check_boolean,
    check_choice,
    check_device,
    check_ids,
    check_integers,
    check_mask,
    check_num_pairs,
    check_positive_integer,
)
from pyg_recmetrics.inputs import TensorLike, as_integer, as_tensor
from pyg_recmetrics.kernels.entries import max_id, spread
from pyg_recmetrics.messages import warn
from pyg_recmetrics.task import preparation
from pyg_recmetrics.task.edges import coalesce_edges, coalesce_truth, contains, number_pairs

#: Queries: the columns, as tensors of shape `[num_edges]`, or rows `[num_edges, num_columns]`.
QueriesLike: TypeAlias = TensorLike | Sequence[TensorLike]


class RowNumbers:
    """Numbers distinct rows in their lexicographic order.

    Values are numbered column by column, so they may be of any size, such as times in nanoseconds.

    Args:
        columns (list of torch.Tensor): The columns of some rows, integers of shape `[num_rows]`.

    Attributes:
        number (torch.Tensor): The number of each row, of shape `[num_rows]`.
        rows (torch.Tensor): The distinct rows, of shape `[num_distinct, num_columns]`.
    """

    def __init__(self, columns: list[Tensor]) -> None:
        self.number = _number(columns)
        index = torch.arange(self.number.numel(), device=self.number.device)
        #: A row that has each number.
        self.first = index.new_empty(max_id(self.number) + 1).scatter_(0, self.number, index)
        self.rows = torch.stack([column[self.first] for column in columns], dim=1)

    def find(self, columns: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Returns the rows of others that are among the numbered ones, and their numbers."""
        both = _number(list(map(torch.cat, zip(self.rows.unbind(1), columns, strict=True))))
        own, others = both.split([self.rows.size(0), columns[0].numel()])
        number = torch.full((max_id(both) + 1,), -1, device=both.device)
        number[own] = torch.arange(own.numel(), device=both.device)
        found = (number[others] >= 0).nonzero().flatten()
        return found, number[others[found]]


def _number(columns: list[Tensor]) -> Tensor:
    """Returns the number of each row among distinct rows."""
    number = torch.zeros_like(columns[0])
    for column in columns:
        values, value = column.unique(return_inverse=True)
        number = (number * values.numel() + value).unique(return_inverse=True)[1]
    return number


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
        columns = _read_columns(query, "query")
        items = _read_items(item, "item", num_items, columns, "query")
        if items.numel() == 0:
            raise ValueError("'query' needs to hold at least one query (got none)")
        self.num_items, self._numbers = num_items, RowNumbers(columns)
        self.rows = self._numbers.rows
        self.truth = torch.stack([self._numbers.number, items])
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
        columns = _read_columns(part[0], name)
        if len(columns) != self.rows.size(1):
            raise ValueError(
                f"'{name}' needs to hold queries of as many columns as 'query', "
                f"{self.rows.size(1)} (got {len(columns)})"
            )
        items = _read_items(part[1], name, self.num_items, columns, name)
        check_device(items, name, self.rows.device, "query")
        found, number = self._numbers.find(columns)
        return torch.stack([number, items[found]])

    def candidates(self, candidates: Any) -> TensorLike | None:
        """Returns the items that all queries share, or the edges to those of each query."""
        if candidates is None:
            return None
        if _are_columns(candidates):
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
        in_double = preparation.read_weight(raw, self.truth)
        if threshold is not None:
            threshold = preparation.read_threshold(threshold, raw)
        return coalesce_truth(self.truth, in_double, self.num_items, threshold)[0]

    def person(self, person: Any) -> Tensor | None:
        """Returns the person of each query: a column of it, or the label of all of its edges."""
        if person is None:
            return None
        if (column := as_integer(person)) is not None:
            if not 0 <= column < self.rows.size(1):
                raise ValueError(
                    f"'person' needs to be a column of 'query', from 0 to {self.rows.size(1) - 1}, "
                    f"or to hold labels (got {column})"
                )
            return self.rows[:, column]
        label = preparation.number_persons(person, "edge", self.truth.size(1))
        label = label.to(self.rows.device)
        of_query, query = label[self._numbers.first], self.truth[0]
        if len(differing := (label != of_query[query]).nonzero()):
            named = tuple(self.rows[query[differing[0, 0]]].tolist())
            raise ValueError(
                f"'person' needs to be the same for all edges of a query (got several for the "
                f"query {named})"
            )
        return of_query


def without(edges: Tensor, truth: Tensor, num_items: int) -> Tensor:
    """Returns the edges that are no truth, as the filtered setting has it."""
    return edges[:, ~contains(coalesce_edges(truth, num_items), edges, num_items)]


def _are_columns(value: Any) -> bool:
    """Returns whether a sequence holds columns, and not numbers or rows, as nested lists do."""
    if not isinstance(value, tuple | list) or len(value) == 0:
        return False
    is_tuple_of_lists = isinstance(value, tuple) and isinstance(value[0], tuple | list)
    return is_tuple_of_lists or getattr(value[0], "ndim", 0) > 0


def _read_columns(value: Any, name: str) -> list[Tensor]:
    """Returns the columns of queries, which may come as columns, or as rows of a matrix."""
    if _are_columns(value):
        columns = [check_integers(column, name) for column in value]
    else:
        matrix = check_integers(value, name)
        columns = list(matrix.unbind(1)) if matrix.dim() == 2 else [matrix]
    shapes = [list(column.shape) for column in columns]
    if not columns or any(len(shape) != 1 or shape != shapes[0] for shape in shapes):
        raise ValueError(
            f"'{name}' needs to hold columns of shape [num_edges], or to have shape [num_edges, "
            f"num_columns] (got {shapes if _are_columns(value) else _shape_in_words(value)})"
        )
    for column in columns:
        check_device(column, name, columns[0].device, f"{name}[0]")
        _check_not_negative(column, name)
    return columns


def _check_not_negative(column: Tensor, name: str) -> None:
    if column.numel() and int(column.min()) < 0:
        raise ValueError(f"'{name}' needs to hold no negative numbers (got {int(column.min())})")


def _read_items(
    value: TensorLike, name: str, num_items: int, columns: list[Tensor], owner: str
) -> Tensor:
    """Returns the item of each edge."""
    items, num_edges = check_integers(value, name), columns[0].numel()
    if list(items.shape) != [num_edges]:
        is_transposed = len(items.shape) == 1 and len(columns) == items.numel()
        raise ValueError(
            f"'{name}' needs to hold an item for each of the {num_edges} queries "
            f"(got shape {list(items.shape)}"
            f"{'; transpose queries in a matrix' if is_transposed else ''})"
        )
    check_device(items, name, columns[0].device, owner)
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
        "person": 0,
    }


def _read_events(
    src: TensorLike, dst: TensorLike, t: TensorLike, num_items: int
) -> tuple[Tensor, Tensor, Tensor]:
    named = (("src", src), ("dst", dst), ("t", t))
    source, item, time = columns = [check_integers(value, name) for name, value in named]
    for (name, _), column in zip(named, columns, strict=True):
        if column.dim() != 1 or column.numel() != source.numel():
            raise ValueError(
                f"'{name}' needs to have shape [num_events], as 'src' has it "
                f"(got {list(column.shape)})"
            )
        check_device(column, name, source.device, "src")
    _check_not_negative(source, "src")
    check_ids(item, "dst", "item", num_items)
    return source, item, time


#: Triples `(head, relation, tail)`, of shape `[3, num_triples]`.
TriplesLike: TypeAlias = TensorLike | Sequence[TensorLike]

#: Which of the two entities of a triple is asked for.
Directions: TypeAlias = Literal["both", "tail", "head"]


def read_triples(
    test: TriplesLike,
    known: Any,
    candidates: TensorLike | None,
    num_entities: int,
    num_relations: int | None,
    directions: Directions,
) -> tuple[int, dict[str, Any]]:
    """Reads the number of relations, and the arguments of :meth:`RankingTask.from_queries`.

    A warning is given if no triples of the training are known.

    Raises:
        TypeError: If triples do not hold numbers.
        ValueError: If ids are out of range, or shapes, dtypes or devices do not fit.
    """
    num_entities = check_positive_integer(num_entities, "num_entities")
    check_choice(directions, "directions", get_args(Directions))
    asked = _read(test, "test", num_entities)
    others = [_read(part, "known", num_entities) for part in _parts(known)]
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
    asked = _answers(asked, num_relations, directions)
    seen = _answers(torch.cat(others, dim=1), num_relations, directions) if others else None
    query, item = _pair(asked)
    return num_relations, {
        "query": query,
        "item": item,
        "num_items": num_entities,
        "seen": None if seen is None else _pair(seen),
        "candidates": _read_candidates(candidates, asked, num_entities, num_relations, directions),
    }


def _parts(known: Any) -> list[Any]:
    """Returns the parts of a split: none, one or several."""
    if known is None:
        return []
    is_one = not isinstance(known, tuple | list) or (len(known) == 3 and _num_dims(known) == 2)
    return [known] if is_one else list(known)


def _num_dims(value: Any) -> int:
    if isinstance(value, tuple | list):
        return 1 + (_num_dims(value[0]) if value else 0)
    return int(getattr(value, "ndim", 0))


def _read(triples: TriplesLike, name: str, num_entities: int) -> Tensor:
    """Returns triples of shape `[3, num_triples]`."""
    read = check_integers(triples, name)
    if read.dim() != 2 or read.size(0) != 3:
        is_transposed = read.dim() == 2 and read.size(1) == 3
        raise ValueError(
            f"'{name}' needs to hold heads, relations and tails in shape [3, num_triples] "
            f"(got {list(read.shape)}{'; transpose it' if is_transposed else ''})"
        )
    for entity in (read[0], read[2]):
        check_ids(entity, name, "entity", num_entities)
    return read


def _answers(triples: Tensor, num_relations: int, directions: Directions) -> Tensor:
    """Returns the entity and the relation of each query, over the entity that is asked for.

    Where the head is asked for, the number of relations is added to the relation.
    """
    head, relation, tail = triples
    heads = torch.stack([tail, relation + num_relations, head])
    if directions == "both":
        return torch.cat([triples, heads], dim=1)
    return triples if directions == "tail" else heads


def _pair(answers: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the rows of queries, and the item of each."""
    return answers[:2].t(), answers[2]


def _read_candidates(
    candidates: TensorLike | None,
    asked: Tensor,
    num_entities: int,
    num_relations: int,
    directions: Directions,
) -> TensorLike | tuple[Tensor, Tensor] | None:
    """Returns the entities that all queries share, or those that fit the relation of each."""
    if candidates is None:
        return None
    read = as_tensor(candidates, "candidates")
    if read.dim() == 1 and read.dtype != torch.bool:
        return read
    allowed = [2 * num_relations] if directions == "both" else [num_relations, 2 * num_relations]
    shapes = [(size, num_entities) for size in allowed]
    if read.dtype != torch.bool or tuple(read.shape) not in shapes:
        raise ValueError(
            f"'candidates' needs to hold entity ids of shape [num_candidates], or booleans of "
            f"shape {' or '.join(str(list(shape)) for shape in shapes)} for directions="
            f"{directions!r}: which entities are tails of each relation, and then which are heads "
            f"(got {read.dtype} of shape {list(read.shape)})"
        )
    check_device(read, "candidates", asked.device, "test")
    queries = asked[:2].unique(dim=1)
    row = queries[1] if read.size(0) > num_relations else queries[1] % num_relations
    degree = read.sum(dim=1)
    query, index = spread((degree.cumsum(0) - degree)[row], degree[row])
    return queries[:, query].t(), read.nonzero()[index, 1]
