"""What processes send each other: numbers, combined over all of them."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pyg_recmetrics.processes.group import num_processes, process_index


def take_largest(values: Tensor) -> None:
    """Replaces each element by the largest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MAX)


def take_smallest(values: Tensor) -> None:
    """Replaces each element by the smallest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MIN)


def add_up(values: Tensor) -> None:
    """Replaces each element by the sum of those of all processes."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.SUM)


def collect(values: Tensor) -> list[Tensor]:
    """Returns the values of every process, of which each may have another number of rows."""
    if num_processes() == 1:
        return [values]
    values = values.contiguous()
    num_rows = _of_each_process(values.size(0), values.device)
    collected = []
    for source, num in enumerate(num_rows):
        is_own = source == process_index()
        part = values if is_own else values.new_empty(num, *values.shape[1:])
        with naming_the_end():
            dist.broadcast(part, source)
        collected.append(part)
    return collected


def collect_objects(value: Any, device: torch.device) -> list[Any]:
    """Returns the object of every process, which can be pickled."""
    content = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8).to(device)
    return [pickle.loads(bytes(part.tolist())) for part in collect(content)]


def deal(values: Tensor, receiver: Tensor) -> tuple[Tensor, Tensor]:
    """Sends each row to a process, and returns the rows that came, and from which process.

    Args:
        values (torch.Tensor): Rows of shape `[num_rows, num_columns]`.
        receiver (torch.Tensor): The process that each row goes to, of shape `[num_rows]`.
    """
    size = num_processes()
    if size == 1:
        return values, torch.zeros_like(receiver)
    order = receiver.argsort(stable=True)
    num_sent = torch.bincount(receiver, minlength=size)
    num_received = torch.empty_like(num_sent)
    with naming_the_end():
        dist.all_to_all_single(num_received, num_sent)
        received = values.new_empty(int(num_received.sum()), *values.shape[1:])
        dist.all_to_all_single(
            received, values[order].contiguous(), num_received.tolist(), num_sent.tolist()
        )
    sender = torch.arange(size, device=values.device).repeat_interleave(num_received)
    return received, sender


def _of_each_process(number: int, device: torch.device) -> list[int]:
    """Returns the number that each process has."""
    numbers = torch.zeros(num_processes(), dtype=torch.long, device=device)
    numbers[process_index()] = number
    add_up(numbers)
    listed: list[int] = numbers.tolist()
    return listed


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
