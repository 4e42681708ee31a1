"""What every function of this package takes and returns, and what all pictures have in common."""

import io
import textwrap
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.messages import singular
from pyg_recmetrics.plot.style import NOTE_COLOR, figure_of, lay_out
from pyg_recmetrics.results.measured import Measured
from pyg_recmetrics.results.runs import Runnable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import Container
    from matplotlib.figure import Figure
    from matplotlib.text import Text


#: One recommender with one run or several, or several recommenders by name.
Recommenders: TypeAlias = Runnable | Mapping[str, Runnable]


def label(name: str) -> str:
    """Returns a name as matplotlib shows it: it hides what starts with `_`, and `$` starts math."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def cut_offs_of(recommenders: Iterable[Measured], max_k: int | None) -> list[int]:
    """Returns the cut-offs up to `max_k`, or up to where all results know the lists."""
    if max_k is not None:
        return list(range(1, check_positive_integer(max_k, "max_k") + 1))
    results = chain.from_iterable(recommender.runs for recommender in recommenders)
    depths = [result.ranked.depth or result.max_k for result in results]
    finite_depths = [depth for depth in depths if depth is not None]
    if len(finite_depths) < len(depths):
        raise ValueError("'max_k' needs to be given if all candidates were ranked (got None)")
    return list(range(1, min(finite_depths, default=0) + 1))


def noun_of(recommenders: Iterable[Measured]) -> str:
    """Returns what means are over, such as `"queries"`; `"users"` if recommenders differ in it."""
    nouns = {recommender.runs[0].nouns.means for recommender in recommenders}
    return nouns.pop() if len(nouns) == 1 else "users"


#: Width and height of a new figure, in inches.
_WIDTH, _HEIGHT = 5.0, 3.5

#: The attribute of a mark that says what it shows.
_DESCRIPTION = "_pyg_recmetrics"

#: What the axes are called that hold nothing but a note.
_NOTE = "pyg_recmetrics note"


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


class MarkDescription(NamedTuple):
    """What a mark of a picture shows.

    Attributes:
        text: What one reads beside it on a page.
        recommenders: The recommenders that it is about.
        metrics: The metrics that it is about.
    """

    text: str
    recommenders: tuple[str, ...]
    metrics: tuple[str, ...]


def describe(
    mark: "Artist", text: str, recommenders: Iterable[str] = (), metrics: Iterable[str] = ()
) -> None:
    """Says what a mark shows, for pages that show it as text and let readers choose."""
    setattr(mark, _DESCRIPTION, MarkDescription(text, tuple(recommenders), tuple(metrics)))


def _to_png(figure: "Figure") -> bytes | None:
    """Returns the image of a figure; `None` if it belongs to pyplot, which shows it."""
    from matplotlib._pylab_helpers import Gcf

    if any(manager.canvas.figure is figure for manager in Gcf.get_all_fig_managers()):
        return None
    image = io.BytesIO()
    figure.savefig(image, format="png", bbox_inches="tight")
    return image.getvalue()


def description_of(mark: "Artist") -> MarkDescription | None:
    """Returns what a mark shows; `None` if nothing was said."""
    description: MarkDescription | None = getattr(mark, _DESCRIPTION, None)
    return description


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


def finish(axes: "Axes", x: str, y: str, note: str, *, is_new: bool) -> Picture:
    """Labels the axes, and says in a note what stands behind the numbers.

    Args:
        axes (matplotlib.axes.Axes): The axes, with all that is drawn.
        x (str): The label of the x-axis.
        y (str): The label of the y-axis.
        note (str): What stands above the axes.
        is_new (bool): Whether the figure is new, so that it may grow.
    """
    from pyg_recmetrics.plot.texts import SpacedFormatter, add_legend

    figure = figure_of(axes)
    for axis in (axes.xaxis, axes.yaxis):
        formatter = axis.get_major_formatter()
        if not isinstance(formatter, SpacedFormatter):
            axis.set_major_formatter(SpacedFormatter(formatter))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    above = _write_above(axes, note)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    texts = [x for x in (axes.xaxis.label, axes.yaxis.label, above) if x.get_text()]
    _wrap(texts, axes)
    lay_out(figure)
    _wrap(texts, axes)
    add_legend(axes, figure_grows=is_new)
    if handles := axes.get_legend_handles_labels()[0]:
        describe_legend(axes, map(_description_within, handles))
    return Picture(figure, axes)


def _description_within(handle: "Artist | Container") -> MarkDescription | None:
    """Returns what a mark shows, or one of several that belong together."""
    marks = handle if isinstance(handle, tuple) else [handle]
    return next(filter(None, map(description_of, marks)), None)


def describe_legend(axes: "Axes", descriptions: "Iterable[MarkDescription | None]") -> None:
    """Says what the entries of a legend are about, each of which goes with what it explains."""
    from pyg_recmetrics.plot.texts import entries

    legend = axes.get_legend()
    if legend is None:
        return
    for description, entry in zip(descriptions, entries(legend), strict=True):
        for mark in entry:
            if description is not None:
                describe(mark, *description)


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


def _write_above(axes: "Axes", note: str) -> "Text":
    """Writes a note above the axes, in place of an earlier one."""
    for child in axes.child_axes:
        if child.get_label() == _NOTE:
            child.remove()
    # Titles make room for the label of an axis, but not for other text.
    above = axes.secondary_xaxis("top")
    above.set_label(_NOTE)
    above.tick_params(which="both", length=0, labeltop=False)
    above.spines["top"].set_visible(False)
    above.set_xlabel(note, loc="left", fontsize="small", color=NOTE_COLOR)
    return above.xaxis.label


def _wrap(texts: "Iterable[Text]", axes: "Axes") -> None:
    """Breaks texts into lines that are not much longer than the side of the axes beside them."""
    for text in texts:
        text.set_text(" ".join(text.get_text().split()))
        extent = text.get_window_extent()
        is_upright = text.get_rotation() == 90
        length, room = (
            (extent.height, axes.bbox.height) if is_upright else (extent.width, axes.bbox.width)
        )
        num_letters = int(len(text.get_text()) * room / length)
        text.set_text(textwrap.fill(text.get_text(), max(1, num_letters), break_long_words=False))
