"""The sections of a report on several data sets."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial

from pyg_recmetrics import plot
from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.benchmark.means import best_on_each, means_on_each
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot.forest import panel_height, panel_of
from pyg_recmetrics.reporting.contents import about_rows
from pyg_recmetrics.reporting.parts import Grid, Missing, Part, Prose, Remarks, drawing, grid
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.tables import Table

#: With more pairs than this, one recommender is compared with the others.
_MANY_PAIRS = 6


@dataclass(frozen=True)
class BenchmarkContents:
    """What a report on several data sets is about.

    Attributes:
        benchmark (Benchmark): The results.
        comparison (BenchmarkComparison or None): The differences of the recommenders.
        metric (Metric): The metric of comparisons and pictures.
    """

    benchmark: Benchmark
    comparison: BenchmarkComparison | None
    metric: Metric

    @classmethod
    def of(cls, benchmark: Benchmark, comparison: object = None) -> "BenchmarkContents":
        """Returns what a report is about, from what the caller has.

        Args:
            benchmark (Benchmark): The results.
            comparison (BenchmarkComparison, optional): The differences of the recommenders.
                (default: `None`, those of :meth:`Benchmark.compare` by default)

        Raises:
            TypeError: If `comparison` is something else.
            ValueError: If `comparison` is not of these results, or the results have no metric of
                single users in common.
        """
        if comparison is None:
            metric = _main_metric(benchmark)
            with suppress(ImportError, ValueError):
                comparison = benchmark.compare(metric)
            return cls(benchmark, comparison, metric)
        if not isinstance(comparison, BenchmarkComparison):
            raise TypeError(
                f"'comparison' needs to be what 'compare' of the benchmark returned "
                f"(got {type(comparison).__name__})"
            )
        comparison.check_results(benchmark)
        return cls(benchmark, comparison, comparison.metric)

    @cached_property
    def best(self) -> str:
        """The recommender that is best on most data sets."""
        best = best_on_each(means_on_each(self.benchmark, self.metric, 0.95))
        names = self.benchmark.recommenders
        return max(names, key=lambda name: sum(name in of_one for of_one in best.values()))

    @cached_property
    def main_comparison(self) -> BenchmarkComparison | None:
        """All differences, or those from the best recommender if there are too many."""
        comparison = self.comparison
        if comparison is None or len(comparison.pairs) <= _MANY_PAIRS:
            return comparison
        of_all = set.intersection(*map(set, comparison.pairs))
        return comparison if of_all else comparison.select(self.best)

    @cached_property
    def first_of_each(self) -> dict[str, EvaluationResult]:
        """The first run of the first recommender on each data set."""
        return {
            data_set: next(iter(results.values())).runs[0]
            for data_set, results in self.benchmark.items()
        }


def _main_metric(benchmark: Benchmark) -> Metric:
    """Returns the first metric with a value for every user that all results have."""
    for metric in benchmark.metrics:
        if all(
            str(metric) in run.per_user
            for results in benchmark.values()
            for result in results.values()
            for run in result.runs
        ):
            return metric
    raise ValueError("the results have no metric of single users in common")


def summary(contents: BenchmarkContents) -> str:
    """Returns one sentence on what is evaluated."""
    benchmark = contents.benchmark
    names = ", ".join(benchmark.recommenders)
    return f"{names}, on {len(benchmark)} data sets: {', '.join(benchmark)}."


def result(contents: BenchmarkContents) -> Iterator[Part]:
    """Who is better on which data sets, what makes it doubtful, and the table of means."""
    comparison = contents.main_comparison
    if comparison is not None:
        yield Remarks(comparison.claims(), "claims")
    if warnings := list(_warnings(contents)):
        yield Remarks(warnings, "warnings")
    caption = (
        f"The mean {contents.metric} of every recommender on every data set. The best of each is "
        f"bold."
    )
    yield Grid(caption, contents.benchmark.table(contents.metric))


def each_data_set(contents: BenchmarkContents) -> Iterator[Part]:
    """A forest of means and one of differences for each data set."""
    comparison, height = contents.main_comparison, panel_height(contents.benchmark)
    for data_set in contents.benchmark:
        yield _means_on(contents, data_set, height)
        if comparison is not None and data_set in comparison:
            yield _differences_on(comparison, data_set, height)


def other_metrics(contents: BenchmarkContents) -> Iterator[Part]:
    """The means of all other metrics that all results have."""
    for metric in contents.benchmark.metrics:
        if metric != contents.metric:
            table = contents.benchmark.table(metric)
            yield Grid(f"The mean {metric}.", table, fold=str(metric))


def differences(contents: BenchmarkContents) -> Iterator[Part]:
    """On which data sets a recommender is better."""
    comparison = contents.main_comparison
    if comparison is None:
        # The error says what it needs.
        yield grid("Comparison", "", partial(contents.benchmark.compare, contents.metric))
        return
    caption = (
        f"The difference of two recommenders in {contents.metric}, user by user. What is not "
        f"significant is pale."
    )
    table = comparison.table()
    # The page opens with the sentences.
    notes = tuple(note for note in table.notes if note not in comparison.claims())
    yield Grid(
        caption,
        Table(table.head, table.rows, notes),
        [(pair, ()) for pair in comparison.pairs],
    )
    for data_set, found in comparison.items():
        caption = f"Lifts, p-values and wins on {data_set}, corrected for all data sets."
        fold = f"All numbers on {data_set}"
        yield Grid(caption, found.table(), about_rows(found), main=1, fold=fold)


def trade_offs(contents: BenchmarkContents) -> Iterator[Part]:
    """What accuracy costs in what else is measured of lists."""
    others = [metric for metric in contents.benchmark.metrics if not metric.needs_truth]
    if not others:
        yield Missing("Trade-offs", "they need a metric of lists, such as 'coverage@20'")
    for metric in others:
        for data_set, results in contents.benchmark.items():
            draw = partial(plot.pareto, results, contents.metric, metric)
            caption = f"{data_set}: {contents.metric} against {metric}, and the best trade-offs."
            yield drawing(f"{contents.metric} against {metric} on {data_set}", caption, draw)


def data_sets(contents: BenchmarkContents) -> Iterator[Part]:
    """How large the data sets are."""
    rows = []
    for data_set, found in contents.first_of_each.items():
        task = found.task
        known = ["-", "-"] if task is None else [f"{task.num_items:,}", f"{task.seen.size(1):,}"]
        counts = [f"{found.user_counts.num_evaluated:,}", *known, f"{found.ranked.rank.numel():,}"]
        rows.append([data_set, *counts])
    head = ["data set", "users evaluated", "items", "seen edges", "ground-truth edges"]
    yield Grid("How large the data sets are.", Table(head, rows))


def recipe(contents: BenchmarkContents) -> Iterator[Part]:
    """How exactly it was measured on each data set."""
    for data_set, found in contents.first_of_each.items():
        yield Prose(f"{data_set}. {' '.join(found.recipe().split())}")


#: The functions above by the headings of their sections.
BENCHMARK_SECTIONS: dict[str, Callable[[BenchmarkContents], Iterator[Part]]] = {
    "Result": result,
    "Each data set": each_data_set,
    "Comparison": differences,
    "Other metrics": other_metrics,
    "Trade-offs": trade_offs,
    "Data sets": data_sets,
    "Recipe": recipe,
}

#: The sections that one has to unfold.
BENCHMARK_FOLDED = ("Trade-offs", "Data sets", "Recipe")


def _means_on(contents: BenchmarkContents, data_set: str, height: float) -> Part:
    draw = panel_of(contents.benchmark, contents.metric)
    return drawing(
        f"Means on {data_set}",
        f"The mean {contents.metric} on {data_set}.",
        lambda ax: draw(data_set, ax),
        height=height,
        kind="forest",
    )


def _differences_on(comparison: BenchmarkComparison, data_set: str, height: float) -> Part:
    draw = panel_of(comparison)
    return drawing(
        f"Differences on {data_set}",
        f"Paired differences on {data_set}, with lifts. A filled mark is significant.",
        lambda ax: draw(data_set, ax),
        height=height,
        kind="forest",
    )


def _warnings(contents: BenchmarkContents) -> Iterator[str]:
    """What may make the numbers of the page say less than they seem to."""
    comparison = contents.comparison
    if comparison is not None:
        found = (name for each in comparison.values() for name in each.protocol.uncovered)
        if names := list(dict.fromkeys(found)):
            those = "Its" if len(names) == 1 else "Their"
            yield f"One run of {', '.join(names)}. {those} other seeds may give other numbers."
    for data_set, result in contents.first_of_each.items():
        if note := result._caution(contents.metric):
            yield f"{data_set}: {note}."
    for name in contents.benchmark.recommenders:
        lacking = [x for x, results in contents.benchmark.items() if name not in results]
        if lacking:
            yield f"{name} was not run on {', '.join(lacking)}."
    tied = {x: _num_tied(contents, x) for x in contents.benchmark}
    if any(tied.values()):
        counts = ", ".join(f"{num:,} on {data_set}" for data_set, num in tied.items() if num)
        yield f"Relevant items with the same score as another candidate, at most: {counts}."


def _num_tied(contents: BenchmarkContents, data_set: str) -> int:
    results = contents.benchmark[data_set].values()
    return max(run.num_tied or 0 for result in results for run in result.runs)
