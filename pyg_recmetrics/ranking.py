"""rank(): gives every ground-truth edge its rank, in chunks of users and bounded memory."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor
from tqdm import tqdm

from pyg_recmetrics import distributed
from pyg_recmetrics.bounds import BoundedRanking, has_exact_single_precision
from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.counting import BoundedCount
from pyg_recmetrics.ranked_edges import NOT_RETRIEVED, RankedEdges, ranks_in_lists
from pyg_recmetrics.recommenders import (
    Chunk,
    EmbeddingRecommender,
    Recommender,
    RecommenderLike,
    ScoreRecommender,
    as_recommender,
    evaluation_mode,
)
from pyg_recmetrics.schedule import Schedule, rows_in_memory
from pyg_recmetrics.searching import BoundedSearch, has_fast_bfloat16
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.topk import Scratch

#: How to find ranks: from all exact scores, by counting or searching with a bound on the error of
#: faster ones, or by what is fastest.
Algorithm: TypeAlias = Literal["auto", "dense", "count", "search"]

#: What ranks by a bound.
_BOUNDED: dict[str, type[BoundedRanking]] = {"search": BoundedSearch, "count": BoundedCount}


def rank(
    recommender: RecommenderLike,
    task: RankingTask,
    *,
    k: int | None = None,
    full: bool = False,
    edge_index: Any = None,
    edge_weight: Tensor | None = None,
    batch_size: int | None = None,
    keep_items: bool | int = False,
    algorithm: Algorithm = "auto",
    progress: bool = False,
) -> RankedEdges:
    r"""Ranks every ground-truth edge of a task: the one expensive step of an evaluation.

    Users go through in chunks of bounded memory, on the device of the task. Every user is ranked
    down to `k` and down to its own number of relevant items R, so that R-precision is exact.
    Masked items are never retrieved; equal scores rank the lower item id first. The ranks depend
    neither on the size of the chunks nor on the order of the edges.

    Where a process group of :mod:`torch.distributed` is initialised, all of its processes call
    this with the same arguments. Each ranks its share of the users, and all return the same ranks:
    those of a single process. If it raises in one of them, it raises in all (see
    :mod:`pyg_recmetrics.distributed`).

    Args:
        recommender: What to rank, any of

            - a module with `recommend(edge_index, edge_weight, src_index=, dst_index=, k=)`, such
              as PyG's :class:`~torch_geometric.nn.models.LightGCN` (which is propagated once and
              then scored by its embeddings), numbering its items from `num_users` on;
            - a pair `(user_embedding, item_embedding)`, scored by inner product, computed in
              double and rounded to single precision; item biases as a third entry are added.
              Either may stay in the memory of the host or in a memory-mapped file, and passes
              through the device of the task in parts, as a table of items does that is too large;
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
        keep_items (bool or int, optional): Whether to keep the lists of recommended items, of
            shape `[num_users, k]`, for all users of the task; or how many items of each list.
            (default: `False`)
        algorithm (str, optional): How ranks are found. `"dense"` computes the exact scores of all
            items. For embeddings on a CPU, `"count"` proves most ranks from scores in single
            precision (:mod:`pyg_recmetrics.counting`) and `"search"` from scores in half precision
            (:mod:`pyg_recmetrics.searching`), and both look at what is close exactly: in a
            fraction of the time. The ranks are the same. (default: `"auto"`, the fastest one that
            applies; searching takes a processor that multiplies `bfloat16` fast)
        progress (bool, optional): Whether to show a progress bar. (default: `False`)

    Raises:
        TypeError: If `recommender` is none of these, or is a model without `recommend`.
        ValueError: If shapes, ids or devices do not fit the task, numbers are not finite, or `k`
            or `batch_size` is not a positive integer.
        RuntimeError: If it raised in another process, or another process has ended.

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
    with distributed.together(task.device):
        ranks, lists, depth = _rank_share(
            recommender,
            task,
            k=k,
            full=full,
            edge_index=edge_index,
            edge_weight=edge_weight,
            batch_size=batch_size,
            keep_items=keep_items,
            algorithm=algorithm,
            progress=progress,
        )
    distributed.check_same(
        task.truth, task.users, task.seen, task.num_candidates, depth, keep_items
    )
    distributed.combine(ranks, largest=False)
    if lists is not None:
        distributed.combine(lists, largest=True)
    return RankedEdges.from_ranks(
        task.truth,
        ranks,
        num_users=task.num_users,
        weight=task.weight,
        num_candidates=task.num_candidates,
        depth=None if depth >= int(task.num_candidates.max()) else depth,
        items=lists,
        catalogue=task.catalogue,
    )


