r"""A search in one shard of the items, while other processes search the other shards.

What ranks high in a shard need not do so among all items. Let the best :math:`d` of all items be
wanted, which lie in :math:`P` shards. Each shard says of each user

- which exact score at least :math:`d` of its items have: as many of all items have the largest of
  these;
- which one at least :math:`\lceil d / P \rceil` of its items have: as all shards have as many with
  the smallest of these, at least :math:`d` of all items do.

The larger of both is the *reach* of the user, which :mod:`~pyg_recmetrics.kernels.fast.searching`
explains. It is nearly as high as that of all items together if these are dealt to shards at random.
If a shard holds nothing but cold items, the first one is left.
"""

import torch
from torch import Tensor

from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.ranks import Ranks, Scored, ranks_among_others, ranks_within_rows
from pyg_recmetrics.kernels.fast.fast_scores import FastScores
from pyg_recmetrics.kernels.fast.searching import Search, rounded_up_to_join
from pyg_recmetrics.kernels.scratch import Scratch


def depth_of_shard(depth: Tensor, num_shards: int) -> Tensor:
    """Returns how many of the first `depth` items lie in a shard at least, on average."""
    return (depth + num_shards - 1) // num_shards


def reaches(scored: Scored, depth: Tensor, num_shards: int) -> Tensor:
    """Returns the two scores that the best items of a shard have: `[2, num_rows]`.

    Args:
        scored (Scored): The best items of each user, `depth` of them if the shard has as many.
        depth (torch.Tensor): How deep each user is ranked, of shape `[num_rows]`.
        num_shards (int): The number of shards.
    """
    rank = ranks_within_rows(scored.row, scored.score).rank
    found = torch.full((2, depth.numel()), -torch.inf, device=depth.device)
    for of_kind, wanted in zip(found, (depth, depth_of_shard(depth, num_shards)), strict=True):
        at = (rank == wanted[scored.row]).nonzero().squeeze(1)
        of_kind[scored.row[at]] = scored.score[at]
    return found


class ShardSearch(Search):
    """Searches a shard for the items that may matter to the users of a chunk.

    Args:
        scores (FastScores): The fast scores of the users and the items of the shard.
        depth (torch.Tensor): How deep each user is ranked among all items, of shape `[num_rows]`.
        num_shards (int): The number of shards.
        masked (tuple): The rows and the items of the shard that must not be retrieved.
        makes_lists (bool): Whether the best items are wanted, and not only ranks.
        scratch (Scratch): The buffers to compute in.
    """

    def __init__(
        self,
        scores: FastScores,
        depth: Tensor,
        num_shards: int,
        masked: tuple[Tensor, Tensor],
        makes_lists: bool,
        scratch: Scratch,
    ) -> None:
        nothing = depth[:0], depth[:0]
        super().__init__(scores, depth, nothing, masked, makes_lists, scratch)
        self._depth_of_shard = depth_of_shard(depth, num_shards)
        # At least as many items of this shard as its part of the depth have this exact score.
        self._reach_of_part = self.reach.clone()

    def reaches(self) -> Tensor:
        """Looks at the first columns, and returns both scores that items have: `[2, num_rows]`."""
        self._sieve()
        return torch.stack([self.reach, self._reach_of_part])

    def find(self, relevant: Scored, reach: Tensor) -> tuple[Ranks, Scored]:
        """Finds what may matter, and ranks relevant items of all shards among it.

        What it says of rows that are unsettled is not valid.

        Args:
            relevant (Scored): The items to rank, sorted by row, with numbers of this shard, which
                those of other shards lie outside of.
            reach (torch.Tensor): The reach of each user, of shape `[num_rows]`.

        Returns:
            The ranks among the items of the shard, and all items within reach if lists are wanted.
        """
        self.reach = self.reach.maximum(reach)
        # Relevant items are searched for like all others, as they may lie in another shard.
        nowhere = torch.full_like(relevant.row, -1)
        self.relevant = Entries(relevant.row, nowhere, self.depth.numel())
        self.relevant_scores = self.relevant.side_by_side(relevant.score, torch.nan)
        rows, items = self._find(is_sieved=True)
        threshold = self._threshold(rows) - self.scores.error_of_items[rows]
        score = self.scores.of_items(rows, items)
        left = (score >= threshold[items.row]).nonzero().squeeze(1)
        row, item = rows[items.row[left]], items.column[left]
        found = Scored(row, item, self.scores.exactly(row, item))
        ranks = ranks_among_others(relevant, found)
        # More items of this shard are above what it knows to be out of reach than it looked for.
        is_beyond = relevant.score < self.reach[relevant.row]
        least = self.depth[relevant.row].masked_fill(~is_beyond, 0)
        rank, num_above = ranks.rank.maximum(least + 1), ranks.num_above.maximum(least)
        return Ranks(rank, num_above, ranks.num_tied), found

    def _width_of_sieve(self, num_needed: int) -> int:
        # What a look at more columns takes, all other shards save.
        num_columns = self.scores.item.numel()
        width = max(super()._width_of_sieve(num_needed), min(num_needed, num_columns))
        return rounded_up_to_join(width)

    def _learn(self, rows: Tensor, top: Tensor, lowest_in_order: float) -> None:
        super()._learn(rows, top, lowest_in_order)
        reach = self._reached(rows, top, self._depth_of_shard[rows], lowest_in_order)
        self._reach_of_part[rows] = reach.maximum(self._reach_of_part[rows])
