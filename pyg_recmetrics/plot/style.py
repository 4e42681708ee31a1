"""Colours, dashes and markers that stay apart.

The numbers of colours, dashes and markers have no small common multiple. Within 42 results, no two
lines share both colour and dashes, and no two points share both colour and marker.
"""

from typing import Any

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
