"""Run and qrels files, as trec_eval and most tools of information retrieval read them.

A run has lines `user Q0 item rank score tag`, qrels have lines `user 0 item relevance`. The ids in
the files are strings. They are numbered, and the names are kept.
"""

import csv
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import lexsort

from pyg_recmetrics.checks import check_finite_number
from pyg_recmetrics.kernels.exact.ranks import Ranks, ranks_within_rows
from pyg_recmetrics.ranked_edges.lists import Lists
from pyg_recmetrics.ranked_edges.sources import RankedTruth
from pyg_recmetrics.task.data_frames import number_texts
from pyg_recmetrics.task.edges import coalesce_truth
from pyg_recmetrics.utils import reading

#: The fields of a line. Trailing fields are ignored.
RUN = ("user", "Q0", "item", "rank", "score", "tag")
QRELS = ("user", "0", "item", "relevance")

#: How a number is written. Python also reads others, which no other tool does.
NUMBER = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"


def read_lines(file: IO[bytes], fields: tuple[str, ...]) -> pd.DataFrame:
    """Returns the fields of all lines as text, with the number of the line before as index.

    As in trec_eval, a line that begins with `#` is a comment, and further fields are ignored.

    Raises:
        ValueError: If there is no line, or one has too few fields or is not text in UTF-8.
    """
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


def _check_lines(lines: pd.DataFrame, is_wrong: Any, wanted: str) -> None:
    """Raises for the first line that is wrong."""
    if np.any(is_wrong):
        row = int(np.argmax(is_wrong))
        raise ValueError(
            f"line {lines.index[row] + 1} needs to be '{' '.join(lines.columns)}' with {wanted} "
            f"(got {' '.join(lines.iloc[row])!r:.80})"
        )


def _read_values(path: str | Path, fields: tuple[str, ...], name: str) -> pd.DataFrame:
    """Returns the user, the item and the finite number of every line, each pair once."""
    with reading(path) as file:
        lines = read_lines(file, fields)
        texts = lines[name].where(lines[name].str.fullmatch(NUMBER), "nan")
        values = texts.to_numpy(object).astype(np.float64)
        _check_lines(lines, ~np.isfinite(values), f"a finite {name}")
        _check_lines(lines, lines.duplicated(["user", "item"]), "each item of a user once")
    return lines[["user", "item"]].assign(value=values)


def read(run: str | Path, qrels: str | Path, level: float | None) -> RankedTruth:
    """Reads a run and its qrels, in memory for as many numbers as there are lines.

    Raises:
        OSError: If a file cannot be opened.
        ValueError: If a file is empty, a line does not have its form or repeats an item, or `level`
            is not positive.
    """
    if level is not None and check_finite_number(level, "level") <= 0:
        raise ValueError(f"'level' needs to be positive (got {level!r})")
    scored, judged = _read_values(run, RUN, "score"), _read_values(qrels, QRELS, "relevance")
    user_ids, (user, judged_user) = number_texts([scored["user"], judged["user"]])
    item_ids, (item, judged_item) = number_texts([scored["item"], judged["item"]])
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
    key, order = (user * num_items + item).sort()
    user, item = user[order], item[order]
    listed = ranks_within_rows(user, score[order])
    best = lexsort([listed.rank, user])
    wanted = truth[0] * num_items + truth[1]
    place = torch.searchsorted(key, wanted).clamp_(max=key.numel() - 1)
    is_listed = key[place] == wanted
    ranks = (
        torch.where(is_listed, known[place], beyond)
        for known, beyond in zip(listed, Ranks.unknown(wanted), strict=True)
    )
    return Lists(item[best], index2ptr(user[best], num_users)), Ranks(*ranks)
