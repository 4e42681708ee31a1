"""Pictures of several data sets, with axes for each."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.checks import check_level
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.plot.arguments import label, noun_of
from pyg_recmetrics.plot.picture import (
    Panels,
    Picture,
    axes_for,
    describe,
    finish,
    users,
)
from pyg_recmetrics.plot.rows import draw_bound, draw_interval, draw_runs, label_rows, signed
from pyg_recmetrics.plot.style import BACKGROUND, NOTE_COLOR
from pyg_recmetrics.results import Comparison, PairedDifference, Runs
from pyg_recmetrics.results.runs import mean_with_interval
from pyg_recmetrics.tables import format_level, format_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What `benchmark` draws: means, or differences.
Benchmarked: TypeAlias = Benchmark | BenchmarkComparison

#: How many axes stand side by side at most.
_MAX_COLUMNS = 3

#: The width of axes without names, and of names, in inches.
_WIDTH, _WIDTH_OF_NAMES = 2.6, 1.6

#: The height of a row, and of all else of axes, in inches.
_HEIGHT_OF_ROW, _HEIGHT = 0.3, 1.5


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
        return _HEIGHT + _HEIGHT_OF_ROW * len(benchmark.pairs)
    return _HEIGHT + _HEIGHT_OF_ROW * len(benchmark.recommenders)


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
        mean = mean_with_interval(results[name], metric, level)
        num_users.append(mean.num_users)
        drawn = draw_interval(axes, place, (mean.low, mean.value, mean.high), place)
        drawn += draw_runs(axes, place, results[name], metric, place)
        text = format_mean(mean.value, mean.high - mean.value)
        for mark in drawn:
            describe(mark, f"{name} on {data_set}, {metric}: {text}", [name], [str(metric)])
    label_rows(axes, [label(name) for name in names])
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    runs = ", ticks are runs" if any(isinstance(x, Runs) for x in results.values()) else ""
    note = f"{users(num_users, noun_of(results.values()))}, {format_level(level)} intervals{runs}"
    return _finish(axes, data_set, str(metric), note)


def _differences(comparison: BenchmarkComparison, data_set: str, axes: "Axes") -> Picture:
    from pyg_recmetrics.plot.row_text import RowText

    axes = axes_for(axes)
    found, pairs = comparison[data_set], comparison.pairs
    rows = [row for row in found if not math.isnan(row.low)]
    if not rows:
        raise ValueError(f"'comparison' needs to have an interval on {data_set} (got none)")
    for row in rows:
        place = pairs.index((row.a, row.b))
        draw_bound(axes, found.bound(row), place, 1.0)
        ends = row.low, row.difference, row.high
        drawn = draw_interval(axes, place, ends, comparison.recommenders.index(row.a))
        if not found.is_significant(row):
            drawn[-1].set_markerfacecolor(BACKGROUND)
        beside = RowText(_lift(found, row), axes, place, 1.0)
        text = f"{row.a} - {row.b} on {data_set}, {row.metric}: {signed(row)}, {_lift(found, row)}"
        for mark in (*drawn, beside):
            describe(mark, text, [row.a, row.b], [row.metric])
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


def _lift(comparison: Comparison, row: PairedDifference) -> str:
    lift = "" if math.isnan(row.lift) else f"{row.lift:+.1f}%"
    return " ".join(filter(None, (lift, comparison.star(row))))


def _finish(axes: "Axes", data_set: str, x: str, note: str) -> Picture:
    axes.set_title(label(data_set), loc="left", fontsize="medium", fontweight="bold")
    return finish(axes, x, "", note, is_new=False)
