"""The means of recommenders on data sets, and the table of them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.cohorts import CohortMean
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.notes import describe_samples, note_on_intervals
from pyg_recmetrics.results.result import Measured, has_rows, mean_of
from pyg_recmetrics.results.runs import samples_of
from pyg_recmetrics.tables import Best, Table, format_interval

#: Means of equal numbers differ by no more than this share of them.
_DIGITS = 12

#: The recommenders of one data set, by name.
Results = Mapping[str, Measured]


def means_on_each(
    results: Mapping[str, Results], metric: Metric, level: float
) -> dict[str, dict[str, CohortMean]]:
    """Returns the mean of every recommender on every data set.

    Raises:
        ValueError: If a result has no such metric. The error names the data set.
    """
    means: dict[str, dict[str, CohortMean]] = {}
    for data_set, of_one in results.items():
        for name, result in of_one.items():
            try:
                means.setdefault(data_set, {})[name] = mean_of(result, metric, level)
            except ValueError as error:
                raise ValueError(f"{data_set}, {name}: {error}") from error
    return means


def with_best(
    cells: Mapping[str, tuple[float, str]], names: Iterable[str], metric: str | Metric
) -> list[str]:
    """Returns a cell for each recommender, of which the best is bold if there are several means.

    Args:
        cells (mapping): The mean of each recommender that has one, and how it is printed.
        names (iterable): All recommenders.
        metric (str or Metric): The metric.

    Example:
        >>> cells = {"x": (0.3, ".3"), "y": (0.1 + 0.2, ".3"), "z": (0.2, ".2")}
        >>> [type(cell).__name__ for cell in with_best(cells, "xyz", "mrr")]
        ['Best', 'Best', 'str']
    """
    sign = 1 if is_higher_better(str(metric)) else -1
    known = {
        name: sign * float(f"{mean:.{_DIGITS}g}")
        for name, (mean, _) in cells.items()
        if not math.isnan(mean)
    }
    best = [name for name in known if len(known) > 1 and known[name] == max(known.values())]
    texts = {name: text for name, (_, text) in cells.items()}
    return [Best(texts[name]) if name in best else texts.get(name, "-") for name in names]


def table_of_means(
    results: Mapping[str, Results], recommenders: Sequence[str], metric: Metric, level: float
) -> Table:
    """Returns a row for each recommender, and a column for each data set."""
    columns = []
    for of_one in means_on_each(results, metric, level).values():
        cells = {name: (mean.value, format_interval(*mean[:3])) for name, mean in of_one.items()}
        columns.append(with_best(cells, recommenders, metric))
    notes = notes_of_all({name: _notes_on(of, metric, level) for name, of in results.items()})
    if runs := ", ".join(_runs(results, recommenders)):
        notes.append(f"runs: {runs}; their ± allows for other runs, too")
    notes.append("bold: the best mean of a data set, significantly better or not")
    return Table(
        [str(metric), *results], list(zip(recommenders, *columns, strict=True)), tuple(notes)
    )


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
    if note := describe_samples(samples_of(results), first.nouns, "count"):
        yield note
    if has_rows(first, metric) and (note := first._caution(metric)):
        yield note


def _runs(results: Mapping[str, Results], recommenders: Iterable[str]) -> Iterator[str]:
    """Says how many runs each recommender has that has several."""
    for name in recommenders:
        counts = sorted({len(of[name].runs) for of in results.values() if name in of})
        if counts[-1] > 1:
            yield f"{' to '.join(map(str, {counts[0]: 0, counts[-1]: 0}))} of {name}"
