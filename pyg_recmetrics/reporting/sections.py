"""The sections of a report: what each shows of a data set, and when."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import TypeAlias

import torch

from pyg_recmetrics import plot
from pyg_recmetrics.benchmark import Benchmark
from pyg_recmetrics.benchmark.means import notes_of_all, with_best
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot.picture import span, users
from pyg_recmetrics.reporting.contents import Contents
from pyg_recmetrics.reporting.parts import Drawing, Grid, Page, Part, Remarks, drawing
from pyg_recmetrics.results import EvaluationResult, Runs, compare
from pyg_recmetrics.results.notes import claims_on_best
from pyg_recmetrics.results.result import Measured, common_popularity, exposure_of
from pyg_recmetrics.results.runs import notes_on_budgets
from pyg_recmetrics.results.tie_range import can_tell
from pyg_recmetrics.tables import Table, format_interval

#: How many of the items that are recommended most often are listed.
_NUM_ITEMS = 10

#: The share of a mean by which the order of ties may move it without a warning.
_MUCH = 0.01

#: Returns some parts of a section. Its errors say what they need.
Maker: TypeAlias = Callable[[Contents], Iterator[Part]]


def page_on(data_sets: Mapping[str, Contents], benchmark: Benchmark | None = None) -> Page:
    """Returns the page: the answer, what makes it doubtful, a picture, and all else in folds."""
    page = Page()
    forests = starmap(_forest, data_sets.items())
    page.add("Result", [_answer(data_sets), _table(benchmark), *forests])
    for name, contents in data_sets.items():
        for heading, makers in SECTIONS.items():
            if not name or heading != "Split":
                parts = [make(contents) for make in makers]
                page.add(f"{name}: {heading}" if name else heading, parts, is_folded=True)
    return page


def summary(data_sets: Mapping[str, Contents]) -> str:
    """Returns what all sections are about, in a sentence."""
    names = dict.fromkeys(name for x in data_sets.values() for name in x.recommenders)
    counted = []
    for name, contents in data_sets.items():
        counts = (run.user_counts.num_evaluated for run in contents.every)
        where = f" of {name}" if name else ""
        counted.append(f"{users(counts, contents.first.nouns.rows)}{where}")
    return f"{', '.join(filter(None, names)) or 'One recommender'}: {', '.join(counted)} evaluated."


def _answer(data_sets: Mapping[str, Contents]) -> Iterator[Part]:
    if claims := [sentence for name, x in data_sets.items() for sentence in _claims(x, name)]:
        yield Remarks(claims, "claims")
    if warnings := notes_of_all({name: _warnings(x) for name, x in data_sets.items()}):
        names = [name for key, x in data_sets.items() for name in (key, *x.names)]
        yield Remarks([_as_sentence(warning, names) for warning in warnings], "warnings")
    if any(x.split is not None and not x.split.findings() for x in data_sets.values()):
        yield Remarks(["The split has none of the leaks that were looked for."], "good")


def _as_sentence(text: str, names: Iterable[str]) -> str:
    """Begins with a capital letter, unless it begins with a name."""
    starts = tuple(f"{name}{end}" for name in filter(None, names) for end in " :,")
    return f"{text}." if text.startswith(starts) else f"{text[0].upper()}{text[1:]}."


def _claims(contents: Contents, data_set: str) -> Iterator[str]:
    """Yields which recommender is best, beside the next and beside all others."""
    found = contents.best
    if found is None:
        return
    on = f"on {data_set}, " if data_set else ""
    trained = "" if found.covers_training(found[0]) else "as trained here, "
    for claim in claims_on_best(found):
        yield _as_sentence(f"{on}{trained}{claim}", contents.names)


def _table(benchmark: Benchmark | None) -> Iterator[Part]:
    if benchmark is not None:
        caption = "The mean of every metric on each data set. The best of each is bold."
        yield Grid(caption, benchmark.table())


def _forest(data_set: str, contents: Contents) -> Iterator[Part]:
    found, on = contents.best, f"On {data_set}: " if data_set else ""
    if found is not None and any(row.low <= row.high for row in found):
        caption = (
            f"{on}{found[0].a} minus each of the others in {found[0].metric}, user by user, so "
            f"that what users have in common cancels out."
        )
        yield drawing(caption, partial(plot.differences, found))
    elif not data_set:
        yield _drawing_of_means(contents)


def _drawing_of_means(contents: Contents) -> Drawing:
    caption = "The mean of every metric, with its confidence interval."
    return drawing(caption, partial(plot.means, contents.recommenders))


def _warnings(contents: Contents) -> Iterator[str]:
    """Yields what a reader must know before anything else, in order of importance."""
    if contents.split is not None:
        yield from contents.split.findings()
    metric = contents.main_metric if contents.metrics else None
    of_each = {name: _cautions(x, metric) for name, x in contents.recommenders.items()}
    yield from notes_of_all(of_each)
    comparison = contents.comparison
    if comparison is not None and comparison.protocol.caution:
        yield f"of differences, {comparison.protocol.caution}"
    if num_cold := max(map(_count_cold, contents.every)):
        yield f"the items of {num_cold:,} test edges have no training edges"
    if comparison is not None and (names := comparison.protocol.uncovered):
        yield f"one run of {', '.join(names)}: another seed may give other numbers"
    yield from notes_on_budgets(contents.recommenders)


def _cautions(measured: Measured, metric: Metric | None) -> list[str]:
    """Returns what is doubtful about any run, once where runs differ in numbers alone."""
    found: dict[str, str] = {}
    for run in measured.runs:
        for caution in run.cautions():
            found.setdefault(re.sub(r"[\d.,]+", "", caution), caution)
    runs = measured.runs
    can = metric is not None and all(can_tell(x.ranked, x._resolve(metric)) for x in runs)
    if can and metric is not None and measured.num_tied:
        low, high = measured.tie_range(metric)
        if high - low > _MUCH * high:
            ends = f"{low:.4f} to {high:.4f}"
            found[""] = f"{metric} is {ends}, depending on the order of equal scores"
    return list(found.values())


def _count_cold(result: EvaluationResult) -> int:
    """Returns how many ground-truth edges lead to items that nobody has seen, as far as known."""
    items = result.ranked.catalogue
    if items is None or items.seen is None:
        return 0
    is_cold = items.popularity == 0
    return int(is_cold[result.ranked.edge_label_index[1].to(is_cold.device)].sum())


def _means(contents: Contents) -> Iterator[Part]:
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
    if contents.best is not None:
        yield _drawing_of_means(contents)
    for name, runs in results.items():
        if isinstance(runs, Runs):
            caption = f"How much {len(runs)} runs vary."
            yield Grid(caption, runs.table(), fold=f"Runs of {name}" if name else "Runs")


def _notes_on(result: Measured) -> Sequence[str]:
    if isinstance(result, Runs):
        # Intervals are those of all runs. Users are those of each.
        of_each = (note for note in result[0].table().notes if not note.startswith("±"))
        return [result.table().notes[0], *of_each]
    return result.table().notes


def _differences(contents: Contents) -> Iterator[Part]:
    """All differences."""
    if len(contents.recommenders) < 2:
        raise ValueError("two recommenders or more are needed")
    comparison = contents.comparison or compare(contents.recommenders)  # which says what it needs
    caption = "The difference of two recommenders in every metric, user by user."
    yield Grid(caption, comparison.table())


def _curves(contents: Contents) -> Iterator[Part]:
    """Metrics at every cut-off."""
    labels = dict.fromkeys(metric.label for metric in contents.metrics if metric.k)
    if not labels:
        raise ValueError("a metric with a cut-off is needed, such as 'ndcg@20'")
    results = contents.recommenders
    for label in labels:
        caption = f"The mean {label}@k at every cut-off k."
        yield drawing(caption, partial(plot.metric_at_k, results, label))
    caption = "The mean precision against the mean recall at every cut-off."
    yield drawing(caption, partial(plot.precision_recall_curve, results))


def _distribution(contents: Contents) -> Iterator[Part]:
    """How a metric is distributed over users."""
    metric = contents.main_metric
    caption = f"How {metric} is distributed over {contents.first.nouns.means}."
    yield drawing(caption, partial(plot.distribution, contents.recommenders, metric))


def _by_degree(contents: Contents) -> Iterator[Part]:
    """How a metric depends on the number of training edges."""
    common_popularity(contents.every, "by_degree")
    metric = contents.main_metric
    caption = (
        f"The mean {metric} by the number of training edges, less that of users with as many "
        f"relevant items."
    )
    draw = partial(plot.metric_by_degree, contents.recommenders, metric, same_degree=True)
    yield drawing(caption, draw)


def _numbers_by_degree(contents: Contents) -> Iterator[Part]:
    """The same in numbers."""
    common_popularity(contents.every, "by_degree")
    metric = str(contents.main_metric)
    cohorts = {name: result.by_degree() for name, result in contents.recommenders.items()}
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
    caption = f"The mean {metric} by the number of training edges."
    yield Grid(caption, Table(head, rows, first.remarks), fold="Numbers")


def _long_tail(contents: Contents) -> Iterator[Part]:
    """How often popular and other items are recommended."""
    caption = f"In how many top {contents.k} lists an item is, as the mean over groups of items."
    yield drawing(caption, partial(plot.long_tail, contents.recommenders, k=contents.k))


def _most_recommended(contents: Contents) -> Iterator[Part]:
    """The items that are recommended most often."""
    caption = f"The items that are in most top {contents.k} lists, summed over recommenders."
    if any(result._sampled for result in contents.every):
        caption += f" Counts of a sample are scaled up to all {contents.first.nouns.users}."
    counts = [exposure_of(each, contents.k) for each in contents.recommenders.values()]
    # Means over runs differ in their last digit, and items in equally many lists stay in order.
    total = torch.stack(counts).sum(dim=0).round(decimals=6)
    listed = total.argsort(descending=True, stable=True)[:_NUM_ITEMS].tolist()
    columns = [common_popularity(contents.every, "report"), *counts]
    ids = contents.first.ranked.item_ids
    names = (name or "lists" for name in contents.recommenders)
    rows = [
        [str(item if ids is None else ids[item]), *(f"{float(of[item]):,.0f}" for of in columns)]
        for item in listed
    ]
    yield Grid(caption, Table(["item", "seen by", *names], rows))


def _ties(contents: Contents) -> Iterator[Part]:
    """What the order of equal scores does to the means."""
    scored = {x: of for x, of in contents.recommenders.items() if of.num_tied is not None}
    if not scored:
        raise ValueError("scores are needed, and lists are all that is known")
    if not any(of.num_tied for of in scored.values()):
        yield Remarks(["No relevant item has the same score as another candidate."])
        return
    metrics = [
        metric
        for metric in contents.metrics
        if all(can_tell(x.ranked, x.definitions[metric]) for x in contents.every)
    ]
    rows = [
        [
            name or "result",
            f"{of.num_tied:,.1f}".removesuffix(".0"),
            *(str(of.tie_range(metric)) for metric in metrics),
        ]
        for name, of in scored.items()
    ]
    caption = (
        "How many relevant items have the same score as another candidate, and the lowest and the "
        "highest mean over all orders of equal scores."
    )
    yield Grid(caption, Table(["recommender", "tied edges", *map(str, metrics)], rows))


def _recipe(contents: Contents) -> Iterator[Part]:
    """How exactly it was measured, which may differ where recommenders treat ties differently."""
    recipes = {name: [x.runs[0].recipe()] for name, x in contents.recommenders.items()}
    yield Remarks([" ".join(text.split()) for text in notes_of_all(recipes)])


def _split(contents: Contents) -> Iterator[Part]:
    """The checks of the split."""
    if contents.split is None:
        raise ValueError("pass 'split=(train, val, test)'")
    caption = "Leaks, sizes and degrees of the three parts, and users and items without edges."
    yield Grid(caption, contents.split.table())


#: The sections on each data set, and what they consist of.
SECTIONS: dict[str, Sequence[Maker]] = {
    "Means": [_means],
    "Comparison": [_differences],
    "Curves": [_curves],
    "Users": [_distribution, _by_degree, _numbers_by_degree],
    "Long tail": [_long_tail, _most_recommended],
    "Ties": [_ties],
    "Recipe": [_recipe],
    "Split": [_split],
}
