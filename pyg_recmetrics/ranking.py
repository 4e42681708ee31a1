"""rank(): gives every ground-truth edge its rank, in chunks of users and bounded memory."""

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.index import index2ptr
from tqdm import tqdm

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.ranked_edges import NOT_RETRIEVED, RankedEdges, ranks_in_lists
from pyg_recmetrics.recommenders import (
    Chunk,
    Recommender,
    RecommenderLike,
    ScoreRecommender,
    as_recommender,
    evaluation_mode,
)
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.topk import Scratch

#: How much memory a chunk of users may take, unless `batch_size` says how many users it has.
SCRATCH_BYTES = 256 * 2**20


def rank(
    recommender: RecommenderLike,
    task: RankingTask,
    *,
    k: int | None = None,
    full: bool = False,
    edge_index: Any = None,
    edge_weight: Tensor | None = None,
    batch_size: int | None = None,
    keep_items: bool = False,
    progress: bool = False,
) -> RankedEdges:
    r"""Ranks every ground-truth edge of a task: the one expensive step of an evaluation.

    Users go through in chunks of bounded memory, on the device of the task. Every user is ranked
    down to `k` and down to its own number of relevant items R, so that R-precision is exact.
    Masked items are never retrieved; equal scores rank the lower item id first. The ranks depend
    neither on the size of the chunks nor on the order of the edges.

    Args:
        recommender: What to rank, any of

            - a module with `recommend(edge_index, edge_weight, src_index=, dst_index=, k=)`, such
              as PyG's :class:`~torch_geometric.nn.models.LightGCN` (which is propagated once and
              then scored by its embeddings), numbering its items from `num_users` on;
            - a pair `(user_embedding, item_embedding)`, scored by inner product, computed in
              double and rounded to single precision; item biases as a third entry are added;
            - a floating-point matrix of scores `[num_users, num_items]`, or a function that takes
              user ids and returns their scores `[len(users), num_items]`;
            - one floating-point score per item, `[num_items]`, the same for everybody;
            - an integer matrix `[num_users, K]` of recommended items, best first, `-1` for none.
        task (RankingTask): Who is ranked, over what, and what is relevant.
        k (int, optional): How deep ranks are wanted. (default: `None`, the largest number of
            relevant items of a user)
        full (bool, optional): Whether every rank is wanted, however deep. (default: `False`)
        edge_index (torch.Tensor or SparseTensor, optional): The edges a model propagates over, in
            its own numbering. (default: `None`, the message-passing edges of the data that the
            task was read from)
        edge_weight (torch.Tensor, optional): Their weights. (default: `None`)
        batch_size (int, optional): The number of users in a chunk. (default: `None`, as many as
            fit into 256 MB of scratch memory)
        keep_items (bool, optional): Whether to keep the lists of recommended items, of shape
            `[num_users, k]`, for all users of the task. (default: `False`)
        progress (bool, optional): Whether to show a progress bar. (default: `False`)

    Raises:
        TypeError: If `recommender` is none of these, or is a model without `recommend`.
        ValueError: If shapes, ids or devices do not fit the task, numbers are not finite, or `k`
            or `batch_size` is not a positive integer.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, rank
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])
        >>> rank(scores, task, k=2).rank
        tensor([2, 1])
    """
    if not isinstance(task, RankingTask):
        raise TypeError(f"'task' needs to be a 'RankingTask' (got {type(task).__name__})")
    if batch_size is not None:
        check_positive_integer(batch_size, "batch_size")
    depth = _depth(task, k, full)
    with evaluation_mode(recommender):
        ranker = as_recommender(recommender, task, edge_index, edge_weight)
        _warn_about_short_lists(ranker, task, depth)
        ranks, items = _rank_in_chunks(ranker, task, depth, batch_size, keep_items, progress)
    return RankedEdges.from_ranks(
        task.truth,
        ranks,
        num_users=task.num_users,
        weight=task.weight,
        num_candidates=task.num_candidates,
        depth=None if depth >= int(task.num_candidates.max()) else depth,
        items=items,
    )


def has_constant_scores(
    recommender: RecommenderLike,
    task: RankingTask,
    *,
    edge_index: Any = None,
    edge_weight: Tensor | None = None,
    batch_size: int | None = None,
) -> Tensor:
    """Returns the users for all of whose candidates a recommender has one score: `[num_users]`.

    Arguments are those of :func:`rank`. Lists have no scores, and so are never constant.
    """
    is_constant = torch.zeros(task.num_users, dtype=torch.bool, device=task.device)
    with evaluation_mode(recommender):
        ranker = as_recommender(recommender, task, edge_index, edge_weight)
        if not isinstance(ranker, ScoreRecommender):
            return is_constant
        schedule = _Schedule(task, 1, batch_size, ranker.bytes_per_pair, everybody=True)
        scratch = Scratch(task.device)
        for start, end in schedule.chunks():
            chunk = schedule.chunk(start, end, scratch)
            scores = ranker.scores(chunk.users, scratch)
            highest = scores.masked_fill_(chunk.excluded, -torch.inf).amax(dim=1)
            lowest = scores.masked_fill_(chunk.excluded, torch.inf).amin(dim=1)
            is_constant[chunk.users] = highest <= lowest
    ranker.check()
    return is_constant


def _depth(task: RankingTask, k: int | None, full: bool) -> int:
    if full:
        return task.num_items
    if k is None:
        return int(task.degree.max())
    return check_positive_integer(k, "k")


