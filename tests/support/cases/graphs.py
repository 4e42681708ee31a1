"""User-item graphs for tests of the transforms, in every form that PyG has for them."""

import math
from collections import Counter
from dataclasses import dataclass

import pytest
import torch
from hypothesis import assume, strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import ToUndirected

from pyg_recmetrics import datasets
from pyg_recmetrics.transforms import (
    JoinedUsers,
    LeaveLastOut,
    PerUserSplit,
    SeparatedUsers,
    TemporalSplit,
)

USER_ITEM = ("user", "rates", "item")
ITEM_USER = ("item", "rev_rates", "user")
FORMS = ("hetero", "hetero and reverse", "homogeneous", "undirected", "backward")

#: Marks of tests for which it does not matter what a split leaves out, which `test_splits_cut.py`
#: looks at.
WITHOUT_LEFT_OUT = [
    pytest.mark.filterwarnings("ignore:.* leaves "),
    pytest.mark.filterwarnings("ignore:SampledCandidates.* finds fewer items"),
]

SPLITS = {
    "per user": PerUserSplit(num_val=0.2, num_test=0.3, seed=1),
    "per user, numbers": PerUserSplit(num_val=2, num_test=1, seed=1),
    "last": LeaveLastOut(num_val=1, num_test=2),
    "last, fractions": LeaveLastOut(num_val=0.2, num_test=0.3),
    "random last": LeaveLastOut(time_attr=None, seed=3),
    "temporal": TemporalSplit(num_val=0.2, num_test=0.3),
    "temporal, numbers": TemporalSplit(num_val=1, num_test=2),
    "temporal, drop new": TemporalSplit(num_test=0.4, new_users="drop", new_items="drop"),
}

#: Splits that evaluate only some users.
SPLITS_OF_USERS = {
    "per user, separated": PerUserSplit(num_val=0.2, users=SeparatedUsers(fraction=0.5)),
    "per user, joined": PerUserSplit(num_val=0.2, users=JoinedUsers(fraction=0.5)),
    "last, separated": LeaveLastOut(users=SeparatedUsers(fraction=0.5)),
    "last, joined": LeaveLastOut(users=JoinedUsers(fraction=0.5)),
}


@dataclass
class Graph:
    """A graph in plain Python, and as PyG data in one of several forms."""

    num_users: int
    num_items: int
    edges: list[tuple[int, int]]
    times: list[int]

    @property
    def pairs(self):
        return set(self.edges)

    def items(self, user):
        return {item for other, item in self.edges if other == user}

    def data(self, form, order=None):
        order = list(range(len(self.edges))) if order is None else order
        edges = [self.edges[number] for number in order]
        edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
        attributes = {
            "time": torch.tensor([self.times[number] for number in order], dtype=torch.long),
            "edge_id": torch.tensor(order, dtype=torch.long),
        }
        if form.startswith("hetero"):
            data = HeteroData()
            data["user"].num_nodes, data["item"].num_nodes = self.num_users, self.num_items
            data["user"].x = torch.arange(self.num_users)
            store, keys = data[USER_ITEM], attributes
            store.edge_index = edge_index
        else:
            data = Data(num_nodes=self.num_users + self.num_items, num_users=self.num_users)
            data.x = torch.arange(data.num_nodes)
            shifted = edge_index + torch.tensor([[0], [self.num_users]])
            store, keys = data, attributes
            store.edge_index = shifted.flip([0]) if form == "backward" else shifted
        for key in keys:
            store[key] = attributes[key]
        if form == "undirected":
            store.edge_index = torch.cat([shifted, shifted.flip([0])], dim=1)
            for key in keys:
                store[key] = attributes[key].repeat(2)
        if form == "hetero and reverse":
            # In an order of its own.
            data[ITEM_USER].edge_index = edge_index.flip([0, 1])
            for key in keys:
                data[ITEM_USER][key] = attributes[key].flip([0])
        return data


@st.composite
def random_graphs(draw, max_users=5, max_items=7, max_edges=25):
    num_users, num_items = draw(st.integers(1, max_users)), draw(st.integers(1, max_items))
    edge = st.tuples(st.integers(0, num_users - 1), st.integers(0, num_items - 1))
    edges = draw(st.lists(edge, min_size=1, max_size=max_edges))
    edges += draw(st.lists(st.sampled_from(edges), max_size=4))  # repeated ones
    # PyG takes attributes for those of nodes if there are as many nodes as edges.
    assume(num_users + num_items not in (len(edges), 2 * len(edges)))
    times = draw(st.lists(st.integers(0, 12), min_size=len(edges), max_size=len(edges)))
    return Graph(num_users, num_items, edges, times)


def edges_with_ids(part):
    """The message-passing edges of a part, as `(user, item, edge_id)`, of all its edge stores."""
    found = set()
    for store in part.edge_stores:
        ids = store.edge_id.tolist()
        for ends, edge_id in zip(store.edge_index.t().tolist(), ids, strict=True):
            if isinstance(part, Data):
                user, item = sorted(ends)
                item -= part.num_users
            else:
                user, item = ends if store._key == USER_ITEM else reversed(ends)
            found.add((user, item, edge_id))
    return found


def message_passing(part):
    """The pairs of the message-passing edges of a part."""
    return {(user, item) for user, item, _ in edges_with_ids(part)}


def truth(part):
    """The truth as a list, so that what is repeated can be counted."""
    shift = part.num_users if isinstance(part, Data) else 0
    edges = truth_store(part).edge_label_index.t().tolist()
    return [(user, item - shift) for user, item in edges]


def truth_store(part):
    """The edge store with the truth of a part."""
    return part if isinstance(part, Data) else part[USER_ITEM]


def user_store(part):
    """The node store of users, which in a homogeneous graph is that of all nodes."""
    return part if isinstance(part, Data) else part["user"]


def drawn_users(part):
    """The users that a part evaluates, by the numbers that they have in the part."""
    return user_store(part).eval_mask.nonzero().flatten().tolist()


def as_sets(parts):
    """What two splits have in common if they differ only in the order of their edges."""
    return [
        (frozenset(edges_with_ids(part)), frozenset(Counter(truth(part)).items())) for part in parts
    ]


def rounded(total, fraction):
    """Rounds a fraction of a number, halves up."""
    product = total * fraction
    return math.floor(product) + (product - math.floor(product) >= 0.5)


def count_by_user(pairs):
    """How many pairs each user has."""
    return Counter(user for user, _ in pairs)


def apply_split(transform, graph, form, order=None):
    """The parts, or `None` where there is nothing to train with."""
    if isinstance(transform, TemporalSplit):
        num_pairs = len(graph.pairs)
        num_held_out = sum(
            rounded(num_pairs, amount) if isinstance(amount, float) else amount
            for amount in (transform.num_val, transform.num_test)
        )
        if num_held_out >= num_pairs:
            with pytest.raises(ValueError, match="left to train with"):
                transform(graph.data(form, order))
            return None
    return transform(graph.data(form, order))


def interactions(**options):
    """60 users and 40 items with times, in both directions."""
    return ToUndirected()(datasets.synthetic_interactions(60, 40, mean_degree=8, **options))
