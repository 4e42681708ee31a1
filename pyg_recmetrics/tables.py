"""Tables for a terminal, a notebook and a paper."""

import html
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Table:
    """Cells that are already written out, and notes to stand below them.

    Attributes:
        head: The names of the columns.
        rows: The cells of every row.
        notes: Lines of text about the table.
        num_left: How many columns are aligned to the left; the others are to the right.
    """

    head: list[str]
    rows: list[list[str]]
    notes: tuple[str, ...] = ()
    num_left: int = 1

    def to_text(self) -> str:
        """Returns the table for a terminal."""
        return "\n".join([*format_table(self.head, self.rows, self.num_left), *self.notes])

    def to_markdown(self) -> str:
        """Returns the table in Markdown."""
        rule = ["---" if place < self.num_left else "---:" for place in range(len(self.head))]
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

    def to_html(self) -> str:
        """Returns the table in HTML."""

        def cells(row: list[str], tag: str) -> str:
            sides = ["left" if place < self.num_left else "right" for place in range(len(row))]
            parts = (
                f'<{tag} style="text-align: {side}">{html.escape(cell)}</{tag}>'
                for cell, side in zip(row, sides, strict=True)
            )
            return f"<tr>{''.join(parts)}</tr>"

        body = "\n".join(cells(row, "td") for row in self.rows)
        notes = "\n".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return (
            f"<table>\n<thead>{cells(self.head, 'th')}</thead>\n<tbody>\n{body}\n</tbody>\n"
            f"</table>\n{notes}"
        )


class Tabular(ABC):
    """What is shown as a table, wherever it is shown."""

    @abstractmethod
    def _table(self) -> Table:
        """Returns the table."""

    def to_markdown(self) -> str:
        """Returns the printed table in Markdown."""
        return self._table().to_markdown()

    def to_latex(self) -> str:
        r"""Returns the printed table in LaTeX, with `\usepackage{booktabs}` in mind."""
        return self._table().to_latex()

    def __str__(self) -> str:
        return self._table().to_text()

    def _repr_html_(self) -> str:
        return self._table().to_html()


def format_table(head: list[str], rows: list[list[str]], num_left: int = 1) -> list[str]:
    """Returns the lines of a table: the first columns to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [
            cell.ljust(width) if place < num_left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return [lines[0], "-" * max(len(line) for line in lines), *lines[1:]]


def format_mean(mean: float, margin: float) -> str:
    """Writes a mean, and half the width of its interval if there is one."""
    if math.isnan(mean):
        return "-"
    if math.isnan(margin):
        return f"{mean:.4f}"
    return f"{mean:.4f} ± {f'{margin:.4f}'.removeprefix('0')}"
