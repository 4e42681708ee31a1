"""The picture of slices: which users or items are far from the mean of all."""

import textwrap
from typing import TYPE_CHECKING

from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.plot.arguments import label
from pyg_recmetrics.plot.picture import Picture, axes_for, describe, finish
from pyg_recmetrics.plot.sizes import make_room
from pyg_recmetrics.plot.style import COLORS
from pyg_recmetrics.results import Slice, Slices
from pyg_recmetrics.results.slices import signed
from pyg_recmetrics.tables import format_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The width of a new figure, its height without its rows, and the height of a row, in inches.
_WIDTH, _HEIGHT, _HEIGHT_OF_ROW = 7.0, 1.2, 0.5

#: The height of the bar of the largest slice, and of the smallest bar, as shares of a row.
_THICKEST, _THINNEST = 0.8, 0.08

#: The most letters in a line of a label.
_LETTERS = 34


def slices(slices: Slices, *, ax: "Axes | None" = None) -> Picture:
    r"""Plots how far slices are from the mean of all, with their intervals.

    Each slice is a bar, the one with the largest effect on top. Its length is the difference of its
    mean from that of all, and its thickness is the share of users or items that it has. The line on
    it is its confidence interval. Beside it stand the share and the mean.

    Args:
        slices (Slices): What :meth:`EvaluationResult.slices` or
            :meth:`EvaluationResult.item_slices` returned.
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: `None`, a new figure)

    Returns:
        The figure and its axes, as a :class:`Picture`.

    Raises:
        ImportError: If matplotlib is not installed.
        TypeError: If `slices` is something else.
        ValueError: If no slice was found.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, plot
        >>> user = torch.arange(1000)
        >>> task = RankingTask(torch.stack([user, user % 7]), num_users=1000, num_items=7)
        >>> scores = torch.nn.functional.one_hot(user % 7, 7).float()
        >>> scores[::4] = torch.arange(7.0)
        >>> result = evaluate(scores, task, "recall@2")
        >>> figure, axes = plot.slices(result.slices("recall@2", {"fourth": user % 4 == 0}))
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['fourth = True']
    """
    with requires_extra("matplotlib", "plot", "plot"):
        from pyg_recmetrics.plot.row_text import RowText
    if not isinstance(slices, Slices):
        raise TypeError(f"'slices' needs to be 'Slices' (got {type(slices).__name__})")
    if not slices:
        raise ValueError("'slices' needs to hold a slice (got none)")
    question = slices.question
    axes = axes_for(ax, height(len(slices)), _WIDTH)
    largest = max(row.share for row in slices)
    for place, row in enumerate(slices):
        color = COLORS[0] if row.difference > 0 else COLORS[1]
        thickness = max(_THINNEST, _THICKEST * row.share / largest)
        (bar,) = axes.barh(place, row.difference, thickness, color=color, alpha=0.6, linewidth=0)
        (line,) = axes.plot([row.low, row.high], [place] * 2, color=color, linewidth=1.6)
        beside = RowText(_words(row), axes, place, 1.0)
        text = f"{row.conditions}: {signed(row.difference, row.high)}, {_words(row)}"
        for mark in (bar, line, beside):
            describe(mark, text, [], [question.metric])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(
        range(len(slices)), [_in_lines(row.conditions) for row in slices], fontsize="small"
    )
    axes.set_ylim(len(slices) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    if ax is not None:
        make_room(axes)
    what = f"{question.metric}, a - b" if question.is_difference else question.metric
    note = f"{format_level(question.level)} confidence intervals that hold together"
    x_label = f"{what}, difference from all {question.unit}"
    return finish(axes, x_label, "", note, is_new=ax is None)


def height(num_slices: int) -> float:
    """Returns the height of a figure with so many slices, in inches."""
    return _HEIGHT + _HEIGHT_OF_ROW * num_slices


def _words(row: Slice) -> str:
    return f"{100 * row.share:.0f}%, mean {row.mean:.3f}"


def _in_lines(text: str) -> str:
    """Returns what a slice is about with one condition in a line, or several if it is long."""
    conditions = text.replace(" and ", "\nand ").split("\n")
    return label("\n".join(textwrap.fill(each, _LETTERS) for each in conditions))
