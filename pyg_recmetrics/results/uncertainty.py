r"""Where the variance of a mean comes from: the choice of users, and the runs of a recommender.

Let :math:`x_{su}` be the value of user `u` in run `s` of a recommender: the sum of a mean, an
effect of the user, an effect of the run, and a rest. All of them are random: other users and other
runs might have been drawn. With `n` users and `m` runs, the variance of the mean is

.. math::
    \frac{\sigma^2_\text{users}}{n} + \frac{\sigma^2_\text{runs}}{m}
    + \frac{\sigma^2_\text{rest}}{nm}

Each part is estimated by a mean square. The means of users over runs vary by the first and the last
part. The values of a user in single runs vary by the last one. The means of runs vary by the second
and the last one; if they vary by less than users alone make them vary, the second part is taken for
zero. The difference of two recommenders has the effects of users in common, and the runs of both.

An interval has to allow for few runs, whose variance is hardly known. If :math:`v_i` are the parts
and :math:`f_i` their degrees of freedom, then Satterthwaite's interval is that of a t-distribution
with :math:`(\sum_i v_i)^2 / \sum_i v_i^2 / f_i` degrees of freedom. Cochran's quantile is
:math:`\sum_i t_i v_i / \sum_i v_i`, where :math:`t_i` are the quantiles for :math:`f_i`. It is more
careful, and too careful where several parts come from few runs. With one run of each recommender,
both are the interval of the paired t-test.

Where two recommenders have several runs, simulations find that Satterthwaite's test of their
difference is wrong in 4 to 6% of cases from three runs on, and Cochran's in 1.5 to 5%. Where only
one has, or for a mean, Cochran's is wrong in 3 to 6%, and Satterthwaite's in up to 10%. So
Satterthwaite's is for two, and Cochran's for one.

Sources: Searle, Casella and McCulloch, "Variance components", 4 (1992); Satterthwaite, "An
approximate distribution of estimates of variance components" (1946); Cochran, "Approximate
significance levels of the Behrens-Fisher test" (1964).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from torch import Tensor

from pyg_recmetrics.results.estimates import ROUNDING_OF_VARIANCE, Interval
from pyg_recmetrics.results.inference import Sample

#: What is drawn anew if somebody repeats the evaluation.
Source: TypeAlias = Literal["users", "runs"]

#: A smaller p-value than this is zero.
_SMALLEST_TAIL = 1e-150


class Component(NamedTuple):
    """A part of a variance.

    Attributes:
        variance: Its size.
        num_users: How many users or persons it is divided by; `None` if it comes from runs alone.
        num_runs: How many runs it is divided by; `None` if it comes from users alone.
    """

    variance: float
    num_users: float | None
    num_runs: float | None

    @property
    def freedom(self) -> float:
        """Its degrees of freedom."""
        number = self.num_runs if self.num_users is None else self.num_users
        return (number or 0) - 1

    def with_runs(self, number: float) -> "Component":
        """Returns the part if there were another number of runs."""
        if self.num_runs is None:
            return self
        return self._replace(variance=self.variance * self.num_runs / number, num_runs=number)


@dataclass(frozen=True)
class Uncertainty:
    """The variance of a mean or of a difference, by where it comes from.

    Attributes:
        components: Its parts.
        is_conservative: Whether it has Cochran's quantile instead of Satterthwaite's.
    """

    components: tuple[Component, ...]
    is_conservative: bool = False

    @property
    def variance(self) -> float:
        """The variance."""
        return sum(component.variance for component in self.components)

    def of(self, source: Source) -> float:
        """Returns the variance that comes from users, runs given; or from runs alone."""
        is_of_runs = source == "runs"
        return sum(x.variance for x in self.components if (x.num_users is None) == is_of_runs)

    @property
    def has_users(self) -> bool:
        """Whether it comes from the choice of users at all."""
        return any(part.num_users is not None for part in self.components)

    @property
    def has_runs(self) -> bool:
        """Whether any recommender has several runs."""
        return any(part.num_runs is not None for part in self.components)

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom; infinite without variance."""
        parts = [part for part in self.components if part.variance]
        # Variances are divided first, since the square of a small one may be zero.
        shares = [(part.variance / self.variance) ** 2 / part.freedom for part in parts]
        return 1 / sum(shares) if shares else math.inf

    def margin(self, level: float) -> float:
        """Returns half the width of the confidence interval."""
        return self._margin((1 - level) / 2)

    def interval(self, center: float, level: float) -> Interval:
        """Returns the confidence interval around an estimate."""
        return self.interval_at(center, 1 - level)

    def interval_at(self, center: float, alpha: float) -> Interval:
        """Returns the interval that leaves out all whose two-sided p-value is below `alpha`.

        At an alpha of zero it leaves out nothing but what cannot differ at all.
        """
        is_certain = self.variance == 0 and (alpha > 0 or center == 0)
        margin = 0.0 if is_certain else self._margin(alpha / 2) if alpha > 0 else math.inf
        return Interval(center - margin, center + margin)

    def p_value(self, difference: float) -> float:
        """Returns the two-sided p-value of the hypothesis that there is no difference."""
        from scipy import optimize, stats

        if self.variance == 0:
            return float(difference == 0)
        if not self.is_conservative:
            return float(2 * stats.t.sf(abs(difference) / math.sqrt(self.variance), self.freedom))
        lowest = math.log(_SMALLEST_TAIL)

        def excess(log_of_tail: float) -> float:
            return self._margin(math.exp(log_of_tail)) - abs(difference)

        if excess(lowest) <= 0:
            return 0.0
        if difference == 0:
            return 1.0
        return 2 * math.exp(optimize.brentq(excess, lowest, math.log(0.5), xtol=1e-13))

    def with_runs(self, number: float) -> "Uncertainty":
        """Returns the uncertainty if there were another number of runs of each recommender."""
        return replace(self, components=tuple(part.with_runs(number) for part in self.components))

    def _margin(self, tail: float) -> float:
        """Returns half the width of the interval that leaves some probability at each end."""
        from scipy import stats

        parts = [part for part in self.components if part.variance]
        if not self.is_conservative:
            quantile = float(stats.t.isf(tail, self.freedom)) if parts else 0.0
            return quantile * math.sqrt(self.variance)
        quantiles = (float(stats.t.isf(tail, part.freedom)) * part.variance for part in parts)
        return sum(quantiles) / math.sqrt(self.variance) if parts else 0.0


