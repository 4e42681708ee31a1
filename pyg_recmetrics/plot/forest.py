"""Forest plots: a row for each metric, an interval for each recommender or pair."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.checks import check_level
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.plot.picture import (
    MarkDescription,
    Panels,
    Picture,
    Recommenders,
    axes_for,
    describe,
    describe_legend,
    finish,
    label,
    noun_of,
    users,
)
from pyg_recmetrics.plot.style import (
    BACKGROUND,
    GREY,
    LINE_WIDTH,
    NOTE_COLOR,
    make_room,
    point_style,
)
from pyg_recmetrics.results import Comparison, PairedDifference, Runs
from pyg_recmetrics.results.cohorts import CohortMean
from pyg_recmetrics.results.comparison import lift_in_words, signed
from pyg_recmetrics.results.measured import Measured
from pyg_recmetrics.results.runs import (
    common_metrics,
    one_or_recommenders_by_name,
)
from pyg_recmetrics.tables import format_interval, format_level, format_p

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes


#: Half the height of the tick of a run, as a share of the distance between two rows of names.
_HALF_TICK = 0.09


def _draw_interval(
    axes: "Axes", place: float, ends: tuple[float, float, float], index: int
) -> list[Any]:
    """Draws an interval and the dot in it, which is the last of what it returns."""
    low, value, high = ends
    style = point_style(index)
    line = axes.plot([low, high], [place] * 2, color=style["color"], linewidth=LINE_WIDTH)
    return [*line, *axes.plot([value], [place], linestyle="none", **style)]


def _draw_mean(
    axes: "Axes",
    place: float,
    index: int,
    mean: CohortMean,
    metric: Metric,
    result: Measured,
    name: str,
    words: str,
) -> None:
    """Draws the mean of a recommender with its interval, and a tick for each of several runs."""
    drawn = _draw_interval(axes, place, (mean.low, mean.value, mean.high), index)
    ticks, color = [place - _HALF_TICK, place + _HALF_TICK], point_style(index)["color"]
    for value in result.values_of(metric).nanmean(dim=1).tolist() if len(result.runs) > 1 else ():
        drawn += axes.plot([value] * 2, ticks, color=color, lw=1)
    text = f"{words}, {metric}: {format_interval(*mean[:3])}"
    for mark in drawn:
        describe(mark, text, [name], [str(metric)])


def _draw_difference(
    axes: "Axes",
    place: float,
    index: int,
    comparison: Comparison,
    row: PairedDifference,
    row_height: float,
    where: str,
    beside: str,
) -> None:
    """Draws a difference with its interval and words beside it, and what is too small to matter."""
    from pyg_recmetrics.plot.texts import RowText

    if (bound := comparison.bound(row)) is not None:
        axes.barh(place, 2 * bound, row_height, left=-bound, color=GREY, alpha=0.25, linewidth=0)
    drawn = _draw_interval(axes, place, (row.low, row.difference, row.high), index)
    if not comparison.is_significant(row):
        drawn[-1].set_markerfacecolor(BACKGROUND)
    text = f"{row.a} - {row.b}{where}, {row.metric}: {signed(row)}, {beside}"
    for mark in (*drawn, RowText(beside, axes, place, row_height)):
        describe(mark, text, [row.a, row.b], [row.metric])


def label_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Writes names on the y-axis, the first one on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def words_on(comparison: Comparison, row: PairedDifference) -> str:
    """Returns the lift of a difference, and its p-value with a star."""
    p = "" if math.isnan(row.p_adjusted) else f"p {_relation(row.p_adjusted)}"
    return "  ".join(filter(None, (lift_in_words(row), f"{p} {comparison.star(row)}".strip())))


def _relation(p: float) -> str:
    text = format_p(p)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"


#: What `benchmark` draws: means, or differences.
Benchmarked: TypeAlias = Benchmark | BenchmarkComparison

#: How many axes stand side by side at most.
_MAX_COLUMNS = 3

#: The width of axes without names, and of names, in inches.
_WIDTH, _WIDTH_OF_NAMES = 2.6, 1.6

#: The height of a row, and of all else of axes, in inches.
_HEIGHT_OF_PANEL_ROW, _HEIGHT_OF_PANEL = 0.3, 1.5


def benchmark(
    benchmark: Benchmarked, metric: str | Metric | None = None, *, level: float = 0.95
) -> Panels:
    r"""Plots a forest for each data set, with a row for each recommender.

    A dot is a mean, the line through it is its confidence interval, and ticks are runs. Each data
    set has a scale of its own. Of a comparison, dots are paired differences. They are filled if
    they are significant, and the lift stands beside them.

    Args:
        benchmark (Benchmark or BenchmarkComparison): What to draw: means, or what
            :meth:`Benchmark.compare` returned.
        metric (str or Metric, optional): The metric of the means. A comparison has its own.
            (default: `None`, the first metric that all results have)
        level (float, optional): The level of the intervals of means. (default: `0.95`)

    Returns:
        The figure and its axes, one for each data set, as :class:`Panels`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `benchmark` is anything else.
        ValueError: If a metric has one value for all users together, a result has none of that
            name, a comparison is given another metric than its own or has no interval, or `level`
            is not between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Benchmark, RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr@2")
        >>> results = {"A": {"fixed": result}, "B": {"fixed": result}}
        >>> figure, axes = plot.benchmark(Benchmark(results))
        >>> [panel.get_title(loc="left") for panel in axes]
        ['A', 'B']
    """
    with requires_extra("matplotlib", "plot", "plot"):
        from matplotlib.figure import Figure
    draw = panel_of(benchmark, metric, level)
    data_sets = list(benchmark)
    num_columns = min(_MAX_COLUMNS, len(data_sets))
    num_rows = math.ceil(len(data_sets) / num_columns)
    size = (_WIDTH_OF_NAMES + num_columns * _WIDTH, num_rows * panel_height(benchmark))
    figure = Figure(figsize=size, layout="constrained")
    grid = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    for place, (axes, data_set) in enumerate(zip(grid, data_sets, strict=False)):
        draw(data_set, axes)
        if place % num_columns:
            axes.set_yticklabels([])
    for axes in grid[len(data_sets) :]:
        axes.remove()
    return Panels(figure, tuple(grid[: len(data_sets)]))


def panel_of(
    benchmark: Benchmarked, metric: str | Metric | None = None, level: float = 0.95
) -> "Callable[[str, Axes], Picture]":
    """Returns what draws the forest of a data set on axes. Errors are those of `benchmark`."""
    if isinstance(benchmark, BenchmarkComparison):
        compared = benchmark
        if metric is not None and parse(metric) != compared.metric:
            raise ValueError(
                f"'metric' needs to be that of the comparison, '{compared.metric}' (got '{metric}')"
            )
        return lambda data_set, axes: _differences(compared, data_set, axes)
    if not isinstance(benchmark, Benchmark):
        raise TypeError(
            f"'benchmark' needs to be a 'Benchmark' or what its 'compare' returned "
            f"(got {type(benchmark).__name__})"
        )
    means, asked, level = benchmark, benchmark.metric(metric), check_level(level)
    return lambda data_set, axes: _means(means, data_set, asked, level, axes)


def panel_height(benchmark: Benchmarked) -> float:
    """Returns the height of the axes of a data set, in inches."""
    if isinstance(benchmark, BenchmarkComparison):
        return _HEIGHT_OF_PANEL + _HEIGHT_OF_PANEL_ROW * len(benchmark.pairs)
    return _HEIGHT_OF_PANEL + _HEIGHT_OF_PANEL_ROW * len(benchmark.recommenders)


def _means(
    benchmark: Benchmark, data_set: str, metric: Metric, level: float, axes: "Axes"
) -> Picture:
    axes = axes_for(axes)
    names, results = benchmark.recommenders, benchmark[data_set]
    num_users: list[int] = []
    for place, name in enumerate(names):
        if name not in results:
            _write_missing(axes, place)
            continue
        mean = results[name].mean_of(metric, level)
        num_users.append(mean.num_users)
        words = f"{name} on {data_set}"
        _draw_mean(axes, place, place, mean, metric, results[name], name, words)
    label_rows(axes, [label(name) for name in names])
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    runs = ", ticks are runs" if any(isinstance(x, Runs) for x in results.values()) else ""
    note = f"{users(num_users, noun_of(results.values()))}, {format_level(level)} intervals{runs}"
    return _finish(axes, data_set, str(metric), note)


def _differences(comparison: BenchmarkComparison, data_set: str, axes: "Axes") -> Picture:
    axes = axes_for(axes)
    found, pairs = comparison[data_set], comparison.pairs
    rows = [row for row in found if not math.isnan(row.low)]
    if not rows:
        raise ValueError(f"'comparison' needs to have an interval on {data_set} (got none)")
    for row in rows:
        place = pairs.index((row.a, row.b))
        beside = " ".join(filter(None, (lift_in_words(row), found.star(row))))
        index, where = comparison.recommenders.index(row.a), f" on {data_set}"
        _draw_difference(axes, place, index, found, row, 1.0, where, beside)
    for place, pair in enumerate(pairs):
        if all((row.a, row.b) != pair for row in found):
            _write_missing(axes, place)
    axes.axvline(0, color="black", linewidth=0.8)
    baselines = {b for _, b in pairs}
    label_rows(axes, [label(a if len(baselines) == 1 else f"{a} - {b}") for a, b in pairs])
    common = f" from {baselines.pop()}" if len(baselines) == 1 else ""
    protocol = found.protocol
    grey = f", grey: smaller than {protocol.equivalence}" if protocol.equivalence else ""
    note = f"{format_level(protocol.level)} intervals{grey}"
    return _finish(axes, data_set, f"{comparison.metric}, difference{common}", note)


def _write_missing(axes: "Axes", place: float) -> None:
    """Says that a recommender was not run on a data set."""
    where = axes.get_yaxis_transform()
    text = axes.text(0.02, place, "not run", transform=where, va="center", color=NOTE_COLOR)
    text.set_fontsize("small")


def _finish(axes: "Axes", data_set: str, x: str, note: str) -> Picture:
    axes.set_title(label(data_set), loc="left", fontsize="medium", fontweight="bold")
    return finish(axes, x, "", note, is_new=False)


#: How much of the distance between two metrics their rows take.
_SPREAD = 0.7

#: The height of a new figure, in inches: of all but the rows, of a metric beside its rows, of a
#: row, and of a name in the legend.
_HEIGHT, _HEIGHT_OF_METRIC, _HEIGHT_OF_ROW, _HEIGHT_OF_NAME = 1.0, 0.2, 0.2, 0.2

_MAX_HEIGHT = 14.0


def means(
    results: Recommenders,
    metrics: "str | Metric | Iterable[str | Metric] | None" = None,
    *,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots the mean of every metric for every recommender, with intervals.

    A dot is a mean, and the line through it is its confidence interval. A recommender with several
    runs has a small tick for each of them.

    Args:
        results (EvaluationResult, Runs, sequence or dict): One recommender with one run or several,
            or several recommenders by name.
        metrics (sequence of str, optional): The metrics. (default: `None`, those with a value for
            every user that all results have)
        level (float, optional): The level of the confidence intervals. (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the results have no metric in common, a metric has one value for all users
            together, or `level` is not between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, ["recall@2", "mrr@2"])
        >>> figure, axes = plot.means({"Constant": result})
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['recall@2', 'mrr@2']
    """
    by_name = one_or_recommenders_by_name(results)
    check_level(level)
    asked = _metrics_of(by_name.values()) if metrics is None else parse_all(metrics)
    axes = axes_for(ax, height=height(len(asked), len(by_name)))
    num_users: list[int] = []
    for index, (name, result) in enumerate(by_name.items()):
        for row, metric in enumerate(asked):
            mean = result.mean_of(metric, level)
            num_users.append(mean.num_users)
            place = row + _shift(index, len(by_name))
            _draw_mean(axes, place, index, mean, metric, result, name, name or "mean")
    label_rows(axes, [str(metric) for metric in asked])
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    runs = ", ticks are runs" if any(isinstance(x, Runs) for x in by_name.values()) else ""
    noun = noun_of(by_name.values())
    note = f"means over {users(num_users, noun)}, {format_level(level)} confidence intervals{runs}"
    _name_points(axes, [(name, [name]) for name in by_name])
    if ax is not None:
        make_room(axes)
    return finish(axes, "mean", "", note, is_new=ax is None)


