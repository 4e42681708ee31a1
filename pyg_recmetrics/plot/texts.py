"""Legends, ticks and texts that keep clear of everything else. This module needs matplotlib."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.cbook import STEP_LOOKUP_MAP
from matplotlib.legend import Legend
from matplotlib.offsetbox import DrawingArea
from matplotlib.path import Path
from matplotlib.text import Annotation, Text
from matplotlib.ticker import Formatter
from matplotlib.transforms import Bbox, IdentityTransform, ScaledTranslation

from pyg_recmetrics.plot.style import figure_of, font_size

#: No frame, and lines so long that their dashes can be told apart.
_STYLE: dict[str, Any] = {"frameon": False, "handlelength": 2.5, "labelspacing": 0.3}

#: Where a legend inside of the axes may stand, the best place first.
_PLACES = (
    *("upper right", "upper left", "lower right", "lower left"),
    *("center right", "center left", "upper center", "lower center"),
)

#: How far below the axes a legend starts, so that the labels of the x-axis have room.
_INCHES_BELOW = 0.5

#: The largest number of names in a legend that stands inside of the axes. A larger one would take
#: too much of them.
_MAX_NAMES_INSIDE = 4

#: The largest number of names in one column of a legend that stands beside the axes.
_MAX_NAMES_IN_COLUMN = 16

#: How much larger than the legend the free space has to be, since axes may shrink when the figure
#: is laid out, but legends do not.
_SAFETY = 1.15

#: The largest part of the height of the axes that a legend may take above the curves.
_MAX_HEIGHT_INSIDE = 0.5

#: The largest part of the width of given axes that a legend beside them may take.
_MAX_WIDTH_BESIDE = 0.5


def add_legend(axes: Axes, *, figure_grows: bool) -> None:
    """Adds a legend where it covers nothing, if anything that is drawn has a name.

    A small legend stands where the axes are free, or else above the curves. A large one stands
    beside the axes, and is not wider than half of them.

    Args:
        axes (matplotlib.axes.Axes): The axes, with all that is drawn.
        figure_grows (bool): Whether the figure becomes larger to hold a legend beside the axes.
    """
    axes.get_xlim()  # settles the limits, which move all that is drawn
    _, names = axes.get_legend_handles_labels()
    if names and not (len(names) <= _MAX_NAMES_INSIDE and _put_inside(axes)):
        _put_beside(axes, len(names), figure_grows)


def add_legend_below(axes: Axes, handles: Iterable[Artist], names: Iterable[str]) -> None:
    """Adds a legend below the label of the x-axis, as wide as it needs to be."""
    figure = figure_of(axes)
    below = ScaledTranslation(0, -_INCHES_BELOW, figure.dpi_scale_trans)
    axes.legend(
        list(handles),
        list(names),
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=axes.transAxes + below,
        borderaxespad=0,
        fontsize="small",
        **_STYLE,
    )


def entries(legend: Legend) -> list[list[Artist]]:
    """Returns the marks and the text of each entry, in their order."""
    return list(_entries_of(legend))


def _entries_of(artist: Artist) -> Iterator[list[Artist]]:
    parts = artist.get_children()
    if any(isinstance(part, DrawingArea) for part in parts):
        yield [mark for part in parts for mark in part.get_children()]
        return
    for part in parts:
        yield from _entries_of(part)


def _put_inside(axes: Axes) -> bool:
    """Puts the legend inside of the axes, or returns `False` if there is no room."""
    for place in _PLACES:
        legend = axes.legend(**_STYLE | {"loc": place})
        if _is_free(axes, legend):
            return True
    legend = axes.legend(**_STYLE | {"loc": "upper right"})
    height = _SAFETY * legend.get_window_extent().height / axes.bbox.height
    width = _SAFETY * legend.get_window_extent().width / axes.bbox.width
    if height > _MAX_HEIGHT_INSIDE or width > 1:
        return False
    _lower_curves(axes, height)
    return True


def _lower_curves(axes: Axes, height: float) -> None:
    """Extends the y-axis until the uppermost part of the axes is free."""
    scale = axes.yaxis.get_transform()
    bottom, top = scale.transform(np.array(axes.get_ylim()))
    highest = scale.transform(np.array([axes.dataLim.y1]))[0]
    top = max(top, bottom + (highest - bottom) / (1 - height))
    axes.set_ylim(top=float(scale.inverted().transform(np.array([top]))[0]))


def _put_beside(axes: Axes, num_names: int, figure_grows: bool) -> None:
    num_columns = math.ceil(num_names / _MAX_NAMES_IN_COLUMN)
    style = _STYLE | {"loc": "upper left", "bbox_to_anchor": (1, 1), "ncols": num_columns}
    legend = axes.legend(**style)
    box = legend.get_window_extent()
    figure = figure_of(axes)
    if figure_grows:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width + box.width / figure.dpi, max(height, box.height / figure.dpi))
        return
    scale = min(_MAX_WIDTH_BESIDE * axes.bbox.width / box.width, axes.bbox.height / box.height)
    if scale < 1:
        axes.legend(**style, fontsize=scale * legend.prop.get_size_in_points())


def _is_free(axes: Axes, legend: Legend) -> bool:
    box = legend.get_window_extent().expanded(_SAFETY, _SAFETY)
    texts = (text.get_window_extent() for text in axes.texts)
    return not any(path.intersects_bbox(box) for path in _paths(axes)) and not any(
        box.overlaps(text) for text in texts
    )


def _paths(axes: Axes) -> Iterable[Path]:
    """Yields the outlines of all lines, bands and bars, in pixels."""
    for line in axes.lines:
        # The path of a line has no steps: they are made when it is drawn.
        corners = STEP_LOOKUP_MAP[line.get_drawstyle()](*np.asarray(line.get_xydata()).T)
        yield line.get_transform().transform_path(Path(np.column_stack(corners)))
    for collection in axes.collections:
        for path in collection.get_paths():
            yield collection.get_transform().transform_path(path)


#: The size of the smallest text that can be read, in points. A smaller one is not shown.
_SMALLEST = 5.0

#: How far to the right of the axes a text starts, in points.
_POINTS_BESIDE = 4

#: How much higher a line of text is than the size of its font.
_LINE_HEIGHT = 1.2


class RowText(Annotation):
    """A text to the right of the axes that is no higher than its row.

    Axes shrink with the figure, with a legend, and with what stands beside them, so each drawing
    measures the row anew.

    Args:
        text (str): The text.
        axes (matplotlib.axes.Axes): The axes.
        place (float): The middle of the row.
        row_height (float): Its height, in units of the y-axis.
    """

    def __init__(self, text: str, axes: Axes, place: float, row_height: float) -> None:
        super().__init__(
            text,
            (1, place),
            xycoords=("axes fraction", "data"),
            xytext=(_POINTS_BESIDE, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            clip_on=False,
        )
        self.set_transform(IdentityTransform())
        self._largest, self._row_height = float(self.get_fontsize()), row_height
        axes.add_artist(self)

    def draw(self, renderer: Any, *args: Any, **kwargs: Any) -> None:
        """Draws the text, if it can be read."""
        if self._fit():
            super().draw(renderer, *args, **kwargs)

    def get_window_extent(self, renderer: Any = None, dpi: float | None = None) -> Bbox:
        """Returns the box of the text, which is empty if it is not shown."""
        return super().get_window_extent(renderer) if self._fit() else Bbox.null()

    def _fit(self) -> bool:
        """Sets the size of the font, and returns whether it can be read."""
        axes = self.axes
        if axes is None:
            return False
        bottom, top = axes.get_ylim()
        pixels = axes.bbox.height * self._row_height / abs(top - bottom)
        size = min(self._largest, pixels * 72 / figure_of(self).dpi / _LINE_HEIGHT)
        if size >= _SMALLEST:
            self.set_fontsize(size)
        return size >= _SMALLEST


#: The least distance between two labels, as a fraction of the size of their font.
_GAP = 0.4


class SpacedFormatter(Formatter):
    """Leaves out each label that would touch the one before it, at any size of the axes.

    Args:
        formatter (matplotlib.ticker.Formatter): Writes the labels.
    """

    def __init__(self, formatter: Formatter) -> None:
        self.formatter = formatter

    def set_axis(self, axis: Any) -> None:
        """Tells both formatters what they format."""
        super().set_axis(axis)
        self.formatter.set_axis(axis)

    def format_ticks(self, values: Iterable[float]) -> list[str]:
        """Returns the labels of all ticks, some of them empty. Matplotlib calls it to draw."""
        values = list(values)
        labels = self.formatter.format_ticks(values)
        is_shown = set(_spaced(cast(Axis, self.axis), values, labels))
        return [label if index in is_shown else "" for index, label in enumerate(labels)]

    def get_offset(self) -> str:
        """Returns what is common to all labels, such as a power of ten."""
        return self.formatter.get_offset()

    def format_data_short(self, value: float) -> str:
        """Returns the value under the mouse."""
        return self.formatter.format_data_short(value)

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Returns the label of a single tick."""
        return self.formatter(x, pos)


def _spaced(axis: Axis, values: Sequence[float], labels: Sequence[str]) -> Iterable[int]:
    """Yields the indices of labels within the view that have room, from one end to the other."""
    side = 0 if isinstance(axis, XAxis) else 1
    axes = axis.axes
    transform = axes.get_xaxis_transform() if side == 0 else axes.get_yaxis_transform()
    like = axis.get_major_ticks(1)[0].label1
    probe = Text(fontproperties=like.get_fontproperties(), rotation=like.get_rotation())
    probe.set_figure(figure_of(axes))
    first, last = axes.bbox.intervalx if side == 0 else axes.bbox.intervaly
    gap = _GAP * font_size(probe)
    middles = transform.transform([(value, value) for value in values])[:, side]
    end_of_last = -float("inf")
    for index in sorted(range(len(values)), key=lambda index: middles[index]):
        probe.set_text(labels[index])
        extent = probe.get_window_extent()
        half = (extent.width if side == 0 else extent.height) / 2
        is_in_view = first - 1 <= middles[index] <= last + 1
        if is_in_view and middles[index] - half >= end_of_last + gap:
            end_of_last = middles[index] + half
            yield index
