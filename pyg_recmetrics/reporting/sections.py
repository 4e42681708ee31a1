"""The sections of a report. Each is a function from what is reported on to its parts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from pyg_recmetrics import plot
from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.benchmark.means import notes_of_all, with_best
from pyg_recmetrics.plot.forest import height
from pyg_recmetrics.plot.picture import span, users
from pyg_recmetrics.ranked_edges import RankedEdges, catalogue_of, evaluated_mask
from pyg_recmetrics.reporting.contents import Contents, has_few
from pyg_recmetrics.reporting.parts import Grid, Missing, Part, Prose, Remarks, drawing, grid
from pyg_recmetrics.results import Cohorts, Comparison, EvaluationResult, Runs, compare
from pyg_recmetrics.results.comparison import rows_by_pair
from pyg_recmetrics.results.counts import those_who
from pyg_recmetrics.results.result import Measured, common_popularity, exposure_of
from pyg_recmetrics.results.runs import common_metrics
from pyg_recmetrics.results.tie_range import TieRanges
from pyg_recmetrics.tables import Table, format_interval
from pyg_recmetrics.task.catalogue import check_has

#: How many of the items that are recommended most often are listed.
_NUM_ITEMS = 10


class Section(NamedTuple):
    """A part of the page with a heading.

    Attributes:
        heading: The heading.
        parts: What it consists of.
        is_folded: Whether one has to unfold it.
    """

    heading: str
    parts: Sequence[Part]
    is_folded: bool


def sections_of(contents: Contents) -> Iterator[Section]:
    """Yields the sections on the only data set."""
    opening = [*_answer(contents), *_forests(contents)]
    yield Section("Result", opening, is_folded=False)
    for heading, make in SECTIONS.items():
        yield Section(heading, list(make(contents)), heading in FOLDED)


def sections_of_benchmark(
    benchmark: Benchmark, comparison: BenchmarkComparison | None, data_sets: Mapping[str, Contents]
) -> Iterator[Section]:
    """Yields a section on all data sets, and those on each. Only pictures of means are unfolded."""
    yield Section("Result", list(_overview(benchmark, comparison, data_sets)), is_folded=False)
    for name, contents in data_sets.items():
        yield Section(name, list(_forests(contents)), is_folded=False)
    for name, contents in data_sets.items():
        for heading, make in SECTIONS.items():
            if heading != "Split":
                yield Section(f"{name}: {heading}", list(make(contents)), is_folded=True)


def summary(data_sets: Mapping[str, Contents]) -> str:
    """Returns one sentence on what is evaluated."""
    if len(data_sets) > 1:
        every = dict.fromkeys(name for x in data_sets.values() for name in x.recommenders)
        return f"{', '.join(every)}, on {len(data_sets)} data sets: {', '.join(data_sets)}."
    (contents,) = data_sets.values()
    names = [
        f"{name} ({len(result.runs)} runs)".strip() if len(result.runs) > 1 else name
        for name, result in contents.recommenders.items()
    ]
    who, nouns = ", ".join(filter(None, names)) or "One recommender", contents.first.nouns
    counts = [run.user_counts.num_evaluated for run in contents.every]
    if samples := contents.samples:
        some = f"{span(counts)} of {samples[0].num_users:,} {nouns.users}"
        return f"{who}: {some} evaluated, in random order."
    return f"{who}: {users(counts, nouns.rows)} evaluated."


def _answer(contents: Contents) -> Iterator[Part]:
    """The claims, and what makes them doubtful."""
    yield from _remarks(contents.main_comparison, list(_warnings(contents)))
    if contents.split is not None and not contents.split.has_leaks:
        yield Remarks(["The split has no leaks."], "good")


def _remarks(
    comparison: Comparison | BenchmarkComparison | None, warnings: Sequence[str]
) -> Iterator[Part]:
    if comparison is not None and (claims := comparison.claims()):
        yield Remarks(claims, "claims")
    if warnings:
        yield Remarks(warnings, "warnings")


def _overview(
    benchmark: Benchmark, comparison: BenchmarkComparison | None, data_sets: Mapping[str, Contents]
) -> Iterator[Part]:
    """Who is better on which data sets, what makes it doubtful, and the means."""
    (metric,) = {contents.main_metric for contents in data_sets.values()}
    if comparison is not None and not has_few(comparison.pairs):
        best = [contents.ranking[0] for contents in data_sets.values()]
        comparison = comparison.select(max(benchmark.recommenders, key=best.count))
    warnings = notes_of_all({name: _warnings(contents) for name, contents in data_sets.items()})
    for name in benchmark.recommenders:
        if lacking := [data_set for data_set, of in benchmark.items() if name not in of]:
            warnings.append(f"{name} was not run on {', '.join(lacking)}.")
    yield from _remarks(comparison, warnings)
    caption = f"The mean {metric} of every recommender on every data set."
    yield Grid(caption, benchmark.table(metric))
    if comparison is None:
        # The error says what it needs.
        yield grid("Comparison", "", partial(benchmark.compare, metric))
    else:
        table, claims = comparison.table(), comparison.claims()
        notes = tuple(note for note in table.notes if note not in claims)
        caption = f"The difference of two recommenders in {metric}, user by user."
        yield Grid(caption, replace(table, notes=notes))
    for other in benchmark.metrics:
        if other != metric:
            yield Grid(f"The mean {other}.", benchmark.table(other), fold=str(other))


def _forests(contents: Contents) -> Iterator[Part]:
    """A forest of means and one of differences."""
    metrics = [str(metric) for metric in contents.small_metrics]
    if not metrics:
        return
    yield drawing(
        "Means",
        "The mean of every metric, with its 95% confidence interval.",
        lambda ax: plot.means(contents.recommenders, metrics, ax=ax),
        height((len(metrics) + 1) * len(contents.recommenders)),
    )
    comparison = contents.main_comparison
    compared = {
        row.metric for row in comparison or () if row.verdict is not None or row.low < row.high
    }
    metrics = [metric for metric in metrics if metric in compared]
    if comparison is None or not metrics:
        return
    shown = comparison.select(metrics)
    yield drawing(
        "Differences",
        "Paired differences with their confidence intervals: user by user, so that what users have "
        "in common cancels out. A filled mark is significant, and a grey zone is too small to "
        "matter.",
        lambda ax: plot.differences(shown, ax=ax),
        height((len(metrics) + 1) * len(rows_by_pair(shown))),
    )


def _warnings(contents: Contents) -> Iterator[str]:
    """What may make the numbers of the page say less than they seem to."""
    comparison, first, largest = contents.comparison, contents.first, contents.largest
    if comparison is not None and (names := comparison.protocol.uncovered):
        those = "Its" if len(names) == 1 else "Their"
        yield f"One run of {', '.join(names)}. {those} other seeds may give other numbers."
    if note := first._caution(*contents.metrics):
        yield f"{note[0].upper()}{note[1:]}."
    if contents.split is not None and contents.split.has_leaks:
        yield "The split leaks: see its checks below."
    if num_cold := _count_cold(largest.ranked):
        yield f"{num_cold:,} relevant items of users have no training edge."
    if num_tied := max(result.num_tied or 0 for result in contents.every):
        yield f"Up to {num_tied:,} relevant items have the same score as another candidate."
    if num_short := _count_short(largest, contents.k):
        yield f"{num_short:,} users have fewer than {contents.k} recommended items."


def _count_short(result: EvaluationResult, k: int) -> int:
    """Returns how many users with ground truth have a shorter list than `k`."""
    ranked = result.ranked
    if ranked.lists is None:
        return result.user_counts.num_with_few_candidates or 0
    is_short = ranked.lists.length(k) < k
    return int((is_short & evaluated_mask(ranked) & (ranked.degree > 0)).sum())


def _count_cold(ranked: RankedEdges) -> int:
    """Returns how many ground-truth edges lead to items that nobody has seen."""
    try:
        check_has(ranked.catalogue, "popularity", "report")
    except ValueError:
        return 0
    popularity = catalogue_of(ranked).popularity
    return int((popularity[ranked.edge_label_index[1].to(popularity.device)] == 0).sum())


def means(contents: Contents) -> Iterator[Part]:
    """The mean of every metric for every recommender, and how much runs vary."""
    results = contents.recommenders
    names = dict.fromkeys(name for result in results.values() for name in result.runs[0])
    rows = []
    for metric in names:
        known = {name: x for name, x in results.items() if metric in map(str, x.metrics)}
        cells = {name: (x.estimate_of(metric).value, x.cell(metric)) for name, x in known.items()}
        rows.append([metric, *with_best(cells, results, metric)])
    notes = tuple(notes_of_all({name: _notes_on(result) for name, result in results.items()}))
    table = Table(["metric", *(name or "mean" for name in results)], rows, notes)
    yield Grid("The mean of every metric. The best of each is bold.", table)
    for name, runs in results.items():
        if isinstance(runs, Runs):
            caption = f"How much {len(runs)} runs vary, and what more runs would change."
            yield Grid(caption, runs.table(), fold=f"Runs of {name}" if name else "Runs")


def _notes_on(result: Measured) -> Sequence[str]:
    if isinstance(result, Runs):
        # Intervals are those of all runs. Users are those of each.
        of_each = (note for note in result[0].table().notes if not note.startswith("±"))
        return [result.table().notes[0], *of_each]
    return result.table().notes


def differences(contents: Contents) -> Iterator[Part]:
    """Which recommender is better."""
    if len(contents.recommenders) < 2:
        yield Missing("Comparison", "it needs two recommenders or more")
        return
    comparison, shown = contents.comparison, contents.main_comparison
    if comparison is None or shown is None:
        # The error says what it needs.
        yield grid("Comparison", "", partial(compare, contents.recommenders))
        return
    caption = "The difference of two recommenders in every metric, user by user."
    if shown is not comparison:
        yield Grid(caption, shown.table(), fold=f"All numbers on {contents.ranking[0]}")
    yield Grid(caption, comparison.table(), fold="All numbers")


def curves(contents: Contents) -> Iterator[Part]:
    """Metrics at every cut-off."""
    labels = dict.fromkeys(metric.label for metric in contents.metrics if metric.k)
    if not labels:
        yield Missing("Curves", "they need a metric with a cut-off, such as 'ndcg@20'")
        return
    results = contents.recommenders
    for label in labels:
        caption = f"The mean {label}@k at every cut-off k, with its 95% confidence interval."
        yield drawing(f"{label}@k", caption, partial(plot.metric_at_k, results, label))
    if len(results) > 1 and contents.main_metric.k:
        label, (a, b, *_) = contents.main_metric.label, contents.ranking
        caption = (
            f"The difference of {a} and {b} in {label}@k at every cut-off k, with its 95% "
            f"confidence interval. Where it leaves out zero, a test would find the difference."
        )
        draw = partial(plot.difference_at_k, results[a], results[b], label)
        yield drawing(f"{a} - {b} in {label}@k", caption, draw)
    caption = "The mean precision against the mean recall. Numbers beside the marks are cut-offs."
    draw = partial(plot.precision_recall_curve, results)
    yield drawing("Precision against recall", caption, draw)


def spread(contents: Contents) -> Iterator[Part]:
    """How users differ."""
    if not contents.metrics:
        yield Missing("Users", "they need a metric of single users that all results have")
        return
    metric, noun, results = contents.main_metric, contents.first.nouns.means, contents.recommenders
    caption = (
        f"How {metric} is distributed over {noun}. The height of a line is the share of "
        f"{those_who(noun)} reach a value, and the area under it is the mean."
    )
    what = f"Distribution of {metric} over {noun}"
    yield drawing(what, caption, partial(plot.distribution, results, metric))
    what = f"{metric} by training degree"
    try:
        check_has(contents.first.ranked.catalogue, "popularity", "by_degree")
    except ValueError as error:
        yield Missing(what, str(error))
        return
    caption = (
        f"The mean {metric} of {noun} with few and with many training edges, with 95% confidence "
        f"intervals. A group has n {noun}."
    )
    yield drawing(what, caption, partial(plot.metric_by_degree, results, metric))
    make = partial(_side_by_side, contents, str(metric), lambda result: result.by_degree())
    yield grid(what, caption, make, fold=f"Numbers on {what}")


def items(contents: Contents) -> Iterator[Part]:
    """Which items are found."""
    k = contents.k
    caption = (
        f"The mean recall@{k} for relevant items that few and that many users have seen, with 95% "
        f"confidence intervals. Each row is as if only these items were relevant."
    )
    groups = partial(_side_by_side, contents, f"recall@{k}", lambda x: x.recall_by_popularity(k))
    yield grid("Recall by popularity", caption, groups)


def _side_by_side(contents: Contents, metric: str, by: Callable[[Measured], Cohorts]) -> Table:
    """Returns a metric of the same groups for every recommender."""
    cohorts = {name: by(result) for name, result in contents.recommenders.items()}
    first, *_ = cohorts.values()
    # A table of groups says what is counted.
    head = [*first.table().head[:2], *(name or metric for name in cohorts)]
    rows = [
        [
            str(label),
            span(groups[label][metric].num_users for groups in cohorts.values()),
            *(format_interval(*groups[label][metric][:3]) for groups in cohorts.values()),
        ]
        for label in first
    ]
    return Table(head, rows)


def long_tail(contents: Contents) -> Iterator[Part]:
    """Which items are recommended."""
    k = contents.k
    caption = (
        f"In how many of the top {k} lists an item is, against how popular it is. A line is the "
        f"mean over groups of items, and the grey line is the number of users who have seen them."
    )
    yield drawing("Long tail", caption, partial(plot.long_tail, contents.recommenders, k=k))
    caption = f"The items that are in most top {k} lists, summed over recommenders."
    if contents.samples:
        caption += f" Counts of a sample are scaled up to all {contents.first.nouns.users}."
    yield grid("Items recommended most often", caption, partial(_most_recommended, contents))


def _most_recommended(contents: Contents) -> Table:
    popularity = common_popularity(contents.every, "report")
    counts = [exposure_of(each, contents.k) for each in contents.recommenders.values()]
    if contents.samples:
        # What is scaled up knows no tenths.
        counts = [of.round() for of in counts]
    # Means over runs differ in their last digit, and items in equally many lists stay in order.
    total = torch.stack(counts).sum(dim=0).round(decimals=6)
    listed = total.argsort(descending=True, stable=True)[:_NUM_ITEMS].tolist()
    ids = contents.first.ranked.item_ids
    rows = [
        [
            str(item if ids is None else ids[item]),
            *(_format_count(float(of[item])) for of in [popularity, *counts]),
        ]
        for item in listed
    ]
    return Table(["item", "seen by", *(name or "lists" for name in contents.recommenders)], rows)


def _format_count(count: float) -> str:
    """Formats a number of things, which is a mean over runs if it is not whole."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


