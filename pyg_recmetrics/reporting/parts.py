"""What a section of a report consists of: prose, tables and pictures."""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from markupsafe import Markup

from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.plot.picture import MarkDescription, description_of
from pyg_recmetrics.plot.style import COLORS, GREY, NOTE_COLOR
from pyg_recmetrics.tables import Best, Faint, Table, Tabular

#: Width and height in inches. The page scales pictures to its width, and text with them, so a
#: small figure has text that can be read on a telephone.
_WIDTH, HEIGHT = 4.6, 3.4

#: What separates names in an attribute.
SEPARATOR = "\n"

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
#: The font in a style, as versions of matplotlib write it: only its size is kept.
_FONT = re.compile(r"font: ([\d.]+px) [^;]+")
_FAMILY = re.compile(r"font-family: [^;]+(; |$)")
#: A reference to an id, as in `#name` and `url(#name)`.
_REFERENCE = re.compile(r"(?<=#)[\w-]+")
_REFERRING = ("href", "clip-path")

#: What the ids of described marks start with.
_MARK = "described-"


def inline_svg(
    draw: Callable[..., object], title: str, height: float = HEIGHT
) -> ElementTree.Element:
    """Returns a picture as an `svg` element, the same one for the same picture.

    Marks that are described have a title, and `data-recommender` and `data-metric` with names.

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
    settings = {"svg.fonttype": "none", "svg.hashsalt": "pyg_recmetrics"}
    with style.context(["default", settings]), warnings.catch_warnings():
        # A font of matplotlib only measures texts. The browser has letters of all languages.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(ax=figure.subplots())
        described: dict[str, MarkDescription] = {}
        for number, mark in enumerate(figure.findobj(lambda x: description_of(x) is not None)):
            mark.set_gid(f"{_MARK}{number}")
            described[f"{_MARK}{number}"] = cast(MarkDescription, description_of(mark))
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _to_html(ElementTree.fromstring(file.getvalue()), title, described)


def _to_html(
    svg: ElementTree.Element, title: str, described: Mapping[str, MarkDescription]
) -> ElementTree.Element:
    """Returns a file of matplotlib as a part of a page."""
    for element in svg.iter():
        _strip(element)
        if description := described.get(element.get("id", "")):
            _describe(element, description)
    for name in ("width", "height", "version"):
        svg.attrib.pop(name, None)
    content = ElementTree.tostring(svg) + title.encode()
    prefix = f"picture-{hashlib.sha256(content).hexdigest()[:10]}"
    _rename_ids(svg, prefix)
    label = ElementTree.Element("title", id=f"{prefix}-title")
    label.text = title
    svg.insert(0, label)
    svg.attrib |= {"role": "img", "aria-labelledby": f"{prefix}-title"}
    return svg


def _describe(element: ElementTree.Element, description: MarkDescription) -> None:
    title = ElementTree.Element("title")
    title.text = description.text
    element.insert(0, title)
    for name, values in (
        ("data-recommender", description.recommenders),
        ("data-metric", description.metrics),
    ):
        if values:
            element.set(name, SEPARATOR.join(values))


def _strip(element: ElementTree.Element) -> None:
    """Removes what a page does not need, and lets colours and fonts be those of the page."""
    element.tag = _local(element.tag)
    element.attrib = {_local(name): value for name, value in element.attrib.items()}
    element.attrib.pop("space", None)
    if style := element.get("style"):
        style = _FAMILY.sub("", _FONT.sub(r"font-size: \1", style))
        element.set("style", _COLOR.sub(lambda color: _VARIABLES[color[0]], style))
    for child in list(element):
        # The style would apply to the whole page.
        if _local(child.tag) in ("metadata", "style"):
            element.remove(child)


def _rename_ids(svg: ElementTree.Element, prefix: str) -> None:
    """Keeps the ids that something refers to, and makes them unlike those of other pictures."""
    referring = [
        (element, name) for element in svg.iter() for name in _REFERRING if element.get(name)
    ]
    used = {id for element, name in referring for id in _REFERENCE.findall(element.attrib[name])}
    for element in svg.iter():
        id = element.attrib.pop("id", None)
        if id in used:
            element.set("id", f"{prefix}-{id}")
    for element, name in referring:
        element.set(name, _REFERENCE.sub(rf"{prefix}-\g<0>", element.attrib[name]))


def _local(name: str) -> str:
    """Returns a name without its namespace, as HTML writes it."""
    return name.rpartition("}")[2]


#: What says in plain words which function could not be called, and what it needs.
_REASONS = (ImportError, ValueError)


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Remarks:
    """Sentences below each other, each good news or something to look at."""

    texts: Sequence[str]
    kind: str = ""


@dataclass(frozen=True)
class Grid:
    """A table, with a caption above it.

    Attributes:
        caption (str): What stands above it.
        table (Table): The table.
        of_row (sequence): The recommenders and the metrics that each row is about, if its first
            cell does not say it; empty for all others.
        of_all (tuple): The recommenders and the metrics that all of it is about.
        main (int or None): The column that one has to see first.
        fold (str): What to press to see it; empty if it is shown at once.
    """

    caption: str
    table: Table
    of_row: Sequence[tuple[Sequence[str], Sequence[str]]] = ()
    of_all: tuple[Sequence[str], Sequence[str]] = ((), ())
    main: int | None = None
    fold: str = ""

    @property
    def is_sortable(self) -> bool:
        """Whether its rows may stand in another order."""
        rows = self.table.rows
        return len(rows) > 2 and not any(map(self.table.is_heading, rows))


@dataclass(frozen=True)
class Drawing:
    """A picture, with a caption below it."""

    caption: str
    svg: Element
    kind: str = ""


@dataclass(frozen=True)
class Missing:
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
        return Grid(caption, make().table(), fold=fold)
    except _REASONS as error:
        return Missing(what, str(error))


def drawing(
    what: str,
    caption: str,
    draw: Callable[..., object],
    *,
    height: float = HEIGHT,
    kind: str = "",
) -> Drawing | Missing:
    """Returns a picture, or what it needs.

    Args:
        what (str): What the picture shows, which is also its name for those who do not see it.
        caption (str): What stands below the picture.
        draw (callable): Draws on the axes that it gets as `ax`. Its errors say what it needs.
        height (float, optional): The height of the picture, in inches.
        kind (str, optional): The class of the picture on the page. (default: `""`)
    """
    try:
        return Drawing(caption, inline_svg(draw, what, height), kind)
    except _REASONS as error:
        return Missing(what, str(error))


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        text: What stands in it.
        attributes: Its class, and what it is about, for the start of its element.
        kind: `"b"` if it is the best of its row, and empty otherwise.
    """

    text: str
    attributes: Markup
    kind: str


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        cells: Its cells.
        attributes: What it is about.
        is_heading: Whether its only cell is a heading of the rows below it.
    """

    cells: list[Cell]
    attributes: Markup
    is_heading: bool


class Choices:
    """The recommenders and metrics that a reader may choose from, by their numbers.

    Args:
        recommenders (sequence of str): The names of the recommenders.
        metrics (sequence of str): The names of the metrics.
    """

    def __init__(self, recommenders: Sequence[str], metrics: Sequence[str]) -> None:
        self.recommenders, self.metrics = list(filter(None, recommenders)), list(metrics)
        self._numbers = {
            "data-recommender": {name: str(i) for i, name in enumerate(self.recommenders)},
            "data-metric": {name: str(i) for i, name in enumerate(self.metrics)},
        }

    def of(self, recommenders: Iterable[str], metrics: Iterable[str], kind: str = "") -> Markup:
        """Returns the attributes of an element, each after a blank."""
        found = {"class": kind} if kind else {}
        for attribute, names in (("data-recommender", recommenders), ("data-metric", metrics)):
            if numbers := self._numbered(attribute, names):
                found[attribute] = numbers
        return Markup("").join(
            Markup(' {}="{}"').format(name, value) for name, value in found.items()
        )

    def head(self, grid: Grid) -> list[Cell]:
        """Returns the names of the columns."""
        head = grid.table.head
        return [self._cell(name, self._kind(grid, place), name) for place, name in enumerate(head)]

    def rows(self, grid: Grid) -> list[Row]:
        """Returns the rows."""
        table = grid.table
        of_row = grid.of_row or [self._about(row[0]) for row in table.rows]
        return [
            Row(
                [
                    self._cell(text, self._kind(grid, place), table.head[place] if place else "")
                    for place, text in enumerate(row)
                ],
                self.of(*about),
                table.is_heading(row),
            )
            for row, about in zip(table.rows, of_row, strict=True)
        ]

    def svg(self, picture: ElementTree.Element) -> Markup:
        """Returns a picture whose marks say what they are about."""
        picture = deepcopy(picture)
        for element in picture.iter():
            for attribute in self._numbers:
                names = element.attrib.pop(attribute, "").split(SEPARATOR)
                if numbers := self._numbered(attribute, names):
                    element.set(attribute, numbers)
        return Markup(ElementTree.tostring(picture, encoding="unicode"))

    def _cell(self, text: str, kind: str, column: str) -> Cell:
        kind = " ".join(filter(None, (kind, "faint" if isinstance(text, Faint) else "")))
        attributes = self.of(*self._about(column), kind)
        return Cell(text, attributes, "b" if isinstance(text, Best) else "")

    @staticmethod
    def _kind(grid: Grid, place: int) -> str:
        kinds = ["left"] if place < grid.table.num_left else []
        kinds += ["difference"] if place == grid.main else []
        return " ".join(kinds)

    def _about(self, name: str) -> tuple[list[str], list[str]]:
        """Returns the recommender or the metric of a name."""
        return (
            [name] if name in self.recommenders else [],
            [name] if name in self.metrics else [],
        )

    def _numbered(self, attribute: str, names: Iterable[str]) -> str:
        known: Mapping[str, str] = self._numbers[attribute]
        return " ".join(known[name] for name in names if name in known)
