"""Texts beside rows, which are as small as the rows are close. This module needs matplotlib."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox, IdentityTransform

from pyg_recmetrics.plot.sizes import figure_of

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
