"""compare(): whether a recommender is better than another, user by user."""

import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, overload

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_choice,
    check_level,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.metrics import Metric, parse_all
from pyg_recmetrics.results.inference import (
    PairedTest,
    check_scipy,
    effect_size,
    holm,
    p_value,
    paired_difference,
    t_interval,
)
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.tables import Table, Tabular, format_mean, to_data_frame
from pyg_recmetrics.task.edges import coalesce_truth

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
        a: The name of one result.
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


class Comparison(Tabular, Sequence[PairedDifference]):
    r"""The differences of several results: a :class:`PairedDifference` for every metric and pair.

    :func:`compare` returns it.

    Attributes:
        test (str): The paired test.
        level (float): The level of the intervals. A difference whose `p_adjusted` is at most
            `1 - level` is significant.
    """

    def __init__(
        self, differences: Iterable[PairedDifference], test: PairedTest, level: float
    ) -> None:
        self._differences = tuple(differences)
        self.test = test
        self.level = level

    def is_significant(self, difference: PairedDifference) -> bool:
        """Returns whether a difference is significant after correction; `False` without a test."""
        return difference.p_adjusted <= 1 - self.level

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every metric and pair.

        Raises:
            ImportError: If pandas is not installed.
        """
        frame = to_data_frame(self._differences, PairedDifference._fields)
        return frame.astype({"wins": "Int64", "ties": "Int64", "losses": "Int64"})

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
        notes = (
            f"difference: mean of a - b over users ± its {100 * self.level:.4g}% confidence "
            f"interval",
            f"p: {_WORDS_ON_TESTS[self.test]}; adjusted for {num_tests} tests by Holm's method",
            f"*: significant at {1 - self.level:.4g} after adjustment",
            "d: Cohen's effect size; wins: users for whom the metric of a is larger",
        )
        return Table(head, [self._row(row) for row in self], notes, num_left=3)

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
        ]


def compare(
    *results: EvaluationResult | Mapping[str, EvaluationResult],
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    baseline: str | None = None,
    test: PairedTest = "t-test",
    level: float = 0.95,
    num_samples: int = 9999,
    seed: int = 0,
    **named: EvaluationResult,
) -> Comparison:
    r"""Compares results of one task user by user, with intervals and tests.

    All results rank the same items for the same users, so each user is its own control. Much of
    what users differ in cancels out, and small differences can be told from chance. Users for whom
    a metric is undefined in either result are left out. As in the means, `empty_target_action`
    decides what users without ground truth count as.

    Args:
        *results (EvaluationResult or mapping): Any number of results, which get the names `a`,
            `b`, `c` and so on; or a dictionary of results by name.
        metrics (sequence of str, optional): The metrics to compare. (default: `None`, those that
            all results have)
        baseline (str, optional): The name of a result. Each of the others is compared with it,
            as `b`. (default: `None`, all pairs of results, where `a` comes before `b`)
        test (str, optional): The paired test: `"t-test"`; `"wilcoxon"`, the signed-rank test,
            which leaves ties out; or `"randomization"`, which swaps the two values of random
            users. (default: `"t-test"`)
        level (float, optional): The level of confidence. (default: `0.95`)
        num_samples (int, optional): The number of random swaps that a randomisation test tries.
            It tries all of them if there are fewer. Other tests try none. (default: `9999`)
        seed (int, optional): The seed of these swaps. (default: `0`)
        **named (EvaluationResult): Results by name.

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
            in common, `baseline` or `test` is unknown, `level` is not between 0 and 1,
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
    by_name = _by_name(results, named)
    _check_same_task(by_name)
    pairs = _pairs(list(by_name), baseline)
    tested = partial(p_value, test=test, num_samples=num_samples, seed=seed)
    differences = [
        _compare_pair(metric, a, b, by_name, tested, level)
        for metric in _metrics(metrics, by_name)
        for a, b in pairs
    ]
    adjusted = holm([difference.p_value for difference in differences])
    return Comparison(
        (row._replace(p_adjusted=p) for row, p in zip(differences, adjusted, strict=True)),
        test,
        level,
    )


