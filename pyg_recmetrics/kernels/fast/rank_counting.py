"""All ranks, from counts of the fast scores that are surely above those of relevant items."""

from abc import ABC, abstractmethod
from typing import TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.scratch import Scratch

#: The rows and the items of some edges, sorted by row.
UserItems: TypeAlias = tuple[Tensor, Tensor]


class RankCount(ABC):
    """Finds all ranks, however deep, from fast scores.

    Args:
        items (RoundedItems): The items, in the precision of the scores.
    """

    def __init__(self, items: RoundedItems) -> None:
        self.items = items

    @abstractmethod
    def num_rows(self, depth: int) -> int:
        """Returns how many users are ranked at once, if they are ranked down to `depth`."""

    @abstractmethod
    def ranks(
        self,
        user: Tensor,
        depth: Tensor,
        relevant: UserItems,
        score: Tensor,
        seen: UserItems,
        scratch: Scratch,
    ) -> tuple[Ranks, Tensor]:
        """Ranks the relevant items of some users.

        Args:
            user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`.
            depth (torch.Tensor): How deep each of them is ranked, of shape `[num_rows]`.
            relevant (tuple): The rows and the items to rank, of shape `[num_relevant]` each, sorted
                by row. What is not among the items of the count has a number outside of theirs.
            score (torch.Tensor): The exact scores of these, of shape `[num_relevant]`.
            seen (tuple): The rows and the items that must not be retrieved.
            scratch (Scratch): The buffers to compute in.

        Returns:
            The ranks of the relevant items, and which users could not be settled, of shape
            `[num_rows]`. The ranks of these users are not valid.
        """

    def _ranks_among(
        self,
        close: tuple[Tensor, Tensor, Tensor],
        user: Tensor,
        item: Tensor,
        score: Tensor,
        num_above: Tensor,
    ) -> Ranks:
        """Ranks items of known score, by comparing them with the exact scores of close ones.

        Args:
            close (tuple): What is not proved to rank above or below: the number of an item to
                rank, the row of its user, and the other item.
            user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`.
            item (torch.Tensor): The items to rank, of shape `[num_ranked]`.
            score (torch.Tensor): Their exact scores, of shape `[num_ranked]`.
            num_above (torch.Tensor): How many items are proved to score higher than each.
        """
        ranked, row, other = close
        is_other = (other != item[ranked]).nonzero().squeeze(1)
        ranked, row, other = (values[is_other] for values in close)
        others_score, own = self.items.factors.exact_scores(user, row, other), score[ranked]
        is_tied = others_score == own
        is_before = is_tied & (other < item[ranked])
        above, tied, before = (
            torch.bincount(ranked[flags], minlength=item.numel())
            for flags in (others_score > own, is_tied, is_before)
        )
        num_above = num_above + above
        return Ranks(1 + num_above + before, num_above, tied)
