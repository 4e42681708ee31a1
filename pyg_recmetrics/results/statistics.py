r"""Means over users and runs, and paired differences: intervals, tests, and their correction.

Arrays are in double precision, with users as rows and runs as columns. Nothing here knows of
rankings. Read it from top to bottom.

Let :math:`x_{us}` be the value of user `u` in run `s` of a recommender: the sum of a mean, an
effect of the user, an effect of the run, and a rest. All of them are random: other users and other
runs might have been drawn. With `n` users and `m` runs, the variance of the mean is

.. math::
    \frac{\sigma^2_\text{users}}{n} + \frac{\sigma^2_\text{runs}}{m}
    + \frac{\sigma^2_\text{rest}}{nm}

**Mean squares.** The means of users over runs vary by the first and the last part: :math:`T`. The
values of a user in single runs vary by the last one: :math:`E`. The means of runs vary by the
second and the last one: :math:`S / m`.

**Persons.** If a person has several rows, persons are drawn with all of them. The sum of the
deviations of a person with the share `w` of all rows is divided by :math:`\sqrt{1 - w}`, as the
mean follows those of many rows. The degrees of freedom are those of Bell and McCaffrey for rows of
one variance, :math:`1 / (\sum w^2 + (\sum q)^2 - \sum q^2)` with :math:`q = w^2 / (1 - w)`. Of `n`
persons of one size, they are :math:`n - 1`.

**The mean of one recommender** has the variance :math:`T + \max(0, S / m - E)`, of which the second
part has :math:`m - 1` degrees of freedom.

**The difference of two recommenders** is one of paired users, whose effects cancel out. Its
variance is :math:`\max(0, T - E_a - E_b) + S_a / m_a + S_b / m_b`, where a recommender with one run
has neither `E` nor `S`. The part of the runs is never taken for zero, as too many stars would
follow. That part has Satterthwaite's degrees of freedom, :math:`(\sum_i v_i)^2 / \sum_i (v_i^2 /
f_i)`, over the recommenders with several runs. With one run of each, this is the paired t-test.

**Runs of several recommenders.** Few runs hardly tell how much they vary, so all recommenders that
are compared and have several runs tell it together. If there are three or more, `S` is moderated:
with the pooled variance :math:`S_0` and its :math:`f = \sum (m_i - 1)`, each is :math:`(f_0 S_0 +
f_i S_i) / (f_0 + f_i)`, with :math:`\min(f, f_0 + f_i)` degrees of freedom. How much the logarithms
of the :math:`S_i` vary beyond chance tells :math:`f_0`. It is infinite, so that `S` is pooled,
unless they vary more than they would if all spreads were the same. If there are two, each has its
own, and Satterthwaite's formula is that of Welch. Where they differ in their numbers of runs, each
is no less than the pooled one, as few runs may happen to be alike.

**Quantiles.** With quantiles :math:`t_i` of Student's t for each part, the quantile of the sum is
that of Cochran, :math:`\sum_i t_i v_i / \sum_i v_i`. A p-value is that of the interval that ends at
zero.

**Sizes.** If recommenders are alike, some star appears in at most 5% of simulated comparisons of 3
to 30 recommenders with 2 to 5 runs each, and in at most 7% if spreads differ by 1:8. Two
recommenders alone are told apart by chance in 2 to 6% of cases, and in up to 11% if one has two
runs, the other ten, and those of the first vary 20 times as much. P-values of at most .001 appear
in .25 to .43% of cases where runs differ. Intervals of persons hold in 93% or more if rows have a
Pareto law of index 1.6, and in 85 to 93% if it is 1.3 and persons of many rows have other values.

Sources: Searle, Casella and McCulloch, "Variance components", 4 (1992); Satterthwaite, "An
approximate distribution of estimates of variance components" (1946); Cochran, "Approximate
significance levels of the Behrens-Fisher test" (1964); Bell and McCaffrey, "Bias reduction in
standard errors for linear regression with multi-stage samples" (2002); Smyth, "Linear models and
empirical Bayes methods for assessing differential expression" (2004).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import optimize, special

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.sums import exact_mean

Array: TypeAlias = np.ndarray[Any, Any]

#: So few runs hardly tell how runs vary.
FEW_RUNS = 2

#: From so many recommenders with several runs on, their spreads are moderated.
_LEAST_TO_MODERATE = 3

#: A spread that is smaller than this share of the pooled one counts as so large in its logarithm.
_LEAST_SPREAD = 1e-5

#: What is smaller than this share of the numbers that it is made of is due to rounding.
_ROUNDING = 1e-12
_ROUNDING_OF_VARIANCE = 1e-28

#: Persons of one size are worth their number, but for rounding.
_DIGITS_OF_WORTH = 9

#: A smaller p-value than this is zero. Further out, quantiles are not exact.
_SMALLEST_TAIL = 1e-100

#: P-values that differ by no more than this share of them are the same, but for rounding.
_ROUNDING_OF_P = 1e-9


#: Below so many users, persons, and users with a value above zero, simulations find that 95%
#: intervals of means hold in less than 93% of cases. Those of differences hold no more often where
#: all who differ do so in the same direction.
FEW_USERS, FEW_PERSONS, FEW_HITS = 100, 50, 20

#: Where persons are worth less than one in so many, others with as many rows may be unseen.
_MOST_UNEVEN = 3

#: So many times the squared skewness is how many users or persons a mean takes.
_DRAWN_PER_SKEWNESS = 25


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


class Uncertainty(NamedTuple):
    """The variance of a mean or a difference, by where it comes from.

    Attributes:
        users: The part that comes from the choice of users.
        freedom: Its degrees of freedom.
        runs: The part that comes from the choice of runs.
        freedom_of_runs: Its degrees of freedom.
    """

    users: float
    freedom: float
    runs: float = 0.0
    freedom_of_runs: float = 1.0

    @property
    def variance(self) -> float:
        """The variance."""
        return self.users + self.runs

    def margin(self, tail: float) -> float:
        """Returns half the width of the interval that leaves some probability at each end."""
        quantile = 0.0
        parts = [(self.users, self.freedom), (self.runs, self.freedom_of_runs)]
        for part, freedom in parts:
            if part:
                quantile -= part / self.variance * float(special.stdtrit(freedom, tail))
        return float(quantile * math.sqrt(self.variance))

    def p_value(self, difference: float) -> float:
        """Returns the two-sided p-value of the hypothesis that there is no difference."""
        if self.variance == 0 or difference == 0:
            return float(difference == 0)

        def excess(log_of_tail: float) -> float:
            return self.margin(math.exp(log_of_tail)) - abs(difference)

        lowest = math.log(_SMALLEST_TAIL)
        if excess(lowest) <= 0:
            return 0.0
        return 2 * math.exp(optimize.brentq(excess, lowest, math.log(0.5), xtol=1e-13))

    def p_above(self, difference: float) -> float:
        """Returns the one-sided p-value of the hypothesis that the difference is not above zero."""
        tail = self.p_value(difference) / 2
        return tail if difference > 0 else 1 - tail


class MetricMean(NamedTuple):
    """The mean of a metric over users and runs.

    Attributes:
        value: The mean; `NaN` if no user counts.
        low: The lower end of its confidence interval, for other users and other runs; `NaN` for
            fewer than two users.
        high: The upper end.
        num_users: The number of users who count.
        deviation: The standard deviation of the means of runs; `NaN` for one run.
        user_error: The standard error that comes from the choice of users; `NaN` for a metric that
            has one value for all users together.
        run_error: The standard error that comes from the choice of runs; `NaN` for one run.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr")
        >>> mean = result.by(["old", "new"])["old"]["mrr"]
        >>> mean.value, mean.num_users
        (0.5, 1)
    """

    value: float
    low: float
    high: float
    num_users: int
    deviation: float
    user_error: float
    run_error: float


@dataclass(frozen=True, eq=False)
class Mean:
    """A mean over users in each of some runs.

    Attributes:
        values (np.ndarray): The mean of each run, of shape `[num_runs]`.
        influences (np.ndarray): What each user or person adds to its error, of shape
            `[num_drawn, num_runs]`. Those of two means belong to the same users, so that what they
            have in common cancels out in a difference.
        num_drawn (int): How many users or persons it is over; zero for a number of all together.
        num_rows (int): How many rows count.
        num_hits (int): How many of them have another value than zero.
        least (float): The least value of a row; infinite if the range of a metric does not bound
            the mean.
        most (float): The largest value, likewise.
        num_persons (float or None): How many persons of one size there are in effect; `None` if
            every user is one.
        is_one_sided (bool): Whether all who differ do so in one direction, and the few others that
            might be unseen could make up for it.
    """

    values: Array
    influences: Array
    num_drawn: int
    num_rows: int = 0
    num_hits: int = 0
    least: float = -math.inf
    most: float = math.inf
    num_persons: float | None = None
    is_one_sided: bool = False

    @cached_property
    def value(self) -> float:
        """The mean over runs."""
        return float(self.values.mean())

    @cached_property
    def influence(self) -> Array:
        """What each user or person adds to the error of the mean over runs."""
        influence: Array = self.influences.mean(axis=1)
        return influence

    @cached_property
    def of_users(self) -> float:
        """The variance for other users, the runs given."""
        variance = float((self.influence**2).sum())
        return variance if variance > _ROUNDING_OF_VARIANCE * self.value**2 else 0.0

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the variance for other users."""
        return (self.num_drawn if self.num_persons is None else self.num_persons) - 1

    @cached_property
    def of_rest(self) -> float:
        """What the rest adds to the variance of the mean; zero for a single run."""
        num_runs = len(self.values)
        rest = float(((self.influences - self.influence[:, None]) ** 2).sum())
        return rest / (num_runs - 1) / num_runs if num_runs > 1 else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the means of runs; `NaN` for one run."""
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else math.nan

    @property
    def has_interval(self) -> bool:
        """Whether there are two users or more, or two runs of a number without users."""
        return self.num_drawn > 1 or (self.num_drawn == 0 and len(self.values) > 1)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Its variance for other users and other runs."""
        users = self.of_users
        num_runs = len(self.values)
        if num_runs == 1:
            return Uncertainty(users, self.freedom)
        runs = max(0.0, float(self.values.var(ddof=1)) / num_runs - self.of_rest)
        return Uncertainty(users, self.freedom, runs, num_runs - 1)

    def margin(self, level: float) -> float:
        """Returns half the width of its interval; `NaN` if fewer than two were drawn."""
        return self.uncertainty.margin((1 - level) / 2) if self.has_interval else math.nan

    def interval(self, level: float) -> Interval:
        """Returns its interval; `NaN` if fewer than two were drawn."""
        margin = self.margin(level)
        return Interval(self.value - margin, self.value + margin)

    @property
    def p_value(self) -> float:
        """The two-sided p-value of the hypothesis that it is zero; `NaN` without an interval."""
        return self.uncertainty.p_value(self.value) if self.has_interval else math.nan

    def of_metric(self, metric: Metric, level: float) -> MetricMean:
        """Returns it as tables show it, with the part of its interval that it can reach.

        That is the range of the metric, unless values of users are outside, as weights have no
        bound. Shares of a ratio of sums may be larger than the ratio.
        """
        low, high = self.interval(level)
        least, most = metric.definition.range
        if metric.is_pooled or (least <= self.least and self.most <= most):
            is_low = low < least <= high
            is_high = low <= most < high
            low, high = least if is_low else low, most if is_high else high
        return MetricMean(
            self.value,
            low,
            high,
            self.num_rows,
            self.deviation,
            math.sqrt(self.of_users) if self.num_drawn else math.nan,
            math.sqrt(self.uncertainty.runs) if len(self.values) > 1 else math.nan,
        )

    @property
    def num_needed(self) -> int:
        """How many users it takes until a mean of numbers so skewed is nearly normal.

        Source: Cochran, "Sampling techniques", 2.15 (1977).
        """
        size = math.sqrt(float((self.influence**2).sum()))
        if not size > 0:  # nor if it is not known
            return 0
        skewness = math.sqrt(self.num_drawn) * float(((self.influence / size) ** 3).sum())
        return math.ceil(_DRAWN_PER_SKEWNESS * skewness**2)

    @property
    def has_few_persons(self) -> bool:
        """Whether there are too few persons, or some of them have most rows.

        Intervals of 95% hold in 93% of simulations or more where rows have a Pareto law of index
        1.6, also if values depend on their number, and in 85 to 93% where the index is 1.3. Of the
        latter samples, 91% or more are named.
        """
        if self.num_persons is None:
            return False
        return self.num_persons < max(FEW_PERSONS, self.num_drawn / _MOST_UNEVEN)

    def minus(self, other: "Mean") -> "Mean":
        """Returns the difference, run by run, of the means of two groups of users."""
        fewer = min(self, other, key=lambda mean: mean.freedom)
        values = self.values - other.values
        return replace(fewer, values=values, influences=self.influences - other.influences)


