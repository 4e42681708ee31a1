"""rank(): gives every ground-truth edge its rank, in chunks of users and bounded memory."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from pyg_recmetrics.checks import check_boolean, check_double_precision, check_positive_integer
from pyg_recmetrics.inputs import EdgesLike
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.messages import warn
from pyg_recmetrics.ranked_edges import Lists, Origin, RankedEdges, describe_lack, sort_edges
from pyg_recmetrics.ranked_edges.ties import Ties, check_ties
from pyg_recmetrics.ranked_edges.truth_by_user import TruthByUser
from pyg_recmetrics.ranking.adapt import RecommenderLike, as_recommender, ask_model, complete_counts
from pyg_recmetrics.ranking.algorithms import (
    Algorithm,
    Findings,
    RankingAlgorithm,
    Request,
    find_algorithms,
)
from pyg_recmetrics.ranking.models import evaluation_mode
from pyg_recmetrics.ranking.recommenders import EmbeddingRecommender
from pyg_recmetrics.ranking.schedule import Chunk, Schedule, edges_of
from pyg_recmetrics.task import RankingTask, as_task


def rank(
    recommender: RecommenderLike,
    data: RankingTask | Data | HeteroData | EdgesLike,
    *,
    k: int | None = None,
    full: bool = False,
    num_users: int | None = None,
    num_items: int | None = None,
    edge_index: EdgesLike | None = None,
    exclude_seen: bool | None = None,
    ties: Ties = "index",
    seed: int = 0,
    keep_items: bool | int = False,
    batch_size: int | None = None,
    algorithm: Algorithm = "auto",
    progress: bool = False,
) -> RankedEdges:
    r"""Ranks every ground-truth edge. This is the one expensive step of an evaluation.

    Users are ranked in chunks of bounded memory, on the device of the task. Every user is ranked
    down to `k`, and also down to its own number of relevant items R, so that R-precision is exact.
    Masked items are never retrieved. The ranks depend neither on the size of the chunks nor on the
    order of the edges.

    **Half ranks.** With `ties="mean"`, a rank may be a half. Each irrelevant item of the same score
    then counts as half an item above. The j-th relevant item of a user still has a rank of at least
    j, so all metrics keep their bounds. A relevant item at rank 2.5 is in the top 3, and not in the
    top 2. The reciprocal rank, the precision at a relevant item and the discount of the NDCG are
    those of the half rank: values at a mean rank, and not mean values over all orders of the equal
    scores. The mean rank and the ROC-AUC are the means over all orders. The ROC-AUC is then that of
    scikit-learn.

    Args:
        recommender: What to rank, one of

            - a model with `recommend(edge_index, src_index, dst_index, k)` that numbers its items
              from `num_users` on, such as PyG's :class:`~torch_geometric.nn.models.LightGCN`: a
              module, any other object, or just the method. Everything is given by name, and
              `edge_weight` if it takes that. A model that takes no items, as in
              `recommend(users, k)`, numbers them from `0` on. A LightGCN is propagated once, and
              then scored by its embeddings;
            - a model of :mod:`torch_geometric.nn.kge` with
              `forward(head_index, rel_type, tail_index)`, for a task that
              :meth:`RankingTask.from_triples` makes. DistMult, ComplEx, RotatE and the Euclidean
              TransE rank by inner products, which takes a fraction of the time that the scores of
              all triples would take. Others are asked for these, and so are subclasses;
            - a pair `(user_embedding, item_embedding)`, scored by the exact inner product, rounded
              once to single precision, or `(user_embedding, item_embedding, item_bias)`, whose
              biases are added. Each table may stay in the memory of the host or in a memory-mapped
              file. It then passes through the device of the task in parts;
            - a floating-point matrix of scores `[num_users, num_items]`, or a function that takes
              user ids and returns their scores `[len(users), num_items]`. An item with a score of
              `-inf` is never retrieved;
            - a :class:`PairScorer`, which scores pairs of a user and an item;
            - one floating-point score per item, `[num_items]`, the same for everybody;
            - an integer matrix `[num_users, K]` of recommended items, best first, `-1` for none;
            - lists by the original ids of the task: a dict `{user_id: [item_id, ...]}`, best first,
              or a data frame with the columns `(user_id, item_id, rank)`, which counts from 1, or
              `(user_id, item_id, score)`, where equal scores rank the lower item first, and items
              that the task does not have last. A rank in a list is the place in that list: items
              that the task does not have keep their places. Users without a list get nothing;
            - a fitted model of `implicit`, LightFM, Cornac, Surprise or RecBole, a pipeline or a
              collection of lists of LensKit, or a pair `(user_embedding, index)` with an index of
              faiss. Cornac, Surprise and LensKit are asked by the original ids of the task, the
              others by position. The recipe of a result says what was ranked, and whether a search
              was approximate.

            Embeddings may be labelled by the original ids, too: each part may be a dict from ids to
            vectors.
        data (RankingTask, Data, HeteroData or torch.Tensor): Who is ranked, over what, and what is
            relevant: one part of a split, which :meth:`RankingTask.from_data` reads; a task; or
            ground-truth edges, see :func:`evaluate`.
        k (int, optional): How deep ranks are wanted. (default: `None`, the largest number of
            relevant items of a user)
        full (bool, optional): Whether every rank is wanted, however deep. There is then no `k`.
            (default: `False`)
        num_users (int, optional): See :func:`evaluate`. (default: `None`)
        num_items (int, optional): See :func:`evaluate`. (default: `None`)
        edge_index (torch.Tensor or SparseTensor, optional): See :func:`evaluate`.
            (default: `None`, the message-passing edges of the data that the task was read from)
        exclude_seen (bool, optional): See :func:`evaluate`. (default: `None`)
        ties (str, optional): How equal scores are ranked: `"index"`, `"best"`, `"worst"`, `"mean"`
            or `"random"`, see :meth:`RankedEdges.with_ties`. Lists keep the lower item id first.
            (default: `"index"`, the lower item id first)
        seed (int, optional): The seed of `ties="random"`. (default: `0`)
        keep_items (bool or int, optional): Whether to keep the lists of recommended items for all
            users of the task, as deep as ranks are wanted; or how many items of each list to keep,
            as deep as ranks are then known. (default: `False`)
        batch_size (int, optional): The number of users in a chunk. (default: `None`, as many as
            fit into 256 MB of scratch memory, or more on a GPU)
        algorithm (str, optional): How ranks are found. `"dense"` computes the exact scores of all
            items, and sorts or counts them. `"search"` finds the few items that may matter to ranks
            and lists down to a depth (:mod:`pyg_recmetrics.kernels.fast.searching`): by products of
            rounded embeddings and a bound on their error, or in given scores. `"count"` proves all
            ranks of embeddings in a similar way
            (:mod:`pyg_recmetrics.kernels.fast.bounded_counting`). Both compare near-ties by exact
            scores, and take a fraction of the time. The ranks are the same. `"recommend"` asks a
            model for each chunk by its own `recommend`, also a LightGCN. Its ranks can differ where
            scores are so close that they are rounded differently. (default: `"auto"`, the fastest
            one that applies)
        progress (bool, optional): Whether to show a progress bar. (default: `False`)

    Returns:
        The ground-truth edges with their ranks.

    Raises:
        TypeError: If `recommender` is none of these, or is a module without `recommend`, or its
            `recommend` takes other arguments, if `data` is neither a task nor a graph, or if `full`
            or `progress` is not a boolean.
        ValueError: If shapes, ids or devices do not fit the task, its device has no double
            precision, numbers are not finite, `k`, `batch_size` or `keep_items` is not a positive
            integer, `k` is given although everything is ranked, `algorithm` does not apply, `seed`
            is not a non-negative integer, there is no such way to rank ties, `ties` is not
            `"index"` and scores are not known.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, rank
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])
        >>> rank(scores, task, k=2).rank
        tensor([2, 1])
    """
    num_users, num_items = complete_counts(recommender, data, num_users, num_items)
    task = as_task(
        data,
        num_users=num_users,
        num_items=num_items,
        edge_index=edge_index,
        exclude_seen=exclude_seen,
    )
    seed = check_ties(ties, seed)
    check_boolean(progress, "progress")
    if batch_size is not None:
        batch_size = check_positive_integer(batch_size, "batch_size")
    check_boolean(full, "full")
    with evaluation_mode(recommender):
        ranking = OpenRanking(
            recommender,
            task,
            k=k,
            full=full,
            batch_size=batch_size,
            keep_items=keep_items,
            ties=ties,
            seed=seed,
            algorithm=algorithm,
            progress=progress,
            needs_degree=True,
        )
        ranking.rank(task.users)
    return ranking.to_ranked_edges()


class OpenRanking:
    """Ranking in progress: the ranks of truth edges and the lists of users found so far.

    A recommender is prepared once, to rank one batch of users after the other. This is done in
    :func:`evaluation_mode`. See :func:`rank` for the arguments, of which only those that depend on
    the task and the recommender are checked here. `needs_degree` says whether a
    metric looks at every user down to its own number of relevant items: only then are lists that
    end before it warned about.
    """

    def __init__(
        self,
        recommender: RecommenderLike,
        task: RankingTask,
        *,
        k: int | None,
        full: bool,
        batch_size: int | None,
        keep_items: bool | int,
        ties: Ties = "index",
        seed: int = 0,
        algorithm: Algorithm = "auto",
        progress: bool,
        needs_degree: bool,
    ) -> None:
        check_double_precision(task.device, "task")
        depth = _depth(task, k, full)
        num_kept = _num_kept(depth, keep_items)
        adapt = ask_model if algorithm == "recommend" else as_recommender
        is_candidate = task.is_candidate
        present = task._without_missing(is_candidate)
        ranker = adapt(recommender, present)
        # A list may be longer than there are items, as it may name others, too.
        deepest = max(task.num_items, ranker.max_depth or 0)
        depth = deepest if full else max(depth, num_kept)
        num_kept = min(depth, deepest) if keep_items is True else min(num_kept, deepest)
        self.task, self.recommender, self.depth = task, ranker, depth
        self._is_missed = None if is_candidate is None else ~is_candidate
        self._ties, self._seed, self._batch_size = ties, seed, batch_size
        self._progress = progress
        self._looked_at = (None if full else k or 1), needs_degree
        request = Request(ranker, present, min(depth, deepest), full, num_kept)
        if full and num_kept > 0 and isinstance(ranker, EmbeddingRecommender):
            # Counting makes no lists.
            self._of_ranks = _KnownRanks(replace(request, list_width=0), algorithm)
            only_lists = replace(request, depth=num_kept, is_full=False)
            self._of_lists = _KnownRanks(only_lists, "auto" if algorithm == "auto" else "dense")
            self._rankings = [self._of_ranks, self._of_lists]
        else:
            self._of_ranks = self._of_lists = _KnownRanks(request, algorithm)
            self._rankings = [self._of_ranks]

    def rank(self, users: Tensor) -> None:
        """Ranks users of the task."""
        for ranking in self._rankings:
            ranking.rank(users, self._batch_size, self._progress)
        mask = self.recommender.mask
        if mask is not None and mask.is_noted:
            mask.apply(self._of_ranks.ranks)

    def to_ranked_edges(self, users: Tensor | None = None) -> RankedEdges:
        """Returns the ranked edges, without what the recommender keeps out of the rankings.

        Args:
            users (torch.Tensor, optional): Some of those who have been ranked, sorted.
                (default: `None`, all users of the task; this is the end, and warns of what is odd)
        """
        if users is None:
            self.warn()
        task, ranks, mask = self.task, self._ranks_of_all_truth(), self.recommender.mask
        truth, weight, is_missed = task.truth, task.weight, self._is_missed
        grouped = TruthByUser.of_task(task) if users is None else None
        if users is not None:
            edges = edges_of(truth, users, task.num_users)
            truth, ranks = truth[:, edges], Ranks(*(known[edges] for known in ranks))
            weight, is_missed = (x if x is None else x[edges] for x in (weight, is_missed))
        if users is None and task.users.numel() < task.num_users:
            users = task.users
        if mask is not None and not mask.is_noted:
            mask = None
        num_candidates = task.num_candidates if mask is None else mask.num_candidates
        has_scores = self.recommender.has_scores
        most = task._extremes.max_candidates if mask is None else _largest(num_candidates)
        deepest = max(most, self.recommender.max_depth or 0)
        ranked = sort_edges(
            truth,
            ranks.rank,
            num_users=task.num_users,
            grouped=grouped,
            num_above=ranks.num_above if has_scores else None,
            num_tied=ranks.num_tied if has_scores else None,
            weight=weight,
            users=users,
            num_candidates=num_candidates,
            depth=None if self.depth >= deepest else self.depth,
            lists=self._of_lists.lists_of(users),
            catalogue=task.catalogue,
            user_ids=task.user_ids,
            item_ids=task.item_ids,
            is_candidate=None if is_missed is None else ~is_missed,
            origin=Origin(
                ranked_by=self.recommender.in_words,
                num_masked=None if mask is None else mask.num_masked,
                listed=self.recommender.listed,
                person=task.person,
            ),
        )
        return ranked if self._ties == "index" else ranked.with_ties(self._ties, seed=self._seed)

    def _ranks_of_all_truth(self) -> Ranks:
        """Returns what is known of all truth; what is no candidate is never retrieved."""
        if self._is_missed is None:
            return self._of_ranks.ranks
        ranks = Ranks.unknown(self.task.truth[1])
        ranks.update((~self._is_missed).nonzero().squeeze(1), self._of_ranks.ranks)
        ranks.leave_out(self._is_missed)
        return ranks

    def warn(self) -> None:
        """Warns of what is odd about what has been ranked."""
        self.recommender.warn()
        if self.recommender.listed is None:
            return
        task, (depth, needs_degree) = self.task, self._looked_at
        listed, counts = self.recommender.listed, (task.degree, task.num_candidates)
        if lack := describe_lack(listed, *counts, depth, needs_degree, task.user_ids):
            warn(
                f"'recommender' gives too few items: {lack}. Missing items count as not retrieved, "
                f"so values for the largest k or R may be too low"
            )


class _KnownRanks:
    """The ranks of all truth edges and the list of every user, as far as they are known.

    Edges without a rank are left as not retrieved, and empty entries of lists as `-1`. What the
    algorithms prepare, such as rounded items, is prepared once for all users.
    """

    def __init__(self, request: Request, algorithm: Algorithm) -> None:
        self.request, self.task = request, request.task
        self.ranks = Ranks.unknown(self.task.truth[1])
        self.lists: Tensor | None = None
        if request.list_width:
            shape = (self.task.num_users, request.list_width)
            self.lists = torch.full(shape, -1, device=self.task.device)
        self._algorithm = algorithm

    @cached_property
    def _algorithms(self) -> list[RankingAlgorithm]:
        return find_algorithms(self._algorithm, self.request)

    def rank(self, users: Tensor, batch_size: int | None, progress: bool) -> None:
        """Ranks users by one algorithm after the other, until all are settled."""
        task, pending = self.task, users
        if self.lists is None:
            is_whole = users is task.users
            pending = task.users_with_truth if is_whole else users[task.degree[users] > 0]
        num_users = pending.numel()
        with _bar(num_users, progress and num_users > 0) as bar:
            for way in self._algorithms if num_users else ():
                if pending.numel() > 0:
                    pending = self._find_out(way, pending, batch_size, bar)
        # All users of a chunk are ranked to the depth of the deepest. Ranks beyond a user's own
        # depth are discarded, since they would depend on the size of the chunks.
        depth = task.degree.clamp(min=self.request.depth)
        self.ranks.forget_beyond(depth.index_select(0, task.truth[0]))

    def lists_of(self, users: Tensor | None) -> Lists | None:
        """Returns the lists of some users, and empty ones for all others, if they are kept."""
        if self.lists is None or users is None:
            return None if self.lists is None else Lists.from_matrix(self.lists)
        length = self.lists.new_zeros(self.task.num_users)
        length[users] = self.lists.size(1)
        return Lists(self.lists[users].flatten(), F.pad(length.cumsum(0), (1, 0)))

    def _find_out(
        self, algorithm: RankingAlgorithm, users: Tensor, batch_size: int | None, bar: "tqdm[Any]"
    ) -> Tensor:
        """Ranks users chunk by chunk, and returns those whom the algorithm could not settle."""
        is_unsettled: Tensor | None = None
        num_rows = algorithm.num_rows if batch_size is None else lambda depth: batch_size
        schedule = Schedule.of(self.task, users, algorithm.depth, num_rows)
        for chunk in schedule.chunks(num_rows):
            findings = algorithm.rank(chunk)
            self._write(chunk, findings)
            if findings.is_unsettled is not None:
                if is_unsettled is None:
                    is_unsettled = torch.zeros(
                        self.task.num_users, dtype=torch.bool, device=self.task.device
                    )
                is_unsettled[chunk.users] = findings.is_unsettled
            bar.update(chunk.users.numel())
        # Looked at once, after the last chunk, so that no chunk has to wait for the device.
        self.request.recommender.check()
        unsettled = users[:0] if is_unsettled is None else users[is_unsettled[users]]
        bar.update(-unsettled.numel())
        return unsettled

    def _write(self, chunk: Chunk, findings: Findings) -> None:
        self.ranks.update(chunk.truth.index, findings.ranks)
        if findings.lists is not None and self.lists is not None:
            lists = findings.lists[:, : self.lists.size(1)]
            self.lists[chunk.users, : lists.size(1)] = lists


#: A bar that is not shown. To make one takes longer than to rank a few users.
_NO_BAR = tqdm(disable=True)


def _bar(num_users: int, is_shown: bool) -> "tqdm[Any]":
    """Returns a progress bar."""
    return tqdm(total=num_users, desc="Ranking", unit=" users") if is_shown else _NO_BAR


def _depth(task: RankingTask, k: int | None, full: bool) -> int:
    if full:
        if k is not None:
            raise ValueError(f"'k' and 'full=True' exclude each other (got k={k!r})")
        return task.num_items
    return task._extremes.max_degree if k is None else check_positive_integer(k, "k")


def _largest(numbers: Tensor) -> int:
    return int(numbers.max()) if numbers.numel() else 0


def _num_kept(depth: int, keep_items: bool | int) -> int:
    """Returns how many items of each list are kept."""
    if isinstance(keep_items, bool):
        return depth if keep_items else 0
    return check_positive_integer(keep_items, "keep_items")