def _rank_share(
    recommender: RecommenderLike,
    task: RankingTask,
    *,
    k: int | None,
    full: bool,
    edge_index: Any,
    edge_weight: Tensor | None,
    batch_size: int | None,
    keep_items: bool | int,
    algorithm: Algorithm,
    progress: bool,
) -> tuple[Tensor, Tensor | None, int]:
    """Ranks this process' share of the users, and returns ranks, lists, and how deep they are.

    What the other processes find out is left as not retrieved, and `-1`.
    """
    if batch_size is not None:
        check_positive_integer(batch_size, "batch_size")
    depth = _depth(task, k, full)
    width = _width(task, depth, keep_items)
    lists = torch.full((task.num_users, width), -1, device=task.device) if width else None
    ranks = torch.full_like(task.truth[0], NOT_RETRIEVED)
    users = task.users if width else task.users[task.degree[task.users] > 0]
    users = distributed.share(users)
    is_quiet = not progress or distributed.process() > 0
    with (
        evaluation_mode(recommender),
        tqdm(total=users.numel(), desc="Ranking", unit=" users", disable=is_quiet) as bar,
    ):
        ranker = as_recommender(recommender, task, edge_index, edge_weight)
        _warn_about_short_lists(ranker, task, depth)
        is_counted = full and isinstance(ranker, ScoreRecommender)
        how = _find_algorithm(algorithm, ranker, task, depth, bool(width) and not is_counted)
        rest = users
        if how in _BOUNDED and isinstance(ranker, EmbeddingRecommender):
            bounded = _BOUNDED[how](ranker.user, ranker.item)
            # What is counted is as much as there is to rank, however deep.
            depth_of_chunks = depth if how == "search" else 1
            num_rows = _rows(batch_size, bounded.batch_size)
            schedule = Schedule(task, users, depth_of_chunks, num_rows)
            rest = _rank_by_bounds(bounded, schedule, ranks, bar)
        in_memory = partial(rows_in_memory, _items_at_once(ranker, task), ranker.bytes_per_pair)
        schedule = Schedule(task, rest, depth, _rows(batch_size, in_memory))
        if isinstance(ranker, ScoreRecommender) and is_counted:
            _rank_by_counts(ranker, schedule, ranks, bar)
            if lists is not None:  # they need not be as deep as the ranks
                _keep_lists(ranker, Schedule(task, users, width, schedule.num_rows), lists)
        else:
            _rank_by_lists(ranker, schedule, ranks, lists, bar)
    # A chunk is as deep as its deepest user. What it found out about others beyond their own depth
    # is forgotten, or else it would depend on who shares a chunk.
    own_depth = task.degree.clamp(min=depth)[task.truth[0]]
    ranks.masked_fill_(ranks > own_depth, NOT_RETRIEVED)
    return ranks, lists, depth


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
    is_constant = torch.zeros(task.num_users, dtype=torch.uint8, device=task.device)
    with distributed.together(task.device), evaluation_mode(recommender):
        ranker = as_recommender(recommender, task, edge_index, edge_weight)
        if not isinstance(ranker, ScoreRecommender):
            return is_constant.bool()
        num_rows = partial(rows_in_memory, _items_at_once(ranker, task), ranker.bytes_per_pair)
        schedule = Schedule(task, distributed.share(task.users), 1, _rows(batch_size, num_rows))
        scratch = Scratch(task.device)
        for start, end in schedule.chunks():
            chunk = schedule.chunk(start, end, scratch)
            is_constant[chunk.users] = ranker.is_constant(chunk).byte()
        ranker.check()
    distributed.check_same(task.users, task.seen, task.num_candidates)
    distributed.combine(is_constant, largest=True)
    return is_constant.bool()


def _items_at_once(recommender: Recommender, task: RankingTask) -> int:
    return min(recommender.items_at_once or task.num_items, task.num_items)


def _rows(batch_size: int | None, num_rows: Callable[[int], int]) -> Callable[[int], int]:
    return num_rows if batch_size is None else lambda depth: batch_size


def _depth(task: RankingTask, k: int | None, full: bool) -> int:
    if full:
        return task.num_items
    if k is None:
        return int(task.degree.max())
    return check_positive_integer(k, "k")


