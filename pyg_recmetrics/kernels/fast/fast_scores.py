"""Fast scores, which a search reads instead of the exact scores of all items."""

from abc import ABC, abstractmethod

from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.fast.blocks import Blocks


class FastScores(ABC):
    """Scores of all items for the users of a chunk, close to the exact ones.

    Items have *columns*. A *value* stands for a score, in a type of numbers that is fast to look
    at. From a score that is at least as large as another follows a value that is, too.

    Attributes:
        item (torch.Tensor): The item of each column, of shape `[num_columns]`.
        column (torch.Tensor): The column of each item, of shape `[num_items]`; `-1` for items that
            nobody may be recommended.
        num_in_sieve (int): So many of the first columns are likely to have the highest scores, the
            first of them more than others. Zero if there are no such columns.
        error (torch.Tensor): How far the score of a value can be from the exact one, for each
            user, of shape `[num_rows]`.
        lowest_in_order (float): Values from this one on are in the order of their scores.
        error_of_items (torch.Tensor): How far the scores of some items can be from the exact ones,
            for each user, of shape `[num_rows]`. Zero if they are exact.
    """

    item: Tensor
    column: Tensor
    num_in_sieve: int
    error: Tensor
    error_of_items: Tensor
    lowest_in_order: float

    @abstractmethod
    def blocks(self, rows: Tensor, start: int, end: int, scratch: Scratch) -> Blocks:
        """Returns the values of columns from `start` to `end` for some rows.

        They are valid until the next call.

        Args:
            rows (torch.Tensor): The rows, of shape `[num_asked]`.
            start (int): The first column.
            end (int): The end of the columns, which may lie behind the last one.
            scratch (Scratch): The buffers to compute in.
        """

    @abstractmethod
    def to_value(self, score: Tensor) -> Tensor:
        """Returns the values of scores."""

    @abstractmethod
    def to_score(self, value: Tensor) -> Tensor:
        """Returns the lowest scores that have the given values."""

    @abstractmethod
    def of_items(self, rows: Tensor, items: Entries) -> Tensor:
        """Returns the scores of some items for each of some rows, of shape `[num_entries]`.

        Args:
            rows (torch.Tensor): The rows, of shape `[num_asked]`.
            items (Entries): The items of each of them.
        """

    @abstractmethod
    def exactly(self, row: Tensor, item: Tensor) -> Tensor:
        """Returns the exact scores of pairs of a row and an item, of shape `[num_pairs]`."""

    @abstractmethod
    def num_within_reach(self, score: Tensor) -> Tensor:
        """Returns for each row how many of the first columns can have at least a score."""
