"""The means of recommenders on data sets, and the table of them."""

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from pyg_recmetrics.benchmark.notes import notes_of_all
from pyg_recmetrics.benchmark.ranks import complete_data_sets, lifts, mean_ranks, ranks
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import EvaluationResult, Runs
from pyg_recmetrics.results.cautions import caution
from pyg_recmetrics.results.inference import Sample
from pyg_recmetrics.results.paired import is_higher_better
from pyg_recmetrics.results.recipe import note_on_intervals
from pyg_recmetrics.results.runs import mean_of_any, means_of_all_users, runs_of
from pyg_recmetrics.results.samples import describe_samples
from pyg_recmetrics.tables import Best, Table, format_mean

#: The recommenders of one data set, by name.
Results = Mapping[str, EvaluationResult | Runs]


class MeanOnDataSet(NamedTuple):
    """The mean of a recommender on a data set.

    Attributes:
        data_set: The name of the data set.
        recommender: The name of the recommender.
        metric: The metric, as `name@k`.
        value: The mean over users, and over runs if there are several.
        low: The lower end of its confidence interval; `NaN` without one.
        high: The upper end.
        rank: Its rank on the data set, one for the best. Equal means share a mean rank.
        num_users: How many users count.
        num_runs: How many runs there are.
    """

    data_set: str
    recommender: str
    metric: str
    value: float
    low: float
    high: float
    rank: float
    num_users: int
    num_runs: int


class MeansOnDataSets:
    """The mean of every recommender on every data set in one metric.

    Args:
        results (mapping): The recommenders by name, for each data set.
        metric (Metric): The metric.
        level (float): The level of the confidence intervals.

    Raises:
        ValueError: If a result has no such metric. The error names the data set.
    """

    def __init__(self, results: Mapping[str, Results], metric: Metric, level: float) -> None:
        self.results, self.metric, self.level = results, metric, level
        self.recommenders = list(
            dict.fromkeys(name for of_one in results.values() for name in of_one)
        )
        self.higher_is_better = is_higher_better(str(metric))
        rows = [row for data_set in results for row in self._rows_of(data_set)]
        self.rows = {(row.data_set, row.recommender): row for row in rows}

    @property
    def values(self) -> dict[str, dict[str, float]]:
        """The means of each data set by recommender, without those that are undefined."""
        found: dict[str, dict[str, float]] = {data_set: {} for data_set in self.results}
        for row in self.rows.values():
            if not math.isnan(row.value):
                found[row.data_set][row.recommender] = row.value
        return found

    def table(self, baseline: str | None) -> Table:
        """Returns a row for each recommender, and a column for each data set.

        Args:
            baseline (str or None): The recommender over which lifts are.
        """
        values, names = self.values, self.recommenders
        of_ranks = mean_ranks(values, names, self.higher_is_better)
        of_lifts = {} if baseline is None else lifts(values, names, baseline)
        head = [str(self.metric), *self.results, "mean rank", *(["lift"] if of_lifts else [])]
        rows = [
            [
                name,
                *(self._cell(data_set, name) for data_set in self.results),
                _or_dash(of_ranks[name], "{:.2f}"),
                *([_lift(of_lifts[name], name == baseline)] if of_lifts else []),
            ]
            for name in names
        ]
        return Table(head, rows, tuple(self._notes(baseline)))

    def _rows_of(self, data_set: str) -> Iterator[MeanOnDataSet]:
        found = {}
        for name, result in self.results[data_set].items():
            try:
                found[name] = mean_of_any(result, self.metric, self.level)
            except ValueError as error:
                raise ValueError(f"{data_set}, {name}: {error}") from error
        known = {name: mean[0] for name, mean in found.items() if not math.isnan(mean[0])}
        places = ranks(known, self.higher_is_better)
        for name, (value, low, high, num_users) in found.items():
            num_runs = len(runs_of(self.results[data_set][name]))
            rank = places.get(name, math.nan)
            yield MeanOnDataSet(
                data_set, name, str(self.metric), value, low, high, rank, num_users, num_runs
            )

    def _cell(self, data_set: str, name: str) -> str:
        row = self.rows.get((data_set, name))
        if row is None:
            return "-"
        text = format_mean(row.value, (row.high - row.low) / 2)
        return Best(text) if row.rank == self._best_ranks.get(data_set) else text

    @cached_property
    def _best_ranks(self) -> dict[str, float]:
        """The smallest rank on each data set that has several recommenders, who may share it."""
        places: dict[str, list[float]] = {}
        for row in self.rows.values():
            if not math.isnan(row.rank):
                places.setdefault(row.data_set, []).append(row.rank)
        return {data_set: min(found) for data_set, found in places.items() if len(found) > 1}

    def _notes(self, baseline: str | None) -> Iterator[str]:
        yield from notes_of_all({name: self._notes_on(of) for name, of in self.results.items()})
        if runs := list(self._runs()):
            yield f"runs: {', '.join(runs)}; their ± allows for other runs, too"
        yield "bold: the best mean of a data set, significantly better or not"
        complete = complete_data_sets(self.values, self.recommenders)
        if len(complete) == len(self.results):
            yield f"mean rank: over all {len(complete)} data sets; it is no test"
        elif complete:
            names = ", ".join(complete)
            yield f"mean rank: over {names}, which have all recommenders; it is no test"
        else:
            yield "mean rank: undefined, as no data set has all recommenders"
        if baseline is not None:
            yield from self._notes_on_lifts(baseline)

    def _notes_on_lifts(self, baseline: str) -> Iterator[str]:
        """Says what lifts are, and which of them are over some of the data sets."""
        better = "" if self.higher_is_better else ", where lower is better"
        yield (
            f"lift: the geometric mean over data sets of the ratio to {baseline}, minus one"
            f"{better}; it is no test"
        )
        names: dict[str, list[str]] = {}
        for name in self.recommenders:
            shared = [x for x, of_one in self.values.items() if {name, baseline} <= of_one.keys()]
            if name != baseline and 0 < len(shared) < len(self.results):
                names.setdefault(", ".join(shared), []).append(name)
        for shared_names, of_some in names.items():
            yield f"lift of {', '.join(of_some)}: over {shared_names} alone"

    def _runs(self) -> Iterator[str]:
        """Says how many runs each recommender has that has several."""
        for name in self.recommenders:
            counts = sorted({x.num_runs for x in self.rows.values() if x.recommender == name})
            if counts[-1] > 1:
                yield f"{' to '.join(map(str, {counts[0]: 0, counts[-1]: 0}))} of {name}"

    def _notes_on(self, results: Results) -> Iterator[str]:
        """Yields what stands behind the numbers of a data set."""
        singles = {name: runs_of(result)[0] for name, result in results.items()}
        first = next(iter(singles.values()))
        yield note_on_intervals(self.level, first.person, first.nouns)
        every = every_run(results)
        if note := describe_samples(every, "count"):
            yield note
        if means_of_all_users(list(every.values()), self.metric) is None:
            samples = {str(self.metric): Sample.of(first.contributions(self.metric), first.person)}
            if note := caution(samples, first.nouns):
                yield note


def every_run(results: Results) -> dict[str, EvaluationResult]:
    """Returns all results of a data set, by a name that tells runs apart."""
    return {
        name if len(runs_of(result)) == 1 else f"{name}, run {number}": run
        for name, result in results.items()
        for number, run in enumerate(runs_of(result), start=1)
    }


def _lift(lift: float, is_baseline: bool) -> str:
    return "-" if is_baseline else _or_dash(lift, "{:+.1f}%")


def _or_dash(value: float, form: str) -> str:
    return "-" if math.isnan(value) else form.format(value)