def _warn_about_short_lists(recommender: Recommender, task: RankingTask, depth: int) -> None:
    needed = min(max(depth, int(task.degree.max())), task.num_items)
    if recommender.max_depth is not None and recommender.max_depth < needed:
        warnings.warn(
            f"'recommender' holds lists of {recommender.max_depth} items, but {needed} are needed "
            f"(for the largest k, or the largest R); all others count as not retrieved",
            stacklevel=3,
        )


def _rank_in_chunks(
    recommender: Recommender,
    task: RankingTask,
    depth: int,
    batch_size: int | None,
    keep_items: bool,
    progress: bool,
) -> tuple[Tensor, Tensor | None]:
    """Returns the rank of every edge of the truth, and the lists if they are kept."""
    schedule = _Schedule(task, depth, batch_size, recommender.bytes_per_pair, keep_items)
    scratch = Scratch(task.device)
    ranks = torch.full_like(task.truth[0], NOT_RETRIEVED)
    lists = None
    if keep_items:
        width = min(depth, task.num_items)
        lists = torch.full((task.num_users, width), -1, device=task.device)
    with tqdm(
        total=schedule.users.numel(), desc="Ranking", unit=" users", disable=not progress
    ) as bar:
        for start, end in schedule.chunks():
            chunk = schedule.chunk(start, end, scratch)
            items = recommender.top_k(chunk)
            edges, row, item = schedule.truth.between(start, end)
            ranks[edges] = ranks_in_lists(items, row, item, task.num_items)
            if lists is not None:
                kept = items[:, : lists.size(1)]
                lists[chunk.users, : kept.size(1)] = kept
            bar.update(end - start)
    recommender.check()
    # A chunk is as deep as its deepest user. What it found out about others beyond their own depth
    # is forgotten, or else it would depend on who shares a chunk.
    own_depth = task.degree.clamp(min=depth)[task.truth[0]]
    return ranks.masked_fill_(ranks > own_depth, NOT_RETRIEVED), lists


class _Schedule:
    """Which users are ranked when: the deepest first, so that one does not make all deep.

    What a chunk needs to know on the host, such as where its edges start, is fetched from the
    device once and for all, so that no chunk has to wait for it.
    """

    def __init__(
        self,
        task: RankingTask,
        depth: int,
        batch_size: int | None,
        bytes_per_pair: int,
        everybody: bool,
    ) -> None:
        self.task = task
        self.batch_size = batch_size
        self.bytes_per_pair = bytes_per_pair
        users, degree = task.users, task.degree
        if not everybody:
            users = users[degree[users] > 0]
        depths = degree[users].clamp(min=depth).clamp(max=task.num_items)
        order = depths.argsort(descending=True, stable=True)
        self.users = users[order]
        self.depths = depths[order].tolist()
        self.num_excluded = (task.num_items - task.num_candidates[self.users]).tolist()
        place = torch.full((task.num_users,), -1, device=task.device)
        place[self.users] = torch.arange(self.users.numel(), device=task.device)
        self.truth = _EdgesByPlace(task.truth, place, self.users.numel())
        self.seen = _EdgesByPlace(task.seen, place, self.users.numel())
        self.candidates: _EdgesByPlace | None = None
        self.is_excluded: Tensor | None = None
        if task.candidates is not None and task.candidates.dim() == 2:
            self.candidates = _EdgesByPlace(task.candidates, place, self.users.numel())
        elif task.candidates is not None:
            self.is_excluded = torch.ones(task.num_items, dtype=torch.bool, device=task.device)
            self.is_excluded[task.candidates] = False

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yields where each chunk starts and ends."""
        start = 0
        while start < len(self.depths):
            end = min(start + self._num_rows(self.depths[start]), len(self.depths))
            yield start, end
            start = end

    def _num_rows(self, depth: int) -> int:
        if self.batch_size is not None:
            return self.batch_size
        bytes_per_adjacency, bytes_per_place = 1, 64
        bytes_per_row = (
            self.task.num_items * (self.bytes_per_pair + bytes_per_adjacency)
            + depth * bytes_per_place
        )
        return max(1, SCRATCH_BYTES // bytes_per_row)

    def chunk(self, start: int, end: int, scratch: Scratch) -> Chunk:
        """Returns the users of a chunk with the boolean adjacency of what they cannot be given."""
        excluded = scratch("excluded", (end - start, self.task.num_items), torch.bool)
        if self.candidates is not None:
            excluded.fill_(True)
            _, row, item = self.candidates.between(start, end)
            excluded[row, item] = False
        elif self.is_excluded is not None:
            excluded.copy_(self.is_excluded)
        else:
            excluded.zero_()
        _, row, item = self.seen.between(start, end)
        excluded[row, item] = True
        return Chunk(
            users=self.users[start:end],
            excluded=excluded,
            depth=self.depths[start],
            most_excluded=max(self.num_excluded[start:end]),
            scratch=scratch,
        )


class _EdgesByPlace:
    """Coalesced edges in the order in which their users are ranked: a chunk's are one slice."""

    def __init__(self, edges: Tensor, place: Tensor, num_places: int) -> None:
        place = place[edges[0]]
        order = place.argsort(stable=True)
        order = order[place[order] >= 0]
        self.index, self.place, self.item = order, place[order], edges[1, order]
        self.ptr = index2ptr(self.place, num_places).tolist()

    def between(self, start: int, end: int) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the edges of a chunk: where they were found, and their rows and items."""
        span = slice(self.ptr[start], self.ptr[end])
        return self.index[span], self.place[span] - start, self.item[span]
