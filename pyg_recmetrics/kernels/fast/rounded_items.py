"""Items in the order of their norms, rounded to the precision of a fast product."""

import math

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import at_once
from pyg_recmetrics.kernels.exact.factors import ItemFactors
from pyg_recmetrics.kernels.fast.bounds import error_in_single, largest_norms

#: How many bytes the rounded embeddings of all items may take. If they take more, they are rounded
#: anew whenever they are read.
_MAX_BYTES = 2**29

#: How many columns may be asked for behind the last one.
MAX_PADDING = 2**8

#: In half precision, whose largest number is about `2**16`, the largest numbers lie near this power
#: of two. Those that are a million times smaller are in its range as well.
_EXPONENT = 10

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
        scale (float): The power of two by which items are multiplied, so that they are in the range
            of the precision.
        scale_of_users (float): The power of two by which users are multiplied.
        rounded_norm (torch.Tensor): The largest norm of a rounded embedding, without the scale.
        error (torch.Tensor): The largest norm of a rounding error, without the scale.
    """

    def __init__(self, factors: ItemFactors, candidates: Tensor | None, dtype: torch.dtype) -> None:
        self.factors, self.dtype = factors, dtype
        is_narrow = dtype == torch.float16
        self.scale = factors.scale_to(_EXPONENT) if is_narrow else 1.0
        self.scale_of_users = factors.scale_of_users_to(_EXPONENT) if is_narrow else 1.0
        device = factors.device
        items = torch.arange(factors.num_items, device=device) if candidates is None else candidates
        norm = self._measure(items)
        self.norm, order = norm.sort(descending=True)
        self.item = items[order]
        self.column = torch.full((factors.num_items,), -1, device=device)
        self.column[self.item] = torch.arange(items.numel(), device=device)
        # Where the embeddings are, so that reading them waits for nothing.
        self._index = self.item.to(factors.embedding.device)
        self._table: Tensor | None = None
        num_bytes = items.numel() * factors.dim * dtype.itemsize
        if num_bytes <= at_once(_MAX_BYTES, device):
            self._table = self._round(self._index, MAX_PADDING)

    @property
    def error_by_norm(self) -> tuple[float, float]:
        """What bounds the norm of a rounding error: its share of the norm, and what is added."""
        precision = torch.finfo(self.dtype)
        # Numbers that are too small to be normal are rounded to multiples of the smallest one.
        smallest = precision.smallest_normal * precision.eps / self.scale
        # All numbers were rounded to single precision before.
        return precision.eps / 2 + 2.0**-24, smallest / 2 * math.sqrt(self.factors.dim)

    def rounded(self, start: int, end: int) -> Tensor:
        """Returns the rounded embeddings of some columns, of shape `[end - start, dim]`.

        Behind the last column, there are up to `MAX_PADDING` rows of zeros.
        """
        if self._table is not None:
            return self._table[start:end]
        items = self._index[start:end]
        return self._round(items, end - start - items.numel())

    def rounded_users(self, user: Tensor) -> Tensor:
        """Returns users in the precision of the product, given those that belong to the factors."""
        return (user * self.scale_of_users).to(self.dtype)

    def _round(self, items: Tensor, num_zeros: int) -> Tensor:
        shape = (items.numel() + num_zeros, self.factors.dim)
        rounded = torch.zeros(shape, dtype=self.dtype, device=self.factors.device)
        start = 0
        for part in self._parts(items):
            rounded[start : start + part.numel()] = _times(self.factors.single(part), self.scale)
            start += part.numel()
        return rounded

    def _parts(self, items: Tensor) -> tuple[Tensor, ...]:
        num_items = at_once(_ITEMS_AT_ONCE, self.factors.device)
        parts: tuple[Tensor, ...] = items.split(num_items)
        return parts

    def _measure(self, items: Tensor) -> Tensor:
        """Finds the largest norms of rounded embeddings and of errors, and returns all norms."""
        norms, rounded_norms, errors = [], [], []
        for part in self._parts(items):
            single = self.factors.single(part)
            rounded = _times(_times(single, self.scale).to(self.dtype).float(), 1 / self.scale)
            norms.append(largest_norms(single))
            rounded_norms.append(largest_norms(rounded).max())
            errors.append(largest_norms(rounded - single).max())
        norm = torch.cat(norms)
        self.rounded_norm = torch.stack(rounded_norms).max()
        # What is already lost in single precision is at most half of its last bit.
        self.error = torch.stack(errors).max() + error_in_single(norm.max())
        return norm


def _times(rows: Tensor, scale: float) -> Tensor:
    return rows if scale == 1 else rows * scale
