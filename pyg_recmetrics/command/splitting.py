"""The subcommand `split`."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from pyg_recmetrics import transforms
from pyg_recmetrics.command import exits
from pyg_recmetrics.command.columns import find_column
from pyg_recmetrics.command.ids import Ids
from pyg_recmetrics.command.interactions import Interactions, read_interactions
from pyg_recmetrics.command.notes import note, remember_file
from pyg_recmetrics.command.output import print_result
from pyg_recmetrics.command.tables import open_table
from pyg_recmetrics.messages import warn

_SPLITS: dict[str, Any] = {
    "per-user": transforms.PerUserSplit,
    "leave-last-out": transforms.LeaveLastOut,
    "temporal": transforms.TemporalSplit,
}

_PARTS = ("train", "val", "test")

#: An attribute of edges that says in which row of the file each stands.
_ROW = "edge_row"


def split(options: argparse.Namespace) -> int:
    """Divides the rows of a file into training, validation and test, and prints a report."""
    path: Path = options.interactions
    remember_file("data", path)
    make_split = _split_of(options)
    table, users, items = open_table(path, options.columns), Ids(), Ids()
    with_time = options.how == "temporal" or (
        options.how == "leave-last-out"
        and (options.time_column or find_column(["time"], table.columns)) is not None
    )
    if options.how == "leave-last-out" and not with_time:
        warn(f"{path} has no column of times, so the last items of users are drawn at random")
    read = read_interactions(path, users, items, options, with_time=with_time)
    parts = make_split(_graph(read, users, items, options.k_core))
    part_of = _part_of_rows(parts, read.edges.size(1))
    options.output.mkdir(parents=True, exist_ok=True)
    suffix = "".join(s for s in path.suffixes if s.lower() != ".gz")
    # Validation may be empty, and is then no file.
    kept = [name for part, name in enumerate(_PARTS) if bool((part_of == part).any())]
    paths = [options.output / f"{name}{suffix}" for name in kept]
    if path.resolve() in [part_path.resolve() for part_path in paths]:
        raise ValueError(f"{path}: --output needs to be another folder, as this file is read")
    table.divide(_numbered_anew(part_of).tolist(), paths)
    note(f"wrote {', '.join(map(str, paths))}")
    if num_left_out := int((part_of < 0).sum()):
        why = "their user has the item in an earlier file"
        why += ", or there are too few others for --k-core" if options.k_core else ""
        note(f"{num_left_out:,} of {part_of.numel():,} rows are in none of these files: {why}")
    report = transforms.check_split(*parts)
    print_result(report, asdict(report) | {"has_leaks": report.has_leaks}, options)
    return exits.DONE


def _split_of(options: argparse.Namespace) -> Any:
    given = {"num_val": options.val, "num_test": options.test, "seed": options.seed}
    if options.how == "temporal" and options.seed is not None:
        raise ValueError("--seed needs a split at random, which --how temporal is not")
    arguments = {name: value for name, value in given.items() if value is not None}
    return _SPLITS[options.how](**arguments)


def _graph(read: Interactions, users: Ids, items: Ids, k_core: int | None) -> HeteroData:
    """Returns the graph of all rows, without those that a k-core leaves out."""
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = len(users), len(items)
    store = data["user", "to", "item"]
    store.edge_index = read.edges
    store[_ROW] = torch.arange(read.edges.size(1))
    # Labels follow the edges into the truth. Zero would say that an edge is none.
    store.edge_label = store[_ROW] + 1
    if read.time is not None:
        store.time = read.time
    return data if k_core is None else transforms.KCore(k_core)(data)


def _part_of_rows(parts: tuple[HeteroData, ...], num_rows: int) -> Tensor:
    """Returns the part of every row; `-1` for rows in none."""
    part_of = torch.full((num_rows,), -1)
    train, *later = (part["user", "to", "item"] for part in parts)
    part_of[train[_ROW]] = 0
    for number, store in enumerate(later, start=1):
        part_of[store.edge_label - 1] = number
    return part_of


def _numbered_anew(part_of: Tensor) -> Tensor:
    """Returns the parts numbered without gaps, where one of them has no rows."""
    numbers = part_of[part_of >= 0].unique()
    return torch.where(part_of < 0, part_of, torch.searchsorted(numbers, part_of))
