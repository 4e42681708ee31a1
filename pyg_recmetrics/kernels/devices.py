"""How devices differ, and buffers that are reused from one chunk to the next."""

import os
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

    def __call__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Returns an uninitialised tensor that is valid until the same `name` is asked for again.

        A name starts with the name of its owner, as in `"top_k.keys"`, so that no two owners
        share a buffer by accident.
        """
        size = prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.numel() < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = torch.empty(size, dtype=dtype, device=self.device)
        return buffer.as_strided(shape, [prod(shape[place:]) for place in range(1, len(shape) + 1)])


#: How much more a device computes at once than a CPU, if its memory is not known.
_FACTOR = 4

#: How many bytes of its memory a GPU has for each time that it computes as much as a CPU.
_BYTES_OF_FACTOR = 2**32

#: How much more a GPU computes at once than a CPU, at most.
_MAX_FACTOR = 32

#: The variables of the environment that let oneDNN compute from fewer bits.
_MODES_OF_ONEDNN = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")


def at_once(num: int, device: torch.device) -> int:
    """Returns how much to compute at once on a device, if it is `num` on a CPU.

    On a GPU, launching a small kernel costs more than running it. The more memory there is, the
    fewer calls there are. Most of the memory is left to others.
    """
    if device.type == "cpu":
        return num
    if device.type != "cuda":
        return _FACTOR * num
    num_bytes = torch.cuda.get_device_properties(device).total_memory
    return min(_MAX_FACTOR, max(1, num_bytes // _BYTES_OF_FACTOR)) * num


def copied(rows: Tensor, device: torch.device) -> Tensor:
    """Copies a tensor to a device. A GPU reads what the host has while the host goes on."""
    if rows.device.type == "cpu" and device.type == "cuda":
        rows = rows.pin_memory()
    return rows.to(device, non_blocking=device.type == "cuda")


def has_exact_single_precision(device: torch.device) -> bool:
    """Returns whether matrix products in single precision are computed in single precision.

    PyTorch and oneDNN can be set to compute them from fewer bits, which no bound covers.
    """
    modes = (os.environ.get(name, "strict") for name in _MODES_OF_ONEDNN)
    if device.type == "cpu" and any(mode.lower() != "strict" for mode in modes):
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # if the precision was set for each backend, as newer versions do
        backend = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
        precision: str = backend.matmul.fp32_precision
        return precision in ("none", "ieee")


def has_fast_bfloat16() -> bool:
    """Returns whether the CPU has instructions for products in `bfloat16`."""
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
