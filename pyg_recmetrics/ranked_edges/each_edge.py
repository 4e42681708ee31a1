"""Every edge as a row of its own: where it stands without the other truth of its user."""

import torch
from torch import Tensor
from torch_geometric.utils import lexsort

from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED, Ranks, find_runs


def without_other_truth(user: Tensor, ranks: Ranks, position: Tensor) -> Ranks:
    """Returns where edges stand if the other relevant items of their user are no candidates.

    Args:
        user (torch.Tensor): The user of every edge, of shape `[num_edges]`.
        ranks (Ranks): Where they stand among all candidates.
        position (torch.Tensor): The 1-based position of every edge among those of its user, by
            rank.
    """
    is_retrieved = ranks.rank < NOT_RETRIEVED
    is_scored = ranks.num_above < NOT_RETRIEVED
    order = lexsort([ranks.num_above, user])
    first_of_user, _ = find_runs(user[order])
    first_of_run, num_equal = find_runs(user[order], ranks.num_above[order])
    num_above, num_tied = (torch.empty_like(order) for _ in range(2))
    num_above[order] = first_of_run - first_of_user
    num_tied[order] = num_equal - 1
    return Ranks(
        torch.where(is_retrieved, ranks.rank - position + 1, ranks.rank),
        torch.where(is_scored, ranks.num_above - num_above, ranks.num_above),
        torch.where(is_scored, ranks.num_tied - num_tied, ranks.num_tied),
    )


def without_others(num: Tensor, user: Tensor, is_counted: Tensor) -> Tensor:
    """Returns a number of items of each user, less those that are other truth: `[num_edges]`.

    Args:
        num (torch.Tensor): How many items of each user there are, of shape `[num_users]`.
        user (torch.Tensor): The user of every edge, of shape `[num_edges]`.
        is_counted (torch.Tensor): Whether each edge is among these items, of shape `[num_edges]`.
    """
    num_relevant = torch.bincount(user[is_counted], minlength=num.numel())
    return (num - num_relevant)[user] + is_counted.long()


def depth_of_each_edge(depth: int, max_degree: int, is_given: bool) -> int:
    """Returns how deep ranks are known if up to `max_degree - 1` others may come first.

    Args:
        depth (int): How deep they are known among all candidates.
        max_degree (int): The largest number of relevant items of a user.
        is_given (bool): Whether given lists end there. Rankings go down to the number of relevant
            items of each user.

    Raises:
        ValueError: If given lists are so short that no rank is left.
    """
    left = depth - max_degree + 1
    if left < 1 and is_given:
        raise ValueError(
            f"'each_edge' needs lists of at least {max_degree} items, as many as the relevant "
            f"items of a user (got {depth})"
        )
    return max(left, 1)
