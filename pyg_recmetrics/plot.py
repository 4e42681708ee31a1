r"""Pictures of results.

Each function takes a result, or a dictionary of several by name, and returns `(figure, axes)`. It
draws into `ax` if given, and else into a figure of its own that belongs to no window: save it by
`figure.savefig("figure.pdf")`, or pass the `ax` of `plt.subplots()`. Nothing global is changed.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; line styles and
markers differ too, so that the pictures survive a black-and-white printer.

The extra `plot` installs matplotlib, which is all that is needed.
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
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.cohorts import CohortMean, cohort_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A result, or several by name.
Results: TypeAlias = EvaluationResult | Mapping[str, EvaluationResult]

# Okabe and Ito, "Color universal design" (2008); yellow is too pale for lines on white paper.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "0.45"

# A legend of more names than these stands beside the axes, as it would cover too much of them.
_MANY = 4


def metric_at_k(
    results: Results,
    metric: str = "ndcg",
    *,
    max_k: int | None = None,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> "tuple[Figure, Axes]":
    r"""Plots a metric against its cut-off, with a band of confidence.

    Args:
        results (EvaluationResult or dict): One result, or several by name.
        metric (str, optional): A metric with a cut-off, spelled without it, such as
            `"ndcg(gain=exponential)"`. (default: `"ndcg"`)
        max_k (int, optional): The largest cut-off. (default: `None`, how deep was ranked, or the
            largest cut-off that was evaluated where everything was ranked)
        level (float, optional): The level of the confidence interval of the mean over users.
            (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there is no such metric, or `max_k` is deeper than was ranked.

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
    for place, (name, result) in enumerate(by_name.items()):
        means = [_mean(result, f"{metric}@{k}", level) for k in cut_offs]
        values, low, high = zip(*(mean[:3] for mean in means), strict=True)
        line = _line(place)
        axes.plot(cut_offs, values, label=name, **line, **_markers(place, len(cut_offs)))
        axes.fill_between(cut_offs, low, high, color=line["color"], alpha=0.2, linewidth=0)
    axes.margins(x=0.03)
    axes.locator_params(axis="x", integer=True)
    axes.set_ylim(bottom=0)
    return _finish(axes, "k", f"{label}@k", by_name)


def precision_recall_curve(
    results: Results, *, max_k: int | None = None, ax: "Axes | None" = None
) -> "tuple[Figure, Axes]":
    r"""Plots the mean precision at k against the mean recall at k, for every k up to `max_k`.

    Users without ground truth count as in the results, and precision and recall are those of their
    convention. The numbers of torchmetrics are in :func:`metrics.precision_recall_curve`.

    Args:
        results (EvaluationResult or dict): One result, or several by name.
        max_k (int, optional): The largest cut-off. (default: `None`, see :func:`metric_at_k`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `max_k` is deeper than was ranked.

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
    for place, (name, result) in enumerate(by_name.items()):
        recall, precision = (
            [_mean(result, f"{metric}@{k}").value for k in cut_offs]
            for metric in ("recall", "precision")
        )
        line = _line(place)
        axes.plot(recall, precision, label=name, **line, **_markers(place, len(cut_offs)))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return _finish(axes, "recall@k", "precision@k", by_name)


def distribution(
    results: Results, metric: str | Metric, *, ax: "Axes | None" = None
) -> "tuple[Figure, Axes]":
    r"""Plots how a metric is distributed over users: the share of users who reach each value.

    Where a line is higher, more users have a value at least as large. It starts with the share of
    users who score more than zero, and the area under it is the mean.

    Args:
        results (EvaluationResult or dict): One result, or several by name.
        metric (str or Metric): The metric, such as `"ndcg@20"`.
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there is no such metric, or it has one value for all users together.

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
    for place, (name, result) in enumerate(by_name.items()):
        values = result.contributions(metric)
        values, counts = values[~values.isnan()].unique(return_counts=True)
        # Those who have a value itself still reach it; nobody reaches more than the last.
        share = counts.flip(0).cumsum(0).flip(0) / counts.sum()
        is_above_zero = values > 0
        x, y = values[is_above_zero].tolist(), share[is_above_zero].tolist()
        x, y = [0.0, *x, *x[-1:]], [*y[:1], *y, 0.0]
        axes.step(x, y, where="pre", label=name, **_line(place))
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
    r"""Plots a metric for users of few and of many training edges, with intervals.

    Args:
        results (EvaluationResult or dict): One result, or several by name, of the same users.
        metric (str or Metric): The metric, such as `"ndcg@20"`.
        bins (int, optional): The number of groups, see :meth:`EvaluationResult.by_degree`.
            (default: `5`)
        level (float, optional): The level of the confidence intervals. (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If seen edges are not known, or results are of different users.

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
    for place, (name, groups) in enumerate(cohorts.items()):
        means = [groups[label][str(metric)] for label in groups]
        # Side by side, so that no interval hides another.
        shift = 0.3 * ((place + 0.5) / len(by_name) - 0.5)
        axes.errorbar(
            [position + shift for position in range(len(means))],
            [mean.value for mean in means],
            yerr=[
                [mean.value - mean.low for mean in means],
                [mean.high - mean.value for mean in means],
            ],
            label=name,
            capsize=3,
            **_line(place),
            **_markers(place, 1),
        )
    sizes = [means[str(metric)].num_users for means in first.values()]
    ticks = [f"{label}\nn = {size:,}" for label, size in zip(first, sizes, strict=True)]
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_ylim(bottom=0)
    return _finish(axes, "training degree", str(metric), by_name)


def long_tail(results: Results, k: int = 20, *, ax: "Axes | None" = None) -> "tuple[Figure, Axes]":
    r"""Plots how often items are recommended against how popular they are: the long tail.

    Items go from the most to the least popular by their number of seen edges, in groups that grow
    tenfold every few steps. For each group, the mean number of users is shown to whom one of its
    items is recommended in the top `k`; the grey line shows by how many it was seen.

    Args:
        results (EvaluationResult or dict): One result, or several by name, that kept their lists:
            evaluate with `keep_items=True`.
        k (int, optional): The cut-off. (default: `20`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If lists were not kept, or are shorter than `k`, or seen edges are not known.

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
    # The place of a group on a logarithmic axis is in the middle of its first and its last item.
    places = [math.sqrt(first * last) for first, last in groups]
    axes = _axes(ax)
    seen = _group_means(popularity[order], groups)
    axes.plot(places, seen, color=_GREY, linewidth=4, alpha=0.5, label="seen", zorder=1)
    for place, (name, result) in enumerate(by_name.items()):
        counts = _recommended(result, k, popularity.numel())[order]
        line = _line(place)
        means = _group_means(counts, groups)
        axes.plot(places, means, label=name or "recommended", **line, **_markers(place, 1))
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
    known = [depth for depth in depths if depth is not None]
    if len(known) < len(depths):
        raise ValueError("'max_k' needs to be given where everything was ranked (got None)")
    return list(range(1, min(known) + 1))


def _mean(result: EvaluationResult, metric: str | Metric, level: float = 0.95) -> CohortMean:
    return cohort_mean(result.contributions(metric), level, "normal")


def _popularity(by_name: Mapping[str, EvaluationResult]) -> Tensor:
    """How often items were seen, which must be the same for all results: `[num_items]`."""
    counts = []
    for result in by_name.values():
        task = result.task
        if task is None:
            raise ValueError("'results' needs to know seen edges (got a result without a task)")
        counts.append(torch.bincount(task.seen[1], minlength=task.num_items).cpu())
    if not all(torch.equal(count, counts[0]) for count in counts):
        raise ValueError("'results' needs to be of the same seen edges (got different ones)")
    return counts[0]


def _recommended(result: EvaluationResult, k: int, num_items: int) -> Tensor:
    """To how many users each item is recommended in the top `k`, of shape `[num_items]`."""
    items, depth = result.ranked.items, result.ranked.depth
    if items is None:
        raise ValueError("'results' needs to hold lists: evaluate with 'keep_items=True'")
    if depth is not None and k > depth:
        raise ValueError(f"'k' needs to be at most {depth}, the depth of the lists (got {k})")
    top = items[:, :k]
    return torch.bincount(top[top >= 0], minlength=num_items).cpu()


def _growing_groups(num_items: int) -> list[tuple[int, int]]:
    """The first and the last place of each group, from one on, five of them for each tenfold."""
    steps = math.ceil(5 * math.log10(max(num_items, 2)))
    bounds = sorted({round(num_items ** (step / steps)) for step in range(steps + 1)})
    return [(1, 1)] + [(low + 1, high) for low, high in pairwise(bounds)]


def _group_means(values: Tensor, groups: list[tuple[int, int]]) -> list[float]:
    sizes = [last - first + 1 for first, last in groups]
    return [float(part.double().mean()) for part in values.split(sizes)]


def _axes(ax: "Axes | None") -> "Axes":
    with requires_extra("matplotlib", "plot", "plot"):
        from matplotlib.figure import Figure
    if ax is not None:
        return ax
    return Figure(figsize=(5, 3.5), layout="constrained").subplots()


def _line(place: int) -> dict[str, Any]:
    return {
        "color": _COLORS[place % len(_COLORS)],
        "linestyle": _LINES[place % len(_LINES)],
        "linewidth": 1.6,
    }


def _markers(place: int, num_points: int) -> dict[str, Any]:
    return {
        "marker": _MARKERS[place % len(_MARKERS)],
        "markersize": 5,
        "markevery": max(1, num_points // 6),
    }


def _finish(axes: "Axes", x: str, y: str, names: Iterable[str]) -> "tuple[Figure, Axes]":
    """Labels the axes, and names the lines where they have names."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("'ax' needs to belong to a figure (got one without)")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    names = [name for name in names if name]
    if len(names) > _MANY:
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    elif names:
        axes.legend(frameon=False)
    return figure, axes
