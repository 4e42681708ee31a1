r"""Pictures of results and of trainings.

Each function takes one result, or a dictionary of results by name, and returns a :class:`Picture`.
Some take something else: :func:`differences` takes what :func:`~pyg_recmetrics.compare` returned,
:func:`history` what an :class:`~pyg_recmetrics.Evaluator` remembers of a training, and
:func:`means` also a :class:`~pyg_recmetrics.Benchmark`. A notebook shows a picture if it is the
last expression of a cell. It is also a pair: `figure, axes = plot.metric_at_k(results)`, and
`figure.savefig("figure.pdf")` saves it.

The functions draw on `ax` if you pass axes, such as those of `plt.subplots(layout="constrained")`.
:func:`means` and :func:`differences` have axes for each metric, and draw on a `figure` or on a
subfigure. Otherwise a picture has a new figure, which belongs to no window. No global settings
change.

Results are drawn together if :func:`~pyg_recmetrics.compare` takes them together: they are of one
task and one convention. The title says what stands behind the numbers: how many users, the level of
the intervals, and in brief what results know against themselves, such as candidates of each user
alone. A title of your own takes its place. The legend stands beside the axes, where the layout
`"constrained"` makes room.

Up to 42 recommenders differ in colours, dashes and markers. Colours have a contrast of at least
3 : 1 on white, and colour-blind readers can tell them apart.

The functions need only matplotlib, which the extra `plot` installs.
"""

import io
import itertools
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from pyg_recmetrics.benchmark import Benchmark
from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.results import Comparison, History
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.notes import lift_in_words, notes_of_all
from pyg_recmetrics.results.result import Measured, common_popularity, exposure_of
from pyg_recmetrics.results.runs import (
    Runnable,
    by_name,
    every_run,
    in_brief,
    metrics_in_common,
    recommenders_by_name,
    remarks_in_brief,
)
from pyg_recmetrics.tables import format_level, p_in_words
from pyg_recmetrics.utils import requires_package, singular

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "Picture",
    "differences",
    "history",
    "long_tail",
    "means",
    "metric_at_k",
    "metric_by_degree",
    "precision_recall_curve",
]
__dir__ = __all__.copy  # what completion shows