def _width(task: RankingTask, depth: int, keep_items: bool | int) -> int:
    """How many items of each list are kept."""
    if isinstance(keep_items, bool):
        return min(depth, task.num_items) if keep_items else 0
    return min(check_positive_integer(keep_items, "keep_items"), depth, task.num_items)


def _warn_about_short_lists(recommender: Recommender, task: RankingTask, depth: int) -> None:
    needed = min(max(depth, int(task.degree.max())), task.num_items)
    if recommender.max_depth is not None and recommender.max_depth < needed:
        distributed.warn(
            f"'recommender' holds lists of {recommender.max_depth} items, but {needed} are needed "
            f"(for the largest k, or the largest R); all others count as not retrieved",
            stacklevel=4,
        )


def _find_algorithm(
    wanted: str, recommender: Recommender, task: RankingTask, depth: int, keep_items: bool
) -> str:
    """Returns the algorithm that is wanted if it applies, or the fastest one that does."""
    if wanted not in get_args(Algorithm):
        raise ValueError(
            f"'algorithm' needs to be one of {list(get_args(Algorithm))} (got {wanted!r})"
        )
    if wanted == "dense":
        return wanted
    can_count = (
        isinstance(recommender, EmbeddingRecommender)
        and task.device.type == "cpu"
        and task.candidates is None
        and not keep_items
    )
    can_search = can_count and depth < task.num_items
    if wanted == "auto":
        # Deep rankings have too many items above the bound, and small ones too few to gain.
        if can_search and 8 * depth <= task.num_items and has_fast_bfloat16():
            return "search"
        return "count" if can_count and has_exact_single_precision() else "dense"
    if not (can_count if wanted == "count" else can_search):
        raise ValueError(
            f"'algorithm' can be 'search' or 'count' for embeddings without biases on a CPU, "
            f"without 'candidates' and 'keep_items', and 'search' only for a part of the ranking "
            f"(got {wanted!r} for something else)"
        )
    return wanted


def _rank_by_bounds(
    search: BoundedRanking, schedule: Schedule, ranks: Tensor, bar: "tqdm[Any]"
) -> Tensor:
    """Writes the ranks that could be proved into `ranks`, and returns the users that are left."""
    scratch = Scratch(ranks.device)
    unsettled = []
    for start, end in schedule.chunks():
        users = schedule.users[start:end]
        edges, row, item = schedule.truth.between(start, end)
        _, *seen = schedule.seen.between(start, end)
        ranks[edges], is_left = search.ranks(
            users, schedule.depth[start:end], (row, item), (seen[0], seen[1]), scratch
        )
        unsettled.append(users[is_left])
        bar.update(int((~is_left).sum()))
    return torch.cat([schedule.users[:0], *unsettled])


def _rank_by_counts(
    recommender: ScoreRecommender, schedule: Schedule, ranks: Tensor, bar: "tqdm[Any]"
) -> None:
    """Writes all ranks into `ranks`, however deep they are."""
    scratch = Scratch(ranks.device)
    for start, end in schedule.chunks():
        chunk = schedule.chunk(start, end, scratch)
        edges, row, item = schedule.truth.between(start, end)
        ranks[edges] = recommender.ranks(chunk, row, item)
        bar.update(end - start)
    recommender.check()


def _rank_by_lists(
    recommender: Recommender,
    schedule: Schedule,
    ranks: Tensor,
    lists: Tensor | None,
    bar: "tqdm[Any]",
) -> None:
    """Writes the ranks into `ranks`, and the lists into `lists` if they are kept."""
    scratch = Scratch(ranks.device)
    for start, end in schedule.chunks():
        chunk = schedule.chunk(start, end, scratch)
        items = recommender.top_k(chunk)
        edges, row, item = schedule.truth.between(start, end)
        ranks[edges] = ranks_in_lists(items, row, item, schedule.task.num_items)
        if lists is not None:
            _keep(items, chunk, lists)
        bar.update(end - start)
    recommender.check()


def _keep_lists(recommender: Recommender, schedule: Schedule, lists: Tensor) -> None:
    """Writes the lists into `lists`, and asks for no ranks."""
    scratch = Scratch(lists.device)
    for start, end in schedule.chunks():
        chunk = schedule.chunk(start, end, scratch)
        _keep(recommender.top_k(chunk), chunk, lists)


def _keep(items: Tensor, chunk: Chunk, lists: Tensor) -> None:
    kept = items[:, : lists.size(1)]
    lists[chunk.users, : kept.size(1)] = kept
