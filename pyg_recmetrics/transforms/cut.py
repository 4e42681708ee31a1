"""Cutting a graph into training, validation and test data: what all splits have in common."""

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage, NodeStorage
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import EdgeType
from torch_geometric.utils import select

from pyg_recmetrics.transforms.interactions import Interactions, Place, read_interactions

#: The parts of a split, in the order of time; and what is in none of them.
TRAIN, VAL, TEST, NONE = range(4)

#: Training, validation and test data.
Parts: TypeAlias = tuple[Data, Data, Data] | tuple[HeteroData, HeteroData, HeteroData]


@dataclass(frozen=True)
class Assignment:
    """Which part an edge belongs to.

    Attributes:
        known_from: The first part that has the edge for message passing, as all later ones do;
            of shape `[num_edges]`.
        truth_of: The part whose truth the edge is, of shape `[num_edges]`.
        users: The users that validation and test evaluate, `None` for all.
    """

    known_from: Tensor
    truth_of: Tensor
    users: Tensor | None = None


def assign_pairs(interactions: Interactions, part: Tensor) -> Assignment:
    """Assigns all edges of a pair to the same part, given for each pair: `[num_pairs]`."""
    part = part.to(torch.uint8)[interactions.pairs.of_edge]
    return Assignment(known_from=torch.where(part == TRAIN, part, part + 1), truth_of=part)


class UserItemSplit(BaseTransform):
    """Splits the user-item edges of a graph; a subclass says which edge goes where."""

    def __init__(
        self,
        edge_type: EdgeType | None = None,
        rev_edge_type: EdgeType | None = None,
        num_users: int | None = None,
        time_attr: str | None = None,
    ) -> None:
        self.edge_type = edge_type
        self.rev_edge_type = rev_edge_type
        self.num_users = num_users
        self.time_attr = time_attr

    def forward(self, data: Data | HeteroData) -> Parts:
        """Returns training, validation and test data."""
        interactions = self.read(data)
        return cut(data, interactions, self.assign(data, interactions), self.time_attr)

    def read(self, data: Data | HeteroData) -> Interactions:
        """Finds the user-item edges."""
        return read_interactions(data, self.edge_type, self.rev_edge_type, self.num_users)

    @abstractmethod
    def assign(self, data: Data | HeteroData, interactions: Interactions) -> Assignment:
        """Says which part an edge belongs to."""


def cut(
    data: Data | HeteroData,
    interactions: Interactions,
    assignment: Assignment,
    time_attr: str | None,
) -> Parts:
    """Makes training, validation and test data of a graph.

    Attributes follow their edges, and reverse edges their pair. In each part, `edge_index` are
    its message-passing edges and `edge_label_index` is its truth, from users to items.
    """
    whole = _without_truth(data, interactions)
    is_truth = interactions.can_be_truth
    parts, graph, known = [], whole, torch.ones_like(is_truth)
    for number in (TRAIN, VAL, TEST):
        before, known = known, assignment.known_from <= number
        # Validation mostly knows what training knows, and then shares its edges.
        if not torch.equal(known, before):
            graph = _keep_edges(whole, interactions, known, time_attr)
        part = copy.copy(graph)
        # All truth is in the first place: other places hold reverse edges, of the same pairs.
        truth = interactions.split((assignment.truth_of == number) & is_truth)[0]
        _label(interactions.places[0], whole, part, truth, time_attr)
        if assignment.users is not None and number != TRAIN:
            _evaluate_only(part, interactions, assignment.users)
        parts.append(part)
    train, val, test = parts
    return train, val, test


def _without_truth(data: Data | HeteroData, interactions: Interactions) -> Data | HeteroData:
    """Removes what an earlier split has left, and says how many nodes there are."""
    data = copy.copy(data)
    for place in interactions.places:
        store = place.store(data)
        for prefix in ("", "pos_", "neg_"):
            if f"{prefix}edge_label_index" in store:
                # Without it, `edge_label` is an attribute of the edges.
                _delete(store, f"{prefix}edge_label_index", f"{prefix}edge_label")
        _delete(store, "candidate_edge_index", "edge_label_time")
    _delete(_user_store(data, interactions), "eval_mask")
    if interactions.user_type is None:
        # Fewer edges must not make fewer nodes.
        data.num_nodes = interactions.num_users + interactions.num_items
        data.num_users = interactions.num_users
    return data


def _keep_edges(
    whole: Data | HeteroData, interactions: Interactions, mask: Tensor, time_attr: str | None
) -> Data | HeteroData:
    graph = copy.copy(whole)
    for place, kept in zip(interactions.places, interactions.split(mask), strict=True):
        source, store = place.store(whole), place.store(graph)
        index = kept.nonzero().flatten()
        # PyG goes by sizes, and may take times for those of nodes if there are as many of these.
        for key in {*source.edge_attrs(), time_attr}.intersection(source.keys()):
            store[key] = select(source[key], index, whole.__cat_dim__(key, source[key], source))
    return graph


def _label(
    place: Place,
    whole: Data | HeteroData,
    part: Data | HeteroData,
    mask: Tensor,
    time_attr: str | None,
) -> None:
    source, store = place.store(whole), place.store(part)
    index = mask.nonzero().flatten()
    truth = source["edge_index"][:, index]
    if place.edge_type is None:
        # Users have the lower ids where users and items are numbered together.
        truth = truth.sort(dim=0).values
    store["edge_label_index"] = truth
    label = source.get("edge_label")
    ones = torch.ones(index.numel(), device=index.device)
    store["edge_label"] = ones if label is None else label[index]
    if time_attr is not None and time_attr in source:
        store["edge_label_time"] = source[time_attr][index]


def _evaluate_only(part: Data | HeteroData, interactions: Interactions, users: Tensor) -> None:
    """Marks the users that are to be evaluated, as PyG marks the nodes of its node splits."""
    store = _user_store(part, interactions)
    mask = torch.zeros(store.num_nodes, dtype=torch.bool, device=interactions.device)
    mask[users] = True
    store["eval_mask"] = mask


def _user_store(data: Data | HeteroData, interactions: Interactions) -> NodeStorage:
    user_type = interactions.user_type
    return data.node_stores[0] if user_type is None else data[user_type]


def _delete(store: BaseStorage, *keys: str) -> None:
    for key in keys:
        if key in store:
            del store[key]