def mean_of_users(values: Array, person: Array | None) -> Mean:
    """Returns the mean over the users who count in every run.

    Args:
        values (np.ndarray): The values, of shape `[num_users, num_runs]`; `NaN` for users who do
            not count.
        person (np.ndarray or None): The number of the person that each row belongs to, of shape
            `[num_users]`.
    """
    is_counted = np.logical_not(np.isnan(values).any(axis=1))
    counted = values[is_counted]
    means = np.array([exact_mean(column) for column in counted.T])
    deviations = np.where(is_counted[:, None], values - means, 0.0) / max(1, len(counted))
    return replace(
        mean_with(means, deviations, is_counted, person),
        num_rows=len(counted),
        num_hits=int((counted.mean(axis=1) != 0).sum()),
        least=float(counted.min(initial=math.inf)),
        most=float(counted.max(initial=-math.inf)),
    )


def mean_with(means: Array, deviations: Array, is_counted: Array, person: Array | None) -> Mean:
    """Returns means with what each row adds to their errors, `[num_users, num_runs]`."""
    num_counted = int(is_counted.sum())
    if person is None:
        factor = math.sqrt(num_counted / (num_counted - 1)) if num_counted > 1 else math.nan
        return Mean(means, factor * deviations, num_counted)
    num_persons = int(person.max(initial=-1)) + 1
    sizes = np.bincount(person[is_counted], minlength=num_persons)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = 1 / np.sqrt(1 - sizes / num_counted)
        influences = factors[:, None] * sums_by(person, deviations, num_persons)
    num_drawn = int((sizes > 0).sum())
    return Mean(means, influences, num_drawn, num_persons=worth_of(sizes))


