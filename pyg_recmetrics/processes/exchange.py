"""What processes send each other: numbers, combined or collected over all of them."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pyg_recmetrics.processes.group import num_processes, process_index
from pyg_recmetrics.processes.watch import current


def take_largest(values: Tensor) -> None:
    """Replaces each element by the largest that any process has for it."""
    if num_processes() > 1:
        all_reduce(values, dist.ReduceOp.MAX)


def take_smallest(values: Tensor) -> None:
    """Replaces each element by the smallest that any process has for it."""
    if num_processes() > 1:
        all_reduce(values, dist.ReduceOp.MIN)


def add_up(values: Tensor) -> None:
    """Replaces each element by the sum of those of all processes."""
    if num_processes() > 1:
        all_reduce(values, dist.ReduceOp.SUM)


def collect(values: Tensor) -> list[Tensor]:
    """Returns the values of every process, of which each may have another number of rows."""
    if num_processes() == 1:
        return [values]
    num_rows = _of_each_process(values.size(0), values.device)
    collected = []
    for source, num in enumerate(num_rows):
        is_own = source == process_index()
        part = values if is_own else values.new_empty(num, *values.shape[1:])
        collected.append(from_process(source, part))
    return collected


def collect_parts(values: Tensor, num_rows: list[int], group: Any = None) -> Tensor:
    """Returns the values of every process, one after the other: `[sum(num_rows), ...]`.

    All processes know how many rows each of them has. Each sends as many as the one with the most,
    since not all groups can send parts of different sizes.

    Args:
        values (torch.Tensor): What this process has, of shape `[num_own, ...]`.
        num_rows (list of int): How many rows each process has.
        group (torch.distributed.ProcessGroup, optional): Some of the processes.
            (default: `None`, all of them)
    """
    most = max(num_rows)
    if len(num_rows) == 1 or most == 0:
        return values
    padded = values.new_zeros(most, *values.shape[1:])
    padded[: values.size(0)] = values
    sent = where_sent(padded, group)
    received = [torch.empty_like(sent) for _ in num_rows]
    run(lambda: dist.all_gather(received, sent, group=group, async_op=True))
    parts = [part[:num] for part, num in zip(received, num_rows, strict=True)]
    return torch.cat(parts).to(values.device)


def collect_objects(value: Any, device: torch.device) -> list[Any]:
    """Returns the object of every process, which can be pickled."""
    content = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8).to(device)
    return [pickle.loads(bytes(part.tolist())) for part in collect(content)]


def from_process(source: int, values: Tensor) -> Tensor:
    """Returns the values of one process; others give a tensor of the same shape."""
    sent = where_sent(values)
    run(lambda: dist.broadcast(sent, source, async_op=True))
    return sent.to(values.device)


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
    num_sent = where_sent(torch.bincount(receiver, minlength=size))
    num_received = torch.empty_like(num_sent)
    run(lambda: dist.all_to_all_single(num_received, num_sent, async_op=True))
    sent = where_sent(values[order])
    received = sent.new_empty(int(num_received.sum()), *values.shape[1:])
    sizes = num_received.tolist(), num_sent.tolist()
    run(lambda: dist.all_to_all_single(received, sent, *sizes, async_op=True))
    sender = torch.arange(size, device=num_sent.device).repeat_interleave(num_received)
    return received.to(values.device), sender.to(values.device)


def _of_each_process(number: int, device: torch.device) -> list[int]:
    """Returns the number that each process has."""
    own = torch.tensor([number], device=device)
    return list(map(int, collect_parts(own, [1] * num_processes()).tolist()))


def run(start: Callable[[], Any]) -> None:
    """Lets all processes do something together, and raises if one of them has gone.

    Args:
        start (callable): Starts it, as an operation of :mod:`torch.distributed` with
            `async_op=True`.
    """
    watch = current.get()
    with naming_the_end():
        work = start()
    if watch is not None:
        watch.wait(work.is_completed)
    with naming_the_end():
        work.wait()


@contextmanager
def naming_the_end() -> Iterator[None]:
    """Says who has gone if processes cannot reach each other."""
    try:
        yield
    except RuntimeError as error:
        watch = current.get()
        known = None if watch is None else watch.search()
        if known is None:
            known = (
                f"a process ended while others ranked, or did not join them within the timeout of "
                f"the process group: {error}"
            )
        raise RuntimeError(known) from error


def all_reduce(values: Tensor, operation: Any, group: Any = None) -> None:
    """Combines `values` of the processes of a group, by default of all, in place."""
    sent = where_sent(values, group)
    run(lambda: dist.all_reduce(sent, operation, group=group, async_op=True))
    if sent is not values:
        values.copy_(sent)


def where_sent(values: Tensor, group: Any = None) -> Tensor:
    """Returns values where a process group can send them from. By default, it is that of all."""
    if values.device.type == "cpu" and dist.get_backend(group) == "nccl":
        return values.to(torch.device("cuda", torch.cuda.current_device()))
    return values.contiguous()
