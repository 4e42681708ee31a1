"""Splits of the edges of each user: a fraction of them, or the last ones."""

import warnings
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType
from torch_geometric.utils import lexsort

from pyg_recmetrics.checks import (
    check_choice,
    check_fraction,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.transforms.cut import (
    NONE,
    TRAIN,
    VAL,
    Assignment,
    Parts,
    UserItemSplit,
    assign_pairs,
    cut,
)
from pyg_recmetrics.transforms.interactions import Interactions
from pyg_recmetrics.transforms.renumber import users_first

SplitType: TypeAlias = Literal["all", "separated", "joined"]


class PerUserSplit(UserItemSplit):
    r"""Splits the edges of each user at random.

    Of a user with :math:`n` items, `round(n * test)` become test truth and `round(n * val)`
    validation truth, where halves are rounded up. Each user is drawn independently of the others.
    These are the splits of `create.reco.train.test` of the R and Python package recometrics:

    - `"all"` splits the edges of all users. The conditions on users below apply to nobody.
    - `"separated"` draws some users for evaluation. Training has all edges of the other users
      and nothing of the drawn ones, whose remaining edges become message-passing edges of
      validation and test: users that a model meets after training.
    - `"joined"` draws the same users, whose remaining edges are in training, too. They are
      renumbered to be the first ones, both they and the others in the order they had;
      `n_id` of the nodes is the number that each had before.

    With `"separated"` and `"joined"`, `eval_mask` of the nodes marks the drawn users: only these
    are evaluated. Users can be drawn who get at least `min_pos_test` test edges, have at least
    `min_items_pool` items that are not message-passing edges in the test, at least one edge for
    training (unless `consider_cold_start`), and at least two items that they have no edge with.

    Args:
        test (float): The fraction of each user's items to test with, in :math:`(0, 1)`.
            (default: `0.3`)
        val (float): The fraction to validate with, in :math:`[0, 1)`. (default: `0.0`)
        split_type (str): `"all"`, `"separated"` or `"joined"`. (default: `"all"`)
        users_test_fraction (float, optional): The fraction of all users to evaluate, rounded, at
            least one user. Fewer if not enough fulfil the conditions. With `None`,
            `max_test_users` are drawn. (default: `0.1`)
        max_test_users (int, optional): The largest number of users to evaluate, `None` for any
            number. (default: `10_000`)
        min_items_pool (int): See above. (default: `2`)
        min_pos_test (int): See above. (default: `1`)
        consider_cold_start (bool): See above. (default: `False`)
        seed (int): Makes the same split every time, on every device and whatever the order of the
            edges. (default: `0`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one between two types of nodes, besides those that start
            with `rev_`)
        rev_edge_type (tuple, optional): The type of its reverse edges. (default: `None`, all
            types that hold the same edges in the opposite direction)
        num_users (int, optional): The number of users in a homogeneous `Data`, where items are
            numbered from `num_users` on. Edges may run in either or both directions.
            (default: `None`, the `num_users` of the data)

    Returns:
        `(train, val, test)`, see :mod:`~pyg_recmetrics.transforms`.

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If an argument is out of its range, the edges of the data are not found, or
            no user fulfils the conditions.

    Example:
        >>> from pyg_recmetrics import datasets
        >>> from pyg_recmetrics.transforms import PerUserSplit
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=10)
        >>> train, val, test = PerUserSplit(test=0.2, val=0.1)(data)
        >>> [part["rates"].edge_label_index.size(1) for part in (train, val, test)]
        [325, 57, 91]
    """

    def __init__(
        self,
        test: float = 0.3,
        val: float = 0.0,
        split_type: SplitType = "all",
        users_test_fraction: float | None = 0.1,
        max_test_users: int | None = 10_000,
        min_items_pool: int = 2,
        min_pos_test: int = 1,
        consider_cold_start: bool = False,
        seed: int = 0,
        edge_type: EdgeType | None = None,
        rev_edge_type: EdgeType | None = None,
        num_users: int | None = None,
    ) -> None:
        super().__init__(edge_type, rev_edge_type, num_users)
        self.test = check_fraction(test, "test")
        self.val = check_fraction(val, "val", or_zero=True)
        check_fraction(test + val, "test' + 'val")
        self.split_type = check_choice(split_type, "split_type", get_args(SplitType))
        if users_test_fraction is not None:
            check_fraction(users_test_fraction, "users_test_fraction")
        self.users_test_fraction = users_test_fraction
        if max_test_users is not None:
            check_positive_integer(max_test_users, "max_test_users")
        self.max_test_users = max_test_users
        self.min_items_pool = check_natural_number(min_items_pool, "min_items_pool")
        self.min_pos_test = check_natural_number(min_pos_test, "min_pos_test")
        self.consider_cold_start = consider_cold_start
        self.seed = check_natural_number(seed, "seed")

    def forward(self, data: Data | HeteroData) -> Parts:
        """Returns training, validation and test data."""
        if self.split_type != "joined":
            return super().forward(data)
        interactions = self.read(data)
        assignment = self.assign(data, interactions)
        if assignment.users is None:
            raise RuntimeError("users are drawn for 'joined'")
        # Edges keep their places, so the assignment holds for the renumbered graph, too.
        data = users_first(data, interactions, assignment.users)
        first = torch.arange(assignment.users.numel(), device=interactions.device)
        return cut(data, interactions, replace(assignment, users=first), None)

    def assign(self, data: Data | HeteroData, interactions: Interactions) -> Assignment:
        """Draws users where only some are evaluated, and which of their edges."""
        generator = torch.Generator().manual_seed(self.seed)
        num_val = round_half_up(interactions.degree, self.val)
        num_test = round_half_up(interactions.degree, self.test)
        users = None
        if self.split_type != "all":
            users = self._draw_users(interactions, num_val, num_test, generator)
            drawn = torch.zeros_like(num_test, dtype=torch.bool)
            drawn[users] = True
            num_val, num_test = num_val * drawn, num_test * drawn
        order = shuffled(interactions, generator)
        part = split_in_order(interactions, order, num_val, num_test)
        assignment = assign_pairs(interactions, part)
        if self.split_type != "separated":
            return Assignment(assignment.known_from, assignment.truth_of, users)
        # What remains of the drawn users is nothing to train with.
        is_context = (drawn[interactions.pairs.user] & (part == TRAIN))[interactions.pairs.of_edge]
        return Assignment(
            known_from=assignment.known_from.masked_fill(is_context, VAL),
            truth_of=assignment.truth_of.masked_fill(is_context, NONE),
            users=users,
        )

    def _draw_users(
        self,
        interactions: Interactions,
        num_val: Tensor,
        num_test: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        degree, num_items = interactions.degree, interactions.num_items
        can_be_drawn = (
            (degree > 0)
            & (num_test >= self.min_pos_test)
            & (num_items - (degree - num_test) >= self.min_items_pool)
            & (num_items - degree >= 2)
        )
        if not self.consider_cold_start:
            can_be_drawn &= num_val + num_test < degree
        order = torch.randperm(interactions.num_users, generator=generator)
        order = order.to(interactions.device)
        users = order[can_be_drawn[order]][: self._num_drawn(interactions.num_users)]
        if users.numel() == 0:
            raise ValueError(
                f"'data' needs to hold a user who can be evaluated (got none in "
                f"{interactions.num_users} who has at least {self.min_pos_test} test edges, "
                f"{self.min_items_pool} items to rank, and an edge to train with)"
            )
        return users.sort().values

    def _num_drawn(self, num_users: int) -> int:
        most = num_users if self.max_test_users is None else self.max_test_users
        if self.users_test_fraction is None:
            return most
        return min(most, max(1, round(num_users * self.users_test_fraction)))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(test={self.test}, val={self.val}, "
            f"split_type={self.split_type!r}, seed={self.seed})"
        )


class LeaveLastOut(UserItemSplit):
    r"""Leaves out each user's last items: the last `k` to test with, those before to validate.

    A user always keeps one item to train with, and tests before it validates: of a user with
    :math:`n` items, :math:`\min(k, n - 1)` are tested, and of the others all but one, at most
    `val`, validated. An item that a user has repeated edges with is one item, at the time of its
    last edge, and all these edges go to the same part. Items of the same moment are in random
    order.

    Args:
        k (int): The number of each user's items to test with. (default: `1`)
        val (int): The number of each user's items to validate with. (default: `1`)
        time_attr (str, optional): The attribute of the edges that holds their time. With `None`,
            items are left out at random; also, with a warning, if there is no such attribute.
            (default: `"time"`)
        seed (int): Makes the same split every time, on every device and whatever the order of the
            edges. (default: `0`)
        edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        rev_edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        num_users (int, optional): See :class:`PerUserSplit`. (default: `None`)

    Returns:
        `(train, val, test)`, see :mod:`~pyg_recmetrics.transforms`.

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If an argument is out of its range, or the edges of the data are not found or
            have times that are not finite.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_recmetrics.transforms import LeaveLastOut
        >>> data = Data(num_nodes=5, num_users=1)  # a user, four items
        >>> data.edge_index = torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]])
        >>> data.time = torch.tensor([40, 10, 20, 30])
        >>> train, val, test = LeaveLastOut()(data)
        >>> [part.edge_label_index[1].tolist() for part in (train, val, test)]
        [[2, 3], [4], [1]]
    """

    def __init__(
        self,
        k: int = 1,
        val: int = 1,
        time_attr: str | None = "time",
        seed: int = 0,
        edge_type: EdgeType | None = None,
        rev_edge_type: EdgeType | None = None,
        num_users: int | None = None,
    ) -> None:
        super().__init__(edge_type, rev_edge_type, num_users, time_attr)
        self.k = check_positive_integer(k, "k")
        self.val = check_natural_number(val, "val")
        self.seed = check_natural_number(seed, "seed")

    def assign(self, data: Data | HeteroData, interactions: Interactions) -> Assignment:
        """Orders the items of each user by time, and counts from the end."""
        order = shuffled(interactions, torch.Generator().manual_seed(self.seed))
        if self.time_attr is not None:
            order = self._by_time(data, interactions, order)
        num_left = (interactions.degree - 1).clamp(min=0)
        num_test = num_left.clamp(max=self.k)
        num_val = (num_left - num_test).clamp(max=self.val)
        part = split_in_order(interactions, order, num_val, num_test)
        return assign_pairs(interactions, part)

    def _by_time(
        self, data: Data | HeteroData, interactions: Interactions, order: Tensor
    ) -> Tensor:
        time = interactions.time(data, str(self.time_attr))
        if time is None:
            warnings.warn(
                f"The edges have no {self.time_attr!r}, so items are left out at random "
                f"('time_attr=None' says that this is wanted)",
                stacklevel=2,
            )
            return order
        last = interactions.per_pair(time, "max")
        return order[lexsort([last[order], interactions.pairs.user[order]])]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(k={self.k}, val={self.val}, time_attr={self.time_attr!r}, "
            f"seed={self.seed})"
        )


def round_half_up(count: Tensor, fraction: float) -> Tensor:
    """Rounds `count * fraction`, halves up."""
    product = count.double() * fraction
    return (product.trunc() + (product.frac() >= 0.5)).long()


def shuffled(interactions: Interactions, generator: torch.Generator) -> Tensor:
    """Orders all pairs by user, and at random within users: `[num_pairs]`."""
    user = interactions.pairs.user
    # The pairs are sorted, so what is drawn for a pair does not depend on the order of the edges.
    # As one number, user and draw are faster to sort than one after the other.
    draw = torch.randint(2**31, user.shape, generator=generator).to(user.device)
    order: Tensor = ((user << 31) | draw).sort(stable=True).indices
    return order


def split_in_order(
    interactions: Interactions, order: Tensor, num_val: Tensor, num_test: Tensor
) -> Tensor:
    """Gives the last pairs of each user to the test, those before to validation.

    Args:
        interactions (Interactions): Where the edges are.
        order (torch.Tensor): All pairs, by user, of shape `[num_pairs]`.
        num_val (torch.Tensor): How many pairs of each user validate, of shape `[num_users]`.
        num_test (torch.Tensor): How many test.

    Returns:
        The part of each pair, of shape `[num_pairs]`.
    """
    user = interactions.pairs.user
    end = interactions.degree.cumsum(0)[user]
    from_end = end - torch.arange(user.numel(), device=user.device)  # 1 for the last one
    part = torch.empty(user.shape, dtype=torch.uint8, device=user.device)
    is_test = from_end <= num_test[user]
    part[order] = is_test.byte() + (from_end <= (num_val + num_test)[user]).byte()
    return part
