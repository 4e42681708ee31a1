"""The users that a split evaluates: a sample of them, separated from training or joined to it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.utils import index_to_mask

from pyg_recmetrics.checks import (
    check_boolean,
    check_fraction,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.transforms.cut import NO_STAGE, TRAIN, VAL, Assignment
from pyg_recmetrics.transforms.interactions import Graph, Interactions, users_first


@dataclass(frozen=True, kw_only=True)
class EvaluationUsers(ABC):
    """A sample of users to evaluate. A subclass arranges what training has of them."""

    fraction: float | None = 0.1
    max_users: int | None = 10_000
    min_items_pool: int = 2
    min_pos_test: int = 1
    consider_cold_start: bool = False

    def __post_init__(self) -> None:
        if self.fraction is not None:
            check_fraction(self.fraction, "fraction")
        if self.max_users is not None:
            check_positive_integer(self.max_users, "max_users")
        check_natural_number(self.min_items_pool, "min_items_pool")
        check_natural_number(self.min_pos_test, "min_pos_test")
        check_boolean(self.consider_cold_start, "consider_cold_start")

    @abstractmethod
    def arrange(
        self, data: Graph, interactions: Interactions, assignment: Assignment, users: Tensor
    ) -> tuple[Graph, Assignment]:
        """Decides which edges of the drawn users training may use.

        Args:
            data (Data or HeteroData): The graph.
            interactions (Interactions): Its user-item edges.
            assignment (Assignment): The stages of each edge, where only `users` have edges
                outside of training.
            users (torch.Tensor): The drawn users, sorted, of shape `[num_drawn]`.

        Returns:
            The graph, which may number its users in another way, and the assignment with the
            users to evaluate.
        """

    def draw(
        self,
        interactions: Interactions,
        num_val: Tensor,
        num_test: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Draws users who fulfil the conditions.

        Args:
            interactions (Interactions): The user-item edges.
            num_val (torch.Tensor): How many items each user would validate, of shape
                `[num_users]`.
            num_test (torch.Tensor): How many items each user would test, of shape `[num_users]`.
            generator (torch.Generator): Makes the draw reproducible.

        Returns:
            The drawn users, sorted, of shape `[num_drawn]`.
        """
        degree, num_items = interactions.degree, interactions.num_items
        is_eligible = (
            (degree > 0)
            & (num_test >= self.min_pos_test)
            & (num_items - (degree - num_test) >= self.min_items_pool)
            & (num_items - degree >= 2)
        )
        if not self.consider_cold_start:
            is_eligible &= num_val + num_test < degree
        order = torch.randperm(interactions.num_users, generator=generator, device="cpu")
        order = order.to(interactions.device)
        users = order[is_eligible[order]][: self._max_drawn(interactions.num_users)]
        if users.numel() == 0:
            raise ValueError(
                f"'data' needs to hold a user who can be evaluated (got {interactions.num_users} "
                f"users, none of whom fulfils the conditions of {self})"
            )
        return users.sort().values

    def _max_drawn(self, num_users: int) -> int:
        max_users = num_users if self.max_users is None else self.max_users
        if self.fraction is None:
            return max_users
        return min(max_users, max(1, round(num_users * self.fraction)))


