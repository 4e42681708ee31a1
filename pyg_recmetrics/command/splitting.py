"""The subcommand `split`."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from pyg_recmetrics import transforms
from pyg_recmetrics.command import notes
from pyg_recmetrics.command.notes import note
from pyg_recmetrics.command.reading import TableFile, find_column, read_table
from pyg_recmetrics.files import replacing
from pyg_recmetrics.messages import warn

_SPLITS: dict[str, Any] = {
    "per-user": transforms.PerUserSplit,
    "leave-last-out": transforms.LeaveLastOut,
    "temporal": transforms.TemporalSplit,
}

_PARTS = ("train", "val", "test")


def split(options: argparse.Namespace) -> int:
    """Divides the rows of a file into training, validation and test, and prints a report."""
    path: Path = options.interactions
    notes.remember_file("data", path)
    make_split = _split_of(options)
    table = read_table(path, options.columns)
    data = _graph(table, options)
    num_rows = data["user", "to", "item"].num_edges
    parts = make_split(data if options.k_core is None else transforms.KCore(options.k_core)(data))
    part_of = _part_of_rows(parts, num_rows)
    suffix = "".join(s for s in path.suffixes if s.lower() != ".gz")
    # Validation may be empty, and is then no file.
    paths = {
        part: options.output / f"{name}{suffix}"
        for part, name in enumerate(_PARTS)
        if (part_of == part).any()
    }
    for part_path in paths.values():
        notes.check_output(part_path, [path])
    options.output.mkdir(parents=True, exist_ok=True)
    for part, part_path in paths.items():
        with replacing(part_path) as file:
            table.write(part_of == part, file)
    note(f"wrote {', '.join(map(str, paths.values()))}")
    if num_left_out := int((part_of < 0).sum()):
        why = "their user has the item in an earlier file"
        why += ", or there are too few others for --k-core" if options.k_core else ""
        note(f"{num_left_out:,} of {len(part_of):,} rows are in none of these files: {why}")
    report = transforms.check_split(*parts)
    notes.print_result(report, asdict(report) | {"has_leaks": report.has_leaks}, options)
    return notes.DONE


def _split_of(options: argparse.Namespace) -> Any:
    if options.how == "temporal" and options.seed is not None:
        raise ValueError("--seed needs a split at random, which --how temporal is not")
    make = _SPLITS[options.how]
    return make(**notes.same_options(make, options))


def _graph(table: TableFile, options: argparse.Namespace) -> HeteroData:
    """Returns the graph of all rows."""
    more = ["time"] if _has_times(table, options) else []
    frame = table.read(options, *more)
    edges = [pd.factorize(frame[what])[0] for what in ("user", "item")]
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = (int(part.max()) + 1 for part in edges)
    store = data["user", "to", "item"]
    store.edge_index = torch.from_numpy(np.stack(edges))
    # Labels follow the edges into the truth. Zero would say that an edge is none.
    store.edge_label = torch.arange(1, store.edge_index.size(1) + 1)
    if more:
        store.time = torch.tensor(frame["time"].to_numpy())
    return data


def _has_times(table: TableFile, options: argparse.Namespace) -> bool:
    """Returns whether times count, and warns if they would and there are none."""
    if options.how != "leave-last-out":
        return bool(options.how == "temporal")
    if options.time_column is not None or find_column(["time"], table.columns) is not None:
        return True
    warn(f"{table.path} has no column of times, so the last items of users are drawn at random")
    return False


def _part_of_rows(parts: tuple[HeteroData, ...], num_rows: int) -> NDArray[np.int64]:
    """Returns the part of every row; `-1` for rows in none."""
    part_of = np.full(num_rows, -1)
    for number, part in enumerate(parts):
        part_of[part["user", "to", "item"].edge_label.numpy() - 1] = number
    return part_of
