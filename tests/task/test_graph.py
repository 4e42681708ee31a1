"""Reading graphs: every kind of split that PyG makes, and what is said of other graphs."""

import random

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import RandomLinkSplit, ToUndirected

from pyg_recmetrics import RankingTask, datasets, evaluate
from tests.support.cases.graphs import USER_ITEM
from tests.support.cases.strategies import pairs
from tests.support.tools.said import warnings_of


@pytest.fixture
def _the_same_split_every_time():
    """Seeds the global generators from which PyG's split draws, besides that of torch."""
    random.seed(0)
    np.random.seed(0)


def hetero():
    return datasets.synthetic_interactions(num_users=40, num_items=30, mean_degree=6, seed=1)


@pytest.mark.usefixtures("_the_same_split_every_time")
class TestHeteroData:
    def test_labels_that_are_split(self):
        split = RandomLinkSplit(edge_types=USER_ITEM, split_labels=True)
        *_, test = split(hetero())
        assert pairs(RankingTask.from_data(test).truth) == pairs(
            test[USER_ITEM].pos_edge_label_index
        )

    def test_a_threshold_applies_to_labels_of_one_as_well(self):
        *_, test = RandomLinkSplit(edge_types=USER_ITEM)(hetero())
        plain = RankingTask.from_data(test)
        assert torch.equal(RankingTask.from_data(test, threshold=1).truth, plain.truth)
        with pytest.raises(ValueError, match=r"'threshold' .* \(got 4, and weights of at most 1\)"):
            RankingTask.from_data(test, threshold=4)
        del test[USER_ITEM].edge_label
        with pytest.raises(ValueError, match=r"'threshold' needs .*'edge_label' \(got 4 and no"):
            RankingTask.from_data(test, threshold=4)

    def test_weights_of_message_passing_edges_follow_them_in_both_directions(self):
        data = hetero()
        data[USER_ITEM].edge_weight = torch.rand(data[USER_ITEM].edge_index.size(1))
        *_, test = RandomLinkSplit(edge_types=USER_ITEM)(data)
        made = RankingTask.from_data(test)
        weight = test[USER_ITEM].edge_weight
        assert torch.equal(made.edge_weight, torch.cat([weight, weight]))

    def test_seen_items_can_be_left_in(self):
        train, _, _ = RandomLinkSplit(edge_types=USER_ITEM)(hetero())
        with (
            pytest.warns(UserWarning, match="taken out of the truth"),
            pytest.raises(ValueError, match="'exclude_seen=False'"),
        ):
            RankingTask.from_data(train)
        made = RankingTask.from_data(train, exclude_seen=False)
        assert pairs(made.truth) == pairs(train[USER_ITEM].edge_index)
        assert pairs(made.seen) == pairs(train[USER_ITEM].edge_index)
        assert made.excluded.size(1) == 0
        assert made.num_candidates.tolist() == [30] * 40

    @pytest.mark.filterwarnings("ignore:.*ground-truth edges leak")
    def test_the_edge_type_is_found_or_has_to_be_given(self):
        data = hetero()
        views = ("user", "views", "item")
        data[views].edge_index = data[USER_ITEM].edge_index
        *_, test = RandomLinkSplit(edge_types=USER_ITEM)(data)
        assert RankingTask.from_data(test).truth.size(1) > 0
        test[views].edge_label_index = test[USER_ITEM].edge_label_index
        with pytest.raises(ValueError, match=r"'edge_type' .*'rates'.*'views'"):
            RankingTask.from_data(test)
        assert RankingTask.from_data(test, USER_ITEM).truth.size(1) > 0


def homogeneous():
    forward = hetero()[USER_ITEM].edge_index + torch.tensor([[0], [40]])
    return Data(edge_index=torch.cat([forward, forward.flip([0])], dim=1), num_nodes=70)


LIKES = ("user", "likes", "item")


def part(data, type_=USER_ITEM, **fields):
    """A graph as the test part of a split, with other fields; `None` takes one away."""
    data[type_].edge_label_index = data[type_].edge_index
    for name, value in fields.items():
        if name in ("eval_mask", "num_nodes"):
            data["user"][name] = value
        elif value is None:
            del data[type_][name]
        else:
            data[type_][name] = value
    return data


def undirected(**fields):
    data = homogeneous()
    data.edge_label_index = data.edge_index
    return data.update(fields)


