"""Values of some rows and columns in blocks. A search starts at the largest value of each block.

A block has every `num_blocks`-th value of a row. So a processor finds the largest values of
neighbouring blocks together. The first columns tend to have the highest scores, and lie in
different blocks.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.kernels.entries import Entries


class Blocks(ABC):
    """Values in blocks, some of which are hidden: these are not looked at."""

    #: How many values form a block.
    block_size = 16

    @abstractmethod
    def hide(self, entries: Entries, rows: slice, start: int) -> None:
        """Hides some values. Columns that have no values are hidden already.

        Args:
            entries (Entries): Entries of a larger matrix, of which these rows and columns are a
                part.
            rows (slice): The rows of this part.
            start (int): Its first column.
        """

    @abstractmethod
    def maxima(self) -> Tensor:
        """Returns the largest value of each block, of shape `[num_rows, num_blocks]`."""

    @abstractmethod
    def values(self, row: Tensor, block: Tensor) -> Tensor:
        """Returns the values of some blocks, of shape `[num_asked, block_size]`.

        Args:
            row (torch.Tensor): The rows, of shape `[num_asked]`, sorted.
            block (torch.Tensor): The blocks, sorted within their row, none of them twice.
        """

    def put_in_order_(self) -> None:  # noqa: B027 (they may be in order)
        """Also puts the lowest values in the order of their scores.

        Entries that were hidden have to be hidden again.
        """


class StoredBlocks(Blocks):
    """Values in memory that may be overwritten.

    Args:
        values (torch.Tensor): The values, of shape `[num_rows, block_size * num_blocks]`.
        num_columns (int): How many columns have values. The others can hold anything.
    """

    def __init__(self, values: Tensor, num_columns: int) -> None:
        self.matrix, self.num_columns = values, num_columns
        self._hide_padding()

    def hide(self, entries: Entries, rows: slice, start: int) -> None:
        entries.fill_(self.matrix, rows, start, nothing_of(self.matrix.dtype))

    def _hide_padding(self) -> None:
        self.matrix[:, self.num_columns :] = nothing_of(self.matrix.dtype)

    def maxima(self) -> Tensor:
        return self._in_blocks().amax(dim=1)

    def values(self, row: Tensor, block: Tensor) -> Tensor:
        return self._in_blocks()[row, :, block]

    def _in_blocks(self) -> Tensor:
        return self.matrix.view(self.matrix.size(0), self.block_size, -1)


class ComputedBlocks(Blocks):
    """Values that are computed when they are asked for.

    Blocks in which something is hidden are looked at again.

    Args:
        num_columns (int): How many columns there are.
        num_blocks (int): How many blocks these form.
        device (torch.device): The device.
    """

    def __init__(self, num_columns: int, num_blocks: int, device: torch.device) -> None:
        self.num_columns, self.num_blocks = num_columns, num_blocks
        self.hidden_row = self.hidden_column = torch.empty(0, dtype=torch.long, device=device)

    @abstractmethod
    def computed_maxima(self) -> Tensor:
        """Returns the largest value of each block, with nothing hidden."""

    @abstractmethod
    def computed_values(self, row: Tensor, block: Tensor) -> Tensor:
        """Returns the values of some blocks, with nothing hidden but columns that have none."""

    def hide(self, entries: Entries, rows: slice, start: int) -> None:
        row, column = entries.within(rows, start, start + self.num_columns)
        self.hidden_row = torch.cat([self.hidden_row, row])
        self.hidden_column = torch.cat([self.hidden_column, column])

    def maxima(self) -> Tensor:
        maxima = self.computed_maxima()
        spoiled = self.hidden_blocks().unique()
        row, block = spoiled // self.num_blocks, spoiled % self.num_blocks
        maxima[row, block] = self.values(row, block).amax(dim=1)
        return maxima

    def values(self, row: Tensor, block: Tensor) -> Tensor:
        values = self.computed_values(row, block)
        asked, hidden = row * self.num_blocks + block, self.hidden_blocks()
        place = torch.searchsorted(asked, hidden)
        # Behind the last block there is one more, in which nothing is hidden.
        found = (F.pad(asked, (0, 1), value=-1)[place] == hidden).nonzero().squeeze(1)
        offset = self.hidden_column[found] // self.num_blocks
        values[place[found], offset] = nothing_of(values.dtype)
        return values

    def hidden_blocks(self) -> Tensor:
        """Returns the blocks of what is hidden, as numbers that no block of another row has."""
        return self.hidden_row * self.num_blocks + self.hidden_column % self.num_blocks


def nothing_of(dtype: torch.dtype) -> float:
    """Returns a number that is less than all values."""
    return -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min
