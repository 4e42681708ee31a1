"""Items in the order of their norms, rounded to the precision of a fast product, and its bound."""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import in_parts
from pyg_recmetrics.kernels.exact.scores import ItemFactors

# How far a score from a fast matrix product can be from the exact score.
#
# Let :math:`u` and :math:`i` be the embeddings of a user and an item, of dimension :math:`D`. Let
# :math:`\hat u` and :math:`\hat i` be their roundings to the precision of the product. Let
# :math:`x` be the sum of the products :math:`\hat u_d \hat i_d`, added up in single precision in
# any order. Each of them is rounded at most :math:`D` times, by no more than :math:`2^{-24}` of its
# size. Then
#
# .. math::
#     |x - u \cdot i|
#     &= |(\hat u - u) \cdot \hat i + u \cdot (\hat i - i)| + \text{rounding of the sum} \\
#     &\leq \|\hat u - u\| \, \|\hat i\| + \|u\| \, \|\hat i - i\|
#     + \varepsilon \, \|\hat u\| \, \|\hat i\|, \qquad \varepsilon > D \, 2^{-24}
#
# by the Cauchy-Schwarz inequality, with the norms of the actual rounding errors. A larger
# :math:`\varepsilon` also covers the rounding of the exact score to single precision. With the
# largest norms of all items, this bounds the error of a user's score for any item.
#
# Embeddings are first scaled by powers of two (:mod:`~pyg_recmetrics.kernels.exact.scores`). This
# is exact and changes no order, so that overflow cannot break the bound. To allow for underflow,
# norms and the bound include constants that are far below any score that matters.

#: The error that arises where a processor takes numbers for zero that are too small to be normal:
#: up to 2**15 products of a number below 2**-126 and one below 2**56.
_UNDERFLOW = 2.0**-50

#: What the squares of up to 2**15 numbers that are too small to have one can add to a norm.
_UNDERFLOW_OF_NORM = 2.0**-54

#: What the root and the product with `1 + relative_error` add to the error of a norm, and more.
_ROUNDING_OF_NORM = 1e-6


def largest_norms(rows: Tensor) -> Tensor:
    """Returns upper bounds of the norms of rows, whose own norms are rounded: `[num_rows]`."""
    relative_error = _ROUNDING_OF_NORM + rows.size(1) * torch.finfo(rows.dtype).eps
    norm: Tensor = torch.linalg.vector_norm(rows, dim=1).double()
    return norm.mul_(1 + relative_error).add_(_UNDERFLOW_OF_NORM)


class ErrorBound:
    r"""What the bound needs to know about the embeddings of users and their roundings.

    Args:
        embedding (torch.Tensor): Embeddings of shape `[num_rows, dim]`, in double precision.
        rounded (torch.Tensor): Their roundings.
        rounding_of_sum (float): The constant :math:`\varepsilon`.
    """

    def __init__(self, embedding: Tensor, rounded: Tensor, rounding_of_sum: float) -> None:
        rounded = rounded.double()
        self.norm = largest_norms(embedding)
        self.error = largest_norms(rounded - embedding)
        self.error += rounding_of_sum * largest_norms(rounded)

    def of(self, rounded_norm: Tensor, error: Tensor, row: Tensor | slice = slice(None)) -> Tensor:
        """Returns the bound for scores of items.

        Args:
            rounded_norm (torch.Tensor): The norms of the rounded embeddings of items, or the
                largest one.
            error (torch.Tensor): The norms of their rounding errors, or the largest one.
            row (torch.Tensor, optional): The rows of the users of these items.
                (default: all rows)
        """
        return self.error[row] * rounded_norm + self.norm[row] * error + _UNDERFLOW


def rounding_in_single(num_roundings: int) -> float:
    """Returns how much so many roundings in single precision change a number, as a part of it."""
    # Errors are rounded as well: for up to 2**15 roundings, this adds less than a hundredth. So do
    # as many roundings in double precision.
    return 1.01 * num_roundings * 2.0**-24


