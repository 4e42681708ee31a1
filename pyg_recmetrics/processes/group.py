"""Who ranks together: how many processes there are, and what falls to each."""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

import torch.distributed as dist
from torch import Tensor

#: Whether this build of torch can let processes talk to each other.
_IS_AVAILABLE = dist.is_available()

#: Whether this process ranks by itself, see :func:`pyg_recmetrics.distributed.alone`.
is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)

#: For how many seconds processes wait for one that does not get on, see
#: :func:`pyg_recmetrics.distributed.timeout`.
timeout_in_seconds: ContextVar[float] = ContextVar("timeout_in_seconds", default=600.0)


def on_its_own(alone: bool = True) -> AbstractContextManager[None]:
    """Lets this process do something without the others."""
    return _alone() if alone else nullcontext()


@contextmanager
def _alone() -> Iterator[None]:
    token = is_alone.set(True)
    try:
        yield
    finally:
        is_alone.reset(token)


def num_processes() -> int:
    """Returns the number of processes that rank together."""
    if is_alone.get() or not _IS_AVAILABLE or not dist.is_initialized():
        return 1
    return dist.get_world_size()


def process_index() -> int:
    """Returns the index of this process among those that rank together."""
    return dist.get_rank() if num_processes() > 1 else 0


def name_of_process() -> str:
    """Returns this process in words."""
    return f"process {process_index()} of {num_processes()} on {socket.gethostname()}"


def share(users: Tensor) -> Tensor:
    """Returns the users that this process ranks: every n-th, so that all have equal work."""
    return shares(users)[process_index()]


def shares(users: Tensor) -> list[Tensor]:
    """Returns the users that each process ranks."""
    size = num_processes()
    return [users] if size == 1 else [users[first::size] for first in range(size)]
