"""What processes that rank together tell each other: their shares, errors and results."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

#: A prime, and the bound of a fingerprint, which fits with its negative into 64 bits.
_FINGERPRINT_FACTOR = 1_000_003
_FINGERPRINT_MODULUS = 2**61

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
    return users[process_index() :: num_processes()]


@contextmanager
def fail_together(device: torch.device) -> Iterator[None]:
    """Raises in every process if the block raises in one, so that no process waits in vain."""
    try:
        yield
    except BaseException as error:
        _exchange(error, device)
        raise
    _exchange(None, device)


def check_same(*values: object) -> None:
    """Raises if values differ between processes. Call it before results are combined."""
    if num_processes() == 1:
        return
    fingerprint = _fingerprint(values)
    bounds = torch.tensor([fingerprint, -fingerprint], device=_device(values))
    _all_reduce(bounds, dist.ReduceOp.MIN)
    lowest, highest = bounds.tolist()
    if lowest != -highest:
        raise ValueError(
            "'data' and all other arguments need to be the same in every process; to evaluate in "
            "one process only, use 'pyg_recmetrics.distributed.alone()'"
        )


def take_largest(values: Tensor) -> None:
    """Replaces each element by the largest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MAX)


def take_smallest(values: Tensor) -> None:
    """Replaces each element by the smallest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MIN)


def _device(values: tuple[object, ...]) -> torch.device:
    """The device of the first tensor."""
    return next(value.device for value in values if isinstance(value, Tensor))


def _fingerprint(values: tuple[object, ...]) -> int:
    """A number that almost certainly differs between different values."""
    fingerprint = 0
    for value in values:
        numbers = _as_integers(value)
        position = torch.arange(1, numbers.numel() + 1, device=numbers.device)
        mixed = (numbers + _FINGERPRINT_FACTOR) * (2 * position + 1)
        fingerprint = fingerprint * _FINGERPRINT_FACTOR + int(mixed.sum()) + numbers.numel()
        fingerprint %= _FINGERPRINT_MODULUS
    return fingerprint


def _as_integers(value: object) -> Tensor:
    """The integers that stand for a value: those of a tensor, or the bits of its numbers."""
    if isinstance(value, Tensor):
        is_integer = not value.is_floating_point()
        return (value if is_integer else value.double().view(torch.int64)).flatten()
    text = repr(value).encode()  # so that `None` and zero, or `True` and one, differ
    return torch.tensor(list(text), device="cpu")


def _exchange(error: BaseException | None, device: torch.device) -> None:
    """Tells the other processes about an error in this one, and raises if one of them has one."""
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
    """The type, the message and the notes of an error, in one line."""
    notes: list[str] = getattr(error, "__notes__", [])
    return " ".join([f"{type(error).__name__}: {error}", *notes])


def _broadcast(message: str, source: int, device: torch.device) -> str:
    """Returns the message of the process `source` in every process."""
    encoded = torch.tensor(list(message.encode()), dtype=torch.uint8, device=device)
    size = torch.tensor(encoded.numel(), device=device)
    dist.broadcast(size, source)
    if source != process_index():
        encoded = torch.empty(int(size), dtype=torch.uint8, device=device)
    dist.broadcast(encoded, source)
    return bytes(encoded.tolist()).decode()


def _all_reduce(values: Tensor, operation: Any) -> None:
    """Combines `values` of all processes in place, and says what happened if that fails."""
    try:
        dist.all_reduce(values, operation)
    except RuntimeError as error:
        raise RuntimeError(
            "a process ended while others ranked, or did not join them within the timeout of the "
            "process group"
        ) from error
