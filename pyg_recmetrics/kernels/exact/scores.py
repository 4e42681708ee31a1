r"""The score of an item for a user: their exact inner product, rounded once.

How a floating-point matrix product rounds depends on its shape and on the hardware. So does, then,
which of two close items comes first. Therefore the score is defined by exact arithmetic. It is the
number of single precision nearest to the inner product :math:`T` of the embeddings in real numbers,
and the even one of two that are equally near.

**Nearly all scores** follow from a product in double precision, of any shape and in any order. Its
error is at most

.. math::
    |x - T| \leq \gamma \sum_d |u_d \, i_d| \leq \gamma \, \|u\| \, \|i\| =: e ,
    \qquad \gamma > D \, 2^{-53} .

Rounding is monotone. So if :math:`x - e` and :math:`x + e` round to the same number, it is the
score. Often :math:`e` is zero: all numbers are multiples of some power of two, their *grain*. If
:math:`\|u\| \, \|i\|` is at most :math:`2^{52}` times the product of the grains, no partial sum
has more bits than double precision holds. This is so for whole numbers, and mostly for numbers in
half precision, whose scores often are halfway between two numbers.

**The few others** are added up without any error. A number in double precision is the sum of two
with half as many bits, and the products of such halves are exact. Knuth's *TwoSum* turns two
numbers into their rounded sum and its error, which together are the exact sum. Adding up :math:`L`
terms pairwise turns them into as many others, without changing their exact sum: the rounded sum
:math:`s` and errors :math:`r`, with

.. math::
    |s - T| \leq \sum_j |r_j| \leq \delta \sum_j |t_j| ,
    \qquad \delta \approx \lceil \log_2 L \rceil \, 2^{-53} .

The absolute values of the new terms add up to at most :math:`|T| + 2 \sum_j |r_j|`. So doing it
:math:`n` times leaves errors of at most :math:`3 \delta |T| + (2 \delta)^n \sum_j |t_j|`. All terms
are multiples of :math:`2^{-904}`, and so is :math:`T`. After at most 23 times, and mostly after
one, the errors are therefore a tiny fraction of :math:`s`; or :math:`T` is zero, and so are they.
Then at most one midpoint between two neighbours is so near that it matters. With the midpoint
subtracted as one more term, the sign of the exact sum decides.

**Scale.** Embeddings are first scaled by powers of two: each user separately, and all items
together. This is exact and does not change the order of any user's items. It keeps scores clear of
overflow, and as far from underflow as single precision allows: a score that is :math:`2^{260}`
times smaller than the product of the largest numbers is zero, and ties with others like it. Only
double precision holds numbers that are :math:`2^{455}` times smaller than the largest. These count
as zero, so that no term is below :math:`2^{-904}`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch, at_once, copied
from pyg_recmetrics.kernels.entries import in_parts

#: The power of two near which the largest number of scaled embeddings lies. The inner product of
#: two embeddings then stays in the range of single precision up to a dimension of 2**15.
EXPONENT = 55

#: Scaled numbers up to this one count as zero, so that no product of two halves can underflow.
_NEGLIGIBLE = 2.0**-400

#: How many products of two numbers are held at once.
_NUM_PRODUCTS = 2**18

#: How many scores are computed at once, so that they stay in the caches until they are rounded.
_NUM_SCORES_IN_TILE = 2**19

#: How many items a tile has at least, if there are as many.
_MIN_WIDTH = 256

#: How many rows are looked at bit by bit at once.
_ROWS_AT_ONCE = 4096

#: What part of the scores of a tile may be undecided before a closer bound is worth its time.
_MANY_UNDECIDED = 2.0**-5

#: What fraction of a sum its errors may be in the end.
_PRECISION = 2.0**-40


def scaled_by_row(embedding: Tensor) -> Tensor:
    """Scales every row by the power of two that brings its largest number near `2**EXPONENT`."""
    largest = torch.linalg.vector_norm(embedding, torch.inf, 1, keepdim=True).double()
    return scaled(embedding, (EXPONENT - largest.frexp().exponent).double())


def scaled(embedding: Tensor, exponent: Tensor | int) -> Tensor:
    """Copies to double precision, and multiplies by two to the power of `exponent`."""
    if embedding.dtype != torch.double:
        # The power of two is not too large for one number, and nothing comes near to negligible.
        return embedding.double().mul_(_power_of_two(exponent))
    # In two steps, since the power of two may be too large for one number.
    half = exponent // 2
    embedding = (embedding * _power_of_two(half)).mul_(_power_of_two(exponent - half))
    return torch.hardshrink(embedding, _NEGLIGIBLE, out=embedding)


def _power_of_two(exponent: Tensor | int) -> Tensor | float:
    """Returns two to the power of whole numbers."""
    # `exp2` is exact for these on every device, and `pow` need not be.
    return exponent.exp2() if isinstance(exponent, Tensor) else 2.0**exponent


def inner_products(user: Tensor, row: Tensor, item: Tensor, column: Tensor) -> Tensor:
    """Returns the scores of pairs of rows of two scaled matrices, of shape `[num_pairs]`."""
    return _of_pairs(_scores, user, row, partial(item.index_select, 0), column)


def _of_pairs(
    function: Callable[[Tensor, Tensor], Tensor],
    user: Tensor,
    row: Tensor,
    items: Callable[[Tensor], Tensor],
    column: Tensor,
) -> Tensor:
    """Computes something of pairs of rows, of so few at once that their products fit a cache."""
    num_pairs = max(1, at_once(_NUM_PRODUCTS, row.device) // max(1, user.size(1)))
    parts = [
        function(user.index_select(0, rows), items(columns))
        for rows, columns in in_parts(num_pairs, row, column)
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Returns the inner products of rows as they are rounded: `[num_rows]`."""
    return (left * right).sum(dim=1)


