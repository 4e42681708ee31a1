"""Which products find ranks of embeddings on a device, the fastest first."""

import torch

from pyg_recmetrics.kernels.devices import has_exact_single_precision
from pyg_recmetrics.kernels.fast.searching import Search
from pyg_recmetrics.kernels.fast.strip_searching import StripSearch


def dtypes_of_products(device: torch.device, in_bfloat16: bool) -> list[torch.dtype]:
    """Returns the precisions of products to search, each more precise than the one before.

    Args:
        device (torch.device): The device.
        in_bfloat16 (bool): Whether products in `bfloat16` come first.
    """
    dtypes = [torch.bfloat16] if in_bfloat16 else []
    if has_exact_single_precision(device):
        dtypes.append(torch.float32)
    return dtypes


def kind_of_search(device: torch.device, dtype: torch.dtype) -> type[Search]:
    """Returns what searches products of some precision."""
    return StripSearch if device.type == "cpu" and dtype == torch.float32 else Search
