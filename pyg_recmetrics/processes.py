"""What processes that rank together tell each other: what they found out, and their errors."""

import hashlib
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from traceback import format_exception_only
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")

#: Whether this build of torch can let processes talk to each other.
_IS_AVAILABLE = dist.is_available()

#: Whether this process ranks by itself, see :func:`pyg_recmetrics.distributed.alone`.
is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)


def num_processes() -> int:
    """Returns the number of processes that rank together."""
    if is_alone.get() or not _IS_AVAILABLE or not dist.is_initialized():
        return 1
    return dist.get_world_size()


def process_index() -> int:
    """Returns the index of this process among those that rank together."""
    return dist.get_rank() if num_processes() > 1 else 0


def share(users: Tensor) -> Tensor:
    """Returns the users that this process ranks: every n-th, so that all have equal work."""
    return users if num_processes() == 1 else users[process_index() :: num_processes()]


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


@contextmanager
def fail_together() -> Iterator[None]:
    """Raises in every process if the block raises in one, so that no process waits in vain."""
    try:
        yield
    except BaseException as error:  # the others wait for this process, whatever happens to it
        with suppress(RuntimeError):  # of a group that has ended: its own error says more
            name = f"process {process_index()} of {num_processes()} on {socket.gethostname()}"
            said = " ".join("".join(format_exception_only(error)).split())  # with its notes
            collect(f"{name} could not rank: {said}")
        raise
    if num_processes() > 1 and (told := next(filter(None, collect("")), None)):
        raise RuntimeError(told)


#: How many bytes of a tensor are hashed at once.
_BYTES_AT_ONCE = 2**26

#: The digests of tasks and catalogues, which several evaluations share.
_digests: "WeakKeyDictionary[Any, bytes]" = WeakKeyDictionary()


def check_same(**values: object) -> None:
    """Raises if values differ between processes. Call it before anything is ranked.

    Args:
        **values: Tasks, catalogues, tensors, or whatever has the same `repr` everywhere, also in
            tuples and dictionaries, by the name that an error tells.
    """
    if num_processes() == 1:
        return
    own = {name: digest(value) for name, value in values.items()}
    of_all = collect(own)
    differing = [f"'{name}'" for name in own if len({each[name] for each in of_all}) > 1]
    if differing:
        raise ValueError(
            f"{' and '.join(differing)} {'needs' if len(differing) == 1 else 'need'} to be the "
            f"same in every process, like all arguments; to evaluate in one process only, use "
            f"'pyg_recmetrics.distributed.alone()'"
        )


def digest(value: object) -> bytes:
    """Returns what tells a value from any other."""
    hashed = hashlib.blake2b()
    _add(value, hashed)
    return hashed.digest()


def _add(value: object, hashed: Any) -> None:
    """Adds a value to a hash, with all that it consists of."""
    if isinstance(value, Tensor):
        hashed.update(f"{value.dtype} {list(value.shape)} ".encode())
        _add_bytes(value.detach(), hashed)
    elif hasattr(value, "to_dict"):  # a task or a catalogue, which stays what it is
        if value not in _digests:
            _digests[value] = digest(value.to_dict())
        hashed.update(_digests[value])
    elif isinstance(value, Mapping):
        _add((*value.keys(), *value.values()), hashed)
    elif isinstance(value, tuple | list):
        hashed.update(f"{len(value)} parts ".encode())
        for part in value:
            _add(part, hashed)
    else:
        text = repr(value).encode(errors="backslashreplace")
        hashed.update(f"{len(text)} ".encode() + text)  # `None` and zero, or `True` and one, differ


def _add_bytes(tensor: Tensor, hashed: Any) -> None:
    """Adds the bytes of a tensor part by part, as it may be on a device or in a file."""
    if tensor.numel() == 0:
        return
    rows = tensor if tensor.dim() > 1 else tensor.reshape(-1, 1)
    num_rows = max(1, _BYTES_AT_ONCE * rows.size(0) // (rows.numel() * rows.element_size()))
    for part in rows.split(num_rows):
        hashed.update(part.contiguous().cpu().flatten().view(torch.uint8).numpy())
