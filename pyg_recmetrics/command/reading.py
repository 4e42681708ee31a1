"""Reads tables from files, by pandas and pyarrow."""

import csv
import io
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet
from numpy.typing import NDArray

from pyg_recmetrics.checks import check_raw_ids
from pyg_recmetrics.command.options import note
from pyg_recmetrics.ranked_edges import NUMBER, QRELS, RUN, read_lines
from pyg_recmetrics.task.data_frames import find_column
from pyg_recmetrics.utils import reading

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
    """

    path: Path
    form: str
    data: pa.Table

    def read(self, **given: str | None) -> pd.DataFrame:
        """Returns the ids of users and items as texts, and all else as numbers.

        Args:
            **given (str or None): The column of what it holds, such as `user="customer"`; `None`
                is the one with a usual name.
        """
        names = self.data.column_names
        found: dict[str, Any] = {}
        for what, name in given.items():
            found[what] = name or find_column(names, what)
            if names.count(found[what]) != 1:
                of_what = "ranks or scores" if what == "score" else f"{what}s"
                raise ValueError(
                    f"{self.path}: one column needs to have "
                    f"{'a usual name' if name is None else repr(name)} for {of_what} "
                    f"(got {names[:20]}); --user-column, --item-column and, of interactions, "
                    f"--rating-column name others, and --columns (of lists, --list-columns) all if "
                    f"there is no header"
                )
        parts = ", ".join(f"{what}s from {name!r}" for what, name in found.items())
        note(f"{self.path} ({self.form}): {parts}")
        return pd.DataFrame(
            {
                what: self._ids(name) if what in ("user", "item") else self._numbers(name)
                for what, name in found.items()
            }
        )

    def vectors(self, id_column: str) -> NDArray[np.float32]:
        """Returns vectors, of shape `[num_rows, dim]`: a column of them, or columns of numbers."""
        names = self.data.column_names
        if vector := find_column(names, "vector"):
            names = [vector]
        else:
            is_row_number = re.compile(r"__index_level_\d+__|Unnamed: \d+|")  # pandas writes them
            names = [x for x in names if x != id_column and not is_row_number.fullmatch(x)]
        if not names:
            raise ValueError(f"{self.path}: numbers are needed beside the column {id_column!r}")
        note(f"{self.path}: vectors from {' to '.join(dict.fromkeys((names[0], names[-1])))!r}")
        column = self._column(names[0])
        if pa.types.is_struct(column.type) or not pa.types.is_nested(column.type):
            return np.stack([self._numbers(name) for name in names], axis=1).astype(np.float32)
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
        is_right = (lengths == lengths[0]) & (lengths > 0)
        self._check(names[0], is_right, "vectors of one length, and none without numbers")
        numbers = _as_numbers(pc.list_flatten(column)).reshape(len(column), lengths[0])
        self._check(names[0], np.isfinite(numbers).all(axis=1), "vectors of finite numbers")
        return numbers.astype(np.float32)

    def _ids(self, name: str) -> "pd.Series[Any]":
        """Returns ids as texts, as one format writes as a number what another writes as a text."""
        column = self._column(name)
        if pa.types.is_floating(column.type):  # integers with gaps become floats
            whole = pc.equal(column, pc.round(column))
            is_integer = pc.and_(whole, pc.less(pc.abs(column), _MAX_INTEGER))
            column = pc.if_else(is_integer, column, None).cast(pa.int64())
        elif not (pa.types.is_integer(column.type) or _is_text(column)):
            column = pa.nulls(len(column))
        texts = column.cast(pa.large_string())
        is_id = pc.fill_null(pc.match_substring_regex(texts, r"^[^\x00\n\r]+$"), False)
        self._check(name, is_id, "ids, integers or texts of one line")
        ids: pd.Series[Any] = texts.to_pandas()
        return ids

    def _numbers(self, name: str) -> NDArray[np.float64]:
        numbers = _as_numbers(self._column(name))
        self._check(name, np.isfinite(numbers), "finite numbers")
        return numbers

    def _column(self, name: str) -> pa.ChunkedArray:
        column = self.data.column(name)
        if len(column) == 0:
            raise ValueError(f"{self.path}: the file needs to hold rows (got none)")
        is_packed = pa.types.is_dictionary(column.type)
        return column.cast(column.type.value_type) if is_packed else column

    def _check(self, name: str, is_right: Any, wanted: str) -> None:
        """Raises for the first row that is wrong."""
        if not np.all(is_right):
            row = int(np.argmin(is_right))
            got = f"{self._column(name)[row].as_py()!r:.80} in row {row + 1}"
            raise ValueError(f"{self.path}: column {name!r} needs to hold {wanted} (got {got})")


def read_interactions(path: Path, options: Namespace, *, is_truth: bool = False) -> pd.DataFrame:
    """Returns the ids of users and items, and the ratings of the truth if they count."""
    table = read_table(path, options.columns)
    given = {"user": options.user_column, "item": options.item_column}
    rating = find_column(table.data.column_names, "rating") if is_truth else None
    is_asked = options.rating_column is not None or options.threshold is not None
    if (is_truth and is_asked) or (table.form == "TREC" and rating is not None):
        given["rating"] = options.rating_column
    elif rating is not None:
        why = f"{rating!r} is not used, so all rows are equally relevant"
        note(f"{path}: {why}; --rating-column {rating} and --threshold use it")
    frame = table.read(**given)
    if num_repeated := int(frame.duplicated(["user", "item"]).sum()):
        note(f"{path}: rows that repeat an interaction, which counts once: {num_repeated:,}")
    return frame


def read_lists(path: Path, options: Namespace) -> pd.DataFrame:
    """Returns users, items, and their ranks or scores."""
    table = read_table(path, options.list_columns)
    names = table.data.column_names
    by = "rank" if find_column(names, "rank") else "score"
    # Lists of another system may have the usual names.
    user = options.user_column if options.user_column in names else None
    item = options.item_column if options.item_column in names else None
    return table.read(user=user, item=item, **{by: None})


def read_vectors(kind: str, path: Path) -> dict[str, NDArray[np.float32]]:
    """Returns the embeddings of users or items by their ids."""
    table = read_table(path)
    column = find_column(table.data.column_names, kind, "id")
    ids: list[str] = table.read(**{kind: column})[kind].tolist()
    check_raw_ids(ids, str(path))
    return dict(zip(ids, table.vectors(str(column)), strict=True))


def _as_numbers(column: Any) -> NDArray[np.float64]:
    """Returns the numbers of a column, and NaN in place of all else."""
    if _is_text(column):
        texts = pc.utf8_trim_whitespace(column)
        is_number = pc.match_substring_regex(texts, f"^({NUMBER})$")
        column = pc.if_else(is_number, texts, None)
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        column = pa.nulls(len(column))
    return np.asarray(column.cast(pa.float64()), dtype=np.float64)


def _is_text(column: Any) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


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
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    with reading(path) as file:
        head = file.peek(_NUM_BYTES)
        if not head.strip():
            raise ValueError("the file is empty")
        if suffix in (".parquet", ".pq") or head.startswith(b"PAR1"):
            return TableFile(path, "Parquet", pa.parquet.read_table(file))
        lines = head.decode("utf-8-sig", "replace").splitlines()
        line = next((line for line in lines if line.strip() and line[0] != "#"), "")
        if suffix in (".trec", ".run", ".qrels"):
            known = RUN if len(line.split()) >= len(RUN) else QRELS
            # As in trec_eval, a run is ranked by its scores.
            rows = read_lines(file, known).drop(columns="rank", errors="ignore")
            return TableFile(path, "TREC", pa.Table.from_pandas(rows, preserve_index=False))
        if suffix in (".jsonl", ".ndjson", ".json") or line.startswith("{"):
            return TableFile(path, "JSON lines", pa.json.read_json(file))
        sign = "\t" if suffix in (".tsv", ".inter") else max(",\t;|", key=line.count)
        form = {",": "CSV", "\t": "TSV"}.get(sign, f"CSV with {sign!r}")
        # In tables without quotes, titles may hold some. R quotes all texts, the names first.
        is_quoted = sign != "\t" or line.startswith('"')
        return TableFile(path, form, _read_text(file.read(), sign, columns, is_quoted))


def read_ids(path: Path) -> list[str]:
    """Returns the ids in the lines of a file, which may begin with the name of a column."""
    with reading(path) as file:
        # Lines end as in all files of tables, and an id may hold other signs of Unicode.
        text = file.read().decode("utf-8-sig").replace("\r\n", "\n")
    ids: list[str] = text.removesuffix("\n").split("\n")
    if "" in ids:
        raise ValueError(f"{path}, line {ids.index('') + 1}: an id is needed (got nothing)")
    if find_column(ids[:1], "item", "id"):
        note(f"{path}: the first line, {ids[0]!r}, is read as the name of the column")
        ids = ids[1:]
    check_raw_ids(ids, str(path))
    return ids


def _read_text(data: bytes, sign: str, columns: Sequence[str] | None, is_quoted: bool) -> pa.Table:
    """Reads a table whose fields have a sign between them."""
    if b"\0" in data:  # where the fields of some readers end
        line = data.partition(b"\0")[0].count(b"\n") + 1
        raise ValueError(f"line {line} needs to hold text (got a NUL byte)")
    has_quotes = is_quoted and b'"' in data
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE
    if has_quotes:
        _check_rows(data, sign, quoting)
    frame = pd.read_csv(
        io.BytesIO(data),
        sep=sign,
        header=None,
        dtype=str,
        na_filter=False,
        quoting=quoting,
        skipinitialspace=True,
        encoding="utf-8-sig",
    )
    if not has_quotes and frame.iloc[:, -1].eq("").any():  # also where a row ends before
        _check_rows(data, sign, quoting)
    first = frame.iloc[0].tolist()
    if columns is None:
        names, rows = first, frame.iloc[1:]
    else:
        names, rows = [*columns], frame
        if len(names) != len(first):
            raise ValueError(f"{len(names)} columns are needed, {names} (got {first})")
        if find_column(first, "user") and find_column(first, "item"):
            raise ValueError(f"columns are named of a file that has a header (got {first})")
    if rows[rows[0] == names[0]].eq(names).all(axis=1).any():
        raise ValueError(f"a row repeats the names of the columns (got {names})")
    return pa.Table.from_pandas(rows, preserve_index=False).rename_columns(names)


def _check_rows(data: bytes, sign: str, quoting: Literal[0, 3]) -> None:
    """Raises if a row is shorter than the first, or a quoted field does not end in its line.

    A quote that nothing closes would otherwise take up the rows that follow.
    """
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    rows = csv.reader(text, delimiter=sign, skipinitialspace=True, quoting=quoting, strict=True)
    length, line = 0, 0
    try:
        for row in rows:
            if rows.line_num > line + 1:
                raise csv.Error(f"one that goes on to line {rows.line_num}")
            line = rows.line_num
            if any(row):
                length = length or len(row)
                if len(row) < length:
                    raise ValueError(
                        f"line {line} needs to hold {length} fields, as the first row does (got "
                        f"{len(row)})"
                    )
    except csv.Error as error:
        raise ValueError(
            f"line {line + 1} needs to close the quote that begins a field, and to double quotes "
            f"inside of it (got {error}); fields of several lines need Parquet or JSON lines"
        ) from error
