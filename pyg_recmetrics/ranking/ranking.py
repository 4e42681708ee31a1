"""rank(): gives every ground-truth edge its rank, in chunks of users and bounded memory."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from pyg_recmetrics.checks import (
    EdgesLike,
    check_boolean,
    check_choice,
    check_double_precision,
    check_positive_integer,
    written,
)
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.ranked_edges import (
    Lists,
    Provenance,
    RankedEdges,
    Ties,
    check_ties,
    describe_lack,
    sort_edges,
)
from pyg_recmetrics.ranking.adapt import RecommenderLike, as_recommender, ask_model, complete_counts
from pyg_recmetrics.ranking.algorithms import Algorithm, RankingAlgorithm, Request, find_passes
from pyg_recmetrics.ranking.models import evaluation_mode
from pyg_recmetrics.ranking.recommenders import ScoreMask, ask_about_order
from pyg_recmetrics.ranking.schedule import Schedule
from pyg_recmetrics.task import Catalogue, RankingTask, as_task
from pyg_recmetrics.utils import warn


@written("rank(model, data, k=20)")
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
    Items that a user has seen, and those with a score of `-inf`, are never retrieved. The ranks
    depend neither on the size of the chunks nor on the order of the edges.

    **Half ranks.** With `ties="mean"`, a rank may be a half. Each irrelevant item of the same score
    then counts as half an item above. The j-th relevant item of a user still has a rank of at least
    j, so all metrics keep their bounds. A relevant item at rank 2.5 is in the top 3, and not in the
    top 2. The reciprocal rank, the precision at a relevant item and the discount of the NDCG are
    computed at the half rank, and are not means over all orders of the equal scores. The mean rank
    and the ROC-AUC are such means. The ROC-AUC is then that of scikit-learn.

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
              TransE rank by inner products, which takes a fraction of the time of scoring all
              triples. Other models, and subclasses of these, score all triples;
            - a pair `(user_embedding, item_embedding)`, scored by the exact inner product, rounded
              once to single precision, or `(user_embedding, item_embedding, item_bias)`, whose
              biases are added. Each table may stay in the memory of the host or in a memory-mapped
              file. It then passes through the device of the task in parts;
            - a floating-point matrix of scores `[num_users, num_items]`, or a function that takes
              user ids and returns their scores `[len(users), num_items]`. An item with a score of
              `-inf` is never retrieved;
            - a :class:`PairScorer`, which scores pairs of a user and an item;
            - one floating-point score per item, `[num_items]`, the same for all users;
            - an integer matrix `[num_users, K]` of recommended items, best first, `-1` for none;
            - lists by the original ids of the task: a dict `{user_id: [item_id, ...]}`, best first,
              or a data frame with the columns `(user_id, item_id, rank)`, where ranks count from 1,
              or `(user_id, item_id, score)`. Of equal scores, the item with the lower id comes
              first, and items that the task does not have come last. Such items keep their places
              in a list. A user without a list gets no items;
            - a fitted model of `implicit` or RecBole, a pipeline or a collection of lists of
              LensKit, or a pair `(user_embedding, index)` with an index of faiss, such as PyG's
              `MIPSKNNIndex`. LensKit is asked by the original ids of the task. In all others, user
              `u` and item `i` of the task have the positions `u` and `i`, counted from 0, and
              without the padding of RecBole. The recipe of a result says what was ranked, and
              whether a search was approximate.

            Embeddings may be labelled by the original ids, too: each part may be a dict from ids to
            vectors.
        data (RankingTask, Data, HeteroData or torch.Tensor): The users, their candidates and the
            truth: one part of a split, which :meth:`RankingTask.from_data` reads; a task; or
            ground-truth edges, see :func:`evaluate`.
        k (int, optional): The cut-off down to which ranks are found. (default: `None`, the largest
            number of relevant items of a user)
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
        keep_items (bool or int, optional): `True` keeps the recommended items of all users of the
            task down to `k`. An integer keeps that many of each user, and ranks are found at least
            down to that place. (default: `False`)
        batch_size (int, optional): The number of users in a chunk. (default: `None`, as many as
            fit into 256 MB of scratch memory, or more on a GPU)
        algorithm (str, optional): How ranks are found. `"dense"` computes the exact scores of all
            items, and sorts or counts them. `"search"` finds the few items that may matter to ranks
            and lists down to a depth (:mod:`pyg_recmetrics.kernels.fast.searching`): by products of
            rounded embeddings and a bound on their error, or in given scores. `"count"` proves all
            ranks of embeddings in a similar way
            (:mod:`pyg_recmetrics.kernels.fast.bounded_counting`). Both compare near-ties by exact
            scores, and take a fraction of the time. The ranks are the same. `"recommend"` calls a
            model's own `recommend` for each chunk, even a LightGCN's. Its ranks can differ where
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
            integer, `k` is given with `full=True`, `algorithm` does not apply, `seed` is not a
            non-negative integer, `ties` is none of the above, or `ties` is not `"index"` and
            scores are not known.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, rank
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])
        >>> rank(scores, task, k=2).rank
        tensor([2, 1])
    """
    num_users, num_items = complete_counts(recommender, data, num_users, num_items)
    task = as_task(data, num_users, num_items, edge_index, exclude_seen)
    check_options(ties, seed, keep_items, batch_size, progress)
    if k is not None:
        k = check_positive_integer(k, "k")
    check_choice(algorithm, "algorithm", get_args(Algorithm))
    if check_boolean(full, "full") and k is not None:
        raise ValueError(f"'k' and 'full=True' exclude each other (got k={k!r})")
    with evaluation_mode(recommender):
        how = HowToRank(k, full, keep_items, batch_size, progress, algorithm)
        ranking = OpenRanking(recommender, task, how)
        ranking.rank(task.users)
        ranking.warn()
        ranked = ranking.to_ranked_edges(task.catalogue)
    return ranked if ties == "index" else ranked.with_ties(ties, seed=seed)


