"""Reads and divides tables in Parquet files, with pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from pyg_recmetrics.command.batches import Batch, RaggedIds, Reals
from pyg_recmetrics.command.ids import Ids, Numbers
from pyg_recmetrics.command.notes import progress
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.files import replacing

#: How many rows are held at once.
_ROWS_AT_ONCE = 2**17


class ParquetTable:
    """A table in a Parquet file.

    Args:
        path (Path): The file.

    Raises:
        ImportError: If pyarrow is not installed.
        OSError: If the file cannot be opened.
        ValueError: If it is no Parquet file.
    """

    in_words = "Parquet"

    def __init__(self, path: Path) -> None:
        with requires_extra("pyarrow", "all", str(path)):
            import pyarrow.parquet
        self.path = path
        path.open("rb").close()  # whose errors name the file
        try:
            self._file: Any = pyarrow.parquet.ParquetFile(path)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f"{path}: the file needs to be in Parquet ({error})") from None
        self.columns = tuple(self._file.schema_arrow.names)
        if self._file.metadata.num_rows == 0:
            raise ValueError(f"{path}: the file needs to hold rows (got none)")

    def batches(self, columns: Sequence[str]) -> Iterator["ArrowBatch"]:
        """Yields some rows of some columns after another."""
        start = 0
        with progress(self._file.metadata.num_rows, self.path.name) as bar:
            for batch in self._batches(list(columns)):
                bar.update(len(batch))
                yield ArrowBatch(self.path, batch, start)
                start += len(batch)

    def divide(self, part_of: Sequence[int], paths: Sequence[Path]) -> None:
        """Writes every row into the file of its part; those of part `-1` into none."""
        import pyarrow as pa
        import pyarrow.parquet

        schema, start = self._file.schema_arrow, 0
        parts = np.asarray(part_of)
        with ExitStack() as stack:
            files = [stack.enter_context(replacing(path)) for path in paths]
            writers = [
                stack.enter_context(pyarrow.parquet.ParquetWriter(file, schema)) for file in files
            ]
            for batch in self._batches(None):
                of_batch = parts[start : start + len(batch)]
                start += len(batch)
                for part, writer in enumerate(writers):
                    writer.write_batch(batch.filter(pa.array(of_batch == part)))

    def _batches(self, columns: list[str] | None) -> Iterator[Any]:
        import pyarrow as pa

        try:
            yield from self._file.iter_batches(_ROWS_AT_ONCE, columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{self.path}: the file is damaged ({error})") from None


class ArrowBatch(Batch):
    """Rows of a Parquet file.

    Args:
        path (Path): The file.
        batch (pyarrow.RecordBatch): The rows.
        start (int): How many rows come before them.
    """

    def __init__(self, path: Path, batch: Any, start: int) -> None:
        self.path, self.batch, self.start = path, batch, start

    def __len__(self) -> int:
        return len(self.batch)

    def ids(self, column: str, ids: Ids) -> Numbers:
        return self._ids(column, self._complete(column), ids)

    def reals(self, column: str) -> Reals:
        import pyarrow as pa

        values = self._complete(column)
        kind = values.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_decimal(kind)):
            raise self._error(column, "numbers", kind)
        return self._finite(column, values.cast(pa.float64()).to_numpy(zero_copy_only=False))

    def times(self, column: str) -> Reals:
        import pyarrow as pa

        values = self._complete(column)
        if pa.types.is_date(values.type):
            values = values.cast(pa.timestamp("s"))
        if not pa.types.is_timestamp(values.type):
            return self.reals(column)
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[values.type.unit]
        counted = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return np.asarray(counted, dtype=np.float64) / per_second

    def vectors(self, column: str) -> Reals:
        import pyarrow as pa

        values = self._complete(column)
        if not self.holds_lists(column):
            raise self._error(column, "vectors", values.type)
        lengths = np.unique(_lengths(values))
        if len(lengths) > 1 or 0 in lengths:
            raise self._error(column, "vectors of one length", f"lengths {lengths[:5].tolist()}")
        inner = values.flatten()
        if inner.null_count or not (
            pa.types.is_floating(inner.type) or pa.types.is_integer(inner.type)
        ):
            raise self._error(column, "vectors of numbers", values.type)
        flat = inner.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return self._finite(column, flat).reshape(len(values), -1)

    def lists(self, column: str, ids: Ids) -> RaggedIds:
        values = self._complete(column)
        inner = values.flatten()
        if inner.null_count:
            raise self._error(column, "lists of ids", "nothing in one of them")
        return RaggedIds(self._ids(column, inner, ids), _lengths(values))

    def holds_lists(self, column: str) -> bool:
        import pyarrow as pa

        kind = self.batch.schema.field(column).type
        is_one_of = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        return any(is_list(kind) for is_list in is_one_of)

    def _complete(self, column: str) -> Any:
        """Returns a column in which no value is missing."""
        values = self.batch.column(column)
        if values.null_count:
            row = self.start + int(np.flatnonzero(values.is_null().to_numpy(False))[0]) + 1
            raise ValueError(
                f"{self.path}, row {row}: column {column!r} needs to hold a value (got nothing)"
            )
        return values

    def _ids(self, column: str, values: Any, ids: Ids) -> Numbers:
        import pyarrow as pa

        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        written = [_written(id_) for id_ in values.dictionary.to_pylist()]
        used = np.unique(np.asarray(values.indices))
        for place in used.tolist():
            if not written[place]:
                raise self._error(column, "ids, texts or integers", values.dictionary.type)
        number = np.full(len(written), -1)
        number[used] = ids.numbers(str(written[place]) for place in used.tolist())
        return np.asarray(number[np.asarray(values.indices)], dtype=np.int64)

    def _finite(self, column: str, values: Reals) -> Reals:
        if not np.isfinite(values).all():
            raise self._error(column, "finite numbers", "others")
        return values

    def _error(self, column: str, wanted: str, got: object) -> ValueError:
        return ValueError(f"{self.path}: column {column!r} needs to hold {wanted} (got {got})")


def _written(id_: Any) -> str | None:
    """Returns an id as other formats write it; `None` if it is none."""
    if isinstance(id_, float) and id_.is_integer():  # which pandas makes of integers with gaps
        return str(int(id_))
    return str(id_) if isinstance(id_, str | int) and not isinstance(id_, bool) else None


def _lengths(values: Any) -> Numbers:
    import pyarrow.compute

    return np.asarray(pyarrow.compute.list_value_length(values), dtype=np.int64)


def _is_decimal(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_decimal(kind))