def _compare_pair(
    metric: Metric,
    a: str,
    b: str,
    by_name: dict[str, EvaluationResult],
    tested: Callable[[Tensor], float],
    level: float,
) -> PairedDifference:
    name, first, second = str(metric), by_name[a], by_name[b]
    nan = math.nan
    undefined = PairedDifference(name, a, b, nan, nan, nan, nan, nan, nan, None, None, None)
    if name in first and name not in first.per_user:
        return undefined._replace(difference=first[name] - second[name])
    of_first = first.contributions(metric)
    of_second = second.contributions(metric).to(of_first.device)
    is_paired = ~(of_first.isnan() | of_second.isnan())
    difference = paired_difference(of_first[is_paired], of_second[is_paired])
    counts = [int((difference.sign() == sign).sum()) for sign in (1, 0, -1)]
    counted = undefined._replace(
        difference=float(difference.mean()), wins=counts[0], ties=counts[1], losses=counts[2]
    )
    if difference.numel() < 2:
        return counted
    low, high = t_interval(difference, level)
    return counted._replace(
        low=low,
        high=high,
        p_value=tested(difference),
        effect_size=effect_size(difference),
    )


def _by_name(
    results: tuple[EvaluationResult | Mapping[str, EvaluationResult], ...],
    named: dict[str, EvaluationResult],
) -> dict[str, EvaluationResult]:
    pairs: list[tuple[str, Any]] = []
    for result in results:
        if isinstance(result, EvaluationResult):
            index = len(pairs)
            letters = string.ascii_lowercase
            pairs.append((letters[index] if index < len(letters) else str(index + 1), result))
        elif isinstance(result, Mapping):
            pairs.extend(result.items())
        else:
            pairs.append(("", result))
    pairs.extend(named.items())
    for _, result in pairs:
        if not isinstance(result, EvaluationResult):
            raise TypeError(
                f"'results' needs to hold 'EvaluationResult' (got {type(result).__name__})"
            )
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        raise ValueError(
            f"'results' needs to give each result a name of its own "
            f"(got {[name for name, _ in pairs]})"
        )
    if len(by_name) < 2:
        raise ValueError(f"'results' needs to hold at least two results (got {len(by_name)})")
    return by_name


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(names, 2))
    check_choice(baseline, "baseline", names)
    return [(name, baseline) for name in names if name != baseline]


def _metrics(
    metrics: str | Metric | Iterable[str | Metric] | None, by_name: dict[str, EvaluationResult]
) -> tuple[Metric, ...]:
    if metrics is not None:
        return parse_all(metrics)
    first, *others = by_name.values()
    common = tuple(
        metric for metric in first.metrics if all(str(metric) in other for other in others)
    )
    if not common:
        raise ValueError(
            f"'results' needs to have metrics in common (got {[list(r) for r in by_name.values()]})"
        )
    return common


def _check_same_task(by_name: dict[str, EvaluationResult]) -> None:
    (first_name, first), *others = by_name.items()
    identity = _identity(first)
    for name, result in others:
        other = _identity(result)
        differing = [
            key
            for key in {**identity, **other}
            if not _is_same(identity.get(key, None), other.get(key, None))
        ]
        if differing:
            raise ValueError(
                f"'results' needs to be of the same task (got '{first_name}' and '{name}', which "
                f"differ in {', '.join(differing)})"
            )


def _identity(result: EvaluationResult) -> dict[str, object]:
    """Returns what two results must have in common for their users to be pairs.

    The edges and ids of a task are sorted and unique, so equal tasks have equal tensors.
    """
    ranked, task = result.ranked, result.task
    how: dict[str, object] = {
        "convention": result.convention,
        "empty_target_action": result.empty_target_action,
        "num_users": ranked.num_users,
    }
    if task is not None:
        names = ("num_items", "users", "truth", "weight", "seen", "candidates")
        return how | {name: getattr(task, name) for name in names}
    edges = ranked.edge_index
    num_items = int(edges[1].max()) + 1 if edges.numel() else 1
    truth, weight = coalesce_truth(edges, ranked.weight, num_items)
    return how | {"truth": truth, "weight": weight, "user_ids": ranked.user_ids}


def _is_same(first: object, second: object) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.shape == second.shape and torch.equal(first, second.to(first.device))
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        return False
    return first == second


def _format_p(p: float) -> str:
    if math.isnan(p):
        return "-"
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"
