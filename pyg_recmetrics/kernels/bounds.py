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

Embeddings are first scaled by powers of two (:mod:`pyg_recmetrics.kernels.scores`), which is exact
and changes no order, so that overflow cannot break the bound. To allow for underflow, the bound
includes a constant far below any score that matters.
"""

from abc import ABC, abstractmethod
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from pyg_recmetrics.kernels.ranks import Ranks
from pyg_recmetrics.kernels.scores import inner_products
from pyg_recmetrics.kernels.scratch import Scratch

#: The rows and the items of some edges, sorted by row.
UserItems: TypeAlias = tuple[Tensor, Tensor]

#: For pairs of an item to rank and one that may rank above it: the number of the former among all
#: items to rank, the row of its user, and the other item.
CloseItems: TypeAlias = tuple[Tensor, Tensor, Tensor]

#: How deep one user is ranked, or each of several users.
Depth = TypeVar("Depth", int, Tensor)

#: The error that arises where a processor takes numbers for zero that are too small to be normal:
#: up to 2**15 products of a number below 2**-126 and one below 2**56.
_UNDERFLOW = 2.0**-50

#: How many rows are held in double precision at once, to compute their rounding errors.
_ROWS_AT_ONCE = 4096


class ErrorBound:
    r"""What the bound needs to know about embeddings and their roundings.

    Args:
        embedding (torch.Tensor): Embeddings of shape `[num_rows, dim]`, in double precision.
        rounded (torch.Tensor): Their roundings, in the precision of the product.
        rounding_of_sum (float): The constant :math:`\varepsilon`. It belongs to the bound of the
            users. (default: `0.0`)
    """

    def __init__(self, embedding: Tensor, rounded: Tensor, rounding_of_sum: float = 0.0) -> None:
        # The norms are made a little larger, to allow for the rounding in computing them.
        self.norm: Tensor = embedding.norm(dim=1).mul_(1 + 1e-6)
        doubled = (part.double() for part in rounded.split(_ROWS_AT_ONCE))
        parts = zip(doubled, embedding.split(_ROWS_AT_ONCE), strict=True)
        norms = [(part.norm(dim=1), (part - exact).norm(dim=1)) for part, exact in parts]
        self.rounded_norm, self.error = (
            torch.cat(norm).mul_(1 + 1e-6) for norm in zip(*norms, strict=True)
        )
        self.error += rounding_of_sum * self.rounded_norm

    def of_any(self, item: "ErrorBound") -> Tensor:
        """Returns the bound for the scores of all items, of shape `[num_users]`."""
        return self.error * item.rounded_norm.max() + self.norm * item.error.max() + _UNDERFLOW

    def of_pairs(self, row: Tensor, item: "ErrorBound", other: Tensor) -> Tensor:
        """Returns the bound for the scores of pairs of a user and an item: `[num_pairs]`."""
        of_user, of_item = self.error[row], item.error[other]
        return of_user * item.rounded_norm[other] + self.norm[row] * of_item + _UNDERFLOW


class BoundedRanking(ABC):
    """Proves exact ranks from the scores of a fast product and a bound on their error.

    Args:
        user (torch.Tensor): User embeddings of shape `[num_users, dim]`.
        item (torch.Tensor): Item embeddings of shape `[num_items, dim]`, scaled, in double
            precision.
    """

    #: The precision of the product.
    dtype: torch.dtype

    #: How many items are looked at together.
    group_size: int

    def __init__(self, user: Tensor, item: Tensor) -> None:
        self.user, self.item = user, item
        self.rounded = self.padded(item)
        self.bound = ErrorBound(item, self.rounded[: item.size(0)])

    def padded(self, item: Tensor) -> Tensor:
        """Rounds items, and fills up the last group with zeros, whose scores must be masked."""
        num_items, dim = item.shape
        num_groups = -(-num_items // self.group_size)
        rounded = item.new_zeros(num_groups * self.group_size, dim, dtype=self.dtype)
        rounded[:num_items] = item
        return rounded

    def ranks_among(
        self, close: CloseItems, user: Tensor, item: Tensor, score: Tensor, num_above: Tensor
    ) -> Ranks:
        """Ranks items of known score, by comparing them with the exact scores of close ones.

        Args:
            close (CloseItems): What is not proved to rank above or below.
            user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`.
            item (torch.Tensor): The items to rank, of shape `[num_ranked]`.
            score (torch.Tensor): Their exact scores, of shape `[num_ranked]`.
            num_above (torch.Tensor): How many items are proved to score higher than each.
        """
        ranked, row, other = close
        is_other = (other != item[ranked]).nonzero().squeeze(1)
        ranked, row, other = (values[is_other] for values in close)
        others_score, own = inner_products(user, row, self.item, other), score[ranked]
        is_tied = others_score == own
        is_before = is_tied & (other < item[ranked])
        above, tied, before = (
            torch.bincount(ranked[flags], minlength=item.numel())
            for flags in (others_score > own, is_tied, is_before)
        )
        num_above = num_above + above
        return Ranks(1 + num_above + before, num_above, tied)

    @abstractmethod
    def num_rows(self, depth: int) -> int:
        """Returns how many users are ranked at once, if they are ranked down to `depth`."""

    @abstractmethod
    def ranks(
        self, users: Tensor, depth: Tensor, relevant: UserItems, seen: UserItems, scratch: Scratch
    ) -> tuple[Ranks, Tensor]:
        """Ranks the relevant items of some users.

        Args:
            users (torch.Tensor): The ids of the users, of shape `[num_rows]`.
            depth (torch.Tensor): How deep each of them is ranked, of shape `[num_rows]`.
            relevant (tuple): The rows and the items to rank, of shape `[num_relevant]` each.
            seen (tuple): The rows and the items that must not be retrieved.
            scratch (Scratch): The buffers to compute in.

        Returns:
            The ranks of the relevant items, and which users could not be settled, of shape
            `[num_rows]`. The ranks of these users are not valid.
        """


def has_exact_single_precision() -> bool:
    """Returns whether matrix products in single precision are computed in single precision.

    PyTorch can be set to compute them from fewer bits, which the bound does not cover.
    """
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # if the precision was set for each backend, as newer versions do
        precision: str = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
        return precision in ("none", "ieee")
