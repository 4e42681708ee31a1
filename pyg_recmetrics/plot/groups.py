"""Pictures of how users, items and metrics differ."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torch import Tensor

from pyg_recmetrics.checks import check_finite_number, check_positive_integer
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.plot.picture import (
    Picture,
    Recommenders,
    all_runs,
    axes_for,
    finish,
    label,
    noun_of,
    span,
    users,
)
from pyg_recmetrics.plot.style import BACKGROUND, GREY, line_style, point_style
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.cohorts import CohortMean
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.counts import those_who
from pyg_recmetrics.results.result import common_popularity, exposure_of, mean_of
from pyg_recmetrics.results.runs import (
    Runnable,
    one_or_recommenders_by_name,
    recommenders_by_name,
)
from pyg_recmetrics.tables import format_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: How far the points of several results at one tick spread, as a fraction of the distance between
#: ticks.
_SPREAD_AT_TICK = 0.7


def distribution(
    results: Recommenders, metric: str | Metric, *, ax: "Axes | None" = None
) -> Picture:
    r"""Plots how a metric is distributed over users: the share of users who reach each value.

    The height of a line at a value is the share of users who score at least this value. The line
    starts at the share of users who score more than zero. The area under the line is the mean.

    If there are several runs, a line is the mean of the lines of single runs.

    Args:
        results (EvaluationResult, Runs, sequence or dict): One recommender with one run or several,
            or several recommenders by name.
        metric (str or Metric): The metric, such as `"ndcg@20"`.
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there is no metric of that name, or if it has one value for all users
            together.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@2")
        >>> figure, axes = plot.distribution(result, "recall@2")
        >>> axes.get_xlabel()
        'recall@2'
    """
    by_name = one_or_recommenders_by_name(results)
    noun, axes = noun_of(by_name.values()), axes_for(ax)
    num_users = []
    for index, (name, result) in enumerate(by_name.items()):
        values = result.values_of(metric)
        values = values[:, ~values.isnan().any(dim=0)]
        num_users.append(values.size(1))
        values, counts = values.unique(return_counts=True)
        # Users reach the value that they have. No user reaches more than the largest value.
        share = counts.flip(0).cumsum(0).flip(0) / counts.sum()
        is_above_zero = values > 0
        x, y = values[is_above_zero].tolist(), share[is_above_zero].tolist()
        x, y = [0.0, *x, *x[-1:]], [*y[:1], *y, 0.0]
        axes.step(x, y, where="pre", label=label(name), **line_style(index))
    axes.set_ylim(0, 1.02)
    axes.margins(x=0.01)
    x_label, y_label = str(parse(metric)), f"share of {those_who(noun)} reach it"
    return finish(axes, x_label, y_label, users(num_users, noun))


def metric_by_degree(
    results: Recommenders,
    metric: str | Metric,
    *,
    bins: int = 5,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots a metric for groups of users by their number of training edges, with intervals.

    If there are several runs, points are means over runs, and the intervals allow for other runs.

    Args:
        results (EvaluationResult, Runs, sequence or dict): One recommender with one run or several,
            or several recommenders of the same users by name.
        metric (str or Metric): The metric, such as `"ndcg@20"`.
        bins (int, optional): The number of groups, see :meth:`EvaluationResult.by_degree`.
            (default: `5`)
        level (float, optional): The level of the confidence intervals. (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If a result does not know the seen edges, if results are of different users, or
            if `level` is not between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> seen = torch.tensor([[1, 2, 2], [2, 2, 1]])
        >>> truth = torch.tensor([[0, 1, 2], [2, 0, 0]])
        >>> task = RankingTask(truth, num_users=3, num_items=3, seen=seen)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@2")
        >>> figure, axes = plot.metric_by_degree(result, "recall@2", bins=3)
        >>> [label.get_text() for label in axes.get_xticklabels()]
        ['0\nn = 1', '1\nn = 1', '2\nn = 1']
    """
    by_name = one_or_recommenders_by_name(results)
    metric = parse(metric)
    if any(str(metric) not in result.per_user for result in all_runs(by_name.values())):
        raise ValueError(
            f"'metric' needs to be one that every result has for each user (got '{metric}')"
        )
    cohorts = {name: result.by_degree(bins, level=level) for name, result in by_name.items()}
    first = next(iter(cohorts.values()))
    if any(list(other) != list(first) for other in cohorts.values()):
        raise ValueError("'results' needs to be of users with the same training degrees")
    axes = axes_for(ax)
    for index, (name, groups) in enumerate(cohorts.items()):
        means = [means[str(metric)] for means in groups.values()]
        # Results stand side by side, so that no interval hides another. No line joins the groups,
        # whose widths differ.
        shift = _SPREAD_AT_TICK * ((index + 0.5) / len(by_name) - 0.5)
        axes.errorbar(
            [position + shift for position in range(len(means))],
            [mean.value for mean in means],
            yerr=[
                [mean.value - mean.low for mean in means],
                [mean.high - mean.value for mean in means],
            ],
            label=label(name),
            linestyle="none",
            capsize=2,
            **point_style(index),
        )
    sizes = [
        [means[str(metric)].num_users for means in groups.values()] for groups in cohorts.values()
    ]
    ticks = [
        f"{degrees}\nn = {span(of_group)}"
        for degrees, of_group in zip(first, zip(*sizes, strict=True), strict=True)
    ]
    axes.set_xticks(range(len(ticks)), ticks, fontsize="small")
    axes.set_xlim(-0.5, len(ticks) - 0.5)
    axes.set_ylim(bottom=0)
    noun = noun_of(by_name.values())
    note = f"means over {users(map(sum, sizes), noun)}, {format_level(level)} confidence intervals"
    return finish(axes, "training degree", str(metric), note)


