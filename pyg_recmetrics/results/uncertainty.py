r"""Where the variance of a mean comes from: the choice of users, and the runs of a recommender.

Let :math:`x_{su}` be the value of user `u` in run `s` of a recommender: the sum of a mean, an
effect of the user, an effect of the run, and a rest. All of them are random: other users and other
runs might have been drawn. With `n` users and `m` runs, the variance of the mean is

.. math::
    \frac{\sigma^2_\text{users}}{n} + \frac{\sigma^2_\text{runs}}{m}
    + \frac{\sigma^2_\text{rest}}{nm}

The first and the last of these follow from how the means of users over runs vary. The second
follows from how the means of runs vary, less what users alone make them vary. Each is a mean square
with its degrees of freedom. By Satterthwaite's approximation, the mean has a t-distribution. The
difference of two recommenders has the effects of users in common, and the runs of both.

Sources: Searle, Casella and McCulloch, "Variance components", 4 (1992); Satterthwaite, "An
approximate distribution of estimates of variance components" (1946).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from torch import Tensor

from pyg_recmetrics.results.estimates import Interval
from pyg_recmetrics.results.inference import Sample

#: What is drawn anew if somebody repeats the evaluation.
Source: TypeAlias = Literal["users", "runs"]

#: With more degrees of freedom than this, a t-distribution is a normal one.
_NORMAL = 10**6

#: The largest number of users or runs that is looked for.
_MOST = 10**12


class Component(NamedTuple):
    """A part of a variance that is estimated by a mean square.

    Attributes:
        source: Where it comes from.
        variance: Its size; negative if it is subtracted.
        freedom: Its degrees of freedom.
    """

    source: Source
    variance: float
    freedom: float


@dataclass(frozen=True)
class Uncertainty:
    """The variance of a mean or of a difference, by where it comes from.

    Attributes:
        components: Its parts.
        num_users: How many users or persons were drawn.
        num_runs: How many runs each recommender has whose runs vary; one if none does.
    """

    components: tuple[Component, ...]
    num_users: float
    num_runs: float = 1

    @property
    def variance(self) -> float:
        """The variance."""
        return sum(component.variance for component in self.components)

    def of(self, source: Source) -> float:
        """Returns the variance that comes from a source."""
        return sum(part.variance for part in self.components if part.source == source)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the variance."""
        total = sum(part.variance**2 / part.freedom for part in self.components if part.freedom)
        return self.variance**2 / total if total > 0 else math.inf

    def margin(self, level: float) -> float:
        """Returns half the width of the confidence interval."""
        return self._quantile(level) * math.sqrt(self.variance)

    def interval(self, center: float, level: float) -> Interval:
        """Returns the confidence interval around an estimate."""
        margin = self.margin(level)
        return Interval(center - margin, center + margin)

    def p_value(self, difference: float) -> float:
        """Returns the two-sided p-value of the hypothesis that there is no difference."""
        from scipy import stats

        if self.variance == 0:
            return float(difference == 0)
        t = abs(difference) / math.sqrt(self.variance)
        return float(2 * stats.t.sf(t, self.freedom))

    def power(self, difference: float, level: float) -> float:
        """Returns how likely a test finds a difference of this size."""
        from scipy import stats

        if self.variance == 0:
            return float(difference != 0)
        quantile, freedom = self._quantile(level), self.freedom
        shift = abs(difference) / math.sqrt(self.variance)
        if freedom > _NORMAL:
            return float(stats.norm.sf(quantile - shift) + stats.norm.cdf(-quantile - shift))
        return float(
            stats.nct.sf(quantile, freedom, shift) + stats.nct.cdf(-quantile, freedom, shift)
        )

    def detectable(self, power: float, level: float) -> float:
        """Returns the smallest difference that a test finds with some probability."""
        from scipy import optimize

        if self.variance == 0:
            return 0.0
        most = math.sqrt(self.variance)
        while self.power(most, level) < power:
            most *= 1.5  # and no more, as SciPy knows no power of very large differences
        return float(optimize.brentq(lambda x: self.power(x, level) - power, 0, most, xtol=1e-15))

    def with_number(self, source: Source, number: float) -> "Uncertainty":
        """Returns the uncertainty if there were another number of users or runs."""
        factor = number / (self.num_users if source == "users" else self.num_runs)
        components = tuple(
            part._replace(
                variance=part.variance / factor, freedom=max((part.freedom + 1) * factor - 1, 0)
            )
            if part.source == source
            else part
            for part in self.components
        )
        if source == "users":
            return replace(self, components=components, num_users=number)
        return replace(self, components=components, num_runs=number)

    def needed(self, source: Source, difference: float, power: float, level: float) -> int | None:
        """Returns how many users or runs a difference needs to be found with some probability.

        `None` if no number is enough.
        """

        def is_enough(number: int) -> bool:
            return self.with_number(source, number).power(difference, level) >= power

        most = 2
        while not is_enough(most):
            most *= 2
            if most > _MOST:
                return None
        least = most // 2 if most > 2 else 1
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if is_enough(middle) else (middle, most)
        return most

    def _quantile(self, level: float) -> float:
        from scipy import stats

        return float(stats.t.ppf((1 + level) / 2, self.freedom))


def uncertainty_of(sample: Sample, runs: Iterable[Tensor]) -> Uncertainty:
    """Returns the uncertainty of a mean over users.

    Args:
        sample (Sample): The mean of every user over the runs of a recommender, or the difference
            of these for two recommenders.
        runs (iterable of torch.Tensor): For each of these recommenders, the values of the users
            of the sample in every run, of shape `[num_runs, num_users]`. What has one run is taken
            as it is, as if it could have no other.
    """
    drawn = sample.num_drawn
    components = [Component("users", sample.variance, drawn - 1)]
    counts = [1]
    for values in runs:
        if len(values) > 1:
            counts.append(len(values))
            components += _of_runs(values, sample.owner)
    return Uncertainty(tuple(components), drawn, max(counts))


def uncertainty_of_means(means: Tensor) -> Uncertainty:
    """Returns the uncertainty of the mean of runs, of shape `[num_runs]`, for other runs alone."""
    num_runs = means.numel()
    component = Component("runs", float(means.var()) / num_runs, num_runs - 1)
    return Uncertainty((component,), num_users=0, num_runs=num_runs)


def _of_runs(values: Tensor, owner: Tensor | None) -> list[Component]:
    """Returns what the choice of runs adds, given values of shape `[num_runs, num_users]`."""
    num_runs = len(values)
    rest = values - values.mean(dim=0)
    samples = [Sample(row, owner) for row in rest]
    of_runs = float(values.mean(dim=1).var()) / num_runs
    of_rest = sum(sample.variance for sample in samples) / (num_runs - 1) / num_runs
    if of_runs <= of_rest:
        return []  # runs differ by no more than users alone make them differ
    freedom = num_runs - 1
    return [
        Component("runs", of_runs, freedom),
        Component("runs", -of_rest, freedom * (samples[0].num_drawn - 1)),
    ]