def error_in_single(norm: Tensor) -> Tensor:
    """Returns the largest norm of a rounding error in single precision, given that of a row."""
    return 2.0**-24 * norm


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
    Rows are added to those of `left` to have one of few numbers of them. Double precision and other
    devices have no use for either.

    Args:
        left (torch.Tensor): A matrix of shape `[num_rows, dim]`.
        right (torch.Tensor): A matrix of the same type, of shape `[num_columns, dim]`.
        scratch (Scratch): The buffers to compute in.
        name (str): The name of the buffer of the result.

    Returns:
        The products, of shape `[num_rows, num_columns]`. They are valid until the next call.
    """
    num_rows = left.size(0)
    is_rounded = left.device.type == "cpu" and left.dtype != torch.double
    num_added = one_of_few_from(num_rows) - num_rows if is_rounded else 0
    left = F.pad(left, (0, 0, 0, num_added)) if num_added else left
    is_single = is_rounded and left.dtype == torch.float32 and left.size(1) > 0
    if is_single and _BY_ONEDNN is not None and torch.backends.mkldnn.enabled:
        _keep_memory()
        product: Tensor = _BY_ONEDNN(left.contiguous(), right.contiguous(), None, "none", [], "")
    else:
        product = scratch(name, (left.size(0), right.size(0)), left.dtype)
        torch.mm(left, right.t(), out=product)
    return product[:num_rows] if num_added else product


@cache
def _keep_memory() -> None:
    """Lets a product take the memory of the one before.

    oneDNN asks for new memory. The allocator of Linux takes it from the operating system page by
    page, and hands it back, until a piece as large has been handed back once.
    """
    torch.empty(_NUM_BYTES_TO_KEEP, dtype=torch.uint8, device="cpu")


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


#: How many bytes the rounded embeddings of all items may take. If they take more, they are rounded
#: anew whenever they are read.
_MAX_BYTES = 2**29

#: How many columns may be asked for behind the last one.
MAX_PADDING = 2**8

#: How many items are rounded at once.
_ITEMS_AT_ONCE = 2**13


class RoundedItems:
    """Items in the order of their norms, the largest first, in the precision of a product.

    Args:
        factors (ItemFactors): The embeddings of all items.
        candidates (torch.Tensor or None): The items that may be recommended, if not all may be.
        dtype (torch.dtype): The precision of the product.

    Attributes:
        item (torch.Tensor): The item of each column, of shape `[num_columns]`.
        column (torch.Tensor): The column of each item, of shape `[num_items]`; `-1` for none.
        norm (torch.Tensor): Upper bounds of the norms, descending, of shape `[num_columns]`.
        rounded_norm (torch.Tensor): The largest norm of a rounded embedding.
        error (torch.Tensor): The largest norm of a rounding error.
    """

    def __init__(self, factors: ItemFactors, candidates: Tensor | None, dtype: torch.dtype) -> None:
        self.factors, self.dtype = factors, dtype
        device = factors.device
        items = torch.arange(factors.num_items, device=device) if candidates is None else candidates
        norm = self._measure(items)
        self.norm, order = norm.sort(descending=True)
        self.item = items[order]
        self.column = torch.full((factors.num_items,), -1, device=device)
        self.column[self.item] = torch.arange(items.numel(), device=device)
        self._table: Tensor | None = None
        num_bytes = items.numel() * factors.dim * dtype.itemsize
        if num_bytes <= _MAX_BYTES:
            self._table = self._round(self.item, MAX_PADDING)

    def rounded(self, start: int, end: int) -> Tensor:
        """Returns the rounded embeddings of some columns, of shape `[end - start, dim]`.

        Behind the last column, there are up to `MAX_PADDING` rows of zeros.
        """
        if self._table is not None:
            return self._table[start:end]
        items = self.item[start:end]
        return self._round(items, end - start - items.numel())

    def _round(self, items: Tensor, num_zeros: int) -> Tensor:
        shape = (items.numel() + num_zeros, self.factors.dim)
        rounded = torch.zeros(shape, dtype=self.dtype, device=self.factors.device)
        for part, out in in_parts(_ITEMS_AT_ONCE, items, rounded[: items.numel()]):
            out.copy_(self.factors.single(part))
        return rounded

    def _measure(self, items: Tensor) -> Tensor:
        """Finds the largest norms of rounded embeddings and of errors, and returns all norms."""
        norms, rounded_norms, errors = [], [], []
        for (part,) in in_parts(_ITEMS_AT_ONCE, items):
            single = self.factors.single(part)
            rounded = single.to(self.dtype).float()
            norms.append(largest_norms(single))
            rounded_norms.append(largest_norms(rounded).max())
            errors.append(largest_norms(rounded - single).max())
        norm = torch.cat(norms)
        self.rounded_norm = torch.stack(rounded_norms).max()
        # What is already lost in single precision is at most half of its last bit.
        self.error = torch.stack(errors).max() + error_in_single(norm.max())
        return norm
