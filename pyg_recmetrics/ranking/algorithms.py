"""The ways to rank, as objects with one interface: which ones apply, and in which order."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_choice
from pyg_recmetrics.kernels.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.bounded_searching import BoundedSearch, has_fast_bfloat16
from pyg_recmetrics.kernels.bounds import BoundedRanking, has_exact_single_precision
from pyg_recmetrics.kernels.lists import ranks_in_lists
from pyg_recmetrics.kernels.ranks import Ranks, ranks_in_top_scores
from pyg_recmetrics.ranking.embeddings import EmbeddingRecommender
from pyg_recmetrics.ranking.pairs import PairRecommender
from pyg_recmetrics.ranking.recommender import Recommender, ScoreRecommender
from pyg_recmetrics.ranking.schedule import Chunk, rows_in_memory
from pyg_recmetrics.task import RankingTask

#: How to find ranks: from all exact scores; by counting or searching in faster scores with a bound
#: on their error; from what a model recommends by itself; or by the fastest way that applies.
Algorithm: TypeAlias = Literal["auto", "dense", "count", "search", "recommend"]


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be found out about a recommender.

    Attributes:
        recommender (Recommender): What to rank.
        task (RankingTask): Who is ranked, over what, and what is relevant.
        depth (int): How deep ranks are wanted.
        is_full (bool): Whether every rank is wanted, however deep.
        list_width (int): How many items of each list to keep.
    """

    recommender: Recommender
    task: RankingTask
    depth: int
    is_full: bool
    list_width: int

    @property
    def is_counted(self) -> bool:
        """Whether the exact algorithm counts instead of sorting. Lists then take a second pass."""
        return self.is_full and isinstance(self.recommender, ScoreRecommender)


class Findings(NamedTuple):
    """What an algorithm found out about a chunk.

    Attributes:
        rank: The rank of every truth edge, of shape `[num_edges]`, or the ranks with what is known
            about ties; `None` if it ranks no edges.
        is_unsettled: Which users it could not settle, of shape `[num_rows]`, whose ranks are not
            valid; `None` if it settled all of them.
        lists: The recommended items, of shape `[num_rows, ?]`; `None` if it makes no lists.
    """

    rank: Tensor | Ranks | None = None
    is_unsettled: Tensor | None = None
    lists: Tensor | None = None


class RankingAlgorithm(ABC):
    """One way to rank the users of a chunk.

    Attributes:
        depth (int): The depth to which every user is ranked, or the user's own number of relevant
            items if that is larger. The size of chunks depends on it.
    """

    depth: int

    @abstractmethod
    def num_rows(self, depth: int) -> int:
        """Returns how many users a chunk has, if the deepest of them is ranked down to `depth`."""

    @abstractmethod
    def rank(self, chunk: Chunk) -> Findings:
        """Ranks the users of a chunk."""

    def check(self) -> None:  # noqa: B027 (there may be nothing to check)
        """Raises if the recommender returned invalid scores or ids."""


class _ExactAlgorithm(RankingAlgorithm):
    """Ranks by what a recommender says of all items."""

    def __init__(self, recommender: Recommender, num_items: int, depth: int) -> None:
        self.recommender = recommender
        self.num_items = num_items
        self.depth = depth

    def num_rows(self, depth: int) -> int:
        items_at_once = min(self.recommender.items_at_once or self.num_items, self.num_items)
        return rows_in_memory(items_at_once, self.recommender.bytes_per_pair, depth)

    def check(self) -> None:
        self.recommender.check()


class RankByLists(_ExactAlgorithm):
    """Looks up relevant items in lists of the best items. Takes any recommender."""

    def rank(self, chunk: Chunk) -> Findings:
        lists = self.recommender.top_k(chunk, chunk.max_depth)
        truth = chunk.truth
        rank = ranks_in_lists(lists, truth.row, truth.item, self.num_items)
        return Findings(rank=rank, lists=lists)


class RankByBestItems(_ExactAlgorithm):
    """Looks up relevant items among the best items, with their ties. Takes one with scores.

    It looks one item deeper than asked. Users are left unsettled if a relevant item ties with that
    item, since more items may tie with it.
    """

    recommender: ScoreRecommender

    def rank(self, chunk: Chunk) -> Findings:
        num_best = min(chunk.max_depth + 1, self.num_items)
        best = self.recommender.best(chunk, num_best)
        row = chunk.truth.row
        rank = ranks_in_lists(best.item, row, chunk.truth.item, self.num_items)
        ranks, is_at_end = ranks_in_top_scores(rank, row, best.truth_key, best.key)
        is_open = is_at_end & (ranks.num_above < chunk.depth[row])
        is_open &= num_best < self.num_items
        is_unsettled = torch.zeros_like(chunk.users).scatter_reduce_(0, row, is_open.long(), "amax")
        return Findings(ranks, is_unsettled.bool(), best.item)


class RankByPairs(_ExactAlgorithm):
    """Ranks and lists by the scores of the candidates alone, each of which is asked for once."""

    recommender: PairRecommender

    def rank(self, chunk: Chunk) -> Findings:
        ranks, lists = self.recommender.find(chunk, min(chunk.max_depth, self.num_items))
        return Findings(ranks, lists=lists)


