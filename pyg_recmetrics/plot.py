r"""Pictures of results.

Each function takes one result, or a dictionary of results by name, and returns `(figure, axes)`.
It draws on `ax` if you pass axes, such as those of `plt.subplots()`. Otherwise it draws on a new
figure that belongs to no window; `figure.savefig("figure.pdf")` saves it. The functions change no
global settings.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart. Line styles and
markers differ too, so black-and-white prints stay readable.

The functions need only matplotlib, which the extra `plot` installs.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_level, check_positive_integer
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.metrics.beyond_accuracy import exposure
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.cohorts import CohortMean, cohort_mean
from pyg_recmetrics.task.catalogue import check_has

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "distribution",
    "long_tail",
    "metric_at_k",
    "metric_by_degree",
    "precision_recall_curve",
]

#: One result, or several by name.
Results: TypeAlias = EvaluationResult | Mapping[str, EvaluationResult]

#: Okabe and Ito, "Color universal design" (2008), without yellow, which is too pale for lines on
#: white paper.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: The line of what was seen, which is behind all others.
_GREY = "0.45"

#: Width and height of a figure, in inches.
_FIGURE_SIZE = (5, 3.5)

#: The width of a line and the size of a marker, in points.
_LINE_WIDTH = 1.6
_MARKER_SIZE = 5

#: About how many markers a line with many points has.
_NUM_MARKERS = 6

#: The largest number of names in a legend that stands inside of the axes. A larger legend would
#: cover too much of them, so it stands beside.
_MAX_NAMES_INSIDE = 4

#: How far the points of several results at one tick spread, as a fraction of the distance between
#: ticks.
_SPREAD_AT_TICK = 0.3

#: The number of groups of items whose position grows tenfold, on the axis of the long tail.
_GROUPS_PER_DECADE = 5


def metric_at_k(
    results: Results,
    metric: str = "ndcg",
    *,
    max_k: int | None = None,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    r"""Plots a metric against its cut-off, with a confidence band.

    Args:
        results (EvaluationResult or dict): One result, or several by name.
        metric (str, optional): The metric, which needs to have a cut-off, spelled without it, such
            as `"ndcg(gain=exponential)"`. (default: `"ndcg"`)
        max_k (int, optional): The largest cut-off. (default: `None`, the depth of the rankings; for
            a ranking of all candidates, the largest cut-off of the result's metrics)
        level (float, optional): The level of the confidence intervals of the mean over users.
            (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there is no metric of that name, if it has no cut-off, if `max_k` is larger
            than the depth of a ranking, or if `level` is not between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@3")
        >>> figure, axes = plot.metric_at_k({"Constant": result}, "recall")
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('k', 'recall@k')
    """
    by_name = _by_name(results)
    check_level(level)
    cut_offs = _cut_offs(by_name, max_k)
    label = parse(f"{metric}@{cut_offs[-1]}").label
    axes = _axes(ax)
    for index, (name, result) in enumerate(by_name.items()):
        means = [_mean(result, f"{metric}@{k}", level) for k in cut_offs]
        values, low, high = zip(*(mean[:3] for mean in means), strict=True)
        line = _line_style(index)
        axes.plot(cut_offs, values, label=name, **line, **_marker_style(index, len(cut_offs)))
        axes.fill_between(cut_offs, low, high, color=line["color"], alpha=0.2, linewidth=0)
    axes.margins(x=0.03)
    axes.locator_params(axis="x", integer=True)
    axes.set_ylim(bottom=0)
    return _finish(axes, "k", f"{label}@k", by_name)


def precision_recall_curve(
    results: Results, *, max_k: int | None = None, ax: "Axes | None" = None
) -> "tuple[Figure, Axes]":
    r"""Plots the mean precision at k against the mean recall at k, for every k up to `max_k`.

    Users without ground truth count as they do in the results. Precision and recall are those of
    the convention of each result. For the numbers of torchmetrics, see
    :func:`pyg_recmetrics.metrics.precision_recall_curve`.

    Args:
        results (EvaluationResult or dict): One result, or several by name.
        max_k (int, optional): The largest cut-off. (default: `None`, see :func:`metric_at_k`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `max_k` is larger than the depth of a ranking.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "recall@3")
        >>> figure, axes = plot.precision_recall_curve(result)
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('recall@k', 'precision@k')
    """
    by_name = _by_name(results)
    cut_offs = _cut_offs(by_name, max_k)
    axes = _axes(ax)
    for index, (name, result) in enumerate(by_name.items()):
        recall, precision = (
            [_mean(result, f"{metric}@{k}").value for k in cut_offs]
            for metric in ("recall", "precision")
        )
        line = _line_style(index)
        axes.plot(recall, precision, label=name, **line, **_marker_style(index, len(cut_offs)))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return _finish(axes, "recall@k", "precision@k", by_name)


def distribution(
    results: Results, metric: str | Metric, *, ax: "Axes | None" = None
) -> "tuple[Figure, Axes]":
    r"""Plots how a metric is distributed over users: the share of users who reach each value.

    The height of a line at a value is the share of users who score at least this value. The line
    starts at the share of users who score more than zero. The area under the line is the mean.

    Args:
        results (EvaluationResult or dict): One result, or several by name.
        metric (str or Metric): The metric, such as `"ndcg@20"`.
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes.

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
    by_name = _by_name(results)
    axes = _axes(ax)
    for index, (name, result) in enumerate(by_name.items()):
        values = result.contributions(metric)
        values, counts = values[~values.isnan()].unique(return_counts=True)
        # Users reach the value that they have. No user reaches more than the largest value.
        share = counts.flip(0).cumsum(0).flip(0) / counts.sum()
        is_above_zero = values > 0
        x, y = values[is_above_zero].tolist(), share[is_above_zero].tolist()
        x, y = [0.0, *x, *x[-1:]], [*y[:1], *y, 0.0]
        axes.step(x, y, where="pre", label=name, **_line_style(index))
    axes.set_ylim(0, 1.02)
    axes.margins(x=0.01)
    return _finish(axes, str(parse(metric)), "share of users who reach it", by_name)


def metric_by_degree(
    results: Results,
    metric: str | Metric,
    *,
    bins: int = 5,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    r"""Plots a metric for groups of users by their number of training edges, with intervals.

    Args:
        results (EvaluationResult or dict): One result, or several of the same users, by name.
        metric (str or Metric): The metric, such as `"ndcg@20"`.
        bins (int, optional): The number of groups, see :meth:`EvaluationResult.by_degree`.
            (default: `5`)
        level (float, optional): The level of the confidence intervals. (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes.

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
    by_name = _by_name(results)
    metric = parse(metric)
    cohorts = {name: result.by_degree(bins, level=level) for name, result in by_name.items()}
    first = next(iter(cohorts.values()))
    if any(list(other) != list(first) for other in cohorts.values()):
        raise ValueError("'results' needs to be of the same users (got different training degrees)")
    axes = _axes(ax)
    for index, (name, groups) in enumerate(cohorts.items()):
        means = [groups[label][str(metric)] for label in groups]
        # Results stand side by side, so that no interval hides another.
        shift = _SPREAD_AT_TICK * ((index + 0.5) / len(by_name) - 0.5)
        axes.errorbar(
            [position + shift for position in range(len(means))],
            [mean.value for mean in means],
            yerr=[
                [mean.value - mean.low for mean in means],
                [mean.high - mean.value for mean in means],
            ],
            label=name,
            capsize=3,
            **_line_style(index),
            **_marker_style(index, 1),
        )
    sizes = [means[str(metric)].num_users for means in first.values()]
    ticks = [f"{label}\nn = {size:,}" for label, size in zip(first, sizes, strict=True)]
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_ylim(bottom=0)
    return _finish(axes, "training degree", str(metric), by_name)


def long_tail(results: Results, k: int = 20, *, ax: "Axes | None" = None) -> "tuple[Figure, Axes]":
    r"""Plots how often items are recommended against how popular they are: the long tail.

    Items are sorted from the most to the least popular, by their number of seen edges, and divided
    into groups whose bounds grow tenfold every few groups. A line shows for each group how many
    users have an item in their top `k`, as the mean over the items of the group. The grey line
    shows how many users have seen an item, as the same mean.

    Args:
        results (EvaluationResult or dict): One result, or several by name. They need to hold their
            lists down to `k`: evaluate with `keep_items=k`.
        k (int, optional): The cut-off. (default: `20`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes.

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
    by_name = _by_name(results)
    check_positive_integer(k, "k")
    popularity = _popularity(by_name)
    order = popularity.argsort(descending=True, stable=True)
    groups = _growing_groups(order.numel())
    # On a logarithmic axis, this is the middle between the first and the last item of a group.
    middles = [math.sqrt(first * last) for first, last in groups]
    axes = _axes(ax)
    seen = _group_means(popularity[order], groups)
    axes.plot(middles, seen, color=_GREY, linewidth=4, alpha=0.5, label="seen", zorder=1)
    for index, (name, result) in enumerate(by_name.items()):
        counts = exposure(result.ranked, k).cpu()[order]
        line = _line_style(index)
        means = _group_means(counts, groups)
        axes.plot(middles, means, label=name or "recommended", **line, **_marker_style(index, 1))
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set_ylim(0, 1.5 * axes.dataLim.ymax)
    return _finish(axes, "items, most popular first", "users per item", ["seen", *by_name])


def _by_name(results: Results) -> dict[str, EvaluationResult]:
    by_name = {"": results} if isinstance(results, EvaluationResult) else dict(results)
    if not by_name:
        raise ValueError("'results' needs to hold at least one result (got none)")
    for result in by_name.values():
        if not isinstance(result, EvaluationResult):
            raise TypeError(
                f"'results' needs to hold 'EvaluationResult' (got {type(result).__name__})"
            )
    return by_name


def _cut_offs(by_name: Mapping[str, EvaluationResult], max_k: int | None) -> list[int]:
    if max_k is not None:
        return list(range(1, check_positive_integer(max_k, "max_k") + 1))
    depths = [result.ranked.depth or result.max_k for result in by_name.values()]
    finite_depths = [depth for depth in depths if depth is not None]
    if len(finite_depths) < len(depths):
        raise ValueError("'max_k' needs to be given if all candidates were ranked (got None)")
    return list(range(1, min(finite_depths) + 1))


def _mean(result: EvaluationResult, metric: str | Metric, level: float = 0.95) -> CohortMean:
    return cohort_mean(result.contributions(metric), level, "normal")


def _popularity(by_name: Mapping[str, EvaluationResult]) -> Tensor:
    """How often each item was seen, of shape `[num_items]`; the same for all results."""
    counts = []
    for result in by_name.values():
        check_has(result.ranked.catalogue, "popularity", "long_tail")
        counts.append(result.ranked.required_catalogue.popularity.cpu())
    if not all(torch.equal(count, counts[0]) for count in counts):
        raise ValueError("'results' needs to be of the same seen edges (got different ones)")
    return counts[0]


def _growing_groups(num_items: int) -> list[tuple[int, int]]:
    """The first and the last position of each group of items, counted from one."""
    num_steps = math.ceil(_GROUPS_PER_DECADE * math.log10(max(num_items, 2)))
    bounds = sorted({round(num_items ** (step / num_steps)) for step in range(num_steps + 1)})
    return [(1, 1)] + [(low + 1, high) for low, high in pairwise(bounds)]


def _group_means(values: Tensor, groups: list[tuple[int, int]]) -> list[float]:
    sizes = [last - first + 1 for first, last in groups]
    return [float(group.double().mean()) for group in values.split(sizes)]


def _axes(ax: "Axes | None") -> "Axes":
    with requires_extra("matplotlib", "plot", "plot"):
        from matplotlib.figure import Figure
    if ax is not None:
        return ax
    return Figure(figsize=_FIGURE_SIZE, layout="constrained").subplots()


def _line_style(index: int) -> dict[str, Any]:
    """The colour and the dashes of the line of a result, by its position among the results."""
    return {
        "color": _COLORS[index % len(_COLORS)],
        "linestyle": _LINE_STYLES[index % len(_LINE_STYLES)],
        "linewidth": _LINE_WIDTH,
    }


def _marker_style(index: int, num_points: int) -> dict[str, Any]:
    """The markers on the line of a result, by its position among the results."""
    return {
        "marker": _MARKERS[index % len(_MARKERS)],
        "markersize": _MARKER_SIZE,
        "markevery": max(1, num_points // _NUM_MARKERS),
    }


def _finish(axes: "Axes", x: str, y: str, names: Iterable[str]) -> "tuple[Figure, Axes]":
    """Labels the axes, and adds a legend if the lines have names."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("'ax' needs to belong to a figure (got one without)")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    names = [name for name in names if name]
    if len(names) > _MAX_NAMES_INSIDE:
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    elif names:
        axes.legend(frameon=False)
    return figure, axes
