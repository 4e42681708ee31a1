"""Buffers that are reused from one chunk to the next."""

from math import prod

import torch
from torch import Tensor


class Scratch:
    """Buffers that all chunks of a ranking share.

    The operating system hands out memory page by page, when each page is first written to. This
    takes longer than the arithmetic that follows. A buffer that is used again costs nothing.

    Args:
        device (torch.device): Where the buffers live.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._buffers: dict[str, Tensor] = {}

    @property
    def num_bytes(self) -> int:
        """How much memory the buffers take."""
        return sum(buffer.numel() * buffer.element_size() for buffer in self._buffers.values())

    def __call__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Returns an uninitialised tensor that is valid until the same `name` is asked for again.

        A name starts with the name of its owner, as in `"top_k.keys"`, so that no two owners
        share a buffer by accident.
        """
        size = prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.numel() < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = torch.empty(size, dtype=dtype, device=self.device)
        return buffer[:size].view(shape)
