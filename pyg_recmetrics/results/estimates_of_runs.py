"""Estimates whose intervals allow for other runs, too."""

import math
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from pyg_recmetrics.results.estimates import Estimate, Ratio, mean_of_users
from pyg_recmetrics.results.uncertainty import Variation, combine

E = TypeVar("E", bound="EstimateOfRuns")


def mean_of_users_and_runs(values: Tensor, person: Tensor | None) -> Estimate:
    """Estimates the mean over users and runs, over the users who count in every run.

    Args:
        values (torch.Tensor): The values of users in each run, of shape `[num_runs, num_users]`;
            `NaN` for users who do not count.
        person (torch.Tensor or None): The person to whom each row belongs, of shape `[num_users]`.
    """
    if len(values) == 1:
        return mean_of_users(values[0], person)
    values = values.masked_fill(values.isnan().any(dim=0), torch.nan)
    runs = [mean_of_users(row, person) for row in values]
    means = values.new_tensor([run.value for run in runs])
    influences = torch.stack([run.influence for run in runs])
    return EstimateOfRuns.of(means, influences, runs[0].num_drawn)


@dataclass(frozen=True, eq=False)
class EstimateOfRuns(Estimate):
    """The mean of an estimate over runs, whose interval allows for other users and other runs.

    Attributes:
        values (torch.Tensor): The estimate of every run, of shape `[num_runs]`.
        influences (torch.Tensor): What each user or person adds to the error of each of them, of
            shape `[num_runs, num_drawn]`.
    """

    values: Tensor
    influences: Tensor

    @classmethod
    def of(cls: type[E], values: Tensor, influences: Tensor, num_drawn: int) -> E:
        """Takes the estimates of all runs."""
        return cls(float(values.mean()), influences.mean(dim=0), num_drawn, values, influences)

    @property
    def variation(self) -> Variation:
        """How runs vary."""
        rest = self.influences - self.influence
        return Variation.of(self.values, rest.square().sum(dim=1).tolist())

    def margin(self, level: float) -> float:
        """Returns half the width of its interval; `NaN` if fewer than two were drawn."""
        if self.num_drawn < 2:
            return math.nan
        return combine(self.variance, self.num_drawn, [self.variation]).margin(level)

    def minus(self, other: Estimate) -> "EstimateOfRuns":
        """Returns the difference."""
        values, influences = _in_runs(other)
        num_drawn = min(self.num_drawn, other.num_drawn)
        return EstimateOfRuns.of(self.values - values, self.influences - influences, num_drawn)

    def over(self, other: Estimate) -> "RatioOfRuns":
        """Returns the ratio of the means over runs, to the first order of the errors."""
        values, influences = _in_runs(other)
        divisor = other.value or math.nan
        ratio = self.value / divisor
        return RatioOfRuns.of(
            ratio + (self.values - ratio * values) / divisor,
            (self.influences - ratio * influences) / divisor,
            min(self.num_drawn, other.num_drawn),
        )


class RatioOfRuns(EstimateOfRuns, Ratio):
    """The ratio of two estimates of runs, whose interval is one of its logarithm."""


def _in_runs(estimate: Estimate) -> tuple[Tensor, Tensor]:
    """Returns the estimate of every run, and the influence of users on each."""
    if isinstance(estimate, EstimateOfRuns):
        return estimate.values, estimate.influences
    # It is the same in every run.
    return estimate.influence.new_tensor([estimate.value]), estimate.influence.unsqueeze(0)
