"""Reads and divides files: tables by pandas and pyarrow, arrays by NumPy and safetensors."""

import argparse
import csv
import gzip
import io
import json
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import torch
from numpy.typing import NDArray

from pyg_recmetrics.command.notes import note
from pyg_recmetrics.extras import requires_extra

Array: TypeAlias = NDArray[Any] | torch.Tensor
Numbers: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]
Texts: TypeAlias = "pd.Series[Any]"

#: Names of columns in lower case without punctuation, by what the columns hold, most usual first.
_NAMES = {
    "user": "userid user uid users useridx u customerid visitorid memberid accountid reviewerid "
    "sessionid session queryid qid query",
    "item": "itemid item iid items itemidx i movieid productid articleid bookid artistid trackid "
    "songid gameid businessid newsid videoid asin parentasin isbn sku docid docno",
    "rating": "rating ratings stars relevance label overall weight",
    "score": "score scores prediction pred predicted estimate est",
    "rank": "rank ranking position",
    "time": "timestamp time unixtime unixreviewtime datetime date ts eventtime createdat t",
    "vector": "features embedding embeddings vector vectors factors emb",
    "id": "id ids index",
}

_RUN_COLUMNS = ("user", "Q0", "item", "rank", "score", "tag")
_QRELS_COLUMNS = ("user", "iteration", "item", "relevance")

#: How an integer is written, in up to 18 digits.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class TableFile:
    """A table in a file of any format.

    Attributes:
        path: The file.
        in_words: Its format.
        columns: The names of its columns.
        load: Returns the values of a column.
        write: Writes some of its rows into a file.
    """

    path: Path
    in_words: str
    columns: tuple[str, ...]
    load: Callable[[str], Any]
    write: Callable[[NDArray[np.bool_], IO[bytes]], object]

    def find(self, what: str, options: argparse.Namespace, *first: str) -> str:
        """Returns the column that an option names, or one with a usual name.

        Args:
            what (str): What the column holds, such as `"user"`.
            options (Namespace): The options that name columns.
            *first (str): Whose usual names come before those of `what`.

        Raises:
            ValueError: If there is no such column, or more than one.
        """
        given = getattr(options, f"{what}_column", None)
        column = given or find_column([*first, what], self.columns)
        if self.columns.count(column) != 1:
            name = "a usual name" if given is None else repr(given)
            hint = "--user-column and such name others, and --columns all if there is no header"
            got = f"{hint} (got {', '.join(map(repr, self.columns[:20]))})"
            raise ValueError(f"{self.path}: one column needs to have {name} for {what}s; {got}")
        return str(column)

    def say(self, **found: str) -> None:
        """Says what is read from which column."""
        parts = ", ".join(f"{what}s from {column!r}" for what, column in found.items())
        note(f"{self.path} ({self.in_words}): {parts}")

    def read(self, options: argparse.Namespace, *more: str) -> pd.DataFrame:
        """Returns the ids of users and items, and numbers or times: `"rating"`, `"time"`."""
        found = {what: self.find(what, options) for what in ("user", "item", *more)}
        self.say(**found)
        frame = pd.DataFrame({what: self.ids(found[what]) for what in ("user", "item")})
        read = {what: self.times if what == "time" else self.reals for what in more}
        return frame.assign(**{what: read[what](found[what]) for what in more})

    def ids(self, column: str) -> Texts:
        """Returns ids as texts, as one format writes as a number what another writes as a text."""
        values = self._values(column)
        texts = pd.Series(values.map(_written), dtype=object)
        if (is_wrong := texts.isna().to_numpy()).any():
            row = int(is_wrong.argmax())
            got = f"{values.iloc[row]!r:.80} in row {row + 1}"
            raise self._error(column, "ids, integers or texts of one line", got)
        return texts

    def reals(self, column: str) -> Reals:
        """Returns finite numbers."""
        return self._as_reals(column, self._values(column))

    def times(self, column: str) -> Reals:
        """Returns times, in seconds if the column holds dates."""
        values = self._values(column)
        try:
            return self._as_reals(column, values)
        except ValueError as not_numbers:
            try:
                times = pd.to_datetime(values, format="ISO8601", utc=True)
            except (TypeError, ValueError) as error:
                raise self._error(column, "numbers, or dates as 2024-05-31 12:00", error) from None
            if times.isna().any():
                raise not_numbers
            return np.asarray((times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1))

    def vectors(self, columns: Sequence[str]) -> Reals:
        """Returns vectors, of shape `[num_rows, dim]`: a column of them, or columns of numbers."""
        rows = self._values(columns[0])
        if len(columns) > 1 or not isinstance(rows.iloc[0], list | np.ndarray):
            return np.stack([self.reals(column) for column in columns], axis=1)
        try:
            (length,) = set(map(len, rows))
            flat = np.concatenate([*rows])
        except (TypeError, ValueError) as error:
            raise self._error(columns[0], "vectors of one length", error) from None
        return self._as_reals(columns[0], flat).reshape(len(rows), length)

    def _values(self, column: str) -> Any:
        with _naming(self.path):
            values = self.load(column)
        if len(values) == 0:
            raise ValueError(f"{self.path}: the file needs to hold rows (got none)")
        return values

    def _as_reals(self, column: str, values: Any) -> Reals:
        try:
            array = pa.array(values, from_pandas=True)
            if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
                array = pa.compute.utf8_trim_whitespace(array)
            elif pa.types.is_boolean(array.type):
                raise TypeError("booleans")
            reals = np.asarray(array.cast(pa.float64()), dtype=np.float64)
            if len(reals) == 0 or not np.isfinite(reals).all():
                raise TypeError("nothing, or others")
        except (pa.ArrowException, TypeError) as error:
            raise self._error(column, "finite numbers", error) from None
        return reals

    def _error(self, column: str, wanted: str, got: object) -> ValueError:
        return ValueError(f"{self.path}: column {column!r} needs to hold {wanted} (got {got})")


