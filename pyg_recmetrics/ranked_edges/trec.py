"""Run and qrels files, as trec_eval and most tools of information retrieval read them.

A run has lines `user Q0 item rank score tag`, qrels have lines `user 0 item relevance`. The ids in
the files are strings. They are numbered, and the names are kept.
"""

import csv
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import lexsort

from pyg_recmetrics.checks import check_finite_number
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.files import reading, replacing
from pyg_recmetrics.kernels.exact.ranks import Ranks, ranks_within_rows
from pyg_recmetrics.ranked_edges.lists import Lists
from pyg_recmetrics.ranked_edges.sources import RankedTruth
from pyg_recmetrics.task.data_frames import number_texts
from pyg_recmetrics.task.edges import coalesce_truth

if TYPE_CHECKING:
    import pandas as pd

#: The fields of a line. What stands behind them belongs to nobody.
RUN = ("user", "Q0", "item", "rank", "score", "tag")
QRELS = ("user", "0", "item", "relevance")

#: How a number is written. Python also reads others, which no other tool does.
_NUMBER = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"

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


def read_lines(file: IO[bytes], fields: tuple[str, ...], needed_by: str) -> "pd.DataFrame":
    """Returns the fields of all lines as text, with the number of the line before as index.

    As in trec_eval, a line that begins with `#` is a comment, and further fields are ignored.

    Raises:
        ImportError: If pandas is not installed.
        ValueError: If there is no line, or one has too few fields or is not text in UTF-8.
    """
    with requires_extra("pandas and pyarrow", "command", needed_by):
        import pandas as pd
    # Empty lines are read, too, so that rows can be counted as lines.
    lines = pd.read_csv(
        file,
        sep=r"\s+",
        names=[*fields],
        usecols=[*range(len(fields))],
        dtype=str,
        na_filter=False,
        quoting=csv.QUOTE_NONE,
        skip_blank_lines=False,
    )
    # Files that were joined may have such a mark in the middle.
    lines["user"] = lines["user"].str.removeprefix("\ufeff")
    lines = lines[(lines["user"] != "") & ~lines["user"].str.startswith("#")]
    if lines.empty:
        raise ValueError(f"lines '{' '.join(fields)}' are needed (got none)")
    # UTF-16 has such signs.
    has_control = (lines["user"] + lines["item"]).str.contains(r"[\x00-\x1f]")
    _check_lines(lines, has_control | (lines[fields[-1]] == ""), "all fields in UTF-8")
    return lines


def _check_lines(lines: "pd.DataFrame", is_wrong: Any, wanted: str) -> None:
    """Raises for the first line that is wrong."""
    if np.any(is_wrong):
        row = int(np.argmax(is_wrong))
        raise ValueError(
            f"line {lines.index[row] + 1} needs to be '{' '.join(lines.columns)}' with {wanted} "
            f"(got {' '.join(lines.iloc[row])!r:.80})"
        )


def _read_values(path: str | Path, fields: tuple[str, ...], name: str) -> "pd.DataFrame":
    """Returns the user, the item and the finite number of every line, each pair once."""
    with reading(path) as file:
        lines = read_lines(file, fields, "from_trec")
        texts = lines[name].where(lines[name].str.fullmatch(_NUMBER), "nan")
        values = texts.to_numpy(object).astype(np.float64)
        _check_lines(lines, ~np.isfinite(values), f"a finite {name}")
        _check_lines(lines, lines.duplicated(["user", "item"]), "each item of a user once")
    return lines[["user", "item"]].assign(value=values)


def read(run: str | Path, qrels: str | Path, level: float | None) -> RankedTruth:
    """Reads a run and its qrels, in memory for as many numbers as there are lines.

    Raises:
        ImportError: If pandas is not installed.
        OSError: If a file cannot be opened.
        ValueError: If a file is empty, a line does not have its form or repeats an item, or `level`
            is not positive.
    """
    if level is not None and check_finite_number(level, "level") <= 0:
        raise ValueError(f"'level' needs to be positive (got {level!r})")
    scored, judged = _read_values(run, RUN, "score"), _read_values(qrels, QRELS, "relevance")
    # Those that stand for no item have no number.
    is_item = ~scored["item"].str.startswith(NO_ITEM).to_numpy(bool)
    if judged["item"].str.startswith(NO_ITEM).any():
        raise ValueError(f"{qrels} needs to judge items (got '{NO_ITEM}', which stands for none)")
    user_ids, (user, judged_user) = number_texts([scored["user"], judged["user"]])
    item_ids, (listed, judged_item) = number_texts([scored["item"][is_item], judged["item"]])
    item = torch.full_like(user, -1).masked_scatter_(torch.from_numpy(is_item), listed)
    score, relevance = (torch.from_numpy(x["value"].to_numpy(copy=True)) for x in (scored, judged))
    edges, num_items = torch.stack([judged_user, judged_item]), len(item_ids)
    truth, weight = coalesce_truth(edges, relevance, num_items, level)
    lists, ranks = _rank(user, item, score, truth, len(user_ids), num_items)
    judged_users = judged_user.unique()
    return {
        "truth": truth,
        "num_users": len(user_ids),
        "weight": None if weight is None or bool((weight == 1).all()) else weight,
        "lists": lists,
        "user_ids": tuple(map(str, user_ids)),
        "item_ids": tuple(map(str, item_ids)),
        "users": judged_users if judged_users.numel() < len(user_ids) else None,
        **ranks._asdict(),
    }


def _rank(
    user: Tensor, item: Tensor, score: Tensor, truth: Tensor, num_users: int, num_items: int
) -> tuple[Lists, Ranks]:
    """Returns the list of every user by score, and where the truth stands in it."""
    # The first place of a user is that of what is no item.
    key, order = (user * (num_items + 1) + item + 1).sort()
    user, item = user[order], item[order]
    listed = ranks_within_rows(user, score[order])
    best = lexsort([listed.rank, user])
    wanted = truth[0] * (num_items + 1) + truth[1] + 1
    place = torch.searchsorted(key, wanted).clamp_(max=key.numel() - 1)
    is_listed = key[place] == wanted
    ranks = (
        torch.where(is_listed, known[place], beyond)
        for known, beyond in zip(listed, Ranks.unknown(wanted), strict=True)
    )
    return Lists(item[best], index2ptr(user[best], num_users)), Ranks(*ranks)


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
        is_comment = argument == "user_ids" and name.startswith("#")
        if not _FIELD.fullmatch(name) or name.startswith(NO_ITEM) or is_comment:
            raise ValueError(
                f"'{argument}' needs to hold names without spaces to be exported, and no user that "
                f"begins with '#' (got {name!r})"
            )
    if repeated := [name for name, times in Counter(words).items() if times > 1]:
        raise ValueError(f"'{argument}' needs to hold each name once (got {repeated[0]!r} again)")


def _name(number: int, names: Names) -> str:
    return str(number if names is None else names[number])
