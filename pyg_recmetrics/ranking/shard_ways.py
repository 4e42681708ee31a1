"""The ways to find out what one shard of the items says of users: those that rank all items, too.

A way looks at some users, and ranks relevant items of known score among the items of the shard. It
does not matter to it in which shard these items lie. The ranks among all items are sums.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.kernels.exact.ranks import Ranks, Scored, ranks_among_others
from pyg_recmetrics.kernels.exact.sorting import score_of
from pyg_recmetrics.kernels.fast.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.fast.fast_products import FastProducts
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.fast.searching import rows_to_search
from pyg_recmetrics.kernels.fast.shard_searching import ShardSearch, reaches
from pyg_recmetrics.ranking.embeddings import EmbeddingRecommender
from pyg_recmetrics.ranking.schedule import Chunk, ChunkEdges, rows_in_memory
from pyg_recmetrics.task.edges import contains

#: How many candidates are scored at once, where each user has candidates of its own.
NUM_CANDIDATES = 2**22


class Wanted(NamedTuple):
    """What is to be found out.

    Attributes:
        num_shards (int): How many shards there are.
        list_width (int): How many items of each list are kept.
    """

    num_shards: int
    list_width: int


class FoundInShard(NamedTuple):
    """What a shard says of the users of a chunk.

    Attributes:
        ranks: The ranks of relevant items among those of the shard.
        items: The items that may be in a list, if lists are wanted.
        is_unsettled: For which users the rest is not valid, of shape `[num_rows]`; `None` for none.
    """

    ranks: Ranks
    items: Scored
    is_unsettled: Tensor | None = None


class Look(ABC):
    """A look at some users, in two steps."""

    @abstractmethod
    def reaches(self) -> Tensor:
        """Returns the scores that the best items have: `[2, num_rows]`.

        :mod:`~pyg_recmetrics.kernels.fast.shard_searching` says which. They may be lower.
        """

    @abstractmethod
    def find(self, relevant: Scored, reach: Tensor) -> FoundInShard:
        """Ranks relevant items, and finds the items that reach a score.

        Args:
            relevant (Scored): The items to rank, sorted by row, with numbers of this shard.
            reach (torch.Tensor): The score of each user below which nothing matters.
        """


class ShardWay(ABC):
    """One way to look at a shard.

    Args:
        recommender (EmbeddingRecommender): The users, and the items of the shard.
        wanted (Wanted): What is to be found out.
    """

    def __init__(self, recommender: EmbeddingRecommender, wanted: Wanted) -> None:
        self.recommender, self.wanted = recommender, wanted

    @abstractmethod
    def num_rows(self, chunk: Chunk) -> int:
        """Returns how many users of a chunk to look at at once."""

    @abstractmethod
    def look(self, chunk: Chunk) -> Look:
        """Looks at users, given what they have seen of the shard, and their candidates in it."""


class SearchInShard(ShardWay):
    """Searches products of rounded embeddings.

    Args:
        recommender (EmbeddingRecommender): See :class:`ShardWay`.
        wanted (Wanted): See :class:`ShardWay`.
        candidates (torch.Tensor or None): The items that may be recommended, if not all may be.
        dtype (torch.dtype): The precision of the products.
    """

    def __init__(
        self,
        recommender: EmbeddingRecommender,
        wanted: Wanted,
        candidates: Tensor | None,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(recommender, wanted)
        self.candidates, self.dtype = candidates, dtype

    def num_rows(self, chunk: Chunk) -> int:
        return rows_to_search(chunk.max_depth, self.recommender.device)

    def look(self, chunk: Chunk) -> Look:
        scores = FastProducts(self.recommender.users(chunk.users), self._items)
        makes_lists = self.wanted.list_width > 0
        masked, scratch = chunk.seen.pairs, chunk.scratch
        return _SearchingLook(
            ShardSearch(scores, chunk.depth, self.wanted.num_shards, masked, makes_lists, scratch)
        )

    @cached_property
    def _items(self) -> RoundedItems:
        return RoundedItems(self.recommender.items, self.candidates, self.dtype)


class _SearchingLook(Look):
    def __init__(self, search: ShardSearch) -> None:
        self.search = search

    def reaches(self) -> Tensor:
        return self.search.reaches()

    def find(self, relevant: Scored, reach: Tensor) -> FoundInShard:
        return FoundInShard(*self.search.find(relevant, reach), self.search.is_unsettled)


class _CountingLook(Look):
    """A look that needs no reach."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk

    def reaches(self) -> Tensor:
        shape = 2, self.chunk.depth.numel()
        return torch.full(shape, -torch.inf, device=self.chunk.depth.device)


