"""Pictures of which items are recommended."""

import math
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from torch import Tensor

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.plot.arguments import Recommenders, label
from pyg_recmetrics.plot.picture import Picture, axes_for, describe, finish, users
from pyg_recmetrics.plot.style import GREY, line_style, point_style
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.by_name import results_or_runs_by_name
from pyg_recmetrics.results.runs import common_popularity, exposure_of_runs, runs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    by_name = results_or_runs_by_name(results)
    k = check_positive_integer(k, "k")
    runs = list(chain.from_iterable(map(runs_of, by_name.values())))
    popularity = common_popularity(runs, "long_tail")
    order = popularity.argsort(descending=True, stable=True)
    groups = _growing_groups(order.numel())
    # On a logarithmic axis, this is the middle between the first and the last item of a group.
    middles = [math.sqrt(first * last) for first, last in groups]
    axes = axes_for(ax)
    seen = _group_means(popularity[order], groups)
    axes.plot(middles, seen, color=GREY, linewidth=4, label="seen", zorder=1)
    for index, (name, result) in enumerate(by_name.items()):
        counts = exposure_of_runs(runs_of(result), k)[order]
        style = line_style(index) | point_style(index)
        means = _group_means(counts, groups)
        (line,) = axes.plot(middles, means, label=label(name) or "recommended", **style)
        describe(line, name or "recommended", [name])
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set_ylim(0, 1.5 * axes.dataLim.ymax)
    num_with_list = [result.user_counts.num_with_list or 0 for result in runs]
    note = f"top {k:,} of {users(num_with_list)}{_scaled_up(runs)}"
    return finish(axes, "items, most popular first", "users per item", note, is_new=ax is None)


def _scaled_up(runs: Sequence[EvaluationResult]) -> str:
    """Says to how many users the counts of samples are scaled up."""
    samples = [run.sampling for run in runs if run.sampling is not None]
    some = next((sample for sample in samples if not sample.is_complete), None)
    return f", scaled up to all {some.num_users + some.num_without_truth:,}" if some else ""


def _growing_groups(num_items: int) -> list[tuple[int, int]]:
    """The first and the last position of each group of items, counted from one."""
    num_steps = math.ceil(_GROUPS_PER_DECADE * math.log10(max(num_items, 2)))
    bounds = sorted({round(num_items ** (step / num_steps)) for step in range(num_steps + 1)})
    return [(1, 1)] + [(low + 1, high) for low, high in pairwise(bounds)]


def _group_means(values: Tensor, groups: list[tuple[int, int]]) -> list[float]:
    sizes = [last - first + 1 for first, last in groups]
    return [float(group.double().mean()) for group in values.split(sizes)]
