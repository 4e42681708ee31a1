"""Rows of forest plots: intervals with a dot, the ticks of runs, and texts on differences."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot.style import GREY, LINE_WIDTH, point_style
from pyg_recmetrics.results import Comparison, EvaluationResult, PairedDifference, Runs
from pyg_recmetrics.tables import format_mean, format_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Half the height of the tick of a run, as a share of the distance between two rows of names.
_HALF_TICK = 0.09


def draw_interval(
    axes: "Axes", place: float, ends: tuple[float, float, float], index: int
) -> list[Any]:
    """Draws an interval and the dot in it, which is the last of what it returns."""
    low, value, high = ends
    style = point_style(index)
    line = axes.plot([low, high], [place] * 2, color=style["color"], linewidth=LINE_WIDTH)
    return [*line, *axes.plot([value], [place], linestyle="none", **style)]


def draw_runs(
    axes: "Axes", place: float, result: EvaluationResult | Runs, metric: Metric, index: int
) -> list[Any]:
    """Draws a tick for each run, if there are several."""
    ticks, color = [place - _HALF_TICK, place + _HALF_TICK], point_style(index)["color"]
    runs = result if isinstance(result, Runs) else ()
    values = (float(run.contributions(metric).nanmean()) for run in runs)
    return [axes.plot([value] * 2, ticks, color=color, lw=1)[0] for value in values]


def draw_bound(axes: "Axes", bound: float | None, place: float, height: float) -> None:
    """Draws what is too small to matter, which may be a share of a mean."""
    if bound is not None:
        axes.barh(place, 2 * bound, height, left=-bound, color=GREY, alpha=0.25, linewidth=0)


def label_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Writes names on the y-axis, the first one on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def words_on(comparison: Comparison, row: PairedDifference) -> str:
    """Returns the lift of a difference, and its p-value with a star."""
    lift = "" if math.isnan(row.lift) else f"{row.lift:+.1f}%"
    p = "" if math.isnan(row.p_adjusted) else f"p {_relation(row.p_adjusted)}"
    return "  ".join(filter(None, (lift, f"{p} {comparison.star(row)}".strip())))


def signed(row: PairedDifference) -> str:
    """Returns a difference with its sign and its interval."""
    return f"{'+' if row.difference >= 0 else ''}" + format_mean(
        row.difference, (row.high - row.low) / 2
    )


def _relation(p: float) -> str:
    text = format_p(p)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"
