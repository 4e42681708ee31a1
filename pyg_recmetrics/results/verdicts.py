"""What is said of two recommenders: their difference, and how it was tested."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from pyg_recmetrics.checks import check_number
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.results.counts import RowNouns
from pyg_recmetrics.results.statistics import alpha_of

_PERCENTAGE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*")

#: What a comparison says of `a`, beside `b`.
Verdict: TypeAlias = Literal["better", "worse", "equivalent", "inconclusive"]

_OPPOSITE: Mapping[Verdict | None, Verdict] = {"better": "worse", "worse": "better"}


class PairedDifference(NamedTuple):
    """The difference of two recommenders in a metric.

    Attributes:
        metric: The metric, as `name@k`.
        a: The name of one recommender.
        b: The name of the other.
        difference: The mean of `a` minus `b` over the users where both are defined.
        low: The lower end of its confidence interval.
        high: The upper end.
        p_value: The p-value of the hypothesis that there is no difference.
        p_adjusted: The p-value, corrected for all tests of the comparison.
        verdict: `"better"` or `"worse"` if `a` is that, significantly; `"equivalent"` if the
            difference is too small to matter; or `"inconclusive"`. `None` without a test.
        lift: The mean of `a` over that of `b`, minus one, in per cent; `NaN` for a metric that may
            be negative, of which no share means anything.
        lift_low: The lower end of its confidence interval.
        lift_high: The upper end.
        wins: The number of users where `a` is better, on average over pairs of runs.
        ties: The number of users where both are the same.
        losses: The number of users where `b` is better.
        mean_a: The mean of `a` over the users where both are defined.
        mean_b: The mean of `b`.
        user_error: The standard error that comes from the choice of users.
        run_error: The standard error that comes from the choice of runs; `NaN` for one run of each,
            and zero if runs do not tell it from zero, as `low`, `high` and p-values never assume.
        bound: The smallest difference that matters; `NaN` without `equivalence`. A share is one of
            the mean of `b`, also after the difference was turned around.
        p_equivalence: The corrected p-value of the hypothesis that the difference is no smaller.

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
    wins: float | None = None
    ties: float | None = None
    losses: float | None = None
    mean_a: float = math.nan
    mean_b: float = math.nan
    user_error: float = math.nan
    run_error: float = math.nan
    bound: float = math.nan
    p_equivalence: float = math.nan

    @property
    def has_lift(self) -> bool:
        """Whether there is an interval of the lift, with two ends."""
        return math.isfinite(self.lift_high - self.lift_low)

    def _turned(self) -> "PairedDifference":
        """Returns the difference of `b` from `a`, with the same p-values."""
        difference = 0.0 - self.difference  # which is never -0
        lift = math.nan
        lowest = parse(self.metric).definition.range[0]
        is_ratio = not math.isnan(self.lift) or (self.mean_b == 0 and lowest >= 0)
        if is_ratio and self.mean_a != 0:
            lift = 100 * difference / self.mean_a
        return self._replace(
            a=self.b,
            b=self.a,
            difference=difference,
            low=0.0 - self.high,
            high=0.0 - self.low,
            verdict=_OPPOSITE.get(self.verdict, self.verdict),
            lift=lift,
            lift_low=_turned_lift(self.lift_high),
            lift_high=_turned_lift(self.lift_low),
            wins=self.losses,
            losses=self.wins,
            mean_a=self.mean_b,
            mean_b=self.mean_a,
        )


def _turned_lift(lift: float) -> float:
    """Returns the lift of `b` over `a` in per cent, given that of `a` over `b`."""
    ratio = 1 + lift / 100
    return 100 * (1 / ratio - 1) if ratio else math.inf


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
            TypeError: If it is neither.
            ValueError: If it is not positive, or all of a mean or more.
        """
        is_share = isinstance(value, str)
        if isinstance(value, str):
            match = _PERCENTAGE.fullmatch(value)
            size = float(match[1]) / 100 if match else math.nan
        else:
            size = check_number(value, "equivalence", "a percentage such as '2%'")
        if not 0 < size < (1 if is_share else math.inf):
            raise ValueError(
                f"'equivalence' needs to be a positive number, or a percentage of the other mean "
                f"such as '2%', which is less than 100% (got {value!r})"
            )
        return cls(size, is_share)

    def check(self, metric: Metric) -> None:
        """Raises if the difference is as large as any that a metric can have."""
        low, high = metric.definition.range
        if not self.is_share and self.size >= high - low:
            raise ValueError(
                f"'equivalence' needs to be less than {high - low:g}, the largest difference there "
                f"is in {metric} (got {self}); write '{self}%' for a share of the other mean"
            )

    def bound(self, mean: float) -> float:
        """Returns the smallest difference that matters beside a mean."""
        return self.size * abs(mean) if self.is_share else self.size

    def __str__(self) -> str:
        return f"{100 * self.size:.4g}%" if self.is_share else f"{self.size:g}"


@dataclass(frozen=True)
class Protocol:
    """How differences were tested.

    Attributes:
        level (float): The level of the intervals and of all tests together.
        equivalence (Equivalence or None): The smallest difference that matters.
        num_runs (mapping): The number of runs of each recommender.
        deterministic (tuple of str): The recommenders that have no other runs.
        near_copies (tuple of str): The recommenders whose runs hardly differ.
        nouns (RowNouns): What was drawn, and what differences are means over.
        caution (str or None): What makes intervals too narrow.
        num_tests (int): How many tests p-values are corrected for. Those of differences that were
            not selected are among them.
        num_tested_metrics (int): How many metrics these tests are of.
        num_tested_pairs (int): How many pairs of recommenders, by their names, they are of.
        num_metrics (int): How many metrics of single users the results have, also those that not
            all of them have, if the tested ones are among them.
        remarks (tuple of str): What else the results know: of candidates, leaks, ties, budgets.
        num_data_sets (int): How many data sets the tests that p-values are corrected for are of.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> comparison = compare({"perfect": perfect, "popular": popular})
        >>> comparison.protocol.level, comparison.protocol.num_tests
        (0.95, 1)
    """

    level: float
    equivalence: Equivalence | None
    num_runs: Mapping[str, int]
    deterministic: tuple[str, ...]
    nouns: RowNouns
    near_copies: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    caution: str | None = None
    num_tests: int = 0
    num_tested_metrics: int = 0
    num_tested_pairs: int = 0
    num_metrics: int = 0
    num_data_sets: int = 1

    @property
    def alpha(self) -> float:
        """The largest corrected p-value that is significant."""
        return alpha_of(self.level)

    @property
    def has_runs(self) -> bool:
        """Whether any recommender has several runs."""
        return max(self.num_runs.values()) > 1

    @property
    def uncovered(self) -> list[str]:
        """The recommenders with a single run that might have had others."""
        return [
            name
            for name, number in self.num_runs.items()
            if number == 1 and name not in self.deterministic
        ]

    def _not_covered(self, rows: Iterable[PairedDifference]) -> list[str]:
        """Returns the recommenders with a single run that are in a significant difference."""
        starred = [row for row in rows if row.p_adjusted <= self.alpha]
        compared = {name for row in starred for name in (row.a, row.b)}
        return [name for name in self.uncovered if name in compared]
