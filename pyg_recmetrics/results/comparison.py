"""compare(): whether a recommender is better than another, user by user."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, groupby, islice, product
from operator import attrgetter, itemgetter
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from pyg_recmetrics.checks import check_choice, check_level, written
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.results import notes
from pyg_recmetrics.results.result import Measured, has_rows
from pyg_recmetrics.results.runs import (
    LEAST_DIFFERING,
    Name,
    Runnable,
    budgets_of,
    every_run,
    have_same_values,
    metrics_in_common,
    read_name,
    recommenders_by_name,
    remarks_on,
    share_of_differing,
)
from pyg_recmetrics.results.statistics import (
    Array,
    Difference,
    Mean,
    RunVariance,
    alpha_of,
    difference_of_users,
    holm,
    mean_of_users,
    paired_difference,
    run_variances,
)
from pyg_recmetrics.results.verdicts import Equivalence, PairedDifference, Protocol, Verdict
from pyg_recmetrics.tables import Rows, Table, format_interval, format_p
from pyg_recmetrics.utils import FrozenDict, list_some, warn

#: A metric, and the names of two recommenders that are compared in it.
Hypothesis: TypeAlias = tuple[Metric, tuple[str, str]]


@dataclass(frozen=True, eq=False)
class RecommenderPair:
    """The values of two recommenders in a metric, for the users where both are defined.

    Attributes:
        metric (Metric): The metric.
        names (tuple of str): The names of the recommenders.
        both (sequence of np.ndarray): The values of each, of shape `[num_users, num_runs]`.
        person (np.ndarray or None): The person that each row belongs to, of shape `[num_users]`.
        runs (sequence): How much the runs of each vary; `None` for one that has a single run.
        has_rows (bool): Whether the values are of users. If not, there is one of all together.
    """

    metric: Metric
    names: tuple[str, str]
    both: Sequence[Array]
    person: Array | None
    runs: Sequence[RunVariance | None]
    has_rows: bool = True

    @cached_property
    def difference(self) -> Difference:
        """The mean difference."""
        return self._scaled(1.0, 1.0)

    def _scaled(self, a: float, b: float) -> Difference:
        return difference_of_users(self.both, self.person, self.runs, (a, b))

    @property
    def mean(self) -> Mean:
        """What the interval of the difference rests on.

        Of users who differ in one direction alone, up to three in all who were drawn may differ in
        the other, unseen, with a probability of 5%.
        Source: Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?" (1983).
        """
        values, (lowest, highest) = self.difference.values, self.metric.definition.range
        if (values > 0).any() == (values < 0).any():
            return self.difference.mean
        widest = highest - lowest
        if widest == math.inf:
            widest = float(np.abs(values).max())
        unseen = 3 * widest / self.difference.mean.num_drawn
        is_one_sided = abs(self.difference.value) < unseen
        return replace(self.difference.mean, is_one_sided=is_one_sided)

    def p_of_equivalence(self, equivalence: Equivalence | None) -> float:
        """Returns the p-value of two one-sided tests that the difference is no smaller.

        It is `NaN` if there is nothing to test.

        Where it is a share of the mean of `b`, that mean is as uncertain as the difference: what is
        tested is `a` less a multiple of `b`, user by user.

        Source: Schuirmann, "A comparison of the two one-sided tests procedure and the power
        approach for assessing the equivalence of average bioavailability" (1987).
        """
        if equivalence is None or not self.difference.mean.has_interval:
            return math.nan
        return max(self._tails(equivalence))

    def p_of_margin(self, margin: Equivalence) -> tuple[float, float]:
        """Returns the p-values of `a` being worse by no more than a margin, and of it being worse.

        Each is of one side. A margin that is a share is one as in :meth:`p_of_equivalence`.

        Source: Piaggio et al., "Reporting of noninferiority and equivalence randomized trials"
        (2012).
        """
        not_below, not_above = self._tails(margin)
        value, uncertainty = self.difference.value, self.difference.uncertainty
        if self.metric.definition.higher_is_better:
            return not_below, uncertainty.p_above(-value)
        return not_above, uncertainty.p_above(value)

    def _tails(self, size: Equivalence) -> tuple[float, float]:
        """Returns the p-values of `a` not being below, and not being above `b` by some size."""
        value, uncertainty = self.difference.value, self.difference.uncertainty
        if value == 0 and uncertainty.variance == 0:
            return 0.0, 0.0
        if not size.is_share:
            return uncertainty.p_above(value + size.size), uncertainty.p_above(size.size - value)
        # Of a negative mean, the larger multiple is below it.
        share = -size.size if self.both[1].mean() < 0 else size.size
        from_low = self._scaled(1.0, 1 - share)
        from_high = self._scaled(1.0, 1 + share)
        not_below = from_low.uncertainty.p_above(from_low.value)
        return not_below, from_high.uncertainty.p_above(-from_high.value)

    def row(self, alpha: float) -> PairedDifference:
        """Returns the difference without corrections, with intervals of level `1 - alpha`."""
        a, b = (float(values.mean()) for values in self.both)
        found = self.difference
        row = PairedDifference(str(self.metric), *self.names, found.value, mean_a=a, mean_b=b)
        if self.has_lift:
            row = row._replace(lift=100 * found.value / b)
        if self.has_rows:
            wins, losses = _counts(self.metric, *self.both)
            ties = len(self.both[0]) - wins - losses
            row = row._replace(wins=wins, ties=ties, losses=losses)
        if not found.mean.has_interval:
            return row
        margin = found.uncertainty.margin(alpha / 2)
        row = row._replace(
            low=found.value - margin,
            high=found.value + margin,
            p_value=found.uncertainty.p_value(found.value),
            user_error=math.sqrt(found.mean.of_users),
            run_error=found.run_error,
        )
        if not self.has_lift or a <= 0:
            return row
        # The interval of the lift is one of the logarithm of the ratio.
        margin = self._scaled(1 / a, 1 / b).uncertainty.margin(alpha / 2)
        log_ratio = math.log(a / b) if found.value else 0.0
        with np.errstate(over="ignore"):
            low, high = 100 * np.expm1(np.array([log_ratio - margin, log_ratio + margin]))
        return row._replace(lift_low=float(low), lift_high=float(high))

    @property
    def has_lift(self) -> bool:
        """Whether ratios of means say something: zero is the least there is, and not one of `b`."""
        a, b = self.both
        least = min(self.metric.definition.range[0], a.min(initial=0), b.min(initial=0))
        return bool(least >= 0 and b.mean() != 0)


def _counts(metric: Metric, a: Array, b: Array) -> tuple[float, float]:
    """Returns wins and losses on average over pairs of runs.

    Means over runs would have fewer ties the more runs there are.
    """
    above = below = 0
    for values in a.T:
        difference = paired_difference(values[:, None], b)
        above += int((difference > 0).sum())
        below += int((difference < 0).sum())
    num_pairs = a.shape[1] * b.shape[1]
    found = above / num_pairs, below / num_pairs
    return found if metric.definition.higher_is_better else found[::-1]


def _pairs(
    questions: Iterable[Hypothesis], recommenders: Mapping[str, Measured]
) -> Iterator[RecommenderPair]:
    """Yields the values that each question is about."""
    first = next(iter(recommenders.values()))
    for metric, of_metric in groupby(questions, key=itemgetter(0)):
        values = {name: each.array_of(metric) for name, each in recommenders.items()}
        means = {}
        for name, of_one in values.items():
            counted = of_one[~np.isnan(of_one).any(axis=1)]
            if len(counted):
                means[name] = counted.mean(axis=0)
        runs = run_variances(means)
        of_rows = has_rows(first, metric)
        person = first.person if of_rows else None
        for _, names in of_metric:
            both = [values[name] for name in names]
            is_undefined = np.isnan(np.concatenate(both, axis=1)).any(axis=1)
            is_paired = ~(of_rows & is_undefined)
            yield RecommenderPair(
                metric,
                names,
                [x[is_paired] for x in both],
                None if person is None else person[is_paired],
                [runs.get(name) for name in names],
                of_rows,
            )


def p_of_margin(
    comparison: "Comparison", row: PairedDifference, margin: Equivalence
) -> tuple[float, float]:
    """Returns the p-values of `a` being worse by no more than a margin, and of it being worse."""
    question = (parse(row.metric), (row.a, row.b))
    (pair,) = _pairs([question], comparison._recommenders)
    return pair.p_of_margin(margin)


def is_higher_better(metric: str | Metric) -> bool:
    """Returns whether higher values of a metric are better."""
    return parse(metric).definition.higher_is_better


def best_first(results: Mapping[str, Measured], metric: str | Metric) -> list[str]:
    """Returns the names of recommenders, best first, without those that have no mean."""
    means = {name: each.estimate_of(metric).value for name, each in results.items()}
    return list(places_of(means, metric).sort_values(kind="stable").index)


def places_of(means: Mapping[str, float], metric: str | Metric) -> "pd.Series[float]":
    """Returns the place of each recommender that has a mean, which is 1 for the best.

    Means of equal numbers, added up in another order, have the same place.
    """
    rounded = pd.Series({name: float(f"{mean:.12g}") for name, mean in means.items()}).dropna()
    return rounded.rank(method="dense", ascending=not is_higher_better(metric))


def _beside(
    rows: Iterable[PairedDifference], name: str, side: Literal["a", "b"]
) -> list[PairedDifference]:
    """Returns the differences of a recommender, of which it is one side of each.

    Where it is the other side, they are turned around. They keep the corrections.
    """
    own = [row for row in rows if name in (row.a, row.b)]
    return [row if getattr(row, side) == name else row._turned() for row in own]


def _lines(
    rows: Iterable[PairedDifference], has_one_b: bool
) -> Iterator[tuple[str, str, PairedDifference | None]]:
    """Yields recommenders, their labels and differences from the reference, which has none.

    The reference is the common `b` or, without one, each `a`, and the others stand below it.
    """
    for reference, differences in groupby(rows, attrgetter("b" if has_one_b else "a")):
        yield reference, reference, None
        for row in differences:
            yield (row.a, row.a, row) if has_one_b else (row.b, f"- {row.b}", row)


class Comparison(Rows[PairedDifference]):
    r"""The differences of recommenders: a :class:`PairedDifference` for every metric and pair.

    :func:`compare` returns it.

    Attributes:
        protocol (Protocol): How they were tested.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> comparison = compare({"perfect": perfect, "popular": popular})
        >>> row = comparison[0]
        >>> row.metric, row.a, row.b, round(row.difference, 2)
        ('recall@1', 'perfect', 'popular', 0.5)
    """

    def __init__(
        self,
        differences: Iterable[PairedDifference],
        protocol: Protocol,
        recommenders: Mapping[str, Measured],
    ) -> None:
        self._rows = tuple(differences)
        self.protocol = protocol
        self._recommenders = recommenders

    def check_results(self, recommenders: Mapping[str, Measured]) -> None:
        """Raises if the differences are not those of some recommenders.

        Raises:
            ValueError: If they have other names, or other values than those that were compared.
        """
        own = self._recommenders
        metrics = {row.metric for row in self}
        differing = sorted(own.keys() ^ recommenders.keys()) or [
            name for name in own if not have_same_values(own[name], recommenders[name], metrics)
        ]
        if differing:
            raise ValueError(
                f"'comparison' needs to be of the results {list(recommenders)} (got one of "
                f"{list(own)}, which differs in {', '.join(differing)})"
            )

    def is_significant(self, difference: PairedDifference) -> bool:
        """Returns whether a difference is significant after correction; `False` without a test.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, compare, evaluate
            >>> truth = torch.stack([torch.arange(20), torch.arange(20) % 4])
            >>> task = RankingTask(truth, num_users=20, num_items=4)
            >>> popular = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "recall@1")
            >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
            >>> comparison = compare({"perfect": perfect, "popular": popular})
            >>> [comparison.is_significant(difference) for difference in comparison]
            [True]
        """
        return difference.p_adjusted <= self.protocol.alpha

    def covers_training(self, difference: PairedDifference) -> bool:
        """Returns whether a difference allows for other runs of both recommenders.

        A single run does not, nor do runs that hardly differ. Where it does not, what is
        significant is so for the trained models alone. Tables put its star in brackets.
        """
        return not {difference.a, difference.b} & {
            *self.protocol.uncovered,
            *self.protocol.near_copies,
        }

    def bound(self, difference: PairedDifference) -> float | None:
        """Returns the smallest difference that matters; `None` without `equivalence`."""
        return None if math.isnan(difference.bound) else difference.bound

    def claims(self) -> tuple[str, ...]:
        """Returns one sentence for each pair: in which metrics one is better, and what is open."""
        judged = [row for row in self if row.verdict is not None]
        # All are of one task.
        has_own = next(iter(self._recommenders.values())).runs[0]._has_own_candidates
        where = f"among the candidates of each {self.protocol.nouns.user}, " if has_own else ""
        found = []
        for a, b in dict.fromkeys((row.a, row.b) for row in judged):
            rows = [row for row in judged if (row.a, row.b) == (a, b)]
            clauses = notes.lines("clauses", rows, a, b)
            found.append(self._limited("; ".join(clauses), rows, where))
        return tuple(found)

    def _limited(self, claim: str, rows: Sequence[PairedDifference], where: str = "") -> str:
        """Returns a claim on some differences, with what it is limited to, as a sentence.

        That is where it holds, trained models alone, and the order of equal scores, if that moves a
        mean behind a difference.
        """
        moved = []
        for row in rows:
            for name in (row.a, row.b):
                recommender = self._recommenders[name]
                if any(row.metric in run._moved_by_ties for run in recommender.runs):
                    moved.append(f"{row.metric} of {name} is {recommender.tie_range(row.metric)}")
        trained = "" if all(map(self.covers_training, rows)) else "as trained here, "
        ties = f"; depending on the order of ties, {list_some(moved, 4)}" if moved else ""
        names = [*self._recommenders, *(row.metric for row in self)]
        return notes.as_sentence(f"{where}{trained}{claim}{ties}", names)

    def select(
        self,
        metrics: str | Metric | Iterable[str | Metric] | None = None,
        name: Name | None = None,
    ) -> "Comparison":
        """Returns some of the differences. They keep the corrections for all tests.

        Args:
            metrics (str or sequence of str, optional): The metrics. (default: `None`, all)
            name (str, optional): A recommender that is `a` of each pair. Where it was `b`, the
                difference is turned around. The others are in the order of their means, the best
                first. (default: `None`, all pairs as they are)

        Raises:
            TypeError: If `metrics` is neither a string nor holds strings.
            ValueError: If a metric or the recommender was not compared, or no difference is left.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, compare, evaluate
            >>> truth = torch.stack([torch.arange(20), torch.arange(20) % 4])
            >>> task = RankingTask(truth, num_users=20, num_items=4)
            >>> scores = torch.tensor([4.0, 3.0, 2.0, 1.0])
            >>> a, b = (evaluate(x, task, ["recall@1", "mrr"]) for x in (scores, -scores))
            >>> [difference.metric for difference in compare({"a": a, "b": b}).select("mrr")]
            ['mrr']
        """
        compared = [*dict.fromkeys(row.metric for row in self)]
        asked = compared if metrics is None else [*map(str, parse_all(metrics))]
        for metric in asked:
            check_choice(metric, "metrics", compared)
        rows = [row for row in self if row.metric in asked]
        if name is not None:
            name = read_name(name, "name", list(self.protocol.num_runs))
            rows = []
            for metric in asked:
                found = _beside([row for row in self if row.metric == metric], name, "a")
                found.sort(key=lambda row: row.mean_b, reverse=is_higher_better(metric))
                rows += found
        if not rows:
            raise ValueError(
                f"'metrics' and 'name' need to leave a difference (got {metrics!r} and {name!r})"
            )
        return Comparison(rows, self.protocol, self._recommenders)

    def to_pandas(self) -> pd.DataFrame:
        """Returns a data frame with a row for every metric and pair.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, compare, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
            >>> task = RankingTask(truth, num_users=6, num_items=3)
            >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
            >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
            >>> comparison = compare({"perfect": perfect, "popular": popular})
            >>> comparison.to_pandas()[["metric", "a", "b", "difference"]]
                 metric        a        b  difference
            0  recall@1  perfect  popular         0.5
        """
        budgets = {x: (each.num_trials, each.seconds) for x, each in self._recommenders.items()}
        rows = [(*row, *budgets[row.a], *budgets[row.b]) for row in self]
        of_both = [f"{what}_{side}" for side in "ab" for what in ("num_trials", "seconds")]
        return pd.DataFrame(rows, columns=[*PairedDifference._fields, *of_both])

    def __repr__(self) -> str:
        num_significant = sum(map(self.is_significant, self))
        return f"{type(self).__name__}({len(self)} differences, {num_significant} significant)"

    def table(self, *, all_pairs: bool = False) -> Table:
        """Returns the printed table, with a row for each recommender and metric.

        Differences are from the reference: the `baseline`, or the second of two. Where all pairs of
        more recommenders were compared, it is the one with the best mean.

        Args:
            all_pairs (bool, optional): Whether to show all pairs that were compared, each as `a`
                and, below it, `- b`. (default: `False`)
        """
        shown = self._rows if all_pairs else self._from_reference()
        num_metrics = len({row.metric for row in shown})
        has_one_b = len({(row.metric, row.b) for row in shown}) == num_metrics
        budgets = budgets_of(self._recommenders)
        head = ["recommender", "mean", "difference", "lift", "p", "", "verdict", "wins/ties/losses"]
        rows: list[list[str]] = []
        of_others = False
        for metric, of_metric in groupby(shown, attrgetter("metric")):
            rows.append([metric])
            compared = list(of_metric)
            means, has_others = self._means(compared)
            of_others |= has_others
            for name, label, row in _lines(compared, has_one_b):
                of_tuning = [known[name] for known in budgets.values()]
                rows.append([label, f"{means[name]:.4f}", *self._cells(row), *of_tuning])
        said = notes.lines(
            "below_comparison",
            self.protocol,
            shown,
            has_intervals=not all(math.isnan(row.low) for row in shown),
            has_tests=not all(math.isnan(row.p_value) for row in shown),
            are_from_best=len(self) > len(shown),
            has_one_b=has_one_b,
            of_others=of_others,
        )
        return Table([*head, *budgets], rows, tuple(said))

    def _means(self, rows: Sequence[PairedDifference]) -> tuple[dict[str, float], bool]:
        """Returns the means of a metric over the users that all recommenders in some rows have.

        Also whether some recommender has others, too.
        """
        names = list(dict.fromkeys(name for row in rows for name in (row.b, row.a)))
        values = [self._recommenders[name].array_of(rows[0].metric) for name in names]
        is_common = ~np.isnan(np.concatenate(values, axis=1)).any(axis=1)
        if not is_common.any():  # there is no user to take the means over
            is_common[:] = True
        means = [mean_of_users(x[is_common], None).value for x in values]
        others = np.concatenate([x[~is_common].mean(axis=1) for x in values])
        return dict(zip(names, means, strict=True)), not np.isnan(others).all()

    def star(self, difference: PairedDifference) -> str:
        """Returns `*` for a significant difference, `(*)` if it is one of trained models alone."""
        if not self.is_significant(difference):
            return ""
        return "*" if self.covers_training(difference) else "(*)"

    def _from_reference(self) -> list[PairedDifference]:
        """Returns a difference for each recommender and metric, from the best if all are there."""
        found = []
        for metric, of_metric in groupby(self, attrgetter("metric")):
            rows = list(of_metric)
            names = dict.fromkeys(name for row in rows for name in (row.a, row.b))
            if len(rows) >= len(names):
                among = {name: self._recommenders[name] for name in names}
                best = [*best_first(among, metric), *names][0]
                rows = _beside(rows, best, "b")
            found += rows
        return found

    def _cells(self, row: PairedDifference | None) -> list[str]:
        if row is None:
            return ["", "", "", "", "reference", ""]
        counts = [row.wins, row.ties, row.losses] if row.wins is not None else []
        return [
            format_interval(row.difference, row.low, row.high, "+"),
            notes.lift_in_words(row, "-"),
            format_p(row.p_adjusted),
            self.star(row),
            row.verdict or "-",
            "/".join(f"{count:.0f}" for count in counts) or "-",
        ]


@written("compare(results, 'ndcg@20')")
def compare(
    results: Mapping[str, Runnable],
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    *,
    baseline: Name | None = None,
    equivalence: float | str | None = None,
    deterministic: str | Iterable[Name] = (),
    level: float = 0.95,
) -> Comparison:
    r"""Compares results of one task user by user, with intervals, tests and verdicts.

    All results rank the same items for the same users, so each user is its own control. Much of
    the variance between users cancels out, so small differences can be significant. Users where
    a metric is undefined in either result are left out. As in the means, `empty_target_action`
    decides what users without ground truth count as.

    A recommender may have several runs, such as one for each seed. The difference is then one of
    means over runs. Its interval and its test account for two sources of chance: which users are
    evaluated, and which seeds trained the recommenders. All runs have the same users, and runs of
    two recommenders are not paired. Runs whose rankings are equal are one run. In the table, a star
    marks a significant difference. A trained recommender with a single run may be better only
    because of its seed, so its stars stand in brackets. If a task knows the persons of its rows,
    intervals and tests are clustered by person.

    Args:
        results (dict): Two results or more, by name. Each is an `EvaluationResult`, or the `Runs`
            of a recommender, or a sequence of these.
        metrics (sequence of str, optional): The metrics to compare. (default: `None`, those that
            all results have)
        baseline (str, optional): The name of the result that all others are compared with. It is
            the `b` of every difference `a - b`. (default: `None`, all pairs of results are
            compared, in the order of `results`)
        equivalence (float or str, optional): The smallest difference that matters: a number, or a
            percentage of the mean of `b`, such as `"2%"`. A difference is `"equivalent"` if it is
            smaller than this with confidence, or if results are the same for every user. A number
            needs to be smaller than the range of every metric, which is 1 for the recall.
            (default: `None`)
        deterministic (sequence of str, optional): The names of recommenders that no seed changes,
            such as the most popular items. One run of each is enough. (default: `()`)
        level (float, optional): The level of confidence. (default: `0.95`)

    Returns:
        The differences. They print as a table that marks what is significant after correction for
        all tests, with a row for each recommender and metric; `claims()` has a sentence for each
        pair. `verdict` says whether `a` is better, worse, equivalent, or whether the data are
        inconclusive; lower is better for metrics such as `mean_rank`. Intervals are those of the
        paired t-test. Metrics that have one value for all users together have no interval and no
        test. The table also has notes on candidates, leaks, lists, ties and tuning, see
        :meth:`EvaluationResult.with_trials`.

    Raises:
        TypeError: If `results` does not hold results by name, `equivalence` is neither a number nor
            a string, or `deterministic` holds no names.
        ValueError: If there are fewer than two results, they are of different tasks, conventions
            or actions for users without truth, they have no metric in common, `baseline` or a name
            in `deterministic` is unknown, `equivalence` is neither a positive number nor a
            percentage, or `level` is not between 0 and 1.

    Sources: Smucker, Allan and Carterette, "A comparison of statistical significance tests for
    information retrieval evaluation" (2007); Urbano, Lima and Hanjalic, "Statistical significance
    testing in information retrieval: an empirical analysis of type I, type II and type III
    errors" (2019), which finds the t-test the best choice; Bouthillier et al., "Accounting for
    variance in machine learning benchmarks" (2021); Lakens, "Equivalence tests: a practical primer"
    (2017).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> comparison = compare({"perfect": perfect, "popular": popular}, equivalence=0.1)
        >>> comparison.to_pandas()[["metric", "a", "b", "difference", "verdict", "wins"]]
             metric        a        b  difference       verdict  wins
        0  recall@1  perfect  popular         0.5  inconclusive   3.0
    """
    recommenders = recommenders_by_name(results)
    if len(recommenders) < 2:
        raise ValueError(f"'results' needs to hold at least two results (got {len(recommenders)})")
    runs = list(every_run(recommenders).values())
    asked = metrics_in_common(runs) if metrics is None else parse_all(metrics)
    size = None if equivalence is None else Equivalence.of(equivalence)
    if size is not None:
        for metric in asked:
            size.check(metric)
    pairs = list(combinations(recommenders, 2))
    if baseline is not None:
        baseline = read_name(baseline, "baseline", list(recommenders))
        pairs = [(name, baseline) for name in recommenders if name != baseline]
    found = compare_on_each(
        {"": recommenders},
        {"": list(product(asked, pairs))},
        equivalence=size,
        deterministic=read_names(deterministic, list(recommenders)),
        level=check_level(level),
    )
    return found[""]


def compare_on_each(
    results: Mapping[str, Mapping[str, Measured]],
    asked: Mapping[str, Sequence[Hypothesis]],
    *,
    equivalence: Equivalence | None = None,
    deterministic: Sequence[str] = (),
    level: float = 0.95,
) -> dict[str, Comparison]:
    """Compares what is asked on each of several data sets, and corrects all p-values together.

    Args:
        results (dict): The recommenders by name, by data set.
        asked (dict): For each data set, metrics and the names of two recommenders.
        equivalence (Equivalence, optional): The smallest difference that matters.
            (default: `None`)
        deterministic (sequence of str, optional): As in :func:`compare`. Names may be of
            recommenders that are not on every data set. (default: `()`)
        level (float, optional): The level of confidence of all of them together.
            (default: `0.95`)
    """
    pairs = {x: list(_pairs(questions, results[x])) for x, questions in asked.items()}
    every = list(chain.from_iterable(pairs.values()))
    judged = _judged(every, equivalence, alpha_of(level))
    tested = [row for row in judged if row.verdict is not None]
    metrics = {row.metric for row in tested}
    runs = [run for of_one in results.values() for run in every_run(of_one).values()]
    known = {name for run in runs for name in run.per_user}
    shared = {
        "level": level,
        "equivalence": equivalence,
        "num_data_sets": len(pairs),
        "num_metrics": len(known) if known >= metrics else 0,
        "num_tests": len(tested),
        "num_tested_metrics": len(metrics),
        "num_tested_pairs": len({frozenset((row.a, row.b)) for row in tested}),
    }
    rest = iter(judged)
    found = {}
    for data_set, of_one in pairs.items():
        protocol = _protocol(results[data_set], of_one, deterministic, shared)
        found[data_set] = Comparison(islice(rest, len(of_one)), protocol, results[data_set])
    return found


def read_names(
    names: str | Iterable[Name], known: Sequence[str], argument: str = "deterministic"
) -> tuple[str, ...]:
    """Returns the names of recommenders that an argument holds, as results have them.

    Raises:
        TypeError: If there are no names.
        ValueError: If one of them is not known.
    """
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, Iterable):
        raise TypeError(
            f"'{argument}' needs to hold names of recommenders (got {type(names).__name__})"
        )
    return tuple(read_name(name, argument, known) for name in names)


def _protocol(
    recommenders: Mapping[str, Measured],
    pairs: Sequence[RecommenderPair],
    deterministic: Sequence[str],
    shared: Mapping[str, Any],
) -> Protocol:
    """Returns how pairs were tested, and what recommenders know of themselves."""
    without_seed = tuple(name for name in deterministic if name in recommenders)
    shares = {
        name: share_of_differing(each.runs)
        for name, each in recommenders.items()
        if len(each.runs) > 1 and name not in without_seed
    }
    near_copies = {name: share for name, share in shares.items() if share < LEAST_DIFFERING}
    nouns = next(iter(recommenders.values())).runs[0].nouns
    metrics = list(dict.fromkeys(str(pair.metric) for pair in pairs))
    means = [(str(pair.metric), pair.mean) for pair in pairs if pair.difference.mean.has_interval]
    if means and means[0][1].has_few_persons:
        few = notes.line("few_persons", means[0][1], nouns.drawn)
        warn(notes.line("caution", few) or "")
    return Protocol(
        num_runs=FrozenDict({name: len(each.runs) for name, each in recommenders.items()}),
        deterministic=without_seed,
        nouns=nouns,
        near_copies=tuple(near_copies),
        remarks=(*notes.lines("near_copies", near_copies), *remarks_on(recommenders, metrics)),
        caution=notes.caution(means, nouns.means, nouns.drawn, are_differences=True),
        **shared,
    )


def _judged(
    pairs: Sequence[RecommenderPair], equivalence: Equivalence | None, alpha: float
) -> list[PairedDifference]:
    """Returns the differences with p-values that are corrected for all tests, and verdicts."""
    rows = [pair.row(alpha) for pair in pairs]
    p_values = holm([row.p_value for row in rows])
    p_of_equivalence = holm([pair.p_of_equivalence(equivalence) for pair in pairs])
    judged = []
    for row, p, p_equivalent in zip(rows, p_values, p_of_equivalence, strict=True):
        verdict: Verdict | None = None  # as without a test, whose p-value is `NaN`
        if p_equivalent <= alpha:  # a difference within the margin is not better
            verdict = "equivalent"
        elif p > alpha:
            verdict = "inconclusive"
        elif p <= alpha:
            is_better = (row.difference > 0) == is_higher_better(row.metric)
            verdict = "better" if is_better else "worse"
        bound = math.nan if equivalence is None else equivalence.bound(row.mean_b)
        row = row._replace(p_adjusted=p, p_equivalence=p_equivalent)
        judged.append(row._replace(verdict=verdict, bound=bound))
    return judged
