"""compare(): whether a recommender is better than another, user by user."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, get_args, overload

import torch

from pyg_recmetrics.checks import (
    check_choice,
    check_finite_number,
    check_fraction,
    check_level,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.results.inference import (
    PairedTest,
    Sample,
    check_scipy,
    effect_size,
    holm,
    p_value,
    paired_difference,
)
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.runs import (
    Runnable,
    common_metrics,
    means_of_all_users,
    runs_by_name,
    values_of_runs,
)
from pyg_recmetrics.results.same_task import check_same_task
from pyg_recmetrics.results.uncertainty import Source, Uncertainty, uncertainty_of
from pyg_recmetrics.tables import Table, Tabular, format_error, format_mean, to_data_frame

if TYPE_CHECKING:
    import pandas as pd

_WORDS_ON_TESTS: dict[PairedTest, str] = {
    "t-test": "paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "randomization": "randomisation test of the mean difference",
}


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
        effect_size: Cohen's d: the mean difference over the standard deviation of differences.
        wins: The number of users for whom the metric of `a` is larger.
        ties: The number of users for whom it is the same.
        losses: The number of users for whom it is smaller.
        user_error: The standard error that comes from the choice of users.
        run_error: The standard error that comes from the choice of runs; `NaN` for one run of each.
    """

    metric: str
    a: str
    b: str
    difference: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    effect_size: float
    wins: int | None
    ties: int | None
    losses: int | None
    user_error: float
    run_error: float


