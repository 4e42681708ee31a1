"""The paired difference of two recommenders in a metric, user by user."""

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_finite_number
from pyg_recmetrics.metrics import Metric, definition, parse
from pyg_recmetrics.results.estimates import Interval
from pyg_recmetrics.results.inference import Sample, paired_difference
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.runs import means_of_all_users, values_of_runs
from pyg_recmetrics.results.uncertainty import Uncertainty, uncertainty_of

_PERCENTAGE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*")

_LARGEST_POWER = math.log(sys.float_info.max)

#: A mean that is smaller than this share of what it is a mean of is due to rounding.
_ROUNDING = 1e-12

#: What a comparison says of `a`, beside `b`.
Verdict: TypeAlias = Literal["better", "worse", "equivalent", "inconclusive"]


class PairedDifference(NamedTuple):
    """The difference of two recommenders in a metric.

    Attributes:
        metric: The metric, as `name@k`.
        a: The name of one recommender.
        b: The name of the other.
        difference: The mean of `a` minus `b` over the users for whom both are defined.
        low: The lower end of its confidence interval.
        high: The upper end.
        p_value: The p-value of the hypothesis that there is no difference.
        p_adjusted: The p-value, corrected for all tests of the comparison.
        verdict: `"better"` or `"worse"` if `a` is that, significantly; `"equivalent"` if the
            difference is too small to matter; or `"inconclusive"`. `None` without a test.
        lift: The mean of `a` over that of `b`, minus one, in per cent.
        lift_low: The lower end of its confidence interval.
        lift_high: The upper end.
        effect_size: Cohen's d of paired differences: the mean difference over the standard
            deviation of the differences of users, for one run of each.
        wins: The number of users for whom the metric of `a` is larger, on average over pairs of
            runs.
        ties: The number of users for whom it is the same.
        losses: The number of users for whom it is smaller.
        mean_a: The mean of `a` over the users for whom both are defined.
        mean_b: The mean of `b`.
        user_error: The standard error that comes from the choice of users.
        run_error: The standard error that comes from the choice of runs; `NaN` for one run of each.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> comparison = compare({"perfect": perfect, "popular": popular})
        >>> row = comparison[0]
        >>> row.wins, row.ties, row.losses
        (3.0, 3.0, 0.0)
    """

    metric: str
    a: str
    b: str
    difference: float
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    p_adjusted: float = math.nan
    verdict: Verdict | None = None
    lift: float = math.nan
    lift_low: float = math.nan
    lift_high: float = math.nan
    effect_size: float = math.nan
    wins: float | None = None
    ties: float | None = None
    losses: float | None = None
    mean_a: float = math.nan
    mean_b: float = math.nan
    user_error: float = math.nan
    run_error: float = math.nan


@dataclass(frozen=True)
class Equivalence:
    """The smallest difference that matters.

    Attributes:
        size: The difference, or its share of the mean of `b`.
        is_share: Whether it is a share.
    """

    size: float
    is_share: bool

    @classmethod
    def of(cls, value: float | str) -> "Equivalence":
        """Reads a number, or a percentage such as `"2%"`.

        Raises:
            ValueError: If it is neither, or not positive.
        """
        is_share = isinstance(value, str)
        if isinstance(value, str):
            match = _PERCENTAGE.fullmatch(value)
            size = float(match[1]) / 100 if match else math.nan
        else:
            size = check_finite_number(value, "equivalence")
        if not size > 0:
            raise ValueError(
                f"'equivalence' needs to be a positive number or a percentage such as '2%' "
                f"(got {value!r})"
            )
        return cls(size, is_share)

    def bound(self, mean: float) -> float:
        """Returns the smallest difference that matters beside a mean."""
        return self.size * abs(mean) if self.is_share else self.size

    def __str__(self) -> str:
        return f"{100 * self.size:.4g}%" if self.is_share else f"{self.size:g}"


