"""The picture of what accuracy costs in something else."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyg_recmetrics.checks import check_finite_number, check_level
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.plot.arguments import label
from pyg_recmetrics.plot.picture import Picture, axes_for, describe, finish
from pyg_recmetrics.plot.style import BACKGROUND, GREY, point_style
from pyg_recmetrics.results.by_name import RUNNABLE, by_name
from pyg_recmetrics.results.cohorts import CohortMean
from pyg_recmetrics.results.paired import is_higher_better
from pyg_recmetrics.results.runs import Runnable, mean_of_any, result_or_runs
from pyg_recmetrics.tables import format_interval, format_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What accuracy is drawn against: a metric, or the seconds of each recommender by name.
Against: TypeAlias = str | Metric | Mapping[str, float]

#: If the longest time is so many times the shortest, the axis is logarithmic.
_MANY_TIMES = 20


class _Side(NamedTuple):
    """What one axis shows.

    Attributes:
        name: Its label.
        means: The value of each recommender.
        sign: One if higher is better, and minus one otherwise.
    """

    name: str
    means: dict[str, CohortMean]
    sign: int


def pareto(
    results: Mapping[str, Runnable],
    metric: str | Metric,
    against: Against,
    *,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots a metric against another, or against seconds, with the front of the best trade-offs.

    A point is filled if no other recommender is at least as good in both, and better in one. The
    grey line through these points is the Pareto front, below which a recommender has no reason. It
    is one of means: intervals show how sure each of them is, and no test stands behind it.

    Args:
        results (dict): The results of recommenders by name, of one data set.
        metric (str or Metric): What to draw upwards, such as `"ndcg@20"`.
        against (str or dict): What to draw to the right: a metric, such as `"coverage@20"` or
            `"novelty@20"`, or a dictionary of the seconds that each recommender took, of which
            fewer are better.
        level (float, optional): The level of the confidence intervals. (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `results` does not hold results by name.
        ValueError: If a result has no such metric, a recommender has no seconds or they are no
            finite numbers of zero or more, or `level` is not between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> scores = {"slow": torch.eye(3)[[2, 0]], "fast": torch.tensor([0.3, 0.2, 0.1])}
        >>> results = {name: evaluate(x, task, "mrr") for name, x in scores.items()}
        >>> figure, axes = plot.pareto(results, "mrr", {"slow": 9.5, "fast": 0.1})
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('seconds', 'mrr')
    """
    found = {name: result_or_runs(x) for name, x in by_name(results, *RUNNABLE).items()}
    level = check_level(level)

    def side(asked: Against) -> _Side:
        if isinstance(asked, Mapping):
            return _seconds(asked, list(found))
        means = {name: mean_of_any(result, asked, level) for name, result in found.items()}
        name = str(parse(asked))
        return _Side(name, means, 1 if is_higher_better(name) else -1)

    x, y = side(against), side(metric)
    axes = axes_for(ax)
    front = _front(x, y)
    for index, name in enumerate(found):
        style = point_style(index)
        across, up = x.means[name], y.means[name]
        axes.plot([across.low, across.high], [up.value] * 2, color=style["color"], linewidth=0.8)
        axes.plot([across.value] * 2, [up.low, up.high], color=style["color"], linewidth=0.8)
        if name not in front:
            style["markerfacecolor"] = BACKGROUND
        (dot,) = axes.plot([across.value], [up.value], linestyle="none", label=label(name), **style)
        text = f"{name}: {y.name} {_words(up)}, {x.name} {_words(across)}"
        describe(dot, text, [name], [])
    if x.name == "seconds" and _is_wide(x):
        axes.set_xscale("log")
    _draw_front(axes, x, y, front)
    note = f"filled: no other is better in both; means, {format_level(level)} confidence intervals"
    return finish(axes, x.name, y.name, note, is_new=ax is None)


def _seconds(seconds: Mapping[str, float], names: list[str]) -> _Side:
    given = {str(name): value for name, value in seconds.items()}
    means = {}
    for name in names:
        if name not in given:
            raise ValueError(f"'against' needs to have the seconds of '{name}' (got {list(given)})")
        value = check_finite_number(given[name], "against")
        if value < 0:
            raise ValueError(f"'against' needs to hold seconds (got {value} for '{name}')")
        means[name] = CohortMean(value, math.nan, math.nan, 0)
    return _Side("seconds", means, -1)


def _front(x: _Side, y: _Side) -> list[str]:
    """Returns the recommenders that no other dominates, from left to right."""
    places = {
        name: (x.sign * mean.value, y.sign * y.means[name].value) for name, mean in x.means.items()
    }
    known = {name: place for name, place in places.items() if not any(map(math.isnan, place))}
    front = [
        name
        for name, (right, up) in known.items()
        if not any(a >= right and b >= up and (a, b) != (right, up) for a, b in known.values())
    ]
    return sorted(front, key=lambda name: (x.means[name].value, y.means[name].value))


def _draw_front(axes: "Axes", x: _Side, y: _Side, front: list[str]) -> None:
    """Draws the stairs between what some recommender reaches and what none does."""
    # On the way to the right, what is better first gets worse or later gets better.
    steps = "steps-pre" if x.sign > 0 else "steps-post"
    right, up = ([side.means[name].value for name in front] for side in (x, y))
    axes.plot(right, up, color=GREY, linewidth=1.2, drawstyle=steps, zorder=1)


def _is_wide(side: _Side) -> bool:
    values = [mean.value for mean in side.means.values()]
    return min(values) > 0 and max(values) > _MANY_TIMES * min(values)


def _words(mean: CohortMean) -> str:
    return format_interval(mean.value, mean.low, mean.high)
