"""Sizes on a figure, in pixels."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from matplotlib.text import Text


def figure_of(artist: "Artist") -> "Figure":
    """Returns the figure that an artist such as axes belongs to."""
    figure = artist.get_figure(root=True)
    if figure is None:
        raise ValueError("'ax' needs to belong to a figure")
    return figure


def lay_out(figure: "Figure") -> None:
    """Places the axes of a figure with a layout, so that their size is known."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)


def font_size(text: "Text") -> float:
    """Returns the size of the font of a text, in pixels."""
    return text.get_fontproperties().get_size_in_points() * figure_of(text).dpi / 72