def find_column(what: Sequence[str], columns: Iterable[object]) -> str | None:
    """Returns the column with one of the usual names of what it holds; `None` if there is none.

    Case and punctuation do not count, nor does a type behind a colon, as RecBole writes it.

    Args:
        what (sequence of str): What the column may hold, such as `"user"`.
        columns (iterable): The columns of a table.
    """
    by_name: dict[str, str] = {}
    for column in map(str, columns):
        by_name.setdefault(re.sub(r"[\W_]", "", column.partition(":")[0].lower()), column)
    names = (name for kind in what for name in _NAMES[kind].split())
    return next((by_name[name] for name in names if name in by_name), None)


def number_ids(columns: Sequence[Texts]) -> tuple[list[Any], list[Numbers]]:
    """Returns all ids in their order, and the numbers of the ids of each column.

    Ids are integers if all of them are written as such, and else texts.
    """
    texts = pd.concat(columns, ignore_index=True)
    are_integers = all(map(_INTEGER.fullmatch, texts.unique()))
    numbers, ids = pd.factorize(texts.astype(np.int64) if are_integers else texts, sort=True)
    return ids.tolist(), np.split(numbers, np.cumsum([*map(len, columns)]))[: len(columns)]


def as_id(text: str) -> str | int:
    """Returns an id as an integer if it is written as one."""
    return int(text) if _INTEGER.fullmatch(text) else text


def _written(value: Any) -> str | None:
    """Returns an id as text; `None` if it is none."""
    if isinstance(value, float) and value.is_integer():  # what becomes of integers with gaps
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
        return None
    text = str(value)
    return text if text and "\n" not in text and "\r" not in text else None


def read_table(
    path: Path, columns: Sequence[str] | None = None, *, is_run: bool = False
) -> TableFile:
    """Reads a table. The suffix of its name says the format, or else its first line.

    Args:
        path (Path): The file.
        columns (sequence of str, optional): The names of its columns, if it has no header.
            (default: `None`)
        is_run (bool, optional): Whether it is a run of TREC, whatever its name is.
            (default: `False`)

    Raises:
        OSError: If the file cannot be opened.
        ValueError: If the file is empty, damaged, or has another format.
    """
    if path.is_fifo():
        raise ValueError(f"{path}: the file is read twice, which a pipe cannot be")
    suffix = next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")
    with _naming(path):
        with path.open("rb") as file:
            if suffix in (".parquet", ".pq") or file.read(4) == b"PAR1":
                return _read_parquet(path)
        with _opened(path) as text:
            line = next((line for line in text if not line.isspace()), "")
        if suffix in (".jsonl", ".ndjson", ".json") or line.startswith("{"):
            return _read_json_lines(path)
        fields = line.split()
        is_open = columns is None and suffix not in (".csv", ".tsv", ".inter")
        looks_so = is_open and (len(fields), *fields[1:2]) in ((4, "0"), (4, "Q0"), (6, "Q0"))
        if is_run or looks_so or suffix in (".trec", ".run", ".qrels"):
            is_run = is_run or len(fields) == len(_RUN_COLUMNS)
            return _read_text(path, "TREC", r"\s+", _RUN_COLUMNS if is_run else _QRELS_COLUMNS)
        sign = "\t" if suffix in (".tsv", ".inter") else max(",\t;|", key=line.count)
        words = {",": "CSV", "\t": "TSV"}.get(sign, f"CSV with {sign!r}")
        return _read_text(path, words, sign, columns)


def _read_parquet(path: Path) -> TableFile:
    file = pa.parquet.ParquetFile(path)
    return TableFile(
        path,
        "Parquet",
        tuple(file.schema_arrow.names),
        lambda column: file.read(columns=[column]).column(0).to_pandas(),
        lambda keep, to: pa.parquet.write_table(file.read().filter(pa.array(keep)), to),
    )


def _read_json_lines(path: Path) -> TableFile:
    with _opened(path) as text:
        lines = [line.rstrip("\r\n") for line in text if not line.isspace()]
    rows = []
    for line in lines:
        try:
            rows.append(dict(json.loads(line)))
        except (RecursionError, TypeError, ValueError) as error:
            wanted = "every line needs to be an object of JSON"
            raise ValueError(f"{wanted} (got {line:.80}: {error})") from None
    frame = pd.DataFrame(rows)
    return TableFile(
        path,
        "JSON lines",
        tuple(frame.columns),
        frame.__getitem__,
        lambda keep, to: to.writelines(f"{line}\n".encode() for line in compress(lines, keep)),
    )


