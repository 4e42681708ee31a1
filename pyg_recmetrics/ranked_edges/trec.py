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
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
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

#: How many bytes are read at once. What they hold stays in the cache until it is numbered.
NUM_BYTES = 2**16

#: No line has more bytes, so that a file without any line does not fill the memory.
MAX_BYTES_OF_LINE = 2**20

_IS_SPACE = np.zeros(256, dtype=bool)
_IS_SPACE[list(b" \t\n\r\v\f")] = True

_NEWLINE = ord("\n")

#: The users, the items, the values and the line numbers of some lines.
_Columns: TypeAlias = tuple[
    npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]
]


class Form(NamedTuple):
    """What the lines of a kind of file hold.

    Attributes:
        fields: The names of the fields of a line, separated by spaces.
        item: The place of the item among the fields. The user is the first.
        number: The place of the score or the relevance.
    """

    fields: str
    item: int
    number: int

    @property
    def num_fields(self) -> int:
        """How many fields a line has."""
        return len(self.fields.split())


RUN = Form("user Q0 item rank score tag", item=2, number=4)
QRELS = Form("user 0 item relevance", item=2, number=3)


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


class Numbers(dict[bytes, int]):
    """The numbers of ids. An id that is looked up first gets the next number."""

    def __missing__(self, id_: bytes) -> int:
        """Numbers an id."""
        number = self[id_] = len(self)
        return number


class Files(NamedTuple):
    """What a run and its qrels hold.

    Attributes:
        scored: The lines of the run.
        judged: The lines of the qrels.
        users: The id of every number of a user.
        items: The id of every number of an item.
    """

    scored: Lines
    judged: Lines
    users: list[str]
    items: list[str]


def read_files(run: Path, qrels: Path) -> Files:
    """Reads a run and its qrels.

    Raises:
        OSError: If a file cannot be opened.
        ValueError: If a file is not text in UTF-8, or has a line that does not have its form, is
            too long, holds a number that is not finite, or repeats an item; the error names file
            and line.
    """
    numbers = Numbers(), Numbers()
    columns = [_read(path, form, *numbers) for path, form in ((run, RUN), (qrels, QRELS))]
    users, items = ([id_.decode() for id_ in of] for of in numbers)
    scored, judged = (
        _lines(path, each, users, items) for path, each in zip((run, qrels), columns, strict=True)
    )
    return Files(scored, judged, users, items)


def _lines(path: Path, columns: _Columns, users: list[str], items: list[str]) -> Lines:
    """Returns the lines of a file; raises if one repeats an item."""
    user, item, value, number = columns
    lines = Lines(*(torch.from_numpy(column) for column in (user, item, value)))
    repeated = _first_repeat(lines.user * len(items) + lines.item)
    if repeated is not None:
        raise ValueError(
            f"{path}, line {number[repeated]} repeats item {items[item[repeated]]!r} of user "
            f"{users[user[repeated]]!r}"
        )
    return lines


def _read(path: Path, form: Form, users: Numbers, items: Numbers) -> _Columns:
    """Reads a file, and adds the ids that are new to `users` and `items`."""
    nothing = np.empty(0, dtype=np.int64)
    blocks: list[_Columns] = [(nothing, nothing, np.empty(0), nothing)]
    for first, block in _blocks(path, form):
        columns = _read_block(block, first, form, users, items)
        if columns is None:
            raise ValueError(f"{path}, line {next(_mistakes(block, first, form))}")
        blocks.append(columns)
    user, item, value, number = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return user, item, value, number


def _blocks(path: Path, form: Form) -> Iterator[tuple[int, bytes]]:
    """Yields whole lines of a file, many at once, with the number of the first of them."""
    first, rest = 1, b""
    with path.open("rb") as file:
        try:
            stream = _decompress(file)
            while read := stream.read(NUM_BYTES):
                block = rest + read
                end = block.rfind(b"\n") + 1
                rest = block[end:]
                if end:
                    yield first, block[:end]
                    first += block.count(b"\n")
                if len(rest) > MAX_BYTES_OF_LINE:
                    raise ValueError(
                        f"{path}, line {first} needs to be '{form.fields}' (got more than "
                        f"{MAX_BYTES_OF_LINE:,} bytes, which start with {rest[:80]!r})"
                    )
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} needs to be a valid gzip file (got: {error})") from error
    if rest:
        yield first, rest + b"\n"


