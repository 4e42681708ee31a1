"""Whether processes have the same: digests of tasks, tensors and options."""

import hashlib
import struct
import zlib
from collections.abc import Mapping
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from pyg_recmetrics.processes.group import collect, num_processes

#: How many bytes of a tensor are hashed at once.
_BYTES_AT_ONCE = 2**26

#: How many bytes of a tensor are hashed as they are, and how many have one checksum otherwise.
_MAX_HASHED, _BLOCK = 2**20, 2**16

#: The digests of tasks and catalogues, which several evaluations share.
_digests: "WeakKeyDictionary[Any, bytes]" = WeakKeyDictionary()


class _Hash(Protocol):
    """What takes bytes."""

    def update(self, data: Any, /) -> None:
        """Takes more bytes."""


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
    hashed = hashlib.sha256()
    _add(value, hashed)
    return hashed.digest()


def _digest_of_frozen(value: Any) -> bytes:
    """The digest of a task or a catalogue, which stays what it is."""
    if value not in _digests:
        _digests[value] = digest(value.to_dict())
    return _digests[value]


def _add(value: object, hashed: _Hash) -> None:
    """Adds a value to a hash, with all that it consists of."""
    if isinstance(value, Tensor):
        hashed.update(f"{value.dtype} {list(value.shape)} ".encode())
        _add_bytes(value.detach(), hashed)
    elif hasattr(value, "to_dict"):
        hashed.update(_digest_of_frozen(value))
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