def check_options(
    ties: Ties, seed: int, keep_items: bool | int, batch_size: int | None, progress: bool
) -> None:
    """Raises if an option is wrong that :func:`rank` and an evaluator share."""
    check_ties(ties, seed)
    check_boolean(progress, "progress")
    if batch_size is not None:
        check_positive_integer(batch_size, "batch_size")
    if not isinstance(keep_items, bool):
        check_positive_integer(keep_items, "keep_items")


class HowToRank(NamedTuple):
    """The options of :func:`rank` that do not depend on the data, which are checked before.

    `needs_degree` says whether a metric looks at every user down to its own number of relevant
    items: only then are lists that end before it warned about.
    """

    k: int | None
    full: bool
    keep_items: bool | int
    batch_size: int | None
    progress: bool
    algorithm: Algorithm = "auto"
    needs_degree: bool = True


class OpenRanking:
    """Ranking in progress: the ranks of truth edges and the lists of users found so far.

    A recommender is prepared once, to rank one batch of users after the other. This is done in
    :func:`evaluation_mode`. Edges without a rank are left as not retrieved, and empty entries of
    lists as `-1`.
    """

    def __init__(self, recommender: RecommenderLike, task: RankingTask, how: HowToRank) -> None:
        check_double_precision(task.device, "task")
        adapt = ask_model if how.algorithm == "recommend" else as_recommender
        self.task, self._how, self._is_candidate = task, how, task.is_candidate
        self._present = present = task._without_missing(self._is_candidate)
        self.recommender = ranker = adapt(recommender, present)
        # A list may be longer than there are items, as it may name others, too.
        deepest = max(task.num_items, ranker.max_depth or 0)
        wanted = deepest if how.full else how.k or task._extremes.max_degree
        num_kept = min(wanted if how.keep_items is True else int(how.keep_items), deepest)
        self.depth = max(wanted, num_kept)
        self._ranks = Ranks.unknown(present._by_user.user)
        self._lists = task.users.new_full((task.num_users, num_kept), -1) if num_kept else None
        self._request = Request(ranker, present, min(self.depth, deepest), how.full, num_kept)
        self._passes = list(find_passes(how.algorithm, self._request))

    def rank(self, users: Tensor) -> None:
        """Ranks users of the task, in each pass by one algorithm after the other."""
        task = self._present
        for makes_lists, algorithms in self._passes:
            pending = users if makes_lists else task._with_truth(users)
            with _bar(pending.numel(), self._how.progress) as bar:
                for algorithm in algorithms:
                    if (left := self._find_out(algorithm, pending, bar)) is None:
                        break
                    pending = left
        # All users of a chunk are ranked to the depth of the deepest. Ranks beyond a user's own
        # depth are discarded, since they would depend on the size of the chunks.
        depth = task.degree.clamp(min=self._request.depth)
        self._ranks.forget_beyond(depth.index_select(0, task._by_user.user))
        if self._mask is not None:
            self._ranks.leave_out(self._mask.is_masked)

    def _find_out(
        self, algorithm: RankingAlgorithm, users: Tensor, bar: tqdm[Any]
    ) -> Tensor | None:
        """Ranks users chunk by chunk, and returns those that the algorithm left; `None` if none."""
        task, size = self._present, self._how.batch_size
        num_rows = algorithm.num_rows if size is None else lambda depth: size
        unsettled: list[tuple[Tensor, Tensor]] = []
        for chunk in Schedule.of(task, users, algorithm.depth, num_rows).chunks(num_rows):
            found = algorithm.rank(chunk)
            self._ranks.update(chunk.truth.index, found.ranks)
            if self._lists is not None and found.lists is not None:
                lists = found.lists[:, : self._lists.size(1)]
                self._lists[chunk.users, : lists.size(1)] = lists
            if found.is_unsettled is not None:
                unsettled.append((chunk.users, found.is_unsettled))
            bar.update(chunk.users.numel())
        # Looked at once, after the last chunk, so that no chunk has to wait for the device.
        self.recommender.check()
        if not unsettled:
            return None
        ranked, is_unsettled = map(torch.cat, zip(*unsettled, strict=True))
        left = ranked[is_unsettled].sort().values  # as the deepest are ranked first
        bar.update(-left.numel())
        return left if left.numel() else None

    @property
    def _mask(self) -> ScoreMask | None:
        """What scores keep out of the rankings; `None` if they keep nothing out."""
        mask = self.recommender.mask
        return mask if mask is not None and mask.num_masked is not None else None

    def to_ranked_edges(self, catalogue: Catalogue) -> RankedEdges:
        """Returns the ranked edges, without what the recommender keeps out of the rankings.

        Args:
            catalogue (Catalogue): What is known about the items.
        """
        task, ranker, mask, ranks = self.task, self.recommender, self._mask, self._ranks
        num_candidates, most = task.num_candidates, task._extremes.max_candidates
        if mask is not None:
            num_candidates, most = mask.num_candidates, int(mask.num_candidates.max())
        if self._is_candidate is not None:  # what is no candidate is never retrieved
            ranks = Ranks.unknown(task.truth[1])
            ranks.update(self._is_candidate.nonzero().squeeze(1), self._ranks)
            ranks.leave_out(~self._is_candidate)
        return sort_edges(
            task.truth,
            **(ranks._asdict() if ranker.has_scores else {"rank": ranks.rank}),
            grouped=task._by_user,
            weight=task.weight,
            is_candidate=self._is_candidate,
            users=task.users if task.users.numel() < task.num_users else None,
            num_candidates=num_candidates,
            depth=None if self.depth >= max(most, ranker.max_depth or 0) else self.depth,
            lists=None if self._lists is None else Lists.from_matrix(self._lists),
            catalogue=catalogue,
            user_ids=task.user_ids,
            item_ids=task.item_ids,
            origin=Provenance(
                ranker.in_words,
                num_masked=None if mask is None else mask.num_masked,
                listed=ranker.listed,
                person=task.person,
            ),
        )

    def warn(self) -> None:
        """Warns of what is odd about what has been ranked."""
        task, how, listed = self.task, self._how, self.recommender.listed
        self.recommender.warn()
        ask_about_order(self.recommender, task)
        if listed is None:
            return
        lack = describe_lack(
            listed,
            task.degree,
            task.num_candidates,
            None if how.full else how.k or 1,
            how.needs_degree,
            task.user_ids,
        )
        if lack is not None:
            warn(
                f"'recommender' gives too few items: {lack}. Missing items count as not retrieved, "
                f"so metrics at a large cut-off, and the R-precision, may be too low: leave seen "
                f"items out before you cut lists"
            )


#: A bar that is not shown. To make one takes longer than to rank a few users.
_NO_BAR = tqdm(disable=True)


def _bar(num_users: int, is_shown: bool) -> tqdm[Any]:
    """Returns a progress bar."""
    if not is_shown or num_users == 0:
        return _NO_BAR
    return tqdm(total=num_users, desc="Ranking", unit=" users")
