"""Splits that divide the edges of each user: a subclass orders them, and the last are held out."""

from abc import abstractmethod

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType
from torch_geometric.utils import index_to_mask

from pyg_recmetrics.checks import check_natural_number
from pyg_recmetrics.transforms.amounts import Amount, check_amounts, count_held_out
from pyg_recmetrics.transforms.cut import Assignment, UserItemSplit, assign_pairs
from pyg_recmetrics.transforms.interactions import Interactions
from pyg_recmetrics.transforms.users import EvaluationUsers


class WithinUserSplit(UserItemSplit):
    """Holds out the last items of each user, in an order that a subclass gives them."""

    def __init__(
        self,
        num_val: Amount,
        num_test: Amount,
        users: EvaluationUsers | None,
        seed: int,
        edge_type: EdgeType | None,
        rev_edge_type: EdgeType | None,
        num_users: int | None,
        time_attr: str | None = None,
    ) -> None:
        super().__init__(edge_type, rev_edge_type, num_users, time_attr)
        self.num_val, self.num_test = check_amounts(num_val, num_test)
        if users is not None and not isinstance(users, EvaluationUsers):
            raise TypeError(
                f"'users' needs to be 'SeparatedUsers(...)', 'JoinedUsers(...)' or None for all "
                f"users (got {users!r})"
            )
        self.users = users
        self.seed = check_natural_number(seed, "seed")

    @abstractmethod
    def order(
        self, data: Data | HeteroData, interactions: Interactions, generator: torch.Generator
    ) -> Tensor:
        """Orders all pairs by user, and the pairs of each user as they are held out.

        Returns:
            All pairs in their order, of shape `[num_pairs]`.
        """

    def assign(
        self, data: Data | HeteroData, interactions: Interactions
    ) -> tuple[Data | HeteroData, Assignment]:
        """Draws the users to evaluate, if not all are evaluated, and divides their edges."""
        generator = torch.Generator().manual_seed(self.seed)
        num_val, num_test = count_held_out(interactions.degree, self.num_val, self.num_test)
        if self.users is None:
            order = self.order(data, interactions, generator)
            return data, hold_out_last(interactions, order, num_val, num_test)
        users = self.users.draw(interactions, num_val, num_test, generator)
        is_drawn = index_to_mask(users, interactions.num_users)
        order = self.order(data, interactions, generator)
        assignment = hold_out_last(interactions, order, num_val * is_drawn, num_test * is_drawn)
        return self.users.arrange(data, interactions, assignment, users)


def shuffle_within_users(interactions: Interactions, generator: torch.Generator) -> Tensor:
    """Orders all pairs by user, and at random within users: `[num_pairs]`."""
    user = interactions.pairs.user
    # The pairs are sorted, so what is drawn for a pair does not depend on the order of the edges.
    # As one number, user and draw are faster to sort than one after the other.
    draw = torch.randint(2**31, user.shape, generator=generator, device="cpu").to(user.device)
    order: Tensor = ((user << 31) | draw).sort(stable=True).indices
    return order


def hold_out_last(
    interactions: Interactions, order: Tensor, num_val: Tensor, num_test: Tensor
) -> Assignment:
    """Gives the last pairs of each user to the test, and those before to validation.

    Args:
        interactions (Interactions): The user-item edges.
        order (torch.Tensor): All pairs, by user, of shape `[num_pairs]`.
        num_val (torch.Tensor): How many pairs of each user validate, of shape `[num_users]`.
        num_test (torch.Tensor): How many pairs of each user test, of shape `[num_users]`.
    """
    user = interactions.pairs.user
    end = interactions.degree.cumsum(0)[user]
    from_end = end - torch.arange(user.numel(), device=user.device)  # 1 for the last one
    stage = torch.empty(user.shape, dtype=torch.uint8, device=user.device)
    is_test = from_end <= num_test[user]
    is_held_out = from_end <= (num_val + num_test)[user]
    stage[order] = is_test.byte() + is_held_out.byte()  # TRAIN, VAL and TEST are 0, 1 and 2
    return assign_pairs(interactions, stage)
