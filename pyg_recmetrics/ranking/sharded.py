"""Ranking by embeddings whose items lie in several processes, one shard in each.

All processes with a shard rank the same users at the same time, each among its own items, in the
ways that all items are ranked in (:mod:`~pyg_recmetrics.ranking.shard_ways`). For each chunk, they
tell each other

1. the scores of relevant items, which the owner of the item knows;
2. how high the best items of their shards score, unless all ranks are wanted: relevant items below
   what follows from it (:mod:`~pyg_recmetrics.kernels.fast.shard_searching`) are out of reach;
3. how many items of their shards rank above the others: the sums tell the ranks;
4. if lists are wanted, the best items of their shards, which are put in order.

Scores are exact, once all shards share the scale of the largest number. So ranks and lists are
those of a single process. All processes take part in the same exchanges: what these are depends on
the task and on what was exchanged, but neither on the size of a shard nor on memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics import processes
from pyg_recmetrics.kernels.devices import has_exact_single_precision, has_fast_bfloat16
from pyg_recmetrics.kernels.exact.ranks import Ranks, Scored, ranks_within_rows
from pyg_recmetrics.kernels.exact.sorting import key_of, score_of
from pyg_recmetrics.kernels.fast.shard_searching import reaches
from pyg_recmetrics.ranking.base import Recommender
from pyg_recmetrics.ranking.combining import UserShares
from pyg_recmetrics.ranking.embeddings import EmbeddingRecommender
from pyg_recmetrics.ranking.kinds import dtypes_of_products
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.ranking.shard_ways import (
    CandidatesInShard,
    CountInShard,
    ExactInShard,
    Look,
    NothingInShard,
    SearchInShard,
    ShardWay,
    Wanted,
    nothing,
)
from pyg_recmetrics.ranking.shards import Layout, Shards, agree_on
from pyg_recmetrics.task import RankingTask

#: How many users all processes rank at once, and how many positions of all of them. The exchanges
#: of a chunk then take little of its time.
MAX_ROWS, NUM_POSITIONS = 2**13, 2**20


def rows_of_shards(depth: int) -> int:
    """Returns how many users a chunk has, which is the same in all processes."""
    return max(1, min(MAX_ROWS, NUM_POSITIONS // depth))


class ShardedRecommender(Recommender):
    """Scores by the inner product of embeddings, of whose items each process holds some.

    Args:
        shards (Shards): What this process holds.
        task (RankingTask): The task.
    """

    has_scores, is_divided = True, True
    bytes_per_pair = EmbeddingRecommender.bytes_per_pair

    #: The users, and the items of this process. All processes have to join for it.
    local: EmbeddingRecommender
    layout: Layout

    def __init__(self, shards: Shards, task: RankingTask) -> None:
        self.shards, self.task = shards, task
        self.in_words = EmbeddingRecommender.words(has_bias=shards.bias is not None)

    def join(self) -> None:
        self.layout = agree_on(self.shards, self.task)
        self.parts = self.layout.parts
        tables = self.shards.user, self.shards.item, self.shards.bias
        self.local = EmbeddingRecommender(*tables, self.task.device, self.layout.largest)

    def answer(self, users: Tensor) -> object:
        return None  # what processes hold differs; they compare it when they join

    def user_shares(self, users: Tensor, task: RankingTask) -> UserShares:
        axis = self.shards.users
        if self.shards.has_all_users:
            return UserShares(task, axis, [users[first :: axis.size] for first in range(axis.size)])
        starts = torch.tensor(self.layout.first_users[1:], device=users.device)
        share = torch.bucketize(users, starts, right=True)
        return UserShares(task, axis, [users[share == index] for index in range(axis.size)])

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        return ShardRanking(self, k, is_counted=False, is_shallow=False).find(chunk)[1]


class ShardRanking:
    """Finds ranks and lists, chunk by chunk. All processes with a shard do so together.

    Args:
        recommender (ShardedRecommender): What to rank.
        list_width (int): How many items of each list to keep.
        is_counted (bool): Whether ranks are counted, however deep, and not searched.
        is_shallow (bool): Whether a search is faster than to sort all items.
    """

    def __init__(
        self, recommender: ShardedRecommender, list_width: int, is_counted: bool, is_shallow: bool
    ) -> None:
        self.recommender, self.list_width = recommender, list_width
        self.is_counted, self.is_shallow = is_counted, is_shallow
        self.axis = recommender.shards.items
        # Counts and ids are sent in as few bytes as they need.
        self.dtype = torch.int32 if recommender.task.num_items < 2**31 else torch.int64

    def find(self, chunk: Chunk) -> tuple[Ranks, Tensor]:
        """Returns the ranks of the truth edges of a chunk, and lists of its users."""
        look = _LookAtChunk(self, chunk)
        truth, num_rows, device = chunk.truth, chunk.users.numel(), chunk.users.device
        like = torch.empty(truth.row.numel(), dtype=torch.float32, device=device)
        own = self.axis.largest(look.own_scores, like)
        reach = torch.full((num_rows,), -torch.inf, device=device)
        if not self.is_counted:
            reach = self._reach(look.reaches, reach)
        is_open = (own >= reach[truth.row]).nonzero().squeeze(1)
        relevant = Scored(truth.row, truth.item, own).of(is_open)
        counts = torch.empty((3, is_open.numel()), dtype=self.dtype, device=device)
        counts = self.axis.total(lambda: look.counts(relevant, reach).to(self.dtype), counts).long()
        ranks = Ranks.unknown(truth.item)
        ranks.update(is_open, Ranks(counts[0] + 1, counts[1], counts[2]))
        return ranks, self._lists(look, reach)

    @cached_property
    def ways(self) -> list[ShardWay]:
        """The ways to look at the shard of this process, each for what the one before left."""
        local, task = self.recommender.local, self.recommender.task
        first, num_items = self.recommender.layout.first_item, local.items.num_items
        wanted = Wanted(self.axis.size, self.list_width)
        candidates = task.candidates
        if candidates is not None and candidates.dim() == 2:
            return [CandidatesInShard(local, wanted)]
        if candidates is not None:
            candidates = candidates - first
            candidates = candidates[(candidates >= 0) & (candidates < num_items)]
        if (num_items if candidates is None else candidates.numel()) == 0:
            return [NothingInShard(local, wanted)]
        exactly = ExactInShard(local, wanted)
        if self.is_counted:
            if not has_exact_single_precision(task.device):
                return [exactly]
            return [CountInShard(local, wanted, candidates), exactly]
        if not self.is_shallow:
            return [exactly]
        in_bfloat16 = has_fast_bfloat16(task.device)
        dtypes = dtypes_of_products(task.device, in_bfloat16)
        return [*(SearchInShard(local, wanted, candidates, dtype) for dtype in dtypes), exactly]

    def _reach(self, compute: Callable[[], Tensor], like: Tensor) -> Tensor:
        """Returns the score that the best items of all shards have at least: `[num_rows]`."""

        def sent() -> Tensor:
            high, low = compute()
            return torch.stack([high, -low])

        # The smallest is the negative of the largest negative.
        high, low = self.axis.largest(sent, torch.stack([like, like])).unbind()
        return torch.maximum(high, -low)

    def _lists(self, look: "_LookAtChunk", reach: Tensor) -> Tensor:
        """Returns the best items of each user, of shape `[num_rows, list_width]`."""
        lists = torch.full((reach.numel(), self.list_width), -1, device=reach.device)
        if self.list_width == 0:
            return lists
        reach = self._reach(look.reaches_of_lists, reach)
        like = torch.empty((0, 3), dtype=self.dtype, device=reach.device)
        told = self.axis.gathered(lambda: look.listed(reach).to(self.dtype), like)
        row, item, key = told[told[:, 1].argsort()].t()
        row, item = row.long(), item.long()
        place = ranks_within_rows(row, score_of(key)).rank - 1
        kept = (place < self.list_width).nonzero().squeeze(1)
        lists[row[kept], place[kept]] = item[kept]
        return lists


class _LookAtChunk:
    """What this process finds out about the users of a chunk in its shard.

    Args:
        ranking (ShardRanking): The ranking.
        chunk (Chunk): The chunk.
    """

    def __init__(self, ranking: ShardRanking, chunk: Chunk) -> None:
        self.ranking, self.list_width = ranking, ranking.list_width
        self.num_shards, self.given = ranking.axis.size, chunk
        self.recommender, self.layout = ranking.recommender.local, ranking.recommender.layout
        self._items: Scored | None = None

    def own_scores(self) -> Tensor:
        """Returns the exact scores of relevant items of this shard, and `-inf` for all others."""
        processes.look_around()  # here, so that all of those with a shard stop at the same chunk
        row, item = self.given.truth.row, self.given.truth.item - self.layout.first_item
        own = torch.full(row.shape, -torch.inf, device=row.device)
        here = ((item >= 0) & (item < self.recommender.items.num_items)).nonzero().squeeze(1)
        user = self.recommender.users(self._chunk.users)
        own[here] = self.recommender.items.exact_scores(user, row[here], item[here])
        return own

    def reaches(self) -> Tensor:
        """Returns the scores that the best items have, of shape `[2, num_rows]`."""
        return _rounded_down(torch.cat([each.look.reaches() for each in self._looks], dim=1))

    def counts(self, relevant: Scored, reach: Tensor) -> Tensor:
        """Returns what ranks in front of items, above them, and beside: `[3, num_relevant]`.

        Args:
            relevant (Scored): The items, of all shards.
            reach (torch.Tensor): The score of each user below which nothing matters.
        """
        relevant = relevant._replace(item=relevant.item - self.layout.first_item)
        ranks, self._items = _find(self._looks, self.ranking.ways[1:], relevant, reach)
        return torch.stack([ranks.rank - 1, ranks.num_above, ranks.num_tied])

    def reaches_of_lists(self) -> Tensor:
        """Returns the scores that the best items of lists have, of shape `[2, num_rows]`."""
        depth = torch.full_like(self.given.depth, self.list_width)
        return reaches(self._listed, depth, self.num_shards)

    def listed(self, reach: Tensor) -> Tensor:
        """Returns the rows, items and keys of what may be in a list, of shape `[num_items, 3]`."""
        best = self._listed
        row, item, score = best.of((best.score >= reach[best.row]).nonzero().squeeze(1))
        return torch.stack([row, item + self.layout.first_item, key_of(score).long()], dim=1)

    @cached_property
    def _chunk(self) -> Chunk:
        """The chunk, with the items of this shard."""
        chunk = self.given.of_items(self.layout.first_item, self.recommender.items.num_items)
        return replace(chunk, users=chunk.users - self.layout.first_user)

    @cached_property
    def _looks(self) -> list["_LookAtRows"]:
        return list(_looks(self.ranking.ways[0], self._chunk))

    @cached_property
    def _listed(self) -> Scored:
        """The best items of each user, as many as a list has."""
        items = nothing(self.given.depth) if self._items is None else self._items
        items = items.of(items.item.argsort())
        rank = ranks_within_rows(items.row, items.score).rank
        return items.of((rank <= self.list_width).nonzero().squeeze(1))


class _LookAtRows(NamedTuple):
    """A look at some users of a chunk.

    Attributes:
        rows: Their rows.
        chunk: The chunk that they form by themselves.
        look: The look.
    """

    rows: Tensor
    chunk: Chunk
    look: Look


def _looks(way: ShardWay, chunk: Chunk) -> Iterator[_LookAtRows]:
    """Yields one look after the other, each at as many users as a way looks at at once."""
    every = torch.arange(chunk.users.numel(), device=chunk.users.device)
    for rows in every.split(way.num_rows(chunk)):
        part = chunk if rows.numel() == every.numel() else chunk.of_rows(rows)
        yield _LookAtRows(rows, part, way.look(part))


def _find(
    looks: Iterable[_LookAtRows], others: Sequence[ShardWay], relevant: Scored, reach: Tensor
) -> tuple[Ranks, Scored]:
    """Finds ranks in a shard, and the items that may be in lists, of all users.

    Args:
        looks (iterable): The looks at them.
        others (sequence): How to look at those whom these cannot settle.
        relevant (Scored): What is ranked.
        reach (torch.Tensor): The score of each user below which nothing matters.
    """
    ranks, items = Ranks.unknown(relevant.item), [nothing(relevant.score)]
    for rows, chunk, look in looks:
        index, wanted = relevant.of_rows(rows)
        found = look.find(wanted, reach[rows])
        ranks.update(index, found.ranks)
        listed = found.items
        if found.is_unsettled is not None and bool(found.is_unsettled.any()):
            listed = listed.of((~found.is_unsettled[listed.row]).nonzero().squeeze(1))
            left = found.is_unsettled.nonzero().squeeze(1)
            again, wanted = wanted.of_rows(left)
            looks_again = _looks(others[0], chunk.of_rows(left))
            settled, more = _find(looks_again, others[1:], wanted, reach[rows[left]])
            ranks.update(index[again], settled)
            items.append(more._replace(row=rows[left[more.row]]))
        items.append(listed._replace(row=rows[listed.row]))
    return ranks, Scored(*map(torch.cat, zip(*items, strict=True)))


def _rounded_down(scores: Tensor) -> Tensor:
    """Rounds numbers to single precision, none of them up."""
    rounded = scores.float()
    lower = rounded.nextafter(rounded.new_tensor(-torch.inf))
    return torch.where(rounded.double() > scores, lower, rounded)
