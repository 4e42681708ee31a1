"""The subcommand `split`."""

import argparse
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import HeteroData

from pyg_recmetrics import transforms
from pyg_recmetrics.command import notes
from pyg_recmetrics.command.notes import note
from pyg_recmetrics.command.reading import TableFile, read_table
from pyg_recmetrics.files import replacing
from pyg_recmetrics.messages import warn
from pyg_recmetrics.task.data_frames import find_column

_SPLITS: dict[str, Any] = {
    "per-user": transforms.PerUserSplit,
    "leave-last-out": transforms.LeaveLastOut,
    "temporal": transforms.TemporalSplit,
}


def split(options: argparse.Namespace) -> int:
    """Divides the rows of a file into training, validation and test, and prints a report."""
    if options.how == "temporal" and options.seed is not None:
        raise ValueError("--seed needs a split at random, which --how temporal is not")
    path = options.interactions
    notes.remember_file("data", path)
    make = _SPLITS[options.how]
    make_split = make(**notes.same_options(make, options))
    table = read_table(path, options.columns)
    has_times = options.time_column or find_column(table.data.column_names, "time") is not None
    if options.how == "leave-last-out" and not has_times:
        warn(f"{path} has no column of times, so the last items of users are drawn at random")
        make_split.time_attr = None
    data = _graph(table, options, bool(getattr(make_split, "time_attr", None)))
    parts = make_split(data if options.k_core is None else transforms.KCore(options.k_core)(data))
    suffix = "".join(s for s in path.suffixes if s.lower() != ".gz")
    # Validation may be empty, and is then no file.
    rows_of = {
        options.output / f"{name}{suffix}": part["user", "to", "item"].edge_label.numpy() - 1
        for name, part in zip(("train", "val", "test"), parts, strict=True)
        if part["user", "to", "item"].edge_label.numel()
    }
    for part_path in rows_of:
        notes.check_output(part_path, options)
    options.output.mkdir(parents=True, exist_ok=True)
    is_left_out = np.ones(table.data.num_rows, dtype=bool)
    for part_path, rows in rows_of.items():
        is_left_out[rows] = False
        with replacing(part_path) as file:
            table.write(np.isin(np.arange(len(is_left_out)), rows), file)
    note(f"wrote {', '.join(map(str, rows_of))}")
    if num_left_out := int(is_left_out.sum()):
        why = "their user has the item in an earlier file"
        why += ", or there are too few others for --k-core" if options.k_core else ""
        note(f"{num_left_out:,} of {len(is_left_out):,} rows are in none of these files: {why}")
    report = transforms.check_split(*parts)
    notes.print_result(report, asdict(report) | {"has_leaks": report.has_leaks}, options)
    return notes.DONE


def _graph(table: TableFile, options: argparse.Namespace, is_timed: bool) -> HeteroData:
    """Returns the graph of all rows."""
    frame = table.read(options, *(["time"] if is_timed else []))
    edges = [pd.factorize(frame[what])[0] for what in ("user", "item")]
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = (int(part.max()) + 1 for part in edges)
    store = data["user", "to", "item"]
    store.edge_index = torch.from_numpy(np.stack(edges))
    # Labels follow the edges into the truth. Zero would say that an edge is none.
    store.edge_label = torch.arange(1, store.edge_index.size(1) + 1)
    if is_timed:
        store.time = torch.tensor(frame["time"].to_numpy())
    return data
