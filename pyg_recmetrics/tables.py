"""Tables for a terminal, a notebook and a paper."""

import html
import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, TypeVar

from pyg_recmetrics.utils import set_attributes

T = TypeVar("T")

#: The width to which notes are wrapped, if the table is not wider.
_MAX_WIDTH = 100

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_|<>"})
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "<": "$<$",
        ">": "$>$",
        "±": r"$\pm$",
        # The command before a row would take a bracket or a star for an argument of its own.
        "[": "{[}",
        "*": "{*}",
        "\N{MINUS SIGN}": "$-$",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "|": r"\textbar{}",
        "†": r"$^{\dagger}$",
        "‡": r"$^{\ddagger}$",
        "\N{NO-BREAK SPACE}": "~",
    }
)


class Best(str):
    """A cell that is set in bold where there is bold type, and says `best` where there is none."""


class Second(str):
    """A cell that LaTeX underlines: the second best."""


class Tabular(ABC):
    """Anything that is shown as a table, wherever it is shown."""

    @abstractmethod
    def table(self) -> "Table":
        """Returns the printed table."""

    def to_markdown(self) -> str:
        """Returns the printed table in Markdown."""
        return self.table().to_markdown()

    def to_latex(self) -> str:
        r"""Returns the printed table in LaTeX, with its notes below it.

        All of it goes into a `table` as it is, and needs nothing but `\usepackage{booktabs}`. The
        notes are in smaller type.
        """
        return self.table().to_latex()

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().to_html()


