"""Several processes that rank together, each its share of the users.

This needs no switch. If a process group of :mod:`torch.distributed` is initialised, all of its
processes call :func:`~pyg_recmetrics.rank` (or :func:`~pyg_recmetrics.evaluate`, which calls it)
with the same task and the same recommender. The call returns the same result in all processes. If
it raises in one process, it raises in all of them. Within :func:`alone`, a process ranks by itself
and does not wait for the others.

Before anything is ranked, processes compare what they have: the task and all options, embeddings by
their bytes, models by their state, and all others by what they say of a few users. What differs,
such as weights that were not synchronised, is an error in all processes. Embeddings that each
process computes by itself may differ in their last bits: broadcast them from one process.

Each process ranks its part of the users, and all of them exchange what they found. An error in one
process is raised in all once they have ranked their parts. If a process is killed, the others wait
for it until the timeout of the process group, unless `torchrun` ends them before.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyg_recmetrics.processes import is_alone

__all__ = ["alone"]
__dir__ = __all__.copy  # what completion shows


@contextmanager
def alone() -> Iterator[None]:
    """Lets this process rank all users by itself, even if there is a process group.

    Use it for an evaluation that only one process runs, such as one below
    `if torch.distributed.get_rank() == 0:`. Without it, that process would wait for the others.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, distributed, evaluate
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> with distributed.alone():
        ...     evaluate(torch.tensor([0.1, 0.2, 0.3]), task, "recall@1")["recall@1"]
        0.5
    """
    token = is_alone.set(True)
    try:
        yield
    finally:
        is_alone.reset(token)