@dataclass(frozen=True, eq=False)
class Pair:
    """The runs of two recommenders in a metric that every user has.

    Attributes:
        metric (Metric): The metric.
        a (str): The name of one recommender.
        b (str): The name of the other.
        first (torch.Tensor): The values of `a`, of shape `[num_runs, num_paired_users]`.
        second (torch.Tensor): The values of `b` for the same users.
        is_paired (torch.Tensor): The users for whom both are defined, a mask `[num_users]`.
        person (torch.Tensor or None): The person of each of the paired users.
    """

    metric: Metric
    a: str
    b: str
    first: Tensor
    second: Tensor
    is_paired: Tensor
    person: Tensor | None

    @cached_property
    def sample(self) -> Sample:
        """The difference of each user, on average over runs."""
        return Sample.of(
            paired_difference(self.first.mean(dim=0), self.second.mean(dim=0)), self.person
        )

    @cached_property
    def difference(self) -> float:
        """The mean difference; zero where it is only due to rounding."""
        values = self.sample.values
        return _unless_rounding(self.sample.mean, float(values.abs().mean()))

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The uncertainty of the mean difference."""
        return uncertainty_of(self.sample, [self.first, self.second])

    @property
    def has_test(self) -> bool:
        """Whether there are enough users or persons for an interval."""
        return self.sample.num_drawn >= 2

    @property
    def is_same(self) -> bool:
        """Whether no user differs in any run."""
        return self.difference == 0 and self.uncertainty.variance == 0

    @property
    def p_value(self) -> float:
        """The p-value of the paired t-test."""
        return self.uncertainty.p_value(self.difference)

    @property
    def differences(self) -> Tensor:
        """The difference of all users, `[num_users]`; `NaN` for those who are not paired."""
        values = self.sample.values
        full = torch.full(self.is_paired.shape, torch.nan, dtype=torch.double, device=values.device)
        full[self.is_paired] = values
        return full

    def p_of_equivalence(self, bound: float) -> float:
        """Returns the p-value of two one-sided tests that the difference is at least `bound`.

        Source: Schuirmann, "A comparison of the two one-sided tests procedure and the power
        approach for assessing the equivalence of average bioavailability" (1987).
        """
        if self.is_same:
            return 0.0
        room = bound - abs(self.difference)
        tail = self.uncertainty.p_value(room) / 2
        return tail if room > 0 else 1 - tail

    def row(self, alpha: float) -> PairedDifference:
        """Returns all that does not depend on other pairs, without a p-value.

        Args:
            alpha (float): One minus the level of the intervals.
        """
        wins, ties, losses, deviation = _by_pairs_of_runs(self.first, self.second)
        mean_a, mean_b = float(self.first.mean()), float(self.second.mean())
        row = PairedDifference(
            str(self.metric),
            self.a,
            self.b,
            self.difference,
            lift=_lift(mean_b, self.difference),
            wins=wins,
            ties=ties,
            losses=losses,
            mean_a=mean_a,
            mean_b=mean_b,
        )
        if not self.has_test:
            return row
        uncertainty = self.uncertainty
        low, high = uncertainty.interval_at(self.difference, alpha)
        lift_low, lift_high = self._lift_interval(mean_a, mean_b, alpha)
        return row._replace(
            low=low,
            high=high,
            lift_low=lift_low,
            lift_high=lift_high,
            effect_size=_over(self.difference, deviation),
            user_error=math.sqrt(uncertainty.of("users")),
            run_error=math.sqrt(uncertainty.of("runs")) if uncertainty.has_runs else math.nan,
        )

    def _lift_interval(self, mean_a: float, mean_b: float, alpha: float) -> Interval:
        """Returns the interval of the lift, which is one of the logarithm of the ratio."""
        if mean_a <= 0 or mean_b <= 0:
            return Interval(math.nan, math.nan)
        values = [self.first / mean_a, self.second / mean_b]
        sample = Sample.of(
            paired_difference(values[0].mean(dim=0), values[1].mean(dim=0)), self.person
        )
        log_ratio = math.log(mean_a / mean_b) if self.difference else 0.0
        ends = uncertainty_of(sample, values).interval_at(log_ratio, alpha)
        return Interval(*(100 * (_exp(end) - 1) for end in ends))


def is_higher_better(metric: str) -> bool:
    """Returns whether higher values of a metric are better."""
    return definition(parse(metric).name).higher_is_better


def pair_of(
    metric: Metric,
    names: tuple[str, str],
    runs: tuple[Sequence[EvaluationResult], Sequence[EvaluationResult]],
) -> Pair:
    """Finds the users for whom both recommenders are defined in all of their runs."""
    one = runs[0][0]
    device, person = one.ranked.rank.device, one.person
    values = [values_of_runs(of_one, metric, device) for of_one in runs]
    is_paired = ~torch.cat(values).isnan().any(dim=0)
    if person is not None:
        person = person.to(device)[is_paired]
    first_values, second_values = (of_runs[:, is_paired] for of_runs in values)
    return Pair(metric, *names, first_values, second_values, is_paired, person)


def difference_of_runs(
    metric: Metric,
    names: tuple[str, str],
    runs: tuple[Sequence[EvaluationResult], Sequence[EvaluationResult]],
    alpha: float,
) -> PairedDifference:
    """Returns the difference of two recommenders, whichever kind of metric it is, untested."""
    if means_of_all_users([*runs[0], *runs[1]], metric) is None:
        return pair_of(metric, names, runs).row(alpha)
    means = (fmean(result[metric] for result in of_one) for of_one in runs)
    return difference_of_means(metric, names, *means)


def difference_of_means(
    metric: Metric, names: tuple[str, str], mean_a: float, mean_b: float
) -> PairedDifference:
    """Returns the difference in a metric that has one value for all users together."""
    difference = _unless_rounding(mean_a - mean_b, max(abs(mean_a), abs(mean_b)))
    return PairedDifference(
        str(metric),
        *names,
        difference,
        lift=_lift(mean_b, difference),
        mean_a=mean_a,
        mean_b=mean_b,
    )


def _by_pairs_of_runs(first: Tensor, second: Tensor) -> tuple[float, float, float, float]:
    """Returns wins, ties, losses and the deviation of differences, on average over pairs of runs.

    Means over runs would have fewer ties and a smaller deviation the more runs there are.
    """
    num_pairs = len(first) * len(second)
    wins = losses = 0
    variance = 0.0
    for values in first:
        difference = paired_difference(values, second)
        wins += int((difference > 0).sum())
        losses += int((difference < 0).sum())
        variance += float(difference.var(dim=1).sum()) if first.size(1) > 1 else math.nan
    ties = first.size(1) * num_pairs - wins - losses
    deviation = math.sqrt(variance / num_pairs)
    return wins / num_pairs, ties / num_pairs, losses / num_pairs, deviation


def _exp(power: float) -> float:
    """Returns the exponential function, which is infinite beyond what a number can hold."""
    return math.exp(power) if power < _LARGEST_POWER else math.inf


def _over(mean: float, deviation: float) -> float:
    if mean == 0:
        return 0.0
    return mean / deviation if deviation else math.copysign(math.inf, mean)


def _unless_rounding(mean: float, size: float) -> float:
    """Returns a mean of numbers of some size, or zero if it is only due to rounding."""
    return 0.0 if abs(mean) <= _ROUNDING * size else mean


def _lift(mean_b: float, difference: float) -> float:
    """Returns how much larger a mean is than that of `b`, in per cent."""
    return 100 * difference / mean_b if mean_b else math.nan
