"""Forest plots: an interval for each recommender or pair, in rows."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.checks import check_level
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.plot.picture import (
    BELOW,
    Panels,
    Picture,
    Recommenders,
    all_runs,
    axes_for,
    finish,
    label,
    metrics_of_users,
    noun_of,
    users,
)
from pyg_recmetrics.plot.style import BACKGROUND, GREY, LINE_WIDTH, NOTE_COLOR, point_style
from pyg_recmetrics.results import Comparison, PairedDifference
from pyg_recmetrics.results.comparison import rows_by_pair
from pyg_recmetrics.results.notes import lift_in_words
from pyg_recmetrics.results.result import Measured, mean_of
from pyg_recmetrics.results.runs import one_or_recommenders_by_name
from pyg_recmetrics.tables import format_level, format_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Half the height of the tick of a run, as a share of the distance between two rows of names.
_HALF_TICK = 0.09

#: How much of the distance between two metrics their rows take.
_SPREAD = 0.7

#: The height of a picture without rows, of a row, and of the largest picture, in inches.
_HEIGHT, _HEIGHT_OF_ROW, _MAX_HEIGHT = 1.2, 0.25, 14.0

#: How many data sets stand side by side at most, the width of each, in inches, and after how many
#: letters its texts go on in the next line.
_MAX_COLUMNS, _WIDTH_OF_PANEL, _MAX_LETTERS_OF_PANEL = 3, 3.2, 32

#: What `benchmark` draws: means, or differences.
Benchmarked: TypeAlias = Benchmark | BenchmarkComparison

#: What stands at each place: the number of the recommender, its result and the metric; or the
#: number of the colour, and the difference.
_Means: TypeAlias = dict[float, tuple[int, Measured, Metric]]
_Differences: TypeAlias = dict[float, tuple[int, PairedDifference]]


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
    if isinstance(benchmark, Benchmark):
        names, asked = list(benchmark.recommenders), benchmark.metric(metric)
        draw, x_label = partial(_means_on, benchmark, asked, level), str(asked)
    elif isinstance(benchmark, BenchmarkComparison):
        if metric is not None and parse(metric) != benchmark.metric:
            raise ValueError(
                f"'metric' needs to be that of the comparison, '{benchmark.metric}' "
                f"(got '{metric}')"
            )
        names, x_label = [f"{a} - {b}" for a, b in benchmark.pairs], "difference"
        if len(baselines := {b for _, b in benchmark.pairs}) == 1:
            names, x_label = [a for a, _ in benchmark.pairs], f"difference from {baselines.pop()}"
        draw, x_label = partial(_differences_on, benchmark), f"{benchmark.metric}, {x_label}"
    else:
        raise TypeError(
            f"'benchmark' needs to be a 'Benchmark' or what its 'compare' returned "
            f"(got {type(benchmark).__name__})"
        )
    num_columns = min(_MAX_COLUMNS, len(benchmark))
    num_lines = math.ceil(len(benchmark) / num_columns)
    size = (num_columns * _WIDTH_OF_PANEL, num_lines * height(len(names)))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(num_lines, num_columns, squeeze=False, sharey=True).flatten()
    for axes, data_set in zip(grid, benchmark, strict=False):
        axes.set_title(label(data_set), loc="left", fontsize="medium", fontweight="bold")
        _label_rows(axes, names)
        places, note = draw(data_set, axes)
        for place in set(range(len(names))) - places:
            style = {"va": "center", "color": NOTE_COLOR, "fontsize": "small"}
            axes.text(0.02, place, "not run", style, transform=axes.get_yaxis_transform())
        finish(axes, x_label, "", note, max_letters=_MAX_LETTERS_OF_PANEL)
        axes.locator_params(axis="x", nbins=4)  # as many as narrow axes have room for
    for axes in grid[len(benchmark) :]:
        axes.remove()
    return Panels(figure, tuple(grid[: len(benchmark)]))


def means(
    results: Recommenders,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
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
    by_name, level = one_or_recommenders_by_name(results), check_level(level)
    asked = metrics_of_users(all_runs(by_name.values())) if metrics is None else parse_all(metrics)
    if not asked:
        raise ValueError("'results' needs to have a metric of single users in common (got none)")
    axes = axes_for(ax, height((len(asked) + 1) * len(by_name)))
    _label_rows(axes, list(map(str, asked)))
    _name_colors(axes, list(by_name))
    rows = {
        row + _shift(index, len(by_name)): (index, result, metric)
        for index, result in enumerate(by_name.values())
        for row, metric in enumerate(asked)
    }
    note = f"means over {_draw_means(axes, rows, level)}"
    return finish(axes, "mean", "", note, BELOW)


def differences(comparison: Comparison, *, ax: "Axes | None" = None) -> Picture:
    r"""Plots the paired differences of a comparison, with their intervals.

    A dot is filled if its difference is significant. The grey zone is what is too small to matter,
    if the comparison knows: see `equivalence` of :func:`~pyg_recmetrics.compare`. Beside each
    interval, there are the lift in per cent and the corrected p-value.

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
    pairs = list(rows_by_pair(rows))
    axes = axes_for(ax, height((len(names) + 1) * len(pairs)))
    _label_rows(axes, names)
    x_label, *others = [f"{a} - {b}" for a, b in pairs]
    if others:
        _name_colors(axes, [x_label, *others])
        x_label = "difference"
    placed: _Differences = {}
    for row in rows:
        index = pairs.index((row.a, row.b))
        placed[names.index(row.metric) + _shift(index, len(pairs))] = index, row
    note = _draw_differences(axes, comparison, placed, _SPREAD / len(pairs), has_p=True)
    together = "simultaneous " if comparison.protocol.are_together else ""
    return finish(axes, x_label, "", f"paired differences, {together}{note}", BELOW)


