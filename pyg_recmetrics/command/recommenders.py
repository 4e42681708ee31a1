"""Reads what recommends: lists, embeddings or scores, by ids or by the numbers of rows."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.command.arrays import Array, is_array_file, read_array
from pyg_recmetrics.command.columns import choose_column, find_column
from pyg_recmetrics.command.ids import Ids, Numbers, id_of, order_of, values_of
from pyg_recmetrics.command.interactions import user_and_item
from pyg_recmetrics.command.notes import note, remember_file
from pyg_recmetrics.command.tables import Table, open_run, open_table, say_columns
from pyg_recmetrics.messages import list_some, warn

#: The ids of the rows of an array, or how many rows there are if ids are their numbers.
RowIds: TypeAlias = Sequence[str] | int


@dataclass(frozen=True)
class Axis:
    """How users or items are numbered.

    Attributes:
        ids: The original ids in the order of their numbers.
        size: How many there are.
        number_of: The number of each id in the order in which ids came first.
        row_of: The row of an array for each number; `None` if rows are in this order.
    """

    ids: tuple[Any, ...]
    size: int
    number_of: Tensor
    row_of: Numbers | None = None


@dataclass(frozen=True)
class ReadRecommender:
    """What recommends, as `evaluate` takes it once users and items are numbered.

    Attributes:
        parts: The lists by id, or the arrays.
        users: What the rows of users are, `None` if nothing has such rows.
        items: What the rows of items are.
        sides: For each of the arrays, which of its dimensions are users (`"u"`) and items (`"i"`).
    """

    parts: tuple[Any, ...]
    users: RowIds | None = None
    items: RowIds | None = None
    sides: tuple[str, ...] = ()

    def aligned(self, users: Axis, items: Axis) -> Any:
        """Returns it in the order in which users and items are numbered."""
        if not self.sides:
            return self.parts[0]
        arrays = [
            _in_order(part, [{"u": users, "i": items}[side] for side in sides])
            for part, sides in zip(self.parts, self.sides, strict=True)
        ]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)


def read_recommender(options: argparse.Namespace) -> ReadRecommender:
    """Reads what the options name.

    Raises:
        ImportError: If a package is missing that reads this format.
        OSError: If a file cannot be opened.
        ValueError: If a file does not hold what is needed.
    """
    if options.run is not None:
        remember_file("recommender", options.run)
        return ReadRecommender(
            (_read_lists(open_run(options.run), options),), items=_all_ids(options)
        )
    if options.lists is not None:
        remember_file("recommender", options.lists)
        if is_array_file(options.lists):
            return ReadRecommender((_lists_of_rows(options),), items=_all_ids(options))
        table = open_table(Path(options.lists), options.list_columns)
        return ReadRecommender((_read_lists(table, options),), items=_all_ids(options))
    if options.scores is not None:
        remember_file("recommender", options.scores)
        return _read_scores(options)
    remember_file("recommender", f"{options.users}, {options.items}")
    return _read_embeddings(options)


def make_axis(known: Ids, rows: RowIds | None, what: str, where: str, *, grows: bool) -> Axis:
    """Numbers users or items.

    Args:
        known (Ids): The ids of all interactions.
        rows (sequence of str or int, optional): The ids of the rows of an array, or their number.
        what (str): What is numbered, such as `"user"`.
        where (str): The file of the array.
        grows (bool): Whether ids are numbered that only the array has.

    Raises:
        ValueError: If an id has no row.
    """
    if isinstance(rows, int):
        _check_row_numbers(known, rows, what, where)
        rows = list(map(str, range(rows)))
    if rows is not None and grows and (others := [id_ for id_ in rows if id_ not in known]):
        known.numbers(others)
        note(f"{where}: {len(others):,} {what}s without interactions are candidates, too")
    written = list(known)
    values = values_of(written)
    order = order_of(values)
    number_of = np.empty_like(order)
    number_of[order] = np.arange(len(order))
    row_of = None if rows is None else _rows_of(rows, [written[place] for place in order], where)
    if row_of is not None and np.array_equal(row_of, np.arange(len(rows or ()))):
        row_of = None  # so that an array in a file stays there
    ids = tuple(values[place] for place in order)
    return Axis(ids, len(ids), torch.from_numpy(number_of), row_of)


def _check_row_numbers(known: Ids, num_rows: int, what: str, where: str) -> None:
    """Raises if ids are not the numbers of rows."""
    wrong = [id_ for id_ in known if not (isinstance(id_of(id_), int) and 0 <= int(id_) < num_rows)]
    if wrong:
        raise ValueError(
            f"{where}: --{what}-ids needs to name the {what} of every row, unless ids are the "
            f"numbers of rows, 0 to {num_rows - 1} (got {what} "
            f"{list_some([repr(id_) for id_ in wrong])})"
        )
    note(f"{where}: row 0 is {what} 0, and row {num_rows - 1} is {what} {num_rows - 1}")


def _rows_of(rows: Sequence[str], wanted: Sequence[str], where: str) -> Numbers:
    row = {id_: place for place, id_ in enumerate(rows)}
    if len(row) < len(rows):
        raise ValueError(f"{where}: every id needs one row (got {len(rows)} of {len(row)} ids)")
    if missing := [id_ for id_ in wanted if id_ not in row]:
        raise ValueError(
            f"{where}: every id of the interactions needs a row (got none for {len(missing):,}: "
            f"{list_some(missing)})"
        )
    return np.array([row[id_] for id_ in wanted], dtype=np.int64)


def _in_order(part: Array, axes: Sequence[Axis]) -> Array:
    for dim, axis in enumerate(axes):
        if axis.row_of is not None:
            index = (slice(None),) * dim + (axis.row_of,)
            part = part[index]
    return part


def _read_embeddings(options: argparse.Namespace) -> ReadRecommender:
    users, user_rows = _read_vectors(options.users, "user", options)
    items, item_rows = _read_vectors(options.items, "item", options)
    if options.item_bias is None:
        return ReadRecommender((users, items), user_rows, item_rows, ("u", "i"))
    bias = read_array(options.item_bias, "bias")
    return ReadRecommender((users, items, bias), user_rows, item_rows, ("u", "i", "i"))


def _read_vectors(file: str, what: str, options: argparse.Namespace) -> tuple[Array, RowIds]:
    """Returns the embeddings of users or items, and what their rows are."""
    if is_array_file(file):
        array = read_array(file, what)
        return array, _row_ids(array.shape[0], what, file, options)
    path = Path(file)
    table = open_table(path)
    id_column = options.id_column or find_column([what, "id"], table.columns)
    id_column = choose_column(path, "id", table.columns, id_column, "--id-column")
    given = options.vector_column or find_column(["vector"], table.columns)
    vectors = [given] if given else _other_columns(table, id_column)
    if given:
        choose_column(path, "vector", table.columns, given, "--vector-column")
    shown = vectors[0] if len(vectors) == 1 else f"{vectors[0]} to {vectors[-1]}"
    say_columns(table, [(f"{what}s", id_column), ("vectors", shown)])
    ids, rows, parts = Ids(), 0, []
    for batch in table.batches([id_column, *vectors]):
        rows += len(batch.ids(id_column, ids))
        if len(vectors) == 1 and batch.holds_lists(vectors[0]):
            parts.append(batch.vectors(vectors[0]))
        elif given:
            parts.append(batch.vectors(given))
        else:
            parts.append(np.stack([batch.reals(name) for name in vectors], axis=1))
    if len(ids) < rows:
        raise ValueError(f"{path}: every id needs one row (got {rows:,} of {len(ids):,} ids)")
    if len({part.shape[1] for part in parts}) > 1:
        raise ValueError(f"{path}: vectors need to have one length (got several)")
    return np.concatenate(parts).astype(np.float32), list(ids)


def _other_columns(table: Table, id_column: str) -> list[str]:
    """Returns all columns but the ids, and but the row numbers that pandas writes unasked."""
    is_index = re.compile(r"__index_level_\d+__|Unnamed: \d+|")
    return [name for name in table.columns if name != id_column and not is_index.fullmatch(name)]


def _read_scores(options: argparse.Namespace) -> ReadRecommender:
    scores = read_array(options.scores, "score")
    if isinstance(scores, np.ndarray) and scores.dtype.kind in "iu":
        scores = scores.astype(np.float64)
    if scores.ndim not in (1, 2):
        raise ValueError(
            f"{options.scores}: scores need to have shape [num_users, num_items] or [num_items] "
            f"(got {list(scores.shape)})"
        )
    items = _row_ids(scores.shape[-1], "item", options.scores, options)
    if scores.ndim == 1:
        return ReadRecommender((scores,), None, items, ("i",))
    users = _row_ids(scores.shape[0], "user", options.scores, options)
    return ReadRecommender((scores,), users, items, ("ui",))


def _row_ids(num_rows: int, what: str, where: str, options: argparse.Namespace) -> RowIds:
    """Returns the ids of rows if an option names them, and else their number."""
    file = getattr(options, f"{what}_ids")
    if file is None:
        return num_rows
    ids = _read_ids(file, what)
    if len(ids) != num_rows:
        raise ValueError(
            f"{file}: {num_rows:,} ids are needed, one for every row of {where} (got {len(ids):,})"
        )
    return ids


def _all_ids(options: argparse.Namespace) -> RowIds | None:
    """Returns the ids of all items if an option names them. Lists do not say what else there is."""
    return None if options.item_ids is None else _read_ids(options.item_ids, "item")


def _read_ids(file: str, what: str) -> list[str]:
    if is_array_file(file):
        return list(map(str, np.asarray(read_array(file, what)).tolist()))
    ids = Path(file).read_text(encoding="utf-8-sig").splitlines()
    if "" in ids:
        raise ValueError(f"{file}, line {ids.index('') + 1}: an id is needed (got nothing)")
    return ids


def _lists_of_rows(options: argparse.Namespace) -> dict[Any, list[Any]]:
    """Returns lists of items, where each row is that of a user."""
    lists = np.asarray(read_array(options.lists, "list"))
    if lists.ndim != 2 or lists.dtype.kind not in "iu":
        raise ValueError(
            f"{options.lists}: lists need to hold integers of shape [num_users, K] "
            f"(got {lists.dtype} of shape {list(lists.shape)})"
        )
    rows = _row_ids(len(lists), "user", options.lists, options)
    if isinstance(rows, int):
        note(f"{options.lists}: row 0 is user 0, and row {rows - 1} is user {rows - 1}")
        rows = list(map(str, range(rows)))
    if ((lists[:, :-1] == -1) & (lists[:, 1:] != -1)).any():
        raise ValueError(
            f"{options.lists}: -1 needs to stand behind all items of a row, as it fills up short "
            f"lists (got -1 before an item)"
        )
    return dict(
        zip(rows, ([str(i) for i in row if i != -1] for row in lists.tolist()), strict=True)
    )


def _read_lists(table: Table, options: argparse.Namespace) -> dict[Any, list[Any]]:
    """Returns the items of every user, best first, by ids as they are written."""
    user, item = user_and_item(table, options)
    users, items = Ids(), Ids()
    by = _order_column(table, options)
    read = [user, item] + ([by[1]] if by else [])
    parts, values, in_lists, rows = [], [], False, 0
    for batch in table.batches(read):
        of_users = batch.ids(user, users)
        rows += len(of_users)
        if in_lists := by is None and batch.holds_lists(item):
            of_items, lengths = batch.lists(item, items)
            of_users = np.repeat(of_users, lengths)
        else:
            of_items = batch.ids(item, items)
        parts.append((of_users, of_items))
        if by is not None:
            values.append(batch.reals(by[1]))
    if by is None and not in_lists:
        raise ValueError(
            f"{table.path}: the order of items needs a column of ranks or scores, which "
            f"--rank-column or --score-column names (got {', '.join(map(repr, table.columns))})"
        )
    if in_lists and len(users) < rows:
        raise ValueError(
            f"{table.path}: every user needs one row with a list "
            f"(got {rows:,} rows of {len(users):,} users)"
        )
    say_columns(table, [("users", user), ("items", item), *([(f"{by[0]}s", by[1])] if by else [])])
    of_users, of_items = map(np.concatenate, zip(*parts, strict=True))
    if by is None:
        return _grouped(users, items, of_users, of_items, np.arange(len(of_items)))
    value, written = np.concatenate(values), list(items)
    place = np.empty(len(written), dtype=np.int64)
    place[order_of(values_of(written))] = np.arange(len(written))
    # Items of equal score are in the order of their ids, and in a run in that of its lines.
    tie = np.arange(len(of_items)) if table.in_words == "TREC" else place[of_items]
    order = np.lexsort((tie, -value if by[0] == "score" else value))
    if by[0] == "rank":
        _check_ranks(of_users, value, list(users), table.path)
    return _grouped(users, items, of_users, of_items, order)


def _grouped(
    users: Ids, items: Ids, of_users: Numbers, of_items: Numbers, order: Numbers
) -> dict[str, list[str]]:
    """Returns the items of each user, as rows come in an order."""
    order = order[of_users[order].argsort(kind="stable")]
    ends = np.concatenate([[0], np.bincount(of_users, minlength=len(users)).cumsum()]).tolist()
    written, numbers = list(items), of_items[order].tolist()
    return {
        user: [written[number] for number in numbers[start:end]]
        for user, (start, end) in zip(users, pairwise(ends), strict=True)
    }


def _order_column(table: Table, options: argparse.Namespace) -> tuple[str, str] | None:
    """Returns `"rank"` or `"score"`, and the column; `None` if there is neither."""
    # As trec_eval does, which ignores the ranks of a run.
    kinds = ("score", "rank") if table.in_words == "TREC" else ("rank", "score")
    given = {kind: getattr(options, f"{kind}_column") for kind in kinds}
    for kind in kinds:
        if given[kind] is not None:
            option = f"--{kind}-column"
            return kind, choose_column(table.path, kind, table.columns, given[kind], option)
    found = ((kind, find_column([kind], table.columns)) for kind in kinds)
    return next(((kind, column) for kind, column in found if column is not None), None)


def _check_ranks(of_users: Numbers, rank: Any, users: Sequence[str], path: Path) -> None:
    """Raises if the ranks of a user do not count from one on."""
    order = np.lexsort((rank, of_users))
    of_users, rank = of_users[order], rank[order]
    first = np.searchsorted(of_users, of_users)
    wanted = np.arange(len(rank)) - first + 1
    if len(wrong := np.flatnonzero(rank != wanted)):
        user = users[of_users[wrong[0]]]
        raise ValueError(
            f"{path}: ranks of a user need to be 1, 2, 3 and so on (got {rank[wrong[0]]:g} in "
            f"place of {wanted[wrong[0]]} for user {user!r}); --score-column names a column that "
            f"may hold any numbers, higher for better items"
        )


def lists_by_ids(lists: dict[str, list[str]], users: Axis, items: Axis) -> dict[Any, list[Any]]:
    """Returns lists whose ids are those of a task."""
    user_id = _reader_of(users)
    item_id = _reader_of(items)
    known: dict[str, Any] = {}
    for listed in lists.values():
        for written in listed:
            if written not in known:
                known[written] = item_id(written)
    return {user_id(user): [known[id_] for id_ in listed] for user, listed in lists.items()}


def _reader_of(axis: Axis) -> Any:
    are_integers = all(isinstance(id_, int) for id_ in axis.ids)
    return id_of if are_integers else str


def warn_about_new(kind: str, ids: Ids, num_known: int) -> None:
    """Warns about ids that only the truth has."""
    if num_new := len(ids) - num_known:
        named = list_some(list(ids)[num_known:])
        who = f"{num_new:,} {kind}s of the truth are"
        if num_new == 1:
            who = f"one {kind} of the truth is"
        warn(
            f"{who} not among the training interactions, so nothing could be learned about "
            f"{'them' if num_new > 1 else 'it'} ({named})"
        )
