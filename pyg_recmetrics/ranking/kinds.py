"""Which kernels find ranks of embeddings on a device, the fastest first."""

from typing import TypeAlias

import torch

from pyg_recmetrics.kernels.devices import has_exact_single_precision
from pyg_recmetrics.kernels.fast.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.fast.fast_products import FastProducts, StoredProducts
from pyg_recmetrics.kernels.fast.rank_counting import RankCount
from pyg_recmetrics.kernels.fast.searching import Search
from pyg_recmetrics.kernels.fast.strip_searching import StripSearch
from pyg_recmetrics.kernels.gpu.fusing import can_fuse

#: Products to search, and their precision.
KindOfProducts: TypeAlias = tuple[type[FastProducts], torch.dtype]

#: What counts ranks, and its precision.
KindOfCount: TypeAlias = tuple[type[RankCount], torch.dtype]


def kinds_of_products(device: torch.device, dim: int, in_bfloat16: bool) -> list[KindOfProducts]:
    """Returns the products to search. Each is more precise than the one before.

    Args:
        device (torch.device): The device.
        dim (int): The dimension of the embeddings.
        in_bfloat16 (bool): Whether products in `bfloat16` come first.
    """
    kinds: list[KindOfProducts] = []
    if can_fuse(device, dim):
        # It needs Triton, which is imported only where it runs.
        from pyg_recmetrics.kernels.gpu.fused_products import FusedProducts

        kinds.append((FusedProducts, torch.float16))
    elif in_bfloat16:
        kinds.append((StoredProducts, torch.bfloat16))
    if has_exact_single_precision(device):
        kinds.append((StoredProducts, torch.float32))
    return kinds


def kind_of_search(device: torch.device, dtype: torch.dtype) -> type[Search]:
    """Returns what searches products of some precision."""
    return StripSearch if device.type == "cpu" and dtype == torch.float32 else Search


def kinds_of_counts(device: torch.device, dim: int) -> list[KindOfCount]:
    """Returns what counts. The arguments are those of :func:`kinds_of_products`."""
    kinds: list[KindOfCount] = []
    if can_fuse(device, dim):
        # It needs Triton, which is imported only where it runs.
        from pyg_recmetrics.kernels.gpu.fused_counting import FusedCount

        kinds.append((FusedCount, torch.float16))
    if has_exact_single_precision(device):
        kinds.append((BoundedCount, torch.float32))
    return kinds
