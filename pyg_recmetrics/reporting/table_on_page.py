"""Tables and pictures of a page, and what of them belongs to which recommender and metric."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

from pyg_recmetrics.reporting.inline_svg import SEPARATOR
from pyg_recmetrics.reporting.parts import Grid
from pyg_recmetrics.tables import Best, Faint


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
