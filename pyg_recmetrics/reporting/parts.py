"""What a section of a report consists of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from markupsafe import Markup

from pyg_recmetrics.reporting.inline_svg import inline_svg
from pyg_recmetrics.tables import Table, Tabular

#: What says in plain words which function could not be called, and what it needs.
_REASONS = (ImportError, ValueError)


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table, with a caption above it."""

    caption: str
    table: Table


@dataclass(frozen=True)
class Drawing:
    """A picture, with a caption below it."""

    caption: str
    svg: Markup


@dataclass(frozen=True)
class Missing:
    """A part that is left out, and what it needs."""

    what: str
    reason: str


Part: TypeAlias = Prose | Grid | Drawing | Missing


def grid(what: str, caption: str, make: Callable[[], Tabular]) -> Grid | Missing:
    """Returns a table, or what it needs.

    Args:
        what (str): What is missing if there is no table.
        caption (str): What stands above the table.
        make (callable): Returns the table. Its errors say what it needs.
    """
    try:
        return Grid(caption, make().table())
    except _REASONS as error:
        return Missing(what, str(error))


def drawing(what: str, caption: str, draw: Callable[..., object]) -> Drawing | Missing:
    """Returns a picture, or what it needs.

    Args:
        what (str): What the picture shows, which is also its name for those who do not see it.
        caption (str): What stands below the picture.
        draw (callable): Draws on the axes that it gets as `ax`. Its errors say what it needs.
    """
    try:
        return Drawing(caption, inline_svg(draw, what))
    except _REASONS as error:
        return Missing(what, str(error))