def differences(comparison: Comparison, *, ax: "Axes | None" = None) -> Picture:
    r"""Plots the paired differences of a comparison, with their intervals.

    A dot is filled if its difference is significant. The grey zone is what is too small to matter,
    if the comparison knows: see `equivalence` of :func:`~pyg_recmetrics.compare`. Beside each
    interval, there are the lift in per cent and the corrected p-value. On given axes, these are as
    small as the rows are close, and are left out where they could not be read.

    Args:
        comparison (Comparison): What :func:`~pyg_recmetrics.compare` returned. Metrics without a
            test of single users are left out.
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `comparison` is something else.
        ValueError: If no difference has an interval.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate, plot
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> figure, axes = plot.differences(compare({"perfect": perfect, "popular": popular}))
        >>> axes.get_xlabel()
        'perfect - popular'
    """
    if not isinstance(comparison, Comparison):
        raise TypeError(
            f"'comparison' needs to be a 'Comparison' (got {type(comparison).__name__})"
        )
    rows = [row for row in comparison if not math.isnan(row.low)]
    if not rows:
        raise ValueError("'comparison' needs to hold a difference with an interval (got none)")
    names = list(dict.fromkeys(row.metric for row in rows))
    pairs = list(dict.fromkeys((row.a, row.b) for row in rows))
    axes = axes_for(ax, height=height(len(names), len(pairs)))
    row_height = _SPREAD / len(pairs) if len(pairs) > 1 else 1.0
    for row in rows:
        index = pairs.index((row.a, row.b))
        place = names.index(row.metric) + _shift(index, len(pairs))
        beside = words_on(comparison, row)
        _draw_difference(axes, place, index, comparison, row, row_height, "", beside)
    axes.axvline(0, color="black", linewidth=0.8)
    label_rows(axes, names)
    x_label = f"{pairs[0][0]} - {pairs[0][1]}" if len(pairs) == 1 else "difference"
    protocol = comparison.protocol
    grey = f", grey: smaller than {protocol.equivalence}" if protocol.equivalence else ""
    together = "simultaneous " if protocol.are_together else ""
    level = format_level(protocol.level)
    note = f"paired differences, {together}{level} confidence intervals{grey}"
    _name_points(axes, [(f"{a} - {b}", [a, b]) for a, b in pairs])
    if ax is not None:
        make_room(axes)
    return finish(axes, x_label, "", note, is_new=ax is None)


