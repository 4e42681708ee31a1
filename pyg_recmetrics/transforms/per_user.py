"""A split of the edges of each user at random."""

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType

from pyg_recmetrics.transforms.interactions import Interactions
from pyg_recmetrics.transforms.users import EvaluationUsers
from pyg_recmetrics.transforms.within_user import WithinUserSplit, shuffle_within_users


class PerUserSplit(WithinUserSplit):
    r"""Splits the edges of each user at random.

    As in :class:`~torch_geometric.transforms.RandomLinkSplit`, an amount is a fraction if it is a
    float, and an absolute number if it is an integer; here, of the items of each user. Of a user
    with :math:`n` items, a fraction :math:`f` is `round(n * f)` items, where halves are rounded
    up. If an amount is a positive integer, each user keeps at least one item to train with, and a
    user with too few items has test items rather than validation items.

    The items of each user are drawn independently of those of other users. All repeated edges of
    a user with an item belong to the same part.

    With fractions, these are the splits of `create.reco.train.test` of the R and Python package
    recometrics: its `"all"` by default, and its `"separated"` and `"joined"` with the `users` of
    the same names.

    Args:
        num_val (int or float): The amount of each user's items to validate with: a fraction in
            :math:`[0, 1)` or a non-negative integer. (default: `0.0`)
        num_test (int or float): The amount to test with: a fraction in :math:`(0, 1)` or a
            positive integer. Two fractions need to sum to less than one. (default: `0.3`)
        users (SeparatedUsers or JoinedUsers, optional): The users to evaluate, whose edges are
            split. All edges of the others are in training. (default: `None`, all users)
        seed (int): Equal seeds give equal splits, on every device and whatever the order of the
            edges. (default: `0`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one between two types of nodes, besides those that start
            with `rev_`; of opposite ones, that from `"user"` nodes)
        rev_edge_type (tuple, optional): The type of its reverse edges. (default: `None`, all
            types that hold the same edges in the opposite direction)
        num_users (int, optional): The number of users in a homogeneous `Data`, where items are
            numbered from `num_users` on. Edges may run in either or both directions.
            (default: `None`, the `num_users` of the data)

    Returns:
        `(train, val, test)`, see :mod:`~pyg_recmetrics.transforms`.

    Raises:
        TypeError: If `users` is not a sample of users, or `data` is neither `Data` nor
            `HeteroData`.
        ValueError: If an argument is out of its range, the edges of the data are not found, or
            no user can be drawn for `users`.

    Example:
        >>> from pyg_recmetrics import datasets
        >>> from pyg_recmetrics.transforms import PerUserSplit, SeparatedUsers
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=10)
        >>> split = PerUserSplit(num_val=0.1, num_test=0.2)
        >>> [part["rates"].edge_label_index.size(1) for part in split(data)]
        [325, 57, 91]
        >>> split = PerUserSplit(num_val=0.1, num_test=0.2, users=SeparatedUsers(fraction=0.5))
        >>> [part["rates"].edge_label_index.size(1) for part in split(data)]
        [232, 29, 47]
    """

    _shown = ("num_val", "num_test", "users", "seed")

    def __init__(
        self,
        *,
        num_val: int | float = 0.0,
        num_test: int | float = 0.3,
        users: EvaluationUsers | None = None,
        seed: int = 0,
        edge_type: EdgeType | None = None,
        rev_edge_type: EdgeType | None = None,
        num_users: int | None = None,
    ) -> None:
        super().__init__(num_val, num_test, users, seed, edge_type, rev_edge_type, num_users)

    def order(
        self, data: Data | HeteroData, interactions: Interactions, generator: torch.Generator
    ) -> Tensor:
        """Orders the pairs of each user at random."""
        return shuffle_within_users(interactions, generator)
