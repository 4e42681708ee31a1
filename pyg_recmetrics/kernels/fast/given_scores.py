"""Given scores, which a search reads as fast scores without an error."""

import torch
from torch import Tensor

from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.fast.blocks import Blocks
from pyg_recmetrics.kernels.fast.fast_scores import FastScores
from pyg_recmetrics.kernels.scratch import Scratch


class GivenScores(FastScores):
    """Rows of a matrix, which are only read.

    Args:
        matrix (torch.Tensor): Scores of shape `[?, num_items]`.
        row (torch.Tensor): Which of its rows belong to the users, of shape `[num_rows]`.
        candidates (torch.Tensor or None): The items that may be recommended, if not all may be.

    Attributes:
        highest (torch.Tensor): NaN or `inf` if one of the scores is.
        num_missing (torch.Tensor): How many candidates of each user have a score of `-inf`, of
            shape `[num_rows]`.
    """

    num_in_sieve = 0

    def __init__(self, matrix: Tensor, row: Tensor, candidates: Tensor | None) -> None:
        self.matrix, self.row, self.candidates = matrix, row, candidates
        self.dtype = torch.promote_types(matrix.dtype, torch.float32)
        num_items = matrix.size(1)
        every = torch.arange(num_items, device=row.device)
        self.item = self.column = every
        if candidates is not None:
            self.item, self.column = candidates, torch.full_like(every, -1)
            self.column[candidates] = every[: candidates.numel()]
        self.error = self.error_of_items = torch.zeros_like(row, dtype=torch.double)
        self.lowest_in_order = torch.finfo(self.dtype).min
        self.highest = torch.zeros((), device=row.device)
        self.num_missing = torch.zeros_like(row)

    def blocks(self, rows: Tensor, start: int, end: int, scratch: Scratch) -> Blocks:
        values = scratch("given_scores", (rows.numel(), end - start), self.dtype)
        last = min(end, self.item.numel())
        given = values[:, : last - start]
        self._read(rows, slice(start, last), out=given)
        lowest, highest = given.aminmax()
        self.highest = self.highest.maximum(highest)
        if bool(lowest.isneginf()):
            self.num_missing[rows] += given.isneginf().sum(dim=1)
        return Blocks(values, last - start)

    def to_value(self, score: Tensor) -> Tensor:
        return score.to(self.dtype)

    def to_score(self, value: Tensor) -> Tensor:
        return value.double()

    def of_items(self, rows: Tensor, items: Entries) -> Tensor:
        return self.exactly(rows[items.row], items.column)

    def exactly(self, row: Tensor, item: Tensor) -> Tensor:
        return self.matrix[self.row[row], item].to(self.dtype)

    def num_within_reach(self, score: Tensor) -> Tensor:
        return torch.full_like(self.row, self.item.numel())

    def _read(self, rows: Tensor, columns: slice, out: Tensor) -> None:
        row = self.row[rows]
        if self.candidates is not None:
            out.copy_(self.matrix[row.unsqueeze(1), self.candidates[columns]])
        elif self.matrix.dtype == out.dtype:
            torch.index_select(self.matrix[:, columns], 0, row, out=out)
        else:
            out.copy_(self.matrix[row, columns])
