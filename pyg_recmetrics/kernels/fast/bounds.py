r"""How far a score from a fast matrix product can be from the exact score.

Let :math:`u` and :math:`i` be the embeddings of a user and an item, of dimension :math:`D`. Let
:math:`\hat u` and :math:`\hat i` be their roundings to the precision of the product. Let :math:`x`
be the sum of the products :math:`\hat u_d \hat i_d`, added up in single precision in any order.
Each of them is rounded at most :math:`D` times, by no more than :math:`2^{-24}` of its size. Then

.. math::
    |x - u \cdot i|
    &= |(\hat u - u) \cdot \hat i + u \cdot (\hat i - i)| + \text{rounding of the sum} \\
    &\leq \|\hat u - u\| \, \|\hat i\| + \|u\| \, \|\hat i - i\|
    + \varepsilon \, \|\hat u\| \, \|\hat i\|, \qquad \varepsilon > D \, 2^{-24}

by the Cauchy-Schwarz inequality, with the norms of the actual rounding errors. A larger
:math:`\varepsilon` also covers the rounding of the exact score to single precision. With the
largest norms of all items, this bounds the error of a user's score for any item.

Embeddings are first scaled by powers of two (:mod:`~pyg_recmetrics.kernels.exact.scores`). This is
exact and changes no order, so that overflow cannot break the bound. To allow for underflow, norms
and the bound include constants that are far below any score that matters.
"""

from typing import TypeVar

import torch
from torch import Tensor

#: One norm, or several of them.
Norm = TypeVar("Norm", Tensor, float)

#: The error that arises where a processor takes numbers for zero that are too small to be normal:
#: up to 2**15 products of a number below 2**-126 and one below 2**56.
_UNDERFLOW = 2.0**-50

#: What the squares of up to 2**15 numbers that are too small to have one can add to a norm.
_UNDERFLOW_OF_NORM = 2.0**-54

#: What the root and the product with `1 + relative_error` add to the error of a norm, and more.
_ROUNDING_OF_NORM = 1e-6


def largest_norms(rows: Tensor) -> Tensor:
    """Returns upper bounds of the norms of rows, whose own norms are rounded: `[num_rows]`."""
    norm: Tensor = torch.linalg.vector_norm(rows, dim=1).double()
    return norm.mul_(1 + _relative_error_of_norm(rows)).add_(_UNDERFLOW_OF_NORM)


def largest_norm(rows: Tensor) -> float:
    """Returns an upper bound of the norms of all rows."""
    norm = float(torch.linalg.vector_norm(rows, dim=1).max())
    return norm * (1 + _relative_error_of_norm(rows)) + _UNDERFLOW_OF_NORM


def _relative_error_of_norm(rows: Tensor) -> float:
    return _ROUNDING_OF_NORM + rows.size(1) * torch.finfo(rows.dtype).eps


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

    def of(
        self,
        rounded_norm: Tensor | float,
        error: Tensor | float,
        row: Tensor | slice = slice(None),
    ) -> Tensor:
        """Returns the bound for scores of items.

        Args:
            rounded_norm (torch.Tensor or float): The norms of the rounded embeddings of items, or
                the largest one.
            error (torch.Tensor or float): The norms of their rounding errors, or the largest one.
            row (torch.Tensor, optional): The rows of the users of these items.
                (default: all rows)
        """
        return self.error[row] * rounded_norm + self.norm[row] * error + _UNDERFLOW


def rounding_in_single(num_roundings: int) -> float:
    """Returns how much so many roundings in single precision change a number, as a part of it."""
    # Errors are rounded as well: for up to 2**15 roundings, this adds less than a hundredth. So do
    # as many roundings in double precision.
    return 1.01 * num_roundings * 2.0**-24


def error_of_product(user: Tensor, item_norm: float, num_roundings: int) -> Tensor:
    """Returns the bound of a product of embeddings that are given in its precision.

    It also covers the rounding of the exact score, and of what a score is compared with. Embeddings
    need not be scaled if their largest numbers are neither huge nor tiny.

    Args:
        user (torch.Tensor): The users, of shape `[num_rows, dim]`.
        item_norm (float): The largest norm of all items.
        num_roundings (int): How often numbers are rounded to single precision.
    """
    factor = rounding_in_single(num_roundings) * item_norm
    # The norms that `largest_norms` returns, times this factor, in fewer steps.
    norm: Tensor = torch.linalg.vector_norm(user, dim=1).double()
    least = factor * _UNDERFLOW_OF_NORM + _UNDERFLOW
    return norm.mul_(factor * (1 + _relative_error_of_norm(user))).add_(least)


def error_in_single(norm: Norm) -> Norm:
    """Returns the largest norm of a rounding error in single precision, given that of a row."""
    return 2.0**-24 * norm
