"""Legends that cover nothing. This module needs matplotlib."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cbook import STEP_LOOKUP_MAP
from matplotlib.legend import Legend
from matplotlib.offsetbox import DrawingArea
from matplotlib.path import Path
from matplotlib.transforms import ScaledTranslation

from pyg_recmetrics.plot.sizes import figure_of

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
