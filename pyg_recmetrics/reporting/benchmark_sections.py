"""The sections of a report on several data sets."""

from collections.abc import Callable, Iterator
from functools import partial

from pyg_recmetrics import plot
from pyg_recmetrics.benchmark import BenchmarkComparison, Sensitivity
from pyg_recmetrics.plot.by_data_set import panel_height, panel_of
from pyg_recmetrics.reporting.benchmark_contents import BenchmarkContents
from pyg_recmetrics.reporting.contents import about_rows
from pyg_recmetrics.reporting.parts import Grid, Missing, Part, Prose, Remarks, drawing, grid
from pyg_recmetrics.results.cautions import caution
from pyg_recmetrics.results.inference import Sample
from pyg_recmetrics.results.runs import runs_of
from pyg_recmetrics.tables import Table


def summary(contents: BenchmarkContents) -> str:
    """Returns one sentence on what is evaluated."""
    benchmark = contents.benchmark
    names = ", ".join(benchmark.recommenders)
    return f"{names}, on {len(benchmark)} data sets: {', '.join(benchmark)}."


def result(contents: BenchmarkContents) -> Iterator[Part]:
    """Who is better on how many data sets, what makes it doubtful, and the table of means."""
    comparison = contents.main_comparison
    if comparison is not None:
        yield Remarks(comparison.claims(), "claims")
    if warnings := list(_warnings(contents)):
        yield Remarks(warnings, "warnings")
    if _keeps_its_order(contents.sensitivity):
        yield Remarks([contents.sensitivity.claim()], "good")
    caption = (
        f"The mean {contents.metric} of every recommender on every data set. The best of each is "
        f"bold."
    )
    make = partial(contents.benchmark.table, contents.metric, baseline=_baseline(contents))
    yield grid("Means", caption, make)


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
            table = contents.benchmark.table(metric, baseline=_baseline(contents))
            yield Grid(f"The mean {metric}.", table, fold=str(metric))


def differences(contents: BenchmarkContents) -> Iterator[Part]:
    """On which data sets a recommender is better."""
    comparison = contents.main_comparison
    if comparison is None:
        # The error says what it needs.
        yield grid("Comparison", "", partial(contents.benchmark.compare, contents.metric))
        return
    caption = (
        f"The difference of two recommenders in {contents.metric}, user by user, and on how many "
        f"data sets one is better. What is not significant is pale."
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


def other_data_sets(contents: BenchmarkContents) -> Iterator[Part]:
    """Whether recommenders would differ on other data sets."""
    caption = (
        "What to expect on other data sets of the kind: each data set counts as one observation, "
        "whatever its number of users."
    )
    make = partial(contents.benchmark.critical_differences, contents.metric)
    yield grid("Other data sets", caption, make)


def protocol(contents: BenchmarkContents) -> Iterator[Part]:
    """Whether the order is one of the protocol."""
    found = contents.sensitivity
    caption = (
        "Whether recommenders change places if the metric is defined as by another library, cut "
        "off elsewhere, or if equal scores are in another order."
    )
    yield Grid(caption, found.table(), fold="" if found.changes else "All protocols")


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
        counts = [f"{found.num_evaluated:,}", *known, f"{found.ranked.rank.numel():,}"]
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
    "Other data sets": other_data_sets,
    "Other protocols": protocol,
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


def _keeps_its_order(sensitivity: Sensitivity) -> bool:
    return not sensitivity.changes and any(row.order for row in sensitivity)


def _baseline(contents: BenchmarkContents) -> str | None:
    """Returns the recommender with which all others were compared, if there is one."""
    if contents.comparison is None or len(contents.benchmark.recommenders) < 3:
        return None
    common = {b for _, b in contents.comparison.pairs}
    return common.pop() if len(common) == 1 else None


def _warnings(contents: BenchmarkContents) -> Iterator[str]:
    """What may make the numbers of the page say less than they seem to."""
    comparison = contents.comparison
    if comparison is not None:
        found = (name for each in comparison.values() for name in each.protocol.uncovered)
        if names := list(dict.fromkeys(found)):
            those = "Its" if len(names) == 1 else "Their"
            yield f"One run of {', '.join(names)}. {those} other seeds may give other numbers."
    for data_set, result in contents.first_of_each.items():
        sample = Sample.of(result.contributions(contents.metric), result.person)
        if note := caution({str(contents.metric): sample}, result.nouns):
            yield f"{data_set}: {note}."
    for name in contents.benchmark.recommenders:
        lacking = [x for x, results in contents.benchmark.items() if name not in results]
        if lacking:
            yield f"{name} was not run on {', '.join(lacking)}."
    tied = {x: _num_tied(contents, x) for x in contents.benchmark}
    if any(tied.values()):
        counts = ", ".join(f"{num:,} on {data_set}" for data_set, num in tied.items() if num)
        yield f"Relevant items with the same score as another candidate, at most: {counts}."
    if contents.sensitivity.changes:
        yield f"{contents.sensitivity.claim()}{_on_changes(contents)}"


def _on_changes(contents: BenchmarkContents) -> str:
    """Says so if no recommenders that change places differ significantly."""
    comparison, changes = contents.comparison, contents.sensitivity.changes
    if comparison is None:
        return ""
    is_found = {
        (data_set, frozenset((row.a, row.b))): found.is_significant(row)
        for data_set, found in comparison.items()
        for row in found
    }
    swapped = [(change.data_set, frozenset(pair)) for change in changes for pair in change.swapped]
    # What was not compared may differ.
    if any(is_found.get(pair, True) for pair in swapped):
        return ""
    return " None of them differ significantly on that data set."


def _num_tied(contents: BenchmarkContents, data_set: str) -> int:
    results = contents.benchmark[data_set].values()
    return max(run.num_tied or 0 for result in results for run in runs_of(result))
