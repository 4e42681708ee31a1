"""Run and qrels files, as trec_eval and most tools of information retrieval read them.

A run has lines `user Q0 item rank score tag`, qrels have lines `user 0 item relevance`. The ids in
the files are strings. They are numbered, and the names are kept.
"""

import codecs
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.files import replacing
from pyg_recmetrics.kernels.exact.ranks import ranks_in_ragged_lists
from pyg_recmetrics.ranked_edges.lists import Lists
from pyg_recmetrics.ranked_edges.sources import RankedTruth
from pyg_recmetrics.task.edges import coalesce_truth

_GZIP_MAGIC = b"\x1f\x8b"

#: No line has more bytes, so that a file without any line does not fill the memory.
MAX_BYTES_OF_LINE = 2**20

#: So many lines are read at once.
_LINES_AT_ONCE = 2**8


class Form(NamedTuple):
    """What the lines of a kind of file hold.

    Attributes:
        fields: The names of the fields of a line, separated by spaces. The user is the first, and
            the item the third.
        number: The place of the score or the relevance.
    """

    fields: str
    number: int

    @property
    def num_fields(self) -> int:
        """How many fields a line has."""
        return len(self.fields.split())


RUN = Form("user Q0 item rank score tag", number=4)
QRELS = Form("user 0 item relevance", number=3)


class Numbers(dict[bytes, int]):
    """The numbers of ids. An id that is looked up first gets the next number."""

    def __missing__(self, id_: bytes) -> int:
        """Numbers an id.

        Raises:
            ValueError: If it is not text in UTF-8.
        """
        if "\0" in id_.decode():
            raise ValueError("A file in UTF-16 has such bytes")
        number = self[id_] = len(self)
        return number


class Lines(NamedTuple):
    """The lines of a file, column by column.

    Attributes:
        user: The number of the user of every line, of shape `[num_lines]`.
        item: The number of its item.
        value: Its score or its relevance.
    """

    user: Tensor
    item: Tensor
    value: Tensor

    @classmethod
    def of(cls, lines: list[bytes], form: Form, users: Numbers, items: Numbers) -> "Lines":
        """Reads lines at once, and adds the ids that are new to `users` and `items`.

        Raises:
            ValueError: If a line does not have its form.
        """
        # Files that were joined may have such a mark in the middle.
        rows = [fields for line in lines if (fields := line.removeprefix(codecs.BOM_UTF8).split())]
        columns = [*zip(*rows, strict=True)] or [()] * form.num_fields
        is_long = max(map(len, lines), default=0) > MAX_BYTES_OF_LINE
        if is_long or len(columns) != form.num_fields:
            raise ValueError("A line is too long, or has too many or too few fields")
        values = np.fromiter(map(float, columns[form.number]), dtype=np.float64)
        # Python also reads numbers with underscores, which no other tool does.
        if not np.isfinite(values).all() or b"_" in b"".join(columns[form.number]):
            raise ValueError("A number is not finite, or no number elsewhere")
        user, item = (
            np.fromiter(map(numbers.__getitem__, column), dtype=np.int64)
            for numbers, column in ((users, columns[0]), (items, columns[2]))
        )
        return cls(*map(torch.from_numpy, (user, item, values)))


def _read_file(path: Path, form: Form, users: Numbers, items: Numbers) -> Lines:
    """Reads a file, and adds the ids that are new to `users` and `items`."""
    num_lines, blocks = 0, [Lines.of([], form, users, items)]
    stream = _lines(path)
    while block := list(islice(stream, _LINES_AT_ONCE)):
        try:
            blocks.append(Lines.of(block, form, users, items))
        except ValueError:
            _name_mistake(path, num_lines, block, form)
            raise
        num_lines += len(block)
    return Lines(*(torch.cat(columns) for columns in zip(*blocks, strict=True)))