def worth_of(sizes: Array) -> float:
    """Returns how many persons of one size some are worth, given the number of rows of each."""
    num_persons = int((sizes > 0).sum())
    if num_persons < 2:
        return float(num_persons)
    shares = sizes / sizes.sum()
    others = shares**2 / (1 - shares)
    inverse = (shares**2).sum() + others.sum() ** 2 - (others**2).sum()
    return round(float(1 + 1 / inverse), _DIGITS_OF_WORTH)


def sums_by(group: Array, values: Array, num_groups: int) -> Array:
    """Returns the sums of the rows of each group, `[num_groups, num_columns]`."""
    sums = np.zeros((num_groups, values.shape[1]))
    np.add.at(sums, group, values)
    return sums


def mean_of_runs(values: Array) -> Mean:
    """Returns the mean over runs of a number of all users together."""
    no_users = np.zeros((0, len(values)))
    return Mean(values, no_users, num_drawn=0, least=values.min(), most=values.max())


class RunVariance(NamedTuple):
    """How much the mean of a single run of a recommender varies.

    Attributes:
        variance: Its variance.
        freedom: The degrees of freedom of it.
        most: Those of all recommenders together.
    """

    variance: float
    freedom: float
    most: float


def run_variances(means: Mapping[str, Array]) -> dict[str, RunVariance]:
    """Returns how much runs vary, for each of some recommenders that has several.

    Args:
        means (mapping): The means of the runs of each recommender.
    """
    several = {name: values for name, values in means.items() if len(values) > 1}
    if not several:
        return {}
    own = np.array([values.var(ddof=1) for values in several.values()])
    freedom = np.array([len(values) - 1.0 for values in several.values()])
    most = float(freedom.sum())
    pooled = float(own @ freedom) / most
    if len(own) >= _LEAST_TO_MODERATE:
        prior = _prior_freedom(own, freedom, pooled)
        share = 1.0 if prior == math.inf else prior / (prior + freedom)
        variances = share * pooled + (1 - share) * own
        freedom = np.minimum(prior + freedom, most)
    else:
        is_even = len({*freedom}) == 1
        variances = own if is_even else np.maximum(own, pooled)
        freedom = np.where(variances > own, most, freedom)
    return {
        name: RunVariance(float(variance), float(known), most)
        for name, variance, known in zip(several, variances, freedom, strict=True)
    }


