"""Reads and divides tables of text: CSV, TSV, JSON lines, and the files of TREC."""

import csv
import gzip
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

from pyg_recmetrics.command.batches import TextBatch
from pyg_recmetrics.command.notes import progress
from pyg_recmetrics.files import replacing

#: The fields of a line, by place or by name.
Row: TypeAlias = Any

#: How many rows are held at once.
_ROWS_AT_ONCE = 2**14

#: What may separate the fields of a line.
_DELIMITERS = ",\t;|"

_GZIP_MAGIC = b"\x1f\x8b"

#: The columns of a run and of qrels.
RUN_COLUMNS = ("user", "Q0", "item", "rank", "score", "tag")
QRELS_COLUMNS = ("user", "iteration", "item", "relevance")

#: A field may be as long as a vector in text.
_MAX_FIELD = 2**24


class TextTable(ABC):
    """A table in a text file, which may be compressed by gzip. A subclass knows its lines.

    Args:
        path (Path): The file.
        columns (sequence of str, optional): The names of the columns, if the file does not say.
            (default: `None`)

    Raises:
        OSError: If the file cannot be opened.
        ValueError: If the file is empty.
    """

    in_words: str

    def __init__(self, path: Path, columns: Sequence[str] | None = None) -> None:
        self.path = path
        self.has_header = columns is None
        with _open(path) as (_, lines), _naming(path):
            first = next(iter(self._rows(lines)), None)
        if first is None:
            raise ValueError(f"{path}: the file needs to hold rows (got none)")
        self.columns = tuple(first if columns is None else columns)

    @abstractmethod
    def _rows(self, lines: Iterable[str]) -> Iterator[Row]:
        """Yields the fields of every line that has any."""

    @abstractmethod
    def _take(
        self, rows: Iterator[Row], columns: Sequence[str], start: int
    ) -> dict[str, list[Any]]:
        """Returns the values of some columns in the next rows, of which `start` came before."""

    @abstractmethod
    def _writer(self, file: IO[str]) -> Callable[[Row], object]:
        """Returns what writes a row into a file, which has its header by then."""

    def batches(self, columns: Sequence[str]) -> Iterator[TextBatch]:
        """Yields some rows of some columns after another.

        Raises:
            ValueError: If the file is not text, has a header and no more, or a line has another
                form than the others.
        """
        start = 0
        with _open(self.path) as (raw, lines), _bar(self.path) as bar:
            rows = self._data_rows(lines)
            while True:
                with _naming(self.path):
                    values = self._take(rows, columns, start)
                batch = TextBatch(self.path, values, self.line_of, start)
                if len(batch) == 0 and start == 0:
                    raise ValueError(f"{self.path}: the file needs to hold rows (got none)")
                if len(batch) == 0:
                    return
                start += len(batch)
                bar.update(raw.tell() - bar.n)
                yield batch

    def divide(self, part_of: Sequence[int], paths: Sequence[Path]) -> None:
        """Writes every row into the file of its part; those of part `-1` into none."""
        with _open(self.path) as (raw, lines), _bar(self.path) as bar, ExitStack() as stack:
            writers = [self._writer(stack.enter_context(_writing(path))) for path in paths]
            for row, part in zip(self._data_rows(lines), part_of, strict=True):
                if part >= 0:
                    writers[part](row)
                if bar.n < raw.tell():
                    bar.update(raw.tell() - bar.n)

    def _data_rows(self, lines: Iterable[str]) -> Iterator[Row]:
        return self._rows(lines)

    def line_of(self, row: int) -> int:
        """Returns the number of the line at which a row ends, by reading the file once more."""
        number = 0

        def count(lines: Iterable[str]) -> Iterator[str]:
            nonlocal number
            for line in lines:
                number += 1
                yield line

        with _open(self.path) as (_, lines):
            next(islice(self._data_rows(count(lines)), row, None), None)
        return number


class DelimitedTable(TextTable):
    """A table whose fields are separated by commas, tabs or other signs, as in CSV and TSV."""

    def __init__(
        self, path: Path, columns: Sequence[str] | None = None, delimiter: str | None = None
    ) -> None:
        self.delimiter = delimiter or _delimiter_of(path)
        names = {",": "CSV", "\t": "TSV"}
        self.in_words = names.get(self.delimiter, f"CSV with {self.delimiter!r}")
        super().__init__(path, columns)

    def _rows(self, lines: Iterable[str]) -> Iterator[Row]:
        csv.field_size_limit(_MAX_FIELD)
        return filter(None, csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True))

    def _data_rows(self, lines: Iterable[str]) -> Iterator[Row]:
        return islice(self._rows(lines), int(self.has_header), None)

    def _take(
        self, rows: Iterator[Row], columns: Sequence[str], start: int
    ) -> dict[str, list[Any]]:
        return _take_fields(self, rows, columns, start)

    def _writer(self, file: IO[str]) -> Callable[[Row], object]:
        write = csv.writer(file, delimiter=self.delimiter, lineterminator="\n").writerow
        if self.has_header:
            write(self.columns)
        return write


