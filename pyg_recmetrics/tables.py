"""Tables for a terminal, a notebook and a paper."""

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyg_recmetrics.extras import requires_extra

if TYPE_CHECKING:
    import pandas as pd

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_|<>"})
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "<": "$<$",
        ">": "$>$",
    }
)


class Tabular(ABC):
    """Anything that is shown as a table, wherever it is shown."""

    @abstractmethod
    def _table(self) -> "Table":
        """Returns the table."""

    def to_markdown(self) -> str:
        """Returns the printed table in Markdown."""
        return self._table().to_markdown()

    def to_latex(self) -> str:
        r"""Returns the printed table in LaTeX. It needs `\usepackage{booktabs}`."""
        return self._table().to_latex()

    def __str__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


@dataclass(frozen=True)
class Table(Tabular):
    """Cells that are already written out, and notes that stand below them.

    Attributes:
        head (sequence of str): The names of the columns.
        rows (sequence): The cells of every row.
        notes (tuple of str): Lines of text about the table.
        num_left (int): How many columns are aligned to the left; the others are to the right.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: tuple[str, ...] = ()
    num_left: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", tuple(self.head))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))

    def _table(self) -> "Table":
        return self

    def to_markdown(self) -> str:
        """Returns the table in Markdown."""
        rule = ["---" if column < self.num_left else "---:" for column in range(len(self.head))]
        rows = [[cell.translate(_MARKDOWN) for cell in row] for row in [self.head, *self.rows]]
        lines = [f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]]]
        return "\n".join([*lines, *(f"\n{note.translate(_MARKDOWN)}" for note in self.notes)])

    def to_latex(self) -> str:
        """Returns a `tabular` with the rules of the package booktabs, and notes as comments."""
        alignment = "l" * self.num_left + "r" * (len(self.head) - self.num_left)
        rows = [[cell.translate(_LATEX) for cell in row] for row in [self.head, *self.rows]]
        head, *lines = [f"{' & '.join(row)} \\\\" for row in rows]
        tabular = [f"\\begin{{tabular}}{{{alignment}}}", r"\toprule", head, r"\midrule"]
        tabular += [*lines, r"\bottomrule", r"\end{tabular}"]
        return "\n".join([*tabular, *(f"% {note}" for note in self.notes)])

    def __str__(self) -> str:
        lines = [*self._aligned([self.head, *self.rows])]
        rule = "-" * max(len(line) for line in lines)
        return "\n".join([lines[0], rule, *lines[1:], *self.notes])

    def _repr_html_(self) -> str:
        body = "\n".join(self._html_row(row, "td") for row in self.rows)
        notes = "\n".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        head = self._html_row(self.head, "th")
        return f"<table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>\n{notes}"

    def _html_row(self, row: Sequence[str], tag: str) -> str:
        sides = ["left" if column < self.num_left else "right" for column in range(len(row))]
        cells = (
            f'<{tag} style="text-align: {side}">{html.escape(cell)}</{tag}>'
            for cell, side in zip(row, sides, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    def _aligned(self, rows: Sequence[Sequence[str]]) -> Iterable[str]:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                cell.ljust(width) if column < self.num_left else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            yield "  ".join(cells).rstrip()


def format_mean(mean: float, margin: float) -> str:
    """Formats a mean, and half the width of its interval if there is one."""
    if math.isnan(mean):
        return "-"
    if math.isnan(margin):
        return f"{mean:.4f}"
    return f"{mean:.4f} ± {f'{margin:.4f}'.removeprefix('0')}"


def to_data_frame(
    rows: Iterable[Sequence[Any]], columns: Sequence[str], index: list[str] | None = None
) -> "pd.DataFrame":
    """Returns a data frame.

    Raises:
        ImportError: If pandas is not installed.
    """
    with requires_extra("pandas", "pandas", "to_pandas"):
        import pandas as pd
    return pd.DataFrame(list(rows), columns=list(columns), index=index)
