"""Reads and divides tables of text: CSV, TSV, JSON lines, and the files of TREC."""

import csv
import gzip
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, TypeAlias

from pyg_recmetrics.command.batches import TextBatch
from pyg_recmetrics.command.notes import progress
from pyg_recmetrics.files import replacing

#: The fields of a line, by place or by name.
Row: TypeAlias = Any

#: How many rows are held at once.
_ROWS_AT_ONCE = 2**16

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
    def _find_wrong(self, rows: Sequence[Row]) -> tuple[int, str] | None:
        """Returns the place of a row of another form than the others, and what is wrong."""

    @abstractmethod
    def _key(self, column: str) -> Any:
        """Returns what a row has for a column: its place or its name."""

    @abstractmethod
    def _writer(self, file: IO[str]) -> Callable[[Row], object]:
        """Returns what writes a row into a file, which has its header by then."""

    def batches(self, columns: Sequence[str]) -> Iterator[TextBatch]:
        """Yields some rows of some columns after another.

        Raises:
            ValueError: If the file is not text, or a line has another form than the others.
        """
        getters = {column: itemgetter(self._key(column)) for column in columns}
        start = 0
        with _open(self.path) as (raw, lines), _bar(self.path) as bar:
            for rows in self._groups(lines):
                bar.update(raw.tell() - bar.n)
                if wrong := self._find_wrong(rows):
                    place, what = wrong
                    raise ValueError(f"{self.path}, line {self._line_of(start + place)}: {what}")
                yield TextBatch(
                    self.path,
                    {column: list(map(getter, rows)) for column, getter in getters.items()},
                    lambda place, start=start: self._line_of(start + place),  # type: ignore[misc]
                )
                start += len(rows)

    def divide(self, part_of: Sequence[int], paths: Sequence[Path]) -> None:
        """Writes every row into the file of its part; those of part `-1` into none."""
        with _open(self.path) as (raw, lines), _bar(self.path) as bar, ExitStack() as stack:
            writers = [self._writer(stack.enter_context(_writing(path))) for path in paths]
            parts = iter(part_of)
            for rows in self._groups(lines):
                bar.update(raw.tell() - bar.n)
                for row, part in zip(rows, parts):  # noqa: B905 (rows come first, so none is lost)
                    if part >= 0:
                        writers[part](row)

    def _groups(self, lines: Iterable[str]) -> Iterator[list[Row]]:
        rows = self._data_rows(lines)
        while True:
            with _naming(self.path):
                group = list(islice(rows, _ROWS_AT_ONCE))
            if not group:
                return
            yield group

    def _data_rows(self, lines: Iterable[str]) -> Iterator[Row]:
        return self._rows(lines)

    def _line_of(self, row: int) -> int:
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

    def _find_wrong(self, rows: Sequence[Row]) -> tuple[int, str] | None:
        lengths = list(map(len, rows))
        width = len(self.columns)
        if lengths.count(width) == len(rows):
            return None
        place = next(place for place, length in enumerate(lengths) if length != width)
        return place, f"{width} fields are needed, one for every column (got {lengths[place]})"

    def _key(self, column: str) -> int:
        return self.columns.index(column)

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

    def _find_wrong(self, rows: Sequence[Row]) -> tuple[int, str] | None:
        for place, row in enumerate(rows):
            if len(row) != len(self.columns):
                form = " ".join(self.columns)
                return place, f"the line needs to be '{form}' (got {' '.join(row)[:80]!r})"
        return None

    def _key(self, column: str) -> int:
        return self.columns.index(column)

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

    def _find_wrong(self, rows: Sequence[Row]) -> tuple[int, str] | None:
        for place, row in enumerate(rows):
            if missing := [column for column in self.columns if column not in row]:
                return place, f"there is no {missing[0]!r}, which the first line has"
        return None

    def _key(self, column: str) -> str:
        return column

    def _writer(self, file: IO[str]) -> Callable[[Row], object]:
        return lambda row: file.write(f"{json.dumps(row, ensure_ascii=False)}\n")


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
