"""Sums over users that do not depend on their order.

A floating-point sum is rounded at every step, so it depends on the order. Here, values are cut into
digits of 36 bits, place by place. The digits of a place add up without rounding, and the sum of all
places is rounded once, also where it is divided by a number of values.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

#: How many bits a digit has.
_DIGIT = 36

#: A sum is a multiple of this power of two. Every double is one, and it is as many digits away.
_UNIT = 30 * _DIGIT

#: Up to this size, whole numbers count as a digit.
_MAX_WHOLE = 2.0**_DIGIT

#: How many values are cut into digits at once. A double holds the sum of so many digits.
_AT_ONCE = 2**16


@dataclass(frozen=True)
class ExactSum:
    """A sum of doubles, without any rounding.

    Attributes:
        numerator (int): The sum of all finite values, in small units.
        num_values (int): How many values there are.
        num_nan (int): How many of them are `NaN`.
        num_above (int): How many of them are `inf`.
        num_below (int): How many of them are `-inf`.
    """

    numerator: int
    num_values: int
    num_nan: int
    num_above: int
    num_below: int

    @property
    def mean(self) -> float:
        """The mean of the values that are not `NaN`, rounded once; `NaN` if there are none."""
        num_counted = self.num_values - self.num_nan
        return self._over(num_counted) if num_counted else math.nan

    def __float__(self) -> float:
        return math.nan if self.num_nan else self._over(1)

    def _over(self, divisor: int) -> float:
        if self.num_above and self.num_below:
            return math.nan
        if self.num_above or self.num_below:
            return math.inf if self.num_above else -math.inf
        try:
            return self.numerator / (divisor << _UNIT)
        except OverflowError:
            return math.inf if self.numerator > 0 else -math.inf


def exact_sums(*values: Tensor) -> list[ExactSum]:
    """Returns the sum of all elements of each tensor."""
    if len({(each.shape, each.dtype, each.device) for each in values}) == 1:
        return _sums_of_rows(torch.stack(values))
    return [_sums_of_rows(each.unsqueeze(0))[0] for each in values]


def exact_sum(values: Tensor) -> float:
    """Returns the sum of values, rounded once."""
    return float(exact_sums(values)[0])


def exact_mean(values: Tensor) -> float:
    """Returns the mean of the values that are not `NaN`; `NaN` if there are none."""
    return exact_sums(values)[0].mean


def _sums_of_rows(tensor: Tensor) -> list[ExactSum]:
    """Returns the sums of tensors that are stacked."""
    values = tensor.detach().flatten(1)
    num_rows, num_values = values.shape
    numerators, num_odd = [0] * num_rows, np.zeros((num_rows, 3), dtype=np.int64)
    step = max(1, _AT_ONCE // num_rows)
    for start in range(0, num_values, step):
        part = values[:, start : start + step].to("cpu", torch.double).numpy()
        if not (are_small := bool(np.abs(part).max() <= _MAX_WHOLE)):  # as NaN is not
            odd = np.stack([np.isnan(part), np.isposinf(part), np.isneginf(part)], axis=2)
            num_odd += odd.sum(axis=1)
            part = np.where(odd.any(axis=2), 0.0, part)
        sums = _numerators(part, are_small)
        numerators = [x + y for x, y in zip(numerators, sums, strict=True)]
    of_rows = zip(numerators, num_odd.tolist(), strict=True)
    return [ExactSum(total, num_values, *odd) for total, odd in of_rows]


def _numerators(values: np.ndarray, are_small: bool) -> list[int]:
    """Returns the sums of rows of finite doubles, in units."""
    digit = np.trunc(values)
    sums = _added(digit) if are_small else [sum(map(int, row)) for row in digit.tolist()]
    rest, num_bits = values - digit, 0
    while rest.any():
        rest *= 2.0**_DIGIT
        digit = np.trunc(rest)
        rest -= digit
        num_bits += _DIGIT
        sums = [(x << _DIGIT) + y for x, y in zip(sums, _added(digit), strict=True)]
    return [total << (_UNIT - num_bits) for total in sums]


def _added(digits: np.ndarray) -> list[int]:
    return list(map(int, digits.sum(axis=1).tolist()))