def _read_text(path: Path, words: str, sign: str, columns: Sequence[str] | None) -> TableFile:
    """Reads a table whose fields have a sign between them. They are quoted in CSV alone."""
    quoting = csv.QUOTE_MINIMAL if words.startswith("CSV") else csv.QUOTE_NONE
    form: Any = {"sep": sign, "quoting": quoting, "dtype": str, "na_filter": False}
    form["skipinitialspace"] = True
    with _opened(path) as text:
        first = [*pd.read_csv(text, header=None, nrows=1, **form).iloc[0]]
    names = [*(first if columns is None else columns)]
    if len(names) != len(first):
        raise ValueError(f"{len(names)} columns are needed, {names} (got {first})")
    if columns is not None and all(find_column([what], first) for what in ("user", "item")):
        raise ValueError(f"columns are named of a file that has a header (got {first})")
    header = 0 if columns is None else None
    with _opened(path) as text, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # of fields that are lost
        # By numbers, as two columns may have the same name.
        frame = pd.read_csv(text, names=range(len(names)), header=header, index_col=False, **form)
    same = frame[frame[0] == names[0]]
    if same.eq(names).all(axis=1).any():
        raise ValueError(f"a row repeats the names of the columns (got {names})")
    form = {"sep": " " if words == "TREC" else sign, "quoting": quoting, "lineterminator": "\n"}
    form |= {"header": names if columns is None else False, "index": False}
    return TableFile(
        path,
        words,
        tuple(names),
        lambda column: frame[names.index(column)],
        lambda keep, to: frame[keep].to_csv(to, **form),
    )


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    """Opens a text, which may be compressed by gzip."""
    with path.open("rb") as raw:
        is_gzip = raw.peek(2).startswith(b"\x1f\x8b")
        binary: Any = gzip.GzipFile(fileobj=raw) if is_gzip else raw
        with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
            yield text


#: What libraries raise where a file is damaged.
_OF_LIBRARIES = (pa.ArrowException, zipfile.BadZipFile, zlib.error)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turns what readers raise into errors that name the file."""
    try:
        yield
    except (EOFError, ValueError, Warning, OSError, *_OF_LIBRARIES) as error:
        if getattr(error, "filename", None):  # a file that cannot be opened, which it names
            raise
        raise ValueError(f"{path}: {str(error).strip()}") from None


def is_array_file(file: str) -> bool:
    """Returns whether a file, or the one in `FILE:NAME`, holds arrays, whose rows have no ids."""
    return split_name(file)[0].suffix.lower() in (".npy", ".npz", ".safetensors")


def split_name(file: str) -> tuple[Path, str | None]:
    """Returns the file and the name of the array of `FILE:NAME`; `None` if there is no name."""
    match = re.fullmatch(r"(.+\.(?:npz|safetensors)):(.+)", file, flags=re.IGNORECASE)
    return (Path(match[1]), match[2]) if match else (Path(file), None)


def read_array(file: str, what: str) -> Array:
    """Reads an array. One in a `.npy` file stays there, and is read in parts.

    Args:
        file (str): The file, or `FILE:NAME` for one of its arrays.
        what (str): What the array holds, such as `"user"`: of several arrays, it is the one with
            this word in its name.

    Raises:
        ImportError: If safetensors is not installed.
        OSError: If the file cannot be opened.
        ValueError: If it is damaged, or does not say which of its arrays it is.
    """
    path, name = split_name(file)
    suffix = path.suffix.lower()
    with _naming(path), path.open("rb") as raw:
        if suffix == ".safetensors":
            return torch.as_tensor(_choose(_tensors(path), path, name, what))
        loaded = np.load(path if suffix == ".npy" else raw, mmap_mode="r", allow_pickle=False)
        is_one = isinstance(loaded, np.ndarray)
        array: NDArray[Any] = loaded if is_one else _choose(loaded, path, name, what)
        if array.dtype.kind not in "fiuU":
            raise ValueError(f"the array needs to hold numbers (got {array.dtype})")
        return array


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    with requires_extra("safetensors", "all", str(path)):
        import safetensors.torch
    try:
        return dict(safetensors.torch.load_file(path))
    except safetensors.SafetensorError as error:
        raise ValueError(f"the file needs to be safetensors ({error})") from None


def _choose(arrays: Any, path: Path, given: str | None, what: str) -> Any:
    """Returns one of several arrays: that of a name, the only one, or the one about `what`."""
    names = [*arrays]
    about = names if len(names) == 1 else [name for name in names if what in name.lower()]
    chosen = about[0] if given is None and len(about) == 1 else given
    if chosen not in names:
        raise ValueError(f"FILE:NAME needs to say which array is meant (got {', '.join(names)})")
    note(f"{path}: {what} from {chosen!r}")
    return arrays[chosen]
