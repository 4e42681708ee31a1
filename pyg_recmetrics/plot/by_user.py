"""Pictures of how users differ."""

from itertools import chain
from typing import TYPE_CHECKING

from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.plot.arguments import Recommenders, label, noun_of
from pyg_recmetrics.plot.picture import Picture, axes_for, describe, finish, span, users
from pyg_recmetrics.plot.style import line_style, point_style
from pyg_recmetrics.results.by_name import results_or_runs_by_name
from pyg_recmetrics.results.nouns import those_who
from pyg_recmetrics.results.runs import runs_of, values_of_runs
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
    by_name = results_or_runs_by_name(results)
    noun, axes = noun_of(by_name.values()), axes_for(ax)
    num_users = []
    for index, (name, result) in enumerate(by_name.items()):
        runs = runs_of(result)
        values = values_of_runs(runs, metric)
        values = values[:, ~values.isnan().any(dim=0)]
        num_users.append(values.size(1))
        values, counts = values.unique(return_counts=True)
        # Users reach the value that they have. No user reaches more than the largest value.
        share = counts.flip(0).cumsum(0).flip(0) / counts.sum()
        is_above_zero = values > 0
        x, y = values[is_above_zero].tolist(), share[is_above_zero].tolist()
        x, y = [0.0, *x, *x[-1:]], [*y[:1], *y, 0.0]
        (line,) = axes.step(x, y, where="pre", label=label(name), **line_style(index))
        describe(line, name or noun, [name])
    axes.set_ylim(0, 1.02)
    axes.margins(x=0.01)
    x_label, y_label = str(parse(metric)), f"share of {those_who(noun)} reach it"
    return finish(axes, x_label, y_label, users(num_users, noun), is_new=ax is None)


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
    by_name = results_or_runs_by_name(results)
    metric = parse(metric)
    runs = chain.from_iterable(map(runs_of, by_name.values()))
    if any(str(metric) not in result.per_user for result in runs):
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
        drawn = axes.errorbar(
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
        for mark in drawn.get_children():
            describe(mark, name or str(metric), [name], [str(metric)])
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
    return finish(axes, "training degree", str(metric), note, is_new=ax is None)
