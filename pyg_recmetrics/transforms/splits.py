"""Splits: random for each user, by the last items of each user, and by time; cores and candidates.

A split assigns each edge to training, validation and test, and the graph is cut accordingly. All
users are evaluated, or a sample of them, which is separated from training or joined to it.
"""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import NodeStorage
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import EdgeType
from torch_geometric.utils import index_to_mask, lexsort, scatter, select

from pyg_recmetrics.checks import (
    SparseMatrix,
    as_integer,
    as_matrix,
    as_number,
    check_boolean,
    check_choice,
    check_finite_number,
    check_fraction,
    check_natural_number,
    check_positive_integer,
    written,
)
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.task.edges import coalesce_edges, contains
from pyg_recmetrics.task.graph import (
    Graph,
    Interactions,
    UserItemEdges,
    find_truth,
    read_data,
    read_interactions,
)
from pyg_recmetrics.utils import warn

#: A float is a fraction of all, and an integer an absolute number.
Amount: TypeAlias = int | float


def _check_amount(value: object, name: str, *, or_zero: bool = False) -> Amount:
    number = as_integer(value)
    amount = as_number(value) if number is None else number
    is_zero = or_zero and amount == 0
    if amount is not None and (is_zero or amount > 0) and (isinstance(amount, int) or amount < 1):
        return amount
    integer, interval = ("non-negative", "[0, 1)") if or_zero else ("positive", "(0, 1)")
    raise ValueError(
        f"'{name}' needs to be a {integer} integer or a fraction in {interval} (got {value!r})"
    )


def resolve(amount: Amount, total: Tensor) -> Tensor:
    """Returns the number that an amount of each `total` is, where halves are rounded up."""
    if isinstance(amount, int):
        return torch.full_like(total, amount)
    product = total.cpu().double() * amount  # not all devices have double precision
    return (product.trunc() + (product.frac() >= 0.5)).long().to(total.device)


def count_held_out(num_items: Tensor, num_val: Amount, num_test: Amount) -> tuple[Tensor, Tensor]:
    """Returns how many of each user's items validate, and how many test.

    If an amount is a positive integer, each user keeps at least one item to train with. A user
    with too few items has test items rather than validation items.

    Args:
        num_items (torch.Tensor): The number of items of each user, of shape `[num_users]`.
        num_val (int or float): The amount to validate with.
        num_test (int or float): The amount to test with.
    """
    keeps_an_item = any(isinstance(amount, int) and amount > 0 for amount in (num_val, num_test))
    available = (num_items - 1).clamp(min=0) if keeps_an_item else num_items
    num_tested = resolve(num_test, num_items).minimum(available)
    num_validated = resolve(num_val, num_items).minimum(available - num_tested)
    return num_validated, num_tested


#: Training, validation and test, in this order. `NO_STAGE` marks an edge in none of them.
TRAIN, VAL, TEST, NO_STAGE = range(4)

#: Training, validation and test data; of a matrix, matrices that add up to it.
SplitData: TypeAlias = (
    tuple[Data, Data, Data] | tuple[HeteroData, HeteroData, HeteroData] | tuple[SparseMatrix, ...]
)


class Assignment(NamedTuple):
    """The stages that each edge belongs to.

    Attributes:
        message_passing_from: The first stage that has the edge for message passing, as all later
            stages do; of shape `[num_edges]`.
        truth_of: The stage whose truth the edge is, of shape `[num_edges]`.
        users: The users that validation and test evaluate, `None` for all.
    """

    message_passing_from: Tensor
    truth_of: Tensor
    users: Tensor | None = None


def first_message_passing(stage: Tensor) -> Tensor:
    """Returns the first stage that passes messages over edges which are truth of `stage`.

    Training learns from its own message-passing edges. The truth of a later stage is hidden from
    that stage, and is a message-passing edge of the next one.
    """
    return torch.where(stage == TRAIN, stage, stage + 1)


