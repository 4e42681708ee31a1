"""Labels of ticks that never run together. This module needs matplotlib."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from matplotlib.axis import Axis, XAxis
from matplotlib.text import Text
from matplotlib.ticker import Formatter

from pyg_recmetrics.plot.sizes import figure_of, font_size

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
