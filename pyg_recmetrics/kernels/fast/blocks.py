"""Values of some rows and columns in blocks. A search starts at the largest value of each block.

A block has every `num_blocks`-th value of a row. So a processor finds the largest values of
neighbouring blocks together. The first columns tend to have the highest scores, and lie in
different blocks.
"""

import torch
from torch import Tensor

from pyg_recmetrics.kernels.entries import Entries


class Blocks:
    """Values in blocks, some of which are hidden: these are not looked at.

    They are in memory that may be overwritten.

    Args:
        values (torch.Tensor): The values, of shape `[num_rows, block_size * num_blocks]`.
        num_columns (int): How many columns have values. The others can hold anything.
    """

    #: How many values form a block.
    block_size = 16

    def __init__(self, values: Tensor, num_columns: int) -> None:
        self.matrix, self.num_columns = values, num_columns
        self._hide_padding()

    def hide(self, entries: Entries, rows: slice, start: int) -> None:
        """Hides some values. Columns that have no values are hidden already.

        Args:
            entries (Entries): Entries of a larger matrix, of which these rows and columns are a
                part.
            rows (slice): The rows of this part.
            start (int): Its first column.
        """
        entries.fill_(self.matrix, rows, start, nothing_of(self.matrix.dtype))

    def _hide_padding(self) -> None:
        self.matrix[:, self.num_columns :] = nothing_of(self.matrix.dtype)

    def maxima(self) -> Tensor:
        """Returns the largest value of each block, of shape `[num_rows, num_blocks]`."""
        return self._in_blocks().amax(dim=1)

    def values(self, row: Tensor, block: Tensor) -> Tensor:
        """Returns the values of some blocks, of shape `[num_asked, block_size]`.

        Args:
            row (torch.Tensor): The rows, of shape `[num_asked]`.
            block (torch.Tensor): The blocks.
        """
        return self._in_blocks()[row, :, block]

    def _in_blocks(self) -> Tensor:
        return self.matrix.view(self.matrix.size(0), self.block_size, -1)

    def put_in_order_(self) -> None:
        """Also puts the lowest values in the order of their scores. They may be in order.

        Entries that were hidden have to be hidden again.
        """


def nothing_of(dtype: torch.dtype) -> float:
    """Returns a number that is less than all values."""
    return -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min
