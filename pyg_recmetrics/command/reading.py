"""Reads files: tables by pandas and pyarrow, arrays by NumPy and safetensors."""

import csv
import re
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet
import torch
from numpy.typing import NDArray

from pyg_recmetrics.command.notes import note
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.files import reading
from pyg_recmetrics.ranked_edges import trec
from pyg_recmetrics.task.data_frames import find_column

Array: TypeAlias = NDArray[Any] | torch.Tensor
Texts: TypeAlias = "pd.Series[Any]"

#: So much of a file says what its format is.
_NUM_BYTES = 2**13

#: Up to this size, floating-point numbers tell all integers apart.
_MAX_INTEGER = 2**53


@dataclass(frozen=True)
class TableFile:
    """A table in a file of any format.

    Attributes:
        path: The file.
        form: Its format, in words.
        data: Its columns, as text in formats without types.
        has_header: Whether the first line names the columns.
    """

    path: Path
    form: str
    data: pa.Table
    has_header: bool = True

    def find(self, *what: str, given: str | None = None, hint: str = "") -> str:
        """Returns the column of a given name, or one with a usual name of what it holds.

        Raises:
            ValueError: If there is no such column, or more than one.
        """
        names = self.data.column_names
        column = find_column(names, *what) if given is None else given
        if names.count(column) != 1:
            name = "a usual name" if given is None else repr(given)
            raise ValueError(
                f"{self.path}: one column needs to have {name} for {what[0]}s{hint} (got "
                f"{', '.join(map(repr, names[:20]))})"
            )
        return str(column)

    def read(self, options: Namespace, *more: str) -> pd.DataFrame:
        """Returns the ids of users and items, and numbers or times: `"rating"`, `"time"`."""
        found = {}
        for what in ("user", "item", *more):
            option, hint = f"{what}_column", ""
            if option in options:
                hint = f"; --{what}-column names it, and --columns all if there is no header"
            found[what] = self.find(what, given=getattr(options, option, None), hint=hint)
        self.say(**found)
        read = {"user": self.ids, "item": self.ids, "time": self.times}
        return pd.DataFrame({w: read.get(w, self.numbers)(name) for w, name in found.items()})

    def say(self, **found: str) -> None:
        """Says what is read from which column."""
        parts = ", ".join(f"{what}s from {name!r}" for what, name in found.items())
        note(f"{self.path} ({self.form}): {parts}")

    def ids(self, name: str) -> Texts:
        """Returns ids as texts, as one format writes as a number what another writes as a text."""
        column = self._column(name)
        kind, texts = column.type, pa.nulls(len(column), pa.large_string())
        if pa.types.is_floating(kind):  # what becomes of integers with gaps
            whole = pc.and_(
                pc.equal(column, pc.round(column)), pc.less(pc.abs(column), _MAX_INTEGER)
            )
            column = pc.if_else(whole, column, None).cast(pa.int64())
        if pa.types.is_integer(column.type) or _is_text(kind):
            texts = column.cast(pa.large_string())
        is_id = pc.fill_null(pc.match_substring_regex(texts, r"^[^\x00\n\r]+$"), False)
        if not pc.all(is_id).as_py():
            row = pc.index(is_id, False).as_py()
            got = f"{self._column(name)[row].as_py()!r:.80} in row {row + 1}"
            raise self._error(name, "ids, integers or texts of one line", got)
        ids: Texts = texts.to_pandas()
        return ids

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Returns finite numbers."""
        return self._as_numbers(name, self._column(name))

    def times(self, name: str) -> NDArray[np.float64]:
        """Returns times, in seconds if the column holds dates."""
        column = self._column(name)
        try:
            return self._as_numbers(name, column)
        except ValueError:
            times = pd.to_datetime(column.to_pandas(), format="ISO8601", utc=True, errors="coerce")
        if (is_wrong := times.isna()).any():
            row = int(is_wrong.argmax())
            got = f"{column[row].as_py()!r:.80} in row {row + 1}"
            raise self._error(name, "numbers, or dates as 2024-05-31 12:00", got)
        return np.asarray((times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1))

    def vectors(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Returns vectors, of shape `[num_rows, dim]`: a column of them, or columns of numbers."""
        column = self._column(names[0])
        if not pa.types.is_nested(column.type):
            return np.stack([self.numbers(name) for name in names], axis=1)
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(names) > 1 or len(lengths) > 1 or not lengths[0]:
            raise self._error(names[0], "vectors of one length", f"the lengths {lengths[:5]}")
        return self._as_numbers(names[0], pc.list_flatten(column)).reshape(-1, lengths[0])

    def write(self, keep: NDArray[np.bool_], file: IO[bytes]) -> None:
        """Writes some of the rows in the format of the file."""
        rows = self.data.filter(pa.array(keep))
        if self.form == "Parquet":
            pa.parquet.write_table(rows, file)
        elif self.form == "JSON lines":
            with reading(self.path) as lines:
                file.writelines(compress((line for line in lines if not line.isspace()), keep))
        else:
            sign = {"CSV": ",", "TSV": "\t", "TREC": " "}.get(self.form, self.form[-2])
            quoting = csv.QUOTE_MINIMAL if self.form.startswith("CSV") else csv.QUOTE_NONE
            rows.to_pandas().to_csv(
                file,
                sep=sign,
                quoting=quoting,
                header=self.has_header,
                index=False,
                lineterminator="\n",
            )

    def _column(self, name: str) -> pa.ChunkedArray:
        column = self.data.column(name)
        if len(column) == 0:
            raise ValueError(f"{self.path}: the file needs to hold rows (got none)")
        is_packed = pa.types.is_dictionary(column.type)
        return column.cast(column.type.value_type) if is_packed else column

    def _as_numbers(self, name: str, column: Any) -> NDArray[np.float64]:
        numbers = _finite(column)
        if numbers is None:
            ends = range(1, len(column) + 1)
            place = bisect_left(ends, True, key=lambda end: _finite(column[:end]) is None)
            row = place * self.data.num_rows // len(column)  # which may hold a vector
            got = f"{column[place].as_py()!r:.80} in row {row + 1}"
            raise self._error(name, "finite numbers", got)
        return numbers

    def _error(self, name: str, wanted: str, got: object) -> ValueError:
        return ValueError(f"{self.path}: column {name!r} needs to hold {wanted} (got {got})")


