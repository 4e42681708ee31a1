"""Where items stand among all others: their ranks, and how many others tie with them."""

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.kernels.exact.runs import find_runs


class Ranks(NamedTuple):
    """Where some items stand among all candidates of their user, of shape `[num_ranked]` each.

    Attributes:
        rank: The 1-based rank. Of equal scores, the lower item id ranks first.
        num_above: How many candidates score higher.
        num_tied: How many other candidates have the same score; `-1` for an item that is no
            candidate.
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

    def leave_out(self, is_left_out: Tensor) -> None:
        """Notes, in place, that the items of a mask `[num_ranked]` are no candidates."""
        self.rank.masked_fill_(is_left_out, NOT_RETRIEVED)
        self.num_above.masked_fill_(is_left_out, NOT_RETRIEVED)
        self.num_tied.masked_fill_(is_left_out, -1)

    def forget_beyond(self, depth: Tensor) -> None:
        """Forgets, in place, what lies below the depth of an item, of shape `[num_ranked]`."""
        is_out_of_reach = self.num_above >= depth
        self.num_above.masked_fill_(is_out_of_reach, NOT_RETRIEVED)
        self.num_tied.masked_fill_(is_out_of_reach, 0)
        self.rank.masked_fill_(self.rank > depth, NOT_RETRIEVED)


def ranks_within_rows(row: Tensor, score: Tensor) -> Ranks:
    """Ranks scored entries within their row; equal scores in the order in which they are given.

    Args:
        row (torch.Tensor): The row of every entry, of shape `[num_entries]`.
        score (torch.Tensor): Their scores, of shape `[num_entries]`.
    """
    order = score.argsort(descending=True, stable=True)
    order = order[row[order].argsort(stable=True)]
    row, score = row[order], score[order]
    position = torch.arange(order.numel(), device=order.device)
    start_of_row, _ = find_runs(row)
    start_of_run, num_equal = find_runs(row, score)
    in_order = (1 + position - start_of_row, start_of_run - start_of_row, num_equal - 1)
    return Ranks(*(torch.empty_like(found).scatter_(0, order, found) for found in in_order))


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