class Rows(Tabular, Sequence[T]):
    """A sequence that is shown as a table. A subclass sets `_rows`, which hold its elements."""

    _rows: Sequence[T]

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True)
class Table(Tabular):
    """Cells that are already written out, and notes that stand below them.

    The first column is aligned to the left, and all others to the right.

    Attributes:
        head (sequence of str): The names of the columns.
        rows (sequence): The cells of every row. A row with a single cell is a heading of the rows
            below it, if there are several columns.
        notes (tuple of str): Lines of text about the table.
        groups (sequence of str): What each column belongs to, as the names of columns say, too. In
            LaTeX, it stands once above them.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: tuple[str, ...] = ()
    groups: Sequence[str] = ()

    def __post_init__(self) -> None:
        # A name may have several lines, and a cell has one.
        rows = tuple(_in_one_line(row) for row in self.rows)
        set_attributes(self, head=_in_one_line(self.head), rows=rows)

    def table(self) -> "Table":
        """Returns the table itself."""
        return self

    def to_markdown(self) -> str:
        """Returns the table in Markdown."""
        rule = ["---", *["---:"] * (len(self.head) - 1)]
        empty = [""] * (len(self.head) - 1)
        rows = [[Best(row[0]), *empty] if self.is_heading(row) else row for row in self.rows]
        lines = [f"| {' | '.join(map(_to_markdown, row))} |" for row in [self.head, rule, *rows]]
        return "\n".join([*lines, *(f"\n{note.translate(_MARKDOWN)}" for note in self.notes)])

    def to_latex(self) -> str:
        """Returns a `tabular` with the rules of the package booktabs, and its notes below it."""
        alignment = "l" + "r" * (len(self.head) - 1)
        lines = [
            rf"\begin{{tabular}}{{@{{}}{alignment}@{{}}}}",
            r"\toprule",
            *self._latex_heads(),
            r"\midrule",
            *(self._latex_row(row) for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        if self.notes:
            lines += [
                r"\par\smallskip{\footnotesize\raggedright",
                *(rf"{note.translate(_LATEX)}\par" for note in self.notes),
                "}",
            ]
        return "\n".join(lines)

    def _latex_heads(self) -> Iterator[str]:
        """Yields the names of columns, below those of their groups with a rule under each."""
        if not any(self.groups):
            yield self._latex_row(self.head)
            return
        cells = []
        rules = ""
        start = 1
        for group, columns in groupby(self.groups):
            width = len(list(columns))
            if group:
                cells.append(rf"\multicolumn{{{width}}}{{c}}{{{_to_latex(group)}}}")
                rules += rf"\cmidrule(lr){{{start}-{start + width - 1}}}"
            else:
                cells += [""] * width
            start += width
        yield " & ".join(cells) + r" \\"
        yield rules
        names = zip(self.head, self.groups, strict=True)
        yield self._latex_row([head.removeprefix(f"{group} ") for head, group in names])

    def __str__(self) -> str:
        plain = [[f"best {x}" if isinstance(x, Best) else x for x in row] for row in self.rows]
        lines = [*self._aligned([self.head, *plain])]
        rule = "-" * max(len(line) for line in lines)
        notes = (_wrapped(note, max(_MAX_WIDTH, len(rule))) for note in self.notes)
        return "\n".join([lines[0], rule, *lines[1:], *notes])

    def is_heading(self, row: Sequence[str]) -> bool:
        """Returns whether a row is a heading of the rows below it."""
        return len(row) == 1 < len(self.head)

    def _latex_row(self, row: Sequence[str]) -> str:
        if self.is_heading(row):
            text = row[0].translate(_LATEX)
            return rf"\multicolumn{{{len(self.head)}}}{{@{{}}l@{{}}}}{{{text}}} \\"
        return " & ".join(map(_to_latex, row)) + r" \\"

    def to_html(self) -> str:
        """Returns the table in HTML, with its notes below it."""
        head = self._html_row(self.head, "col")
        body = "\n".join(self._html_row(row) for row in self.rows)
        notes = "\n".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>\n{notes}"

    def _html_row(self, row: Sequence[str], scope: str = "row") -> str:
        if self.is_heading(row):
            span = f'colspan="{len(self.head)}" style="text-align: left"'
            return f'<tr><th scope="rowgroup" {span}><span>{html.escape(row[0])}</span></th></tr>'
        cells = []
        for column, cell in enumerate(row):
            tag = f'th scope="{scope}"' if scope == "col" or column == 0 else "td"
            side = "right" if column else "left"
            cells.append(f'<{tag} style="text-align: {side}">{_to_html(cell)}</{tag[:2]}>')
        return f"<tr>{''.join(cells)}</tr>"

    def _aligned(self, rows: Sequence[Sequence[str]]) -> Iterable[str]:
        full = [row for row in rows if not self.is_heading(row)]
        widths = [max(map(len, column)) for column in zip(*full, strict=True)]
        for row in rows:
            if self.is_heading(row):
                yield row[0]
                continue
            cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
            yield "  ".join(cells).rstrip()


def _wrapped(note: str, width: int) -> str:
    return textwrap.fill(
        note, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _in_one_line(row: Sequence[str]) -> tuple[str, ...]:
    return tuple(type(cell)(" ".join(cell.splitlines())) for cell in row)


def _to_markdown(cell: str) -> str:
    text = cell.translate(_MARKDOWN)
    return f"**{text}**" if isinstance(cell, Best) and text else text


def _to_html(cell: str) -> str:
    text = html.escape(cell)
    return f"<b>{text}</b>" if isinstance(cell, Best) else text


def format_interval(value: float, low: float, high: float, sign: Literal["", "+"] = "") -> str:
    """Formats an estimate with its interval, which has no margin if it is not symmetric.

    Values that are all the same have an interval of no width, which would claim certainty.

    Args:
        value (float): The estimate.
        low (float): The lower end of its interval; `NaN` if there is none.
        high (float): The upper end.
        sign (str, optional): `"+"` shows the sign of what is positive. (default: `""`)
    """
    if math.isnan(value):
        return "-"
    number, margin = f"{value:{sign}.4f}", (high - low) / 2
    if math.isnan(margin) or margin == 0:
        return number
    if math.isclose(value - low, high - value, rel_tol=1e-6, abs_tol=1e-12):
        return f"{number} ± {format_error(margin)}"
    return f"{number} ({low:.4f} to {high:.4f})"


def format_error(error: float) -> str:
    """Formats a standard error, or half the width of an interval."""
    return "-" if math.isnan(error) else f"{error:.4f}".removeprefix("0")


def format_level(level: float) -> str:
    """Formats a level of confidence, such as "95%", with all the nines that tell it from 100%."""
    num_digits = max(4, 1 - math.floor(math.log10(1 - level)))
    return f"{100 * level:.{num_digits}g}%"


def format_p(p: float) -> str:
    """Formats a p-value."""
    if math.isnan(p):
        return "-"
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def p_in_words(p: float) -> str:
    """Returns what a p-value is, as sentences say it."""
    return f"p = {format_p(p)}".replace("= <", "< ")


def _to_latex(cell: str) -> str:
    text = cell.translate(_LATEX)
    if isinstance(cell, Best):
        return rf"\textbf{{{text}}}"
    return rf"\underline{{{text}}}" if isinstance(cell, Second) else text