def _decompress(file: BufferedReader) -> BufferedReader | gzip.GzipFile:
    """Returns what a file holds, which may be compressed by gzip, whatever its name is."""
    is_gzip = file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    return gzip.GzipFile(fileobj=file) if is_gzip else file


def _read_block(
    block: bytes, first: int, form: Form, users: Numbers, items: Numbers
) -> _Columns | None:
    """Reads lines at once; returns `None` if one is not as it should be."""
    if codecs.BOM_UTF8 in block:
        # Files that were joined may have such a mark in the middle.
        block = block.removeprefix(codecs.BOM_UTF8).replace(b"\n" + codecs.BOM_UTF8, b"\n")
    num_fields = _num_fields_of_lines(block)
    has_fields = num_fields > 0
    if not _is_text(block) or (num_fields[has_fields] != form.num_fields).any():
        return None
    fields = block.split()
    value = _as_numbers(fields[form.number :: form.num_fields])
    if value is None:
        return None
    user, item = (
        np.fromiter(map(numbers.__getitem__, fields[place :: form.num_fields]), dtype=np.int64)
        for numbers, place in ((users, 0), (items, form.item))
    )
    return user, item, value, has_fields.nonzero()[0] + first


def _num_fields_of_lines(block: bytes) -> npt.NDArray[np.int64]:
    """Counts the fields of every line by where they end."""
    letters = np.frombuffer(block, dtype=np.uint8)
    is_space = _IS_SPACE[letters]
    is_end = np.zeros_like(is_space)
    is_end[1:] = is_space[1:] & ~is_space[:-1]
    ends_of_lines = (letters == _NEWLINE).nonzero()[0]
    starts_of_lines = np.concatenate([[0], ends_of_lines[:-1] + 1])
    num_fields: npt.NDArray[np.int64] = np.add.reduceat(is_end, starts_of_lines, dtype=np.int64)
    return num_fields


def _is_text(block: bytes) -> bool:
    if b"\0" in block:
        return False
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _as_numbers(texts: list[bytes]) -> npt.NDArray[np.float64] | None:
    """Reads finite numbers; returns `None` if one of them is none."""
    # Python also reads numbers with underscores, which no other tool does.
    if b"_" in b" ".join(texts):
        return None
    try:
        numbers = np.fromiter(map(float, texts), dtype=np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _mistakes(block: bytes, first: int, form: Form) -> Iterator[str]:
    """Yields the number of each line that is not as it should be, and what it needs."""
    for number, line in enumerate(block.split(b"\n"), start=first):
        fields = line.removeprefix(codecs.BOM_UTF8).split()
        text = b" ".join(fields)
        if b"\0" in text:
            yield f"{number} needs to be text (got a NUL byte in {text[:80]!r})"
        elif not _is_text(text):
            yield f"{number} needs to be text in UTF-8 (got {text[:80]!r})"
        elif fields and len(fields) != form.num_fields:
            yield f"{number} needs to be '{form.fields}' (got {text.decode()[:80]!r})"
        elif fields and _as_numbers([fields[form.number]]) is None:
            what, got = form.fields.split()[form.number], fields[form.number].decode()
            yield f"{number} needs a finite number as '{what}' (got {got[:80]!r})"


def _first_repeat(keys: Tensor) -> int | None:
    """Returns where a key stands that has stood before, the first of them; `None` if none has."""
    ordered, order = keys.sort(stable=True)
    repeats = order[1:][ordered[1:] == ordered[:-1]]
    return int(repeats.min()) if repeats.numel() else None


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
        ValueError: If both files are empty, or one is not text in UTF-8, or has a line that does
            not have its form, holds a number that is not finite, or repeats an item; the error
            names file and line.
    """
    scored, judged, users, items = read_files(Path(run), Path(qrels))
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
    step = user.diff()
    # Most files are written in this order.
    if not bool(((step < 0) | ((step == 0) & (lines.value.diff() > 0))).any()):
        return Lists(item, index2ptr(user, new_user.numel()))
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
    if all(ids[number].isascii() and ids[number].isdigit() for number in chosen):
        # As by `int`, which refuses numbers of thousands of digits.
        digits = [id_.lstrip("0") for id_ in ids]
        order = sorted(chosen, key=lambda n: (len(digits[n]), digits[n], ids[n]))
    else:
        order = sorted(chosen, key=ids.__getitem__)
    new_numbers = torch.full((len(ids),), -1, device="cpu")
    old = torch.tensor(order, dtype=torch.long, device="cpu")
    new_numbers[old] = torch.arange(len(order), device="cpu")
    return tuple(ids[number] for number in order), new_numbers
