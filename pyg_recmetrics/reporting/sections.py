"""The sections of a report. Each is a function from what is reported on to its parts."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import torch
from torch import Tensor

from pyg_recmetrics import plot
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot.forest import height
from pyg_recmetrics.plot.picture import span, users
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.reporting.contents import Contents, about_rows, sample_of
from pyg_recmetrics.reporting.parts import (
    Drawing,
    Grid,
    Missing,
    Part,
    Prose,
    Remarks,
    drawing,
    grid,
)
from pyg_recmetrics.results import Cohorts, Comparison, EvaluationResult, Runs, compare
from pyg_recmetrics.results.cohorts import format_cohort
from pyg_recmetrics.results.comparison import is_higher_better, rows_by_pair
from pyg_recmetrics.results.recipe import (
    Observations,
    note_on_intervals,
    summarize_users,
    those_who,
)
from pyg_recmetrics.results.result import TieRanges
from pyg_recmetrics.results.runs import (
    common_popularity,
    exposure_of_runs,
    num_tied_in_runs,
    runs_of,
    tie_range_of_runs,
)
from pyg_recmetrics.results.sampling import note_on_bounds, note_on_sampling
from pyg_recmetrics.tables import Best, Faint, Table, format_mean
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.catalogue import check_has


def first_screen(contents: Contents) -> Iterator[Part]:
    """The claims, what makes them doubtful, and a forest of means and of differences."""
    comparison = contents.main_comparison
    if comparison is not None and (claims := comparison.claims()):
        yield Remarks(claims, "claims")
    if warnings := list(_warnings(contents)):
        yield Remarks(warnings, "warnings")
    if contents.split is not None and not contents.split.has_leaks:
        yield Remarks(["The split has no leaks."], "good")
    yield from _forest(contents)


def _forest(contents: Contents) -> Iterator[Part]:
    metrics = [str(metric) for metric in contents.small_metrics]
    if not metrics:
        return
    runs = " Ticks are single runs." if contents.several else ""
    # The table below has bounds on the mean over all users of the task.
    others = f" for other {contents.first.nouns.drawn}" if contents.num_sampled_from else ""
    yield drawing(
        "Means",
        f"The mean of every metric, with its 95% confidence interval{others}.{runs}",
        lambda ax: plot.means(contents.recommenders, metrics, ax=ax),
        height=height(len(metrics), len(contents.recommenders)),
        kind="forest",
    )
    comparison = contents.main_comparison
    compared = {
        row.metric for row in comparison or () if row.verdict is not None or row.low < row.high
    }
    metrics = [metric for metric in metrics if metric in compared]
    if comparison is None or not metrics:
        return
    shown = comparison.select(metrics)
    num_pairs = len(rows_by_pair(shown))
    zone = " The grey zone is too small to matter." if comparison.protocol.equivalence else ""
    yield drawing(
        "Differences",
        f"The paired difference of {_who(shown, list(contents.recommenders))}, with its "
        f"{'simultaneous ' if shown.protocol.are_together else ''}confidence interval: user by "
        f"user, so that what users have in common cancels out. A filled mark is significant.{zone}",
        lambda ax: plot.differences(shown, ax=ax),
        height=height(len(metrics), num_pairs),
        kind="forest",
    )


def _who(comparison: Comparison, names: Sequence[str]) -> str:
    """Says which recommenders are compared with which."""
    pairs = {(row.a, row.b) for row in comparison}
    common = set.intersection(*map(set, pairs))
    if len(names) == 2:
        return "the two recommenders"
    if len(pairs) == 1:
        return " and ".join(*pairs)
    if len(common) == 1:
        return f"{', '.join(common)} and each of the other recommenders"
    return "every two recommenders"


def _warnings(contents: Contents) -> Iterator[str]:
    """What may make the numbers of the page say less than they seem to."""
    comparison, first, largest = contents.comparison, contents.first, contents.largest
    if comparison is not None and (names := comparison.protocol.uncovered):
        those = "Its" if len(names) == 1 else "Their"
        yield f"One run of {', '.join(names)}. {those} other seeds may give other numbers."
    if note := first._caution(contents.metrics):
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
        return result.num_with_few_candidates or 0
    is_short = ranked.lists.length(k) < k
    return int((is_short & ranked.is_evaluated & (ranked.degree > 0)).sum())


def _count_cold(ranked: RankedEdges) -> int:
    """Returns how many ground-truth edges lead to items that nobody has seen."""
    try:
        check_has(ranked.catalogue, "popularity", "report")
    except ValueError:
        return 0
    popularity = ranked.required_catalogue.popularity
    return int((popularity[ranked.edge_label_index[1].to(popularity.device)] == 0).sum())


#: How many of the items that are recommended most often are listed.
_NUM_ITEMS = 10


def summary(contents: Contents) -> str:
    """Returns one sentence on what is evaluated."""
    nouns, counts = contents.first.nouns, _nums_evaluated(contents)
    names = [
        f"{name} ({len(contents.several[name])} runs)" if name in contents.several else name
        for name in contents.recommenders
    ]
    who = _named(names) or "One recommender"
    if all_users := contents.num_sampled_from:
        some = f"{span(counts)} of {all_users:,} {nouns.users}"
        return f"{who}: {some} evaluated, in random order."
    return f"{who}: {users(counts, nouns.rows)} evaluated."


def task(contents: Contents) -> Iterator[Part]:
    """What is ranked for whom, and what is relevant."""
    result = contents.first
    if result.task is None:
        yield Missing("Task", "the results were made without a 'RankingTask'")
        return
    rows = [*_rows_on_users(contents), *_rows_on_items(result.task)]
    rows += _rows_on_edges(contents, result.task)
    yield Grid("What is ranked for whom, and what is relevant.", Table(["", "number"], rows))


def recipe(contents: Contents) -> Iterator[Part]:
    """How exactly it was measured, which may differ where recommenders treat ties differently."""
    names_of: dict[str, list[str]] = {}
    for name, result in contents.singles.items():
        names_of.setdefault(" ".join(result.recipe().split()), []).append(name)
    for text, names in names_of.items():
        yield Prose(text if len(names_of) == 1 else f"{', '.join(names)}. {text}")


def means(contents: Contents) -> Iterator[Part]:
    """The mean of every metric for every recommender, and how much runs vary."""
    names = dict.fromkeys(name for result in contents.singles.values() for name in result)
    results = contents.recommenders.values()
    rows = [[name, *_with_best(name, results)] for name in names]
    head = ["metric", *(name or "mean" for name in contents.recommenders)]
    notes = tuple(_notes_on_means(contents))
    yield Grid("The mean of every metric. The best of each is bold.", Table(head, rows, notes))
    for name, runs in contents.several.items():
        caption = f"How much {len(runs)} runs{_of(name)} vary, and what more runs would change."
        fold = f"Runs{_of(name)}"
        yield Grid(caption, runs.table(), of_all=([name], []), fold=fold)


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
    if shown is not comparison:
        yield from _matrices(comparison, list(contents.recommenders))
    caption = (
        "The difference of two recommenders in every metric, user by user. "
        "Each user is its own control."
    )
    yield Grid(
        caption,
        shown.table(),
        about_rows(shown),
        main=1,
        fold="All numbers" if shown is comparison else f"All numbers on {contents.best}",
    )


def curves(contents: Contents) -> Iterator[Part]:
    """Metrics at every cut-off."""
    labels = dict.fromkeys(metric.label for metric in contents.metrics if metric.k)
    if not labels:
        yield Missing("Curves", "they need a metric with a cut-off, such as 'ndcg@20'")
        return
    for label in labels:
        yield _curve(contents, label)
    if len(contents.recommenders) > 1 and contents.main_metric.k:
        yield _curve_of_difference(contents)
    caption = (
        f"The mean precision against the mean recall over {_count(contents, contents.main_metric)},"
        f" one point for every cut-off. Numbers beside the marks are cut-offs. There are no bands."
        f"{_over_runs(contents)}"
    )
    draw = partial(plot.precision_recall_curve, contents.recommenders)
    yield drawing("Precision against recall", caption, draw)


def spread(contents: Contents) -> Iterator[Part]:
    """How users differ."""
    if not contents.metrics:
        yield Missing("Users", "they need a metric of single users that all results have")
        return
    metric, noun = contents.main_metric, contents.first.nouns.means
    caption = (
        f"How {metric} is distributed over {_count(contents, metric)}. The height of a line is the "
        f"share of {those_who(noun)} reach a value, and the area under it is the mean."
        f"{_over_runs(contents)}"
    )
    draw = partial(plot.distribution, contents.recommenders, metric)
    yield drawing(f"Distribution of {metric} over {noun}", caption, draw)
    yield from _by_degree(contents, metric)


def items(contents: Contents) -> Iterator[Part]:
    """Which items are found."""
    k = contents.k
    caption = (
        f"The mean recall@{k} for relevant items that few and that many users have seen, with 95% "
        f"confidence intervals. Each row is as if only these items were relevant, over the users "
        f"who have any.{_over_runs(contents, has_intervals=True)}"
    )

    def make() -> Table:
        cohorts = {
            name: result.recall_by_popularity(k) for name, result in contents.recommenders.items()
        }
        return _side_by_side(cohorts, f"recall@{k}", contents.first.nouns.means)

    yield grid("Recall by popularity", caption, make)


def long_tail(contents: Contents) -> Iterator[Part]:
    """Which items are recommended."""
    k = contents.k
    caption = (
        f"In how many of the top {k} lists an item is, against how popular it is. Items are sorted "
        f"by their number of training edges, most popular first, and divided into groups. A line "
        f"is the mean over the items of a group, and the grey line is the number of users who have "
        f"seen an item.{_scaled_up(contents)}{_over_runs(contents)}"
    )
    yield drawing("Long tail", caption, partial(plot.long_tail, contents.recommenders, k=k))
    caption = (
        f"The items that are in most top {k} lists, summed over recommenders: how many users have "
        f"seen each of them, and in how many lists it is."
        f"{_scaled_up(contents)}{_over_runs(contents)}"
    )
    yield grid("Items recommended most often", caption, partial(_most_recommended, contents))


def ties(contents: Contents) -> Iterator[Part]:
    """What the order of equal scores does to the means."""
    counts = {name: num_tied_in_runs(runs) for name, runs in contents.runs.items()}
    known = {name: count for name, count in counts.items() if count is not None}
    if not known:
        yield Missing("Ties", "they need scores, and lists are all that is known")
        return
    if not any(known.values()):
        yield Prose("No relevant item has the same score as another candidate.")
        return
    results = [result for runs in contents.runs.values() for result in runs]
    metrics = [
        metric
        for metric in contents.metrics
        if all(TieRanges(each.ranked).can_tell(each.definitions[metric]) for each in results)
    ]
    rows = [
        [
            name or "result",
            _format_count(count),
            *(str(tie_range_of_runs(contents.runs[name], metric)) for metric in metrics),
        ]
        for name, count in known.items()
    ]
    caption = (
        "How many relevant items have the same score as another candidate, and the lowest and the "
        f"highest mean over all orders of equal scores.{_over_runs(contents)}"
    )
    yield Grid(caption, Table(["recommender", "tied edges", *map(str, metrics)], rows))


def split(contents: Contents) -> Iterator[Part]:
    """The checks of the split."""
    if contents.split is None:
        yield Missing("Checks of the split", "pass 'split=(train, val, test)'")
        return
    caption = "Leaks, sizes and degrees of the three parts, and users and items without edges."
    yield Grid(caption, contents.split.table())


#: The functions above by the headings of their sections.
SECTIONS: dict[str, Callable[[Contents], Iterator[Part]]] = {
    "Result": first_screen,
    "Means": means,
    "Comparison": differences,
    "Curves": curves,
    "Users": spread,
    "Items": items,
    "Long tail": long_tail,
    "Ties": ties,
    "Task": task,
    "Recipe": recipe,
    "Split": split,
}

#: The sections that one has to unfold.
FOLDED = ("Task", "Recipe", "Split")


def _matrices(comparison: Comparison, names: list[str]) -> Iterator[Part]:
    """A table for each metric, of each recommender against each other."""
    by_pair: dict[str, dict[tuple[str, str], tuple[float, str]]] = {}
    for row in comparison:
        star, cells = comparison.star(row), by_pair.setdefault(row.metric, {})
        # Zero has no sign.
        cells[row.a, row.b], cells[row.b, row.a] = (
            (row.difference, star),
            (0.0 - row.difference, star),
        )
    for metric, cells in by_pair.items():
        rows = [[a, *(_cell(cells.get((a, b))) for b in names)] for a in names]
        caption = (
            f"{metric}: the recommender of the row minus that of the column. What is not "
            f"significant is pale."
        )
        yield Grid(caption, Table(["", *names], rows), of_all=([], [metric]))


def _cell(difference: tuple[float, str] | None) -> str:
    if difference is None:
        return ""
    value, star = difference
    text = f"{value:+.4f}{star and ' '}{star}"
    return text if star else Faint(text)


def _notes_on_means(contents: Contents) -> Iterator[str]:
    """Says what the intervals are, and whose users are evaluated."""
    first = contents.first
    yield from _notes_on_margins(contents)
    if whose := _named(contents.several):
        yield f"{whose}: mean over several runs, ± for other {first.nouns.drawn} and other runs"
    yield from _of_each(contents, _summarize_users)
    yield from Observations(first.ranked, first.definitions).notes()
    yield from _of_each(
        contents,
        lambda run: None if run.sampling is None else note_on_sampling(run.sampling, run.nouns),
    )


def _notes_on_margins(contents: Contents) -> Iterator[str]:
    """Says what "±" is, and whose if a sample has bounds where others have intervals."""
    first, names_of = contents.first, dict[str, list[str]]()
    interval = note_on_intervals(0.95, first.person, first.nouns)
    for name, result in contents.recommenders.items():
        sample = sample_of(result)
        note = interval if sample is None else note_on_bounds(sample, first.nouns)
        names_of.setdefault(note, []).append(name)
    for note, names in names_of.items():
        yield note if len(names_of) == 1 else note.replace("±", f"± of {_named(names)}", 1)


def _of_each(contents: Contents, say: Callable[[EvaluationResult], str | None]) -> Iterator[str]:
    """Says something of every run, and of whom it is where it is not the same of all."""
    names_of: dict[str, dict[str, None]] = {}
    for name, runs in contents.runs.items():
        for text in filter(None, map(say, runs)):
            names_of.setdefault(text, {})[name] = None
    for text, names in names_of.items():
        is_of_all = len(names_of) == 1 and len(names) == len(contents.runs)
        whose = "" if is_of_all else _named(names)
        yield f"{whose}: {text}" if whose else text


def _summarize_users(run: EvaluationResult) -> str:
    return summarize_users(run.user_counts, run.empty_target_action, run.convention, run.max_k)


def _nums_evaluated(contents: Contents) -> list[int]:
    return [run.num_evaluated for run in contents.every]


def _rows_on_users(contents: Contents) -> Iterator[list[str]]:
    result, all_users = contents.first, contents.num_sampled_from
    counts = result.user_counts
    of_all = f" of {all_users:,}" if all_users else ""
    yield [f"{counts.nouns.rows} evaluated", f"{span(_nums_evaluated(contents))}{of_all}"]
    yield [f"{counts.nouns.users} without ground truth", f"{counts.num_without_truth:,}"]
    if counts.num_left_out:
        yield [f"{counts.nouns.users} whom the convention leaves out", f"{counts.num_left_out:,}"]
    if result.person is not None:
        yield ["persons behind them", f"{result.person.unique().numel():,}"]


def _rows_on_items(task: RankingTask) -> Iterator[list[str]]:
    yield ["items", f"{task.num_items:,}"]
    fewest, most = map(int, task.num_candidates[task.users].aminmax())
    yield ["candidates of a user, fewest and most", f"{fewest:,} to {most:,}"]


def _rows_on_edges(contents: Contents, task: RankingTask) -> Iterator[list[str]]:
    ranked = contents.largest.ranked
    degree = ranked.degree[ranked.degree > 0]
    yield ["ground-truth edges", span(run.ranked.rank.numel() for run in contents.every)]
    yield ["per user who has any, on average", f"{float(degree.double().mean()):.1f}"]
    if task.threshold is not None:
        yield ["smallest weight of a relevant item", f"{task.threshold:g}"]
    yield ["seen edges", f"{task.seen.size(1):,}"]
    if task.seen.size(1) and not task.exclude_seen:
        yield ["seen items are candidates, too", "yes"]


def _with_best(metric: str, results: Iterable[EvaluationResult | Runs]) -> Iterator[str]:
    """Returns the cells of a metric, the best of which is bold if there are several."""
    means = [_mean(result, metric) for result in results]
    known = [mean for mean in means if not math.isnan(mean)]
    best = (max if is_higher_better(metric) else min)(known) if len(known) > 1 else math.nan
    for result, mean in zip(results, means, strict=True):
        text = _format_mean(result, metric)
        yield Best(text) if mean == best else text


def _mean(result: EvaluationResult | Runs, metric: str) -> float:
    values = [run[metric] for run in runs_of(result) if metric in run]
    return sum(values) / len(values) if values else math.nan


def _format_mean(result: EvaluationResult | Runs, metric: str) -> str:
    if isinstance(result, Runs):
        if metric not in map(str, result.metrics):
            return ""
        value, _, high, *_ = result.mean(metric)
        return format_mean(value, high - value)
    if metric not in result:
        return ""
    return format_mean(result[metric], result._half_width(metric))


def _curve(contents: Contents, label: str) -> Drawing | Missing:
    metric = next(each for each in contents.metrics if each.label == label and each.k)
    other_runs = ""
    if contents.several:
        other_runs = " It allows for other runs, too, where there are several."
    caption = (
        f"The mean {label}@k over {_count(contents, metric)} at every cut-off k. The band around a "
        f"line is its 95% confidence interval for other {contents.first.nouns.drawn}.{other_runs}"
    )
    draw = partial(plot.metric_at_k, contents.recommenders, label)
    return drawing(f"{label}@k", caption, draw)


def _curve_of_difference(contents: Contents) -> Drawing | Missing:
    """The difference of the two best recommenders, whose bands are likely to overlap."""
    label, best = contents.main_metric.label, contents.best
    second = contents.best_but(best)
    caption = (
        f"The difference of {best} and {second} in {label}@k at every cut-off k. The band is its "
        f"95% confidence interval. Where it leaves out zero, a test would find the difference."
    )
    a, b = contents.recommenders[best], contents.recommenders[second]
    draw = partial(plot.difference_at_k, a, b, label)
    return drawing(f"{best} - {second} in {label}@k", caption, draw)


def _by_degree(contents: Contents, metric: Metric) -> Iterator[Part]:
    what = f"{metric} by training degree"
    try:
        check_has(contents.first.ranked.catalogue, "popularity", "by_degree")
    except ValueError as error:
        yield Missing(what, str(error))
        return
    noun = contents.first.nouns.means
    caption = (
        f"The mean {metric} of {noun} with few and with many training edges, with 95% confidence "
        f"intervals."
    )
    over_runs = _over_runs(contents, has_intervals=True)
    draw = partial(plot.metric_by_degree, contents.recommenders, metric)
    yield drawing(what, f"{caption} A group has n {noun}.{over_runs}", draw)

    def make() -> Table:
        cohorts = {name: result.by_degree() for name, result in contents.recommenders.items()}
        return _side_by_side(cohorts, str(metric), noun)

    yield grid(what, f"{caption}{over_runs}", make, fold=f"Numbers on {what}")


def _side_by_side(cohorts: Mapping[str, Cohorts], metric: str, noun: str) -> Table:
    """Returns a metric of the same groups for every recommender."""
    first = next(iter(cohorts.values()))
    head = [first.name, noun, *(name or metric for name in cohorts)]
    rows = [
        [
            str(label),
            span(groups[label][metric].num_users for groups in cohorts.values()),
            *(format_cohort(groups[label][metric]) for groups in cohorts.values()),
        ]
        for label in first
    ]
    return Table(head, rows)


def _most_recommended(contents: Contents) -> Table:
    first = contents.first.ranked
    results = chain.from_iterable(contents.runs.values())
    popularity = common_popularity(results, "report")
    counts = [exposure_of_runs(runs, contents.k) for runs in contents.runs.values()]
    if contents.num_sampled_from:
        # What is scaled up knows no tenths.
        counts = [of.round() for of in counts]
    # Means over runs differ in their last digit, and items in equally many lists stay in order.
    total = torch.stack(counts).sum(dim=0).round(decimals=6)
    listed = total.argsort(descending=True, stable=True)[:_NUM_ITEMS]
    head = ["item", "seen by", *(name or "lists" for name in contents.runs)]
    rows = [
        [
            _id_of(item, first.item_ids),
            *(_format_count(float(of[item])) for of in [popularity, *counts]),
        ]
        for item in listed.tolist()
    ]
    return Table(head, rows)


def _format_count(count: float) -> str:
    """Formats a number of things, which is a mean over runs if it is not whole."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


def _id_of(item: int, ids: tuple[object, ...] | None) -> str:
    return str(item if ids is None else ids[item])


def _count(contents: Contents, metric: Metric) -> str:
    """Says over how many users the means of a metric are."""
    results = contents.recommenders.values()
    values: list[Tensor] = [result.contributions(metric) for result in results]
    counts = (int((~value.isnan()).sum()) for value in values)
    return users(counts, contents.first.nouns.means)


def _of(name: str) -> str:
    return f" of {name}" if name else ""


def _over_runs(contents: Contents, *, has_intervals: bool = False) -> str:
    """Says of which recommenders the mean over runs is shown."""
    if not contents.several:
        return ""
    intervals = ", with intervals that allow for other runs" if has_intervals else ""
    return f" Several runs{_of(_named(contents.several))} are shown by their mean{intervals}."


def _scaled_up(contents: Contents) -> str:
    """Says that the users of a sample stand for all."""
    if not contents.num_sampled_from:
        return ""
    return f" Counts of a sample are scaled up to all {contents.first.nouns.users}."


def _named(recommenders: Iterable[str]) -> str:
    """Lists names in one line; a single recommender has none."""
    return ", ".join(filter(None, recommenders))