def height(num_rows: int) -> float:
    """Returns the height of a picture with so many rows, in inches."""
    return min(_MAX_HEIGHT, _HEIGHT + _HEIGHT_OF_ROW * num_rows)


def _means_on(
    benchmark: Benchmark, metric: Metric, level: float, data_set: str, axes: "Axes"
) -> tuple[set[float], str]:
    """Draws the means on a data set. Returns which rows they are in, and a note."""
    rows: _Means = {
        benchmark.recommenders.index(name): (benchmark.recommenders.index(name), result, metric)
        for name, result in benchmark[data_set].items()
    }
    return set(rows), _draw_means(axes, rows, level)


def _differences_on(
    comparison: BenchmarkComparison, data_set: str, axes: "Axes"
) -> tuple[set[float], str]:
    """Draws the differences on a data set. Returns which rows they are in, and a note."""
    rows: _Differences = {
        comparison.pairs.index((row.a, row.b)): (comparison.recommenders.index(row.a), row)
        for row in comparison[data_set]
        if not math.isnan(row.low)
    }
    if not rows:
        raise ValueError(f"'comparison' needs to have an interval on {data_set} (got none)")
    return set(rows), _draw_differences(axes, comparison[data_set], rows, 1.0, has_p=False)


def _draw_means(axes: "Axes", rows: _Means, level: float) -> str:
    """Draws means with their intervals, and a tick for each of several runs.

    Args:
        axes (matplotlib.axes.Axes): The axes.
        rows (dict): What stands at each place.
        level (float): The level of the intervals.

    Returns:
        What stands behind the numbers.
    """
    num_users = []
    for place, (index, result, metric) in rows.items():
        mean, style = mean_of(result, metric, level), point_style(index)
        num_users.append(mean.num_users)
        _draw_interval(axes, place, mean[:3], style)
        means = result.values_of(metric).nanmean(dim=1).tolist()
        for value in means if len(means) > 1 else ():
            ends = [place - _HALF_TICK, place + _HALF_TICK]
            axes.plot([value] * 2, ends, color=style["color"], linewidth=1)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    results = [result for _, result, _ in rows.values()]
    runs = ", ticks are runs" if any(len(result.runs) > 1 for result in results) else ""
    who = users(num_users, noun_of(results))
    return f"{who}, {format_level(level)} confidence intervals{runs}"


def _draw_differences(
    axes: "Axes",
    comparison: Comparison,
    rows: _Differences,
    row_height: float,
    *,
    has_p: bool,
) -> str:
    """Draws differences with their intervals, their lifts, and what is too small to matter.

    Args:
        axes (matplotlib.axes.Axes): The axes.
        comparison (Comparison): What they are differences of.
        rows (dict): What stands at each place.
        row_height (float): The height of a row, in units of the y-axis.
        has_p (bool): Whether p-values stand beside the lifts.

    Returns:
        What stands behind the numbers.
    """
    grey: dict[str, Any] = {"color": GREY, "alpha": 0.25, "linewidth": 0}
    words = []
    for place, (index, row) in rows.items():
        if (bound := comparison.bound(row)) is not None:
            axes.barh(place, 2 * bound, row_height, left=-bound, **grey)
        style = point_style(index)
        if not comparison.is_significant(row):
            style["markerfacecolor"] = BACKGROUND
        _draw_interval(axes, place, (row.difference, row.low, row.high), style)
        p = f"  {_p_in_words(row.p_adjusted)}" if has_p else ""
        words.append(f"{lift_in_words(row)}{p} {comparison.star(row)}".strip())
    beside = axes.secondary_yaxis("right")
    beside.set_yticks(list(rows), words, fontsize="small")
    beside.tick_params(length=0)
    beside.spines["right"].set_visible(False)
    axes.axvline(0, color="black", linewidth=0.8)
    zone = comparison.protocol.equivalence
    smaller = f", grey: smaller than {zone}" if zone else ""
    return f"{format_level(comparison.protocol.level)} confidence intervals{smaller}"


def _draw_interval(
    axes: "Axes", place: float, estimate: tuple[float, float, float], style: dict[str, Any]
) -> None:
    value, low, high = estimate
    axes.plot([low, high], [place] * 2, color=style["color"], linewidth=LINE_WIDTH)
    axes.plot([value], [place], linestyle="none", **style)


def _name_colors(axes: "Axes", names: Sequence[str]) -> None:
    """Gives the points of each colour a name in the legend."""
    for index, name in enumerate(names):
        axes.plot([], [], linestyle="none", label=label(name), **point_style(index))


def _label_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Writes names on the y-axis, the first one on top."""
    axes.set_yticks(range(len(names)), list(map(label, names)))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def _p_in_words(p: float) -> str:
    return "" if math.isnan(p) else f"p = {format_p(p)}".replace("= <", "< ")


def _shift(index: int, number: int) -> float:
    """Returns how far below the middle of its metric one of several rows stands."""
    return _SPREAD * ((index + 0.5) / number - 0.5)
