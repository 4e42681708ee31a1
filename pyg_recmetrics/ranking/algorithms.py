"""The ways to rank, as objects with one interface: which ones apply, and in which order."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import at_once, has_exact_single_precision, has_fast_bfloat16
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.fast.bounded_counting import bounded_ranks, rows_to_count
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.fast.searching import (
    FastProducts,
    FastScores,
    GivenScores,
    Search,
    rows_to_search,
)
from pyg_recmetrics.kernels.fast.stored_scores import (
    best_by_scores,
    largest,
    lists_among,
    ranks_among,
    ranks_by_counting,
    settle_,
)
from pyg_recmetrics.ranking.recommenders import (
    EmbeddingRecommender,
    GivenScoresRecommender,
    MatrixRecommender,
    PairRecommender,
    PairScorer,
    Recommender,
)
from pyg_recmetrics.ranking.schedule import BYTES_PER_POSITION, Chunk
from pyg_recmetrics.task import RankingTask

#: How to find ranks: from all exact scores; by counting or searching in faster scores with a bound
#: on their error; from what a model recommends by itself; or by the fastest way that applies.
Algorithm: TypeAlias = Literal["auto", "dense", "count", "search", "recommend"]

#: Products of some rows with all items, and how far those of each row can be off.
Products: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]

#: How many bytes a chunk of users may take on a CPU.
SCRATCH_BYTES = 256 * 2**20

#: How many bytes the largest scores of the users of a chunk may take on a CPU.
_BYTES_OF_LARGEST = 32 * 2**20

#: How many scores are stored at once.
_NUM_STORED = 2**22

#: So many scores in all are products in double precision, which are close to no other.
_NUM_IN_DOUBLE = 2**18

#: All scores are stored for at most so many items if lists are made, and for three times as many if
#: not. For more, a search takes less time: for lists of 3,706 items, 0.85 to 0.93 of it.
_MAX_ITEMS_STORED = 2**11

#: To sort more of the stored products of each user takes longer than to count.
_MAX_SORTED = 2**10

#: How many bytes a user and an item take in the boolean adjacency of a chunk.
_BYTES_OF_ADJACENCY = 1

# The three numbers below were measured on one thread of a CPU with AVX2, with embeddings of 64
# dimensions: of 1,892 users and 4,489 items, and the last two also of 1,000 users and 41,000 items.

#: The candidates of each user are scored alone if they are at most one in so many items. At one in
#: 16, this takes 0.7 (a matrix) to 1.3 (embeddings) of the time that all scores take; at one in 32,
#: 0.4 to 0.7; and at one in 8, 1.7 to 2.9.
_MIN_ITEMS_PER_CANDIDATE = 16

#: Users are ranked by a search down to one position in so many items. To find lists down to one in
#: 32, this takes 0.5 (the smaller data) to 1.0 (the larger) of the time that sorting takes; down to
#: one in 16, twice as long.
_MIN_ITEMS_PER_POSITION = 32

#: Where scores can also be counted, a search needs so many times more items for each position.
#: Counting takes the same time at any depth, and as long as a search down to one in 64 items.
_GAIN_OF_COUNTING = 2

#: On a device other than a CPU, all items are sorted for lists that are longer than one in so many.
_ITEMS_PER_LISTED = 4

#: Where the algorithms apply that are not exact by themselves.
_WHERE_THEY_APPLY = (
    "'search' finds the first k items of embeddings, or of scores of all items; 'count' finds all "
    "ranks of embeddings, makes no lists, and needs full single precision; both need candidates "
    "that all users share"
)


@dataclass(frozen=True, eq=False)
class Request:
    """Question to an algorithm: a recommender, a task and a depth.

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


class Findings(NamedTuple):
    """Ranks and lists that an algorithm found for a chunk of users.

    Attributes:
        ranks: The ranks of truth edges, of shape `[num_found]`.
        is_unsettled: Which users it could not settle, of shape `[num_rows]`, whose ranks are not
            valid; `None` if it settled all of them.
        lists: The recommended items, of shape `[num_rows, ?]`; `None` if it makes no lists.
    """

    ranks: Ranks
    is_unsettled: Tensor | None = None
    lists: Tensor | None = None


