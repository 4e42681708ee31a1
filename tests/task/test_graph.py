"""Reading graphs: every kind of split that PyG makes, and what is said of other graphs."""

import random

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.transforms import RandomLinkSplit, ToUndirected

from pyg_recmetrics import Evaluator, RankingTask, datasets, evaluate
from pyg_recmetrics.transforms import PerUserSplit
from tests.support.cases.graphs import USER_ITEM
from tests.support.cases.strategies import pairs


def pairs_in_order(edges):
    return list(zip(*edges.tolist(), strict=True))


@pytest.fixture
def _the_same_split_every_time():
    """Seeds the global generators, from which PyG's split draws."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def hetero():
    data = datasets.synthetic_interactions(num_users=40, num_items=30, mean_degree=6, seed=1)
    return data


@pytest.mark.usefixtures("_the_same_split_every_time")
class TestHeteroData:
    @pytest.mark.parametrize("negatives", [0.0, 1.0])
    @pytest.mark.parametrize("undirected", [False, True])
    def test_all_parts_of_a_random_link_split(self, negatives, undirected):
        data = ToUndirected()(hetero()) if undirected else hetero()
        whole = pairs(data[USER_ITEM].edge_index)
        split = RandomLinkSplit(
            num_val=0.2,
            num_test=0.2,
            edge_types=USER_ITEM,
            rev_edge_types=("item", "rev_rates", "user") if undirected else None,
            neg_sampling_ratio=negatives,
            disjoint_train_ratio=0.3,
        )
        for part in split(data):
            made = RankingTask.from_data(part)
            store = part[USER_ITEM]
            positive = store.edge_label_index[:, store.edge_label == 1]
            assert pairs(made.truth) == pairs(positive)
            assert pairs(made.truth) <= whole
            assert pairs(made.seen) == pairs(store.edge_index)
            assert made.weight is None
            assert (made.num_users, made.num_items) == (40, 30)
            forward = store.edge_index + torch.tensor([[0], [40]])
            both = torch.cat([forward, forward.flip([0])], dim=1)
            assert torch.equal(made.edge_index, both)

    def test_labels_that_are_split(self):
        split = RandomLinkSplit(edge_types=USER_ITEM, split_labels=True)
        *_, test = split(hetero())
        assert pairs(RankingTask.from_data(test).truth) == pairs(
            test[USER_ITEM].pos_edge_label_index
        )

    @pytest.mark.parametrize("threshold", [1, 3, 4.0])
    def test_a_threshold_says_which_ratings_are_relevant(self, threshold):
        data = hetero()
        edge_index = data[USER_ITEM].edge_index
        data[USER_ITEM].edge_label = torch.arange(edge_index.size(1)) % 6.0
        *_, test = PerUserSplit(num_val=0.0, num_test=0.5)(data)
        store = test[USER_ITEM]
        rated = zip(pairs_in_order(store.edge_label_index), store.edge_label.tolist(), strict=True)
        relevant = {pair: float(rating) for pair, rating in rated if rating >= threshold}
        made = RankingTask.from_data(test, threshold=threshold)
        assert dict(zip(pairs_in_order(made.truth), made.weight.tolist(), strict=True)) == relevant
        assert made.threshold == threshold
        homogeneous = test.to_homogeneous(node_attrs=[])
        homogeneous.edge_label_index = store.edge_label_index + torch.tensor([[0], [40]])
        homogeneous.edge_label = store.edge_label
        again = RankingTask.from_data(homogeneous, num_users=40, threshold=threshold)
        assert torch.equal(again.truth, made.truth)
        assert torch.equal(again.weight, made.weight)

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
            r"'edge_index' .*\(got 2 edges within one side\)",
        ),
    ],
)
def test_what_is_wrong_with_a_graph_is_named(make, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RankingTask.from_data(make(), **options)


@pytest.mark.usefixtures("_the_same_split_every_time")
class TestData:
    @pytest.mark.parametrize("negatives", [0.0, 1.0])
    def test_an_undirected_split(self, negatives):
        split = RandomLinkSplit(
            num_val=0.2,
            num_test=0.2,
            is_undirected=True,
            neg_sampling_ratio=negatives,
            disjoint_train_ratio=0.3,
        )
        for part in split(homogeneous()):
            made = RankingTask.from_data(part, num_users=40)
            positive = part.edge_label_index[:, part.edge_label == 1]
            assert pairs(made.truth) == {(u, i - 40) for u, i in pairs(positive)}
            assert pairs(made.seen) == {(u, i - 40) for u, i in pairs(part.edge_index) if u < 40}
            assert (made.num_users, made.num_items) == (40, 30)
            assert torch.equal(made.edge_index, part.edge_index)


NUM_USERS, NUM_ITEMS = 4, 6
SHIFT = torch.tensor([[0], [NUM_USERS]])
SEEN = torch.tensor([[0, 1, 2, 3, 3], [0, 3, 1, 2, 5]])
TRUTH_OF_GIVEN_EDGES = torch.tensor([[0, 0, 1, 3], [3, 5, 0, 4]])
MESSAGES = torch.cat([SEEN + SHIFT, (SEEN + SHIFT).flip([0])], dim=1)
COUNTS = {"num_users": NUM_USERS, "num_items": NUM_ITEMS}


def read(truth, **options):
    return Evaluator(truth, "mrr", **({"edge_index": MESSAGES} | COUNTS | options)).task


@pytest.mark.parametrize(
    "truth",
    [
        TRUTH_OF_GIVEN_EDGES,
        TRUTH_OF_GIVEN_EDGES + SHIFT,
        (TRUTH_OF_GIVEN_EDGES + SHIFT).flip([0]),
        torch.cat([TRUTH_OF_GIVEN_EDGES + SHIFT, (TRUTH_OF_GIVEN_EDGES + SHIFT).flip([0])], dim=1),
        EdgeIndex(TRUTH_OF_GIVEN_EDGES),
        scipy.sparse.coo_array(
            (np.ones(4), TRUTH_OF_GIVEN_EDGES.numpy()), shape=(NUM_USERS, NUM_ITEMS)
        ),
    ],
)
def test_edges_in_every_form_are_a_task(truth):
    wanted = RankingTask(TRUTH_OF_GIVEN_EDGES, seen=SEEN, **COUNTS)
    for exclude_seen in (None, True, False):
        task = read(truth, exclude_seen=exclude_seen)
        assert torch.equal(task.truth, wanted.truth)
        assert torch.equal(task.seen, wanted.seen)
        assert task.exclude_seen is (exclude_seen is not False)
        assert task.weight is None
        assert torch.equal(task.edge_index, MESSAGES)


def test_a_matrix_knows_its_shape_and_its_weights():
    ratings = scipy.sparse.coo_array(
        ([5, 1, 3, 4], TRUTH_OF_GIVEN_EDGES.numpy()), shape=(NUM_USERS, NUM_ITEMS)
    )
    task = Evaluator(ratings, "ndcg@2").task
    assert (task.num_users, task.num_items) == (NUM_USERS, NUM_ITEMS)
    order = torch.argsort(TRUTH_OF_GIVEN_EDGES[0], stable=True)
    assert torch.equal(task.truth, TRUTH_OF_GIVEN_EDGES[:, order])
    assert sorted(task.weight.tolist()) == [1, 3, 4, 5]
    with pytest.raises(ValueError, match=r"'data' needs to be a matrix of shape \[4, 7\]"):
        read(ratings, num_items=7)


@given(st.data(), st.integers(1, 6), st.integers(1, 12))
def test_a_numbering_is_recognised_or_refused(data, num_users, num_items):
    pairs = st.tuples(st.integers(0, num_users - 1), st.integers(0, num_items - 1))
    truth = torch.tensor(data.draw(st.lists(pairs, min_size=1, max_size=8))).t()
    counts = {"num_users": num_users, "num_items": num_items}
    wanted = RankingTask(truth, **counts).truth
    for edges in (truth, truth + torch.tensor([[0], [num_users]])):
        if num_users <= int(edges[1].min()) <= int(edges[1].max()) < num_items:
            with pytest.raises(ValueError, match="beyond doubt"):
                Evaluator(edges, "mrr", **counts)
        else:
            assert torch.equal(Evaluator(edges, "mrr", **counts).task.truth, wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_users": None}, "'num_users' needs to be given for edges"),
        ({"num_items": None}, "'num_items' needs to be given for edges"),
        ({"num_items": 0}, "'num_items' needs to be a positive integer"),
        ({"edge_index": SEEN}, "'edge_index' needs to connect users, numbered below 4"),
        ({"edge_index": MESSAGES + 1}, "'edge_index' needs to hold node ids"),
        ({"num_items": 5, "edge_index": None}, r"'data' needs to hold item ids in \[0, 5\)"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        read(TRUTH_OF_GIVEN_EDGES, **options)


def test_options_of_edges_are_none_for_what_knows_better():
    task = RankingTask(TRUTH_OF_GIVEN_EDGES, **COUNTS)
    with pytest.raises(ValueError, match="'exclude_seen' says how to read a graph or"):
        evaluate(torch.rand(6), task, "mrr", exclude_seen=False)
    data = Data(edge_index=MESSAGES, edge_label_index=TRUTH_OF_GIVEN_EDGES + SHIFT, num_nodes=10)
    with pytest.raises(ValueError, match="'num_items' needs to be None for a graph"):
        evaluate(torch.rand(6), data, "mrr", num_users=4, num_items=6)
    result = evaluate(torch.rand(6), data, "mrr", num_users=4, exclude_seen=False)
    assert result.task.exclude_seen is False
