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

If the task is too large for a process, each is given a share of it: see `is_share` of
:class:`~pyg_recmetrics.RankingTask`.

While they rank, processes look at each other by way of the store of the process group. If one of
them ends or raises an error, the others stop after the chunk that they rank, and say which process
it was, on which host, and why. Within :func:`timeout`, they wait for more or less time for a
process that does not get on.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyg_recmetrics.checks import check_finite_number
from pyg_recmetrics.processes import on_its_own, timeout_in_seconds

__all__ = ["alone", "timeout"]


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
    with on_its_own():
        yield


@contextmanager
def timeout(seconds: float) -> Iterator[None]:
    """Sets how long processes wait for one that does not get on, which they then name.

    A process gets on while it joins the others, and while it ranks one chunk after the other. By
    default, it may take 600 seconds for a chunk, or to join. Whether it has ended is known within
    seconds in any case. The timeout of the process group counts, too.

    Args:
        seconds (float): The number of seconds.

    Raises:
        TypeError: If `seconds` is not a number.
        ValueError: If it is not positive.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, distributed, evaluate
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> with distributed.timeout(3600):  # for a model that takes half an hour for a chunk
        ...     evaluate(torch.tensor([0.1, 0.2, 0.3]), task, "recall@1")["recall@1"]
        0.5
    """
    seconds = check_finite_number(seconds, "seconds")
    if seconds <= 0:
        raise ValueError(f"'seconds' needs to be a positive number (got {seconds:g})")
    token = timeout_in_seconds.set(seconds)
    try:
        yield
    finally:
        timeout_in_seconds.reset(token)
