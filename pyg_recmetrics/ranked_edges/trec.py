"""Run and qrels files, as trec_eval and most tools of information retrieval read them.

A run has lines `user Q0 item rank score tag`, qrels have lines `user 0 item relevance`. The ids in
the files are strings. They are numbered, and the names are kept.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.files import replacing
from pyg_recmetrics.kernels.exact.ranks import ranks_in_ragged_lists
from pyg_recmetrics.ranked_edges.lists import Lists
from pyg_recmetrics.ranked_edges.sources import RankedTruth
from pyg_recmetrics.ranked_edges.trec_lines import Lines, read_files
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