@dataclass(eq=False, kw_only=True)
class UserItemSplit(BaseTransform):
    """Splits the user-item edges of a graph. A subclass assigns each edge to its stages."""

    num_val: Amount
    num_test: Amount
    edge_type: EdgeType | None = field(default=None, repr=False)
    num_users: int | None = field(default=None, repr=False)
    #: The attribute of the edges that holds their time, if the split is by time.
    time_attr: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.num_val = val = _check_amount(self.num_val, "num_val", or_zero=True)
        self.num_test = test = _check_amount(self.num_test, "num_test")
        if isinstance(val, float) and isinstance(test, float) and val + test >= 1:
            raise ValueError(
                f"'num_val' and 'num_test' need to sum to less than one (got {val} and {test})"
            )

    def forward(self, data: Graph) -> SplitData:
        """Returns training, validation and test data."""
        interactions = read_interactions(data, self.edge_type, self.num_users)
        # A single part that is held out may validate what a published test evaluates.
        if self.num_val and "edge_label_index" in interactions.stores(data)[0]:
            self._warn_of_lost_truth(data, interactions)
        data, assignment = self.assign(data, interactions)
        return cut(data, interactions, assignment, self.time_attr)

    def _warn_of_lost_truth(self, data: Graph, interactions: Interactions) -> None:
        """Warns of truth of the data that is not among the edges, which alone are split."""
        truth = read_data(data, self.edge_type, self.num_users).truth
        pairs = torch.stack([interactions.user, interactions.item])
        if num_lost := int((~contains(pairs, truth, interactions.num_items)).sum()):
            warn(
                f"{self} splits the edges of the data, and leaves out {num_lost:,} ground-truth "
                f"edges that they hold beside them. If these are a published test, evaluate on the "
                f"data themselves"
            )

    def _warn_of_left_out(self, interactions: Interactions, is_left_out: Tensor, what: str) -> None:
        """Counts edges that a split leaves out of something, each of them in one direction."""
        if number := int((is_left_out & interactions.can_be_truth).sum()):
            warn(f"{self} leaves {number:,} {what}")

    @abstractmethod
    def assign(self, data: Graph, interactions: Interactions) -> tuple[Graph, Assignment]:
        """Assigns each edge to its stages.

        Returns:
            The data to cut and the assignment. The data may number its users in another way than
            before, but has the same edges in the same order.
        """


def cut(
    data: Graph, interactions: Interactions, assignment: Assignment, time_attr: str | None
) -> SplitData:
    """Makes training, validation and test data of a graph.

    Attributes follow their edges, and reverse edges follow their pair. In the data of each stage,
    `edge_index` holds the message-passing edges and `edge_label_index` the truth, from users to
    items.
    """
    whole = _without_truth(data, interactions)
    parts = []
    filtered, is_kept = whole, torch.ones_like(interactions.can_be_truth)
    for stage in (TRAIN, VAL, TEST):
        is_in_stage = assignment.message_passing_from <= stage
        # Validation mostly has the message-passing edges of training, and then shares them.
        if not torch.equal(is_in_stage, is_kept):
            filtered = _keep_edges(whole, interactions, is_in_stage, time_attr)
            is_kept = is_in_stage
        part = copy.copy(filtered)
        is_truth = interactions.can_be_truth & (assignment.truth_of == stage)
        _label(interactions, whole, part, is_truth, time_attr)
        if assignment.users is not None and stage != TRAIN:
            # PyG marks the nodes of its node splits alike.
            store = nodes_of(part, interactions.user_type)
            store["eval_mask"] = index_to_mask(assignment.users, store.num_nodes)
        parts.append(part)
    train, val, test = parts
    return train, val, test


def nodes_of(data: Graph, node_type: str | None) -> NodeStorage:
    """Returns the store of a type of nodes, or the only one of a homogeneous graph."""
    return data.node_stores[0] if node_type is None else data[node_type]


def remember_ids(data: Graph, node_type: str | None) -> None:
    """Writes down the number of each node as `n_id`, unless the nodes already have one."""
    store = nodes_of(data, node_type)
    if "n_id" not in store:
        device = data.edge_stores[0]["edge_index"].device
        store["n_id"] = torch.arange(store.num_nodes, device=device)


