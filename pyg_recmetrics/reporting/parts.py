"""What a section of a report consists of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree.ElementTree import Element

from pyg_recmetrics.reporting.inline_svg import HEIGHT, inline_svg
from pyg_recmetrics.tables import Table, Tabular

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