def _scores(left: Tensor, right: Tensor) -> Tensor:
    """Returns the exact inner products of rows, rounded once to single precision: `[num_rows]`."""
    product = left * right
    total = product.sum(dim=1)
    error = product.abs_().sum(dim=1).mul_(relative_error(product.size(1)))
    score, upper = (total - error).float(), (total + error).float()
    pair = (score != upper).nonzero().squeeze(1)
    if pair.numel() > 0:
        score[pair] = _rounded_sums(_exact_products(left[pair], right[pair]))
    return score


#: Scaled embeddings of shape `[num_rows, dim]`, and what the error of their products in double
#: precision depends on: their norms and their grains, of shape `[num_rows]` each.
BoundedFactors: TypeAlias = tuple[Tensor, Tensor, Tensor]


def bounded(embedding: Tensor) -> BoundedFactors:
    """Returns scaled embeddings `[num_rows, dim]` with what bounds the error of their products."""
    return embedding, embedding.norm(dim=1), grains(embedding)


def grains(embedding: Tensor) -> Tensor:
    """Returns the grain of each row, or a number between its half and itself: `[num_rows]`.

    The grain is the largest power of two of which all numbers of the row are multiples.
    """
    parts = []
    for part in embedding.split(_ROWS_AT_ONCE):
        # The difference is what the last bit stands for. A power of two has no such bit but in
        # its exponent, and at least half of the number is left.
        bits = part.contiguous().view(torch.int64)
        last = part - (bits & (bits - 1)).view(torch.double)
        parts.append(last.abs_().masked_fill_(part == 0, torch.inf).amin(dim=1))
    return torch.cat(parts)


