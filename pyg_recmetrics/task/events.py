"""Reads events of a temporal graph: who was connected to what, and when."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from pyg_recmetrics.checks import (
    check_boolean,
    check_device,
    check_ids,
    check_integers,
    check_num_pairs,
)
from pyg_recmetrics.inputs import TensorLike, as_tensor
from pyg_recmetrics.kernels.entries import spread
from pyg_recmetrics.task.queries import RowNumbers


class Events(NamedTuple):
    """Queries at a moment, with what their source saw before.

    Attributes:
        rows: The source and the moment of each query, of shape `[num_queries, 2]`.
        truth: The queries over the destinations at their moment, of shape `[2, num_edges]`.
        seen: The queries over the destinations strictly before, each of them once.
    """

    rows: Tensor
    truth: Tensor
    seen: Tensor


def read_events(
    src: TensorLike,
    dst: TensorLike,
    t: TensorLike,
    is_test: TensorLike,
    *,
    num_items: int,
    repeats: bool,
) -> Events:
    """Reads events in any order. Memory is that of the edges that are left out.

    Raises:
        TypeError: If `repeats` is not a boolean, or events do not hold numbers.
        ValueError: If shapes, dtypes or devices do not fit, ids are out of range, or there is no
            event to rank.
    """
    source, item, time = _read_columns(src, dst, t, num_items)
    is_asked = _read_mask(is_test, source)
    sources, source = source.unique(return_inverse=True)
    moments, moment = time.unique(return_inverse=True)
    check_num_pairs("src", sources.numel(), num_items)
    # What a source is connected to is seen from the first time on.
    pairs, pair = (source * num_items + item).unique(return_inverse=True)
    first = scatter(moment, pair, dim_size=pairs.numel(), reduce="min")
    if not check_boolean(repeats, "repeats"):
        is_asked = is_asked & (first[pair] == moment)
    if not bool(is_asked.any()):
        raise ValueError(
            "'is_test' needs to be true for an event"
            + ("" if repeats else " that is the first of its source and destination")
            + " (got none)"
        )
    source_of_pair = pairs.div(num_items, rounding_mode="floor")
    met, order = (source_of_pair * moments.numel() + first).sort()
    asked = RowNumbers([source[is_asked], moment[is_asked]])
    start_of_source = asked.rows[:, 0] * moments.numel()
    start = torch.searchsorted(met, start_of_source)
    end = torch.searchsorted(met, start_of_source + asked.rows[:, 1])
    query, place = spread(start, end - start)
    return Events(
        rows=torch.stack([sources[asked.rows[:, 0]], moments[asked.rows[:, 1]]], dim=1),
        truth=torch.stack([asked.number, item[is_asked]]),
        seen=torch.stack([query, pairs[order[place]] % num_items]),
    )


def _read_columns(
    src: TensorLike, dst: TensorLike, t: TensorLike, num_items: int
) -> tuple[Tensor, Tensor, Tensor]:
    source, item, time = (
        check_integers(value, name) for name, value in (("src", src), ("dst", dst), ("t", t))
    )
    for name, column in (("src", source), ("dst", item), ("t", time)):
        if column.dim() != 1 or column.numel() != source.numel():
            raise ValueError(
                f"'{name}' needs to have shape [num_events], as 'src' has it "
                f"(got {list(column.shape)})"
            )
        check_device(column, name, source.device, "src")
    if source.numel() and int(source.min()) < 0:
        raise ValueError(f"'src' needs to hold no negative numbers (got {int(source.min())})")
    check_ids(item, "dst", "item", num_items)
    return source, item, time


def _read_mask(is_test: TensorLike, source: Tensor) -> Tensor:
    mask = as_tensor(is_test, "is_test")
    if mask.dtype != torch.bool or mask.shape != source.shape:
        raise ValueError(
            f"'is_test' needs to be a mask of shape {list(source.shape)} (got {mask.dtype}, "
            f"{list(mask.shape)})"
        )
    check_device(mask, "is_test", source.device, "src")
    return mask