#: The number of groups of items whose position grows tenfold, on the axis of the long tail.
_GROUPS_PER_DECADE = 5


def long_tail(results: Recommenders, *, k: int = 20, ax: "Axes | None" = None) -> Picture:
    r"""Plots how often items are recommended against how popular they are: the long tail.

    Items are sorted from the most to the least popular, by their number of seen edges, and divided
    into groups whose bounds grow tenfold every few groups. A line shows for each group how many
    users have an item in their top `k`, as the mean over the items of the group, and over runs if
    there are several. The grey line shows how many users have seen an item, as the same mean.

    If a `margin` drew some users who stand for all, their counts are scaled up to all users, and
    the note says so.

    Args:
        results (EvaluationResult, Runs, sequence or dict): One recommender with one run or several,
            or several recommenders by name. They need to hold their lists down to `k`: evaluate
            with `keep_items=k`.
        k (int, optional): The cut-off. (default: `20`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If a result does not hold lists, or not down to `k`, if a result does not know
            the seen edges, or if results are of different seen edges.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> seen = torch.tensor([[1, 2, 2], [2, 2, 1]])
        >>> truth = torch.tensor([[0, 1, 2], [2, 0, 0]])
        >>> task = RankingTask(truth, num_users=3, num_items=3, seen=seen)
        >>> result = evaluate(torch.rand(3), task, "recall@2", keep_items=True)
        >>> figure, axes = plot.long_tail(result, k=1)
        >>> axes.get_ylabel()
        'users per item'
    """
    by_name = one_or_recommenders_by_name(results)
    k = check_positive_integer(k, "k")
    runs = all_runs(by_name.values())
    popularity = common_popularity(runs, "long_tail")
    order = popularity.argsort(descending=True, stable=True)
    groups = _growing_groups(order.numel())
    # On a logarithmic axis, this is the middle between the first and the last item of a group.
    middles = [math.sqrt(first * last) for first, last in groups]
    axes = axes_for(ax)
    seen = _group_means(popularity[order], groups)
    axes.plot(middles, seen, color=GREY, linewidth=4, label="seen", zorder=1)
    for index, (name, result) in enumerate(by_name.items()):
        counts = exposure_of(result, k)[order]
        style = line_style(index) | point_style(index)
        means = _group_means(counts, groups)
        axes.plot(middles, means, label=label(name) or "recommended", **style)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set_ylim(0, 1.5 * axes.dataLim.ymax)
    num_with_list = [result.user_counts.num_with_list or 0 for result in runs]
    note = f"top {k:,} of {users(num_with_list)}{_scaled_up(runs)}"
    return finish(axes, "items, most popular first", "users per item", note)


def _scaled_up(runs: Sequence[EvaluationResult]) -> str:
    """Says to how many users the counts of samples are scaled up."""
    samples = (run.sampling for run in runs if run.sampling and not run.sampling.is_complete)
    some = next(samples, None)
    return f", scaled up to all {some.num_users + some.num_without_truth:,}" if some else ""


def _growing_groups(num_items: int) -> list[tuple[int, int]]:
    """The first and the last position of each group of items, counted from one."""
    num_steps = math.ceil(_GROUPS_PER_DECADE * math.log10(max(num_items, 2)))
    bounds = sorted({round(num_items ** (step / num_steps)) for step in range(num_steps + 1)})
    return [(1, 1)] + [(low + 1, high) for low, high in pairwise(bounds)]


def _group_means(values: Tensor, groups: list[tuple[int, int]]) -> list[float]:
    sizes = [last - first + 1 for first, last in groups]
    return [float(group.double().mean()) for group in values.split(sizes)]


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
    found = recommenders_by_name(results)

    def side(asked: Against) -> _Side:
        if isinstance(asked, Mapping):
            return _seconds(asked, list(found))
        means = {name: mean_of(result, asked, level) for name, result in found.items()}
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
        axes.plot([across.value], [up.value], linestyle="none", label=label(name), **style)
    values = [mean.value for mean in x.means.values()]
    if x.name == "seconds" and max(values) > _MANY_TIMES * min(values) > 0:
        axes.set_xscale("log")
    _draw_front(axes, x, y, front)
    note = f"filled: no other is better in both; means, {format_level(level)} confidence intervals"
    return finish(axes, x.name, y.name, note)


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
