"""Whether the order of recommenders would be another under another protocol."""

import math
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pyg_recmetrics import conventions as known_conventions
from pyg_recmetrics.benchmark.means import Results
from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.conventions import CONVENTIONS, Convention
from pyg_recmetrics.frozen import Frozen
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.ranked_edges.ties import Ties, check_ties
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.paired import difference_of_means, is_higher_better
from pyg_recmetrics.results.runs import runs_of
from pyg_recmetrics.tables import Best, Faint, Rows, Table, to_data_frame

if TYPE_CHECKING:
    import pandas as pd

#: What a protocol changes.
Kind: TypeAlias = Literal["convention", "cut-off", "ties"]

_CUT_OFFS = (5, 10, 20, 50, 100)
_TIES: tuple[Ties, ...] = ("best", "mean", "worst")

#: How many pairs that change places a cell names.
_NUM_NAMED = 2


class OrderChange(NamedTuple):
    """The order of recommenders on a data set under another protocol.

    Attributes:
        kind: What the protocol changes: `"convention"`, `"cut-off"` or `"ties"`.
        protocol: What it changes that to.
        data_set: The name of the data set.
        order: The names of the recommenders, the best first; empty if they could not be measured.
        swapped: The pairs that are in another order than with the protocol of the results. The one
            that is now better stands first.

    Example:
        >>> from pyg_recmetrics.benchmark import OrderChange
        >>> OrderChange("cut-off", "@5", "LastFM", ("b", "a"), (("b", "a"),)).order
        ('b', 'a')
    """

    kind: Kind
    protocol: str
    data_set: str
    order: tuple[str, ...]
    swapped: tuple[tuple[str, str], ...]


