"""Forest plots: a panel for each metric of each data set, with a row for each interval."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pyg_recmetrics.benchmark import Benchmark
from pyg_recmetrics.metrics import Metric, parse_all
from pyg_recmetrics.plot.picture import (
    BACKGROUND,
    GREY,
    LINE_WIDTH,
    NOTE_COLOR,
    Picture,
    Recommenders,
    all_runs,
    figure_of,
    fill,
    label,
    label_of,
    new_figure,
    noun_of,
    style_of,
    tidy,
    users,
)
from pyg_recmetrics.results import Comparison
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.notes import lift_in_words
from pyg_recmetrics.results.result import Measured
from pyg_recmetrics.results.runs import by_name, common_metrics, recommenders_by_name
from pyg_recmetrics.tables import format_level, format_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: The height of a panel without rows, of a row without lines, and of a line of it, in inches.
_HEIGHT_OF_PANEL, _HEIGHT_OF_ROW, _HEIGHT_OF_LINE = 0.9, 0.14, 0.16

#: After so many letters, a name goes on in the next line, and so does what stands above a panel.
_LETTERS_OF_NAME, _LETTERS_OF_TITLE = 26, 40


class _Row(NamedTuple):
    """One row of a panel: a dot, its interval and its words.

    Attributes:
        value: Where the dot is.
        low: Where the interval starts.
        high: Where it ends.
        runs: Where single runs are.
        words: What stands beside it.
        bound: Half the width of the zone that is too small to matter.
        look: How the dot is drawn, by the words of matplotlib.
    """

    value: float
    low: float
    high: float
    look: Mapping[str, Any]
    runs: Sequence[float] = ()
    words: str = ""
    bound: float = 0


#: What was not run, or has no interval, as a table shows it.
_MISSING = _Row(math.nan, math.nan, math.nan, {"color": "black"}, words="-")

#: Differences have one mark, as those of recommenders would say that one of two is meant.
_LOOK_OF_PAIR = {"color": "black", "marker": "d", "markersize": 5}

#: The axis breaks where a difference reaches more than this many times as far as the one before.
_JUMP = 3

#: The two strokes of a break, at an end of the axis.
_STROKES: Any = {"marker": "$//$", "markersize": 9, "color": "black", "clip_on": False}


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
        results
        if isinstance(results, Benchmark)
        else {"": recommenders_by_name(results, or_one=True)}
    )
    every = [result for named in data_sets.values() for result in named.values()]
    asked = common_metrics(all_runs(every)) if metrics is None else parse_all(metrics)
    if not asked:
        raise ValueError("'results' needs to have a metric in common (got none)")
    panels = {}
    for data_set, named in data_sets.items():
        for metric in asked:
            rows, counts = {}, []
            for place, (name, result) in enumerate(named.items()):
                mean = result.mean(metric, level)
                runs = result.runs if len(result.runs) > 1 else ()
                values = [run.estimate_of(metric).value for run in runs]
                rows[name] = _Row(*mean[:3], style_of(place), values)
                counts.append(mean.num_users)
            who = users(counts, noun_of(named.values()))
            panels[_short(f"{_title(data_set, metric)}, {who}")] = rows
    ticks = ", ticks are runs" if len(all_runs(every)) > len(every) else ""
    return _forest(panels, f"means, {format_level(level)} confidence intervals{ticks}", figure)


def differences(
    comparison: Comparison | Mapping[str, Comparison],
    *,
    figure: "Figure | SubFigure | None" = None,
) -> Picture:
    r"""Plots the paired differences of a comparison, with their intervals: a forest plot.

    Each metric of each data set has axes of its own. A diamond is filled if its difference is
    significant. A grey zone marks what is too small to matter, if there is an `equivalence`, see
    :func:`~pyg_recmetrics.compare`. The relative difference in per cent and the corrected p-value
    stand beside each interval. The axis ends where the next interval reaches more than three times
    as far, if at least half of them fit. Two strokes mark where an interval leaves the axes, and a
    mean difference beyond them is a number.

    Args:
        comparison (Comparison or dict): What :func:`~pyg_recmetrics.compare` returned, or one for
            each of several data sets, such as :attr:`Benchmark.comparisons`. What has no interval
            is left out.
        figure (matplotlib.figure.Figure or SubFigure, optional): Where to draw. (default: `None`, a
            new figure)

    Returns:
        The figure and its axes, from top to bottom, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `comparison` holds no comparisons.
        ValueError: If there is no difference with an interval.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate, plot
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> figure, axes = plot.differences(compare({"perfect": perfect, "popular": popular}))
        >>> axes[0].get_title()
        'recall@1 of perfect'
    """
    what = "'Comparison', as compare(...) returns it"
    data_sets = by_name(comparison, Comparison, what, "comparison", or_one=True)
    panels: dict[str, dict[str, _Row]] = {}
    sides = {}
    firsts = {row.a for found in data_sets.values() for row in found}
    for data_set, found in data_sets.items():
        for row in found:
            if math.isnan(row.low):
                continue
            p = "" if math.isnan(row.p_adjusted) else f"p = {format_p(row.p_adjusted)}"
            words = f"{lift_in_words(row)}  {p} {found.star(row)}".replace("= <", "< ")
            look = {} if found.is_significant(row) else {"markerfacecolor": BACKGROUND}
            title = _title(data_set, row.metric)
            side = "right" if is_higher_better(row.metric) else "left"
            name, first = f"minus {row.b}", row.a
            if len(firsts) == 1:
                title = f"{title} of {row.a}"
            else:
                name, first = f"{row.a}\n{name}", "the first"
            title = _short(title)
            sides[title] = _short(f"{side} of zero: {first} is better")
            panels.setdefault(title, {})[name] = _Row(
                row.difference,
                row.low,
                row.high,
                _LOOK_OF_PAIR | look,
                words=words.strip(),
                bound=found.bound(row) or 0,
            )
    if not panels:
        raise ValueError("'comparison' needs to hold a difference with an interval (got none)")
    protocol = found.protocol
    zone = f", grey: smaller than {protocol.equivalence}" if protocol.equivalence else ""
    level = format_level(protocol.level)
    note = f"paired differences, {level} confidence intervals, filled: significant{zone}"
    return _forest(panels, note, figure, sides)


def _break(axes: "Axes", rows: Sequence[_Row]) -> None:
    """Ends the axis where the next difference reaches much further, if any does.

    Half of the rows stay in sight. All of them are drawn where they are.
    """
    reaches = sorted(reach for reach in map(_reach, rows) if reach > 0)
    pairs = pairwise(reaches[(len(reaches) - 1) // 2 :])
    end = next((near for near, far in pairs if far > _JUMP * near), math.inf)
    if end == math.inf:
        return
    near = [x for row in rows if _reach(row) <= end for x in (row.low, row.high)]
    left, right = min(0, *near) - end / 9, max(0, *near) + end / 9
    axes.set_xlim(left, right)
    at_row = axes.get_yaxis_transform()
    for place, row in enumerate(rows):
        for side, is_cut in enumerate((row.low < left, row.high > right)):
            if is_cut:
                axes.plot(side, place, transform=at_row, **_STROKES)
                axes.plot(side, 0, transform=axes.transAxes, **_STROKES)
        if row.value < left or row.value > right:
            x, towards = (0.97, "right") if row.value > 0 else (0.03, "left")
            # An interval may go through all of the axes, so the number stands above it.
            look: Any = {"transform": at_row, "ha": towards, "va": "bottom", "fontsize": "small"}
            axes.text(x, place, f"{row.value:+.3g}", **look)


def _reach(row: _Row) -> float:
    """Returns how far an interval reaches from zero."""
    return max(-row.low, row.high)


def _short(text: str) -> str:
    return fill(text, _LETTERS_OF_TITLE)


def _title(data_set: str, metric: str | Metric) -> str:
    return f"{data_set}: {label_of(metric)}" if data_set else label_of(metric)


def _forest(
    panels: Mapping[str, Mapping[str, _Row]],
    note: str,
    figure: "Figure | SubFigure | None",
    sides: Mapping[str, str] | None = None,
) -> Picture:
    """Draws panels one below the other, and what they are above them.

    Differences have `sides`, which say below each panel who is better, and may break the axis.
    """
    every = dict.fromkeys(name for rows in panels.values() for name in rows)
    names = {name: label(fill(name, _LETTERS_OF_NAME)) for name in every}
    num_lines = 1 + max(name.count("\n") for name in names.values())
    height_of_row = _HEIGHT_OF_ROW + _HEIGHT_OF_LINE * num_lines
    height = len(panels) * (_HEIGHT_OF_PANEL + height_of_row * len(names))
    around = [note := fill(note), *panels, *(sides or {}).values()]
    height += sum(text.count("\n") for text in around) * _HEIGHT_OF_LINE
    figure = new_figure(height) if figure is None else figure
    if not hasattr(figure, "subplots"):
        raise TypeError(f"'figure' needs to be a figure (got {type(figure).__name__})")
    figure.suptitle(note, fontsize="small", color=NOTE_COLOR)
    grid = figure.subplots(len(panels), squeeze=False)[:, 0]
    for axes, (title, rows) in zip(grid, panels.items(), strict=True):
        axes.set_title(label(title), fontsize="medium")
        axes.set_yticks(range(len(names)), names.values())
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(left=False, labelsize="small")
        axes.locator_params(axis="x", nbins=3)  # as many labels as narrow axes have room for
        axes.axvline(0, color="black", linewidth=0.8)
        every_row = [rows.get(name, _MISSING) for name in names]
        for place, row in enumerate(every_row):
            look = {**row.look, "linestyle": "none"}
            axes.barh(place, 2 * row.bound, 1, left=-row.bound, color=GREY, alpha=0.25)
            axes.hlines(place, row.low, row.high, color=look["color"], linewidth=LINE_WIDTH)
            axes.plot(row.runs, [place] * len(row.runs), "|", color=look["color"])
            axes.plot(row.value, place, **look)
            beside = axes.get_yaxis_transform()  # across from 0 to 1, and down as the rows
            axes.text(1.04, place, row.words, transform=beside, va="center", fontsize="small")
        tidy(axes)
        if sides:
            axes.set_xlabel(label(sides[title]), fontsize="small", color=NOTE_COLOR)
            _break(axes, every_row)
    return Picture(figure_of(grid[0]), grid)
