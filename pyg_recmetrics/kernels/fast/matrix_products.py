"""Products of matrices, by the library that takes the least time."""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch

#: A product in single precision by oneDNN, by which PyTorch also replaces the layers of models that
#: it compiles; `None` if PyTorch was built without oneDNN.
_BY_ONEDNN: Any = None
if torch.backends.mkldnn.is_available():
    _BY_ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None)

#: The largest piece of memory that the allocator of Linux may keep, and a little less.
_NUM_BYTES_TO_KEEP = 2**25 - 2**16


def matrix_product(left: Tensor, right: Tensor, scratch: Scratch, name: str) -> Tensor:
    """Returns the products of each row of a matrix and each row of another.

    A CPU multiplies in single precision by oneDNN. PyTorch itself asks its BLAS, which for many
    processors has no instructions of their own: on one of AMD, it takes up to three times as long.
    Rows are added to those of `left` to have one of few numbers of them.

    Args:
        left (torch.Tensor): A matrix of shape `[num_rows, dim]`.
        right (torch.Tensor): A matrix of the same type, of shape `[num_columns, dim]`.
        scratch (Scratch): The buffers to compute in.
        name (str): The name of the buffer of the result.

    Returns:
        The products, of shape `[num_rows, num_columns]`. They are valid until the next call.
    """
    num_rows = left.size(0)
    if left.device.type == "cpu" and left.dtype != torch.double:
        num_added = one_of_few_from(num_rows) - num_rows
        left = F.pad(left, (0, 0, 0, num_added)) if num_added > 0 else left
    return _product(left, right, scratch, name)[:num_rows]


def _product(left: Tensor, right: Tensor, scratch: Scratch, name: str) -> Tensor:
    if _is_for_onednn(left):
        _keep_memory()
        product: Tensor = _BY_ONEDNN(left.contiguous(), right.contiguous(), None, "none", [], "")
        return product
    product = scratch(name, (left.size(0), right.size(0)), left.dtype)
    return torch.mm(left, right.t(), out=product)


@cache
def _keep_memory() -> None:
    """Lets a product take the memory of the one before.

    oneDNN asks for new memory. The allocator of Linux takes it from the operating system page by
    page, and hands it back, until a piece as large has been handed back once.
    """
    torch.empty(_NUM_BYTES_TO_KEEP, dtype=torch.uint8, device="cpu")


def _is_for_onednn(matrix: Tensor) -> bool:
    if _BY_ONEDNN is None or matrix.device.type != "cpu" or matrix.dtype != torch.float32:
        return False
    return bool(torch.backends.mkldnn.enabled) and matrix.size(1) > 0


def one_of_few_from(number: int) -> int:
    """Rounds a number of rows or columns up, by at most an eighth, to one of few.

    oneDNN writes a program for every size of a product, and keeps the last thousand of them. These
    take almost a megabyte each.
    """
    return -(-number // _step(number)) * _step(number)


def one_of_few_to(number: int) -> int:
    """Rounds a number down to one of those of :func:`one_of_few_from`."""
    return number // _step(number) * _step(number)


def _step(number: int) -> int:
    return 1 << max(0, number.bit_length() - 4)
