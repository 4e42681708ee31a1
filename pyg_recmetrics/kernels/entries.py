"""Entries of a sparse matrix, such as the relevant items of every user."""

from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

#: The rows and the items of some edges, sorted by row.
UserItems: TypeAlias = tuple[Tensor, Tensor]


class SortedRows:
    """The rows of entries, in ascending order.

    Args:
        row (torch.Tensor): The rows, of shape `[num_entries]`.
        num_rows (int): The number of rows.

    Attributes:
        ptr: The entries of row `r` are those from `ptr[r]` to `ptr[r + 1]`.
    """

    def __init__(self, row: Tensor, num_rows: int) -> None:
        self.row = row
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


class Entries(SortedRows):
    """Some columns of every row, sorted by row.

    Args:
        row (torch.Tensor): The rows of the entries, of shape `[num_entries]`.
        column (torch.Tensor): Their columns.
        num_rows (int): The number of rows.
    """

    def __init__(self, row: Tensor, column: Tensor, num_rows: int) -> None:
        super().__init__(row, num_rows)
        self.column = column

    def of(self, rows: Tensor) -> "Entries":
        """Returns the entries of some rows, which are numbered anew."""
        if torch.equal(rows, torch.arange(self.ptr.numel() - 1, device=rows.device)):
            return self
        row, entry = spread(self.ptr[rows], self.ptr.diff()[rows])
        return Entries(row, self.column[entry], rows.numel())

    def within(self, rows: slice, start: int, end: int) -> tuple[Tensor, Tensor]:
        """Returns the entries in a part of the matrix: their rows and columns in this part.

        Args:
            rows (slice): The rows of the part.
            start (int): Its first column.
            end (int): The end of its columns.
        """
        first, last = self.ptr[[rows.start, rows.stop]].tolist()
        row, column = self.row[first:last] - rows.start, self.column[first:last] - start
        inside = ((column >= 0) & (column < end - start)).nonzero().squeeze(1)
        return row[inside], column[inside]

    def fill_(self, values: Tensor, rows: slice, start: int, value: float) -> None:
        """Overwrites the entries of some rows in a part of the matrix.

        Args:
            values (torch.Tensor): The part, of shape `[num_rows, num_columns]`.
            rows (slice): Its rows.
            start (int): Its first column.
            value (float): What to write.
        """
        row, column = self.within(rows, start, start + values.size(1))
        values.view(-1).index_fill_(0, row * values.size(1) + column, value)


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
