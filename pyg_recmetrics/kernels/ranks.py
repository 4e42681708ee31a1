"""Where items stand among all others: their ranks, and how many others tie with them."""

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.kernels.lists import NOT_RETRIEVED


class Ranks(NamedTuple):
    """Where some items stand among all candidates of their user, of shape `[num_ranked]` each.

    Attributes:
        rank: The 1-based rank. Of equal scores, the lower item id ranks first.
        num_above: How many candidates score higher.
        num_tied: How many other candidates have the same score.
    """

    rank: Tensor
    num_above: Tensor
    num_tied: Tensor

    @classmethod
    def unknown(cls, item: Tensor) -> "Ranks":
        """Returns what is known of items that are out of reach: nothing ties with them."""
        beyond = torch.full_like(item, NOT_RETRIEVED)
        return cls(beyond, beyond.clone(), torch.zeros_like(item))

    def update(self, index: Tensor, ranks: "Ranks") -> None:
        """Overwrites, in place, what is known of some items."""
        for known, new in zip(self, ranks, strict=True):
            known[index] = new

    def forget_beyond(self, depth: Tensor) -> None:
        """Forgets, in place, what lies below the depth of an item, of shape `[num_ranked]`."""
        is_out_of_reach = self.num_above >= depth
        self.num_above.masked_fill_(is_out_of_reach, NOT_RETRIEVED)
        self.num_tied.masked_fill_(is_out_of_reach, 0)
        self.rank.masked_fill_(self.rank > depth, NOT_RETRIEVED)


def ranks_in_top_scores(
    rank: Tensor, row: Tensor, own: Tensor, scores: Tensor
) -> tuple[Ranks, Tensor]:
    """Finds the ties of items among the best scores of each row.

    An item behind the end of a list may tie with the last item in it.

    Args:
        rank (torch.Tensor): The rank of every item in its list, of shape `[num_ranked]`; larger
            than `K` if the item is not in it.
        row (torch.Tensor): Their rows, of shape `[num_ranked]`.
        own (torch.Tensor): Their scores, of shape `[num_ranked]`.
        scores (torch.Tensor): The best scores of each row, of shape `[num_rows, K]`, in descending
            order.

    Returns:
        The ranks, and which items tie with the end of the list, of shape `[num_ranked]`. If the
        list is not complete, then more items may tie with these.
    """
    last = scores.size(1) - 1
    position = torch.arange(last + 1, device=scores.device)
    is_new = torch.ones_like(scores, dtype=torch.bool)
    is_new[:, 1:] = scores[:, 1:] != scores[:, :-1]
    first_of_run = torch.where(is_new, position, 0).cummax(dim=1).values
    is_last = is_new.roll(-1, dims=1)
    is_last[:, -1] = True
    last_of_run = torch.where(is_last, position, last).flip(1).cummin(dim=1).values.flip(1)
    place = row, (rank - 1).clamp(max=last)
    is_in_run = scores[place] == own
    num_above = torch.where(is_in_run, first_of_run[place], NOT_RETRIEVED)
    num_tied = torch.where(is_in_run, last_of_run[place] - first_of_run[place], 0)
    return Ranks(rank, num_above, num_tied), is_in_run & (last_of_run[place] == last)
