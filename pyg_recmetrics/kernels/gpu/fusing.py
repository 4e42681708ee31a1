"""Whether a device can multiply and search or count in one step, by programs of Triton."""

import warnings
from functools import cache
from importlib.util import find_spec

import torch

from pyg_recmetrics.kernels.devices import has_fast_bfloat16
from pyg_recmetrics.kernels.scratch import Scratch

#: Rows of more dimensions do not fit into the registers of a GPU.
_MAX_DIM = 128


def can_fuse(device: torch.device, dim: int) -> bool:
    """Returns whether :mod:`pyg_recmetrics.kernels.gpu.fused_products` can multiply embeddings.

    Triton comes with torch for NVIDIA's GPUs. It needs a compiler and the headers of Python.
    """
    if device.type != "cuda" or torch.version.cuda is None or dim > _MAX_DIM:
        return False
    return has_fast_bfloat16(device) and find_spec("triton") is not None and runs_on(device, dim)


@cache
def runs_on(device: torch.device, dim: int) -> bool:
    """Tries the programs on a device, and warns if they do not run."""
    try:
        from pyg_recmetrics.kernels.gpu.fused_products import NUM_LIMITS, FusedBlocks, Margin

        one = torch.ones(1, dim, dtype=torch.float16, device=device)
        found = FusedBlocks(one, one, 1, 16, Scratch(device))
        first, zero = torch.zeros(1, dtype=torch.long, device=device), one.new_zeros(1).float()
        is_right = bool((found.maxima()[0, 0] == dim) & (found.values(first, first)[0, 0] == dim))
        limit = torch.full((1, NUM_LIMITS), dim - 0.5, device=device)
        num_above, is_open = found.count_above(limit, Margin(zero, zero), zero)
        is_right &= bool((num_above == 1).all() & (is_open == 0).all())
    except torch.OutOfMemoryError:  # which may be another time
        raise
    except Exception as error:  # whatever is missing, products can be stored instead
        is_right, reason = False, str(error)
    else:
        reason = "its products are wrong"
    if not is_right:
        message = f"Triton does not work on {device}, so that ranking takes longer ({reason})"
        warnings.warn(message, stacklevel=3)
    return is_right
