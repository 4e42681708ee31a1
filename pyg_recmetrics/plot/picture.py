"""What every function of this package takes and returns, and what all pictures have in common."""

import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.messages import singular
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot.style import NOTE_COLOR
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.result import Measured
from pyg_recmetrics.results.runs import Runnable, common_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: One recommender with one run or several, or several recommenders by name.
Recommenders: TypeAlias = Runnable | Mapping[str, Runnable]

#: Width and height of a new figure, in inches.
_WIDTH, _HEIGHT = 6.0, 3.5

#: After so many letters, a text beside the axes of a new figure goes on in the next line.
_MAX_LETTERS = 48

#: What the axes are called that hold nothing but a note.
_NOTE = "pyg_recmetrics note"

#: A legend beside the axes, and one below them and the labels of their x-axis.
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
BELOW: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 4}


def label(name: str) -> str:
    """Returns a name as matplotlib shows it: it hides what starts with `_`, and `$` starts math."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def all_runs(recommenders: Iterable[Measured]) -> list[EvaluationResult]:
    """Returns all runs of all recommenders."""
    return [run for recommender in recommenders for run in recommender.runs]


def metrics_of_users(runs: Sequence[EvaluationResult]) -> tuple[Metric, ...]:
    """Returns the metrics that all results have for every user."""
    return tuple(metric for metric in common_metrics(runs) if str(metric) in runs[0].per_user)


def cut_offs_of(recommenders: Iterable[Measured], max_k: int | None) -> list[int]:
    """Returns the cut-offs up to `max_k`, or up to where all results know the lists."""
    if max_k is not None:
        return list(range(1, check_positive_integer(max_k, "max_k") + 1))
    depths = [result.ranked.depth or result.max_k for result in all_runs(recommenders)]
    finite_depths = [depth for depth in depths if depth is not None]
    if len(finite_depths) < len(depths):
        raise ValueError("'max_k' needs to be given if all candidates were ranked (got None)")
    return list(range(1, min(finite_depths, default=0) + 1))


def noun_of(recommenders: Iterable[Measured]) -> str:
    """Returns what means are over, such as `"queries"`; `"users"` if recommenders differ in it."""
    nouns = {result.nouns.means for result in all_runs(recommenders)}
    return nouns.pop() if len(nouns) == 1 else "users"


class Picture(NamedTuple):
    """A figure and its axes. A notebook shows the picture if a cell ends with it.

    A figure that belongs to `matplotlib.pyplot` is shown by pyplot at the end of the cell, as
    always, and is not shown twice.

    Attributes:
        figure: The figure; `figure.savefig("figure.pdf")` saves it.
        axes: The axes, to change labels, limits and titles.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task)
        >>> picture = plot.metric_at_k(result, "recall", max_k=2)
        >>> picture.axes.get_ylabel()
        'recall@k'
    """

    figure: "Figure"
    axes: "Axes"

    def _repr_png_(self) -> bytes | None:
        return _to_png(self.figure)

    def __repr__(self) -> str:
        labels = filter(None, (self.axes.get_ylabel(), self.axes.get_xlabel()))
        return f"{type(self).__name__}({' against '.join(labels)})".replace("\n", " ")


class Panels(NamedTuple):
    """A figure with several axes. A notebook shows it as it shows a :class:`Picture`.

    Attributes:
        figure: The figure.
        axes: The axes, in their order.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Benchmark, RankingTask, evaluate, plot
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> results = {"fixed": evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr@2")}
        >>> plot.benchmark(Benchmark({"A": results, "B": results}))
        Panels(2 axes)
    """

    figure: "Figure"
    axes: "tuple[Axes, ...]"

    def _repr_png_(self) -> bytes | None:
        return _to_png(self.figure)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.axes)} axes)"


def _to_png(figure: "Figure") -> bytes | None:
    """Returns the image of a figure; `None` if it belongs to pyplot, which shows it."""
    from matplotlib._pylab_helpers import Gcf

    if any(manager.canvas.figure is figure for manager in Gcf.get_all_fig_managers()):
        return None
    image = io.BytesIO()
    figure.savefig(image, format="png", bbox_inches="tight")
    return image.getvalue()


def figure_of(axes: "Axes") -> "Figure":
    """Returns the figure that axes belong to."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("'ax' needs to belong to a figure")
    return figure


def axes_for(ax: "Axes | None", height: float = _HEIGHT) -> "Axes":
    """Returns `ax`, or the axes of a new figure that belongs to no window."""
    with requires_extra("matplotlib", "plot", "plot"):
        from matplotlib.figure import Figure
    if ax is None:
        return Figure(figsize=(_WIDTH, height), layout="constrained").subplots()
    if not hasattr(ax, "get_figure"):
        raise TypeError(f"'ax' needs to be axes of matplotlib (got {type(ax).__name__})")
    figure_of(ax)
    return ax


def finish(
    axes: "Axes",
    x: str,
    y: str,
    note: str,
    legend: dict[str, Any] = BESIDE,
    max_letters: int = _MAX_LETTERS,
) -> Picture:
    """Labels the axes, and says in a note what stands behind the numbers.

    Args:
        axes (matplotlib.axes.Axes): The axes, with all that is drawn.
        x (str): The label of the x-axis.
        y (str): The label of the y-axis.
        note (str): What stands above the axes.
        legend (dict, optional): Where the legend stands, if anything that is drawn has a name and
            the figure has a layout that makes room for it.
        max_letters (int, optional): After so many letters, a text goes on in the next line.
    """
    figure = figure_of(axes)
    axes.set_xlabel(textwrap.fill(x, max_letters))
    axes.set_ylabel(textwrap.fill(y, max_letters))
    _write_above(axes, textwrap.fill(note, max_letters))
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        place = legend if figure.get_layout_engine() else {"loc": "best"}
        # Lines are so long that their dashes can be told apart.
        axes.legend(**place, frameon=False, fontsize="small", handlelength=2.5)
    return Picture(figure, axes)


def _write_above(axes: "Axes", note: str) -> None:
    """Writes a note above the axes, in place of an earlier one."""
    for child in axes.child_axes:
        if child.get_label() == _NOTE:
            child.remove()
    # A title may stand above it.
    above = axes.secondary_xaxis("top")
    above.set_label(_NOTE)
    above.tick_params(which="both", length=0, labeltop=False)
    above.spines["top"].set_visible(False)
    above.set_xlabel(note, loc="left", fontsize="small", color=NOTE_COLOR)


def users(counts: Iterable[int], noun: str = "users") -> str:
    """Says how many users there are, such as "1,000 users", or "990 to 1,000 users".

    Args:
        counts (iterable): The number of users of each recommender.
        noun (str, optional): What they are called. (default: `"users"`)
    """
    counts = list(counts)
    return f"{span(counts)} {singular(noun) if max(counts) == 1 else noun}"


def span(counts: Iterable[int]) -> str:
    """Says a number, such as "1,000", or "990 to 1,000" if numbers differ."""
    counts = list(counts)
    return " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
