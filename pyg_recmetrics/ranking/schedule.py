"""The order and the chunks in which users are ranked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import add

import torch
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import index_to_mask

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import spread
from pyg_recmetrics.kernels.exact.ranks import are_edges
from pyg_recmetrics.kernels.fast.stored_scores import Layout
from pyg_recmetrics.task import RankingTask

#: How many bytes each position of a list takes.
BYTES_PER_POSITION = 64

#: The edges of chunks are kept if all edges of the task are at most so many. Each takes up to 64
#: bytes.
MAX_EDGES_KEPT = 2**20


@dataclass(frozen=True, eq=False)
class ChunkEdges:
    """The edges of the users of a chunk, sorted by row.

    Attributes:
        index (torch.Tensor): Where each edge stands among the edges of the task.
        row (torch.Tensor): The row of the chunk that the user of each edge has.
        item (torch.Tensor): The item of each edge.
    """

    index: Tensor
    row: Tensor
    item: Tensor

    @property
    def pairs(self) -> tuple[Tensor, Tensor]:
        """The rows and the items."""
        return self.row, self.item


@dataclass(frozen=True, eq=False)
class Chunk:
    """A chunk of users, with their truth, seen edges and candidates.

    Attributes:
        users (torch.Tensor): User ids of shape `[num_rows]`.
        depth (torch.Tensor): How deep each user is ranked, of shape `[num_rows]`.
        max_depth (int): How deep the deepest user is ranked.
        num_needed (int): How many of the best items leave every user with enough, whichever of
            them are excluded.
        num_candidates (int): How many items all users together can be recommended.
        num_items (int): The number of items of the task.
        edges (EdgesOfChunk): The truth, the seen edges and the candidates.
        scratch (Scratch): The buffers to compute in.
    """

    users: Tensor
    depth: Tensor
    max_depth: int
    num_needed: int
    num_candidates: int
    num_items: int
    edges: "EdgesOfChunk"
    scratch: Scratch

    @property
    def truth(self) -> ChunkEdges:
        """The edges to rank."""
        return self.edges.truth

    @property
    def seen(self) -> ChunkEdges:
        """The edges whose items must not be retrieved."""
        return self.edges.seen

    @property
    def candidates(self) -> ChunkEdges | None:
        """The edges whose items may be retrieved, where each user has candidates of its own."""
        return self.edges.candidates

    @property
    def is_excluded(self) -> Tensor | None:
        """The items that nobody may be recommended, `[num_items]`, if all share candidates."""
        return self.edges.is_excluded

    def mask_(self, scores: Tensor, value: float, first: int = 0) -> Tensor:
        """Overwrites the scores of items that must not be retrieved.

        Args:
            scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`.
            value (float): The score that masked items get.
            first (int): The item in the first column. (default: `0`)
        """
        return scores.masked_fill_(self.adjacency(first, first + scores.size(1)), value)

    def ignore_(self, scores: Tensor) -> None:
        """Overwrites the scores of all but the candidates, which need not be numbers, by zeros."""
        if self.candidates is not None:
            self.mask_(scores, 0.0)
        elif self.is_excluded is not None:
            scores.masked_fill_(self.is_excluded, 0.0)

    def must_not_retrieve(self, lists: Tensor) -> Tensor:
        """Returns which entries of lists are excluded items: `[num_rows, K]`; `-1` is none."""
        is_excluded = self._are_edges(lists, self.seen)
        if self.candidates is not None:
            is_excluded |= ~self._are_edges(lists, self.candidates)
        elif self.is_excluded is not None:
            is_excluded |= self.is_excluded[lists.clamp(min=0)]
        return is_excluded & (lists >= 0)

    def _are_edges(self, lists: Tensor, edges: ChunkEdges) -> Tensor:
        return are_edges(lists, edges.row, edges.item, self.num_items, self.scratch)

    def adjacency(self, first: int = 0, last: int | None = None) -> Tensor:
        """Returns which items from `first` to `last` are excluded: `[num_rows, last - first]`.

        The next call overwrites the result.
        """
        width = (self.num_items if last is None else last) - first
        # Edges that lie outside go to one more column, as leaving them out takes a host sync.
        num_spare = 0 if width == self.num_items else 1
        shape = (self.users.numel(), width + num_spare)
        adjacency = self.scratch("chunk.adjacency", shape, torch.bool)
        if self.candidates is not None:
            adjacency.fill_(True)
            column = _column(self.candidates.item, first, width)
            adjacency[self.candidates.row, column] = False
        elif self.is_excluded is not None:
            adjacency[:, :width] = self.is_excluded[first : first + width]
        else:
            adjacency.zero_()
        adjacency[self.seen.row, _column(self.seen.item, first, width)] = True
        return adjacency[:, :width]


class Schedule:
    """The order in which users are ranked: the deepest first.

    A single deep user therefore makes only the first chunk deep. Of equally deep users, those with
    the most excluded items come first, for whom models need longer lists. What a chunk needs to
    know on the host, such as where its edges start, is fetched from the device once, so that no
    chunk has to wait for it.

    It depends on the task alone, and so do the edges of its chunks, which it keeps if there are
    few.

    Args:
        task (RankingTask): The task.
        users (torch.Tensor): The ids of the users to rank, of shape `[num_users]`.
        depth (int): How deep users are ranked at least. They are also ranked down to their own
            number of relevant items.
    """

    def __init__(self, task: RankingTask, users: Tensor, depth: int) -> None:
        self.num_items, self.device = task.num_items, task.device
        depths = task.degree[users].clamp(min=depth)
        num_excluded = task.num_items - task.num_candidates[users]
        order = (depths * (task.num_items + 1) + num_excluded).argsort(descending=True, stable=True)
        self.users, self.depth = users[order], depths[order]
        self._truth, self._seen = (
            _EdgesByUser(edges, self.users, task.num_users) for edges in (task.truth, task.excluded)
        )
        self._candidates: _EdgesByUser | None = None
        self._is_excluded: Tensor | None = None
        if task.candidates is not None and task.candidates.dim() == 2:
            self._candidates = _EdgesByUser(task.candidates, self.users, task.num_users)
        elif task.candidates is not None:
            self._is_excluded = ~index_to_mask(task.candidates, task.num_items)
        kinds = [x for x in (self._truth, self._seen, self._candidates) if x is not None]
        # All numbers come to the host in one copy.
        numbers = [self.depth, num_excluded[order], *(kind.degree.cumsum(0) for kind in kinds)]
        self._depths, self._num_excluded, *ends = torch.stack(numbers).tolist()
        for kind, end in zip(kinds, ends, strict=True):
            kind.ptr = [0, *end]
        self._is_kept = sum(kind.ptr[-1] for kind in kinds) <= MAX_EDGES_KEPT
        self._kept: dict[tuple[int, int], EdgesOfChunk] = {}

    @classmethod
    def of_all(cls, task: RankingTask, users: Tensor, depth: int) -> "Schedule":
        """Returns the schedule of the users of a task, which knows it from the last time."""
        if users is not task.users and users is not task.users_with_truth:
            return cls(task, users, depth)
        key = (cls, depth, users is task.users)
        found: Schedule = task.once(key, lambda: cls(task, users, depth))
        return found

    def chunks(self, num_rows: Callable[[int], int]) -> Iterator[Chunk]:
        """Yields one chunk after the other. All of them share their buffers.

        Args:
            num_rows (callable): Returns how many users a chunk has, given the depth of its deepest.
        """
        scratch, start = Scratch(self.device), 0
        while start < len(self._depths):
            end = min(start + num_rows(self._depths[start]), len(self._depths))
            yield self._chunk(start, end, scratch)
            start = end

    def _chunk(self, start: int, end: int, scratch: Scratch) -> Chunk:
        num_excluded, depths = self._num_excluded[start:end], self._depths[start:end]
        return Chunk(
            users=self.users[start:end],
            depth=self.depth[start:end],
            max_depth=depths[0],
            num_needed=max(map(add, depths, num_excluded)),
            num_candidates=(end - start) * self.num_items - sum(num_excluded),
            num_items=self.num_items,
            edges=self._edges(start, end),
            scratch=scratch,
        )

    def _edges(self, start: int, end: int) -> "EdgesOfChunk":
        edges = self._kept.get((start, end))
        if edges is None:
            kinds = (self._truth, self._seen, self._candidates)
            edges = EdgesOfChunk(kinds, self._is_excluded, slice(start, end), self.num_items)
            if start == 0:  # chunks of other sizes begin
                self._kept.clear()
            if self._is_kept:
                self._kept[start, end] = edges
        return edges


class EdgesOfChunk:
    """The edges of the users of a chunk, which are put together when they are asked for.

    Args:
        kinds (tuple): The truth, the seen edges, and the candidates if each user has its own.
        is_excluded (torch.Tensor or None): See :class:`Chunk`.
        rows (slice): Which users of the schedule these are.
        num_items (int): The number of items.
    """

    def __init__(
        self,
        kinds: "tuple[_EdgesByUser, _EdgesByUser, _EdgesByUser | None]",
        is_excluded: Tensor | None,
        rows: slice,
        num_items: int,
    ) -> None:
        self._kinds, self.is_excluded = kinds, is_excluded
        self._rows, self._num_items = rows, num_items

    @cached_property
    def truth(self) -> ChunkEdges:
        """The edges to rank."""
        return self._kinds[0].between(self._rows.start, self._rows.stop)

    @cached_property
    def seen(self) -> ChunkEdges:
        """The edges whose items must not be retrieved."""
        return self._kinds[1].between(self._rows.start, self._rows.stop)

    @cached_property
    def candidates(self) -> ChunkEdges | None:
        """The edges whose items may be retrieved, where each user has candidates of its own."""
        own = self._kinds[2]
        return None if own is None else own.between(self._rows.start, self._rows.stop)

    @cached_property
    def layout(self) -> Layout:
        """Where they stand among stored scores."""
        hidden = None if self.is_excluded is None else self.is_excluded.nonzero().squeeze(1)
        num_rows = self._rows.stop - self._rows.start
        return Layout(self.truth.pairs, self.seen.pairs, hidden, num_rows, self._num_items)


class _EdgesByUser:
    """Coalesced edges, handed out in the order in which their users are ranked.

    This takes memory for the users only: the edges of a chunk are put together when it is ranked.
    """

    #: The edges of the first `u` users are those up to `ptr[u]`.
    ptr: list[int]

    def __init__(self, edges: Tensor, users: Tensor, num_users: int) -> None:
        self.item = edges[1]
        ptr = index2ptr(edges[0], num_users)
        self.first = ptr[users]
        self.degree = ptr[users + 1] - self.first

    def between(self, start: int, end: int) -> ChunkEdges:
        """Returns the edges of a chunk."""
        num_edges = self.ptr[end] - self.ptr[start]
        row, index = spread(self.first[start:end], self.degree[start:end], num_edges)
        return ChunkEdges(index, row, self.item[index])


def edges_of(edges: Tensor, users: Tensor, num_users: int) -> Tensor:
    """Returns where the edges of some users stand among coalesced edges, user by user."""
    ptr = index2ptr(edges[0], num_users)
    return spread(ptr[users], ptr.diff()[users])[1]


def _column(item: Tensor, first: int, width: int) -> Tensor:
    """Returns the columns of items, and `width` for those that have none."""
    column = item - first
    return column.masked_fill_((column < 0) | (column >= width), width)
