"""Forest plots: a row for each metric, an interval for each recommender or pair."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyg_recmetrics.checks import check_level
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.metrics import Metric, parse_all
from pyg_recmetrics.plot.arguments import Recommenders, label, noun_of
from pyg_recmetrics.plot.picture import (
    Description,
    Picture,
    axes_for,
    describe,
    describe_legend,
    finish,
    users,
)
from pyg_recmetrics.plot.rows import (
    draw_bound,
    draw_interval,
    draw_runs,
    label_rows,
    signed,
    words_on,
)
from pyg_recmetrics.plot.sizes import make_room
from pyg_recmetrics.plot.style import BACKGROUND, point_style
from pyg_recmetrics.results import Comparison, EvaluationResult, Runs
from pyg_recmetrics.results.by_name import results_or_runs_by_name
from pyg_recmetrics.results.runs import common_metrics, mean_with_interval, runs_of
from pyg_recmetrics.tables import format_level, format_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

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
    by_name = results_or_runs_by_name(results)
    check_level(level)
    asked = _metrics_of(by_name.values()) if metrics is None else parse_all(metrics)
    axes = axes_for(ax, height=height(len(asked), len(by_name)))
    num_users: list[int] = []
    for index, (name, result) in enumerate(by_name.items()):
        for row, metric in enumerate(asked):
            mean = mean_with_interval(result, metric, level)
            num_users.append(mean.num_users)
            place = row + _shift(index, len(by_name))
            text = f"{name or 'mean'}, {metric}: {format_mean(mean.value, mean.high - mean.value)}"
            drawn = draw_interval(axes, place, (mean.low, mean.value, mean.high), index)
            drawn += draw_runs(axes, place, result, metric, index)
            for mark in drawn:
                describe(mark, text, [name], [str(metric)])
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
    with requires_extra("matplotlib", "plot", "plot"):
        from pyg_recmetrics.plot.row_text import RowText
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
        draw_bound(axes, comparison.bound(row), place, row_height)
        drawn = draw_interval(axes, place, (row.low, row.difference, row.high), index)
        if not comparison.is_significant(row):
            drawn[-1].set_markerfacecolor(BACKGROUND)
        text = words_on(comparison, row)
        beside = RowText(text, axes, place, row_height)
        whole = f"{row.a} - {row.b}, {row.metric}: {signed(row)}, {text}"
        for mark in (*drawn, beside):
            describe(mark, whole, [row.a, row.b], [row.metric])
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

    from pyg_recmetrics.plot.legend import add_legend_below

    if len(named) < 2:
        return
    points = [Line2D([], [], linestyle="none", **point_style(i)) for i in range(len(named))]
    add_legend_below(axes, points, [label(name) for name, _ in named])
    describe_legend(axes, (Description(name, tuple(of), ()) for name, of in named))


def _metrics_of(results: "Iterable[EvaluationResult | Runs]") -> tuple[Metric, ...]:
    runs = [run for result in results for run in runs_of(result)]
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
