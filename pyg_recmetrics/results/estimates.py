"""Estimates, their intervals and tests: over users, over runs, and for several tests at once."""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import torch
from scipy import optimize, special
from torch import Tensor

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.sums import exact_mean, exact_sum

#: What a mean is over: rows, or persons with the mean over the rows of each.
AverageOver: TypeAlias = Literal["user", "person"]


def check_means_of_persons(person: Tensor | None, metrics: Iterable[Metric]) -> None:
    """Raises if persons are not known, or a metric is no mean over rows, of which they have one."""
    if person is None:
        raise ValueError("means over persons need a task: RankingTask(..., person=...) (got none)")
    for metric in metrics:
        if metric.is_pooled:
            raise ValueError(
                f"'metrics' needs to hold means over rows with per='person' (got '{metric}')"
            )


def check_has_rows(average_over: AverageOver, method: str) -> None:
    """Raises if a method that looks at single rows is called for means over persons."""
    if average_over == "person":
        raise ValueError(f"'{method}' needs means over rows (got per='person')")


def num_persons(person: Tensor | None) -> int:
    """Returns how many persons there are."""
    return int(person.max()) + 1 if person is not None and person.numel() else 0


def means_of_persons(values: Tensor, person: Tensor) -> Tensor:
    """Returns the mean of the rows of each person that count: `[num_persons]`.

    Args:
        values (torch.Tensor): A value for every row, of shape `[num_users]`; `NaN` for those that
            do not count.
        person (torch.Tensor): The person to whom each row belongs, of shape `[num_users]`.
    """
    is_counted = (~values.isnan()).to(values.dtype)
    sums, counts = (sums_of_persons(x, person) for x in (values.nan_to_num(0.0), is_counted))
    return sums / counts


def sums_of_persons(values: Tensor, person: Tensor) -> Tensor:
    """Adds up the values of the rows of each person, of shape `[num_persons]`."""
    sums = values.new_zeros(num_persons(person))
    return sums.index_add_(0, person.to(values.device), values)


_LARGEST_POWER = math.log(sys.float_info.max)

