"""Processes that hold the parts of one table, and what they combine while they rank."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.processes.exchange import all_reduce, collect_parts
from pyg_recmetrics.processes.group import num_processes, process_index
from pyg_recmetrics.processes.watch import Stopped, current


class Axis:
    """The processes that lie along one axis of a mesh, one of which is this one.

    All of them call the same methods in the same order. What a process fails to compute, it tells
    the others in the place of the numbers that they wait for, and all of them raise.

    Args:
        size (int): How many they are.
        index (int): Which of them this process is.
        group (torch.distributed.ProcessGroup, optional): The group that they form.
            (default: `None`, all processes)
    """

    def __init__(self, size: int = 1, index: int = 0, group: Any = None) -> None:
        self.size, self.index, self._group = size, index, group

    @classmethod
    def of_all(cls) -> "Axis":
        """Returns the axis of all processes that rank together."""
        return cls(num_processes(), process_index())

    def largest(self, compute: Callable[[], Tensor], like: Tensor) -> Tensor:
        """Returns the largest that any process has computed for each element.

        Args:
            compute (callable): Computes the numbers of this process.
            like (torch.Tensor): A tensor of their shape and type.
        """
        return self._combined(compute, like, dist.ReduceOp.MAX)

    def total(self, compute: Callable[[], Tensor], like: Tensor) -> Tensor:
        """Returns the sums of what all processes have computed. See :meth:`largest`."""
        return self._combined(compute, like, dist.ReduceOp.SUM)

    def gathered(self, compute: Callable[[], Tensor], like: Tensor) -> Tensor:
        """Returns the rows that all processes have computed, one after the other.

        Args:
            compute (callable): Computes the rows of this process, of any number.
            like (torch.Tensor): A tensor of their type, with as many columns.
        """
        if self.size == 1:
            return _looked(compute)
        rows, error = _attempt(compute, like[:0])
        num_rows = self.numbers(rows.size(0) if error is None else -1, like.device)
        _raise_if(error, is_elsewhere=min(num_rows) < 0)
        return self.collect(rows, num_rows)

    def collect(self, values: Tensor, num_rows: list[int]) -> Tensor:
        """Returns the rows that every process has, if all know how many that are."""
        return collect_parts(values, num_rows, self._group)

    def numbers(self, number: int, device: torch.device) -> list[int]:
        """Returns the number that every process has."""
        own = torch.tensor([number], device=device)
        return list(map(int, self.collect(own, [1] * self.size).tolist()))

    def _combined(self, compute: Callable[[], Tensor], like: Tensor, operation: Any) -> Tensor:
        if self.size == 1:
            return _looked(compute)
        values, error = _attempt(compute, like)
        # One more element says whether anybody has failed.
        sent = F.pad(values.flatten(), (0, 1), value=0 if error is None else 1)
        all_reduce(sent, operation, self._group)
        _raise_if(error, is_elsewhere=bool(sent[-1] > 0))
        return sent[:-1].view_as(like)


def _attempt(compute: Callable[[], Tensor], instead: Tensor) -> tuple[Tensor, BaseException | None]:
    """Returns what is computed, or something instead with the error that was raised."""
    try:
        return _looked(compute), None
    except BaseException as error:  # the others wait for this process, whatever happens to it
        return torch.zeros_like(instead), error


def _looked(compute: Callable[[], Tensor]) -> Tensor:
    """Computes something, unless another process has ended or raised an error.

    So those along an axis are told, in one place, of errors of processes elsewhere.
    """
    watch = current.get()
    if watch is not None:
        watch.look()
    return compute()


def _raise_if(error: BaseException | None, *, is_elsewhere: bool) -> None:
    if error is not None:
        raise error
    if is_elsewhere:
        raise Stopped("another process with a part of the same table could not go on")
