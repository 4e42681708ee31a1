"""Forest plots: a panel for each metric of each data set, with a row for each interval."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.metrics import Metric, parse_all
from pyg_recmetrics.plot.picture import (
    Picture,
    Recommenders,
    all_runs,
    figure_of,
    label,
    label_of,
    new_figure,
    noun_of,
    tidy,
    users,
)
from pyg_recmetrics.plot.style import BACKGROUND, GREY, LINE_WIDTH, NOTE_COLOR, style_of
from pyg_recmetrics.results import Comparison
from pyg_recmetrics.results.notes import lift_in_words
from pyg_recmetrics.results.result import Measured, mean_of
from pyg_recmetrics.results.runs import common_metrics, one_or_recommenders_by_name
from pyg_recmetrics.tables import format_level, format_p

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

#: The height of a panel without rows, and of a row, in inches.
_HEIGHT_OF_PANEL, _HEIGHT_OF_ROW = 0.6, 0.34


class _Row(NamedTuple):
    """What stands in one row of a panel.

    Attributes:
        value: Where the dot is.
        low: Where the interval starts.
        high: Where it ends.
        runs: Where single runs are.
        words: What stands beside it.
        bound: Half the width of the zone that is too small to matter.
        is_filled: Whether the dot is filled.
    """

    value: float
    low: float
    high: float
    runs: Sequence[float] = ()
    words: str = ""
    bound: float = 0
    is_filled: bool = True


#: What was not run, or has no interval, as a table shows it.
_MISSING = _Row(math.nan, math.nan, math.nan, words="-")


def means(
    results: Recommenders | Benchmark,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    *,
    level: float = 0.95,
    figure: "Figure | SubFigure | None" = None,
) -> Picture:
    r"""Plots the mean of every metric for every recommender, with intervals: a forest plot.

    Each metric has axes of its own. A dot is a mean, and the line through it is its confidence
    interval. A recommender with several runs has a small tick for each of them.

    Args:
        results (EvaluationResult, Runs, sequence, dict or Benchmark): One recommender with one run
            or several, or several recommenders by name, or those of several data sets.
        metrics (sequence of str, optional): The metrics. (default: `None`, those that all results
            have)
        level (float, optional): The level of the confidence intervals. (default: `0.95`)
        figure (matplotlib.figure.Figure or SubFigure, optional): Where to draw. (default: `None`, a
            new figure)

    Returns:
        The figure and its axes, from top to bottom, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the results have no metric in common, or `level` is not between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, ["recall@2", "mrr@2"])
        >>> figure, axes = plot.means({"Constant": result})
        >>> [each.get_title() for each in axes]
        ['recall@2, 2 users', 'mrr@2, 2 users']
    """
    data_sets: Mapping[str, Mapping[str, Measured]] = (
        results if isinstance(results, Benchmark) else {"": one_or_recommenders_by_name(results)}
    )
    every = [result for by_name in data_sets.values() for result in by_name.values()]
    asked = common_metrics(all_runs(every)) if metrics is None else parse_all(metrics)
    if not asked:
        raise ValueError("'results' needs to have a metric in common (got none)")
    panels = {}
    for data_set, by_name in data_sets.items():
        for metric in asked:
            rows, counts = {}, []
            for name, result in by_name.items():
                mean = mean_of(result, metric, level)
                runs = result.runs if len(result.runs) > 1 else ()
                values = [run.estimate_of(metric).value for run in runs]
                rows[name] = _Row(*mean[:3], values)
                counts.append(mean.num_users)
            panels[f"{_title(data_set, metric)}, {users(counts, noun_of(by_name.values()))}"] = rows
    ticks = ", ticks are runs" if len(all_runs(every)) > len(every) else ""
    return _forest(panels, f"means, {format_level(level)} confidence intervals{ticks}", figure)


def differences(
    comparison: Comparison | BenchmarkComparison,
    *,
    figure: "Figure | SubFigure | None" = None,
) -> Picture:
    r"""Plots the paired differences of a comparison, with their intervals: a forest plot.

    Each metric has axes of its own, as has each data set. A dot is filled if its difference is
    significant. The grey zone is what is too small to matter, if the comparison knows: see
    `equivalence` of :func:`~pyg_recmetrics.compare`. Beside each interval, there are the lift in
    per cent and the corrected p-value.

    Args:
        comparison (Comparison or BenchmarkComparison): What :func:`~pyg_recmetrics.compare` or
            :meth:`Benchmark.compare` returned. What has no interval is left out.
        figure (matplotlib.figure.Figure or SubFigure, optional): Where to draw. (default: `None`, a
            new figure)

    Returns:
        The figure and its axes, from top to bottom, as a :class:`Picture`.

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
        >>> [label.get_text() for label in axes[0].get_yticklabels()]
        ['perfect\n- popular']
    """
    if not isinstance(comparison, Comparison | BenchmarkComparison):
        raise TypeError(
            f"'comparison' needs to be what 'compare' returned (got {type(comparison).__name__})"
        )
    data_sets = {"": comparison} if isinstance(comparison, Comparison) else comparison
    panels: dict[str, dict[str, _Row]] = {}
    for data_set, found in data_sets.items():
        for row in found:
            if math.isnan(row.low):
                continue
            p = "" if math.isnan(row.p_adjusted) else f"p = {format_p(row.p_adjusted)}"
            words = f"{lift_in_words(row)}  {p} {found.star(row)}".replace("= <", "< ")
            panels.setdefault(_title(data_set, row.metric), {})[f"{row.a}\n- {row.b}"] = _Row(
                row.difference,
                row.low,
                row.high,
                words=words.strip(),
                bound=found.bound(row) or 0,
                is_filled=found.is_significant(row),
            )
    if not panels:
        raise ValueError("'comparison' needs to hold a difference with an interval (got none)")
    protocol = found.protocol
    zone = f", grey: smaller than {protocol.equivalence}" if protocol.equivalence else ""
    level = format_level(protocol.level)
    note = f"paired differences, {level} confidence intervals, filled: significant{zone}"
    return _forest(panels, note, figure)


def _title(data_set: str, metric: str | Metric) -> str:
    return f"{data_set}: {label_of(metric)}" if data_set else label_of(metric)


def _forest(
    panels: Mapping[str, Mapping[str, _Row]], note: str, figure: "Figure | SubFigure | None"
) -> Picture:
    """Draws panels below each other, all with the same rows."""
    names = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    height = len(panels) * (_HEIGHT_OF_PANEL + _HEIGHT_OF_ROW * len(names))
    figure = new_figure(height) if figure is None else figure
    if not hasattr(figure, "subplots"):
        raise TypeError(f"'figure' needs to be a figure (got {type(figure).__name__})")
    figure.suptitle(note, fontsize="small", color=NOTE_COLOR, wrap=True)
    grid = figure.subplots(len(panels), squeeze=False)[:, 0]
    for axes, (title, rows) in zip(grid, panels.items(), strict=True):
        axes.set_title(label(title), fontsize="medium")
        axes.set_yticks(range(len(names)), map(label, names), fontsize="small")
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)  # as many labels as narrow axes have room for
        axes.axvline(0, color="black", linewidth=0.8)
        for place, name in enumerate(names):
            row = rows.get(name, _MISSING)
            look = style_of(place) | {"linestyle": "none"}
            if not row.is_filled:
                look["markerfacecolor"] = BACKGROUND
            axes.barh(place, 2 * row.bound, 1, left=-row.bound, color=GREY, alpha=0.25)
            axes.hlines(place, row.low, row.high, color=look["color"], linewidth=LINE_WIDTH)
            axes.plot(row.runs, [place] * len(row.runs), "|", color=look["color"])
            axes.plot(row.value, place, **look)
            beside = axes.get_yaxis_transform()  # across from 0 to 1, and down as the rows
            axes.text(1.02, place, row.words, transform=beside, va="center", fontsize="small")
        tidy(axes)
    return Picture(figure_of(grid[0]), grid)
