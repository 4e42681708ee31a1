"""The random order in which users are ranked, drawn before anything is ranked."""

import torch
from torch import Tensor


class UserOrder:
    """The users with ground truth in random order, and those without it beside them.

    The order depends on the seed and on who the users are, and on nothing else: neither on the
    device nor on the number of processes. Every prefix of it is a random sample.

    Args:
        users (torch.Tensor): The ids of the users, sorted, of shape `[num_users]`.
        has_truth (torch.Tensor): Which of them have ground truth, of shape `[num_users]`.
        seed (int): The seed of the order.

    Attributes:
        with_truth (torch.Tensor): The ids of those with ground truth, in their order.
        without_truth (torch.Tensor): The ids of the others, in an order of their own.

    Example:
        >>> import torch
        >>> from pyg_recmetrics.sequential import UserOrder
        >>> order = UserOrder(torch.arange(6), torch.tensor([1, 1, 0, 1, 0, 1]).bool(), seed=0)
        >>> order.with_truth, order.sample(2)
        (tensor([0, 1, 5, 3]), tensor([0, 1, 2]))
    """

    def __init__(self, users: Tensor, has_truth: Tensor, seed: int) -> None:
        generator = torch.Generator("cpu").manual_seed(seed)
        self.with_truth, self.without_truth = (
            _shuffled(part, generator) for part in (users[has_truth], users[~has_truth])
        )

    def sample(self, num_ranked: int) -> Tensor:
        """Returns the first users with ground truth, and as large a share of the others, sorted."""
        num_users = self.with_truth.numel()
        num_without = round(num_ranked / num_users * self.without_truth.numel())
        chosen = [self.with_truth[:num_ranked], self.without_truth[:num_without]]
        return torch.cat(chosen).sort().values


def _shuffled(users: Tensor, generator: torch.Generator) -> Tensor:
    order = torch.randperm(users.numel(), generator=generator, device="cpu")
    return users[order.to(users.device)]
