"""Who ranks together: how many processes there are, what falls to each, and what they exchange."""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")

#: Whether this build of torch can let processes talk to each other.
_IS_AVAILABLE = dist.is_available()

#: Whether this process ranks by itself, see :func:`pyg_recmetrics.distributed.alone`.
_is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)


@contextmanager
def on_its_own() -> Iterator[None]:
    """Lets this process do something without the others."""
    token = _is_alone.set(True)
    try:
        yield
    finally:
        _is_alone.reset(token)


def num_processes() -> int:
    """Returns the number of processes that rank together."""
    if _is_alone.get() or not _IS_AVAILABLE or not dist.is_initialized():
        return 1
    return dist.get_world_size()


def process_index() -> int:
    """Returns the index of this process among those that rank together."""
    return dist.get_rank() if num_processes() > 1 else 0


def share(users: Tensor) -> Tensor:
    """Returns the users that this process ranks: every n-th, so that all have equal work."""
    size = num_processes()
    return users if size == 1 else users[process_index() :: size]


def collect(value: T) -> list[T]:
    """Returns the object of every process, in the order of processes. All of them call this.

    Args:
        value: What this process has, which can be pickled. Tensors need to be on the CPU, as each
            process has devices of its own.
    """
    if num_processes() == 1:
        return [value]
    values: list[Any] = [None] * num_processes()
    dist.all_gather_object(values, value)
    return values


def fail_together() -> AbstractContextManager[None]:
    """Raises in every process if the block raises in one, so that no process waits in vain."""
    return _failing_together() if num_processes() > 1 else nullcontext()


@contextmanager
def _failing_together() -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # the others wait for this process, whatever happens to it
        with suppress(RuntimeError):  # of a group that has ended: its own error says more
            collect(f"{_name()} could not rank: {_describe(error)}")
        raise
    if told := next(filter(None, collect("")), None):
        raise RuntimeError(told)


def _name() -> str:
    """Returns this process in words."""
    return f"process {process_index()} of {num_processes()} on {socket.gethostname()}"


def _describe(error: BaseException) -> str:
    """The type, the message and the notes of an error, in one line."""
    notes: list[str] = getattr(error, "__notes__", [])
    try:
        message = str(error)
    except Exception:  # the processes need to end, whatever the error says
        message = "(without a message that can be read)"
    return " ".join([f"{type(error).__name__}: {message}", *map(str, notes)])