class SeparatedUsers(EvaluationUsers):
    r"""Evaluates users that a model meets after training.

    A split draws some users for evaluation. Training has all edges of the other users and no edge
    of the drawn ones. The split divides the edges of the drawn users; those that are neither test
    nor validation truth are message-passing edges of validation and test. `eval_mask` of the user
    nodes marks the drawn users, and only these are evaluated.

    Users can be drawn if they fulfil all of these conditions:

    - They have at least `min_pos_test` test edges.
    - At least `min_items_pool` items are not among their message-passing edges in the test.
    - There are at least two items that they have no edge with.
    - At least one of their edges is neither test nor validation truth, unless
      `consider_cold_start` is set.

    These are the `"separated"` users of `create.reco.train.test` of the R and Python package
    recometrics.

    Args:
        fraction (float, optional): The fraction of all users to draw, in :math:`(0, 1)`, rounded,
            at least one user. Fewer are drawn if not enough users fulfil the conditions. With
            `None`, as many users are drawn as `max_users` allows. (default: `0.1`)
        max_users (int, optional): The largest number of users to draw. With `None`, there is no
            limit. (default: `10_000`)
        min_items_pool (int): The smallest number of items to rank for a drawn user.
            (default: `2`)
        min_pos_test (int): The smallest number of test edges of a drawn user. (default: `1`)
        consider_cold_start (bool): Whether users can be drawn who have no message-passing edge
            left. Only fractions can leave them without any. (default: `False`)

    Raises:
        ValueError: If an argument is out of its range.

    Example:
        >>> from pyg_recmetrics import datasets
        >>> from pyg_recmetrics.transforms import LeaveLastOut, SeparatedUsers
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=10)
        >>> split = LeaveLastOut(num_val=0, users=SeparatedUsers(fraction=0.2))
        >>> train, val, test = split(data)
        >>> drawn = test["user"].eval_mask
        >>> int(drawn.sum()), test["rates"].edge_label_index.size(1)
        (10, 10)
        >>> bool(drawn[train["rates"].edge_index[0]].any())
        False
    """

    def arrange(
        self, data: Graph, interactions: Interactions, assignment: Assignment, users: Tensor
    ) -> tuple[Graph, Assignment]:
        """Moves what training has of the drawn users to the message passing of validation."""
        is_drawn = index_to_mask(users, interactions.num_users)
        of_drawn = is_drawn[interactions.pairs.user][interactions.pairs.of_edge]
        is_context = of_drawn & (assignment.truth_of == TRAIN)
        return data, Assignment(
            message_passing_from=assignment.message_passing_from.masked_fill(is_context, VAL),
            truth_of=assignment.truth_of.masked_fill(is_context, NO_STAGE),
            users=users,
        )


class JoinedUsers(EvaluationUsers):
    r"""Evaluates some of the users that a model is trained with.

    A split draws the same users as with :class:`SeparatedUsers`, but what remains of their edges
    is in training, together with all edges of the other users. After renumbering, the drawn users
    come first, and the order within both groups stays the same. `n_id` of the nodes is the
    number that each had before. `eval_mask` of the user nodes marks the drawn users, and only
    these are evaluated.

    These are the `"joined"` users of `create.reco.train.test` of the R and Python package
    recometrics.

    Args:
        fraction (float, optional): See :class:`SeparatedUsers`. (default: `0.1`)
        max_users (int, optional): See :class:`SeparatedUsers`. (default: `10_000`)
        min_items_pool (int): See :class:`SeparatedUsers`. (default: `2`)
        min_pos_test (int): See :class:`SeparatedUsers`. (default: `1`)
        consider_cold_start (bool): See :class:`SeparatedUsers`. (default: `False`)

    Raises:
        ValueError: If an argument is out of its range.

    Example:
        >>> from pyg_recmetrics import datasets
        >>> from pyg_recmetrics.transforms import JoinedUsers, PerUserSplit
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=10)
        >>> train, val, test = PerUserSplit(users=JoinedUsers(fraction=0.1))(data)
        >>> test["user"].eval_mask.nonzero().flatten()
        tensor([0, 1, 2, 3, 4])
        >>> test["user"].n_id[:5]  # their numbers in the data
        tensor([ 6,  7, 17, 39, 44])
    """

    def arrange(
        self, data: Graph, interactions: Interactions, assignment: Assignment, users: Tensor
    ) -> tuple[Graph, Assignment]:
        """Renumbers the drawn users to be the first ones."""
        data = users_first(data, interactions, users)
        first = torch.arange(users.numel(), device=users.device)
        # Renumbering keeps the order of the edges, so their stages stay the same.
        return data, replace(assignment, users=first)