def uncertainty_of(sample: Sample, runs: Iterable[Tensor]) -> Uncertainty:
    """Returns the uncertainty of a mean over users.

    Args:
        sample (Sample): The mean of every user over the runs of a recommender, or the difference
            of these for two recommenders.
        runs (iterable of torch.Tensor): For each of these recommenders, the values of the users
            of the sample in every run, of shape `[num_runs, num_users]`. What has one run is taken
            as it is, as if it could have no other.
    """
    parts = [_variation(values, sample.person) for values in runs if len(values) > 1]
    total = sample.variance
    if total <= ROUNDING_OF_VARIANCE * sample.mean**2:
        total = 0.0
    return combine(total, sample.num_drawn, parts)


def uncertainty_over_runs(values: Tensor, person: Tensor | None) -> tuple[Uncertainty, Tensor]:
    """Returns the uncertainty of a mean over users and runs, and the mean of every run.

    Args:
        values (torch.Tensor): The values of users in two runs or more, of shape
            `[num_runs, num_users]`. Users who are `NaN` in any run are left out of all of them.
        person (torch.Tensor or None): The person to whom each row belongs, of shape `[num_users]`.
    """
    counted = values[:, ~values.isnan().any(dim=0)]
    sample = Sample.of(values.mean(dim=0), person)
    return uncertainty_of(sample, [counted]), counted.mean(dim=1)


def uncertainty_of_means(means: Tensor) -> Uncertainty:
    """Returns the uncertainty of the mean of runs, of shape `[num_runs]`, for other runs alone."""
    num_runs = means.numel()
    return Uncertainty((Component(float(means.var()) / num_runs, None, num_runs),))


class Variation(NamedTuple):
    """How the numbers of the runs of a recommender vary.

    Attributes:
        num_runs: The number of runs.
        of_runs: The variance of their mean.
        of_rest: What users alone add to it.
    """

    num_runs: int
    of_runs: float
    of_rest: float

    @classmethod
    def of(cls, means: Tensor, variances: Iterable[float]) -> "Variation":
        """Measures it.

        Args:
            means (torch.Tensor): The number of every run, of shape `[num_runs]`.
            variances (iterable of float): The variance for other users of what sets each of these
                apart from their mean.
        """
        num_runs = means.numel()
        of_rest = sum(variances) / (num_runs - 1) / num_runs
        return cls(num_runs, float(means.var()) / num_runs, of_rest)


def combine(total: float, drawn: int, parts: Sequence[Variation]) -> Uncertainty:
    """Returns the uncertainty of a number, by where it comes from.

    Args:
        total (float): Its variance for other users, given the runs.
        drawn (int): How many users or persons were drawn.
        parts (sequence of Variation): How the runs of each recommender vary that has several.
    """
    of_rest = sum(part.of_rest for part in parts)
    # What is left for the rest if users differ by less than it alone makes them differ.
    share = min(1.0, total / of_rest) if of_rest else 0.0
    components = [Component(max(0.0, total - share * of_rest), drawn, None)]
    for part in parts:
        components.append(Component(share * part.of_rest, drawn, part.num_runs))
        # Runs that differ by no more than users make them differ have no effect of their own.
        components.append(Component(max(0.0, part.of_runs - part.of_rest), None, part.num_runs))
    return Uncertainty(tuple(components), is_conservative=len(parts) < 2)


def _variation(values: Tensor, person: Tensor | None) -> Variation:
    """Measures how runs vary, given values of shape `[num_runs, num_users]`."""
    rest = values - values.mean(dim=0)
    return Variation.of(values.mean(dim=1), [Sample(row, person).variance for row in rest])