class RankingAlgorithm(ABC):
    """One way to rank the users of a chunk.

    Args:
        request (Request): What is to be found out.
        dtype (torch.dtype, optional): What scores are rounded to, if they are.
            (default: `torch.float32`)

    Attributes:
        depth (int): The depth to which every user is ranked, or the user's own number of relevant
            items if that is larger. The size of chunks depends on it.
    """

    recommender: Any

    def __init__(self, request: Request, dtype: torch.dtype = torch.float32) -> None:
        self.recommender, self.task, self.dtype = request.recommender, request.task, dtype
        self.depth, self.list_width = request.depth, request.list_width
        self.num_items = request.task.num_items

    @cached_property
    def rounded_items(self) -> RoundedItems:
        """The embeddings of all items, rounded."""
        return RoundedItems(self.recommender.items, self.task.candidates, self.dtype)

    @abstractmethod
    def num_rows(self, depth: int) -> int:
        """Returns how many users a chunk has, if the deepest of them is ranked down to `depth`."""

    @abstractmethod
    def rank(self, chunk: Chunk) -> Findings:
        """Ranks the users of a chunk."""


class RankExactly(RankingAlgorithm):
    """Ranks by what a recommender says of all items."""

    recommender: Recommender

    def num_rows(self, depth: int) -> int:
        items_at_once = min(self.recommender.items_at_once or self.num_items, self.num_items)
        bytes_per_item = self.recommender.bytes_per_pair + _BYTES_OF_ADJACENCY
        bytes_per_row = items_at_once * bytes_per_item + depth * BYTES_PER_POSITION
        return max(1, at_once(SCRATCH_BYTES, self.task.device) // bytes_per_row)

    def rank(self, chunk: Chunk) -> Findings:
        # Scores count what is above a relevant item, however deep, and are sorted for lists alone.
        k = self.list_width if self.recommender.has_scores else chunk.max_depth
        ranks, lists = self.recommender.rank(chunk, k)
        return Findings(ranks, lists=lists)


class RankByLargest(RankingAlgorithm):
    """Stores all scores, and looks at the largest of each user: for few items.

    It leaves users unsettled who have close scores, or equal ones.
    """

    def num_rows(self, depth: int) -> int:
        of_largest = _BYTES_OF_LARGEST // (depth * BYTES_PER_POSITION)
        return max(1, min(of_largest, _NUM_STORED // self.num_items))

    def find(
        self,
        chunk: Chunk,
        scores: Tensor,
        error: Tensor | None = None,
        products: Products | None = None,
    ) -> Findings:
        """Looks at scores, which it overwrites; :func:`settle_` asks for products."""
        layout, k = chunk.layout, min(chunk.max_depth + 1, self.num_items)
        found = largest(chunk.hide_(scores), layout, k, self.list_width > 0)
        ranks, is_open = ranks_among(found, layout, chunk.depth_of_truth, error)
        if products is not None:
            settle_(ranks, is_open, layout, chunk.seen.pairs, products)
        lists = is_unsettled = None
        if found.item is not None:
            lists, is_unsettled = lists_among(found.value, found.item, self.list_width, error)
        if bool(is_open.any()):
            if is_unsettled is None:
                is_unsettled = torch.zeros_like(chunk.depth, dtype=torch.bool)
            is_unsettled.index_fill_(0, layout.row[is_open], True)
        return Findings(ranks, is_unsettled, lists)


class LargestProducts(RankByLargest):
    """Stores products of embeddings, and looks again at the few that are close."""

    recommender: EmbeddingRecommender

    def rank(self, chunk: Chunk) -> Findings:
        user = self.recommender.users(chunk.users)
        scores, (factor, errors) = self.recommender.products(user, self.dtype, chunk.scratch)
        error = factor.mul_(errors.amax())

        def in_double(rows: Tensor) -> tuple[Tensor, Tensor]:
            item = self.recommender.items.double(slice(None))
            scores = torch.mm(user.index_select(0, rows), item.t())
            # Numbers in double precision have 29 bits more.
            of_rows = error.index_select(0, rows).mul_(2.0**-29)
            return chunk.hide_shared_(scores, -torch.inf), of_rows

        return self.find(chunk, scores, error, in_double if self.dtype == torch.float32 else None)


class LargestGivenScores(RankByLargest):
    """Stores a copy of given scores."""

    recommender: MatrixRecommender

    def rank(self, chunk: Chunk) -> Findings:
        scores = self.recommender.copied(chunk)
        low, high = scores.aminmax(dim=1)
        # Other ways count what is `-inf`, and what is wrong.
        is_unsettled = high.sub_(low).isfinite().logical_not_()
        found = self.find(chunk, scores)
        if found.is_unsettled is not None:
            is_unsettled |= found.is_unsettled
        return found._replace(is_unsettled=is_unsettled)


class CountStored(RankingAlgorithm):
    """Stores all products of a chunk, counts around relevant items, and looks at the best.

    It takes few steps, each of which a card does fast.
    """

    recommender: EmbeddingRecommender

    def num_rows(self, depth: int) -> int:
        bytes_per_row = self.num_items * self.dtype.itemsize
        bytes_per_row += self.list_width * BYTES_PER_POSITION
        return max(1, at_once(SCRATCH_BYTES, self.task.device) // bytes_per_row)

    def rank(self, chunk: Chunk) -> Findings:
        user = self.recommender.users(chunk.users)
        scores, (factor, errors) = self.recommender.products(user, self.dtype, chunk.scratch)
        error = factor.to(self.dtype), errors
        chunk.hide_(scores)
        exactly = partial(self.recommender.items.exact_scores, user)
        ranks, is_open = ranks_by_counting(
            scores, chunk.truth.pairs, chunk.depth_of_truth, error, exactly, chunk.scratch
        )
        if self.list_width > 0:
            lists, is_unsettled = best_by_scores(scores, self.list_width, error, exactly)
        elif is_open is None:
            return Findings(ranks)
        else:
            lists, is_unsettled = None, torch.zeros_like(chunk.depth, dtype=torch.bool)
        if is_open is not None:
            is_unsettled[chunk.truth.row[is_open]] = True
        return Findings(ranks, is_unsettled, lists)


class RankBySearch(RankingAlgorithm):
    """Searches for the items that may matter, and compares these alone."""

    recommender: EmbeddingRecommender | GivenScoresRecommender

    def num_rows(self, depth: int) -> int:
        bytes_per_row = max(1, self.num_items * self.recommender.bytes_per_score)
        max_rows = SCRATCH_BYTES // bytes_per_row
        return max(1, min(rows_to_search(depth), max_rows))

    def find(self, chunk: Chunk, scores: FastScores) -> Findings:
        """Searches the scores of the users of a chunk."""
        makes_lists = self.list_width > 0
        found = Search(
            scores, chunk.depth, chunk.truth.pairs, chunk.seen.pairs, makes_lists, chunk.scratch
        ).run()
        return Findings(found.ranks, found.is_unsettled, found.lists)


class SearchProducts(RankBySearch):
    """Searches products of embeddings that are rounded to some precision."""

    recommender: EmbeddingRecommender

    def rank(self, chunk: Chunk) -> Findings:
        user = self.recommender.users(chunk.users)
        return self.find(chunk, FastProducts(user, self.rounded_items))


class SearchGivenScores(RankBySearch):
    """Searches scores that are given."""

    recommender: GivenScoresRecommender

    def rank(self, chunk: Chunk) -> Findings:
        scores = GivenScores(*self.recommender.given(chunk.users), self.task.candidates)
        findings = self.find(chunk, scores)
        self.recommender.learn_from(scores, chunk)
        return findings


class CountByBound(RankingAlgorithm):
    """Counts what ranks above relevant items, however deep, in products of embeddings."""

    recommender: EmbeddingRecommender

    def num_rows(self, depth: int) -> int:
        return rows_to_count(depth)

    def rank(self, chunk: Chunk) -> Findings:
        user, relevant = self.recommender.users(chunk.users), chunk.truth.pairs
        score = self.recommender.items.exact_scores(user, *relevant)
        found = bounded_ranks(
            user,
            self.rounded_items,
            chunk.depth,
            relevant,
            score,
            chunk.seen.pairs,
            chunk.scratch,
        )
        return Findings(*found)


def find_passes(
    wanted: Algorithm, request: Request
) -> Iterator[tuple[bool, list[RankingAlgorithm]]]:
    """Yields the passes over the users in which ranks and lists are found.

    Counting makes no lists: where every rank of embeddings is wanted beside lists, another pass
    finds these first.

    Args:
        wanted (str): The algorithm that is asked for, or `"auto"`.
        request (Request): What is to be found out.

    Yields:
        Whether the pass makes lists, and its algorithms, see :func:`find_algorithms`.
    """
    makes_lists = request.list_width > 0
    if makes_lists and request.is_full and isinstance(request.recommender, EmbeddingRecommender):
        of_lists = replace(request, depth=request.list_width, is_full=False)
        yield True, find_algorithms("auto" if wanted == "auto" else "dense", of_lists)
        request, makes_lists = replace(request, list_width=0), False
    yield makes_lists, find_algorithms(wanted, request)


def find_algorithms(wanted: Algorithm, request: Request) -> list[RankingAlgorithm]:
    """Returns the algorithms that rank what is requested.

    Each of them ranks the users that the one before could not settle. The last settles all users.

    Args:
        wanted (str): The algorithm that is asked for, or `"auto"`.
        request (Request): What is to be found out.

    Raises:
        ValueError: If it does not apply.
    """
    faster: list[RankingAlgorithm] = []
    if wanted == "auto" and _has_candidates_of_each_user(request.task):
        request = _by_pairs(request)
    elif wanted == "auto":
        faster = _fastest(request)
    elif wanted == "search" and _can_search(request):
        faster = _by_search(request, in_bfloat16=True)
    elif wanted == "count" and _can_count(request):
        faster = _by_count(request)
    elif wanted in ("search", "count"):
        raise ValueError(
            f"'algorithm' needs to be 'auto' or 'dense' here (got {wanted!r}): {_WHERE_THEY_APPLY}"
        )
    if isinstance(request.recommender, PairRecommender):
        # Lists are as long as they are wanted; ranks are known however deep they are.
        request = replace(request, depth=request.list_width or 1)
    return [*faster, RankExactly(request)]


def _by_pairs(request: Request) -> Request:
    """Returns a request to look at nothing but the candidates of each user, if these are few."""
    recommender, task = request.recommender, request.task
    if not isinstance(recommender, EmbeddingRecommender | MatrixRecommender):
        return request
    num_pairs = int(task.num_candidates.sum())
    if _MIN_ITEMS_PER_CANDIDATE * num_pairs > task.num_users * task.num_items:
        return request
    scorer = PairScorer(recommender.scores_of_pairs)
    return replace(request, recommender=PairRecommender(scorer, task, recommender.mask))


def _fastest(request: Request) -> list[RankingAlgorithm]:
    """Returns the algorithms that are faster than the exact one, if all users share candidates."""
    if _is_card(request.task.device):
        few_listed = _ITEMS_PER_LISTED * request.list_width <= request.task.num_items
        return _on_card(request) if few_listed else []
    if stored := _stored(request):
        return stored
    if _is_shallow(request) and _can_search(request):
        return _by_search(request, has_fast_bfloat16())
    return _by_count(request) if _can_count(request) else []


def _stored(request: Request) -> list[RankingAlgorithm]:
    """Returns the ways to rank by stored scores, and what finds ties of given ones, if few items.

    A function may take long, and would be asked again for users that are left unsettled.
    """
    recommender, task = request.recommender, request.task
    most = _MAX_ITEMS_STORED if request.list_width else 3 * _MAX_ITEMS_STORED
    if task.num_items > most:
        return []
    if request.depth > _MAX_SORTED and _can_count(request):
        return []
    if isinstance(recommender, MatrixRecommender):
        is_shallow = request.depth <= task.num_items // _MIN_ITEMS_PER_POSITION
        return [LargestGivenScores(request), *([SearchGivenScores(request)] if is_shallow else [])]
    if not isinstance(recommender, EmbeddingRecommender):
        return []
    if recommender.items_at_once != task.num_items:  # the table passes through in parts
        return []
    in_double = LargestProducts(request, torch.double)
    if not _is_in_single(task, _NUM_IN_DOUBLE):
        return [in_double]
    return [LargestProducts(request), in_double]


def _by_search(request: Request, in_bfloat16: bool) -> list[RankingAlgorithm]:
    """Returns the searches, the fastest first."""
    if _is_card(request.task.device):
        return _on_card(request)
    if isinstance(request.recommender, GivenScoresRecommender):
        return [SearchGivenScores(request)]
    dtypes = [torch.bfloat16] if in_bfloat16 else []
    if has_exact_single_precision(request.task.device):
        dtypes.append(torch.float32)
    return [SearchProducts(request, dtype) for dtype in dtypes]


def _by_count(request: Request) -> list[RankingAlgorithm]:
    """Returns how all ranks of embeddings are counted."""
    if _is_card(request.task.device):
        return _on_card(request)
    # The cost of a user depends on its number of truth edges, not on their ranks.
    return [CountByBound(replace(request, depth=1))]


def _on_card(request: Request) -> list[RankingAlgorithm]:
    """Returns counts of stored products, which take a card few launches."""
    if not isinstance(request.recommender, EmbeddingRecommender):
        return []
    in_single = _is_in_single(request.task, _NUM_STORED)
    return [CountStored(request, torch.float32 if in_single else torch.double)]


def _is_shallow(request: Request) -> bool:
    """Returns whether there are so few positions that nothing is faster than a search."""
    deepest = request.task.num_items // _MIN_ITEMS_PER_POSITION
    # There have to be more blocks of items than positions. To count takes less time than to search
    # for deep ranks of few relevant items.
    deepest_wanted = deepest // _GAIN_OF_COUNTING if _can_count(request) else deepest
    degree = request.task.degree
    mean_degree = int(degree.sum() / (degree > 0).sum().clamp(min=1))
    return request.depth <= deepest_wanted and mean_degree <= deepest


def _can_search(request: Request) -> bool:
    """Returns whether a search applies."""
    has_scores = isinstance(request.recommender, EmbeddingRecommender | GivenScoresRecommender)
    is_shared = not _has_candidates_of_each_user(request.task)
    return has_scores and is_shared and request.depth < request.task.num_items


def _can_count(request: Request) -> bool:
    """Returns whether all ranks can be counted."""
    has_embeddings = isinstance(request.recommender, EmbeddingRecommender)
    if not has_embeddings or request.list_width or _has_candidates_of_each_user(request.task):
        return False
    return has_exact_single_precision(request.task.device)


def _is_in_single(task: RankingTask, num_in_double: int) -> bool:
    """Returns whether products that are stored are in single precision: many, if that is exact."""
    is_large = task.num_users * task.num_items > num_in_double
    return is_large and has_exact_single_precision(task.device)


def _is_card(device: torch.device) -> bool:
    """Returns whether a device takes long to be asked and to answer, but not to compute."""
    return device.type != "cpu"


def _has_candidates_of_each_user(task: RankingTask) -> bool:
    return task.candidates is not None and task.candidates.dim() == 2