def _finite(column: Any) -> NDArray[np.float64] | None:
    """Returns a column of finite numbers; `None` if it holds anything else."""
    if pa.types.is_boolean(column.type):
        return None
    if _is_text(column.type):
        column = pc.utf8_trim_whitespace(column)
    try:
        numbers = np.asarray(column.cast(pa.float64()), dtype=np.float64)
    except pa.ArrowException:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def read_table(path: Path, columns: Sequence[str] | None = None) -> TableFile:
    """Reads a table. The suffix of its name says the format, or else its first line.

    Args:
        path (Path): The file.
        columns (sequence of str, optional): The names of its columns, if it has no header.
            (default: `None`)

    Raises:
        OSError: If the file cannot be opened.
        ValueError: If the file is empty, damaged, or has another format.
    """
    suffix = next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")
    with reading(path) as file:
        head = file.peek(_NUM_BYTES)
        if not head.strip():
            raise ValueError("the file is empty")
        if suffix in (".parquet", ".pq") or head.startswith(b"PAR1"):
            return TableFile(path, "Parquet", pa.parquet.read_table(file))
        lines = head.decode("utf-8-sig", "replace").splitlines()
        line = next((line for line in lines if line.strip() and line[0] != "#"), "")
        if suffix in (".jsonl", ".ndjson", ".json") or line.startswith("{"):
            return TableFile(path, "JSON lines", pa.json.read_json(file))
        fields = line.split()
        looks_so = (len(fields), *fields[1:2]) in ((4, "0"), (4, "Q0"), (6, "Q0"))
        is_open = columns is None and suffix not in (".csv", ".tsv", ".inter")
        if suffix in (".trec", ".run", ".qrels") or (is_open and looks_so):
            known = trec.RUN if len(fields) >= len(trec.RUN) else trec.QRELS
            lines = trec.read_lines(file, known, "evaluate")
            return TableFile(path, "TREC", pa.Table.from_pandas(lines, preserve_index=False), False)
        sign = "\t" if suffix in (".tsv", ".inter") else max(",\t;|", key=line.count)
        form = {",": "CSV", "\t": "TSV"}.get(sign, f"CSV with {sign!r}")
        return TableFile(path, form, _read_text(file, sign, columns), columns is None)


def _read_text(file: IO[bytes], sign: str, columns: Sequence[str] | None) -> pa.Table:
    """Reads a table whose fields have a sign between them. They are quoted in CSV alone."""
    try:
        frame = pd.read_csv(
            file,
            sep=sign,
            header=None,
            dtype=str,
            na_filter=False,
            quoting=csv.QUOTE_NONE if sign == "\t" else csv.QUOTE_MINIMAL,
            skipinitialspace=True,
            encoding="utf-8-sig",
        )
    except pd.errors.ParserError as error:
        if sizes := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)):
            wanted, line, got = sizes.groups()
            many = f"line {line} has more fields than the first ({got}, not {wanted})"
            raise ValueError(many) from None
        is_open = "EOF inside string" in str(error)
        raise ValueError("a quote is opened and never closed" if is_open else error) from None
    first = [*frame.iloc[0]]
    names = first if columns is None else [*columns]
    if len(names) != len(first):
        raise ValueError(f"{len(names)} columns are needed, {names} (got {first})")
    if columns is not None and find_column(first, "user") and find_column(first, "item"):
        raise ValueError(f"columns are named of a file that has a header (got {first})")
    rows = frame if columns is not None else frame.iloc[1:]
    if rows[rows[0] == names[0]].eq(names).all(axis=1).any():
        raise ValueError(f"a row repeats the names of the columns (got {names})")
    return pa.Table.from_pandas(rows, preserve_index=False).rename_columns(names)


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
    with reading(path) as opened:
        if suffix == ".safetensors":
            return torch.as_tensor(_choose(_read_tensors(path), path, name, what))
        loaded = np.load(path if suffix == ".npy" else opened, mmap_mode="r", allow_pickle=False)
        is_one = isinstance(loaded, np.ndarray)
        array: NDArray[Any] = loaded if is_one else _choose(loaded, path, name, what)
        if array.dtype.kind not in "fiuU":
            raise ValueError(f"the array needs to hold numbers (got {array.dtype})")
        return array


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
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
