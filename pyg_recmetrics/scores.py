"""The score of an item for a user: the correctly rounded inner product of their embeddings.

How a floating-point matrix product rounds depends on its shape and on the hardware, and with it
which of two close items comes first. So the sum runs in double precision and is then rounded to
single precision: this is the same number whatever else is computed beside it.

Embeddings are scaled by powers of two before, each user for itself and all items alike. This is
exact, changes no user's order, and keeps scores clear of overflow and underflow.
"""

import torch
from torch import Tensor


def scaled_by_row(embedding: Tensor) -> Tensor:
    """Scales every row by the power of two that brings its largest number near one."""
    return scaled(embedding, embedding.abs().amax(dim=1, keepdim=True))


def scaled_by_all(embedding: Tensor) -> Tensor:
    """Scales all rows by the power of two that brings the largest number near one."""
    return scaled(embedding, torch.stack(embedding.aminmax()).abs().max())


def scaled(embedding: Tensor, largest: Tensor) -> Tensor:
    """Scales in double precision by the power of two that brings `largest` near one."""
    # In two steps, as the powers of two from end to end of double precision are too large for one.
    exponent = -largest.double().frexp().exponent.double()
    half = (exponent / 2).floor()
    embedding = embedding.to(torch.double, copy=True)
    return embedding.mul_(half.exp2()).mul_((exponent - half).exp2())


def inner_products(user: Tensor, row: Tensor, item: Tensor, column: Tensor) -> Tensor:
    """The scores of pairs of rows of two embedding matrices, of shape `[num_pairs]`."""
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, user.size(1)))
    parts = zip(row.split(at_once), column.split(at_once), strict=True)
    scores = [
        user.index_select(0, r).mul_(item.index_select(0, c)).sum(dim=1).float() for r, c in parts
    ]
    return torch.cat(scores)


_NUMBERS_AT_ONCE = 2**18