@pytest.mark.filterwarnings("ignore:Unable to accurately infer")
@pytest.mark.filterwarnings("ignore:.*taken out of the truth")
@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (hetero, {}, r"'edge_label_index': pass one part of a split, .*\('user', 'rates',"),
        (hetero, {"edge_type": USER_ITEM}, r"'edge_label_index': .*\(got \['edge_index', 'time'"),
        (homogeneous, {"num_users": 40}, r"'edge_label_index': .*\(got \['edge_index', 'num_no"),
        (dict, {}, r"'Data' or 'HeteroData' object \(got dict\)"),
        (hetero, {"edge_type": LIKES}, r"one of \[\('user', 'rates', 'item'\)\] \(got"),
        (hetero, {"num_users": 40}, "'num_users' applies to homogeneous"),
        (lambda: part(hetero(), num_nodes=None), {}, r"'data\['user'\].num_nodes' needs to be set"),
        (lambda: part(hetero(), edge_index=None), {}, r"'edge_index' \(got \['edge_label_index'"),
        (lambda: part(hetero(), eval_mask=torch.ones(40)), {}, r"'eval_mask' .*of shape \[40\]"),
        (
            lambda: part(hetero(), eval_mask=torch.zeros(40, dtype=torch.bool)),
            {"exclude_seen": False},
            r"'eval_mask' .*\(got 0 users, none with",
        ),
        (undirected, {}, r"'num_users' .* as an argument or as 'data\.num_users'"),
        (undirected, {"num_users": 70}, r"less than the number of nodes 70 \(got 70\)"),
        (undirected, {"edge_type": USER_ITEM, "num_users": 40}, "'edge_type' applies to 'Hetero"),
        (undirected, {"num_users": 10}, "'edge_label_index' needs to connect users"),
        (
            lambda: undirected(edge_index=torch.tensor([[0, 0, 50], [1, 45, 51]])),
            {"num_users": 40},
            r"'edge_index' .*\(got 2 edges of two users",
        ),
    ],
)
def test_what_is_wrong_with_a_graph_is_named(make, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RankingTask.from_data(make(), **options)


@pytest.mark.usefixtures("_the_same_split_every_time")
@pytest.mark.parametrize("negatives", [0.0, 1.0])
@pytest.mark.parametrize("form", ["directed", "undirected", "homogeneous"])
def test_all_parts_of_a_random_link_split(form, negatives):
    options, num_users, shift = {"edge_types": USER_ITEM}, None, 0
    data = hetero()
    if form == "undirected":
        data = ToUndirected()(data)
        options["rev_edge_types"] = ("item", "rev_rates", "user")
    if form == "homogeneous":
        data, options, num_users, shift = homogeneous(), {"is_undirected": True}, 40, 40
    options |= {"num_val": 0.2, "num_test": 0.2, "neg_sampling_ratio": negatives}
    for part in RandomLinkSplit(**options, disjoint_train_ratio=0.3)(data):
        made = RankingTask.from_data(part, num_users=num_users)
        store = part if shift else part[USER_ITEM]
        positive = store.edge_label_index[:, store.edge_label == 1]
        assert pairs(made.truth) == {(u, i - shift) for u, i in pairs(positive)}
        assert pairs(made.seen) == {(u, i - shift) for u, i in pairs(store.edge_index) if u < 40}
        assert (made.weight, made.num_users, made.num_items) == (None, 40, 30)
        forward = store.edge_index + torch.tensor([[0], [40]])
        both = torch.cat([forward, forward.flip([0])], dim=1)
        assert torch.equal(made.edge_index, store.edge_index if shift else both)


@pytest.mark.parametrize("num_leaks", [0, 1, 4])
@pytest.mark.parametrize("form", ["task", "part"])
def test_truth_that_a_model_propagates_over_is_named(form, num_leaks):
    truth, seen = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), torch.tensor([[0, 1], [0, 0]])
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = 4, 5
    data["user", "buys", "item"].edge_index = seen
    data["user", "buys", "item"].edge_label_index = truth
    edges = torch.cat([seen, truth[:, :num_leaks]], dim=1) + torch.tensor([[0], [4]])
    edge_index = torch.cat([edges, edges.flip([0]), torch.tensor([[0, 1, 5], [1, 0, 6]])], dim=1)
    part = data if form == "part" else RankingTask.from_data(data)
    said = warnings_of(evaluate, torch.eye(4, 5), part, "recall@1", edge_index=edge_index)
    leaks = [text[:6] for text in said if "leak" in text]
    assert leaks == [f"{num_leaks} of 4"] * (num_leaks > 0)
    fewer = torch.tensor([[1, 4], [4, 1]])  # of the two that are seen
    with pytest.warns(UserWarning, match="^1 of 2 seen edges are not in 'edge_index'"):
        evaluate(torch.eye(4, 5), part, "recall@1", edge_index=fewer)
