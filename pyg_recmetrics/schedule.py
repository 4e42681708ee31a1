"""In which order and in which chunks users are ranked."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.recommenders import Chunk
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.topk import Scratch

#: How much memory a chunk of users may take.
SCRATCH_BYTES = 256 * 2**20


def rows_in_memory(num_items: int, bytes_per_pair: int, depth: int) -> int:
    """How many users fit into the scratch memory, if all of their scores are computed."""
    bytes_of_adjacency, bytes_per_place = 1, 64
    bytes_per_row = num_items * (bytes_per_pair + bytes_of_adjacency) + depth * bytes_per_place
    return max(1, SCRATCH_BYTES // bytes_per_row)


class Schedule:
    """Which users are ranked when: the deepest first, so that one does not make all deep.

    A chunk has as many users as `num_rows` says for the deepest of them.

    What a chunk needs to know on the host, such as where its edges start, is fetched from the
    device once and for all, so that no chunk has to wait for it.
    """

    def __init__(
        self,
        task: RankingTask,
        users: Tensor,
        depth: int,
        num_rows: Callable[[int], int],
    ) -> None:
        self.task = task
        self.num_rows = num_rows
        depths = task.degree[users].clamp(min=depth).clamp(max=task.num_items)
        order = depths.argsort(descending=True, stable=True)
        self.users = users[order]
        self.depth = depths[order]
        self.depths: list[int] = self.depth.tolist()
        self.num_excluded = (task.num_items - task.num_candidates[self.users]).tolist()
        self.truth = EdgesByPlace(task.truth, self.users, task.num_users)
        self.seen = EdgesByPlace(task.seen, self.users, task.num_users)
        self.candidates: EdgesByPlace | None = None
        self.is_excluded: Tensor | None = None
        if task.candidates is not None and task.candidates.dim() == 2:
            self.candidates = EdgesByPlace(task.candidates, self.users, task.num_users)
        elif task.candidates is not None:
            self.is_excluded = torch.ones(task.num_items, dtype=torch.bool, device=task.device)
            self.is_excluded[task.candidates] = False

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yields where each chunk starts and ends."""
        start = 0
        while start < len(self.depths):
            end = min(start + self.num_rows(self.depths[start]), len(self.depths))
            yield start, end
            start = end

    def chunk(self, start: int, end: int, scratch: Scratch) -> Chunk:
        """Returns the users of a chunk, and what they cannot be given."""
        num_rows = end - start
        _, *seen = self.seen.between(start, end)
        candidates = None if self.candidates is None else self.candidates.between(start, end)[1:]

        def excluded_between(first: int, last: int) -> Tensor:
            width = last - first
            # What lies outside goes to one more column, as leaving it out takes a host sync.
            num_spare = 0 if width == self.task.num_items else 1
            excluded = scratch("excluded", (num_rows, width + num_spare), torch.bool)
            if candidates is not None:
                excluded.fill_(True)
                excluded[candidates[0], _column(candidates[1], first, width)] = False
            elif self.is_excluded is not None:
                excluded[:, :width] = self.is_excluded[first:last]
            else:
                excluded.zero_()
            excluded[seen[0], _column(seen[1], first, width)] = True
            return excluded[:, :width]

        return Chunk(
            users=self.users[start:end],
            num_items=self.task.num_items,
            excluded_between=excluded_between,
            depth=self.depths[start],
            most_excluded=max(self.num_excluded[start:end]),
            scratch=scratch,
        )


def _column(item: Tensor, first: int, width: int) -> Tensor:
    column = item - first
    return column.masked_fill_((column < 0) | (column >= width), width)


class EdgesByPlace:
    """Coalesced edges, handed out in the order in which their users are ranked.

    Takes memory for the users alone: the edges of a chunk are put together when it is its turn.
    """

    def __init__(self, edges: Tensor, users: Tensor, num_users: int) -> None:
        self.item = edges[1]
        ptr = index2ptr(edges[0], num_users)
        self.first = ptr[users]
        self.degree = ptr[users + 1] - self.first
        self.ptr = [0, *self.degree.cumsum(0).tolist()]

    def between(self, start: int, end: int) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the edges of a chunk: where they were found, and their rows and items."""
        num_edges = self.ptr[end] - self.ptr[start]
        degree, first = self.degree[start:end], self.first[start:end]
        row = torch.arange(end - start, device=degree.device)
        row = row.repeat_interleave(degree, output_size=num_edges)
        # The edges of a user follow each other, so counting on from the first one finds them.
        shift = first - (degree.cumsum(0) - degree)
        index = torch.arange(num_edges, device=degree.device) + shift[row]
        return index, row, self.item[index]
