"""Several processes that rank together, each its share of the users.

Nothing needs to be switched on: where a process group of :mod:`torch.distributed` is initialised,
:func:`~pyg_recmetrics.rank` (and so :func:`~pyg_recmetrics.evaluate`) is called by all of its
processes, with the same task and the same recommender, and returns the same to all of them. If it
raises in one process, it raises in all. :func:`alone` is for a process that shall not wait for the
others.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_is_alone: ContextVar[bool] = ContextVar("_is_alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Lets this process rank all users by itself, whatever process group there is.

    For what only one process evaluates, as in `if torch.distributed.get_rank() == 0:`.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, distributed, evaluate
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> with distributed.alone():
        ...     evaluate(torch.tensor([0.1, 0.2, 0.3]), task, "recall@1")["recall@1"]
        0.5
    """
    token = _is_alone.set(True)
    try:
        yield
    finally:
        _is_alone.reset(token)


def num_processes() -> int:
    """How many processes rank together."""
    if _is_alone.get() or not (dist.is_available() and dist.is_initialized()):
        return 1
    return dist.get_world_size()


def process_index() -> int:
    """Which of the processes this is."""
    return dist.get_rank() if num_processes() > 1 else 0


def share(users: Tensor) -> Tensor:
    """Returns the users that this process ranks: every n-th, so that all have much to do."""
    return users[process_index() :: num_processes()]


def warn(message: str, stacklevel: int) -> None:
    """Warns, in one of the processes."""
    if process_index() == 0:
        warnings.warn(message, stacklevel=stacklevel + 1)


@contextmanager
def fail_together(device: torch.device) -> Iterator[None]:
    """All processes leave with an error if one of them does: none waits for it in vain."""
    try:
        yield
    except BaseException as error:
        _exchange(error, device)
        raise
    _exchange(None, device)


def check_same(*values: Tensor | int) -> None:
    """Raises if the processes do not agree on integers, before they combine what differs."""
    if num_processes() == 1:
        return
    seen = _fingerprint(values)
    bounds = torch.tensor([seen, -seen], device=_device(values))
    _all_reduce(bounds, dist.ReduceOp.MIN)
    lowest, highest = bounds.tolist()
    if lowest != -highest:
        raise ValueError(
            "'task' and all other arguments need to be the same in every process (got different "
            "ones); a process evaluates by itself within 'pyg_recmetrics.distributed.alone()'"
        )


def combine(values: Tensor, *, largest: bool) -> None:
    """Replaces integers by the largest, or the smallest, that any process has in their place."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MAX if largest else dist.ReduceOp.MIN)


def _device(values: tuple[Tensor | int, ...]) -> torch.device:
    return next(value.device for value in values if isinstance(value, Tensor))


def _fingerprint(values: tuple[Tensor | int, ...]) -> int:
    """A number that, in all likelihood, is another one for other values."""
    total = 0
    for value in values:
        numbers = value.flatten() if isinstance(value, Tensor) else torch.tensor([value])
        place = torch.arange(1, numbers.numel() + 1, device=numbers.device)
        mixed = (numbers + 1_000_003) * (2 * place + 1)
        total = (total * 1_000_003 + int(mixed.sum()) + numbers.numel()) % 2**61
    return total


def _exchange(error: BaseException | None, device: torch.device) -> None:
    """Tells the others whether something is wrong here, and raises if it is with them."""
    if num_processes() == 1:
        return
    failing = torch.tensor(num_processes() if error is None else process_index(), device=device)
    _all_reduce(failing, dist.ReduceOp.MIN)
    source = int(failing)
    if source == num_processes():
        return
    message = _broadcast("" if error is None else _describe(error), source, device)
    if error is None:
        raise RuntimeError(f"process {source} of {num_processes()} could not rank: {message}")


def _describe(error: BaseException) -> str:
    notes: list[str] = getattr(error, "__notes__", [])
    return " ".join([f"{type(error).__name__}: {error}", *notes])


def _broadcast(message: str, source: int, device: torch.device) -> str:
    encoded = torch.tensor(list(message.encode()), dtype=torch.uint8, device=device)
    size = torch.tensor(encoded.numel(), device=device)
    dist.broadcast(size, source)
    if source != process_index():
        encoded = torch.empty(int(size), dtype=torch.uint8, device=device)
    dist.broadcast(encoded, source)
    return bytes(encoded.tolist()).decode()


def _all_reduce(values: Tensor, operation: Any) -> None:
    try:
        dist.all_reduce(values, operation)
    except RuntimeError as error:
        raise RuntimeError(
            "a process ended while others ranked, or did not come along within the timeout of "
            "the process group"
        ) from error
