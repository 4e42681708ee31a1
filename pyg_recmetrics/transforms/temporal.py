"""A split of all edges at the same moments."""

from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType
from torch_geometric.utils import scatter

from pyg_recmetrics.checks import check_choice, check_fraction
from pyg_recmetrics.transforms.cut import NONE, TRAIN, Assignment, UserItemSplit
from pyg_recmetrics.transforms.interactions import Interactions

NewNodes: TypeAlias = Literal["keep", "drop"]


class TemporalSplit(UserItemSplit):
    r"""Splits all edges at two moments: training is before validation, which is before the test.

    Sorted by time, the last `round(num_pairs * test)` user-item pairs are test truth and those
    before them validation truth. Edges of the same moment are not torn apart: those of the
    moment of a cut belong to the earlier part, so that a later part can be smaller than asked for.

    The time of repeated edges is that of the first one: only what a user does for the first time
    is truth. A repetition is a message-passing edge of the parts after its own moment, and of no
    other.

    Users and items may appear only after the cut, without a message-passing edge in the part
    whose truth they are in. No model can know such a user, and few such an item. They can be kept
    in the truth or dropped from it; edges that are dropped from the truth of validation are
    message-passing edges of the test, as all past edges are.

    Args:
        val (float): The fraction of the user-item pairs to validate with, in :math:`[0, 1)`.
            (default: `0.1`)
        test (float): The fraction to test with, in :math:`(0, 1)`. (default: `0.2`)
        time_attr (str): The attribute of the edges that holds their time. (default: `"time"`)
        new_users (str): What to do with truth of users that appear after the cut, `"keep"` or
            `"drop"`. (default: `"keep"`)
        new_items (str): What to do with truth of items that appear after the cut, `"keep"` or
            `"drop"`. (default: `"keep"`)
        edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        rev_edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        num_users (int, optional): See :class:`PerUserSplit`. (default: `None`)

    Returns:
        `(train, val, test)`, see :mod:`~pyg_recmetrics.transforms`.

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If an argument is out of its range, the edges of the data are not found, have
            no times or times that are not finite, or none is left to train with.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_recmetrics.transforms import TemporalSplit
        >>> data = Data(num_nodes=7, num_users=2)  # two users, five items
        >>> data.edge_index = torch.tensor([[0, 0, 0, 1, 1], [2, 3, 4, 5, 6]])
        >>> data.time = torch.tensor([40, 10, 20, 30, 50])
        >>> train, val, test = TemporalSplit(val=0.2, test=0.2)(data)
        >>> [part.edge_label_time.tolist() for part in (train, val, test)]
        [[10, 20, 30], [40], [50]]
    """

    def __init__(
        self,
        val: float = 0.1,
        test: float = 0.2,
        time_attr: str = "time",
        new_users: NewNodes = "keep",
        new_items: NewNodes = "keep",
        edge_type: EdgeType | None = None,
        rev_edge_type: EdgeType | None = None,
        num_users: int | None = None,
    ) -> None:
        super().__init__(edge_type, rev_edge_type, num_users, time_attr)
        self.val = check_fraction(val, "val", or_zero=True)
        self.test = check_fraction(test, "test")
        check_fraction(val + test, "val' + 'test")
        self.new_users = check_choice(new_users, "new_users", get_args(NewNodes))
        self.new_items = check_choice(new_items, "new_items", get_args(NewNodes))

    def assign(self, data: Data | HeteroData, interactions: Interactions) -> Assignment:
        """Finds the moments of the cuts, and the part of each edge."""
        time = interactions.time(data, str(self.time_attr))
        if time is None:
            raise ValueError(f"'data' needs to hold the times of edges as {self.time_attr!r}")
        pair = interactions.pairs.of_edge
        first = interactions.per_pair(time, "min")
        cuts = self._cuts(first)
        period = _period(time, cuts)
        known_from = torch.where(period == TRAIN, period, period + 1)
        is_truth = period == _period(first, cuts)[pair]
        for action, node, num_nodes in (
            (self.new_users, interactions.pairs.user[pair], interactions.num_users),
            (self.new_items, interactions.pairs.item[pair], interactions.num_items),
        ):
            if action == "drop":
                since = scatter(known_from.long(), node, dim_size=num_nodes, reduce="min")
                is_truth &= since[node] <= period
        return Assignment(known_from, period.masked_fill(~is_truth, NONE))

    def _cuts(self, first: Tensor) -> tuple[Tensor, Tensor]:
        """The last moment of training, and that of validation."""
        num_pairs = first.numel()
        num_val, num_test = (int(num_pairs * share + 0.5) for share in (self.val, self.test))
        num_train = num_pairs - num_val - num_test
        if num_train <= 0:
            raise ValueError(
                f"'data' needs to hold more edges, so that some are left to train with "
                f"(got {num_pairs}, of which {num_val} validate and {num_test} test)"
            )
        ordered = first.sort().values
        return ordered[num_train - 1], ordered[num_train + num_val - 1]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(val={self.val}, test={self.test}, "
            f"time_attr={self.time_attr!r}, new_users={self.new_users!r}, "
            f"new_items={self.new_items!r})"
        )


def _period(time: Tensor, cuts: tuple[Tensor, Tensor]) -> Tensor:
    """The part whose period a moment lies in."""
    last_of_train, last_of_val = cuts
    return (time > last_of_train).byte() + (time > last_of_val).byte()
