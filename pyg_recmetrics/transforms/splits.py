"""Splits: random for each user, by the last items of each user, and by time."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.utils import index_to_mask, lexsort, scatter

from pyg_recmetrics.checks import check_choice, check_natural_number
from pyg_recmetrics.inputs import SparseMatrix, as_matrix
from pyg_recmetrics.messages import warn
from pyg_recmetrics.transforms.cut import (
    NO_STAGE,
    TEST,
    TRAIN,
    VAL,
    Amount,
    Assignment,
    SplitData,
    UserItemSplit,
    count_held_out,
    first_message_passing,
    resolve,
)
from pyg_recmetrics.transforms.interactions import Graph, Interactions, read_interactions
from pyg_recmetrics.transforms.users import EvaluationUsers, SeparatedUsers


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
    of_edge = stage[interactions.pairs.of_edge]
    return Assignment(message_passing_from=first_message_passing(of_edge), truth_of=of_edge)


@dataclass(eq=False, kw_only=True)
class PerUserSplit(UserItemSplit):
    r"""Splits the edges of each user at random.

    As in :class:`~torch_geometric.transforms.RandomLinkSplit`, an amount is a fraction if it is a
    float, and an absolute number if it is an integer; here, of the items of each user. Of a user
    with :math:`n` items, a fraction :math:`f` is `round(n * f)` items, where halves are rounded
    up. If an amount is a positive integer, each user keeps at least one item to train with, and a
    user with too few items has test items rather than validation items.

    The items of each user are drawn independently of those of other users. All repeated edges of
    a user with an item belong to the same part.

    A sparse matrix of SciPy, of users and items, is split as the graph of its entries, into
    matrices of its shape and format that add up to it: training, validation and test; with
    :class:`SeparatedUsers` training, what is seen of the drawn users, validation and test.

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
            with `rev_`; of opposite ones, that from `"user"` nodes). Types that hold the same edges
            in the opposite direction are split alike.
        num_users (int, optional): The number of users in a homogeneous `Data`, where items are
            numbered from `num_users` on. Edges may run in either or both directions.
            (default: `None`, the `num_users` of the data)

    Returns:
        `(train, val, test)`, see :mod:`~pyg_recmetrics.transforms`.

    Raises:
        TypeError: If `users` is not a sample of users, or `data` is neither a matrix nor `Data` or
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

    num_val: Amount = 0.0
    num_test: Amount = 0.3
    users: EvaluationUsers | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.users is not None and not isinstance(self.users, EvaluationUsers):
            raise TypeError(
                f"'users' needs to be 'SeparatedUsers(...)', 'JoinedUsers(...)' or None for all "
                f"users (got {self.users!r})"
            )
        self.seed = check_natural_number(self.seed, "seed")

    def forward(self, data: Graph | SparseMatrix) -> SplitData:
        """Returns training, validation and test data, or their matrices."""
        if hasattr(data, "tocoo"):
            return self._split_matrix(data)
        return super().forward(data)

    def _split_matrix(self, matrix: Any) -> tuple[SparseMatrix, ...]:
        """Splits a matrix into others that add up to it, in which all rows stay where they are."""
        entries, graph = as_matrix(matrix, "data"), HeteroData()
        graph["user"].num_nodes, graph["item"].num_nodes = entries.shape
        graph["user", "to", "item"].edge_index = entries.edges
        interactions = read_interactions(graph, self.edge_type, self.num_users)
        stage_of = self.assign(graph, interactions)[1].truth_of
        # What is seen of users who are not in training is the truth of no stage.
        seen = (NO_STAGE,) if isinstance(self.users, SeparatedUsers) else ()
        whole = matrix.tocoo()
        return tuple(
            type(whole)(
                (entries.value[is_in].numpy(), tuple(entries.edges[:, is_in].numpy())),
                shape=whole.shape,
                dtype=whole.dtype,
            ).asformat(matrix.format)
            for is_in in (stage_of == stage for stage in (TRAIN, *seen, VAL, TEST))
        )

    def assign(self, data: Graph, interactions: Interactions) -> tuple[Graph, Assignment]:
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

    def order(self, data: Graph, interactions: Interactions, generator: torch.Generator) -> Tensor:
        """Orders all pairs by user, and those of a user by time or, of one moment, at random."""
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


@dataclass(eq=False, kw_only=True)
class LeaveLastOut(PerUserSplit):
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

    num_val: Amount = 1
    num_test: Amount = 1
    time_attr: str | None = "time"


NewNodes: TypeAlias = Literal["keep", "drop"]


@dataclass(eq=False, kw_only=True)
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

    num_val: Amount = 0.1
    num_test: Amount = 0.2
    time_attr: str | None = "time"
    new_users: NewNodes = "keep"
    new_items: NewNodes = "keep"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.new_users, "new_users", get_args(NewNodes))
        check_choice(self.new_items, "new_items", get_args(NewNodes))

    def assign(self, data: Graph, interactions: Interactions) -> tuple[Graph, Assignment]:
        """Finds the moments of the cuts, and the stages of each edge."""
        time = interactions.time(data, str(self.time_attr))
        if time is None:
            raise ValueError(f"'data' needs to hold the times of edges as {self.time_attr!r}")
        pair = interactions.pairs.of_edge
        first = interactions.reduce_by_pair(time, "min")
        cuts = self._find_cuts(first)
        stage = _stage_at(time, cuts)
        message_passing_from = first_message_passing(stage)
        is_truth = is_first = stage == _stage_at(first, cuts)[pair]
        for action, node, num_nodes in (
            (self.new_users, interactions.pairs.user[pair], interactions.num_users),
            (self.new_items, interactions.pairs.item[pair], interactions.num_items),
        ):
            if action == "drop":
                # A node is known from the stage on that first passes messages over its edges.
                known_from = scatter(
                    message_passing_from.long(), node, dim_size=num_nodes, reduce="min"
                )
                is_truth = is_truth & (known_from[node] <= stage)
        if num_dropped := int((is_first & ~is_truth).sum()):
            warn(f"{self} leaves {num_dropped:,} edges of new users or items out of the truth")
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
