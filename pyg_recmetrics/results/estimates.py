"""Estimates that share their users, so that their differences and ratios have intervals, too."""

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


class Estimate(NamedTuple):
    r"""A number that was estimated from a sample of users, and what each of them adds to its error.

    Attributes:
        value: The estimate.
        influence: What each user or person adds to the error, of shape `[num_drawn]`. The sum of
            the squares is the variance. Those of two estimates belong to the same users, so that
            what they have in common cancels out in a difference.
    """

    value: float
    influence: Tensor

    @property
    def variance(self) -> float:
        """The variance; `NaN` if fewer than two were drawn."""
        return float(self.influence.square().sum())

    def interval(self, level: float) -> Interval:
        """Returns the normal interval."""
        margin = normal_margin(self.variance, level)
        return Interval(self.value - margin, self.value + margin)

    def minus(self, other: "Estimate") -> "Estimate":
        """Returns the difference."""
        return Estimate(self.value - other.value, self.influence - other.influence)

    def over(self, other: "Estimate") -> "Estimate":
        """Returns the ratio, to the first order of the errors; `NaN` if the divisor is zero."""
        if other.value == 0:
            return Estimate(math.nan, torch.full_like(self.influence, math.nan))
        ratio = self.value / other.value
        return Estimate(ratio, (self.influence - ratio * other.influence) / other.value)


def ratio_of_sums(numerator: Tensor, denominator: Tensor, person: Tensor | None) -> Estimate:
    """Estimates the sum of one value of users over the sum of another.

    Args:
        numerator (torch.Tensor): One value of every user, of shape `[num_users]`.
        denominator (torch.Tensor): The other, zero or more. Users with zero do not count.
        person (torch.Tensor or None): The number of the person to whom each row belongs, of shape
            `[num_users]`.

    Source: Cochran, "Sampling techniques", 2.11 and 6.4 (1977).
    """
    total = denominator.sum()
    value = numerator.sum() / total
    deviation, counts = (numerator - value * denominator) / total, denominator
    if person is not None:
        deviation, counts = (sums_of_persons(x, person) for x in (deviation, counts))
    num_drawn = int((counts > 0).sum())
    factor = math.sqrt(num_drawn / (num_drawn - 1)) if num_drawn > 1 else math.nan
    return Estimate(float(value), deviation * factor)


def sums_of_persons(values: Tensor, person: Tensor) -> Tensor:
    """Adds up the values of the rows of each person, of shape `[num_persons]`."""
    person = person.to(values.device)
    num_persons = int(person.max()) + 1 if person.numel() else 0
    return values.new_zeros(num_persons).index_add_(0, person, values)


def mean_of_users(values: Tensor, person: Tensor | None) -> Estimate:
    """Estimates the mean of the values that are not `NaN`, given one of every user."""
    is_counted = ~values.isnan()
    return ratio_of_sums(values.nan_to_num(0.0), is_counted.to(values.dtype), person)


def normal_margin(variance: float, level: float) -> float:
    """Returns half the width of the normal interval of an estimate with some variance."""
    return NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance)
