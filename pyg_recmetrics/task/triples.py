"""Reads triples of a knowledge graph as queries for tails and for heads."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_choice,
    check_device,
    check_ids,
    check_integers,
    check_positive_integer,
)
from pyg_recmetrics.inputs import TensorLike, as_tensor
from pyg_recmetrics.kernels.entries import max_id, spread
from pyg_recmetrics.messages import warn

#: Triples `(head, relation, tail)`, of shape `[3, num_triples]`.
TriplesLike: TypeAlias = TensorLike | Sequence[TensorLike]

#: Which of the two entities of a triple is asked for.
Directions: TypeAlias = Literal["both", "tail", "head"]


class Edges(NamedTuple):
    """Queries with an item each.

    Attributes:
        query: The entity and the relation of each query. Where the head is asked for, the number of
            relations is added to the relation.
        item: The entity that is asked for.
    """

    query: tuple[Tensor, Tensor]
    item: Tensor


class Triples(NamedTuple):
    """What a task of triples is made of.

    Attributes:
        test: The queries that are asked, with their answers.
        known: All answers that are known from elsewhere; `None` if there are none.
        candidates: The items of each query, or those of all; `None` for all items.
        num_relations: The number of relations.
    """

    test: Edges
    known: Edges | None
    candidates: Edges | TensorLike | None
    num_relations: int


def read_triples(
    test: TriplesLike,
    known: Any,
    candidates: TensorLike | None,
    *,
    num_entities: int,
    num_relations: int | None,
    directions: Directions,
) -> Triples:
    """Reads triples, and warns if none of the training are known.

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
    edges = _edges(asked, num_relations, directions)
    return Triples(
        test=edges,
        known=_edges(torch.cat(others, dim=1), num_relations, directions) if others else None,
        candidates=_read_candidates(candidates, edges, num_entities, num_relations, directions),
        num_relations=num_relations,
    )


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


def _edges(triples: Tensor, num_relations: int, directions: Directions) -> Edges:
    head, relation, tail = triples
    tails, heads = Edges((head, relation), tail), Edges((tail, relation + num_relations), head)
    if directions == "both":
        query = tuple(torch.cat(columns) for columns in zip(tails.query, heads.query, strict=True))
        return Edges((query[0], query[1]), torch.cat([tails.item, heads.item]))
    return tails if directions == "tail" else heads


def _read_candidates(
    candidates: TensorLike | None,
    edges: Edges,
    num_entities: int,
    num_relations: int,
    directions: Directions,
) -> Edges | TensorLike | None:
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
    check_device(read, "candidates", edges.item.device, "test")
    return _of_each_query(read, edges, num_relations)


def _of_each_query(is_candidate: Tensor, edges: Edges, num_relations: int) -> Edges:
    """Returns all queries, each with the entities that its relation allows."""
    entity, relation = torch.stack(edges.query).unique(dim=1)
    row = relation if is_candidate.size(0) > num_relations else relation % num_relations
    degree = is_candidate.sum(dim=1)
    item = is_candidate.nonzero()[:, 1]
    query, index = spread((degree.cumsum(0) - degree)[row], degree[row])
    return Edges((entity[query], relation[query]), item[index])