class CountInShard(ShardWay):
    """Counts by products and a bound on their error. It makes no lists.

    The arguments are those of :class:`SearchInShard`, without the precision.
    """

    def __init__(
        self,
        recommender: EmbeddingRecommender,
        wanted: Wanted,
        candidates: Tensor | None,
    ) -> None:
        super().__init__(recommender, wanted)
        self.candidates = candidates

    def num_rows(self, chunk: Chunk) -> int:
        return self.kernel.num_rows(chunk.max_depth)

    def look(self, chunk: Chunk) -> Look:
        return _BoundedLook(chunk, self)

    @cached_property
    def kernel(self) -> BoundedCount:
        """What counts."""
        return BoundedCount(RoundedItems(self.recommender.items, self.candidates, torch.float32))


class _BoundedLook(_CountingLook):
    def __init__(self, chunk: Chunk, way: CountInShard) -> None:
        super().__init__(chunk)
        self.way = way

    def find(self, relevant: Scored, reach: Tensor) -> FoundInShard:
        chunk, user = self.chunk, self.way.recommender.users(self.chunk.users)
        pairs, score = (relevant.row, relevant.item), relevant.score
        ranks, is_unsettled = self.way.kernel.ranks(
            user, chunk.depth, pairs, score, chunk.seen.pairs, chunk.scratch
        )
        return FoundInShard(ranks, nothing(score), is_unsettled)


class ExactInShard(ShardWay):
    """Counts exact scores of all items, and sorts them where lists are wanted."""

    def num_rows(self, chunk: Chunk) -> int:
        recommender = self.recommender
        num_items = min(recommender.items_at_once, chunk.num_items)
        bytes_per_pair = recommender.bytes_per_pair
        return rows_in_memory(num_items, bytes_per_pair, chunk.max_depth, recommender.device)

    def look(self, chunk: Chunk) -> Look:
        return _ExactLook(chunk, self)


class _ExactLook(_CountingLook):
    def __init__(self, chunk: Chunk, way: ExactInShard) -> None:
        super().__init__(chunk)
        self.way = way

    def find(self, relevant: Scored, reach: Tensor) -> FoundInShard:
        recommender, chunk = self.way.recommender, self.chunk.with_truth(*relevant[:2])
        ranks = recommender.count(chunk, recommender.users(chunk.users), relevant.score)
        # What lies in another shard does not tie with itself here.
        is_elsewhere = (relevant.item < 0) | (relevant.item >= chunk.num_items)
        ranks = ranks._replace(num_tied=ranks.num_tied + is_elsewhere.long())
        return FoundInShard(ranks, self._best() if self.way.wanted.list_width else nothing(reach))

    def _best(self) -> Scored:
        no_row = self.chunk.users[:0]
        width = min(self.way.wanted.list_width, self.chunk.num_items)
        best = self.way.recommender.best(self.chunk.with_truth(no_row, no_row), width)
        row, place = (best.item >= 0).nonzero(as_tuple=True)
        return Scored(row, best.item[row, place], score_of(best.key[row, place]))


class CandidatesInShard(ShardWay):
    """Scores the candidates alone, where each user has candidates of its own."""

    def num_rows(self, chunk: Chunk) -> int:
        num_pairs = max(1, _own_candidates(chunk).row.numel())
        return max(1, chunk.users.numel() * NUM_CANDIDATES // num_pairs)

    def look(self, chunk: Chunk) -> Look:
        return _CandidatesLook(chunk, self)


class _CandidatesLook(Look):
    def __init__(self, chunk: Chunk, way: CandidatesInShard) -> None:
        pairs = torch.stack(_own_candidates(chunk).pairs)
        is_seen = contains(torch.stack(chunk.seen.pairs), pairs, chunk.num_items)
        row, item = pairs[:, ~is_seen]
        recommender = way.recommender
        score = recommender.items.exact_scores(recommender.users(chunk.users), row, item)
        self.items = Scored(row, item, score)
        self.depth, self.wanted = chunk.depth, way.wanted

    def reaches(self) -> Tensor:
        return reaches(self.items, self.depth, self.wanted.num_shards)

    def find(self, relevant: Scored, reach: Tensor) -> FoundInShard:
        return FoundInShard(ranks_among_others(relevant, self.items), self.items)


def _own_candidates(chunk: Chunk) -> ChunkEdges:
    """Returns the candidates that the users have for themselves."""
    return chunk.seen.of_items(0, 0) if chunk.candidates is None else chunk.candidates


class NothingInShard(ShardWay):
    """Looks at a shard in which there is no item."""

    def num_rows(self, chunk: Chunk) -> int:
        return chunk.users.numel()

    def look(self, chunk: Chunk) -> Look:
        return _LookAtNothing(chunk)


class _LookAtNothing(_CountingLook):
    def find(self, relevant: Scored, reach: Tensor) -> FoundInShard:
        none = torch.zeros_like(relevant.item)
        return FoundInShard(Ranks(none + 1, none, none), nothing(relevant.score))


def nothing(score: Tensor) -> Scored:
    """Returns no items, on the device of some score."""
    no_row = torch.empty(0, dtype=torch.long, device=score.device)
    return Scored(no_row, no_row, torch.empty(0, dtype=torch.float32, device=score.device))