def inner_product_matrix(user: Tensor, item: BoundedFactors, scratch: Scratch) -> Tensor:
    """Returns the scores of all pairs of rows of two scaled matrices: `[num_users, num_items]`.

    The next call overwrites the result.
    """
    scores = scratch("scores.rounded", (user.size(0), item[0].size(0)), torch.float32)
    num_scores = at_once(_NUM_SCORES_IN_TILE, scores.device)
    width = max(_MIN_WIDTH, num_scores // max(1, user.size(0)))
    height = max(1, num_scores // width)
    of_users = bounded(user)
    for items, item_norm, item_grain, columns in in_parts(width, *item, scores.t()):
        largest, finest = item_norm.max(), 2.0**52 * item_grain.min()
        for users, norm, grain, tile in in_parts(height, *of_users, columns.t()):
            is_exact = norm * largest <= grain * finest
            error = (relative_error(user.size(1)) * norm).masked_fill_(is_exact, 0).unsqueeze(1)
            row, column = _round_tile(users, items, error, item_norm, tile, scratch)
            if row.numel() > 0:
                tile[row, column] = inner_products(users, row, items, column)
    return scores


def _round_tile(
    user: Tensor, item: Tensor, error: Tensor, factor: Tensor, scores: Tensor, scratch: Scratch
) -> tuple[Tensor, Tensor]:
    """Rounds products whose error is at most `error * factor`, and returns where it matters."""
    shape = (user.size(0), item.size(0))
    product = scratch("scores.product", shape, torch.float64)
    upper = scratch("scores.upper", shape, torch.float32)
    torch.mm(user, item.t(), out=product)
    undecided = _round(product, error, factor, scores, upper)
    if undecided[0].numel() <= _MANY_UNDECIDED * product.numel():
        return undecided
    # Where most terms are zero, their absolute sum is far below the product of the norms.
    torch.mm(user, item.t(), out=product)
    error = torch.mm(user.abs(), item.abs().t()).mul_(relative_error(user.size(1)))
    return _round(product, error, torch.ones_like(factor), scores, upper)


def _round(
    product: Tensor, error: Tensor, factor: Tensor, lower: Tensor, upper: Tensor
) -> tuple[Tensor, Tensor]:
    """Rounds products minus and plus `error * factor`, and returns where that is not the same."""
    upper.copy_(product.addcmul_(error, factor))
    lower.copy_(product.addcmul_(error, factor, value=-2))
    # To find the largest difference takes less time than to find all that are not zero.
    row = upper.sub_(lower).amax(dim=1).nonzero().squeeze(1)
    found, column = upper[row].nonzero(as_tuple=True)
    return row[found], column


def relative_error(dim: int, dtype: torch.dtype = torch.double) -> float:
    """Returns how far a product can be off, as a part of the product of both norms.

    In single precision, this allows for embeddings that are rounded.
    """
    # The bound itself is rounded, too, and its sum with the product is rounded twice.
    return 1.001 * (dim + 8) * torch.finfo(dtype).eps / 2


# Error-free transformations, by their names in the literature.


def _exact_products(left: Tensor, right: Tensor) -> Tensor:
    """Returns terms whose exact sums are the inner products of rows: `[num_pairs, num_terms]`.

    The products of numbers of 26 bits are exact in double precision (Dekker).
    """
    rights = _split(right)
    parts = [a * b for a in _split(left) for b in rights]
    return torch.cat(parts, dim=1)


def _split(values: Tensor) -> list[Tensor]:
    """Splits numbers into two of at most 26 bits, whose sum they are (Veltkamp's *Split*)."""
    large = values * (2.0**27 + 1)
    high = large - (large - values)
    low = values - high
    # Numbers that come from single precision have 24 bits only.
    return [high, low] if low.any() else [high]


def _two_sum(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Returns rounded sums, and their errors, which are exact (Knuth's *TwoSum*)."""
    total = left + right
    shift = total - left
    return total, (left - (total - shift)) + (right - shift)


def _rounded_sums(terms: Tensor) -> Tensor:
    """Rounds the exact sums of rows to single precision."""
    terms, rest = _distilled(terms)
    total = terms[:, 0]
    # The fraction of the sum allows for the rounding of the bounds.
    error = rest + 2.0**-50 * total.abs()
    lower, upper = (total - error).float(), (total + error).float()
    if torch.equal(lower, upper):
        return lower
    # The others are neighbours, so their midpoint is exact.
    middle = (lower.double() + upper.double()) / 2
    terms, _ = _distilled(torch.cat([terms, -middle.unsqueeze(1)], dim=1))
    side = terms[:, 0]
    nearest = torch.where(side > 0, upper, lower)
    return torch.where(side == 0, middle.float(), nearest)


def _distilled(terms: Tensor) -> tuple[Tensor, Tensor]:
    """Transforms the terms of sums until the first one nearly is the sum of its row.

    Returns:
        Terms of the same exact sums, and the absolute sums of all but the first term of each row.
        These are at most a fraction `_PRECISION` of the first, which therefore has the sign of
        the exact sum, and is zero only if that is.
    """
    while True:
        terms = _summed(terms)
        rest = terms[:, 1:].abs().sum(dim=1)
        if not (rest > _PRECISION * terms[:, 0].abs()).any():
            return terms, rest


def _summed(terms: Tensor) -> Tensor:
    """Adds up the terms of each row, and puts the errors of all additions behind the sum."""
    errors = []
    while terms.size(1) > 1:
        half = terms.size(1) // 2
        left, right, single = terms.split([half, half, terms.size(1) % 2], dim=1)
        total, error = _two_sum(left, right)
        errors.append(error)
        terms = torch.cat([total, single], dim=1)
    return torch.cat([terms, *errors], dim=1)


#: Items whose largest number is near one of these powers of two are read as they are, and users are
#: scaled instead. If items were smaller, users would be too large for single precision. If they
#: were much larger, the squares of their norms would be.
_MODERATE_EXPONENTS = range(-15, 41)


class ItemFactors:
    """The scaled embeddings of items. A bias is one more dimension, in which users have a one.

    Only what is asked for is scaled, converted and copied, and all of it only where a copy is
    small. So the embeddings may lie in a file that is mapped into memory, or in the memory of the
    host while a GPU computes.

    Args:
        embedding (torch.Tensor): Item embeddings of shape `[num_items, dim]`.
        bias (torch.Tensor, optional): Item biases of shape `[num_items]`.
        device (torch.device): The device to compute on.
        largest (float, optional): The largest number, whatever its sign, if it is known.
            (default: `None`, it is looked for)
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
        if largest is None:
            largest = max(map(largest_number, parts))
        self._exponent = math.frexp(largest)[1]
        is_double = any(part.dtype == torch.double for part in parts)
        self._is_moderate = not is_double and self._exponent in _MODERATE_EXPONENTS
        self.scale = 2.0 ** (EXPONENT - self._exponent) if self._is_moderate else 1.0

    def double(self, index: Tensor | slice) -> Tensor:
        """Returns some embeddings in double precision, of shape `[num_asked, dim]`."""
        return scaled(self._rows(index), EXPONENT - self._exponent)

    def single(self, index: Tensor | slice) -> Tensor:
        """Returns some embeddings in single precision, for users that :meth:`for_single` scaled."""
        return (self._rows(index) if self._is_moderate else self.double(index)).float()

    def for_single(self, user: Tensor) -> Tensor:
        """Scales the scaled embeddings of users such that :meth:`single` belongs to them."""
        return user * self.scale

    def single_scores(self, user: Tensor, row: Tensor, item: Tensor) -> Tensor:
        """Returns scores in single precision of pairs of a user and an item: `[num_pairs]`.

        Args:
            user (torch.Tensor): The embeddings of users, which :meth:`for_single` scaled, in single
                precision.
            row (torch.Tensor): The row of the user of each pair.
            item (torch.Tensor): The item of each pair.
        """
        return _of_pairs(_products, user, row, self.single, item)

    def exact_scores(self, user: Tensor, row: Tensor, item: Tensor) -> Tensor:
        """Returns the exact scores of pairs of a user and an item, of shape `[num_pairs]`.

        Args:
            user (torch.Tensor): The scaled embeddings of users, in double precision.
            row (torch.Tensor): The row of the user of each pair.
            item (torch.Tensor): The item of each pair.
        """
        return _of_pairs(_scores, user, row, self.double, item)

    def _rows(self, index: Tensor | slice) -> Tensor:
        rows = _copied(self.embedding, index, self.device)
        if self.bias is None:
            return rows
        return with_column(rows, _copied(self.bias, index, self.device))


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
