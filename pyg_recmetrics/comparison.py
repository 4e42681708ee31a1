"""compare(): whether one recommender is better than another, user by user."""

import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, overload

import torch
from torch import Tensor
from torch_geometric.utils import coalesce

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.extras import importing
from pyg_recmetrics.metrics import Metric, parse_all
from pyg_recmetrics.result import EvaluationResult
from pyg_recmetrics.statistics import (
    PairedTest,
    check_choice,
    check_level,
    check_scipy,
    effect_size,
    holm,
    p_value,
    paired_difference,
    t_interval,
)
from pyg_recmetrics.tables import Table, Tabular, format_mean

if TYPE_CHECKING:
    import pandas as pd

_WORDS_ON_TESTS: dict[PairedTest, str] = {
    "t-test": "paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "randomization": "randomisation test of the mean difference",
}


class PairedDifference(NamedTuple):
    """How two recommenders differ in a metric.

    Attributes:
        metric: The metric, as `name@k`.
        a: The name of one result.
        b: The name of the other.
        difference: The mean of `a` minus `b` over the users for whom both are defined.
        low: The lower end of the confidence interval of the difference.
        high: The upper end.
        p_value: The p-value of the hypothesis that there is no difference.
        p_adjusted: The p-value, corrected for all tests of the comparison.
        effect_size: Cohen's d: the mean difference by the standard deviation of differences.
        wins: For how many users the metric of `a` is larger.
        ties: For how many it is the same.
        losses: For how many it is smaller.
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
    r"""The differences of several results, a :class:`PairedDifference` for every metric and pair.

    Made by :func:`compare`.

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
        """Whether a difference is significant after correction; `False` if it was not tested."""
        return difference.p_adjusted <= 1 - self.level

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every metric and pair.

        Raises:
            ImportError: If pandas is not installed.
        """
        with importing("pandas", "examples", "to_pandas"):
            import pandas as pd
        frame = pd.DataFrame(self._differences, columns=list(PairedDifference._fields))
        return frame.astype({"wins": "Int64", "ties": "Int64", "losses": "Int64"})

    @overload
    def __getitem__(self, place: int) -> PairedDifference: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[PairedDifference]: ...

    def __getitem__(self, place: int | slice) -> PairedDifference | Sequence[PairedDifference]:
        return self._differences[place]

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
    r"""Compares results of one task user by user: differences, intervals, tests.

    All results rank the same items for the same users, so each user is its own control: much of
    what users differ in cancels out, and small differences can be told from chance. Users for whom
    a metric is undefined in either result are left out; what users without ground truth count as
    is up to `empty_target_action`, as in the means.

    Args:
        *results (EvaluationResult or mapping): Any number of results, which are called `a`, `b`,
            `c` and so on, or a dictionary of results by name.
        metrics (sequence of str, optional): The metrics. (default: `None`, those that all results
            have)
        baseline (str, optional): The name of the result that each of the others is compared with,
            as `b`. (default: `None`, every pair, where `a` is the one that comes first)
        test (str, optional): The paired test: `"t-test"`; `"wilcoxon"`, the signed-rank test,
            which leaves ties out; or `"randomization"`, which swaps the two values of users at
            random. (default: `"t-test"`)
        level (float, optional): The level of confidence. (default: `0.95`)
        num_samples (int, optional): The number of random swaps that a randomisation test tries;
            all of them if there are fewer. (default: `9999`)
        seed (int, optional): Their seed. (default: `0`)
        **named (EvaluationResult): Results by name.

    Returns:
        The differences. They print as a table that marks what is significant after Holm's
        correction over all metrics and pairs. Intervals are those of the paired t-test whatever
        the test, and are not corrected. `wins` counts users for whom the *value* of `a` is larger:
        of metrics such as `mean_rank`, of which less is better, `a` is better where it loses.
        What has a single value for all users together is shown without interval or test.

    Raises:
        ImportError: If scipy is not installed.
        TypeError: If something is no result.
        ValueError: If there are fewer than two results or a name is given twice, the results are
            of different tasks, conventions or actions for users without truth, no metric is
            common to all, or an option is unknown.

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
    check_level(level)
    check_positive_integer(num_samples, "num_samples")
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
    name, one, other = str(metric), by_name[a], by_name[b]
    nan = math.nan
    undefined = PairedDifference(name, a, b, nan, nan, nan, nan, nan, nan, None, None, None)
    if name in one and name not in one.per_user:
        return undefined._replace(difference=one[name] - other[name])
    values = one.contributions(metric), other.contributions(metric).to(one.ranked.rank.device)
    is_paired = ~(values[0].isnan() | values[1].isnan())
    difference = paired_difference(values[0][is_paired], values[1][is_paired])
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
            place = len(pairs)
            letters = string.ascii_lowercase
            pairs.append((letters[place] if place < len(letters) else str(place + 1), result))
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
    """What two results must have in common for their users to be pairs.

    Edges and ids of a task are sorted and unique, so that equal tasks have equal tensors.
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
    truth, weight = coalesce(ranked.edge_index, ranked.weight)
    return how | {"truth": truth, "weight": weight, "user_ids": ranked.user_ids}


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and torch.equal(one, other.to(one.device))
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return False
    return one == other


def _format_p(p: float) -> str:
    if math.isnan(p):
        return "-"
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"
