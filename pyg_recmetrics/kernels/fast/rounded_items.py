"""Items in the order of their norms, rounded to the precision of a fast product."""

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
        # Where the embeddings are, so that reading them waits for nothing.
        self._index = self.item.to(factors.embedding.device)
        self._table: Tensor | None = None
        num_bytes = items.numel() * factors.dim * dtype.itemsize
        if num_bytes <= at_once(_MAX_BYTES, device):
            self._table = self._round(self._index, MAX_PADDING)

    def rounded(self, start: int, end: int) -> Tensor:
        """Returns the rounded embeddings of some columns, of shape `[end - start, dim]`.

        Behind the last column, there are up to `MAX_PADDING` rows of zeros.
        """
        if self._table is not None:
            return self._table[start:end]
        items = self._index[start:end]
        return self._round(items, end - start - items.numel())

    def _round(self, items: Tensor, num_zeros: int) -> Tensor:
        shape = (items.numel() + num_zeros, self.factors.dim)
        rounded = torch.zeros(shape, dtype=self.dtype, device=self.factors.device)
        start = 0
        for part in self._parts(items):
            rounded[start : start + part.numel()] = self.factors.single(part)
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
            rounded = single.to(self.dtype).float()
            norms.append(largest_norms(single))
            rounded_norms.append(largest_norms(rounded).max())
            errors.append(largest_norms(rounded - single).max())
        norm = torch.cat(norms)
        self.rounded_norm = torch.stack(rounded_norms).max()
        # What is already lost in single precision is at most half of its last bit.
        self.error = torch.stack(errors).max() + error_in_single(norm.max())
        return norm
