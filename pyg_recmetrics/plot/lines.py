"""Pictures with one point for every cut-off or evaluation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.plot.picture import (
    Picture,
    Recommenders,
    axes_for,
    cut_offs_of,
    finish,
    noun_of,
    users,
    with_looks,
)
from pyg_recmetrics.results import History
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
    axes, num_users = axes_for(ax), list[int]()
    for look, result in with_looks(by_name):
        means = [result.mean(f"{metric}@{k}", level) for k in cut_offs]
        values, low, high, counts, *_ = zip(*means, strict=True)
        axes.plot(cut_offs, values, markevery=max(1, len(cut_offs) // _NUM_MARKERS), **look)
        axes.fill_between(cut_offs, low, high, color=look["color"], alpha=0.15, linewidth=0)
        num_users += counts
    axes.set_ylim(bottom=0)
    _count(axes)
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
    _count(axes)
    note = (
        f"marked: the best by {' or '.join(sorted({str(x.monitor) for x in trainings.values()}))}"
    )
    return finish(axes, "call" if every is None else "epoch", str(metric), note)


def _count(axes: "Axes") -> None:
    """Lets the ticks of the x-axis be whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
