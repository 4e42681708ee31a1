"""Who ranks together: how many processes there are, and what falls to each."""

from contextvars import ContextVar

import torch.distributed as dist
from torch import Tensor

#: Whether this process ranks by itself, see :func:`pyg_recmetrics.distributed.alone`.
is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)


def num_processes() -> int:
    """Returns the number of processes that rank together."""
    if is_alone.get() or not (dist.is_available() and dist.is_initialized()):
        return 1
    return dist.get_world_size()


def process_index() -> int:
    """Returns the index of this process among those that rank together."""
    return dist.get_rank() if num_processes() > 1 else 0


def share(users: Tensor) -> Tensor:
    """Returns the users that this process ranks: every n-th, so that all have equal work."""
    number = num_processes()
    return users if number == 1 else users[process_index() :: number]