def users_first(data: Graph, interactions: Interactions, users: Tensor) -> Graph:
    """Renumbers users so that the given `users` are first. All other nodes stay in order."""
    is_other = ~index_to_mask(users, interactions.num_users)
    order = torch.cat([users, is_other.nonzero().flatten()])
    if interactions.user_type is None:
        items = torch.arange(interactions.num_items, device=users.device)
        order = torch.cat([order, items + interactions.num_users])
    data, node_type = copy.copy(data), interactions.user_type
    remember_ids(data, node_type)
    store = nodes_of(data, node_type)
    for key in store.node_attrs():
        store[key] = select(store[key], order, data.__cat_dim__(key, store[key], store))
    new_id = torch.empty_like(order)
    new_id[order] = torch.arange(order.numel(), device=order.device)
    for edges in data.edge_stores:
        source, _, target = edges._key or (None, None, None)
        for key, value in list(edges.items()):
            # `edge_index`, `edge_label_index`, and whatever else holds pairs of nodes.
            if key.endswith(("edge_index", "edge_label_index")):
                first, second = value
                first = new_id[first] if source == node_type else first
                second = new_id[second] if target == node_type else second
                edges[key] = torch.stack([first, second])
    return data


def _without_truth(data: Graph, interactions: Interactions) -> Graph:
    """Removes the labels of an earlier split, and stores the number of nodes."""
    data = copy.copy(data)
    for store in interactions.stores(data):
        for label in ("edge_label", "pos_edge_label", "neg_edge_label"):
            # Without `edge_label_index`, `edge_label` is an attribute of the edges.
            if store.pop(f"{label}_index", None) is not None:
                store.pop(label, None)
        for key in ("candidate_edge_index", "edge_label_time"):
            store.pop(key, None)
    nodes_of(data, interactions.user_type).pop("eval_mask", None)
    if interactions.user_type is None:
        # PyG would infer the number of nodes from the edges, of which some will be missing.
        data.num_nodes = interactions.num_users + interactions.num_items
        data.num_users = interactions.num_users
    return data


def _keep_edges(
    whole: Graph, interactions: Interactions, mask: Tensor, time_attr: str | None
) -> Graph:
    filtered = copy.copy(whole)
    sources, targets = interactions.stores(whole), interactions.stores(filtered)
    masks = interactions.split_by_type(mask)
    for source, target, mask_of_type in zip(sources, targets, masks, strict=True):
        index = mask_of_type.nonzero().flatten()
        # PyG tells attributes of edges from attributes of nodes by their size. It takes times for
        # those of nodes if there are as many nodes as edges, so times are named explicitly.
        for key in {*source.edge_attrs(), time_attr}.intersection(source.keys()):
            target[key] = select(source[key], index, whole.__cat_dim__(key, source[key], source))
    return filtered


def _label(
    interactions: Interactions, whole: Graph, part: Graph, mask: Tensor, time_attr: str | None
) -> None:
    """Adds the truth to the data of a stage, with its labels and times."""
    # All truth is of the first type. The others hold reverse edges of the same pairs.
    index = interactions.split_by_type(mask)[0].nonzero().flatten()
    source, target = interactions.stores(whole)[0], interactions.stores(part)[0]
    truth = source["edge_index"][:, index]
    if interactions.user_type is None:
        # Users have the lower ids where users and items are numbered together.
        truth = truth.sort(dim=0).values
    target["edge_label_index"] = truth
    label = source.get("edge_label")
    ones = torch.ones(index.numel(), device=index.device)
    target["edge_label"] = ones if label is None else label[index]
    if time_attr is not None and time_attr in source:
        target["edge_label_time"] = source[time_attr][index]


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
        order = order.to(degree.device)
        most = interactions.num_users if self.max_users is None else self.max_users
        if self.fraction is not None:
            most = min(most, max(1, round(interactions.num_users * self.fraction)))
        users = order[is_eligible[order]][:most]
        if users.numel() == 0:
            raise ValueError(
                f"'data' needs to hold a user who can be evaluated (got {interactions.num_users} "
                f"users, of which none fulfils the conditions of {self})"
            )
        return users.sort().values


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
        of_drawn = is_drawn[interactions.user][interactions.pair]
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
        return data, assignment._replace(users=first)