class Sensitivity(Frozen, Rows[OrderChange]):
    r"""The orders of recommenders under other protocols: an :class:`OrderChange` for each.

    :meth:`Benchmark.sensitivity` returns it. The table has a row for each protocol and a column for
    each data set. It is about the order of means, and tests nothing: recommenders that change
    places may not differ significantly in either order.

    Attributes:
        metric (Metric): The metric.
        data_sets (tuple of str): The names of the data sets.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Benchmark, RankingTask, evaluate
        >>> task = RankingTask(torch.tensor([[0, 1, 1], [2, 0, 1]]), num_users=2, num_items=4)
        >>> scores = {"a": [0.1, 0.3, 0.2, 0.4], "b": [0.4, 0.1, 0.3, 0.2]}
        >>> scored = {name: torch.tensor(x) for name, x in scores.items()}
        >>> results = {name: evaluate(x, task, "recall@3") for name, x in scored.items()}
        >>> benchmark = Benchmark({"A": results, "B": results})
        >>> sensitivity = benchmark.sensitivity(conventions=["lenskit"], cut_offs=[1, 2], ties=[])
        >>> print(sensitivity)
        order by recall@3     A     B
        -----------------------------
        convention
        lenskit            same  same
        cut-off
        @1                 same  same
        @2                 same  same
        No other protocol changes the order by recall@3.
        >>> sensitivity.claim()
        'No other protocol changes the order by recall@3.'
        >>> len(sensitivity.changes), len(sensitivity.to_pandas())
        (0, 6)
    """

    def __init__(
        self, changes: Iterable[OrderChange], metric: Metric, data_sets: Iterable[str]
    ) -> None:
        self._rows = tuple(changes)
        self.metric, self.data_sets = metric, tuple(data_sets)
        self._freeze()

    @property
    def changes(self) -> tuple[OrderChange, ...]:
        """Those in which any two recommenders change places."""
        return tuple(row for row in self if row.swapped)

    def claim(self) -> str:
        """Returns one sentence: whether any protocol changes the order."""
        measured = [row for row in self if row.order]
        if not measured:
            return f"The order by {self.metric} was measured under no other protocol."
        if not self.changes:
            return f"No other protocol changes the order by {self.metric}."
        pairs = sorted({tuple(sorted(pair)) for row in self.changes for pair in row.swapped})
        names = ", ".join(f"{a} and {b}" for a, b in pairs[:_NUM_NAMED])
        more = f", and {len(pairs) - _NUM_NAMED} more pairs" if len(pairs) > _NUM_NAMED else ""
        return (
            f"The order by {self.metric} changes in {len(self.changes)} of {len(measured)} cases "
            f"of another protocol on a data set: {names}{more}."
        )

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every protocol and data set.

        Raises:
            ImportError: If pandas is not installed.
        """
        return to_data_frame(self._rows, OrderChange._fields)

    def table(self) -> Table:
        """Returns the printed table."""
        rows: list[list[str]] = []
        by_kind: dict[str, dict[str, list[OrderChange]]] = {}
        for row in self:
            by_kind.setdefault(row.kind, {}).setdefault(row.protocol, []).append(row)
        for kind, by_protocol in by_kind.items():
            known = {name: x for name, x in by_protocol.items() if name not in self._unknown}
            rows += [[kind]] if known else []
            rows += [[name, *map(_cell, of_one)] for name, of_one in known.items()]
        return Table([f"order by {self.metric}", *self.data_sets], rows, tuple(self._notes()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metric}, {len(self.changes)} of {len(self)} change)"

    @property
    def _unknown(self) -> list[str]:
        """The protocols that nothing could be measured under."""
        known = {row.protocol for row in self if row.order}
        return [name for name in dict.fromkeys(row.protocol for row in self) if name not in known]

    def _notes(self) -> Iterator[str]:
        yield self.claim()
        if self.changes:
            yield "a > b: a is now better than b; of means, without a test"
        if self._unknown:
            yield f"not known, as for cut-offs deeper than was ranked: {', '.join(self._unknown)}"
        if any(not row.order for row in self if row.protocol not in self._unknown):
            yield "-: not known, as for cut-offs deeper than was ranked"


def measure_sensitivity(
    results: Mapping[str, Results],
    metric: Metric,
    conventions: Iterable[str | Convention] | None = None,
    cut_offs: Iterable[int] | None = None,
    ties: Iterable[Ties] | None = None,
) -> Sensitivity:
    """Measures results under other protocols, see :meth:`Benchmark.sensitivity`."""
    first = runs_of(next(iter(next(iter(results.values())).values())))[0]
    protocols = [
        *_conventions(first.convention, metric, conventions),
        *_cut_offs(metric, cut_offs),
        *_ties(ties),
    ]
    measure = _Measure(metric)
    changes = [
        measure.change(kind, name, data_set, of_one, protocol)
        for kind, name, protocol in protocols
        for data_set, of_one in results.items()
    ]
    return Sensitivity(changes, metric, results)


class _Protocol(NamedTuple):
    """How to measure a result; `None` for what stays as it is."""

    metric: Metric | None = None
    convention: Convention | None = None
    ties: Ties | None = None

    def key(self, metric: Metric) -> Hashable:
        """Returns what is equal for protocols that measure the same."""
        if self.convention is None:
            return self
        other = self.convention
        return other.resolve(metric), other.population, other.empty_target_action, other.ties


def _conventions(
    own: Convention, metric: Metric, asked: Iterable[str | Convention] | None
) -> Iterator[tuple[Kind, str, _Protocol]]:
    found = CONVENTIONS.values() if asked is None else map(known_conventions.get, asked)
    for convention in found:
        if convention == own:
            continue
        if asked is None and not _has(convention, metric):
            continue
        yield "convention", convention.name, _Protocol(convention=convention)


def _has(convention: Convention, metric: Metric) -> bool:
    try:
        convention.resolve(metric)
    except ValueError:
        return False
    return True


def _cut_offs(metric: Metric, asked: Iterable[int] | None) -> Iterator[tuple[Kind, str, _Protocol]]:
    if asked is None:
        asked = () if metric.k is None else (k for k in _CUT_OFFS if k != metric.k)
    for k in asked:
        k = check_positive_integer(k, "cut_offs")
        if metric.k is None:
            raise ValueError(f"'cut_offs' needs a metric that has one (got '{metric}')")
        yield "cut-off", f"@{k}", _Protocol(replace(metric, k=k))


def _ties(asked: Iterable[Ties] | None) -> Iterator[tuple[Kind, str, _Protocol]]:
    for ties in _TIES if asked is None else asked:
        check_ties(ties, 0)
        yield "ties", ties, _Protocol(ties=ties)


class _Measure:
    """Measures data sets under protocols, each definition once.

    Args:
        metric (Metric): The metric.
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._known: dict[Hashable, dict[str, float]] = {}

    def change(
        self, kind: Kind, name: str, data_set: str, results: Results, protocol: _Protocol
    ) -> OrderChange:
        """Returns the order under a protocol, and which pairs change places."""
        usual = self._means(data_set, results, _Protocol())
        means = self._means(data_set, results, protocol)
        known = {name: mean for name, mean in means.items() if not math.isnan(mean)}
        is_higher = is_higher_better(str(self.metric))
        order = sorted(known, key=known.__getitem__, reverse=is_higher)
        swapped = tuple(
            (a, b) if self._lead(means, a, b) > 0 else (b, a)
            for a, b in combinations(known, 2)
            if self._lead(usual, a, b) * self._lead(means, a, b) < 0
        )
        return OrderChange(kind, name, data_set, tuple(order), swapped)

    def _lead(self, means: Mapping[str, float], a: str, b: str) -> float:
        """Returns by how much `a` is better; zero where that is only due to rounding."""
        lead = difference_of_means(self.metric, (a, b), means[a], means[b]).difference
        return lead if is_higher_better(str(self.metric)) else -lead

    def _means(self, data_set: str, results: Results, protocol: _Protocol) -> dict[str, float]:
        """Returns the mean of each recommender; nothing if one of them cannot be measured.

        Raises:
            ValueError: If it cannot be measured under the protocol of the results.
        """
        key = (data_set, protocol.key(self.metric))
        if key not in self._known:
            try:
                self._known[key] = {
                    name: fmean(_mean(run, protocol, self.metric) for run in runs_of(result))
                    for name, result in results.items()
                }
            except ValueError as error:
                if protocol == _Protocol():
                    raise ValueError(f"{data_set}: {error}") from error
                self._known[key] = {}
        return self._known[key]


