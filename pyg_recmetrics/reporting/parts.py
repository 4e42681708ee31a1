"""What a section of a report consists of: prose, tables and pictures."""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from markupsafe import Markup, escape

from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.plot.style import COLORS, GREY, NOTE_COLOR
from pyg_recmetrics.tables import Table, Tabular

#: Width and height in inches. The page scales pictures to its width, and text with them, so a
#: small figure has text that can be read on a telephone.
_WIDTH, HEIGHT = 4.6, 3.4

#: What takes the place of :data:`~pyg_recmetrics.plot.style.COLORS` on a dark page: about the same
#: hues, with a contrast of at least 3 : 1 on it.
DARK_COLORS = ("#4B92F0", "#F59A35", "#2DD894", "#DE4F93", "#BFC1FF", "#B07A42", "#FFFFFF")

#: The variables of the page that stand for the colours of pictures. Black needs none: all that is
#: black has the colour of the text.
_VARIABLES = {
    **{color.lower(): f"var(--curve-{number})" for number, color in enumerate(COLORS)},
    GREY.lower(): "var(--seen)",
    NOTE_COLOR.lower(): "var(--muted)",
    "#ffffff": "var(--page)",  # the inside of hollow markers
    "#000000": "currentColor",
}
_COLOR = re.compile("|".join(map(re.escape, _VARIABLES)))

#: What a page does not need of a picture: what is said of the file, its style, which would apply to
#: the whole page, and in tags, the ids of groups, names of spaces and fonts other than their size.
_UNUSED = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_UNUSED_IN_TAG = re.compile(
    r' id="[\w.]+?_\d+"| xmlns(:\w+)?="[^"]*"| xml:space="[^"]*"'
    r"|font-family: [^;\"]+;? ?"
)
_FONT = re.compile(r"font: ([\d.]+px) [^;\"]+")
_TAG = re.compile("<[^>]+>")

#: Where an id is given or referred to.
_ID = re.compile(r'(?<=id=")|(?<=href="#)|(?<=url\(#)')

#: What says in plain words which function could not be called, and what it needs.
_REASONS = (ImportError, ValueError)


def inline_svg(draw: Callable[..., object], title: str, height: float = HEIGHT) -> Markup:
    """Returns a picture as an `svg` element, the same one for the same picture.

    Args:
        draw (callable): Draws on the axes that it gets as `ax`.
        title (str): The name of the picture for those who do not see it.
        height (float, optional): The height of the figure, in inches.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    with requires_extra("matplotlib", "plot", "report"):
        from matplotlib import style
        from matplotlib.figure import Figure
    file = io.StringIO()
    # The settings of the user are left aside: the page has colours and a font of its own. Text
    # stays text. The salt makes ids depend on nothing but the picture.
    settings = {"svg.fonttype": "none", "svg.hashsalt": title}
    with style.context(["default", settings]), warnings.catch_warnings():
        # A font of matplotlib only measures texts. The browser has letters of all languages.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(ax=figure.subplots())
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = _UNUSED.sub("", file.getvalue())
    prefix = f"picture-{hashlib.sha256(text.encode()).hexdigest()[:10]}-"
    _, box, content = re.split(r'<svg [^>]*(viewBox="[^"]*")[^>]*>', text)
    content = _TAG.sub(lambda tag: _on_page(tag[0], prefix), content)
    return Markup(f'<svg {box} role="img" aria-label="{escape(title)}">{content}')


def _on_page(tag: str, prefix: str) -> str:
    """Lets a tag have the colours and the fonts of the page, and ids that no other picture has."""
    tag = _FONT.sub(r"font-size: \1", _UNUSED_IN_TAG.sub("", tag).replace("xlink:", ""))
    return _ID.sub(prefix, _COLOR.sub(lambda color: _VARIABLES[color[0]], tag))


class Prose(NamedTuple):
    """A paragraph."""

    text: str


class Remarks(NamedTuple):
    """Sentences below each other, each good news or something to look at."""

    texts: Sequence[str]
    kind: str = ""


class Grid(NamedTuple):
    """A table, with a caption above it.

    Attributes:
        caption (str): What stands above it.
        table (Table): The table.
        fold (str): What to press to see it; empty if it is shown at once.
    """

    caption: str
    table: Table
    fold: str = ""


class Drawing(NamedTuple):
    """A picture, with a caption below it."""

    caption: str
    svg: Markup


class Missing(NamedTuple):
    """A part that is left out, and what it needs."""

    what: str
    reason: str


Part: TypeAlias = Prose | Remarks | Grid | Drawing | Missing


def grid(what: str, caption: str, make: Callable[[], Tabular], fold: str = "") -> Grid | Missing:
    """Returns a table, or what it needs.

    Args:
        what (str): What is missing if there is no table.
        caption (str): What stands above the table.
        make (callable): Returns the table. Its errors say what it needs.
        fold (str, optional): What to press to see it. (default: `""`, it is shown at once)
    """
    try:
        return Grid(caption, make().table(), fold)
    except _REASONS as error:
        return Missing(what, str(error))


def drawing(
    what: str, caption: str, draw: Callable[..., object], height: float = HEIGHT
) -> Drawing | Missing:
    """Returns a picture, or what it needs.

    Args:
        what (str): What the picture shows, which is also its name for those who do not see it.
        caption (str): What stands below the picture.
        draw (callable): Draws on the axes that it gets as `ax`. Its errors say what it needs.
        height (float, optional): The height of the picture, in inches.
    """
    try:
        return Drawing(caption, inline_svg(draw, what, height))
    except _REASONS as error:
        return Missing(what, str(error))
