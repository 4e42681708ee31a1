"""Run and qrels files, as trec_eval and most tools of information retrieval read them.

A run has lines `user Q0 item rank score tag`, qrels have lines `user 0 item relevance`. The ids in
the files are strings. They are numbered, and the names are kept.
"""

import codecs
import gzip
import math
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.files import replacing
from pyg_recmetrics.kernels.exact.lists import ranks_in_ragged_lists
from pyg_recmetrics.ranked_edges.lists import Lists
from pyg_recmetrics.ranked_edges.sources import RankedTruth
from pyg_recmetrics.task.edges import coalesce_truth

#: A user and its list of items.
NamedList: TypeAlias = tuple[str, list[str]]

#: A user, an item, and its relevance.
Judgement: TypeAlias = tuple[str, str, int]

#: The original ids of users or items, if they are not just numbers.
Names: TypeAlias = tuple[Hashable, ...] | None

#: What is written, with the rank behind it, for a place of a list that holds no item. Tools take it
#: for an item that is not relevant, so all items below keep their ranks.
NO_ITEM = "pyg_recmetrics:no-item:"

#: Up to this relevance, double precision tells all whole numbers apart.
_MAX_RELEVANCE = 2**53

_GZIP_MAGIC = b"\x1f\x8b"

#: What a field of a line can hold.
_FIELD = re.compile(r"[^\s\0\ud800-\udfff]+", flags=re.ASCII)


class _Lines(NamedTuple):
    """The lines of a file, column by column.

    Attributes:
        user: The number of the user of every line, of shape `[num_lines]`.
        item: The number of its item.
        value: Its score or its relevance.
    """

    user: Tensor
    item: Tensor
    value: Tensor


def read(run: str | Path, qrels: str | Path) -> RankedTruth:
    """Reads a run and its qrels, in memory for as many numbers as there are lines.

    Raises:
        OSError: If a file cannot be opened.
        ValueError: If both files are empty, or one is not text in UTF-8, or has a line that does
            not have its form, holds a number that is not finite, or repeats an item; the error
            names file and line.
    """
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    scored = _read(Path(run), "user Q0 item rank score tag", 2, 4, users, items)
    judged = _read(Path(qrels), "user 0 item relevance", 2, 3, users, items)
    if not users:
        raise ValueError(f"'run' and 'qrels' need to hold lines (got none in {run}, {qrels})")
    user_ids, new_user = _number(users, len(users))
    named = {id_: number for id_, number in items.items() if not id_.startswith(NO_ITEM)}
    item_ids, new_item = _number(named, len(items))
    lists = _order_by_score(scored, new_user, new_item)
    edges = torch.stack([new_user[judged.user], new_item[judged.item]])
    if bool((edges[1] < 0).any()):
        raise ValueError(f"{qrels} needs to judge items (got '{NO_ITEM}', which stands for none)")
    truth, weight = coalesce_truth(edges, judged.value, len(item_ids))
    rank = ranks_in_ragged_lists(lists.item, lists.ptr, truth[0], truth[1], len(item_ids))
    is_binary = weight is None or bool((weight == 1).all())
    weight = None if is_binary else weight
    return RankedTruth(
        truth, rank, len(user_ids), weight, lists=lists, user_ids=user_ids, item_ids=item_ids
    )


def write_run(path: str | Path, lists: Iterable[NamedList]) -> None:
    """Writes ranked lists, with scores that fall by one with each rank."""
    with replacing(path) as file:
        for user, items in lists:
            file.writelines(
                f"{user} Q0 {item} {rank} {len(items) - rank + 1} pyg_recmetrics\n".encode()
                for rank, item in enumerate(items, start=1)
            )


def write_qrels(path: str | Path, judged: Iterable[Judgement]) -> None:
    """Writes relevant items."""
    with replacing(path) as file:
        file.writelines(
            f"{user} 0 {item} {relevance}\n".encode() for user, item, relevance in judged
        )


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


def name_lists(
    lists: Lists, has_truth: Tensor, user_ids: Names, item_ids: Names
) -> Iterator[NamedList]:
    """Yields the lists of all users by name, down to the last item.

    A place without an item is called :obj:`NO_ITEM`, and so is the list of a user who has truth but
    no item: tools leave out a user who is not in the run.

    Args:
        lists (Lists): The lists.
        has_truth (torch.Tensor): Which users have truth, of shape `[num_users]`.
        user_ids (tuple, optional): The names of the users.
        item_ids (tuple, optional): The names of the items.
    """
    items, has_truths = lists.item.tolist(), has_truth.tolist()
    for user, (start, end) in enumerate(pairwise(lists.ptr.tolist())):
        places = items[start:end]
        while places and places[-1] < 0:
            places.pop()
        if not places and has_truths[user]:
            places = [-1]
        yield (
            _name(user, user_ids),
            [
                f"{NO_ITEM}{rank}" if item < 0 else _name(item, item_ids)
                for rank, item in enumerate(places, start=1)
            ],
        )