def _prior_freedom(own: Array, freedom: Array, pooled: float) -> float:
    """Returns how many degrees of freedom the pooled variance is worth beside each own one."""
    if pooled == 0:
        return math.inf
    half = freedom / 2
    logs = np.log(np.maximum(own, _LEAST_SPREAD * pooled)) - special.digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - special.polygamma(1, half).mean())
    if excess <= special.polygamma(1, 1e6):
        return math.inf
    return 2 * optimize.brentq(lambda x: special.polygamma(1, x) - excess, 1e-3, 1e6)


class Difference(NamedTuple):
    """The mean difference of two recommenders.

    Attributes:
        value: The mean; zero where it is only due to rounding.
        uncertainty: Its variance for other users and other runs.
        mean: The mean over users, the runs given.
        values: The difference of each user.
        run_error: The standard error that comes from runs alone; `NaN` if none has several.
    """

    value: float
    uncertainty: Uncertainty
    mean: Mean
    values: Array
    run_error: float


def difference_of_users(
    both: Sequence[Array],
    person: Array | None,
    runs: Sequence[RunVariance | None],
    scales: tuple[float, float] = (1.0, 1.0),
) -> Difference:
    """Estimates the mean difference of two recommenders, user by user.

    Args:
        both (sequence of np.ndarray): The values of each, of shape `[num_users, num_runs]`, for the
            same users, which all count.
        person (np.ndarray or None): The person that each row belongs to, of shape `[num_users]`.
        runs (sequence): How much the runs of each vary; `None` for one that has a single run.
        scales (tuple, optional): By what each is multiplied.
    """
    means = []
    rest = 0.0
    parts = []
    for scale, of_one, known in zip(scales, both, runs, strict=True):
        means.append(scale * of_one.mean(axis=1))
        if known is not None:
            rest += scale**2 * mean_of_users(of_one, person).of_rest
            parts.append((scale**2 * known.variance / of_one.shape[1], known))
    values = paired_difference(*means)
    mean = mean_of_users(values[:, None], person)
    is_rounding = abs(mean.value) * len(values) <= _ROUNDING * np.abs(values).sum()
    value = 0.0 if is_rounding else mean.value
    if not parts:
        return Difference(value, mean.uncertainty, mean, values, math.nan)
    total = sum(part for part, _ in parts)
    # Variances are divided first, since the square of a small one may be zero.
    squares = sum((part / total) ** 2 / known.freedom for part, known in parts) if total else 1
    of_runs = min(1 / squares, parts[0][1].most)
    uncertainty = Uncertainty(max(0.0, mean.of_users - rest), mean.freedom, total, of_runs)
    return Difference(value, uncertainty, mean, values, math.sqrt(max(0.0, total - rest)))


def paired_difference(a: Array, b: Array) -> Array:
    """Returns the difference of each user; zero where it is only due to rounding."""
    difference = a - b
    is_rounding = np.abs(difference) <= _ROUNDING * np.maximum(np.abs(a), np.abs(b))
    return np.where(is_rounding, 0.0, difference)


def alpha_of(level: float) -> float:
    """Returns the largest p-value that is significant at a level of confidence.

    It is slightly larger than what the level leaves, so that a p-value that is equal to that is
    below it however it was rounded. An interval of this alpha leaves zero out for the same
    p-values.

    Example:
        >>> 0.1 <= 1 - 0.9, 0.1 <= alpha_of(0.9)
        (False, True)
    """
    # In binary, what is left of 1 depends on how the level is rounded.
    return float(1 - Decimal(repr(level))) * (1 + _ROUNDING_OF_P)


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
    values = np.asarray(p_values, dtype=np.float64)
    num_tested = int((~np.isnan(values)).sum())
    order = np.argsort(values, kind="stable")[:num_tested]  # `NaN` is last
    adjusted = np.full(len(values), np.nan)
    raised = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(raised, 1.0))
    return [float(p) for p in adjusted]
