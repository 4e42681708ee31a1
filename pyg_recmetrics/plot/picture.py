"""What every function of this package returns, and what all pictures have in common.

The numbers of colours, dashes and markers have no small common multiple. Within 42 results, no two
lines share both colour and dashes, and no two points share both colour and marker.
"""

import io
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.result import Measured
from pyg_recmetrics.results.runs import Runnable
from pyg_recmetrics.utils import requires_package, singular

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


def finish(axes: "Axes", x: str, y: str, note: str) -> Picture:
    """Labels the axes. What stands behind the numbers is their title, and gives way to another."""
    axes.set(xlabel=fill(x), ylabel=fill(y))
    axes.set_title(fill(note), fontsize="small", color=NOTE_COLOR)
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


def with_looks(by_name: Mapping[str, _T]) -> Iterator[tuple[dict[str, Any], _T]]:
    """Yields how each recommender is drawn, by its position, with its name for the legend."""
    for index, (name, found) in enumerate(by_name.items()):
        yield style_of(index) | {"label": label(name)}, found


def label(name: str) -> str:
    """Returns a name as matplotlib shows it: it hides what starts with `_`, and `$` starts math."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def label_of(metric: str | Metric) -> str:
    """Returns the name of a metric, with a note if lower is better."""
    return f"{metric}" if is_higher_better(metric) else f"{metric} (lower is better)"


def all_runs(recommenders: Iterable[Measured]) -> list[EvaluationResult]:
    """Returns all runs of all recommenders."""
    return [run for recommender in recommenders for run in recommender.runs]


def cut_offs_of(recommenders: Iterable[Measured], max_k: int | None) -> list[int]:
    """Returns the cut-offs up to `max_k`, or up to where all results know the lists."""
    if max_k is None:
        depths = [result.ranked.depth or result.max_k for result in all_runs(recommenders)]
        if None in depths:
            raise ValueError("'max_k' needs to be given if all candidates were ranked (got None)")
        max_k = min(depth for depth in depths if depth is not None)
    return list(range(1, check_positive_integer(max_k, "max_k") + 1))


def noun_of(recommenders: Iterable[Measured]) -> str:
    """Returns what means are over, such as `"queries"`; `"users"` if recommenders differ in it."""
    nouns = {result.nouns.means for result in all_runs(recommenders)}
    return nouns.pop() if len(nouns) == 1 else "users"


def users(counts: Iterable[int], noun: str = "users") -> str:
    """Says how many users there are, such as "1,000 users", or "990 to 1,000 users"."""
    counts = list(counts)
    return f"{span(counts)} {singular(noun) if max(counts) == 1 else noun}"


def span(counts: Iterable[int]) -> str:
    """Says a number, such as "1,000", or "990 to 1,000" if numbers differ."""
    counts = list(counts)
    return " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
