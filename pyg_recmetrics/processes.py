"""What processes that rank together tell each other: their shares, errors and results."""

import hashlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor

#: How many bytes of a tensor are hashed at once.
_BYTES_AT_ONCE = 2**26

#: How many bytes of a tensor are hashed as they are, and how many have one checksum otherwise.
_MAX_HASHED, _BLOCK = 2**20, 2**16

#: The digests of tasks and catalogues, which several evaluations share.
_digests: "WeakKeyDictionary[Any, Tensor]" = WeakKeyDictionary()

#: Whether this process ranks by itself, see :func:`pyg_recmetrics.distributed.alone`.
is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)


class _Hash(Protocol):
    """What takes bytes."""

    def update(self, data: Any, /) -> None:
        """Takes more bytes."""


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


def check_same(device: torch.device, **values: object) -> None:
    """Raises if values differ between processes. Call it before anything is ranked.

    Args:
        device (torch.device): Where processes exchange what they have.
        **values: Tasks, catalogues, tensors, or whatever has the same `repr` everywhere, also in
            tuples and dictionaries, by the name that an error tells.
    """
    if num_processes() == 1:
        return
    own = torch.stack([_digest(value) for value in values.values()]).to(device)
    # The smallest of all complements is the complement of the largest.
    bounds = torch.stack([own, ~own])
    _all_reduce(bounds, dist.ReduceOp.MIN)
    lowest, highest = bounds[0], ~bounds[1]
    is_other = (lowest != highest).any(dim=1).tolist()
    if any(is_other):
        names = [f"'{name}'" for name, other in zip(values, is_other, strict=True) if other]
        raise ValueError(
            f"{' and '.join(names)} {'needs' if len(names) == 1 else 'need'} to be the same in "
            f"every process, like all arguments; to evaluate in one process only, use "
            f"'pyg_recmetrics.distributed.alone()'"
        )


def take_largest(values: Tensor) -> None:
    """Replaces each element by the largest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MAX)


def take_smallest(values: Tensor) -> None:
    """Replaces each element by the smallest that any process has for it."""
    if num_processes() > 1:
        _all_reduce(values, dist.ReduceOp.MIN)


def _digest(value: object) -> Tensor:
    """Two integers that tell a value from any other."""
    hashed = hashlib.sha256()
    _add(value, hashed)
    return torch.tensor(struct.unpack("<2q", hashed.digest()[:16]), device="cpu")


def _digest_of_frozen(value: Any) -> Tensor:
    """The digest of a task or a catalogue, which stays what it is."""
    if value not in _digests:
        _digests[value] = _digest(value.to_dict())
    return _digests[value]


def _add(value: object, hashed: _Hash) -> None:
    """Adds a value to a hash, with all that it consists of."""
    if isinstance(value, Tensor):
        hashed.update(f"{value.dtype} {list(value.shape)} ".encode())
        _add_bytes(value.detach(), hashed)
    elif hasattr(value, "to_dict"):
        _add(_digest_of_frozen(value), hashed)
    elif isinstance(value, Mapping):
        _add((*value.keys(), *value.values()), hashed)
    elif isinstance(value, tuple | list):
        hashed.update(f"{len(value)} parts ".encode())
        for part in value:
            _add(part, hashed)
    else:
        text = repr(value).encode(errors="backslashreplace")
        hashed.update(f"{len(text)} ".encode() + text)  # `None` and zero, or `True` and one, differ


def _add_bytes(tensor: Tensor, hashed: _Hash) -> None:
    """Adds the bytes of a tensor part by part, as it may be on a device or in a file.

    Of a large tensor, it adds the checksum of each block: they take a fraction of the time, and two
    tables that differ agree in none of their blocks, or in all but a few.
    """
    if tensor.numel() == 0:
        return
    is_large = tensor.numel() * tensor.element_size() > _MAX_HASHED
    rows = tensor if tensor.dim() > 1 else tensor.reshape(-1, 1)
    num_rows = max(1, _BYTES_AT_ONCE * rows.size(0) // (rows.numel() * rows.element_size()))
    for part in rows.split(num_rows):
        content = part.contiguous().cpu().flatten().view(torch.uint8).numpy()
        if is_large:
            starts = range(0, content.size, _BLOCK)
            sums = [zlib.crc32(content[start : start + _BLOCK]) for start in starts]
            content = struct.pack(f"<{len(sums)}I", *sums)
        hashed.update(content)


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
    try:
        message = str(error)
    except Exception:  # the processes need to end, whatever the error says
        message = "(without a message that can be read)"
    return " ".join([f"{type(error).__name__}: {message}", *map(str, notes)])


def _broadcast(message: str, source: int, device: torch.device) -> str:
    """Returns the message of the process `source` in every process."""
    content = message.encode(errors="backslashreplace")
    encoded = torch.tensor(list(content), dtype=torch.uint8, device=device)
    size = torch.tensor(encoded.numel(), device=device)
    with _naming_the_end():
        dist.broadcast(size, source)
        if source != process_index():
            encoded = torch.empty(int(size), dtype=torch.uint8, device=device)
        dist.broadcast(encoded, source)
    return bytes(encoded.tolist()).decode()


def _all_reduce(values: Tensor, operation: Any) -> None:
    """Combines `values` of all processes in place."""
    with _naming_the_end():
        dist.all_reduce(values, operation)


@contextmanager
def _naming_the_end() -> Iterator[None]:
    """Says what happened if processes cannot reach each other."""
    try:
        yield
    except RuntimeError as error:
        raise RuntimeError(
            "a process ended while others ranked, or did not join them within the timeout of the "
            "process group"
        ) from error
