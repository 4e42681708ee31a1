"""Run and qrels files, as trec_eval and most tools of information retrieval read them.

A run has lines `user Q0 item rank score tag`, qrels have lines `user 0 item relevance`. The ids in
the files are strings. They are numbered, and the names are kept.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.extras import requires_extra

#: A user, an item, and the score or the relevance that a line gives them.
Line: TypeAlias = tuple[str, str, float]

#: A user and its list of items.
NamedList: TypeAlias = tuple[str, list[str]]

#: A user, an item, and its relevance.
Judgement: TypeAlias = tuple[str, str, int]

#: The names of users or items, if they are not just numbers.
Names: TypeAlias = tuple[str, ...] | None


class TrecRanking(NamedTuple):
    """What a run and its qrels hold.

    Attributes:
        lists: The items of every user, best first, of shape `[num_users, K]`, padded with `-1`.
        edges: The judged edges of shape `[2, num_edges]`.
        relevance: The relevance of every edge, of shape `[num_edges]`.
        is_binary: Whether all relevant items have a relevance of one.
        user_ids: The names of the users.
        item_ids: The names of the items.
    """

    lists: Tensor
    edges: Tensor
    relevance: Tensor
    is_binary: bool
    user_ids: tuple[str, ...]
    item_ids: tuple[str, ...]


def read(run: str | Path, qrels: str | Path) -> TrecRanking:
    """Reads a run and its qrels.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If both files are empty, a line does not have its form, holds a number that is
            not finite, or repeats an item; the error names file and line.
    """
    scored = list(_read(Path(run), "user Q0 item rank score tag", 2, 4))
    judged = list(_read(Path(qrels), "user 0 item relevance", 2, 3))
    if not scored and not judged:
        raise ValueError(f"'run' and 'qrels' need to hold lines (got none in {run}, {qrels})")
    users = _number({user for user, _, _ in (*scored, *judged)})
    items = _number({item for _, item, _ in (*scored, *judged)})
    lists: list[list[int]] = [[] for _ in users]
    for user, item, _ in sorted(scored, key=lambda line: -line[2]):
        lists[users[user]].append(items[item])
    rows = [torch.tensor(row, dtype=torch.long) for row in lists]
    edges = [(users[user], items[item]) for user, item, _ in judged]
    relevance = torch.tensor([value for _, _, value in judged], dtype=torch.float64)
    return TrecRanking(
        lists=torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1),
        edges=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t(),
        relevance=relevance,
        is_binary=bool((relevance[relevance > 0] == 1).all()),
        user_ids=tuple(users),
        item_ids=tuple(items),
    )


def write_run(path: str | Path, lists: Iterable[NamedList]) -> None:
    """Writes ranked lists, with scores that fall by one with each rank."""
    with Path(path).open("w") as file:
        for user, items in lists:
            file.writelines(
                f"{user} Q0 {item} {rank} {len(items) - rank + 1} pyg_recmetrics\n"
                for rank, item in enumerate(items, start=1)
            )


def write_qrels(path: str | Path, judged: Iterable[Judgement]) -> None:
    """Writes relevant items."""
    with Path(path).open("w") as file:
        file.writelines(f"{user} 0 {item} {relevance}\n" for user, item, relevance in judged)


def to_ranx(judged: Iterable[Judgement], lists: Iterable[NamedList]) -> tuple[Any, Any]:
    """Returns a `(ranx.Qrels, ranx.Run)` of the users who have relevant items.

    Raises:
        ImportError: If ranx is not installed.
    """
    with requires_extra("ranx", "ranx", "to_ranx"):
        import ranx
    qrels: dict[str, dict[str, int]] = {}
    for user, item, relevance in judged:
        qrels.setdefault(user, {})[item] = relevance
    run = {
        user: {item: float(len(items) - index) for index, item in enumerate(items)}
        for user, items in lists
        if user in qrels
    }
    return ranx.Qrels(qrels), ranx.Run(run)


def name_lists(lists: Tensor, user_ids: Names, item_ids: Names) -> list[NamedList]:
    """Returns the lists of all users by name, without padding."""
    return [
        (_name(user, user_ids), [_name(item, item_ids) for item in items if item >= 0])
        for user, items in enumerate(lists.tolist())
    ]


def name_truth(
    edge_index: Tensor, weight: Tensor | None, user_ids: Names, item_ids: Names
) -> list[Judgement]:
    """Returns the truth by name.

    Raises:
        ValueError: If weights are not whole numbers.
    """
    weight = torch.ones_like(edge_index[0]) if weight is None else weight
    if bool((weight != weight.round()).any()):
        raise ValueError("'weight' needs to hold whole numbers to be exported (got others)")
    edges = zip(*edge_index.tolist(), weight.long().tolist(), strict=True)
    return [
        (_name(user, user_ids), _name(item, item_ids), relevance) for user, item, relevance in edges
    ]


def _name(number: int, names: Names) -> str:
    return str(number) if names is None else names[number]


def _number(ids: set[str]) -> dict[str, int]:
    """Numbers ids: by value if all of them are integers, and else in alphabetical order."""
    if all(id_.isascii() and id_.isdigit() for id_ in ids):
        ordered = sorted(ids, key=lambda id_: (int(id_), id_))
    else:
        ordered = sorted(ids)
    return {id_: number for number, id_ in enumerate(ordered)}


def _read(path: Path, form: str, item_field: int, number_field: int) -> Iterator[Line]:
    seen: set[tuple[str, str]] = set()
    num_fields = len(form.split())
    with path.open() as file:
        for line_number, line in enumerate(file, start=1):
            fields = line.split()
            if not fields:
                continue
            where = f"{path}, line {line_number}"
            if len(fields) != num_fields:
                raise ValueError(f"{where} needs to be '{form}' (got {line.strip()[:80]!r})")
            user, item = fields[0], fields[item_field]
            value = _as_number(fields[number_field])
            if value is None:
                raise ValueError(
                    f"{where} needs a finite number as '{form.split()[number_field]}' "
                    f"(got {fields[number_field]!r})"
                )
            if (user, item) in seen:
                raise ValueError(f"{where} repeats item {item!r} of user {user!r}")
            seen.add((user, item))
            yield user, item, value


def _as_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