class SpacedTable(TextTable):
    """A table whose fields are separated by blanks, as in the files of TREC."""

    in_words = "TREC"

    def _rows(self, lines: Iterable[str]) -> Iterator[Row]:
        return filter(None, map(str.split, lines))

    def _take(
        self, rows: Iterator[Row], columns: Sequence[str], start: int
    ) -> dict[str, list[Any]]:
        return _take_fields(self, rows, columns, start)

    def _writer(self, file: IO[str]) -> Callable[[Row], object]:
        return lambda row: file.write(f"{' '.join(row)}\n")


class JsonLinesTable(TextTable):
    """A table with an object of JSON in every line."""

    in_words = "JSON lines"

    def _rows(self, lines: Iterable[str]) -> Iterator[Row]:
        for number, line in enumerate(lines, start=1):
            if line.isspace():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(
                    f"{self.path}, line {number}: the line needs to be JSON ({error})"
                ) from None
            if not isinstance(row, dict):
                raise ValueError(
                    f"{self.path}, line {number}: the line needs to be an object of JSON "
                    f"(got {line.strip()[:80]!r})"
                )
            yield row

    def _take(
        self, rows: Iterator[Row], columns: Sequence[str], start: int
    ) -> dict[str, list[Any]]:
        values: dict[str, list[Any]] = {column: [] for column in columns}
        for place, row in enumerate(islice(rows, _ROWS_AT_ONCE)):
            for column, of_column in values.items():
                if column not in row:
                    raise ValueError(
                        f"{self.path}, line {self.line_of(start + place)}: there is no "
                        f"{column!r}, which other lines have"
                    )
                of_column.append(row[column])
        return values

    def _writer(self, file: IO[str]) -> Callable[[Row], object]:
        return lambda row: file.write(f"{json.dumps(row, ensure_ascii=False)}\n")


def _take_fields(
    table: TextTable, rows: Iterator[list[str]], columns: Sequence[str], start: int
) -> dict[str, list[str]]:
    """Returns the values of some columns in rows that need to have a field for each column."""
    width = len(table.columns)
    # One list of texts. The garbage collector would look at a list for each row again and again.
    fields: list[str] = []
    for row in islice(rows, _ROWS_AT_ONCE):
        if len(row) != width:
            line = table.line_of(start + len(fields) // width)
            raise ValueError(
                f"{table.path}, line {line}: {width} fields are needed, as "
                f"'{' '.join(table.columns)}' (got {len(row)}: {' '.join(row)[:80]!r})"
            )
        fields += row
    return {column: fields[table.columns.index(column) :: width] for column in columns}


def first_line(path: Path) -> str:
    """Returns the first line that holds anything."""
    with _open(path) as (_, lines), _naming(path):
        return next((line.rstrip("\r\n") for line in lines if not line.isspace()), "")


def _delimiter_of(path: Path) -> str:
    line = first_line(path)
    if "::" in line:
        raise ValueError(
            f"{path}: fields need to be separated by one sign, such as a comma (got '::'); "
            f"sed 's/::/,/g' makes it so"
        )
    return max(_DELIMITERS, key=line.count)


@contextmanager
def _open(path: Path) -> Iterator[tuple[IO[bytes], IO[str]]]:
    """Opens a text file, and what says how far it has been read."""
    with path.open("rb") as raw:
        is_gzip = raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
        binary: Any = gzip.GzipFile(fileobj=raw) if is_gzip else raw
        with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
            yield raw, text


@contextmanager
def _writing(path: Path) -> Iterator[IO[str]]:
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turns what decoders raise into errors that name the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {_first_undecodable(path)}: the file needs to be text in UTF-8 "
            f"(got byte {error.object[error.start]:#04x})"
        ) from None
    except (EOFError, gzip.BadGzipFile, csv.Error) as error:
        raise ValueError(f"{path}: the file cannot be read ({error})") from error


def _first_undecodable(path: Path) -> int:
    with path.open("rb") as raw:
        is_gzip = raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
        for number, line in enumerate(gzip.GzipFile(fileobj=raw) if is_gzip else raw, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0


@contextmanager
def _bar(path: Path) -> Iterator[Any]:
    with progress(path.stat().st_size, path.name) as bar:
        yield bar
