"""What processes send each other: numbers, combined over all of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch import Tensor

from pyg_recmetrics.processes.group import num_processes


def take_largest(values: Tensor) -> None:
    """Replaces each element by the largest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MAX)


def take_smallest(values: Tensor) -> None:
    """Replaces each element by the smallest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MIN)


def _all_reduce(values: Tensor, operation: Any) -> None:
    """Combines `values` of all processes in place."""
    with naming_the_end():
        dist.all_reduce(values, operation)


@contextmanager
def naming_the_end() -> Iterator[None]:
    """Says what happened if processes cannot reach each other."""
    try:
        yield
    except RuntimeError as error:
        raise RuntimeError(
            "a process ended while others ranked, or did not join them within the timeout of the "
            "process group"
        ) from error
