"""A split of all edges at the same points in time."""

from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType
from torch_geometric.utils import scatter

from pyg_recmetrics.checks import check_choice
from pyg_recmetrics.transforms.amounts import check_amounts, resolve
from pyg_recmetrics.transforms.cut import (
    NO_STAGE,
    Assignment,
    UserItemSplit,
    first_message_passing,
)
from pyg_recmetrics.transforms.interactions import Interactions

NewNodes: TypeAlias = Literal["keep", "drop"]


class TemporalSplit(UserItemSplit):
    r"""Splits all edges at two moments: training is before validation, which is before the test.

    As in :class:`~torch_geometric.transforms.RandomLinkSplit`, an amount is a fraction if it is a
    float, and an absolute number if it is an integer; here, of all distinct user-item pairs. A
    fraction :math:`f` is `round(num_pairs * f)` pairs, where halves are rounded up. Sorted by
    time, the last `num_test` pairs are test truth, and the `num_val` pairs before them are
    validation truth. Edges of the same moment stay together: those at the moment of a cut belong
    to the earlier part, so a later part can be smaller than requested.

    The time of a repeated edge is the time of its first occurrence: only what a user does for the
    first time is truth. A repetition is a message-passing edge of the parts after its own moment,
    and of no other part.

    Some users and items appear only after a cut, without a message-passing edge in the part that
    has their truth. No model can know such a user, and few models know such an item. Their edges
    can be kept in the truth or dropped from it. Edges that are dropped from the truth of
    validation are message-passing edges of the test, as all past edges are.

    Args:
        num_val (int or float): The amount of the user-item pairs to validate with: a fraction in
            :math:`[0, 1)` or a non-negative integer. (default: `0.1`)
        num_test (int or float): The amount to test with: a fraction in :math:`(0, 1)` or a
            positive integer. Two fractions need to sum to less than one. (default: `0.2`)
        time_attr (str): The attribute of the edges that holds their time. (default: `"time"`)
        new_users (str): Whether to `"keep"` or `"drop"` the truth of users that appear after the
            cut. (default: `"keep"`)
        new_items (str): Whether to `"keep"` or `"drop"` the truth of items that appear after the
            cut. (default: `"keep"`)
        edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        rev_edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        num_users (int, optional): See :class:`PerUserSplit`. (default: `None`)

    Returns:
        `(train, val, test)`, see :mod:`~pyg_recmetrics.transforms`.

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If an argument is out of its range, if the edges of the data are not found or
            have no times or times that are not finite, or if no edge is left to train with.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_recmetrics.transforms import TemporalSplit
        >>> data = Data(num_nodes=7, num_users=2)  # two users, five items
        >>> data.edge_index = torch.tensor([[0, 0, 0, 1, 1], [2, 3, 4, 5, 6]])
        >>> data.time = torch.tensor([40, 10, 20, 30, 50])
        >>> train, val, test = TemporalSplit(num_val=0.2, num_test=0.2)(data)
        >>> [part.edge_label_time.tolist() for part in (train, val, test)]
        [[10, 20, 30], [40], [50]]
    """

    _shown = ("num_val", "num_test", "time_attr", "new_users", "new_items")

    def __init__(
        self,
        *,
        num_val: int | float = 0.1,
        num_test: int | float = 0.2,
        time_attr: str = "time",
        new_users: NewNodes = "keep",
        new_items: NewNodes = "keep",
        edge_type: EdgeType | None = None,
        rev_edge_type: EdgeType | None = None,
        num_users: int | None = None,
    ) -> None:
        super().__init__(edge_type, rev_edge_type, num_users, time_attr)
        self.num_val, self.num_test = check_amounts(num_val, num_test)
        self.new_users = check_choice(new_users, "new_users", get_args(NewNodes))
        self.new_items = check_choice(new_items, "new_items", get_args(NewNodes))

    def assign(
        self, data: Data | HeteroData, interactions: Interactions
    ) -> tuple[Data | HeteroData, Assignment]:
        """Finds the moments of the cuts, and the stages of each edge."""
        time = interactions.time(data, str(self.time_attr))
        if time is None:
            raise ValueError(f"'data' needs to hold the times of edges as {self.time_attr!r}")
        pair = interactions.pairs.of_edge
        first = interactions.reduce_by_pair(time, "min")
        cuts = self._find_cuts(first)
        stage = _stage_at(time, cuts)
        message_passing_from = first_message_passing(stage)
        is_truth = stage == _stage_at(first, cuts)[pair]
        for action, node, num_nodes in (
            (self.new_users, interactions.pairs.user[pair], interactions.num_users),
            (self.new_items, interactions.pairs.item[pair], interactions.num_items),
        ):
            if action == "drop":
                # A node is known from the stage on that first passes messages over its edges.
                known_from = scatter(
                    message_passing_from.long(), node, dim_size=num_nodes, reduce="min"
                )
                is_truth &= known_from[node] <= stage
        return data, Assignment(message_passing_from, stage.masked_fill(~is_truth, NO_STAGE))

    def _find_cuts(self, first: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the last moment of training and the last moment of validation.

        Args:
            first (torch.Tensor): When each pair occurs first, of shape `[num_pairs]`.
        """
        num_pairs = first.numel()
        total = torch.tensor(num_pairs, device="cpu")
        num_val, num_test = (int(resolve(n, total)) for n in (self.num_val, self.num_test))
        num_train = num_pairs - num_val - num_test
        if num_train <= 0:
            raise ValueError(
                f"'data' needs to hold more edges, so that some are left to train with "
                f"(got {num_pairs} pairs, of which {num_val} validate and {num_test} test)"
            )
        ordered = first.sort().values
        return ordered[num_train - 1], ordered[num_train + num_val - 1]


def _stage_at(time: Tensor, cuts: tuple[Tensor, Tensor]) -> Tensor:
    """Returns the stage in which each moment lies."""
    last_of_train, last_of_val = cuts
    # TRAIN, VAL and TEST are 0, 1 and 2.
    return (time > last_of_train).byte() + (time > last_of_val).byte()
