"""What processes send each other: numbers, combined or gathered over all of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pyg_recmetrics.processes.group import num_processes
from pyg_recmetrics.processes.watch import Watch, current


def take_largest(values: Tensor) -> None:
    """Replaces each element by the largest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MAX)


def take_smallest(values: Tensor) -> None:
    """Replaces each element by the smallest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MIN)


def take_sum(values: Tensor) -> None:
    """Replaces each element by its sum over all processes."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.SUM)


def gather(values: Tensor) -> Tensor:
    """Returns what all processes have, one after the other: `[num_of_all, ...]`.

    Args:
        values (torch.Tensor): What this process has, of shape `[num_own, ...]`. All but the first
            dimension have the same size in every process.
    """
    if num_processes() == 1:
        return values
    size = torch.tensor([values.size(0)], device=values.device)
    sizes = torch.cat(gather_parts(size, [1] * num_processes())).tolist()
    return torch.cat(gather_parts(values, sizes))


def gather_parts(values: Tensor, sizes: list[int]) -> list[Tensor]:
    """Returns what each process has, if all processes know how much that is.

    As not all backends can send parts of different size, each is sent as the longest of them.

    Args:
        values (torch.Tensor): What this process has, of shape `[num_own, ...]`.
        sizes (list of int): The first dimension of what each process has.
    """
    if num_processes() == 1 or max(sizes) == 0:
        return [values] * len(sizes)
    padded = values.new_zeros(max(sizes), *values.shape[1:])
    padded[: values.size(0)] = values
    sent = _as_sent(padded)
    received = [torch.empty_like(sent) for _ in sizes]
    _run(lambda: dist.all_gather(received, sent, async_op=True))
    return [part[:size].to(values.device) for part, size in zip(received, sizes, strict=True)]


def broadcast(values: Tensor, source: int) -> None:
    """Overwrites `values` by those of one process."""
    sent = _as_sent(values)
    _run(lambda: dist.broadcast(sent, source, async_op=True))
    if sent is not values:
        values.copy_(sent)


def _all_reduce(values: Tensor, operation: Any) -> None:
    """Combines `values` of all processes in place."""
    sent = _as_sent(values)
    _run(lambda: dist.all_reduce(sent, operation, async_op=True))
    if sent is not values:
        values.copy_(sent)


def _as_sent(values: Tensor) -> Tensor:
    """Returns values where the process group can send them from."""
    if values.device.type == "cpu" and dist.get_backend() == "nccl":
        return values.to(torch.device("cuda", torch.cuda.current_device()))
    return values.contiguous()


def _run(start: Callable[[], Any]) -> None:
    """Lets all processes do something together, and raises if one of them cannot."""
    watch = current.get()
    with _naming_who_has_gone(watch):
        work = start()
    if watch is not None:
        watch.wait(work.is_completed)
    with _naming_who_has_gone(watch):
        work.wait()


@contextmanager
def _naming_who_has_gone(watch: Watch | None) -> Iterator[None]:
    """Says who has gone if processes cannot reach each other."""
    try:
        yield
    except RuntimeError as error:
        known = None if watch is None else watch.search()
        if known is None:
            known = (
                f"a process ended while others ranked, or did not join them within the timeout of "
                f"the process group: {error}"
            )
        raise RuntimeError(known) from error
