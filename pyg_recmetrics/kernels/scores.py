"""The score of an item for a user: the correctly rounded inner product of their embeddings.

How a floating-point matrix product rounds depends on its shape and on the hardware. So does, then,
which of two close items comes first. Therefore the sum is computed in double precision and then
rounded to single precision. This gives the same number whatever else is computed beside it.

Embeddings are first scaled by powers of two: each user separately, and all items together. This
is exact and does not change the order of any user's items. It keeps scores clear of overflow, and
as far from underflow as single precision allows.
"""

import torch
from torch import Tensor

#: The power of two near which the largest number of scaled embeddings lies. The inner product of
#: two embeddings then stays in the range of single precision up to a dimension of 2**15.
_EXPONENT = 55

#: How many products of two numbers are held at once.
_NUM_PRODUCTS = 2**18


def scaled_by_row(embedding: Tensor) -> Tensor:
    """Scales every row by the power of two that brings its largest number near `2**_EXPONENT`."""
    return scaled(embedding, embedding.abs().amax(dim=1, keepdim=True))


def scaled_by_all(embedding: Tensor) -> Tensor:
    """Scales all rows by the power of two that brings the largest number near `2**_EXPONENT`."""
    return scaled(embedding, torch.stack(embedding.aminmax()).abs().max())


def scaled(embedding: Tensor, largest: Tensor) -> Tensor:
    """Copies to double precision, and scales such that `largest` comes near `2**_EXPONENT`."""
    # In two steps, since the power of two may be too large for one number in double precision.
    exponent = _EXPONENT - largest.double().frexp().exponent.double()
    half = (exponent / 2).floor()
    embedding = embedding.to(torch.double, copy=True)
    return embedding.mul_(half.exp2()).mul_((exponent - half).exp2())


def inner_products(user: Tensor, row: Tensor, item: Tensor, column: Tensor) -> Tensor:
    """Returns the scores of pairs of rows of two embedding matrices, of shape `[num_pairs]`."""
    pairs_at_once = max(1, _NUM_PRODUCTS // max(1, user.size(1)))
    parts = zip(row.split(pairs_at_once), column.split(pairs_at_once), strict=True)
    scores = [
        user.index_select(0, r).mul_(item.index_select(0, c)).sum(dim=1).float() for r, c in parts
    ]
    return torch.cat(scores)