def name_truth(
    edge_label_index: Tensor, weight: Tensor | None, user_ids: Names, item_ids: Names
) -> list[Judgement]:
    """Returns the truth by name.

    Raises:
        ValueError: If weights are not whole numbers, or are too large to be exact.
    """
    weight = torch.ones_like(edge_label_index[0]) if weight is None else weight
    wrong = weight[(weight != weight.round()) | (weight > _MAX_RELEVANCE)]
    if wrong.numel():
        raise ValueError(f"'weight' needs to hold whole numbers to be exported (got {wrong[0]:g})")
    edges = zip(*edge_label_index.tolist(), weight.long().tolist(), strict=True)
    return [
        (_name(user, user_ids), _name(item, item_ids), relevance) for user, item, relevance in edges
    ]


def check_names(names: Names, argument: str) -> None:
    """Raises if a line cannot hold the names of users or items, or two have the same."""
    if names is None:
        return
    words = [str(name) for name in names]
    for name in words:
        if not _FIELD.fullmatch(name) or name.startswith(NO_ITEM):
            raise ValueError(
                f"'{argument}' needs to hold names without spaces to be exported (got {name!r})"
            )
    if repeated := [name for name, times in Counter(words).items() if times > 1]:
        raise ValueError(f"'{argument}' needs to hold each name once (got {repeated[0]!r} again)")


def _name(number: int, names: Names) -> str:
    return str(number if names is None else names[number])


def _order_by_score(lines: _Lines, new_user: Tensor, new_item: Tensor) -> Lists:
    """Returns the list of every user; items of equal score are in the order of their lines."""
    user = new_user[lines.user]
    order = lines.value.argsort(descending=True, stable=True)
    order = order[user[order].argsort(stable=True)]
    return Lists(new_item[lines.item[order]], index2ptr(user[order], new_user.numel()))


def _number(numbers: dict[str, int], size: int) -> tuple[tuple[str, ...], Tensor]:
    """Numbers ids anew: by value if all of them are integers, and else in alphabetical order.

    Args:
        numbers (dict): The number of each id by now, smaller than `size`.
        size (int): How many numbers there are by now, with or without an id.

    Returns:
        The ids in their order, and the new number of each number by now, of shape `[size]`; `-1`
        for one without an id.
    """
    ids = list(numbers)
    if all(id_.isascii() and id_.isdigit() for id_ in ids):
        # As by `int`, which refuses numbers of thousands of digits.
        ids.sort(key=lambda id_: (len(id_.lstrip("0")), id_.lstrip("0"), id_))
    else:
        ids.sort()
    new_numbers = torch.full((size,), -1, device="cpu")
    old = torch.tensor([numbers[id_] for id_ in ids], dtype=torch.long, device="cpu")
    new_numbers[old] = torch.arange(len(ids), device="cpu")
    return tuple(ids), new_numbers


def _read(
    path: Path,
    form: str,
    item_field: int,
    number_field: int,
    users: dict[str, int],
    items: dict[str, int],
) -> _Lines:
    """Reads a file, and adds the ids that are new to `users` and `items`."""
    user, item, value, line_number = array("q"), array("q"), array("d"), array("q")
    num_fields = len(form.split())
    for number, fields in _split_lines(path):
        if len(fields) != num_fields:
            line = " ".join(fields)[:80]
            raise ValueError(f"{path}, line {number} needs to be '{form}' (got {line!r})")
        found = _as_number(fields[number_field])
        if found is None:
            raise ValueError(
                f"{path}, line {number} needs a finite number as '{form.split()[number_field]}' "
                f"(got {fields[number_field][:80]!r})"
            )
        user.append(users.setdefault(fields[0], len(users)))
        item.append(items.setdefault(fields[item_field], len(items)))
        value.append(found)
        line_number.append(number)
    lines = _Lines(*(torch.from_numpy(np.array(column)) for column in (user, item, value)))
    repeated = _first_repeat(lines.user * len(items) + lines.item)
    if repeated is not None:
        raise ValueError(
            f"{path}, line {line_number[repeated]} repeats item {list(items)[item[repeated]]!r} of "
            f"user {list(users)[user[repeated]]!r}"
        )
    return lines


def _split_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields the fields of every line that has any, with its number."""
    with path.open("rb") as file:
        try:
            for number, line in enumerate(_decompress(file), start=1):
                # Files that were joined may have such a mark in the middle.
                fields = line.removeprefix(codecs.BOM_UTF8).split()
                if fields:
                    yield number, _decode(fields, f"{path}, line {number}")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} needs to be a valid gzip file (got: {error})") from error


def _decompress(file: BufferedReader) -> Iterable[bytes]:
    """Returns what a file holds, which may be compressed by gzip, whatever its name is."""
    is_gzip = file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    return gzip.GzipFile(fileobj=file) if is_gzip else file


def _decode(fields: list[bytes], where: str) -> list[str]:
    text = b" ".join(fields)
    if b"\0" in text:
        raise ValueError(f"{where} needs to be text (got a NUL byte in {text[:80]!r})")
    try:
        return text.decode().split(" ")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} needs to be text in UTF-8 (got {text[:80]!r})") from error


def _first_repeat(keys: Tensor) -> int | None:
    """Returns where a key stands that has stood before, the first of them; `None` if none has."""
    ordered, order = keys.sort(stable=True)
    repeats = order[1:][ordered[1:] == ordered[:-1]]
    return int(repeats.min()) if repeats.numel() else None


def _as_number(text: str) -> float | None:
    # Python also reads numbers with underscores and in other scripts, which no other tool does.
    if not text.isascii() or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