def trade_offs(contents: Contents) -> Iterator[Part]:
    """What accuracy costs in what else is measured of lists, if anything is."""
    if len(contents.recommenders) < 2 or not contents.metrics:
        return
    metric = contents.main_metric
    for other in (x for x in common_metrics(contents.every) if not x.needs_truth):
        what = f"{metric} against {other}"
        draw = partial(plot.pareto, contents.recommenders, metric, other)
        yield drawing(what, f"{what}, and the best trade-offs.", draw)


def ties(contents: Contents) -> Iterator[Part]:
    """What the order of equal scores does to the means."""
    counts = {name: each.num_tied for name, each in contents.recommenders.items()}
    known = {name: count for name, count in counts.items() if count is not None}
    if not known:
        yield Missing("Ties", "they need scores, and lists are all that is known")
        return
    if not any(known.values()):
        yield Prose("No relevant item has the same score as another candidate.")
        return
    metrics = [
        metric
        for metric in contents.metrics
        if all(TieRanges(x.ranked).can_tell(x.definitions[metric]) for x in contents.every)
    ]
    rows = [
        [
            name or "result",
            _format_count(count),
            *(str(contents.recommenders[name].tie_range(metric)) for metric in metrics),
        ]
        for name, count in known.items()
    ]
    caption = (
        "How many relevant items have the same score as another candidate, and the lowest and the "
        "highest mean over all orders of equal scores."
    )
    yield Grid(caption, Table(["recommender", "tied edges", *map(str, metrics)], rows))


def recipe(contents: Contents) -> Iterator[Part]:
    """How exactly it was measured, which may differ where recommenders treat ties differently."""
    recipes = {name: [x.runs[0].recipe()] for name, x in contents.recommenders.items()}
    for text in notes_of_all(recipes):
        yield Prose(" ".join(text.split()))


def split(contents: Contents) -> Iterator[Part]:
    """The checks of the split."""
    if contents.split is None:
        yield Missing("Checks of the split", "pass 'split=(train, val, test)'")
        return
    caption = "Leaks, sizes and degrees of the three parts, and users and items without edges."
    yield Grid(caption, contents.split.table())


#: The functions above by the headings of their sections.
SECTIONS: dict[str, Callable[[Contents], Iterator[Part]]] = {
    "Means": means,
    "Comparison": differences,
    "Curves": curves,
    "Users": spread,
    "Items": items,
    "Long tail": long_tail,
    "Trade-offs": trade_offs,
    "Ties": ties,
    "Recipe": recipe,
    "Split": split,
}

#: The sections that one has to unfold.
FOLDED = ("Trade-offs", "Recipe", "Split")
