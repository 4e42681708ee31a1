"""The means of recommenders on data sets, and the table of them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.measured import Measured
from pyg_recmetrics.results.notes import describe_samples, note_on_intervals
from pyg_recmetrics.results.runs import (
    every_run,
)
from pyg_recmetrics.tables import Best, Table, format_mean

#: Means of equal numbers differ by no more than this share of them.
_DIGITS = 12

#: The recommenders of one data set, by name.
Results = Mapping[str, Measured]


class MeanOnDataSet(NamedTuple):
    """The mean of a recommender on a data set.

    Attributes:
        data_set: The name of the data set.
        recommender: The name of the recommender.
        metric: The metric, as `name@k`.
        value: The mean over users, and over runs if there are several.
        low: The lower end of its confidence interval; `NaN` without one.
        high: The upper end.
        num_users: How many users count.
        num_runs: How many runs there are.
    """

    data_set: str
    recommender: str
    metric: str
    value: float
    low: float
    high: float
    num_users: int
    num_runs: int


def means_on_each(
    results: Mapping[str, Results], metric: Metric, level: float
) -> list[MeanOnDataSet]:
    """Returns the mean of every recommender on every data set.

    Raises:
        ValueError: If a result has no such metric. The error names the data set.
    """
    found = []
    for data_set, of_one in results.items():
        for name, result in of_one.items():
            try:
                mean = result.mean_of(metric, level)
            except ValueError as error:
                raise ValueError(f"{data_set}, {name}: {error}") from error
            num_runs = len(result.runs)
            found.append(MeanOnDataSet(data_set, name, str(metric), *mean, num_runs))
    return found


def best_of(means: Mapping[str, float], metric: str | Metric) -> list[str]:
    """Returns the recommenders with the best mean of a metric, if there are several means.

    Example:
        >>> best_of({"x": 0.3, "y": 0.1 + 0.2, "z": 0.2}, "mrr")
        ['x', 'y']
    """
    sign = 1 if is_higher_better(str(metric)) else -1
    known = {
        name: sign * float(f"{mean:.{_DIGITS}g}")
        for name, mean in means.items()
        if not math.isnan(mean)
    }
    return [name for name in known if len(known) > 1 and known[name] == max(known.values())]


def table_of_means(
    results: Mapping[str, Results], recommenders: Sequence[str], metric: Metric, level: float
) -> Table:
    """Returns a row for each recommender, and a column for each data set."""
    means = means_on_each(results, metric, level)
    values: dict[str, dict[str, float]] = {}
    for mean in means:
        values.setdefault(mean.data_set, {})[mean.recommender] = mean.value
    best = {data_set: best_of(of_one, metric) for data_set, of_one in values.items()}
    cells = {}
    for mean in means:
        text = format_mean(mean.value, (mean.high - mean.low) / 2)
        is_best = mean.recommender in best[mean.data_set]
        cells[mean.data_set, mean.recommender] = Best(text) if is_best else text
    rows = [
        [name, *(cells.get((data_set, name), "-") for data_set in results)] for name in recommenders
    ]
    notes = notes_of_all({name: _notes_on(of, metric, level) for name, of in results.items()})
    if runs := ", ".join(_runs(means, recommenders)):
        notes.append(f"runs: {runs}; their ± allows for other runs, too")
    notes.append("bold: the best mean of a data set, significantly better or not")
    return Table([str(metric), *results], rows, tuple(notes))


def notes_of_all(notes: Mapping[str, Iterable[str]]) -> list[str]:
    """Returns each note once, after the data sets that it is about if these are not all.

    Args:
        notes (mapping): The notes on each data set.

    Example:
        >>> notes_of_all({"A": ["all", "some"], "B": ["all"]})
        ['all', 'A: some']
    """
    data_sets: dict[str, list[str]] = {}
    for data_set, of_one in notes.items():
        for note in of_one:
            data_sets.setdefault(note, []).append(data_set)
    return [
        note if len(names) == len(notes) else f"{', '.join(names)}: {note}"
        for note, names in data_sets.items()
    ]


def _notes_on(results: Results, metric: Metric, level: float) -> Iterator[str]:
    """Yields what stands behind the numbers of a data set."""
    first = next(iter(results.values())).runs[0]
    yield note_on_intervals(level, first._person, first.nouns)
    every = every_run(results)
    if note := describe_samples(every, "count"):
        yield note
    if first.has_rows(metric) and (note := first._caution(metric)):
        yield note


def _runs(means: Iterable[MeanOnDataSet], recommenders: Iterable[str]) -> Iterator[str]:
    """Says how many runs each recommender has that has several."""
    for name in recommenders:
        counts = sorted({mean.num_runs for mean in means if mean.recommender == name})
        if counts[-1] > 1:
            yield f"{' to '.join(map(str, {counts[0]: 0, counts[-1]: 0}))} of {name}"
