"""Entries of a sparse matrix, such as the relevant items of every user."""

from collections.abc import Iterable
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.index import index2ptr

#: The rows and the items of some edges, sorted by row.
UserItems: TypeAlias = tuple[Tensor, Tensor]


class Entries:
    """Some columns of every row, sorted by row.

    Args:
        row (torch.Tensor): The rows of the entries, of shape `[num_entries]`.
        column (torch.Tensor): Their columns.
        num_rows (int): The number of rows.

    Attributes:
        ptr: The entries of row `r` are those from `ptr[r]` to `ptr[r + 1]`.
    """

    def __init__(self, row: Tensor, column: Tensor, num_rows: int) -> None:
        self.row, self.column = row, column
        # Torch writes beyond its memory if the rows do not lie side by side.
        self.ptr = index2ptr(row.contiguous(), num_rows)

    @cached_property
    def slot(self) -> Tensor:
        """Numbers the entries of each row from zero, of shape `[num_entries]`."""
        number = torch.arange(self.row.numel(), device=self.row.device)
        return number.sub_(self.ptr.index_select(0, self.row))

    def side_by_side(self, values: Tensor, nothing: float) -> Tensor:
        """Puts values of the entries side by side, of shape `[num_rows, num_slots]`.

        Args:
            values (torch.Tensor): The values, of shape `[num_entries]`.
            nothing (float): What stands where there is no entry.
        """
        num_slots = max(1, max_id(self.ptr.diff()))
        matrix = values.new_full((self.ptr.numel() - 1, num_slots), nothing)
        # To index takes twice as long.
        matrix.view(-1).scatter_(0, self.row * num_slots + self.slot, values)
        return matrix

    def of(self, rows: Tensor) -> "Entries":
        """Returns the entries of some rows, which are numbered anew."""
        if torch.equal(rows, torch.arange(self.ptr.numel() - 1, device=rows.device)):
            return self
        row, entry = spread(self.ptr[rows], self.ptr.diff()[rows])
        return Entries(row, self.column[entry], rows.numel())

    def fill_(self, values: Tensor, rows: slice, start: int, value: float) -> None:
        """Overwrites the entries of some rows in a part of the matrix.

        Args:
            values (torch.Tensor): The part, of shape `[num_rows, num_columns]`.
            rows (slice): Its rows.
            start (int): Its first column.
            value (float): What to write.
        """
        first, last = self.ptr[[rows.start, rows.stop]].tolist()
        row = self.row[first:last] - rows.start
        column = self.column[first:last] - start
        inside = ((column >= 0) & (column < values.size(1))).nonzero().squeeze(1)
        place = row[inside].mul_(values.size(1)).add_(column[inside])
        values.view(-1).index_fill_(0, place, value)


def in_parts(size: int, *values: Tensor) -> Iterable[tuple[Tensor, ...]]:
    """Splits tensors along their first dimension into parts of `size`."""
    if values[0].size(0) <= size:  # to split takes as long as to compute a few numbers
        return [values]
    return zip(*(each.split(size) for each in values), strict=True)


def largest_values(values: Tensor, k: int) -> Tensor:
    """Returns the `k` largest values of each row, in ascending order: `[num_rows, k]`.

    NumPy finds and sorts them by vector instructions, in a fraction of the time that torch takes.

    Args:
        values (torch.Tensor): Values of shape `[num_rows, num_columns]`, on the CPU; `NaN` is the
            largest. **Overwritten**, as to copy them takes as long.
        k (int): How many of them, at most `num_columns`.
    """
    matrix, first = values.numpy(), values.size(1) - k
    matrix.partition(first, axis=1)
    return torch.from_numpy(np.sort(matrix[:, first:], axis=1))


def nonzero(flags: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
    """Returns the rows and the columns of the flags of a matrix that are set, in order.

    NumPy compares and finds by vector instructions, in a fraction of the time that torch takes.
    """
    found = np.flatnonzero(flags)
    rows = found // flags.shape[1]
    return torch.from_numpy(rows), torch.from_numpy(found - rows * flags.shape[1])


def spread(first: Tensor, degree: Tensor, num: int | None = None) -> tuple[Tensor, Tensor]:
    """Finds the entries of rows that follow each other row by row.

    Args:
        first (torch.Tensor): The first entry of each row, of shape `[num_rows]`.
        degree (torch.Tensor): How many entries each row has, of shape `[num_rows]`.
        num (int, optional): How many there are in all. If it is known, nothing has to wait for the
            device. (default: `None`)

    Returns:
        The rows, and the entries, of shape `[num]` each.
    """
    row = torch.arange(degree.numel(), device=degree.device)
    row = row.repeat_interleave(degree, output_size=num)
    # The entries of a row follow each other, so counting on from the first one finds them.
    shift = first - (degree.cumsum(0) - degree)
    return row, torch.arange(row.numel(), device=degree.device) + shift[row]


def max_id(*ids: Tensor) -> int:
    """Returns the largest of some ids, zero if there is none."""
    return max([0, *(int(some.max()) for some in ids if some.numel())])
