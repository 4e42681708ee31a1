"""Colours, dashes and markers that stay apart, and sizes on a figure, in pixels.

The numbers of colours, dashes and markers have no small common multiple. Within 42 results, no two
lines share both colour and dashes, and no two points share both colour and marker.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text


#: The largest part of given axes that what stands beside or below them may take.
_MOST_ROOM = 0.7


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


def make_room(axes: "Axes") -> None:
    """Shrinks given axes for the texts to their right and the legend below, if no layout does.

    These end where the axes did, or in the margin of the figure, so that neither the figure nor
    other axes cut them off.
    """
    figure, legend = figure_of(axes), axes.get_legend()
    if figure.get_layout_engine() is not None:
        return
    spec = axes.get_subplotspec()
    slot = axes.get_position(original=True) if spec is None else spec.get_position(figure)
    axes.set_position(slot)
    whole = axes.bbox.frozen()
    # The lowest axes have a margin below them. Others have other axes there.
    lowest = 0.0 if spec is None or spec.is_last_row() else whole.y0
    higher = max(0.0, lowest - legend.get_window_extent().y0) if legend else 0.0
    below = slot.height * min(_MOST_ROOM, higher / whole.height)
    axes.set_position((slot.x0, slot.y0 + below, slot.width, slot.height - below))
    # Texts are smaller where the axes are lower.
    ends = [text.get_window_extent().x1 for text in axes.texts]
    starts = [text.get_window_extent().x0 for text in axes.get_yticklabels()]
    wider = max(end - whole.x1 for end in [whole.x1, *ends])
    left = max(-start for start in [0.0, *starts])
    scale = slot.width / whole.width * min(1.0, _MOST_ROOM * whole.width / max(1.0, wider + left))
    position = axes.get_position()
    axes.set_position(
        (
            slot.x0 + left * scale,
            position.y0,
            slot.width - (wider + left) * scale,
            position.height,
        )
    )
    # The position is one for this layout, and no other has to keep to it.
    axes.set_in_layout(True)


def font_size(text: "Text") -> float:
    """Returns the size of the font of a text, in pixels."""
    return text.get_fontproperties().get_size_in_points() * figure_of(text).dpi / 72


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

#: The width of a line and the size of a marker, in points.
LINE_WIDTH = 1.6
MARKER_SIZE = 5


def line_style(index: int) -> dict[str, Any]:
    """Returns the colour and the dashes of a result, by its position among the results."""
    return {
        "color": COLORS[index % len(COLORS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": LINE_WIDTH,
    }


def point_style(index: int) -> dict[str, Any]:
    """Returns the colour and the marker of a result, by its position among the results."""
    color = COLORS[index % len(COLORS)]
    return {
        "color": color,
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": MARKER_SIZE,
        # Every other time that a colour is used, its markers are hollow.
        "markerfacecolor": BACKGROUND if index // len(COLORS) % 2 else color,
    }
