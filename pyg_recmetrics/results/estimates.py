"""Estimates that share their users, so that their differences and ratios have intervals, too."""

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.results.student import t_quantile
from pyg_recmetrics.sums import exact_sum, exact_sums

_LARGEST_POWER = math.log(sys.float_info.max)

#: A variance that is smaller than this share of the squared mean is due to rounding.
ROUNDING_OF_VARIANCE = 1e-28


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Estimate:
    r"""A number that was estimated from a sample of users, and what each of them adds to its error.

    Attributes:
        value (float): The estimate.
        influence (torch.Tensor): What each user or person adds to the error, of shape
            `[num_drawn]`. The sum of the squares is the variance. Those of two estimates belong to
            the same users, so that what they have in common cancels out in a difference.
        num_drawn (int): How many users or persons it is estimated from. For two estimates together,
            it is the smaller number.
    """

    value: float
    influence: Tensor
    num_drawn: int

    @cached_property
    def variance(self) -> float:
        """The variance; `NaN` if fewer than two were drawn."""
        return exact_sum(self.influence.square())

    def margin(self, level: float) -> float:
        """Returns half the width of its interval; `NaN` if fewer than two were drawn."""
        return t_margin(self.variance, self.num_drawn, level)

    def interval(self, level: float) -> Interval:
        """Returns its interval; `NaN` if fewer than two were drawn."""
        margin = self.margin(level)
        return Interval(self.value - margin, self.value + margin)

    def minus(self, other: "Estimate") -> "Estimate":
        """Returns the difference."""
        influence = self.influence - other.influence
        num_drawn = min(self.num_drawn, other.num_drawn)
        return Estimate(self.value - other.value, influence, num_drawn)

    def over(self, other: "Estimate") -> "Ratio":
        """Returns the ratio, to the first order of the errors; `NaN` if the divisor is zero."""
        num_drawn = min(self.num_drawn, other.num_drawn)
        if other.value == 0:
            unknown = torch.full_like(self.influence, math.nan)
            return Ratio(math.nan, unknown, num_drawn)
        ratio = self.value / other.value
        influence = (self.influence - ratio * other.influence) / other.value
        return Ratio(ratio, influence, num_drawn)


class Ratio(Estimate):
    """The ratio of two estimates, whose interval is one of its logarithm.

    A logarithm is more nearly normal than a ratio, and the interval never reaches below zero.
    """

    def interval(self, level: float) -> Interval:
        """Returns the interval; `NaN` if the ratio is not positive, or fewer than two count."""
        if not self.value > 0:
            return Interval(math.nan, math.nan)
        margin = self.margin(level) / self.value
        factor = math.exp(margin) if margin < _LARGEST_POWER else math.inf
        return Interval(self.value / factor, self.value * factor)


def ratio_of_sums(numerator: Tensor, denominator: Tensor, person: Tensor | None) -> Estimate:
    """Estimates the sum of one value of users over the sum of another.

    Args:
        numerator (torch.Tensor): One value of every user, of shape `[num_users]`.
        denominator (torch.Tensor): The other, zero or more. Users with zero do not count.
        person (torch.Tensor or None): The number of the person to whom each row belongs, of shape
            `[num_users]`.

    Source: Cochran, "Sampling techniques", 2.11 and 6.4 (1977).
    """
    above, total = map(float, exact_sums(numerator, denominator))
    value = above / total if total else math.nan
    deviation, counts = (numerator - value * denominator) / total, denominator
    if person is not None:
        deviation, counts = (sums_of_persons(x, person) for x in (deviation, counts))
    num_drawn = int((counts > 0).sum())
    factor = math.sqrt(num_drawn / (num_drawn - 1)) if num_drawn > 1 else math.nan
    return Estimate(value, deviation * factor, num_drawn)


def sums_of_persons(values: Tensor, person: Tensor) -> Tensor:
    """Adds up the values of the rows of each person, of shape `[num_persons]`."""
    person = person.to(values.device)
    num_persons = int(person.max()) + 1 if person.numel() else 0
    return values.new_zeros(num_persons).index_add_(0, person, values)


def mean_of_users(values: Tensor, person: Tensor | None) -> Estimate:
    """Estimates the mean of the values that are not `NaN`, given one of every user."""
    is_counted = ~values.isnan()
    return ratio_of_sums(values.nan_to_num(0.0), is_counted.to(values.dtype), person)


def t_margin(variance: float, num_drawn: int, level: float) -> float:
    """Returns half the width of an interval of the t-distribution; `NaN` for fewer than two."""
    if num_drawn < 2:
        return math.nan
    return t_quantile(level, num_drawn - 1) * math.sqrt(variance)