def order_within_users(
    interactions: Interactions, last: Tensor | None, generator: torch.Generator
) -> Tensor:
    """Orders all pairs by user, and those of a user by time or, of one moment, at random.

    Args:
        interactions (Interactions): The user-item edges.
        last (torch.Tensor, optional): The time of each pair, of shape `[num_pairs]`. With `None`,
            all are at random.
        generator (torch.Generator): Draws the random order.

    Returns:
        The order, of shape `[num_pairs]`.
    """
    user = interactions.user
    # The pairs are sorted, so what is drawn for a pair does not depend on the order of the edges.
    # As one number, user and draw are faster to sort than one after the other.
    draw = torch.randint(2**31, user.shape, generator=generator, device="cpu").to(user.device)
    order: Tensor = ((user << 31) | draw).sort(stable=True).indices
    return order if last is None else order[lexsort([last[order], user[order]])]


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
    user = interactions.user
    end = interactions.degree.cumsum(0)[user]
    from_end = end - torch.arange(user.numel(), device=user.device)  # 1 for the last one
    stage = torch.empty(user.shape, dtype=torch.uint8, device=user.device)
    is_test = from_end <= num_test[user]
    is_held_out = from_end <= (num_val + num_test)[user]
    stage[order] = is_test.byte() + is_held_out.byte()  # TRAIN, VAL and TEST are 0, 1 and 2
    of_edge = stage[interactions.pair]
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
        _, assignment = self.assign(graph, interactions)
        stages = [TRAIN, VAL, TEST]
        if isinstance(self.users, SeparatedUsers):
            # What is seen of users who are not in training is the truth of no stage.
            stages.insert(1, NO_STAGE)
        whole, parts = matrix.tocoo(), []
        for stage in stages:
            is_in = assignment.truth_of == stage
            value, (row, column) = entries.value[is_in].numpy(), entries.edges[:, is_in].numpy()
            part = type(whole)((value, (row, column)), shape=whole.shape, dtype=whole.dtype)
            parts.append(part.asformat(matrix.format))
        return tuple(parts)

    def assign(self, data: Graph, interactions: Interactions) -> tuple[Graph, Assignment]:
        """Draws the users to evaluate, if not all are evaluated, and divides their edges."""
        generator = torch.Generator().manual_seed(self.seed)
        num_val, num_test = count_held_out(interactions.degree, self.num_val, self.num_test)
        if self.users is None:
            return data, self._divide(data, interactions, num_val, num_test, generator)
        users = self.users.draw(interactions, num_val, num_test, generator)
        is_drawn = index_to_mask(users, interactions.num_users)
        num_val, num_test = num_val * is_drawn, num_test * is_drawn
        assignment = self._divide(data, interactions, num_val, num_test, generator)
        return self.users.arrange(data, interactions, assignment, users)

    def _divide(
        self,
        data: Graph,
        interactions: Interactions,
        num_val: Tensor,
        num_test: Tensor,
        generator: torch.Generator,
    ) -> Assignment:
        """Holds out so many items of each user, and counts earlier visits that are held out."""
        time = None if self.time_attr is None else interactions.time(data, self.time_attr)
        if time is None:
            if self.time_attr is not None:
                warn(
                    f"The edges have no {self.time_attr!r}, so items are left out at random. Pass "
                    f"'time_attr=None' if this is what you want."
                )
            order = order_within_users(interactions, None, generator)
            return hold_out_last(interactions, order, num_val, num_test)
        last = interactions.reduce_by_pair(time, "max")
        order = order_within_users(interactions, last, generator)
        assignment = hold_out_last(interactions, order, num_val, num_test)
        is_earlier = (assignment.truth_of != TRAIN) & (time < last[interactions.pair])
        what = "earlier visits of held-out items out of training: all visits of an item are one"
        self._warn_of_left_out(interactions, is_earlier, what)
        return assignment


