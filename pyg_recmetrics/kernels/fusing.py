"""Whether a device can multiply and search in one, by a program that Triton compiles."""

import warnings
from functools import cache
from importlib.util import find_spec

import torch

from pyg_recmetrics.kernels.devices import has_fast_bfloat16

#: Rows of more dimensions do not fit into the registers of a GPU.
_MAX_DIM = 128


def can_fuse(device: torch.device, dim: int) -> bool:
    """Returns whether :mod:`pyg_recmetrics.kernels.fused_products` can multiply embeddings.

    Triton comes with torch for NVIDIA's GPUs. It needs a compiler and the headers of Python.
    """
    if device.type != "cuda" or torch.version.cuda is None or dim > _MAX_DIM:
        return False
    return has_fast_bfloat16(device) and find_spec("triton") is not None and runs_on(device)


@cache
def runs_on(device: torch.device) -> bool:
    """Tries a program on a device, and warns if it does not run."""
    try:
        from pyg_recmetrics.kernels.fused_products import FusedBlocks

        one = torch.ones(1, 1, dtype=torch.float16, device=device)
        FusedBlocks(one, one, 1, one.new_empty((1, 16), dtype=torch.float32))
    except Exception as error:  # whatever is missing, products can be stored instead
        warnings.warn(
            f"Triton compiles nothing for {device}, so that ranking takes longer ({error})",
            stacklevel=2,
        )
        return False
    return True