def _lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file, which may be compressed by gzip, whatever its name is."""
    with path.open("rb") as file:
        is_gzip = file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
        stream = gzip.GzipFile(fileobj=file) if is_gzip else file
        try:
            yield from iter(partial(stream.readline, MAX_BYTES_OF_LINE + 1), b"")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} needs to be a valid gzip file (got: {error})") from error


def _name_mistake(path: Path, num_before: int, lines: list[bytes], form: Form) -> None:
    """Raises for the first line that does not have its form."""
    for number, line in enumerate(lines, start=num_before + 1):
        try:
            Lines.of([line], form, Numbers(), Numbers())
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number} needs to be '{form.fields}' in UTF-8, with a finite "
                f"{form.fields.split()[form.number]} and at most {MAX_BYTES_OF_LINE:,} bytes (got "
                f"{line[:80]!r})"
            ) from error


def _check_once(path: str | Path, lines: Lines, users: list[str], items: list[str]) -> None:
    """Raises if a line repeats an item of a user."""
    keys, order = (lines.user * len(items) + lines.item).sort()
    repeats = order[1:][keys[1:] == keys[:-1]]
    if repeats.numel():
        user, item = (int(column[repeats[0]]) for column in (lines.user, lines.item))
        raise ValueError(f"{path} repeats item {items[item]!r} of user {users[user]!r}")


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

#: What a field of a line can hold.
_FIELD = re.compile(r"[^\s\0\ud800-\udfff]+", flags=re.ASCII)


def read(run: str | Path, qrels: str | Path) -> RankedTruth:
    """Reads a run and its qrels, in memory for as many numbers as there are lines.

    Raises:
        OSError: If a file cannot be opened.
        ValueError: If both files are empty, or one has a line that does not have its form or
            repeats an item.
    """
    numbers = Numbers(), Numbers()
    scored = _read_file(Path(run), RUN, *numbers)
    judged = _read_file(Path(qrels), QRELS, *numbers)
    users, items = ([id_.decode() for id_ in of] for of in numbers)
    for path, lines in ((run, scored), (qrels, judged)):
        _check_once(path, lines, users, items)
    if not users:
        raise ValueError(f"'run' and 'qrels' need to hold lines (got none in {run}, {qrels})")
    user_ids, new_user = _number(users, list(range(len(users))))
    # Those that stand for no item have no number.
    named = [number for number, id_ in enumerate(items) if not id_.startswith(NO_ITEM)]
    item_ids, new_item = _number(items, named)
    lists = _order_by_score(scored, new_user, new_item)
    edges = torch.stack([new_user[judged.user], new_item[judged.item]])
    if bool((edges[1] < 0).any()):
        raise ValueError(f"{qrels} needs to judge items (got '{NO_ITEM}', which stands for none)")
    truth, weight = coalesce_truth(edges, judged.value, len(item_ids))
    rank = ranks_in_ragged_lists(lists.item, lists.ptr, truth[0], truth[1], len(item_ids))
    is_binary = weight is None or bool((weight == 1).all())
    return {
        "truth": truth,
        "rank": rank,
        "num_users": len(user_ids),
        "weight": None if is_binary else weight,
        "lists": lists,
        "user_ids": user_ids,
        "item_ids": item_ids,
    }


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
    with requires_extra("ranx", None, "to_ranx"):
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


def _order_by_score(lines: Lines, new_user: Tensor, new_item: Tensor) -> Lists:
    """Returns the list of every user; items of equal score are in the order of their lines."""
    user, item = new_user[lines.user], new_item[lines.item]
    order = lines.value.argsort(descending=True, stable=True)
    order = order[user[order].argsort(stable=True)]
    return Lists(item[order], index2ptr(user[order], new_user.numel()))


def _number(ids: list[str], chosen: list[int]) -> tuple[tuple[str, ...], Tensor]:
    """Numbers ids anew: by value if all of them are integers, and else in alphabetical order.

    Args:
        ids (list): The id of each number by now.
        chosen (list): The numbers of those that are to have a new one.

    Returns:
        The chosen ids in their order, and the new number of each number by now, of shape
        `[num_ids]`; `-1` for one that is not chosen.
    """
    order = sorted(chosen, key=ids.__getitem__)
    if all(ids[number].isascii() and ids[number].isdigit() for number in chosen):
        # As by `int`, which refuses numbers of thousands of digits.
        digits = [id_.lstrip("0") for id_ in ids]
        order.sort(key=lambda number: (len(digits[number]), digits[number]))
    new_numbers = torch.full((len(ids),), -1, device="cpu")
    old = torch.tensor(order, dtype=torch.long, device="cpu")
    new_numbers[old] = torch.arange(len(order), device="cpu")
    return tuple(ids[number] for number in order), new_numbers