def _name_points(axes: "Axes", named: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Says below the axes which points are whose, if there are several.

    Args:
        axes (matplotlib.axes.Axes): The axes.
        named (sequence): The name of each colour, and the recommenders that it is about.
    """
    from matplotlib.lines import Line2D

    from pyg_recmetrics.plot.texts import add_legend_below

    if len(named) < 2:
        return
    points = [Line2D([], [], linestyle="none", **point_style(i)) for i in range(len(named))]
    add_legend_below(axes, points, [label(name) for name, _ in named])
    describe_legend(axes, (MarkDescription(name, tuple(of), ()) for name, of in named))


def _metrics_of(results: "Iterable[Measured]") -> tuple[Metric, ...]:
    runs = [run for result in results for run in result.runs]
    common = common_metrics(runs)
    found = tuple(metric for metric in common if str(metric) in runs[0].per_user)
    if not found:
        raise ValueError("'results' needs to have a metric of single users in common (got none)")
    return found


def _shift(index: int, number: int) -> float:
    """Returns how far below the middle of its metric one of several rows stands."""
    return _SPREAD * ((index + 0.5) / number - 0.5)


def height(num_metrics: int, num_names: int) -> float:
    """Returns the height of a figure with so many rows for each metric, in inches."""
    rows = num_metrics * (_HEIGHT_OF_METRIC + _HEIGHT_OF_ROW * num_names)
    return min(_MAX_HEIGHT, _HEIGHT + rows + _HEIGHT_OF_NAME * num_names)
