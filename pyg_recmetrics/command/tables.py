"""Opens tables of any format: which one it is, and what its columns hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from pyg_recmetrics.command.notes import note
from pyg_recmetrics.command.parquet import ParquetTable
from pyg_recmetrics.command.text import (
    QRELS_COLUMNS,
    RUN_COLUMNS,
    DelimitedTable,
    JsonLinesTable,
    SpacedTable,
    TextTable,
    first_line,
)

Table: TypeAlias = TextTable | ParquetTable

_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "delimited",
    ".tsv": "tsv",
    ".inter": "delimited",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".trec": "trec",
    ".run": "trec",
    ".qrels": "trec",
}


def open_table(path: Path, columns: Sequence[str] | None = None) -> Table:
    """Opens a table. The suffix of its name says the format, or else its first line.

    Args:
        path (Path): The file.
        columns (sequence of str, optional): The names of its columns, if it has no header.
            (default: `None`)

    Raises:
        ImportError: If a package is missing that reads this format.
        OSError: If the file cannot be opened.
        ValueError: If the file is empty, or has another format.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path}: the file is read twice, which a pipe cannot be")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    form = _SUFFIXES.get(suffixes[-1] if suffixes else "")
    if form is None:
        form = _form_of(path) if columns is None else "delimited"
    if form == "parquet":
        return ParquetTable(path)
    if form == "json":
        return JsonLinesTable(path)
    if form == "trec":
        return _open_trec(path)
    return DelimitedTable(path, columns, "\t" if form == "tsv" else None)


def open_run(path: Path) -> SpacedTable:
    """Opens a run of TREC, whatever its name is."""
    return SpacedTable(path, RUN_COLUMNS)


def _form_of(path: Path) -> str:
    """Returns the format that the first line of a file suggests."""
    if path.is_file():
        with path.open("rb") as file:
            if file.read(4) == b"PAR1":
                return "parquet"
    line = first_line(path)
    fields = line.split()
    if line.startswith("{"):
        form = "json"
    elif (len(fields) == 4 and fields[1] in ("0", "Q0")) or (
        len(fields) == 6 and fields[1] == "Q0"
    ):
        form = "trec"
    else:
        form = "delimited"
    return form


def _open_trec(path: Path) -> SpacedTable:
    is_run = len(first_line(path).split()) == len(RUN_COLUMNS)
    return SpacedTable(path, RUN_COLUMNS if is_run else QRELS_COLUMNS)


def say_columns(table: Table, found: Sequence[tuple[str, str]]) -> None:
    """Says how a table is read.

    Args:
        table (Table): The table.
        found (sequence): Pairs of what a column holds, and its name.
    """
    parts = ", ".join(f"{what} from {column!r}" for what, column in found)
    note(f"{table.path} ({table.in_words}): {parts}")