class Comparison(Tabular, Sequence[PairedDifference]):
    r"""The differences of recommenders: a :class:`PairedDifference` for every metric and pair.

    :func:`compare` returns it.

    Attributes:
        test (str): The paired test.
        level (float): The level of the intervals. A difference whose `p_adjusted` is at most
            `1 - level` is significant.
        num_runs (mapping): The number of runs of each recommender.
    """

    def __init__(
        self,
        differences: Iterable[PairedDifference],
        test: PairedTest,
        level: float,
        num_runs: Mapping[str, int],
        uncertainties: Mapping[tuple[str, str, str], Uncertainty],
        unit: str,
    ) -> None:
        self._differences = tuple(differences)
        self.test = test
        self.level = level
        self.num_runs = FrozenDict(num_runs)
        self._uncertainties = uncertainties
        self._unit = unit

    def is_significant(self, difference: PairedDifference) -> bool:
        """Returns whether a difference is significant after correction; `False` without a test."""
        return difference.p_adjusted <= 1 - self.level

    def minimum_detectable(
        self,
        metric: str | Metric,
        a: str | None = None,
        b: str | None = None,
        *,
        power: float = 0.8,
    ) -> float:
        r"""Returns the smallest difference that this task can show: one that a test mostly finds.

        It follows from how much the difference of these two recommenders varies over users, and
        over runs if there are several. It is that of one t-test, without correction for others.

        Args:
            metric (str or Metric): The metric.
            a (str, optional): The name of a recommender. (default: `None`, if there is one pair)
            b (str, optional): The name of another. (default: `None`)
            power (float, optional): The probability that the test finds such a difference at the
                level of the comparison, in :math:`(0, 1)`. (default: `0.8`)

        Raises:
            ValueError: If the comparison has no such metric or pair with a test, there are several
                pairs and none is named, or `power` is not between 0 and 1.

        Source: Cohen, "Statistical power analysis for the behavioral sciences" (1988); Sakai,
        "Statistical power analysis and reproducibility in information retrieval" (2018).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, compare, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
            >>> task = RankingTask(truth, num_users=6, num_items=3)
            >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
            >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
            >>> comparison = compare(perfect=perfect, popular=popular)
            >>> round(comparison.minimum_detectable("recall@1"), 2)
            0.79
            >>> comparison.users_needed("recall@1", difference=0.1)
            238
        """
        return self._uncertainty(metric, a, b).detectable(
            check_fraction(power, "power"), self.level
        )

    def users_needed(
        self,
        metric: str | Metric,
        difference: float,
        a: str | None = None,
        b: str | None = None,
        *,
        power: float = 0.8,
    ) -> int | None:
        """Returns how many users a difference needs to be mostly found.

        If persons have several rows, it is the number of persons.

        Args:
            metric (str or Metric): The metric.
            difference (float): The size of the difference.
            a (str, optional): See :meth:`minimum_detectable`. (default: `None`)
            b (str, optional): See :meth:`minimum_detectable`. (default: `None`)
            power (float, optional): See :meth:`minimum_detectable`. (default: `0.8`)

        Returns:
            The number; `None` if no number is enough, because runs alone vary too much.

        Raises:
            ValueError: As for :meth:`minimum_detectable`, or if `difference` is zero.
        """
        return self._needed("users", metric, difference, a, b, power)

    def runs_needed(
        self,
        metric: str | Metric,
        difference: float,
        a: str | None = None,
        b: str | None = None,
        *,
        power: float = 0.8,
    ) -> int | None:
        """Returns how many runs of each recommender a difference needs to be mostly found.

        A recommender with one run is taken as it is. It needs no more.

        Args:
            metric (str or Metric): The metric.
            difference (float): The size of the difference.
            a (str, optional): See :meth:`minimum_detectable`. (default: `None`)
            b (str, optional): See :meth:`minimum_detectable`. (default: `None`)
            power (float, optional): See :meth:`minimum_detectable`. (default: `0.8`)

        Returns:
            The number; `None` if no number is enough, because there are too few users.

        Raises:
            ValueError: As for :meth:`minimum_detectable`, or if `difference` is zero, or no
                recommender has several runs.
        """
        if not self._uncertainty(metric, a, b).has_runs:
            raise ValueError(
                "'results' needs to hold several runs of a recommender (got one of each)"
            )
        return self._needed("runs", metric, difference, a, b, power)

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every metric and pair.

        Raises:
            ImportError: If pandas is not installed.
        """
        frame = to_data_frame(self._differences, PairedDifference._fields)
        return frame.astype({"wins": "Int64", "ties": "Int64", "losses": "Int64"})

    @property
    def _has_runs(self) -> bool:
        return max(self.num_runs.values()) > 1

    def _needed(
        self,
        source: Source,
        metric: str | Metric,
        difference: float,
        a: str | None,
        b: str | None,
        power: float,
    ) -> int | None:
        if check_finite_number(difference, "difference") == 0:
            raise ValueError(f"'difference' needs to be other than zero (got {difference!r})")
        power = check_fraction(power, "power")
        return self._uncertainty(metric, a, b).needed(source, difference, power, self.level)

    def _uncertainty(self, metric: str | Metric, a: str | None, b: str | None) -> Uncertainty:
        name = str(parse(metric))
        if name not in (measured := list(dict.fromkeys(key[0] for key in self._uncertainties))):
            raise ValueError(
                f"'metric' needs to be one that was tested, of {measured} (got '{name}')"
            )
        pairs = [key[1:] for key in self._uncertainties if key[0] == name]
        wanted = [pair for pair in pairs if a in (None, *pair) and b in (None, *pair) and a != b]
        if a is None and b is None:
            wanted = pairs
        if len(wanted) != 1:
            raise ValueError(
                f"'a' and 'b' need to name one pair that was tested, of {pairs} "
                f"(got {a!r} and {b!r})"
            )
        return self._uncertainties[(name, *wanted[0])]

    @overload
    def __getitem__(self, index: int) -> PairedDifference: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PairedDifference]: ...

    def __getitem__(self, index: int | slice) -> PairedDifference | Sequence[PairedDifference]:
        return self._differences[index]

    def __iter__(self) -> Iterator[PairedDifference]:
        return iter(self._differences)

    def __len__(self) -> int:
        return len(self._differences)

    def __repr__(self) -> str:
        num_significant = sum(map(self.is_significant, self))
        return f"{type(self).__name__}({len(self)} differences, {num_significant} significant)"

    def _table(self) -> Table:
        head = ["metric", "a", "b", "difference", "p", "p adjusted", "", "d", "wins/ties/losses"]
        num_tests = sum(not math.isnan(row.p_value) for row in self)
        if self._has_runs:
            head += ["users ±", "runs ±"]
        drawn = f", for other {self._unit}" if self._has_runs or self._unit != "users" else ""
        if self._has_runs:
            drawn += " and other runs"
        notes = [
            f"difference: mean of a - b over users ± its {100 * self.level:.4g}% confidence "
            f"interval{drawn}",
            f"p: {_WORDS_ON_TESTS[self.test]}; adjusted for {num_tests} "
            f"{'test' if num_tests == 1 else 'tests'} by Holm's method",
            f"*: significant at {1 - self.level:.4g} after adjustment",
            "d: Cohen's effect size; wins: users for whom the metric of a is larger",
        ]
        if self._has_runs:
            counts = ", ".join(f"{number} of {name}" for name, number in self.num_runs.items())
            notes += [
                f"runs: {counts}{self._not_covered()}",
                f"users ±, runs ±: the standard error that comes from {self._unit}, and from runs",
            ]
        return Table(head, [self._row(row) for row in self], tuple(notes), num_left=3)

    def _not_covered(self) -> str:
        singles = [name for name, number in self.num_runs.items() if number == 1]
        if not singles:
            return ""
        return f"; intervals do not cover other runs of {', '.join(singles)}"

    def _row(self, row: PairedDifference) -> list[str]:
        counts = "" if row.wins is None else f"{row.wins}/{row.ties}/{row.losses}"
        return [
            row.metric,
            row.a,
            row.b,
            f"{'+' if row.difference >= 0 else ''}"
            f"{format_mean(row.difference, (row.high - row.low) / 2)}",
            _format_p(row.p_value),
            _format_p(row.p_adjusted),
            "*" if self.is_significant(row) else "",
            "-" if math.isnan(row.effect_size) else f"{row.effect_size:+.2f}",
            counts or "-",
            *(
                [format_error(row.user_error), format_error(row.run_error)]
                if self._has_runs
                else []
            ),
        ]


def compare(
    *results: Runnable | Mapping[str, Runnable],
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    baseline: str | None = None,
    test: PairedTest = "t-test",
    level: float = 0.95,
    num_samples: int = 9999,
    seed: int = 0,
    **named: Runnable,
) -> Comparison:
    r"""Compares results of one task user by user, with intervals and tests.

    All results rank the same items for the same users, so each user is its own control. Much of
    what users differ in cancels out, and small differences can be told from chance. Users for whom
    a metric is undefined in either result are left out. As in the means, `empty_target_action`
    decides what users without ground truth count as.

    A recommender may have several runs, such as one for each seed. Then the difference is one of
    means over runs, and its interval and test allow for other users and for other runs. Users are
    the same in all runs, and runs belong to their recommender. If a task knows the persons of its
    rows, other persons are drawn instead of other users.

    Args:
        *results (EvaluationResult, Runs, sequence or mapping): Any number of results, or of
            sequences with the runs of a recommender, which get the names `a`, `b`, `c` and so on;
            or a dictionary of these by name.
        metrics (sequence of str, optional): The metrics to compare. (default: `None`, those that
            all results have)
        baseline (str, optional): The name of a result. Each of the others is compared with it,
            as `b`. (default: `None`, all pairs of results, where `a` comes before `b`)
        test (str, optional): The paired test: `"t-test"`; `"wilcoxon"`, the signed-rank test,
            which leaves ties out; or `"randomization"`, which swaps the two values of random
            users. Several runs need the t-test. (default: `"t-test"`)
        level (float, optional): The level of confidence. (default: `0.95`)
        num_samples (int, optional): The number of random swaps that a randomisation test tries.
            It tries all of them if there are fewer. Other tests try none. (default: `9999`)
        seed (int, optional): The seed of these swaps. (default: `0`)
        **named (EvaluationResult, Runs or sequence): Results by name.

    Returns:
        The differences. They print as a table that marks what is significant after Holm's
        correction over all metrics and pairs. The intervals are those of the paired t-test,
        whatever the test, and are not corrected. `wins` counts users for whom the *value* of `a`
        is larger. For metrics where lower is better, such as `mean_rank`, a loss of `a` means
        that `a` is better. Metrics that have one value for all users together have no interval
        and no test.

    Raises:
        ImportError: If scipy is not installed.
        TypeError: If something is not an `EvaluationResult`.
        ValueError: If there are fewer than two results, a name is given twice, the results are of
            different tasks, conventions or actions for users without truth, they have no metric
            in common, `baseline` or `test` is unknown, `test` is not the t-test for several runs,
            `level` is not between 0 and 1, `num_samples` is not a positive integer, or `seed` is
            not a non-negative integer.

    Source: Smucker, Allan and Carterette, "A comparison of statistical significance tests for
    information retrieval evaluation" (2007); Urbano, Lima and Hanjalic, "Statistical significance
    testing in information retrieval: an empirical analysis of type I, type II and type III
    errors" (2019), which finds the t-test the best choice.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> comparison = compare(perfect=perfect, popular=popular)
        >>> comparison.to_pandas()[["metric", "a", "b", "difference", "wins", "ties", "losses"]]
             metric        a        b  difference  wins  ties  losses
        0  recall@1  perfect  popular         0.5     3     3       0
    """
    check_scipy("compare")
    check_choice(test, "test", get_args(PairedTest))
    level = check_level(level)
    num_samples = check_positive_integer(num_samples, "num_samples")
    seed = check_natural_number(seed, "seed")
    by_name = runs_by_name(results, named)
    num_runs = {name: len(runs) for name, runs in by_name.items()}
    if max(num_runs.values()) > 1 and test != "t-test":
        raise ValueError(
            f"'test' needs to be 't-test' if a recommender has several runs (got {test!r})"
        )
    check_same_task(_all_results(by_name))
    pairs = _pairs(list(by_name), baseline)
    tested = None
    if test != "t-test":
        tested = partial(p_value, test=test, num_samples=num_samples, seed=seed)
    differences, uncertainties = [], {}
    for metric in _metrics(metrics, by_name):
        for a, b in pairs:
            difference, uncertainty = _compare_pair(metric, a, b, by_name, tested, level)
            differences.append(difference)
            if uncertainty is not None:
                uncertainties[str(metric), a, b] = uncertainty
    adjusted = holm([difference.p_value for difference in differences])
    return Comparison(
        (row._replace(p_adjusted=p) for row, p in zip(differences, adjusted, strict=True)),
        test,
        level,
        num_runs,
        uncertainties,
        "users" if next(iter(by_name.values()))[0].person is None else "persons",
    )


def _compare_pair(
    metric: Metric,
    a: str,
    b: str,
    by_name: dict[str, tuple[EvaluationResult, ...]],
    tested: Callable[[Sample], float] | None,
    level: float,
) -> tuple[PairedDifference, Uncertainty | None]:
    name, first, second = str(metric), by_name[a], by_name[b]
    nan = math.nan
    undefined = PairedDifference(
        name, a, b, nan, nan, nan, nan, nan, nan, None, None, None, nan, nan
    )
    means = means_of_all_users([*first, *second], metric)
    if means is not None:
        difference = means[: len(first)].mean() - means[len(first) :].mean()
        return undefined._replace(difference=float(difference)), None
    values = [values_of_runs(runs, metric, first[0].ranked.rank.device) for runs in (first, second)]
    is_paired = ~torch.cat(values).isnan().any(dim=0)
    values = [of_runs[:, is_paired] for of_runs in values]
    difference = paired_difference(*(of_runs.mean(dim=0) for of_runs in values))
    person = first[0].person
    sample = Sample.of(
        difference, None if person is None else person.to(is_paired.device)[is_paired]
    )
    counts = [int((difference.sign() == sign).sum()) for sign in (1, 0, -1)]
    counted = undefined._replace(
        difference=sample.mean, wins=counts[0], ties=counts[1], losses=counts[2]
    )
    if sample.num_drawn < 2:
        return counted, None
    uncertainty = uncertainty_of(sample, values)
    low, high = uncertainty.interval(sample.mean, level)
    has_runs = max(map(len, values)) > 1
    return counted._replace(
        low=low,
        high=high,
        p_value=tested(sample) if tested else uncertainty.p_value(sample.mean),
        effect_size=effect_size(difference),
        user_error=math.sqrt(uncertainty.of("users")),
        run_error=math.sqrt(uncertainty.of("runs")) if has_runs else nan,
    ), uncertainty


def _all_results(by_name: Mapping[str, Sequence[EvaluationResult]]) -> dict[str, EvaluationResult]:
    """Returns all results, by a name that tells the runs of a recommender apart."""
    return {
        name if len(runs) == 1 else f"{name}, run {number}": result
        for name, runs in by_name.items()
        for number, result in enumerate(runs, start=1)
    }


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(names, 2))
    check_choice(baseline, "baseline", names)
    return [(name, baseline) for name in names if name != baseline]


def _metrics(
    metrics: str | Metric | Iterable[str | Metric] | None,
    by_name: Mapping[str, Sequence[EvaluationResult]],
) -> tuple[Metric, ...]:
    if metrics is not None:
        return parse_all(metrics)
    results = list(_all_results(by_name).values())
    common = common_metrics(results)
    if not common:
        raise ValueError(
            f"'results' needs to have metrics in common (got {[list(r) for r in results]})"
        )
    return common


def _format_p(p: float) -> str:
    if math.isnan(p):
        return "-"
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"