def _mean(result: EvaluationResult, protocol: _Protocol, metric: Metric) -> float:
    other = protocol.convention
    # What rankings warn of, they have warned of already.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = EvaluationResult(
            _ranked(result, protocol),
            protocol.metric or metric,
            task=result.task,
            empty_target_action=result.empty_target_action if other is None else None,
            convention=result.convention if other is None else other,
            average_over=result.average_over,
        )
    return next(iter(measured.values()))


def _ranked(result: EvaluationResult, protocol: _Protocol) -> RankedEdges:
    """Returns the ranking of those whom a protocol evaluates, with ties as it ranks them."""
    ranked, other, task = result.ranked, protocol.convention, result.task
    if other is not None and task is not None:
        eligible = other.population.is_eligible(task)
        row = ranked.user_of_row
        ranked = ranked.select_users(eligible if row is None else eligible[row])
    ties = protocol.ties if other is None else other.ties
    # Lists know no ties, and nothing goes back to the order of items.
    if ranked.num_tied is not None and ties not in (None, "index", ranked.ties):
        ranked = ranked.with_ties(ties, seed=ranked.seed or 0)
    return ranked if other is None else other.population.select(ranked)[0]


def _cell(row: OrderChange) -> str:
    if not row.order:
        return "-"
    if not row.swapped:
        return Faint("same")
    if len(row.swapped) <= _NUM_NAMED:
        return Best(", ".join(f"{a} > {b}" for a, b in row.swapped))
    return Best(f"{len(row.swapped)} of {math.comb(len(row.order), 2)} pairs change")
