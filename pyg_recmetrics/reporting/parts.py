"""What a section of a report consists of: prose, tables and pictures."""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from markupsafe import Markup

from pyg_recmetrics.extras import requires_package
from pyg_recmetrics.plot import Picture
from pyg_recmetrics.plot.picture import COLORS, GREY, NOTE_COLOR
from pyg_recmetrics.tables import Table

#: The widths in inches: of what stands beside another picture, or alone on a telephone, and of what
#: is as wide as a page. The page scales pictures, and text with them, so text is about as large.
_WIDTH, _WIDE = 4.6, 11.5

#: What takes the place of `COLORS` on a dark page: about the same hues, with a contrast of at least
#: 3 : 1 on it.
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


class Remarks(NamedTuple):
    """Sentences below each other: plain ones, claims, warnings, or what is good.

    Attributes:
        texts (sequence of str): The sentences.
        kind (str): What they are.
        fold (str): What to press to see them; empty if they are shown at once.
    """

    texts: Sequence[str]
    kind: str = "plain"
    fold: str = ""


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
    """A picture, with a caption below it.

    Attributes:
        caption (str): What stands below it, and what it is called for those who do not see it.
        box (Markup): The attribute of its size.
        svg (Markup): What is inside of the element.
        size (str): `"wide"` for wide screens alone, `"narrow"` for all others, or empty.
    """

    caption: str
    box: Markup
    svg: Markup
    size: str = ""
    fold: str = ""


Part: TypeAlias = Remarks | Grid | Drawing


class Page:
    """Sections of a report, and a note of what it leaves out.

    Attributes:
        sections: The heading of each section, what it consists of, and whether it is folded.
        missing: The headings of what is left out, by what it needs.
    """

    def __init__(self) -> None:
        self.sections: list[tuple[str, list[Part], bool]] = []
        self.missing: dict[str, list[str]] = {}

    def add(
        self, heading: str, makers: Iterable[Iterable[Part]], *, is_folded: bool = False
    ) -> None:
        """Adds a section. What raises an error is left out, and the error says what it needs."""
        parts: list[Part] = []
        for maker in makers:
            try:
                parts.extend(maker)
            except (ImportError, ValueError) as error:
                self.missing.setdefault(str(error), []).append(heading)
        parts = [part for part in parts if not isinstance(part, Remarks) or part.texts]
        if parts:
            self.sections.append((heading, parts, is_folded))


def drawings(caption: str, draw: Callable[[], Picture]) -> Iterator[Drawing]:
    """Yields a picture as wide as the page, once for wide screens and once for all others."""
    for size in ("wide", "narrow"):
        yield drawing(caption, draw, size)


def drawing(caption: str, draw: Callable[[], Picture], size: str = "") -> Drawing:
    """Returns a picture, with its caption as the name for those who do not see it.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    with requires_package("matplotlib", "report"):
        from matplotlib import style
    file = io.StringIO()
    # The settings of the user are left aside: the page has colours and a font of its own. Text
    # stays text. The salt makes ids depend on nothing but the picture.
    settings = {"svg.fonttype": "none", "svg.hashsalt": caption}
    with style.context(["default", settings]), warnings.catch_warnings():
        # A font of matplotlib only measures texts. The browser has letters of all languages.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure = draw().figure
        figure.set_figwidth(_WIDE if size == "wide" else _WIDTH)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = _UNUSED.sub("", file.getvalue())
    prefix = f"picture-{hashlib.sha256(text.encode()).hexdigest()[:10]}-"
    _, box, content = re.split(r'<svg [^>]*(viewBox="[^"]*")[^>]*>', text)
    content = _TAG.sub(lambda tag: _on_page(tag[0], prefix), content)
    return Drawing(caption, Markup(box), Markup(content), size)


def _on_page(tag: str, prefix: str) -> str:
    """Lets a tag have the colours and the fonts of the page, and ids that no other picture has."""
    tag = _FONT.sub(r"font-size: \1", _UNUSED_IN_TAG.sub("", tag).replace("xlink:", ""))
    return _ID.sub(prefix, _COLOR.sub(lambda color: _VARIABLES[color[0]], tag))
