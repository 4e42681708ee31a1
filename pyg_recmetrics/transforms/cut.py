"""Cutting a graph into training, validation and test data: what all splits have in common."""

import copy
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import EdgeType
from torch_geometric.utils import index_to_mask, select

from pyg_recmetrics.inputs import SparseMatrix, as_integer, as_number
from pyg_recmetrics.transforms.interactions import (
    EdgeGroup,
    Graph,
    Interactions,
    nodes_of,
    read_interactions,
)

#: A float is a fraction of all, and an integer an absolute number.
Amount: TypeAlias = int | float


def check_amounts(num_val: object, num_test: object) -> tuple[Amount, Amount]:
    """Returns both amounts if they leave something to train with."""
    val, test = _check_amount(num_val, "num_val", or_zero=True), _check_amount(num_test, "num_test")
    if isinstance(val, float) and isinstance(test, float) and val + test >= 1:
        raise ValueError(
            f"'num_val' and 'num_test' need to sum to less than one (got {val} and {test})"
        )
    return val, test


def _check_amount(value: object, name: str, *, or_zero: bool = False) -> Amount:
    number = as_integer(value)
    amount = as_number(value) if number is None else number
    if amount is not None:
        is_positive = amount > 0 or (or_zero and amount == 0)
        if is_positive and (isinstance(amount, int) or amount < 1):
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


@dataclass(frozen=True, eq=False)
class Assignment:
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
        self.num_val, self.num_test = check_amounts(self.num_val, self.num_test)

    def forward(self, data: Graph) -> SplitData:
        """Returns training, validation and test data."""
        interactions = read_interactions(data, self.edge_type, self.num_users)
        data, assignment = self.assign(data, interactions)
        return cut(data, interactions, assignment, self.time_attr)

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
    can_be_truth = interactions.can_be_truth
    all_data, filtered, mask = [], whole, torch.ones_like(can_be_truth)
    for stage in (TRAIN, VAL, TEST):
        previous_mask, mask = mask, assignment.message_passing_from <= stage
        # Validation mostly has the message-passing edges of training, and then shares them.
        if not torch.equal(mask, previous_mask):
            filtered = _keep_edges(whole, interactions, mask, time_attr)
        stage_data = copy.copy(filtered)
        # All truth is in the first group. The others hold reverse edges of the same pairs.
        truth = interactions.split_by_group((assignment.truth_of == stage) & can_be_truth)[0]
        _label(interactions.groups[0], whole, stage_data, truth, time_attr)
        if assignment.users is not None and stage != TRAIN:
            # PyG marks the nodes of its node splits alike.
            store = nodes_of(stage_data, interactions.user_type)
            store["eval_mask"] = index_to_mask(assignment.users, store.num_nodes)
        all_data.append(stage_data)
    train, val, test = all_data
    return train, val, test


def _without_truth(data: Graph, interactions: Interactions) -> Graph:
    """Removes the labels of an earlier split, and stores the number of nodes."""
    data = copy.copy(data)
    for group in interactions.groups:
        store = group.store(data)
        for prefix in ("", "pos_", "neg_"):
            if f"{prefix}edge_label_index" in store:
                # Without `edge_label_index`, `edge_label` is an attribute of the edges.
                del store[f"{prefix}edge_label_index"]
                store.pop(f"{prefix}edge_label", None)
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
    masks = interactions.split_by_group(mask)
    for group, group_mask in zip(interactions.groups, masks, strict=True):
        source, target = group.store(whole), group.store(filtered)
        index = group_mask.nonzero().flatten()
        # PyG tells attributes of edges from attributes of nodes by their size. It takes times for
        # those of nodes if there are as many nodes as edges, so times are named explicitly.
        for key in {*source.edge_attrs(), time_attr}.intersection(source.keys()):
            target[key] = select(source[key], index, whole.__cat_dim__(key, source[key], source))
    return filtered


def _label(
    group: EdgeGroup, whole: Graph, stage_data: Graph, mask: Tensor, time_attr: str | None
) -> None:
    """Adds the truth to the data of a stage, with its labels and times."""
    source, target = group.store(whole), group.store(stage_data)
    index = mask.nonzero().flatten()
    truth = source["edge_index"][:, index]
    if group.edge_type is None:
        # Users have the lower ids where users and items are numbered together.
        truth = truth.sort(dim=0).values
    target["edge_label_index"] = truth
    label = source.get("edge_label")
    ones = torch.ones(index.numel(), device=index.device)
    target["edge_label"] = ones if label is None else label[index]
    if time_attr is not None and time_attr in source:
        target["edge_label_time"] = source[time_attr][index]
