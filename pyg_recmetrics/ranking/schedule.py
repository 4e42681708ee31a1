"""The order and the chunks in which users are ranked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor
from torch_geometric.utils import index_to_mask

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import spread
from pyg_recmetrics.kernels.exact.ranks import are_edges
from pyg_recmetrics.kernels.fast.stored_scores import Layout
from pyg_recmetrics.task import RankingTask, TruthByUser
from pyg_recmetrics.utils import Memory

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
        users (torch.Tensor): User ids in ascending order, of shape `[num_rows]`.
        depth (torch.Tensor): How deep each user is ranked, of shape `[num_rows]`.
        max_depth (int): How deep the deepest user is ranked.
        schedule (Schedule): What it is a chunk of.
        rows (slice): Which users of the schedule these are.
        known (Memory): What is known of these users, which the schedule may keep.
        scratch (Scratch): The buffers to compute in.
    """

    users: Tensor
    depth: Tensor
    max_depth: int
    schedule: "Schedule"
    rows: slice
    known: Memory
    scratch: Scratch

    @property
    def num_items(self) -> int:
        """The number of items of the task."""
        return self.schedule.num_items

    @property
    def truth(self) -> ChunkEdges:
        """The edges to rank."""
        return self.known.once("truth", lambda: self.schedule.truth.of(self.users, self.rows))

    @property
    def seen(self) -> ChunkEdges:
        """The edges whose items must not be retrieved."""
        return self.known.once("seen", lambda: self.schedule.seen.of(self.users, self.rows))

    @cached_property
    def candidates(self) -> ChunkEdges | None:
        """The edges whose items may be retrieved, where each user has candidates of its own."""
        own = self.schedule.candidates
        return None if own is None else own.of(self.users, self.rows)

    @property
    def is_excluded(self) -> Tensor | None:
        """The items that no user may be recommended, `[num_items]`, if all share candidates."""
        return self.schedule.is_excluded

    @property
    def depth_of_truth(self) -> Tensor:
        """How deep the user of each edge of the truth is ranked, of shape `[num_edges]`."""
        return self.known.once("depth", lambda: self.depth.index_select(0, self.truth.row))

    @property
    def layout(self) -> Layout:
        """Where the truth stands among the scores of all items."""
        shape = self.users.numel(), self.num_items
        return self.known.once("layout", lambda: Layout(self.truth.pairs, shape))

    @property
    def num_needed(self) -> int:
        """How many of the best items leave every user with enough, whichever are excluded."""
        return max(self.schedule.counts[1][self.rows])

    @property
    def num_candidates(self) -> int:
        """How many items all users together can be recommended."""
        return self.users.numel() * self.num_items - sum(self.schedule.counts[0][self.rows])

    def hide_(self, scores: Tensor) -> Tensor:
        """Overwrites the scores `[num_rows, num_items]` of all but shared candidates by `-inf`."""
        seen = self.seen
        place = self.known.once("seen at", lambda: seen.item.add(seen.row, alpha=self.num_items))
        scores.view(-1).index_fill_(0, place, -torch.inf)
        return self.hide_shared_(scores, -torch.inf)

    def hide_shared_(self, scores: Tensor, value: float) -> Tensor:
        """Overwrites the scores `[?, num_items]` of items that no user may be recommended."""
        excluded = self.is_excluded
        return scores if excluded is None else scores.masked_fill_(excluded, value)

    def mask_(self, scores: Tensor, value: float, first: int = 0) -> Tensor:
        """Overwrites the scores of items that must not be retrieved.

        Args:
            scores (torch.Tensor): Scores of shape `[num_rows, num_columns]`.
            value (float): The score that masked items get.
            first (int): The item in the first column. (default: `0`)
        """
        return scores.masked_fill_(self.adjacency(first, scores.size(1)), value)

    def ignore_(self, scores: Tensor) -> Tensor:
        """Overwrites the scores of all but the candidates, which need not be numbers, by zeros."""
        if self.candidates is not None:
            return self.mask_(scores, 0.0)
        return self.hide_shared_(scores, 0.0)

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

    def adjacency(self, first: int, width: int) -> Tensor:
        """Returns which of the items from `first` on are excluded: `[num_rows, width]`.

        The next call overwrites the result.
        """
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
    """The order in which users are ranked: the deepest first, if they are more than one chunk.

    A single deep user therefore makes only the first chunk deep. Of equally deep users, those with
    the most excluded items come first, as models need longer lists for them. What a chunk needs to
    know on the host, such as where its edges start, is fetched from the device once, so that no
    chunk has to wait for it.

    It depends on the task alone, and so do the edges of its chunks, which it keeps if there are
    few.

    Args:
        task (RankingTask): The task.
        users (torch.Tensor): The ids of the users to rank, of shape `[num_users]`.
        depth (int): How deep users are ranked at least. They are also ranked down to their own
            number of relevant items.
        is_sorted (bool): Whether the deepest come first. If not, all users are one chunk.
    """

    def __init__(self, task: RankingTask, users: Tensor, depth: int, is_sorted: bool) -> None:
        # It does not hold the task, which may hold it.
        self.is_sorted, self.device, self.num_items = is_sorted, task.device, task.num_items
        self._num_candidates, self._candidates = task.num_candidates, task.candidates
        # All users have their own numbers for rows.
        is_whole = not is_sorted and users.numel() == task.num_users
        degree = task.degree if is_whole else task.degree[users]
        self.users, self.depth = users, degree.clamp(min=depth)
        #: How deep users are ranked at most, the deepest first.
        self.depths = [max(depth, task._extremes.max_degree)]
        if is_sorted:
            key = self.depth * (task.num_items + 1) - task.num_candidates[users]
            order = key.argsort(descending=True, stable=True)
            self.users, self.depth = users[order], self.depth[order]
            self.depths = self.depth.tolist()
        #: The edges to rank, and those whose items must not be retrieved.
        self.truth = _EdgesByUser(task.truth, self.users, task.num_users, is_whole)
        self.seen = _EdgesByUser(task.excluded, self.users, task.num_users, is_whole)
        self._keeps = task.truth.size(1) + task.excluded.size(1) <= MAX_EDGES_KEPT
        self._known = Memory(most=1)

    @classmethod
    def of(
        cls, task: RankingTask, users: Tensor, depth: int, num_rows: Callable[[int], int]
    ) -> "Schedule":
        """Returns the schedule of users; a task knows that of its own users from the last time.

        Args:
            task (RankingTask): The task.
            users (torch.Tensor): The ids of the users to rank.
            depth (int): How deep users are ranked at least.
            num_rows (callable): Returns how many users a chunk has, given the depth of its deepest.
        """
        is_sorted = users.numel() > num_rows(max(depth, task._extremes.max_degree))
        make = partial(cls, task, users, depth, is_sorted)
        if users is not task.users and users is not task.users_with_truth:
            return make()
        return task._once(("schedule", users is task.users, depth, is_sorted), make)

    def chunks(self, num_rows: Callable[[int], int]) -> Iterator[Chunk]:
        """Yields one chunk after the other. All of them share their buffers.

        Args:
            num_rows (callable): Returns how many users a chunk has, given the depth of its deepest.
        """
        bounds, num_users = [0], self.users.numel()
        while (start := bounds[-1]) < num_users:
            bounds.append(min(start + num_rows(self.depths[start]), num_users))
        known = [Memory() for _ in bounds[1:]]
        if self._keeps:  # as the same chunks may be ranked again
            known = self._known.once(tuple(bounds), partial(list, known))
        scratch = Scratch(self.device)
        for start, end, of_chunk in zip(bounds, bounds[1:], known, strict=False):
            rows = slice(start, end)
            users, depth = of_chunk.once("users", partial(self._users_of, rows))
            yield Chunk(users, depth, self.depths[start], self, rows, of_chunk, scratch)

    def _users_of(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Returns the users of a chunk, and how deep each is ranked."""
        if not self.is_sorted:  # all of them are one chunk
            return self.users, self.depth
        # A chunk of all users has them in the order of a matrix of scores.
        users, order = self.users[rows].sort()
        return users, self.depth[rows][order]

    @cached_property
    def candidates(self) -> "_EdgesByUser | None":
        """The edges whose items may be retrieved, where each user has candidates of its own."""
        if self._candidates is None or self._candidates.dim() == 1:
            return None
        return _EdgesByUser(self._candidates, self.users, self._num_candidates.numel())

    @cached_property
    def is_excluded(self) -> Tensor | None:
        """The items that no user may be recommended, if all users share candidates."""
        if self._candidates is None or self._candidates.dim() == 2:
            return None
        is_candidate: Tensor = index_to_mask(self._candidates, self.num_items)
        return ~is_candidate

    @cached_property
    def counts(self) -> tuple[list[int], list[int]]:
        """How many items are excluded for each user, and how many of the best leave enough."""
        num_excluded = self.num_items - self._num_candidates[self.users]
        excluded, needed = torch.stack([num_excluded, self.depth + num_excluded]).tolist()
        return excluded, needed


class _EdgesByUser:
    """Coalesced edges, handed out chunk by chunk.

    This takes memory for the users only: the edges of a chunk are put together when it is ranked.

    Args:
        edges (torch.Tensor): The edges, of shape `[2, num_edges]`.
        users (torch.Tensor): The users, in the order of chunks.
        num_users (int): How many users there are in all.
        is_whole (bool, optional): Whether these are all users, by their ids, in one chunk.
            (default: `False`)
    """

    def __init__(
        self, edges: Tensor, users: Tensor, num_users: int, is_whole: bool = False
    ) -> None:
        self.edges, self.users, self.num_users, self.is_whole = edges, users, num_users, is_whole

    @cached_property
    def _grouped(self) -> TruthByUser:
        return TruthByUser.of(self.edges[0], self.num_users)

    @cached_property
    def _num_up_to(self) -> list[int]:
        """How many edges the first users have, the first two, and so on."""
        return [0, *self._grouped.degree[self.users].cumsum(0).tolist()]

    def of(self, users: Tensor, rows: slice) -> ChunkEdges:
        """Returns the edges of the users of a chunk, in any order."""
        row, item = self.edges
        if self.is_whole:
            return ChunkEdges(torch.arange(item.numel(), device=item.device), row, item)
        num_edges = self._num_up_to[rows.stop] - self._num_up_to[rows.start]
        first, degree = self._grouped.ptr[users], self._grouped.degree[users]
        row, index = spread(first, degree, num_edges)
        return ChunkEdges(index, row, item[index])


def _column(item: Tensor, first: int, width: int) -> Tensor:
    """Returns the columns of items, and `width` for those that have none."""
    column = item - first
    return column.masked_fill_((column < 0) | (column >= width), width)
