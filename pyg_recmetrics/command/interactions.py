"""Reads interactions: who has what, with ratings and times."""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.command.batches import Reals
from pyg_recmetrics.command.columns import choose_column, find_column
from pyg_recmetrics.command.ids import Ids, Numbers
from pyg_recmetrics.command.notes import note
from pyg_recmetrics.command.tables import Table, open_table, say_columns
from pyg_recmetrics.command.text import QRELS_COLUMNS


class Interactions(NamedTuple):
    """Interactions in the order of their rows.

    Attributes:
        edges: The numbers of users and items, of shape `[2, num_rows]`.
        rating: How relevant each item is; `None` if this is not read.
        time: When each took place; `None` if this is not read.
    """

    edges: Tensor
    rating: Tensor | None
    time: Tensor | None


def read_interactions(
    path: Path,
    users: Ids,
    items: Ids,
    options: argparse.Namespace,
    *,
    with_rating: bool = False,
    with_time: bool = False,
) -> Interactions:
    """Reads interactions by columns, some rows at a time, and adds new ids.

    Args:
        path (Path): The file.
        users (Ids): The numbers of users.
        items (Ids): The numbers of items.
        options (Namespace): The options that name columns.
        with_rating (bool, optional): Whether ratings are read. (default: `False`)
        with_time (bool, optional): Whether times are read. (default: `False`)

    Raises:
        ImportError: If a package is missing that reads this format.
        OSError: If the file cannot be opened.
        ValueError: If a column is missing, or a value is not what it needs to be.
    """
    table = open_table(path, options.columns)
    user, item = user_and_item(table, options)
    found = [("users", user), ("items", item)]
    rating = _column(table, "rating", options.rating_column) if with_rating else None
    time = _column(table, "time", options.time_column) if with_time else None
    found += [(what, name) for what, name in (("ratings", rating), ("times", time)) if name]
    say_columns(table, found)
    parts: list[tuple[Numbers, Numbers, Reals | None, Reals | None]] = [
        (
            batch.ids(user, users),
            batch.ids(item, items),
            None if rating is None else batch.reals(rating),
            None if time is None else batch.times(time),
        )
        for batch in table.batches([name for _, name in found])
    ]
    of_users, of_items, ratings, times = zip(*parts, strict=True)
    edges = torch.from_numpy(np.stack([np.concatenate(of_users), np.concatenate(of_items)]))
    return Interactions(edges, _joined(ratings), _joined(times))


def user_and_item(table: Table, options: argparse.Namespace) -> tuple[str, str]:
    """Returns the columns of users and of items.

    Raises:
        ValueError: If one of them is not found.
    """
    user = choose_column(table.path, "user", table.columns, options.user_column, "--user-column")
    item = choose_column(table.path, "item", table.columns, options.item_column, "--item-column")
    return user, item


def reads_ratings(path: Path, options: argparse.Namespace) -> bool:
    """Returns whether ratings of the truth count, and says so if they could and do not."""
    if options.rating_column is not None or options.threshold is not None:
        return True
    table = open_table(path, options.columns)
    if table.columns == QRELS_COLUMNS:
        return True
    if unused := find_column(["rating"], table.columns):
        note(
            f"{path}: {unused!r} is not used, so all rows are equally relevant; --rating-column "
            f"{unused} and --threshold use it"
        )
    return False


def _column(table: Table, what: str, given: str | None) -> str:
    return choose_column(table.path, what, table.columns, given, f"--{what}-column")


def _joined(parts: tuple[Any, ...]) -> Tensor | None:
    return None if parts[0] is None else torch.from_numpy(np.concatenate(parts))
