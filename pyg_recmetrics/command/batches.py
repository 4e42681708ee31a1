"""Some rows of a table, from which columns are read."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyg_recmetrics.command.ids import Ids, Numbers

T = TypeVar("T")

_AN_ID = "an id, a text or an integer"

Reals: TypeAlias = NDArray[np.float64]


class RaggedIds(NamedTuple):
    """Lists of ids.

    Attributes:
        numbers: The numbers of all ids, one list after the other.
        lengths: The length of each list.
    """

    numbers: Numbers
    lengths: Numbers


class Batch(ABC):
    """Some rows of a table. A subclass knows how they are stored."""

    @abstractmethod
    def __len__(self) -> int:
        """Returns the number of rows."""

    @abstractmethod
    def ids(self, column: str, ids: Ids) -> Numbers:
        """Returns the number of the id in every row, and adds new ids."""

    @abstractmethod
    def reals(self, column: str) -> Reals:
        """Returns a finite number of every row."""

    @abstractmethod
    def times(self, column: str) -> Reals:
        """Returns the time of every row, in seconds if the column holds dates."""

    @abstractmethod
    def vectors(self, column: str) -> Reals:
        """Returns the vector of every row, of shape `[num_rows, dim]`."""

    @abstractmethod
    def lists(self, column: str, ids: Ids) -> RaggedIds:
        """Returns the numbers of the ids in the list of every row, and adds new ids."""

    @abstractmethod
    def holds_lists(self, column: str) -> bool:
        """Returns whether the rows of a column are lists."""


class TextBatch(Batch):
    """Rows of a text file.

    Args:
        path (Path): The file.
        values (dict): The values of every column, as texts or as JSON has them.
        line_of (callable): Returns the line of a row of the file.
        start (int): How many rows come before them.
    """

    def __init__(
        self,
        path: Path,
        values: Mapping[str, Sequence[Any]],
        line_of: Callable[[int], int],
        start: int,
    ) -> None:
        self.path, self.values, self.line_of, self.start = path, values, line_of, start

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def ids(self, column: str, ids: Ids) -> Numbers:
        written = self.values[column]
        if set(map(type, written)) != {str}:
            written = self._each(column, _written_id, _AN_ID)
        numbers = ids.numbers(written)
        if "" in ids:
            self._raise_at(written.index(""), column, _AN_ID)
        return numbers

    def reals(self, column: str) -> Reals:
        try:
            read = np.array(list(map(float, self.values[column])), dtype=np.float64)
        except (TypeError, ValueError):
            read = np.array([math.nan])
        if not np.isfinite(read).all():
            return np.array(self._each(column, _finite, "a finite number"), dtype=np.float64)
        return read

    def times(self, column: str) -> Reals:
        try:
            return np.array(list(map(float, self.values[column])), dtype=np.float64)
        except (TypeError, ValueError):
            times = self._each(column, _time, "a number or a date such as 2024-05-31 12:00:00")
            return np.array(times, dtype=np.float64)

    def vectors(self, column: str) -> Reals:
        rows = self._each(column, _vector, "a vector of finite numbers, such as [0.5, 1.0]")
        for place, row in enumerate(rows):
            if len(row) != len(rows[0]):
                self._raise_at(place, column, f"a vector of {len(rows[0])} numbers")
        return np.array(rows, dtype=np.float64)

    def lists(self, column: str, ids: Ids) -> RaggedIds:
        rows = self._each(column, _list_of_ids, 'a list of ids, such as ["a", "b"]')
        written = [id_ for row in rows for id_ in row]
        return RaggedIds(ids.numbers(written), np.array(list(map(len, rows)), dtype=np.int64))

    def holds_lists(self, column: str) -> bool:
        first = self.values[column][0]
        return isinstance(first, list) or (isinstance(first, str) and first.startswith("["))

    def _each(self, column: str, read: Callable[[Any], T], wanted: str) -> list[T]:
        """Returns what `read` makes of each value; its errors name the line."""
        found = []
        for place, value in enumerate(self.values[column]):
            try:
                found.append(read(value))
            except (TypeError, ValueError, OverflowError):
                self._raise_at(place, column, wanted)
        return found

    def _raise_at(self, place: int, column: str, wanted: str) -> None:
        value = self.values[column][place]
        shown = "nothing" if value in ("", None) else repr(value)[:80]
        line = self.line_of(self.start + place)
        raise ValueError(
            f"{self.path}, line {line}: column {column!r} needs to hold {wanted} (got {shown})"
        )


def _written_id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise TypeError
    return str(value)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _time(value: Any) -> float:
    try:
        return _finite(value)
    except ValueError:
        moment = datetime.fromisoformat(value)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        return aware.timestamp()


def _vector(value: Any) -> list[float]:
    if isinstance(value, str):
        value = value.strip("[]() ").replace(",", " ").split()
    return [_finite(number) for number in _not_empty(value)]


def _list_of_ids(value: Any) -> list[str]:
    listed = json.loads(value) if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise TypeError
    return [_written_id(id_) for id_ in listed]


def _not_empty(value: Any) -> Any:
    if not isinstance(value, list) or not value:
        raise TypeError
    return value