class ListItems(_ExactAlgorithm):
    """Makes lists of the best items, and ranks no edges. Takes any recommender."""

    def rank(self, chunk: Chunk) -> Findings:
        return Findings(lists=self.recommender.top_k(chunk, min(self.depth, self.num_items)))


class RankByCounts(_ExactAlgorithm):
    """Counts what scores above a relevant item, however deep. Takes a recommender with scores."""

    recommender: ScoreRecommender

    def rank(self, chunk: Chunk) -> Findings:
        return Findings(rank=self.recommender.ranks(chunk))


class RankByBound(RankingAlgorithm):
    """Proves ranks from fast scores of embeddings and a bound on their error, on a CPU.

    Args:
        kernel (BoundedRanking): What proves the ranks.
        depth (int): How deep it looks at each user.
    """

    def __init__(self, kernel: BoundedRanking, depth: int) -> None:
        self.kernel = kernel
        self.depth = depth

    @classmethod
    @abstractmethod
    def of(cls, recommender: EmbeddingRecommender, depth: int) -> "RankByBound":
        """Returns the algorithm for a recommender."""

    @classmethod
    def applies(cls, request: Request) -> bool:
        """Returns whether this algorithm can rank embeddings as deep as requested."""
        return True

    @classmethod
    @abstractmethod
    def is_fast(cls, request: Request) -> bool:
        """Returns whether this algorithm is fast on this machine."""

    def num_rows(self, depth: int) -> int:
        return self.kernel.num_rows(depth)

    def rank(self, chunk: Chunk) -> Findings:
        relevant = (chunk.truth.row, chunk.truth.item)
        seen = (chunk.seen.row, chunk.seen.item)
        return Findings(*self.kernel.ranks(chunk.users, chunk.depth, relevant, seen, chunk.scratch))


class SearchByBound(RankByBound):
    """Proves ranks down to a depth from scores in half precision."""

    @classmethod
    def of(cls, recommender: EmbeddingRecommender, depth: int) -> "SearchByBound":
        return cls(BoundedSearch(recommender.user, recommender.item), depth)

    @classmethod
    def applies(cls, request: Request) -> bool:
        return request.depth < request.task.num_items

    @classmethod
    def is_fast(cls, request: Request) -> bool:
        # Deep rankings have too many items above the bound, and small ones too few to gain.
        return 8 * request.depth <= request.task.num_items and has_fast_bfloat16()


class CountByBound(RankByBound):
    """Proves ranks, however deep, from scores in single precision."""

    @classmethod
    def of(cls, recommender: EmbeddingRecommender, depth: int) -> "CountByBound":
        # The cost of a user depends on its number of truth edges, not on their ranks.
        return cls(BoundedCount(recommender.user, recommender.item), depth=1)

    @classmethod
    def is_fast(cls, request: Request) -> bool:
        return has_exact_single_precision()


#: The algorithms that prove ranks by a bound, the fastest first.
_BOUNDED: dict[str, type[RankByBound]] = {"search": SearchByBound, "count": CountByBound}


def find_algorithms(wanted: Algorithm, request: Request) -> list[RankingAlgorithm]:
    """Returns the algorithms that rank what is requested.

    Each of them ranks the users whom the one before could not settle. The last settles all users.

    Args:
        wanted (str): The algorithm that is asked for, or `"auto"`.
        request (Request): What is to be found out.

    Raises:
        ValueError: If there is no such algorithm, or it does not apply.
    """
    check_choice(wanted, "algorithm", get_args(Algorithm))
    embeddings = _provable_embeddings(request)
    if wanted in _BOUNDED and (embeddings is None or not _BOUNDED[wanted].applies(request)):
        raise ValueError(
            f"'algorithm' can be 'search' or 'count' for embeddings on a CPU, without 'candidates' "
            f"and 'keep_items', and 'search' only for a part of the ranking (got {wanted!r})"
        )
    chosen = _fastest(request) if wanted == "auto" else _BOUNDED.get(wanted)
    if chosen is None or embeddings is None:
        return _exact_algorithms(request)
    return [chosen.of(embeddings, request.depth), *_exact_algorithms(request)]


def _exact_algorithms(request: Request) -> list[RankingAlgorithm]:
    arguments = request.recommender, request.task.num_items, request.depth
    if isinstance(request.recommender, PairRecommender):
        # Lists are as long as they are wanted; ranks are known however deep they are.
        depth = request.list_width or 1
        return [RankByPairs(request.recommender, request.task.num_items, depth)]
    if not isinstance(request.recommender, ScoreRecommender):
        return [RankByLists(*arguments)]
    if request.is_counted:
        return [RankByCounts(*arguments)]
    return [RankByBestItems(*arguments), RankByCounts(*arguments)]


def _provable_embeddings(request: Request) -> EmbeddingRecommender | None:
    """Returns the embeddings whose ranks can be proved by a bound, or `None` if there are none."""
    recommender, task = request.recommender, request.task
    makes_lists = request.list_width > 0 and not request.is_counted
    if task.device.type != "cpu" or task.candidates is not None or makes_lists:
        return None
    return recommender if isinstance(recommender, EmbeddingRecommender) else None


def _fastest(request: Request) -> type[RankByBound] | None:
    """Returns the fastest algorithm that proves ranks by a bound, or `None` if none is fast."""
    fast = (
        bounded
        for bounded in _BOUNDED.values()
        if bounded.applies(request) and bounded.is_fast(request)
    )
    return next(fast, None)