@dataclass(eq=False, kw_only=True)
class LeaveLastOut(PerUserSplit):
    r"""Leaves out each user's last items by time: the last to test with, those before to validate.

    Amounts mean the same as in :class:`PerUserSplit`. If one of them is a positive integer, as
    both are by default, each user keeps at least one item to train with, and test items take
    precedence: with `num_test` :math:`= k`, a user with :math:`n` items has
    :math:`\min(k, n - 1)` test items. All but one of the remaining items, at most `num_val`, are
    validation items.

    Repeated edges of a user with an item are one item, at the time of the last of them, and all
    belong to the same part. A warning counts earlier visits of held-out items, which training
    therefore lacks. Items of the same moment are in random order.

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
    first time is truth. A repetition is never truth. In the time of training, it is a
    message-passing edge of all parts; in that of validation, of the test; and later, of none, which
    a warning counts.

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
        new_users (str): Whether to `"keep"` or `"drop"` the truth of users without a
            message-passing edge in the same part. (default: `"keep"`)
        new_items (str): Whether to `"keep"` or `"drop"` the truth of such items.
            (default: `"keep"`)
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
        pair = interactions.pair
        first = interactions.reduce_by_pair(time, "min")
        cuts = self._find_cuts(first)
        # The number of cuts before each moment: TRAIN, VAL and TEST are 0, 1 and 2.
        stage = torch.searchsorted(cuts, time).byte()
        message_passing_from = first_message_passing(stage)
        is_truth = is_first = stage == torch.searchsorted(cuts, first).byte()[pair]
        nodes = {"user": interactions.user[pair], "item": interactions.item[pair]}
        for side, node in nodes.items():
            if getattr(self, f"new_{side}s") == "drop":
                # A node is known from the stage on that first passes messages over its edges.
                known_from = scatter(message_passing_from.long(), node, reduce="min")
                is_truth = is_truth & (known_from[node] <= stage)
        what = "edges of new users or items out of the truth"
        self._warn_of_left_out(interactions, is_first & ~is_truth, what)
        what = "repeated edges out of all parts, as no part follows their moment"
        self._warn_of_left_out(interactions, ~is_first & (stage == TEST), what)
        return data, Assignment(message_passing_from, stage.masked_fill(~is_truth, NO_STAGE))

    def _find_cuts(self, first: Tensor) -> Tensor:
        """Returns the last moment of training and the last moment of validation.

        Args:
            first (torch.Tensor): When each pair occurs first, of shape `[num_pairs]`.
        """
        num_pairs = first.numel()
        total = torch.tensor(num_pairs, device="cpu")
        num_val = int(resolve(self.num_val, total))
        num_test = int(resolve(self.num_test, total))
        num_train = num_pairs - num_val - num_test
        if num_train <= 0:
            raise ValueError(
                f"'data' needs to hold more edges, so that some are left to train with "
                f"(got {num_pairs} pairs, of which {num_val} validate and {num_test} test)"
            )
        ordered = first.sort().values
        return ordered[[num_train - 1, num_train + num_val - 1]]


# What comes before a split and after it: cores, and candidates that are sampled.


@dataclass(eq=False)
class KCore(BaseTransform):
    r"""Keeps the largest graph in which each user has at least `k` items, and each item `k` users.

    The transform removes users and items with fewer. This leaves others with fewer, so it repeats
    until nothing changes. Repeated edges count once. Apply this transform before a split.

    The remaining users and items are renumbered without gaps, in the order they had, as PyG's
    :class:`~torch_geometric.transforms.LargestConnectedComponents` does it. Removed items are
    therefore no longer candidates. All attributes of nodes and edges, and edges of other types,
    follow. `n_id` of the nodes is the number that each had before. A warning counts what leaves.

    Args:
        k (int): The smallest number of distinct edges of a user or item that is kept.
        edge_type (tuple, optional): See :class:`PerUserSplit`. (default: `None`)
        num_users (int, optional): See :class:`PerUserSplit`. `num_users` of the result is the
            number of users that are left. (default: `None`)

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If `k` is not a positive integer, the edges of the data are not found, they
            are already split, or nothing is left.

    Example:
        >>> import warnings
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_recmetrics.transforms import KCore
        >>> data = Data(num_nodes=6, num_users=3)  # three users, three items
        >>> data.edge_index = torch.tensor([[0, 1, 1, 1, 2, 2], [3, 3, 4, 5, 4, 5]])
        >>> with warnings.catch_warnings(record=True) as said:
        ...     warnings.simplefilter("always")
        ...     core = KCore(2)(data)
        >>> print(said[0].message)
        KCore(k=2) leaves out 1 of 3 users and 1 of 3 items
        >>> core.n_id.tolist(), core.num_users
        ([1, 2, 4, 5], 2)
        >>> core.edge_index.tolist()
        [[0, 0, 1, 1], [2, 3, 2, 3]]
    """

    k: int
    edge_type: EdgeType | None = field(default=None, repr=False)
    num_users: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.k = check_positive_integer(self.k, "k")

    def forward(self, data: Data | HeteroData) -> Data | HeteroData:
        """Returns the graph that is left."""
        interactions = read_interactions(data, self.edge_type, self.num_users)
        for store in interactions.stores(data):
            if labels := [key for key in store if "label_index" in key]:
                raise ValueError(
                    f"'data' needs to be filtered before it is split (got {labels[0]!r})"
                )
        has_user, has_item = self._core(interactions)
        if not bool(has_user.any()):
            raise ValueError(f"'k' needs to leave a user and an item (got {self.k})")
        lost_users, lost_items = int((~has_user).sum()), int((~has_item).sum())
        if lost_users or lost_items:
            warn(
                f"{self} leaves out {lost_users} of {has_user.numel()} users and {lost_items} of "
                f"{has_item.numel()} items"
            )
        edge_type = interactions.edge_types[0]
        if edge_type is None:
            remember_ids(data, None)
            core = data.subgraph(torch.cat([has_user, has_item]))
            core.num_users = int(has_user.sum())
            return core
        kept = {edge_type[0]: has_user, edge_type[2]: has_item}
        for node_type in kept:
            remember_ids(data, node_type)
        for other in {key[end] for key in data.edge_types for end in (0, 2)} - set(kept):
            # Without a mask, PyG would keep all nodes, too, but it would number them on the CPU.
            kept[other] = has_user.new_ones(data[other].num_nodes)
        return data.subgraph(kept)

    def _core(self, interactions: Interactions) -> tuple[Tensor, Tensor]:
        """Returns the users and the items that are left, as masks."""
        user, item = interactions.user, interactions.item
        while True:
            num_items = torch.bincount(user, minlength=interactions.num_users)
            num_users = torch.bincount(item, minlength=interactions.num_items)
            stays = (num_items[user] >= self.k) & (num_users[item] >= self.k)
            if bool(stays.all()):
                return num_items > 0, num_users > 0
            user, item = user[stays], item[stays]


#: The largest number of random numbers that are drawn at once.
_MAX_DRAWS = 2**24


@dataclass(eq=False)
class SampledCandidates(BaseTransform):
    r"""Lets each user's truth compete with a few sampled items instead of all items.

    Many publications rank the truth of a user among, for example, 99 sampled items. Use this
    transform to reproduce their numbers, and rank all items otherwise. Krichene and Rendle,
    `"On Sampled Metrics for Item Recommendation" <https://doi.org/10.1145/3394486.3403226>`_ (KDD
    2020), show that a sampled metric differs from the same metric of the full ranking even in
    expectation, and that it can put recommenders into another order. With few samples, a sampled
    metric says little about the top of the list, and behaves like the area under the ROC curve.
    Without this transform, :func:`~pyg_recmetrics.evaluate` ranks all items, and is
    fast.

    Each user with truth gets a sample of its own, without replacement, of the items that it has
    neither a message-passing edge nor a truth edge with in this part of the split. The sample is
    smaller if there are not enough such items. The sample and the truth itself are the candidates
    of the user, edges from users to items in `candidate_edge_index`, which
    :meth:`RankingTask.from_data` reads. Apply the transform to one part of a split, or in a
    :class:`~torch_geometric.transforms.Compose` to all of them.

    Args:
        num_negatives (int): The number of items to sample for each user. (default: `99`)
        popularity (float): The exponent of popularity. The probability of an item is proportional
            to its number of message-passing edges to the power of this exponent: `0.0` samples
            uniformly, `1.0` by popularity. Items without such edges are only sampled with `0.0`.
            (default: `0.0`)
        seed (int): Equal seeds give equal samples, on every device and whatever the order of
            the edges. (default: `0`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth; of opposite ones, that from `"user"`
            nodes)
        num_users (int, optional): The number of users in a homogeneous `Data`.
            (default: `None`, the `num_users` of the data)

    Raises:
        TypeError: If `data` is neither `Data` nor `HeteroData`.
        ValueError: If an argument is out of its range, or the data has no ground truth.

    Example:
        >>> from pyg_recmetrics import RankingTask, datasets
        >>> from pyg_recmetrics.transforms import LeaveLastOut, SampledCandidates
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=5)
        >>> *_, test = LeaveLastOut()(data)
        >>> task = RankingTask.from_data(SampledCandidates(num_negatives=9)(test))
        >>> task.num_candidates.unique()
        tensor([10])
    """

    num_negatives: int = 99
    popularity: float = 0.0
    seed: int = 0
    edge_type: EdgeType | None = field(default=None, repr=False)
    num_users: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.num_negatives = check_positive_integer(self.num_negatives, "num_negatives")
        self.popularity = check_finite_number(self.popularity, "popularity")
        self.seed = check_natural_number(self.seed, "seed")

    def forward(self, data: Data | HeteroData) -> Data | HeteroData:
        """Returns the data with its candidates."""
        edges = read_data(data, self.edge_type, self.num_users)
        sampled = self._sample(edges)
        num_sampled = torch.bincount(sampled[0], minlength=edges.num_users)
        users = edges.truth[0].unique().cpu()
        if num_short := int((num_sampled[users] < self.num_negatives).sum()):
            warn(
                f"{self} finds fewer items than it is to sample for {num_short} of "
                f"{users.numel()} users"
            )
        candidates = torch.cat([edges.truth.cpu(), sampled], dim=1)
        if isinstance(data, Data):
            candidates[1] += edges.num_users
        data = copy.copy(data)
        find_truth(data, self.edge_type)["candidate_edge_index"] = candidates.to(edges.truth.device)
        return data

    def _sample(self, edges: UserItemEdges) -> Tensor:
        # All on the CPU: random numbers, and the order of equal ones, differ by device.
        truth, seen = edges.truth.cpu(), edges.seen.cpu()
        num_items = edges.num_items
        users = truth[0].unique()
        known = coalesce_edges(torch.cat([truth, seen], dim=1), num_items)
        known = known[:, torch.isin(known[0], users)]
        excluded = Entries(torch.searchsorted(users, known[0]), known[1], users.numel())
        rate = self._rate(coalesce_edges(seen, num_items)[1], num_items)
        generator = torch.Generator().manual_seed(self.seed)
        num_rows = max(1, _MAX_DRAWS // num_items)
        sampled = [truth[:, :0]]
        for start in range(0, users.numel(), num_rows):
            chunk = users[start : start + num_rows]
            # The earliest of exponential arrivals with these rates are a sample without
            # replacement (Efraimidis and Spirakis, "Weighted random sampling with a reservoir").
            uniform = torch.rand(chunk.numel(), num_items, generator=generator, device="cpu")
            arrival = uniform.log_().neg_().div_(rate)
            excluded.fill_(arrival, slice(start, start + chunk.numel()), 0, torch.inf)
            num_sampled = min(self.num_negatives, num_items)
            earliest = arrival.topk(num_sampled, dim=1, largest=False)
            row, column = earliest.values.isfinite().nonzero(as_tuple=True)
            sampled.append(torch.stack([chunk[row], earliest.indices[row, column]]))
        return torch.cat(sampled, dim=1)

    def _rate(self, item: Tensor, num_items: int) -> Tensor:
        """Returns how likely each item is relative to others, of shape `[num_items]`."""
        degree = torch.bincount(item, minlength=num_items).float()
        if self.popularity == 0:
            return torch.ones_like(degree)
        return torch.where(degree > 0, degree**self.popularity, 0)


for _split, _example in (
    (PerUserSplit, "PerUserSplit(num_val=0.1, num_test=0.2)"),
    (LeaveLastOut, "LeaveLastOut(num_test=1)"),
    (TemporalSplit, "TemporalSplit(num_val=0.1, num_test=0.2)"),
):
    _split.__init__ = written(_example)(_split.__init__)  # type: ignore[method-assign]
