"""A split that holds out the last edges of each user."""

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType
from torch_geometric.utils import lexsort

from pyg_recmetrics.messages import warn
from pyg_recmetrics.transforms.interactions import Interactions
from pyg_recmetrics.transforms.users import EvaluationUsers
from pyg_recmetrics.transforms.within_user import WithinUserSplit, shuffle_within_users


class LeaveLastOut(WithinUserSplit):
    r"""Leaves out each user's last items by time: the last to test with, those before to validate.

    Amounts mean the same as in :class:`PerUserSplit`. If one of them is a positive integer, as
    both are by default, a user always keeps one item to train with, and then has test
    items rather than validation items.
    Of a user with :math:`n` items and with `num_test` :math:`= k`, :math:`\min(k, n - 1)` items
    are tested. Of the remaining items, all but one are validated, at most `num_val`.

    An item that a user has repeated edges with is one item, at the time of its last edge, and all
    these edges belong to the same part. Items of the same moment are in random order.

    Args:
        num_val (int or float): The amount of each user's items to validate with: a non-negative
            integer or a fraction in :math:`[0, 1)`. (default: `1`)
        num_test (int or float): The amount to test with: a positive integer or a fraction in
            :math:`(0, 1)`. Two fractions need to sum to less than one. (default: `1`)
        users (SeparatedUsers or JoinedUsers, optional): See :class:`PerUserSplit`.
            (default: `None`, all users)
        time_attr (str, optional): The attribute of the edges that holds their time. With `None`,
            items are left out at random. The same happens, with a warning, if there is no such
            attribute. (default: `"time"`)
        seed (int): Equal seeds give equal splits, on every device and whatever the order of the
            edges. (default: `0`)
        edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        rev_edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        num_users (int, optional): See :class:`PerUserSplit`. (default: `None`)

    Returns:
        `(train, val, test)`, see :mod:`~pyg_recmetrics.transforms`.

    Raises:
        TypeError: If `users` is not a sample of users, or `data` is neither `Data` nor
            `HeteroData`.
        ValueError: If an argument is out of its range, no user can be drawn for `users`, or the
            edges of the data are not found or have times that are not finite.

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

    _shown = ("num_val", "num_test", "users", "time_attr", "seed")

    def __init__(
        self,
        *,
        num_val: int | float = 1,
        num_test: int | float = 1,
        users: EvaluationUsers | None = None,
        time_attr: str | None = "time",
        seed: int = 0,
        edge_type: EdgeType | None = None,
        rev_edge_type: EdgeType | None = None,
        num_users: int | None = None,
    ) -> None:
        super().__init__(
            num_val, num_test, users, seed, edge_type, rev_edge_type, num_users, time_attr
        )

    def order(
        self, data: Data | HeteroData, interactions: Interactions, generator: torch.Generator
    ) -> Tensor:
        """Orders the pairs of each user by time, and those of the same moment at random."""
        order = shuffle_within_users(interactions, generator)
        if self.time_attr is None:
            return order
        time = interactions.time(data, self.time_attr)
        if time is None:
            warn(
                f"The edges have no {self.time_attr!r}, so items are left out at random. Pass "
                f"'time_attr=None' if this is what you want."
            )
            return order
        last = interactions.reduce_by_pair(time, "max")
        by_time: Tensor = order[lexsort([last[order], interactions.pairs.user[order]])]
        return by_time
