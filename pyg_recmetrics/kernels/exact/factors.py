"""Embeddings of items, which stay where they are. Only those that are needed are converted."""

import math
from functools import cached_property

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import at_once, copied
from pyg_recmetrics.kernels.entries import Entries, products
from pyg_recmetrics.kernels.exact.scores import (
    EXPONENT,
    pairs_at_once,
    products_of_rows,
    scale_,
    scaled,
)

#: Items whose largest number is near one of these powers of two are read as they are, and users are
#: scaled instead. If items were smaller, users would be too large for single precision. If they
#: were much larger, the squares of their norms would be.
_MODERATE_EXPONENTS = range(-15, 41)

#: How many numbers of the embeddings of pairs are held at once.
_NUM_NUMBERS = 2**20

#: How many bytes a copy of all embeddings in single precision may take.
_MAX_BYTES = 2**28


class ItemFactors:
    """The scaled embeddings of items. A bias is one more dimension, in which users have a one.

    Only what is asked for is scaled, converted and copied, and all of it only where a copy is
    small. So the embeddings may lie in a file that is mapped into memory, or in the memory of the
    host while a GPU computes.

    Args:
        embedding (torch.Tensor): Item embeddings of shape `[num_items, dim]`.
        bias (torch.Tensor, optional): Item biases of shape `[num_items]`.
        device (torch.device): The device to compute on.
        largest (float, optional): The largest number, whatever its sign, if these items are some of
            more that share one scale. (default: `None`, that of these items)
    """

    def __init__(
        self,
        embedding: Tensor,
        bias: Tensor | None,
        device: torch.device,
        largest: float | None = None,
    ) -> None:
        self.embedding, self.bias, self.device = embedding, bias, device
        self.num_items = embedding.size(0)
        self.dim = embedding.size(1) + (bias is not None)
        parts = [embedding] if bias is None else [embedding, bias]
        self._largest = max(map(largest_number, parts)) if largest is None else largest
        self._exponent = math.frexp(self._largest)[1]
        is_double = torch.double in (part.dtype for part in parts)
        self.is_moderate = not is_double and self._exponent in _MODERATE_EXPONENTS
        self.scale = 2.0 ** (EXPONENT - self._exponent) if self.is_moderate else 1.0

    @cached_property
    def largest(self) -> Tensor:
        """The largest size of a number."""
        return torch.tensor(self._largest, dtype=torch.double, device=self.device)

    def double(self, index: Tensor | slice) -> Tensor:
        """Returns some embeddings in double precision, of shape `[num_asked, dim]`."""
        rows = self._rows(index)
        if rows.dtype == torch.double:
            return scaled(rows, self.largest)
        return rows.double().mul_(2.0 ** (EXPONENT - self._exponent))

    def single(self, index: Tensor | slice) -> Tensor:
        """Returns some embeddings in single precision, for users that :meth:`for_single` scaled."""
        rows = self._rows(index)
        if self.is_moderate:
            return rows.float()
        rows = rows.to(torch.promote_types(rows.dtype, torch.float32), copy=True)
        return scale_(rows, self.largest).float()

    def for_single(self, user: Tensor) -> Tensor:
        """Scales the scaled embeddings of users such that :meth:`single` belongs to them."""
        return user * self.scale

    def single_scores(self, user: Tensor, items: Entries) -> Tensor:
        """Returns scores in single precision, of shape `[num_entries]`.

        Args:
            user (torch.Tensor): The embeddings of users, which :meth:`for_single` scaled, in single
                precision.
            items (Entries): The items of each user.
        """
        if self._table is not None:
            return products(user, self._table, items)
        scores = [user.new_empty(0)]
        pairs_at_once = max(1, at_once(_NUM_NUMBERS, self.device) // self.dim)
        parts = (values.split(pairs_at_once) for values in (items.row, items.column))
        for row, item in zip(*parts, strict=True):
            distinct, column = item.unique(return_inverse=True)
            entries = Entries(row, column, user.size(0))
            scores.append(products(user, self.single(distinct), entries))
        return torch.cat(scores)

    @cached_property
    def _table(self) -> Tensor | None:
        """All embeddings in single precision; `None` if they would take too much memory."""
        is_at_hand = self.embedding.dtype == torch.float32 and self.embedding.is_contiguous()
        if is_at_hand and self.is_moderate and self.bias is None:
            return self.embedding.to(self.device)
        if self.num_items * self.dim * torch.float32.itemsize > at_once(_MAX_BYTES, self.device):
            return None
        return self.single(slice(None)).contiguous()

    def exact_scores(self, user: Tensor, row: Tensor, item: Tensor) -> Tensor:
        """Returns the exact scores of pairs of a user and an item, of shape `[num_pairs]`.

        Args:
            user (torch.Tensor): The scaled embeddings of users, in double precision.
            row (torch.Tensor): The row of the user of each pair.
            item (torch.Tensor): The item of each pair.
        """
        parts = zip(
            *(pairs_at_once(values, self.dim, self.device) for values in (row, item)), strict=True
        )
        scores = [
            products_of_rows(user.index_select(0, rows), self.double(items))
            for rows, items in parts
        ]
        return scores[0] if len(scores) == 1 else torch.cat(scores)

    def _rows(self, index: Tensor | slice) -> Tensor:
        rows = _copied(self.embedding, index, self.device)
        if self.bias is None:
            return rows
        return with_column(rows, _copied(self.bias, index, self.device))


def is_moderate(embedding: Tensor, largest: float) -> bool:
    """Returns whether embeddings are in single precision, and their largest number is moderate."""
    return embedding.dtype != torch.double and math.frexp(largest)[1] in _MODERATE_EXPONENTS


def largest_number(values: Tensor) -> float:
    """Returns the largest of some numbers, whatever their sign; zero if there are none."""
    if values.numel() == 0:
        return 0.0
    low, high = map(float, torch.stack(values.aminmax()).tolist())
    return max(-low, high)


def with_column(embedding: Tensor, column: Tensor) -> Tensor:
    """Appends one more dimension, in a precision that loses nothing."""
    dtype = torch.promote_types(embedding.dtype, column.dtype)
    return torch.cat([embedding.to(dtype), column.to(dtype).unsqueeze(1)], dim=1)


def _copied(table: Tensor, index: Tensor | slice, device: torch.device) -> Tensor:
    if isinstance(index, slice):
        return copied(table[index], device)
    return copied(table.index_select(0, index.to(table.device)), device)
