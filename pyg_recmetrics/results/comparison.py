"""compare(): whether a recommender is better than another, user by user."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_choice,
    check_level,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.results.by_name import runs_by_name
from pyg_recmetrics.results.inference import (
    PairedTest,
    Sample,
    check_scipy,
    effect_size,
    holm,
    p_value,
    paired_difference,
)
from pyg_recmetrics.results.power import Power
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.runs import (
    Runnable,
    common_metrics,
    means_of_all_users,
    values_of_runs,
)
from pyg_recmetrics.results.same_task import check_same_task
from pyg_recmetrics.results.uncertainty import uncertainty_of
from pyg_recmetrics.tables import Rows, Table, format_error, format_mean, to_data_frame

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
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    p_adjusted: float = math.nan
    effect_size: float = math.nan
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    user_error: float = math.nan
    run_error: float = math.nan


class Comparison(Rows[PairedDifference]):
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
        *,
        test: PairedTest,
        level: float,
        num_runs: Mapping[str, int],
        powers: Iterable[Power],
        unit: str,
    ) -> None:
        self._rows = tuple(differences)
        self.test = test
        self.level = level
        self.num_runs = FrozenDict(num_runs)
        self._powers = tuple(powers)
        self._unit = unit

    def is_significant(self, difference: PairedDifference) -> bool:
        """Returns whether a difference is significant after correction; `False` without a test."""
        return difference.p_adjusted <= 1 - self.level

    def power(self, metric: str | Metric, a: str | None = None, b: str | None = None) -> Power:
        """Returns which differences the test detects, and what smaller ones need.

        Args:
            metric (str or Metric): The metric.
            a (str, optional): The name of a recommender. (default: `None`, if there is one pair)
            b (str, optional): The name of another. (default: `None`)

        Raises:
            ValueError: If the comparison has no such metric or pair with a test, or there are
                several pairs and `a` and `b` name none of them.
        """
        name = str(parse(metric))
        powers = [power for power in self._powers if power.metric == name]
        if not powers:
            tested = list(dict.fromkeys(power.metric for power in self._powers))
            raise ValueError(
                f"'metric' needs to be one that was tested, of {tested} (got '{name}')"
            )
        named = [name for name in (a, b) if name is not None]
        # A name that stands twice names no pair.
        is_pair = len(set(named)) == len(named)
        found = [power for power in powers if is_pair and {*named} <= {power.a, power.b}]
        if len(found) != 1:
            pairs = [(power.a, power.b) for power in powers]
            raise ValueError(
                f"'a' and 'b' need to name one pair that was tested, of {pairs} "
                f"(got {a!r} and {b!r})"
            )
        return found[0]

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every metric and pair.

        Raises:
            ImportError: If pandas is not installed.
        """
        frame = to_data_frame(self._rows, PairedDifference._fields)
        return frame.astype({"wins": "Int64", "ties": "Int64", "losses": "Int64"})

    @property
    def _has_runs(self) -> bool:
        return max(self.num_runs.values()) > 1

    def __repr__(self) -> str:
        num_significant = sum(map(self.is_significant, self))
        return f"{type(self).__name__}({len(self)} differences, {num_significant} significant)"

    def table(self) -> Table:
        """Returns the printed table."""
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
    results: Mapping[str, Runnable],
    *,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    baseline: str | None = None,
    test: PairedTest = "t-test",
    level: float = 0.95,
    num_samples: int = 9999,
    seed: int = 0,
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
        results (dict): Two results or more, by name. Each is an `EvaluationResult`, or the `Runs`
            of a recommender, or a sequence of these.
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

    Returns:
        The differences. They print as a table that marks what is significant after Holm's
        correction over all metrics and pairs. The intervals are those of the paired t-test,
        whatever the test, and are not corrected. `wins` counts users for whom the *value* of `a`
        is larger. For metrics where lower is better, such as `mean_rank`, a loss of `a` means
        that `a` is better. Metrics that have one value for all users together have no interval
        and no test.

    Raises:
        ImportError: If scipy is not installed.
        TypeError: If `results` does not hold results by name.
        ValueError: If there are fewer than two results, they are of different tasks, conventions
            or actions for users without truth, they have no metric in common, `baseline` or `test`
            is unknown, `test` is not the t-test for several runs, `level` is not between 0 and 1,
            `num_samples` is not a positive integer, or `seed` is not a non-negative integer.

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
        >>> comparison = compare({"perfect": perfect, "popular": popular})
        >>> comparison.to_pandas()[["metric", "a", "b", "difference", "wins", "ties", "losses"]]
             metric        a        b  difference  wins  ties  losses
        0  recall@1  perfect  popular         0.5     3     3       0
    """
    check_scipy("compare")
    check_choice(test, "test", get_args(PairedTest))
    level = check_level(level)
    num_samples = check_positive_integer(num_samples, "num_samples")
    seed = check_natural_number(seed, "seed")
    runs = runs_by_name(results)
    if len(runs) < 2:
        raise ValueError(f"'results' needs to hold at least two results (got {len(runs)})")
    num_runs = {name: len(of_name) for name, of_name in runs.items()}
    if max(num_runs.values()) > 1 and test != "t-test":
        raise ValueError(
            f"'test' needs to be 't-test' if a recommender has several runs (got {test!r})"
        )
    check_same_task(_all_results(runs))
    p_value_of = None
    if test != "t-test":
        p_value_of = partial(p_value, test=test, num_samples=num_samples, seed=seed)
    pairs = _pairs(list(runs), baseline)
    compared = [
        _compare_pair(metric, a, b, runs, level, p_value_of)
        for metric in _metrics(metrics, runs)
        for a, b in pairs
    ]
    adjusted = holm([row.p_value for row, _ in compared])
    return Comparison(
        (row._replace(p_adjusted=p) for (row, _), p in zip(compared, adjusted, strict=True)),
        test=test,
        level=level,
        num_runs=num_runs,
        powers=(power for _, power in compared if power is not None),
        unit="users" if next(iter(runs.values()))[0].person is None else "persons",
    )


def _compare_pair(
    metric: Metric,
    a: str,
    b: str,
    runs: Mapping[str, Sequence[EvaluationResult]],
    level: float,
    p_value_of: Callable[[Sample], float] | None,
) -> tuple[PairedDifference, Power | None]:
    """Compares two recommenders. There is no power without a test."""
    name, first, second = str(metric), runs[a], runs[b]
    means = means_of_all_users([*first, *second], metric)
    if means is not None:
        difference = means[: len(first)].mean() - means[len(first) :].mean()
        return PairedDifference(name, a, b, float(difference)), None
    sample, values = _pair_users(metric, first, second)
    wins, ties, losses = (int((sample.values.sign() == sign).sum()) for sign in (1, 0, -1))
    row = PairedDifference(name, a, b, sample.mean, wins=wins, ties=ties, losses=losses)
    if sample.num_drawn < 2:
        return row, None
    uncertainty = uncertainty_of(sample, values)
    low, high = uncertainty.interval(sample.mean, level)
    return row._replace(
        low=low,
        high=high,
        p_value=p_value_of(sample) if p_value_of else uncertainty.p_value(sample.mean),
        effect_size=effect_size(sample.values),
        user_error=math.sqrt(uncertainty.of("users")),
        run_error=math.sqrt(uncertainty.of("runs")) if uncertainty.has_runs else math.nan,
    ), Power(name, a, b, level, uncertainty)


def _pair_users(
    metric: Metric, first: Sequence[EvaluationResult], second: Sequence[EvaluationResult]
) -> tuple[Sample, list[Tensor]]:
    """Finds the users for whom both recommenders are defined.

    Returns:
        Their differences; and their values in every run of each, of shape `[num_runs, num_users]`.
    """
    device, person = first[0].ranked.rank.device, first[0].person
    values = [values_of_runs(runs, metric, device) for runs in (first, second)]
    is_paired = ~torch.cat(values).isnan().any(dim=0)
    values = [of_runs[:, is_paired] for of_runs in values]
    difference = paired_difference(*(of_runs.mean(dim=0) for of_runs in values))
    if person is not None:
        person = person.to(device)[is_paired]
    return Sample.of(difference, person), values


def _all_results(runs: Mapping[str, Sequence[EvaluationResult]]) -> dict[str, EvaluationResult]:
    """Returns all results, by a name that tells the runs of a recommender apart."""
    return {
        name if len(of_name) == 1 else f"{name}, run {number}": result
        for name, of_name in runs.items()
        for number, result in enumerate(of_name, start=1)
    }


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(names, 2))
    check_choice(baseline, "baseline", names)
    return [(name, baseline) for name in names if name != baseline]


def _metrics(
    metrics: str | Metric | Iterable[str | Metric] | None,
    runs: Mapping[str, Sequence[EvaluationResult]],
) -> tuple[Metric, ...]:
    if metrics is not None:
        return parse_all(metrics)
    results = list(_all_results(runs).values())
    common = common_metrics(results)
    if not common:
        raise ValueError(
            f"'results' needs to have metrics in common (got {list(map(list, results))})"
        )
    return common


def _format_p(p: float) -> str:
    if math.isnan(p):
        return "-"
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"
