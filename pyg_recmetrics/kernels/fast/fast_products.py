"""Fast scores of embeddings: products of their roundings."""

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import sums_in_single_precision
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.sorting import put_in_order_
from pyg_recmetrics.kernels.fast.blocks import Blocks
from pyg_recmetrics.kernels.fast.bounds import ErrorBound, error_in_single, rounding_in_single
from pyg_recmetrics.kernels.fast.fast_scores import FastScores
from pyg_recmetrics.kernels.fast.matrix_products import matrix_product
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.scratch import Scratch

#: One in so many columns may belong to the sieve.
_PART_IN_SIEVE = 8


class FastProducts(FastScores):
    """Products of the rounded embeddings of some users and all items.

    Args:
        user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`, in
            double precision.
        items (RoundedItems): The items.
    """

    def __init__(self, user: Tensor, items: RoundedItems) -> None:
        self.user, self.items = user, items
        self.item, self.column = items.item, items.column
        self.num_in_sieve = self.item.numel() // _PART_IN_SIEVE
        scaled = items.factors.for_single(user)
        self.rounded, self.single = scaled.to(items.dtype), scaled.float()
        dim = user.size(1)
        # A GPU may cut off what it adds up, at 2**-23 of the largest number, and not round it.
        self.bound = ErrorBound(scaled, self.rounded, rounding_of_sum=dim * 2.0**-22)
        self.error = self.bound.of(items.rounded_norm, items.error)
        # The exact score is rounded, too.
        of_single = ErrorBound(scaled, self.single, rounding_of_sum=rounding_in_single(dim + 1))
        largest = items.norm[0]
        self.error_of_items = of_single.of(largest, error_in_single(largest))
        self.is_bfloat16 = items.dtype == torch.bfloat16
        # The bits of positive numbers have the order of the numbers, and lie above all others.
        self.lowest_in_order = 1 if self.is_bfloat16 else torch.finfo(items.dtype).min

    def of_items(self, rows: Tensor, items: Entries) -> Tensor:
        return self.items.factors.single_scores(self.single.index_select(0, rows), items)

    def exactly(self, row: Tensor, item: Tensor) -> Tensor:
        return self.items.factors.exact_scores(self.user, row, item)

    def num_within_reach(self, score: Tensor) -> Tensor:
        norm = score / self.bound.norm
        return torch.searchsorted(-self.items.norm, -norm, right=True)

    def blocks(self, rows: Tensor, start: int, end: int, scratch: Scratch) -> Blocks:
        user, items = self.rounded.index_select(0, rows), self.items.rounded(start, end)
        with sums_in_single_precision(user.device):
            scores = matrix_product(user, items, scratch, "fast_products")
        num_columns = min(end, self.item.numel()) - start
        if self.is_bfloat16:
            return _Bfloat16Products(scores.view(torch.int16), num_columns)
        return Blocks(scores, num_columns)

    def to_value(self, score: Tensor) -> Tensor:
        value = score.to(self.items.dtype)
        return put_in_order_(value.view(torch.int16)) if self.is_bfloat16 else value

    def to_score(self, value: Tensor) -> Tensor:
        if not self.is_bfloat16:
            return value.double()
        number = put_in_order_(value.clone()).view(torch.bfloat16).double()
        # Numbers are rounded to a neighbour that differs by at most the last of eight bits.
        return number - 2.0**-8 * number.abs()


class _Bfloat16Products(Blocks):
    """The bits of products in `bfloat16`."""

    def put_in_order_(self) -> None:
        put_in_order_(self.matrix)
        self._hide_padding()
