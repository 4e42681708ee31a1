"""The picture of a training, with one point for every evaluation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.plot.arguments import label
from pyg_recmetrics.plot.picture import Picture, axes_for, finish
from pyg_recmetrics.plot.style import line_style, point_style
from pyg_recmetrics.results import History
from pyg_recmetrics.results.by_name import one_or_by_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    by_name = one_or_by_name(histories, History, "'History'", "histories")
    first = next(iter(by_name.values()))
    metric = first.monitor if metric is None else parse(metric)
    if any(str(metric) not in means for each in by_name.values() for means in each):
        raise ValueError(f"'metric' needs to be one that was evaluated (got '{metric}')")
    every = None if every is None else check_positive_integer(every, "every")
    axes = axes_for(ax)
    for index, (name, each) in enumerate(by_name.items()):
        x = [call if every is None else every * (call + 1) for call in range(len(each))]
        y = [means[str(metric)] for means in each]
        style = line_style(index) | point_style(index)
        best = [] if each.best_index is None else [each.best_index]
        axes.plot(x, y, label=label(name), markevery=best, **style)
    if axes.get_xscale() == "linear":
        axes.locator_params(axis="x", integer=True)
    note = f"marked: the best by {' or '.join(sorted({str(x.monitor) for x in by_name.values()}))}"
    x_label = "call" if every is None else "epoch"
    return finish(axes, x_label, str(metric), note, is_new=ax is None)
