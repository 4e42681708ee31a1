"""Products of matrices, by the library that takes the least time."""

from typing import Any

import torch
from torch import Tensor

from pyg_recmetrics.kernels.scratch import Scratch

#: A product in single precision by oneDNN, by which PyTorch also replaces the layers of models that
#: it compiles; `None` if PyTorch was built without oneDNN.
_BY_ONEDNN: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


def matrix_product(left: Tensor, right: Tensor, scratch: Scratch, name: str) -> Tensor:
    """Returns the products of each row of a matrix and each row of another.

    A CPU multiplies in single precision by oneDNN. PyTorch itself asks its BLAS, which for many
    processors has no instructions of their own: on one of AMD, it takes up to three times as long.

    Args:
        left (torch.Tensor): A matrix of shape `[num_rows, dim]`.
        right (torch.Tensor): A matrix of the same type, of shape `[num_columns, dim]`.
        scratch (Scratch): The buffers to compute in.
        name (str): The name of the buffer of the result.

    Returns:
        The products, of shape `[num_rows, num_columns]`. They are valid until the next call.
    """
    if _is_for_onednn(left):
        product: Tensor = _BY_ONEDNN(left.contiguous(), right.contiguous(), None, "none", [], "")
        return product
    product = scratch(name, (left.size(0), right.size(0)), left.dtype)
    return torch.mm(left, right.t(), out=product)


def _is_for_onednn(matrix: Tensor) -> bool:
    if _BY_ONEDNN is None or matrix.device.type != "cpu" or matrix.dtype != torch.float32:
        return False
    return bool(torch.backends.mkldnn.enabled) and matrix.size(1) > 0