#: A variance that is smaller than this share of the squared mean is due to rounding.
ROUNDING_OF_VARIANCE = 1e-28


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float

    def of_metric(self, metric: Metric, values: Tensor) -> "Interval":
        """Returns the part of it that the mean of a metric can reach.

        That is its range, unless values of users are outside: weights have no bound, and the range
        of a metric of one's own may be wider than it says. Shares of a ratio of sums may be larger
        than the ratio.
        """
        lowest, highest = metric.definition.range
        known = values.new_zeros(0) if metric.is_pooled else values[~values.isnan()]
        if bool(((known < lowest) | (known > highest)).any()):
            return self
        is_low, is_high = self.low < lowest <= self.high, self.low <= highest < self.high
        return Interval(lowest if is_low else self.low, highest if is_high else self.high)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number estimated from users, in one run or several, and what each user adds to its error.

    Its interval allows for other users, and for other runs if there are several.

    Attributes:
        values (torch.Tensor): The estimate of every run, of shape `[num_runs]`.
        influences (torch.Tensor): What each user or person adds to the error of each of them, of
            shape `[num_runs, num_drawn]`. Those of two estimates belong to the same users, so that
            what they have in common cancels out in a difference.
        num_drawn (int): How many users or persons it is estimated from. For two estimates together,
            it is the smaller number.
        recommenders (tuple of Estimate): Of a difference of two recommenders, the mean of each,
            whose runs are its own.
    """

    values: Tensor
    influences: Tensor
    num_drawn: int
    recommenders: "tuple[Estimate, ...]" = ()

    @cached_property
    def value(self) -> float:
        """The mean over runs."""
        first, *others = self.values.tolist()
        return float(self.values.mean()) if others else first

    @cached_property
    def influence(self) -> Tensor:
        """What each user or person adds to the error of the mean, of shape `[num_drawn]`."""
        return self.influences[0] if len(self.influences) == 1 else self.influences.mean(dim=0)

    @cached_property
    def variance(self) -> float:
        """The variance for other users, the runs given; `NaN` if fewer than two were drawn."""
        return exact_sum(self.influence.square())

    @property
    def has_interval(self) -> bool:
        """Whether there are two users or more, or two runs of a number without users."""
        return self.num_drawn > 1 or (self.num_drawn == 0 and len(self.values) > 1)

    @cached_property
    def uncertainty(self) -> "Uncertainty":
        """Its variance, by where it comes from."""
        variance = self.variance
        if variance <= ROUNDING_OF_VARIANCE * self.value**2:
            variance = 0.0
        several = [each for each in self.recommenders or (self,) if len(each.values) > 1]
        return combine(variance, self.num_drawn, [Variation.of(each) for each in several])

    @cached_property
    def skewness(self) -> float:
        """The skewness of what each of the drawn adds; zero if it does not vary."""
        squares = float(self.influence.square().sum())
        if not squares > 0:
            return 0.0
        return math.sqrt(self.num_drawn) * float((self.influence / math.sqrt(squares)).pow(3).sum())

    def margin(self, level: float) -> float:
        """Returns half the width of the interval of a mean; `NaN` if there is none."""
        if not self.has_interval:
            return math.nan
        if len(self.values) > 1:
            return self.uncertainty.margin(level)
        quantile = float(special.stdtrit(self.num_drawn - 1, (1 + level) / 2))
        return quantile * math.sqrt(self.variance)

    def interval(self, level: float) -> Interval:
        """Returns its interval; `NaN` if fewer than two were drawn."""
        margin = self.margin(level)
        return Interval(self.value - margin, self.value + margin)

    def minus(self, other: "Estimate") -> "Estimate":
        """Returns the difference, run by run."""
        num_drawn = min(self.num_drawn, other.num_drawn)
        return Estimate(self.values - other.values, self.influences - other.influences, num_drawn)


def exp_or_inf(power: float) -> float:
    """Returns the exponential function, which is infinite beyond what a number can hold."""
    return math.exp(power) if power < _LARGEST_POWER else math.inf


def ratio_of_sums(numerator: Tensor, denominator: Tensor, person: Tensor | None) -> Estimate:
    """Estimates the sum of one value of users over the sum of another.

    Args:
        numerator (torch.Tensor): One value of every user, of shape `[num_users]`.
        denominator (torch.Tensor): The other, zero or more. Users with zero do not count.
        person (torch.Tensor or None): The number of the person to whom each row belongs, of shape
            `[num_users]`.

    Source: Cochran, "Sampling techniques", 2.11 and 6.4 (1977).
    """
    above, total = exact_sum(numerator), exact_sum(denominator)
    value = above / total if total else math.nan
    deviation, counts = (numerator - value * denominator) / total, denominator
    if person is not None:
        deviation, counts = (sums_of_persons(x, person) for x in (deviation, counts))
    num_drawn = int((counts > 0).sum())
    factor = math.sqrt(num_drawn / (num_drawn - 1)) if num_drawn > 1 else math.nan
    values = torch.tensor([value], dtype=torch.double, device=deviation.device)
    return Estimate(values, (deviation * factor).unsqueeze(0), num_drawn)


def mean_of_users(values: Tensor, person: Tensor | None) -> Estimate:
    """Estimates the mean over users and runs, over the users who count in every run.

    Args:
        values (torch.Tensor): The values of users in each run, of shape `[num_runs, num_users]`;
            `NaN` for users who do not count.
        person (torch.Tensor or None): The person to whom each row belongs, of shape `[num_users]`.
    """
    counts = (~values.isnan().any(dim=0)).to(values.dtype)
    runs = [ratio_of_sums(row, counts, person) for row in values.nan_to_num(0.0) * counts]
    influences = torch.cat([run.influences for run in runs])
    return Estimate(torch.cat([run.values for run in runs]), influences, runs[0].num_drawn)


def mean_of_runs(values: Tensor) -> Estimate:
    """Estimates the mean over runs of a number of all users together, of shape `[num_runs]`."""
    return Estimate(values, values.new_zeros(len(values), 0), 0)


def difference_of_users(first: Tensor, second: Tensor, person: Tensor | None) -> Estimate:
    """Estimates the mean difference of two recommenders, user by user.

    Args:
        first (torch.Tensor): The values of users in each run of one, of shape `[num_runs,
            num_users]`.
        second (torch.Tensor): Those of the other for the same users, in runs of its own.
        person (torch.Tensor or None): The person to whom each row belongs, of shape `[num_users]`.
    """
    difference = paired_difference(first.mean(dim=0), second.mean(dim=0))
    recommenders = tuple(mean_of_users(x, person) for x in (first, second) if len(x) > 1)
    estimate = mean_of_users(difference.unsqueeze(0), person)
    return replace(estimate, recommenders=recommenders)


# Inference over users: confidence intervals of a mean, and paired tests of a difference.
#
# Every function takes values of users. None of them knows about rankings.


@dataclass(frozen=True, eq=False)
class Sample:
    """One value for each of some users, who are a sample of all possible users.

    If a person has several rows, such as sessions, their values depend on each other. The sample
    is then one of persons, who are drawn with all of their rows.

    Attributes:
        values (torch.Tensor): The values, of shape `[num_users]`, in double precision.
        person (torch.Tensor or None): The number of the person to whom each row belongs, of shape
            `[num_users]`, with no number left out; `None` if every row is a person.
    """

    values: Tensor
    person: Tensor | None = None

    @classmethod
    def of(cls, values: Tensor, person: Tensor | None) -> "Sample":
        """Takes the values that are not `NaN`, and the persons to whom they belong."""
        is_counted = ~values.isnan()
        if person is not None:
            person = person.to(values.device)[is_counted].unique(return_inverse=True)[1]
        return cls(values[is_counted], person)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.values.numel()

    @cached_property
    def num_drawn(self) -> int:
        """How many users or persons were drawn."""
        return self.num_rows if self.person is None else num_persons(self.person)

    @cached_property
    def num_hits(self) -> int:
        """How many rows have another value than zero."""
        return int((self.values != 0).sum())

    @cached_property
    def num_effective(self) -> float:
        """How many persons with as many rows as each other would tell as much as those drawn."""
        num_rows = torch.ones_like(self.values)
        if self.person is not None:
            num_rows = sums_of_persons(num_rows, self.person)
        total, squares = exact_sum(num_rows), exact_sum(num_rows.square())
        return total**2 / squares if squares else 0.0

    @cached_property
    def mean(self) -> float:
        """The mean of all rows."""
        return exact_mean(self.values)

    @cached_property
    def estimate(self) -> Estimate:
        """The mean, and what each of the drawn adds to its error."""
        ones = torch.ones_like(self.values)
        return ratio_of_sums(self.values, ones, self.person)


def paired_difference(a: Tensor, b: Tensor) -> Tensor:
    """Returns the difference of each user, `[num_users]`; zero where it is only due to rounding."""
    difference = a - b
    is_rounding = difference.abs() <= 1e-12 * torch.maximum(a.abs(), b.abs())
    return difference.masked_fill(is_rounding, 0.0)


#: Below so many users, persons, and users with a value above zero, simulations find that 95%
#: intervals of means hold in less than 93% of cases. Those of differences hold no more often where
#: all who differ do so in the same direction.
FEW_USERS, FEW_PERSONS, FEW_HITS = 100, 50, 20

#: So many times the squared skewness of differences is how many users their test takes.
_USERS_PER_SKEWNESS = 25


class Basis(NamedTuple):
    """Sample behind an interval: its metric and its counts.

    Attributes:
        metric: The metric.
        num_drawn: How many users or persons were drawn.
        num_persons: How many persons of one size they are worth; `None` if every user is one.
        num_hits: How many users have another value than zero.
        skewness: The skewness of their differences.
        is_one_sided: Whether all who differ do so in one direction, and the few others that might
            be unseen could make up for it.
    """

    metric: str
    num_drawn: int
    num_persons: float | None
    num_hits: int
    skewness: float = 0.0
    is_one_sided: bool = False

    @classmethod
    def of(cls, metric: str, sample: Sample) -> "Basis":
        """Counts what the values of users are."""
        num_persons = None if sample.person is None else sample.num_effective
        return cls(metric, sample.num_drawn, num_persons, sample.num_hits)

    @property
    def num_needed(self) -> int:
        """How many users it takes until the mean of differences so skewed is nearly normal.

        Source: Cochran, "Sampling techniques", 2.15 (1977).
        """
        return math.ceil(_USERS_PER_SKEWNESS * self.skewness**2)

    def few_persons(self, persons: str) -> str | None:
        """Returns what to say if there are too few persons, who are called so."""
        if self.num_persons is None or self.num_persons >= FEW_PERSONS:
            return None
        worth = f"worth {self.num_persons:.0f} of one size"
        return f"there are few {persons} ({self.num_drawn}, {worth})"


# Where the variance of a mean comes from: the choice of users, and the runs of a recommender.
#
# Let :math:`x_{su}` be the value of user `u` in run `s` of a recommender: the sum of a mean, an
# effect of the user, an effect of the run, and a rest. All of them are random: other users and
# other runs might have been drawn. With `n` users and `m` runs, the variance of the mean is
#
# .. math::
#     \frac{\sigma^2_\text{users}}{n} + \frac{\sigma^2_\text{runs}}{m}
#     + \frac{\sigma^2_\text{rest}}{nm}
#
# Each part is estimated by a mean square. The means of users over runs vary by the first and the
# last part. The values of a user in single runs vary by the last one. The means of runs vary by the
# second and the last one; if they vary by less than users alone make them vary, the second part is
# taken for zero. The difference of two recommenders has the effects of users in common, and the
# runs of both.
#
# An interval has to allow for few runs, whose variance is hardly known. If :math:`v_i` are the
# parts, :math:`f_i` their degrees of freedom and :math:`t_i` the quantiles of Student's t for
# these, then Cochran's quantile is :math:`\sum_i t_i v_i / \sum_i v_i`. With one run of each
# recommender, this is the interval of the paired t-test.
#
# The runs of two recommenders are one part. What each varies by beyond the last part is added up,
# and only the sum is taken for zero if it is below. It has Satterthwaite's degrees of freedom,
# :math:`(\sum_i v_i)^2 / \sum_i v_i^2 / f_i`. If users do not vary, this is Welch's test. Two runs
# beside more of the other recommender are the exception, as that test is then wrong in up to 10% of
# cases. The runs of each are a part, and the mean of quantiles is one of cubes:
# :math:`(\sum_i t_i^3 v_i / \sum_i v_i)^{1/3}`. The power was chosen by simulation.
#
# In simulations of three runs of each, of two beside ten, and of two and two that vary alike, tests
# are wrong in 3 to 6.5% of cases. If one of two recommenders with two runs each varies much more
# than users make it vary, and the other does not, it is 8 to 9%: two runs that happen to be alike
# look as if runs did not vary.
#
# Sources: Searle, Casella and McCulloch, "Variance components", 4 (1992); Satterthwaite, "An
# approximate distribution of estimates of variance components" (1946); Cochran, "Approximate
# significance levels of the Behrens-Fisher test" (1964).

#: What is drawn anew if somebody repeats the evaluation.
Source: TypeAlias = Literal["users", "runs"]

#: So few runs hardly tell how runs vary.
FEW_RUNS = 2

#: The mean of quantiles is one of this power where runs are uneven.
_POWER_IF_UNEVEN = 3

#: A smaller p-value than this is zero. Further out, scipy's quantiles are not exact.
_SMALLEST_TAIL = 1e-100


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


@dataclass(frozen=True)
class Uncertainty:
    """The variance of a mean or of a difference, by where it comes from.

    Attributes:
        components: Its parts.
        is_uneven: Whether one recommender has two runs, and the other has more.
    """

    components: tuple[Component, ...]
    is_uneven: bool = False

    @property
    def variance(self) -> float:
        """The variance."""
        return sum(component.variance for component in self.components)

    def of(self, source: Source) -> float:
        """Returns the variance that comes from users, runs given; or from runs alone."""
        is_of_runs = source == "runs"
        return sum(x.variance for x in self.components if (x.num_users is None) == is_of_runs)

    @property
    def has_runs(self) -> bool:
        """Whether any recommender has several runs."""
        return any(part.num_runs is not None for part in self.components)

    def margin(self, level: float) -> float:
        """Returns half the width of the confidence interval."""
        return self._margin((1 - level) / 2)

    def interval_at(self, center: float, alpha: float) -> Interval:
        """Returns the interval that leaves out all whose two-sided p-value is below `alpha`."""
        margin = self._margin(alpha / 2)
        return Interval(center - margin, center + margin)

    def p_value(self, difference: float) -> float:
        """Returns the two-sided p-value of the hypothesis that there is no difference."""
        if self.variance == 0:
            return float(difference == 0)
        lowest = math.log(_SMALLEST_TAIL)

        def excess(log_of_tail: float) -> float:
            return self._margin(math.exp(log_of_tail)) - abs(difference)

        if excess(lowest) <= 0:
            return 0.0
        if difference == 0:
            return 1.0
        return 2 * math.exp(optimize.brentq(excess, lowest, math.log(0.5), xtol=1e-13))

    def _margin(self, tail: float) -> float:
        """Returns half the width of the interval that leaves some probability at each end."""
        parts = [part for part in self.components if part.variance]
        quantiles = [float(-special.stdtrit(self._freedom(part), tail)) for part in parts]
        power = _POWER_IF_UNEVEN if self.is_uneven else 1
        mean = sum(
            quantile**power * (part.variance / self.variance)
            for quantile, part in zip(quantiles, parts, strict=True)
        )
        return math.pow(mean, 1 / power) * math.sqrt(self.variance)

    def _freedom(self, part: Component) -> float:
        """Returns the degrees of freedom of a part: of runs, those of the runs of both."""
        if self.is_uneven or part.num_users is not None:
            return part.freedom
        total = self.of("runs")
        of_runs = [each for each in self.components if each.num_users is None and each.variance]
        # Variances are divided first, since the square of a small one may be zero.
        return 1 / sum((each.variance / total) ** 2 / each.freedom for each in of_runs)


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
    def of(cls, estimate: Estimate) -> "Variation":
        """Measures it for an estimate of several runs."""
        num_runs = len(estimate.values)
        # The variance for other users of what sets each run apart from the mean of all.
        rest = (estimate.influences - estimate.influence).square().sum(dim=1).tolist()
        of_rest = sum(rest) / (num_runs - 1) / num_runs
        return cls(num_runs, float(estimate.values.var()) / num_runs, of_rest)

    @property
    def excess(self) -> float:
        """How much more runs vary than users alone make them; below zero if it is less."""
        return self.of_runs - self.of_rest


def combine(total: float, drawn: int, parts: Sequence[Variation]) -> Uncertainty:
    """Returns the uncertainty of a number, by where it comes from.

    Args:
        total (float): Its variance for other users, given the runs.
        drawn (int): How many users or persons were drawn; zero for a number of all together.
        parts (sequence of Variation): How the runs of each recommender vary that has several.
    """
    of_rest = sum(part.of_rest for part in parts)
    # What is left for the rest if users differ by less than it alone makes them differ.
    share = min(1.0, total / of_rest) if of_rest else 0.0
    excess = sum(max(0.0, part.excess) for part in parts)
    kept = max(0.0, sum(part.excess for part in parts)) / excess if excess else 0.0
    of_runs = [Component(kept * max(0.0, part.excess), None, part.num_runs) for part in parts]
    if drawn == 0:
        return Uncertainty(tuple(of_runs))
    of_users = [Component(max(0.0, total - share * of_rest), drawn, None)]
    of_users += [Component(share * part.of_rest, drawn, part.num_runs) for part in parts]
    num_runs = {part.num_runs for part in parts}
    return Uncertainty((*of_users, *of_runs), len(num_runs) > 1 and FEW_RUNS in num_runs)


#: P-values that differ by no more than this share of them are the same, but for rounding.
_ROUNDING = 1e-9


def alpha_of(level: float) -> float:
    """Returns the largest p-value that is significant at a level of confidence.

    It is a hair larger than what the level leaves, so that a p-value that is equal to that is below
    it however it was rounded. An interval of this alpha leaves zero out for the same p-values.

    Example:
        >>> 0.1 <= 1 - 0.9, 0.1 <= alpha_of(0.9)
        (False, True)
    """
    # In binary, what is left of 1 depends on how the level is rounded.
    return float(1 - Decimal(repr(level))) * (1 + _ROUNDING)


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Corrects p-values for having tested several hypotheses, by Holm's step-down method.

    The smallest of `m` p-values is multiplied by `m`, the next by `m - 1`, and so on. Corrected
    p-values never decrease in this order, and never exceed one. If all hypotheses with a corrected
    p-value of at most :math:`\alpha` are rejected, the chance that a true one is among them is at
    most :math:`\alpha`. A p-value of `NaN` stands for a hypothesis that was not tested, and does
    not count.

    Source: Holm, "A simple sequentially rejective multiple test procedure" (1979).

    Example:
        >>> [round(p, 2) for p in holm([0.01, 0.04, 0.03, 0.005])]
        [0.03, 0.06, 0.06, 0.02]
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    least = 0.0
    for num_done, (p, index) in enumerate(tested):
        least = max(least, min(1.0, p * (len(tested) - num_done)))
        adjusted[index] = least
    return adjusted