#: All have a contrast of at least 3 : 1 on white. They stay apart for readers with any of the three
#: kinds of colour blindness, since neighbours differ in lightness as well as in hue.
COLORS = ("#00488F", "#DD7500", "#00A060", "#951A56", "#878AEA", "#603500", "#000000")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 3, 1, 3)), (0, (5, 5)), (0, (6, 2, 1, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

#: The line of what was seen, which is behind all others, and the text of notes.
GREY = "#858585"
NOTE_COLOR = "#505050"

#: What is hollow has the colour of the page.
BACKGROUND = "white"

#: The width of a line, in points.
LINE_WIDTH = 1.6


def style_of(index: int) -> dict[str, Any]:
    """Returns the look of the line and the points of a result, by its place among the results."""
    color = COLORS[index % len(COLORS)]
    return {
        "color": color,
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": LINE_WIDTH,
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 5,
        # Every other time that a colour is used, its markers are hollow.
        "markerfacecolor": BACKGROUND if index // len(COLORS) % 2 else color,
    }


#: One recommender with one run or several, or several recommenders by name.
Recommenders: TypeAlias = Runnable | Mapping[str, Runnable]

#: The width and the height of a new figure, in inches.
WIDTH, _HEIGHT = 6.0, 3.5

#: After so many letters, a note goes on in the next line.
_MAX_LETTERS = 56

_T = TypeVar("_T")


class Picture(NamedTuple):
    """A figure and its axes. A notebook shows the picture if a cell ends with it.

    A figure that belongs to `matplotlib.pyplot` is shown by pyplot at the end of the cell, as
    always, and is not shown twice.

    Attributes:
        figure: The figure; `figure.savefig("figure.pdf")` saves it.
        axes: The axes, to change labels, limits and titles. Of a forest plot, an array of them.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task)
        >>> picture = plot.metric_at_k(result, "recall", max_k=2)
        >>> picture.figure
        <Figure size 600x350 with 1 Axes>
    """

    figure: "Figure"
    axes: Any

    def _repr_png_(self) -> bytes | None:
        from matplotlib._pylab_helpers import Gcf

        if any(manager.canvas.figure is self.figure for manager in Gcf.get_all_fig_managers()):
            return None
        image = io.BytesIO()
        self.figure.savefig(image, format="png", bbox_inches="tight")
        return image.getvalue()


def new_figure(height: float = _HEIGHT) -> "Figure":
    """Returns a figure that belongs to no window."""
    with requires_package("matplotlib", "plot"):
        from matplotlib.figure import Figure
    return Figure(figsize=(WIDTH, height), layout="constrained")


def axes_for(ax: "Axes | None") -> "Axes":
    """Returns `ax`, or the axes of a new figure."""
    if ax is None:
        return new_figure().subplots()
    figure_of(ax)
    return ax


def figure_of(axes: Any) -> "Figure":
    """Returns the figure that axes belong to.

    Raises:
        TypeError: If `axes` is something else, or was removed from its figure.
    """
    figure: Figure | None = getattr(axes, "get_figure", lambda root: None)(root=True)
    if figure is None:
        raise TypeError(f"'ax' needs to be axes of a figure (got {type(axes).__name__})")
    return figure


def finish(axes: "Axes", x: str, y: str, *notes: str) -> Picture:
    """Labels the axes. What stands behind the numbers is their title, and gives way to another."""
    axes.set(xlabel=fill(x), ylabel=fill(y))
    axes.set_title(fill("; ".join(notes)), fontsize="small", color=NOTE_COLOR)
    tidy(axes)
    figure = figure_of(axes)
    if axes.get_legend_handles_labels()[1]:
        # Only a layout makes room beside the axes.
        beside = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
        place = beside if figure.get_layout_engine() else {"loc": "best"}
        # Lines are so long that their dashes can be told apart.
        axes.legend(**place, frameon=False, fontsize="small", handlelength=2.5)
    return Picture(figure, axes)


def fill(text: str, num_letters: int = _MAX_LETTERS) -> str:
    """Lets every line of a text go on in the next after so many letters."""
    return "\n".join(textwrap.fill(line, num_letters) for line in text.split("\n"))


def tidy(axes: "Axes") -> None:
    """Draws a grid in place of a frame."""
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def with_looks(named: Mapping[str, _T]) -> Iterator[tuple[dict[str, Any], _T]]:
    """Yields how each recommender is drawn, by its position, with its name for the legend."""
    for index, (name, found) in enumerate(named.items()):
        yield style_of(index) | {"label": label(name)}, found


def label(name: str) -> str:
    """Returns a name as matplotlib shows it: it hides what starts with `_`, and `$` starts math."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def cut_offs_of(named: Mapping[str, Measured], max_k: int | None) -> list[int]:
    """Returns the cut-offs up to `max_k`, or up to where all results know the lists."""
    runs = every_run(named).values()
    if max_k is None:
        depths = [run.ranked.depth or run.max_k for run in runs]
        if None in depths:
            raise ValueError("'max_k' needs to be given if all candidates were ranked (got None)")
        max_k = min(filter(None, depths))
    deepest = min(run.ranked.depth or math.inf for run in runs)
    if check_positive_integer(max_k, "max_k") > deepest:
        raise ValueError(
            f"'max_k' needs to be at most {deepest}, the depth of the ranking (got {max_k}); "
            f"evaluate a metric down to it, as in 'recall@{max_k}'"
        )
    return list(range(1, max_k + 1))


def noun_of(named: Mapping[str, Measured]) -> str:
    """Returns what means are over, such as `"queries"`. Comparable results have the same."""
    first = next(iter(named.values()))
    return first.runs[0].nouns.means


def users(counts: Iterable[int], noun: str = "users") -> str:
    """Returns how many users there are, such as "1,000 users", or "990 to 1,000 users"."""
    counts = list(counts)
    return f"{span(counts)} {singular(noun) if max(counts) == 1 else noun}"


def span(counts: Iterable[int]) -> str:
    """Returns a number in words, such as "1,000", or "990 to 1,000" if numbers differ."""
    counts = list(counts)
    return " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))


#: How many cut-offs are marked at most, besides the first.
_NUM_MARKERS = 6


def ticks_of(max_k: int) -> list[int]:
    """Returns which cut-offs to mark: all if these are few, or the first and round ones."""
    steps = (digit * 10**zeros for zeros in itertools.count() for digit in (1, 2, 5))
    step = next(step for step in steps if max_k <= _NUM_MARKERS * step)
    return sorted({1, *range(step, max_k + 1, step)})


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
    named = recommenders_by_name(results, or_one=True)
    if "@" in str(metric):
        raise ValueError(
            f"'metric' needs to be a metric without a cut-off, such as 'recall' (got '{metric}')"
        )
    cut_offs = cut_offs_of(named, max_k)
    ticks = ticks_of(cut_offs[-1])
    axes = axes_for(ax)
    num_users = list[int]()
    for look, result in with_looks(named):
        means = [result.mean(f"{metric}@{k}", level) for k in cut_offs]
        values, low, high, counts, *_ = zip(*means, strict=True)
        axes.plot(cut_offs, values, markevery=[k - 1 for k in ticks], **look)
        axes.fill_between(cut_offs, low, high, color=look["color"], alpha=0.15, linewidth=0)
        num_users += counts
    axes.set_ylim(bottom=0)
    axes.set_xticks(ticks)
    who = users(num_users, noun_of(named))
    label = parse(f"{metric}@{cut_offs[-1]}", "metric").label
    and_runs = " and runs" if len(every_run(named)) > len(named) else ""
    note = f"mean over {who}{and_runs}, {format_level(level)} confidence band"
    remarks = remarks_in_brief(named, [label], has_intervals=True)
    return finish(axes, "k", f"{label}@k", note, *remarks)


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
    named = recommenders_by_name(results, or_one=True)
    cut_offs = cut_offs_of(named, max_k)
    marked = [place for place, k in enumerate(cut_offs) if k in _MARKED]
    axes = axes_for(ax)
    curves = []
    num_users = list[int]()
    for look, result in with_looks(named):
        recall = [result.mean(f"recall@{k}") for k in cut_offs]
        precision = [result.mean(f"precision@{k}") for k in cut_offs]
        x = [mean.value for mean in recall]
        y = [mean.value for mean in precision]
        axes.plot(x, y, markevery=marked, **look)
        curves.append(list(zip(x, y, strict=True)))
        num_users += [mean.num_users for mean in recall + precision]
    axes.margins(0.1)
    axes.set(xlim=(0, None), ylim=(0, None))
    furthest = max(curves, key=lambda points: points[-1])
    for place in marked:
        text = f"{cut_offs[place]}" if place else "k = 1"
        axes.annotate(text, furthest[place], (3, 3), textcoords="offset points", fontsize="small")
    note = f"means over {users(num_users, noun_of(named))}, no bands"
    remarks = remarks_in_brief(named, ["recall", "precision"], has_intervals=False)
    return finish(axes, "recall@k", "precision@k", note, *remarks)


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
    metric = first.monitor if metric is None else parse(metric, "metric")
    if any(str(metric) not in means for each in trainings.values() for means in each):
        raise ValueError(f"'metric' needs to be one that was evaluated (got '{metric}')")
    step = 1 if every is None else check_positive_integer(every, "every")
    first_x = 0 if every is None else step
    axes = axes_for(ax)
    for look, each in with_looks(trainings):
        x = [first_x + step * call for call in range(len(each))]
        y = [means[str(metric)] for means in each]
        axes.plot(x, y, markevery=[] if each.best_index is None else [each.best_index], **look)
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    monitors = sorted({str(each.monitor) for each in trainings.values()})
    note = f"marked: the best by {' or '.join(monitors)}"
    return finish(axes, "call" if every is None else "epoch", str(metric), note)


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
    named = recommenders_by_name(results, or_one=True)
    metric = parse(metric, "metric")
    if any(str(metric) not in result.per_user for result in every_run(named).values()):
        raise ValueError(
            f"'metric' needs to be one that every result has for each user (got '{metric}')"
        )
    cohorts = {
        name: result.by_degree(bins, same_degree=same_degree, level=level)
        for name, result in named.items()
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
        shift = _SPREAD_AT_TICK * ((index + 0.5) / len(named) - 0.5)
        x = [position + shift for position in range(len(first))]
        axes.vlines(x, low, high, color=look["color"])
        axes.plot(x, values, **look | {"linestyle": "none"})
        sizes.append(counts)
    ticks = [f"{of}\nn = {span(n)}" for of, n in zip(first, zip(*sizes, strict=True), strict=True)]
    axes.set_xticks(range(len(ticks)), ticks, fontsize="small")
    axes.set_xlim(-0.5, len(ticks) - 0.5)
    if not same_degree:
        axes.set_ylim(bottom=0)
    who = users(map(sum, sizes), noun_of(named))
    note = f"means over {who}, {format_level(level)} confidence intervals"
    # How results were measured is said of all of them. To readers, no argument says anything.
    said = {*next(iter(named.values()))._on_protocol()}
    of_groups = [in_brief(remark) for remark in first.remarks if remark not in said]
    remarks = remarks_in_brief(named, [str(metric)], has_intervals=True)
    return finish(axes, "training degree", str(metric), note, *of_groups, *remarks)


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
    named = recommenders_by_name(results, or_one=True)
    k = check_positive_integer(k, "k")
    runs = every_run(named).values()
    popularity = common_popularity(runs, "long_tail")
    ends = _ends_of_groups(popularity.numel())
    groups = popularity.argsort(descending=True, stable=True).tensor_split(ends[:-1])
    # On a logarithmic axis, this is the middle between the first and the last item of a group.
    middles = [math.sqrt((a + 1) * b) for a, b in zip([0, *ends], ends, strict=False)]
    axes = axes_for(ax)
    seen = [float(popularity[group].double().mean()) for group in groups]
    axes.plot(middles, seen, color=GREY, linewidth=4, label="seen", zorder=1)
    for look, result in with_looks(named):
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
    remarks = remarks_in_brief(named, (), has_intervals=False)
    return finish(axes, "items, most popular first", "users per item", note, *remarks)


def _ends_of_groups(num_items: int) -> list[int]:
    """Returns the place of the last item of each group, counted from one."""
    num_steps = math.ceil(_GROUPS_PER_DECADE * math.log10(num_items))
    ends = np.geomspace(1, num_items, num_steps + 1).round()
    return [int(end) for end in np.unique(ends)]


#: The height of a panel without rows, of a row without lines, and of a line of it, in inches.
_HEIGHT_OF_PANEL, _HEIGHT_OF_ROW, _HEIGHT_OF_LINE = 0.9, 0.14, 0.16

#: After so many letters, a name goes on in the next line, and so does what stands above a panel.
_LETTERS_OF_NAME, _LETTERS_OF_TITLE = 26, 40


class _Row(NamedTuple):
    """One row of a panel: a dot, its interval and its words.

    Attributes:
        value: Where the dot is.
        low: Where the interval starts.
        high: Where it ends.
        runs: Where single runs are.
        words: What stands beside it.
        bound: Half the width of the zone that is too small to matter.
        look: How the dot is drawn, by the words of matplotlib.
    """

    value: float
    low: float
    high: float
    look: dict[str, Any]
    runs: Sequence[float] = ()
    words: str = ""
    bound: float = 0

    @property
    def reach(self) -> float:
        """How far the interval reaches from zero."""
        return max(-self.low, self.high)


class _Panel(NamedTuple):
    """The axes of one metric.

    Attributes:
        title: What stands above them.
        rows: The rows, by what stands beside them.
        side: Of differences, on which side of zero who is better.
    """

    title: str
    rows: dict[str, _Row]
    side: str = ""


#: What was not run, or has no interval, as a table shows it.
_MISSING = _Row(math.nan, math.nan, math.nan, {"color": "black"}, words="-")

#: Differences have one mark, as those of recommenders would say that one of two is meant.
_LOOK_OF_PAIR = {"color": "black", "marker": "d", "markersize": 5}

#: The axis breaks where a difference reaches more than this many times as far as the one before.
_JUMP = 3

#: The two strokes of a break, at an end of the axis.
_STROKES: Any = {"marker": "$//$", "markersize": 9, "color": "black", "clip_on": False}


def means(
    results: Recommenders | Benchmark,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    *,
    level: float = 0.95,
    figure: "Figure | SubFigure | None" = None,
) -> Picture:
    r"""Plots the mean of every metric for every recommender, with intervals: a forest plot.

    Each metric has axes of its own. A dot is a mean, and the line through it is its confidence
    interval. A recommender with several runs has a small tick for each of them.

    Args:
        results (EvaluationResult, Runs, sequence, dict or Benchmark): One recommender with one run
            or several, or several recommenders by name, or those of several data sets.
        metrics (sequence of str, optional): The metrics. (default: `None`, those that all results
            have)
        level (float, optional): The level of the confidence intervals. (default: `0.95`)
        figure (matplotlib.figure.Figure or SubFigure, optional): Where to draw. (default: `None`, a
            new figure)

    Returns:
        The figure and its axes, from top to bottom, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the results have no metric in common, or `level` is not between 0 and 1.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, ["recall@2", "mrr@2"])
        >>> figure, axes = plot.means({"Constant": result})
        >>> [each.get_title() for each in axes]
        ['recall@2, 2 users', 'mrr@2, 2 users']
    """
    data_sets: Mapping[str, Mapping[str, Measured]] = (
        results
        if isinstance(results, Benchmark)
        else {"": recommenders_by_name(results, or_one=True)}
    )
    every = [run for named in data_sets.values() for run in every_run(named).values()]
    asked = metrics_in_common(every) if metrics is None else parse_all(metrics)
    panels = []
    for data_set, named in data_sets.items():
        for metric in asked:
            rows = {}
            counts = []
            for place, (name, result) in enumerate(named.items()):
                mean = result.mean(metric, level)
                runs = result.runs if len(result.runs) > 1 else ()
                values = [run.estimate_of(metric).value for run in runs]
                rows[name] = _Row(*mean[:3], style_of(place), values)
                counts.append(mean.num_users)
            title = _title(data_set, metric, f", {users(counts, noun_of(named))}")
            panels.append(_Panel(title, rows))
    ticks = ", ticks are runs" if len(every) > sum(map(len, data_sets.values())) else ""
    note = f"means, {format_level(level)} confidence intervals{ticks}"
    remarks = {
        data_set: remarks_in_brief(named, [*map(str, asked)], has_intervals=True)
        for data_set, named in data_sets.items()
    }
    return _forest(panels, "; ".join([note, *notes_of_all(remarks)]), figure)


def differences(
    comparison: Comparison | Mapping[str, Comparison],
    *,
    figure: "Figure | SubFigure | None" = None,
) -> Picture:
    r"""Plots the paired differences of a comparison, with their intervals: a forest plot.

    Each metric of each data set has axes of its own. A diamond is filled if its difference is
    significant. A grey zone marks what is too small to matter, if there is an `equivalence`, see
    :func:`~pyg_recmetrics.compare`. The relative difference in per cent and the corrected p-value
    stand beside each interval. An interval that reaches more than three times as far from zero as
    the next shorter one does not stretch the axis, as long as half of the intervals fit. Two
    strokes mark where an interval leaves the axes. A mean difference outside of them is printed as
    a number at their edge.

    Args:
        comparison (Comparison or dict): What :func:`~pyg_recmetrics.compare` returned, or one for
            each of several data sets, such as :attr:`Benchmark.comparisons`. What has no interval
            is left out.
        figure (matplotlib.figure.Figure or SubFigure, optional): Where to draw. (default: `None`, a
            new figure)

    Returns:
        The figure and its axes, from top to bottom, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `comparison` holds no comparisons.
        ValueError: If there is no difference with an interval.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate, plot
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> figure, axes = plot.differences(compare({"perfect": perfect, "popular": popular}))
        >>> axes[0].get_title()
        'recall@1 of perfect'
    """
    what = "'Comparison', as compare(...) returns it"
    data_sets = by_name(comparison, Comparison, what, "comparison", or_one=True)
    panels: dict[str, _Panel] = {}
    has_one_first = len({row.a for found in data_sets.values() for row in found}) == 1
    for data_set, found in data_sets.items():
        for row in found:
            if math.isnan(row.low):
                continue
            if has_one_first:
                of_first, name, better = f" of {row.a}", f"minus {row.b}", row.a
            else:
                of_first, name, better = "", f"{row.a}\nminus {row.b}", "the first"
            title = _title(data_set, row.metric, of_first)
            side = "right" if is_higher_better(row.metric) else "left"
            who = fill(f"{side} of zero: {better} is better", _LETTERS_OF_TITLE)
            panel = panels.setdefault(title, _Panel(title, {}, who))
            p = "" if math.isnan(row.p_adjusted) else p_in_words(row.p_adjusted)
            words = f"{lift_in_words(row)}  {p} {found.star(row)}"
            look = {} if found.is_significant(row) else {"markerfacecolor": BACKGROUND}
            panel.rows[name] = _Row(
                row.difference,
                row.low,
                row.high,
                _LOOK_OF_PAIR | look,
                words=words.strip(),
                bound=found.bound(row) or 0,
            )
    if not panels:
        raise ValueError("'comparison' needs to hold a difference with an interval (got none)")
    protocol = found.protocol
    zone = f", grey: smaller than {protocol.equivalence}" if protocol.equivalence else ""
    level = format_level(protocol.level)
    note = f"paired differences, {level} confidence intervals, filled: significant{zone}"
    remarks = {}
    for data_set, found in data_sets.items():
        metrics = [row.metric for row in found]
        of_results = remarks_in_brief(found._recommenders, metrics, has_intervals=False)
        remarks[data_set] = filter(None, [in_brief(found.protocol.caution or ""), *of_results])
    return _forest([*panels.values()], "; ".join([note, *notes_of_all(remarks)]), figure)


def _break(axes: "Axes", rows: Sequence[_Row]) -> None:
    """Ends the axis where the next difference reaches much further, if any does.

    Half of the rows stay in sight. All of them are drawn where they are.
    """
    reaches = sorted(row.reach for row in rows if row.reach > 0)
    pairs = itertools.pairwise(reaches[(len(reaches) - 1) // 2 :])
    ends = [near for near, far in pairs if far > _JUMP * near]
    if not ends:
        return
    near = [x for row in rows if row.reach <= ends[0] for x in (row.low, row.high)]
    left, right = min(0, *near) - ends[0] / 9, max(0, *near) + ends[0] / 9
    axes.set_xlim(left, right)
    at_row = axes.get_yaxis_transform()
    for place, row in enumerate(rows):
        for side, is_cut in enumerate((row.low < left, row.high > right)):
            if is_cut:
                axes.plot(side, place, transform=at_row, **_STROKES)
                axes.plot(side, 0, transform=axes.transAxes, **_STROKES)
        if row.value < left or row.value > right:
            x, towards = (0.97, "right") if row.value > 0 else (0.03, "left")
            # An interval may go through all of the axes, so the number stands above it.
            look: Any = {"transform": at_row, "ha": towards, "va": "bottom", "fontsize": "small"}
            axes.text(x, place, f"{row.value:+.3g}", **look)


def _title(data_set: str, metric: str | Metric, end: str) -> str:
    """Returns what a panel shows, with a note if lower is better."""
    of_one = f"{data_set}: " if data_set else ""
    lower = "" if is_higher_better(metric) else " (lower is better)"
    return fill(f"{of_one}{metric}{lower}{end}", _LETTERS_OF_TITLE)


def _forest(panels: Sequence[_Panel], note: str, figure: "Figure | SubFigure | None") -> Picture:
    """Draws panels one below the other, and what they are above them.

    The axis of a panel with a side may be broken, see :func:`_break`.
    """
    note = fill(note)
    every = dict.fromkeys(name for panel in panels for name in panel.rows)
    names = {name: label(fill(name, _LETTERS_OF_NAME)) for name in every}
    num_lines = 1 + max(name.count("\n") for name in names.values())
    height_of_row = _HEIGHT_OF_ROW + _HEIGHT_OF_LINE * num_lines
    height = len(panels) * (_HEIGHT_OF_PANEL + height_of_row * len(names))
    around = note + "".join(panel.title + panel.side for panel in panels)
    height += around.count("\n") * _HEIGHT_OF_LINE
    figure = new_figure(height) if figure is None else figure
    if not hasattr(figure, "subplots"):
        raise TypeError(f"'figure' needs to be a figure (got {type(figure).__name__})")
    figure.suptitle(note, fontsize="small", color=NOTE_COLOR)
    grid = figure.subplots(len(panels), squeeze=False)[:, 0]
    for axes, panel in zip(grid, panels, strict=True):
        axes.set_title(label(panel.title), fontsize="medium")
        axes.set_yticks(range(len(names)), names.values())
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(left=False, labelsize="small")
        axes.locator_params(axis="x", nbins=3)  # as many labels as narrow axes have room for
        axes.axvline(0, color="black", linewidth=0.8)
        rows = [panel.rows.get(name, _MISSING) for name in names]
        for place, row in enumerate(rows):
            color = row.look["color"]
            axes.barh(place, 2 * row.bound, 1, left=-row.bound, color=GREY, alpha=0.25)
            axes.hlines(place, row.low, row.high, color=color, linewidth=LINE_WIDTH)
            axes.plot(row.runs, [place] * len(row.runs), "|", color=color)
            axes.plot(row.value, place, **row.look | {"linestyle": "none"})
            beside = axes.get_yaxis_transform()  # across from 0 to 1, and down as the rows
            axes.text(1.04, place, row.words, transform=beside, va="center", fontsize="small")
        tidy(axes)
        if panel.side:
            axes.set_xlabel(label(panel.side), fontsize="small", color=NOTE_COLOR)
            _break(axes, rows)
    return Picture(figure_of(grid[0]), grid)
