"""Pictures of lines: by cut-off, by evaluation, by degree of users, by popularity of items."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.plot.picture import (
    GREY,
    Picture,
    Recommenders,
    all_runs,
    axes_for,
    cut_offs_of,
    finish,
    noun_of,
    span,
    users,
    with_looks,
)
from pyg_recmetrics.results import History
from pyg_recmetrics.results.result import common_popularity, exposure_of
from pyg_recmetrics.results.runs import by_name, recommenders_by_name
from pyg_recmetrics.tables import format_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: About how many markers a line with many points has.
_NUM_MARKERS = 6

#: The cut-offs that a curve of precision and recall marks.
_MARKED = (1, 5, 10, 20, 50, 100, 200, 500, 1000)


def metric_at_k(
    results: Recommenders,
    metric: str = "ndcg",
    *,
    max_k: int | None = None,
    level: float = 0.95,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots a metric against its cut-off, with a confidence band.

    The band of several runs is one for other users and other runs.

    Args:
        results (EvaluationResult, Runs, sequence or dict): One recommender with one run or several,
            or several recommenders by name.
        metric (str, optional): The metric, which needs to have a cut-off, spelled without it, such
            as `"ndcg(gain=exponential)"`. (default: `"ndcg"`)
        max_k (int, optional): The largest cut-off. (default: `None`, the depth of the rankings; for
            a ranking of all candidates, the largest cut-off of the result's metrics)
        level (float, optional): The level of the confidence intervals of the mean over users.
            (default: `0.95`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

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
    by_name = recommenders_by_name(results, or_one=True)
    if "@" in str(metric):
        raise ValueError(
            f"'metric' needs to be a metric without a cut-off, such as 'recall' (got '{metric}')"
        )
    cut_offs = cut_offs_of(by_name.values(), max_k)
    axes = axes_for(ax)
    num_users = list[int]()
    for look, result in with_looks(by_name):
        means = [result.mean(f"{metric}@{k}", level) for k in cut_offs]
        values, low, high, counts, *_ = zip(*means, strict=True)
        axes.plot(cut_offs, values, markevery=max(1, len(cut_offs) // _NUM_MARKERS), **look)
        axes.fill_between(cut_offs, low, high, color=look["color"], alpha=0.15, linewidth=0)
        num_users += counts
    axes.set_ylim(bottom=0)
    _use_whole_ticks(axes)
    who = users(num_users, noun_of(by_name.values()))
    note = f"mean over {who}, {format_level(level)} confidence band"
    return finish(axes, "k", f"{parse(f'{metric}@{cut_offs[-1]}').label}@k", note)


def precision_recall_curve(
    results: Recommenders, *, max_k: int | None = None, ax: "Axes | None" = None
) -> Picture:
    r"""Plots the mean precision at k against the mean recall at k, for every k up to `max_k`.

    The lines are marked at a few cut-offs. The marks of the line that reaches furthest say which.

    A result is drawn as it counts: with precision and recall of its convention, and with users
    without ground truth as its `empty_target_action` says. Several runs are drawn by their mean.

    Args:
        results (EvaluationResult, Runs, sequence or dict): One recommender with one run or several,
            or several recommenders by name.
        max_k (int, optional): The largest cut-off, see :func:`metric_at_k`. (default: `None`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `results` is or holds anything else.
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
    by_name = recommenders_by_name(results, or_one=True)
    cut_offs = cut_offs_of(by_name.values(), max_k)
    marked = [place for place, k in enumerate(cut_offs) if k in _MARKED]
    axes, furthest, num_users = axes_for(ax), [(0.0, 0.0)], []
    for look, result in with_looks(by_name):
        x, y = (
            [result.mean(f"{metric}@{k}") for k in cut_offs] for metric in ("recall", "precision")
        )
        points = [(recall.value, precision.value) for recall, precision in zip(x, y, strict=True)]
        axes.plot(*zip(*points, strict=True), markevery=marked, **look)
        furthest = max(furthest, points, key=lambda points: points[-1])
        num_users += [mean.num_users for mean in x + y]
    axes.margins(0.1)
    axes.set(xlim=(0, None), ylim=(0, None))
    for place in marked:
        text = f"{cut_offs[place]}" if place else "k = 1"
        axes.annotate(text, furthest[place], (3, 3), textcoords="offset points", fontsize="small")
    note = f"means over {users(num_users, noun_of(by_name.values()))}, no bands"
    return finish(axes, "recall@k", "precision@k", note)


def history(
    histories: History | Mapping[str, History],
    metric: str | Metric | None = None,
    *,
    every: int | None = None,
    ax: "Axes | None" = None,
) -> Picture:
    r"""Plots a metric against the evaluations of a training, and marks the best of them.

    A notebook draws it again after every evaluation if it shows a picture by
    `shown = display(picture, display_id=True)`, and then calls `shown.update(picture)`.

    Args:
        histories (History or dict): The :attr:`Evaluator.history` of one training, or several by
            name.
        metric (str or Metric, optional): The metric, which needs to be one that was evaluated.
            (default: `None`, the one that decides which evaluation is the best)
        every (int, optional): The number of epochs from one evaluation to the next, so that the
            picture counts epochs from one. (default: `None`, it counts calls from zero, as the
            table of a history does)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `histories` is or holds anything else.
        ValueError: If a history does not have the metric, or if `every` is not positive.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Evaluator, RankingTask, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> evaluator = Evaluator(task, ["recall@1", "mrr@3"])
        >>> for shift in range(3):
        ...     result = evaluator(torch.tensor([1.0, 3.0, 2.0]).roll(shift))
        >>> figure, axes = plot.history(evaluator.history, "mrr@3", every=5)
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('epoch', 'mrr@3')
    """
    trainings = by_name(histories, History, "'History'", "histories", or_one=True)
    first = next(iter(trainings.values()))
    metric = first.monitor if metric is None else parse(metric)
    if any(str(metric) not in means for each in trainings.values() for means in each):
        raise ValueError(f"'metric' needs to be one that was evaluated (got '{metric}')")
    step = 1 if every is None else check_positive_integer(every, "every")
    first_x = 0 if every is None else step
    axes = axes_for(ax)
    for look, each in with_looks(trainings):
        x = [first_x + step * call for call in range(len(each))]
        y = [means[str(metric)] for means in each]
        axes.plot(x, y, markevery=[] if each.best_index is None else [each.best_index], **look)
    _use_whole_ticks(axes)
    note = (
        f"marked: the best by {' or '.join(sorted({str(x.monitor) for x in trainings.values()}))}"
    )
    return finish(axes, "call" if every is None else "epoch", str(metric), note)


def _use_whole_ticks(axes: "Axes") -> None:
    """Lets the ticks of the x-axis be whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


#: How far the points of several results at one tick spread, as a fraction of the distance between
#: ticks.
_SPREAD_AT_TICK = 0.7

#: The number of groups of items whose position grows tenfold, on the axis of the long tail.
_GROUPS_PER_DECADE = 5


def metric_by_degree(
    results: Recommenders,
    metric: str | Metric,
    *,
    bins: int = 5,
    same_degree: bool = False,
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
        same_degree (bool, optional): Whether each value is compared with users who have as many
            relevant items, see :meth:`EvaluationResult.by`. (default: `False`)
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
    by_name = recommenders_by_name(results, or_one=True)
    metric = parse(metric)
    if any(str(metric) not in result.per_user for result in all_runs(by_name.values())):
        raise ValueError(
            f"'metric' needs to be one that every result has for each user (got '{metric}')"
        )
    cohorts = {
        name: result.by_degree(bins, same_degree=same_degree, level=level)
        for name, result in by_name.items()
    }
    first = next(iter(cohorts.values()))
    if any(list(other) != list(first) for other in cohorts.values()):
        raise ValueError("'results' needs to be of users with the same training degrees")
    axes = axes_for(ax)
    sizes = []
    for index, (look, groups) in enumerate(with_looks(cohorts)):
        means = [of[str(metric)] for of in groups.values()]
        values, low, high, counts, *_ = zip(*means, strict=True)
        # Results stand side by side, so that no interval hides another. No line joins the groups,
        # whose widths differ.
        shift = _SPREAD_AT_TICK * ((index + 0.5) / len(by_name) - 0.5)
        x = [position + shift for position in range(len(first))]
        axes.vlines(x, low, high, color=look["color"])
        axes.plot(x, values, **look | {"linestyle": "none"})
        sizes.append(counts)
    ticks = [f"{of}\nn = {span(n)}" for of, n in zip(first, zip(*sizes, strict=True), strict=True)]
    axes.set_xticks(range(len(ticks)), ticks, fontsize="small")
    axes.set_xlim(-0.5, len(ticks) - 0.5)
    if not same_degree:
        axes.set_ylim(bottom=0)
    who = users(map(sum, sizes), noun_of(by_name.values()))
    note = f"means over {who}, {format_level(level)} confidence intervals"
    note = "; ".join([note, *first.remarks])
    return finish(axes, "training degree", str(metric), note)


def long_tail(results: Recommenders, *, k: int = 20, ax: "Axes | None" = None) -> Picture:
    r"""Plots how often items are recommended against how popular they are: the long tail.

    Items are sorted from the most to the least popular, by their number of seen edges, and divided
    into groups whose bounds grow tenfold every few groups. A line shows for each group how many
    users have an item in their top `k`, as the mean over the items of the group, and over runs if
    there are several. The grey line shows how many users have seen an item, as the same mean.

    If a `margin` drew some users who stand for all, their counts are scaled up to all users, as
    the note mentions.

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
    by_name = recommenders_by_name(results, or_one=True)
    k = check_positive_integer(k, "k")
    runs = all_runs(by_name.values())
    popularity = common_popularity(runs, "long_tail")
    ends = _ends_of_groups(popularity.numel())
    groups = popularity.argsort(descending=True, stable=True).tensor_split(ends[:-1])
    # On a logarithmic axis, this is the middle between the first and the last item of a group.
    middles = [math.sqrt((a + 1) * b) for a, b in zip([0, *ends], ends, strict=False)]
    axes = axes_for(ax)
    seen = [float(popularity[group].double().mean()) for group in groups]
    axes.plot(middles, seen, color=GREY, linewidth=4, label="seen", zorder=1)
    for look, result in with_looks(by_name):
        counts = exposure_of(result, k)
        means = [float(counts[group].double().mean()) for group in groups]
        axes.plot(middles, means, **look | {"label": look["label"] or "recommended"})
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set_ylim(0, 1.5 * axes.dataLim.ymax)
    note = f"top {k:,} of {users(run.user_counts.num_with_list or 0 for run in runs)}"
    samples = [run._sampled for run in runs if run._sampled]
    if samples:
        note += f", scaled up to all {samples[0].num_users + samples[0].num_without_truth:,}"
    return finish(axes, "items, most popular first", "users per item", note)


def _ends_of_groups(num_items: int) -> list[int]:
    """Returns the place of the last item of each group, counted from one."""
    num_steps = math.ceil(_GROUPS_PER_DECADE * math.log10(num_items))
    # On the host, whatever the default device is.
    last = math.log10(num_items)
    ends = torch.logspace(0, last, num_steps + 1, dtype=torch.double, device="cpu")
    return [int(end) for end in ends.round().unique()]
