"""RankingTask: from raw tensors, and from every kind of split that PyG makes."""

import inspect
import random
import warnings

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import RandomLinkSplit, ToUndirected

from pyg_recmetrics import RankingTask, datasets

TRUTH = torch.tensor([[0, 0, 1], [2, 3, 0]])
USER_ITEM = ("user", "rates", "item")


@pytest.fixture(autouse=True)
def _the_same_split_every_time():
    """Seeds the global generators, from which PyG's split draws."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def task(truth=TRUTH, num_users=3, num_items=4, **options):
    return RankingTask(truth, num_users=num_users, num_items=num_items, **options)


def pairs(edges):
    return set(zip(*edges.tolist(), strict=True))


class TestRawTensors:
    def test_repeated_edges_are_one_edge_of_the_largest_weight(self):
        made = task(
            torch.tensor([[1, 0, 1, 1], [2, 3, 2, 2]]), weight=torch.tensor([1.0, 1.0, 5.0, 2.0])
        )
        assert made.truth.tolist() == [[0, 1], [3, 2]]
        assert made.weight.tolist() == [1, 5]

    def test_edges_without_positive_weight_are_not_truth(self):
        made = task(weight=torch.tensor([0, -1, 2]))
        assert pairs(made.truth) == {(1, 0)}

    def test_truth_that_is_seen_is_taken_out_with_one_warning(self):
        seen = torch.tensor([[0, 0, 2], [3, 1, 0]])
        with pytest.warns(UserWarning, match="^1 of 3 ground-truth edges are also in 'seen'") as w:
            made = task(seen=seen)
        assert len(w) == 1
        assert pairs(made.truth) == {(0, 2), (1, 0)}
        assert made.degree.tolist() == [1, 1, 0]

    def test_truth_that_is_no_candidate_is_taken_out_with_a_warning(self):
        with pytest.warns(UserWarning, match=r"^1 of 3 .* not among the 'candidates'"):
            made = task(candidates=torch.tensor([2, 0, 2]))
        assert pairs(made.truth) == {(0, 2), (1, 0)}
        assert made.num_candidates.tolist() == [2, 2, 2]

    def test_candidates_of_each_user(self):
        candidates = torch.tensor([[0, 0, 0, 1, 1], [2, 3, 1, 0, 0]])
        made = task(candidates=candidates, seen=torch.tensor([[0, 0], [1, 0]]))
        assert made.num_candidates.tolist() == [2, 1, 0]

    def test_other_users_are_not_looked_at(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = task(users=torch.tensor([1, 1]), seen=torch.tensor([[0], [2]]))
        assert pairs(made.truth) == {(1, 0)}
        assert made.users.tolist() == [1]

    def test_32_bit_integers_are_as_good(self):
        assert torch.equal(task(TRUTH.int()).truth, task().truth)

    def test_printing(self):
        assert repr(task(candidates=torch.arange(4), users=torch.tensor([0, 1]))) == (
            "RankingTask(num_users=3, num_items=4, truth=[2, 3], candidates=[4], users=[2])"
        )

    def test_moving_to_a_device(self, device):
        moved = task(seen=torch.tensor([[2], [0]])).to(device)
        assert {moved.device.type, moved.truth.device.type, moved.users.device.type} == {
            device.type
        }
        assert moved.num_items == 4


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"truth": [[0], [1]]}, TypeError, r"'truth' needs to be a tensor \(got list\)"),
        ({"truth": TRUTH.float()}, ValueError, r"'truth' needs to hold integers .*float32"),
        ({"truth": TRUTH.bool()}, ValueError, r"'truth' needs to hold integers .*bool"),
        ({"truth": TRUTH.t()}, ValueError, r"\[2, num_edges\] \(got \[3, 2\]\)"),
        ({"truth": TRUTH[0]}, ValueError, r"\[2, num_edges\] \(got \[3\]\)"),
        ({"truth": TRUTH - 1}, ValueError, r"user ids in \[0, 3\) \(got -1\)"),
        ({"num_users": 1}, ValueError, r"'truth' .* user ids in \[0, 1\) \(got 1\)"),
        ({"num_items": 3}, ValueError, r"'truth' .* item ids in \[0, 3\) \(got 3\)"),
        ({"num_items": 0}, ValueError, r"'num_items' needs to be a positive integer \(got 0\)"),
        ({"num_users": 2.0}, ValueError, r"'num_users' needs to be a positive integer"),
        ({"seen": TRUTH + 4}, ValueError, r"'seen' needs to hold user ids"),
        ({"weight": torch.ones(2)}, ValueError, r"'weight' .* shape \[3\].*\(got \[2\]\)"),
        ({"weight": torch.tensor([1, torch.nan, torch.inf])}, ValueError, "got 2 NaN or inf"),
        ({"candidates": torch.tensor([4])}, ValueError, r"'candidates' .* item ids .*\(got 4\)"),
        ({"candidates": torch.tensor([1.0])}, ValueError, "'candidates' needs to hold integers"),
        ({"users": torch.tensor([3])}, ValueError, r"'users' .* user ids in \[0, 3\) \(got 3\)"),
        ({"users": TRUTH}, ValueError, r"'users' needs to have shape \[num_users\]"),
        ({"users": torch.tensor([2])}, ValueError, "no user has one"),
        ({"truth": TRUTH[:, :0]}, ValueError, "no user has one"),
        ({"weight": torch.zeros(3)}, ValueError, "no user has one"),
    ],
)
def test_wrong_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        task(**options)


def test_tensors_on_different_devices_are_named():
    with pytest.raises(ValueError, match=r"'seen' .* device of 'truth', cpu \(got meta\)"):
        task(seen=TRUTH.to("meta")[:, :0])


def hetero():
    data = datasets.synthetic_interactions(num_users=40, num_items=30, mean_degree=6, seed=1)
    return data


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

    def test_ratings_become_weights(self):
        data = hetero()
        edge_index = data[USER_ITEM].edge_index
        data[USER_ITEM].edge_label = torch.arange(edge_index.size(1)) % 6
        split = RandomLinkSplit(
            num_val=0.0, num_test=0.5, edge_types=USER_ITEM, neg_sampling_ratio=0.0
        )
        *_, test = split(data)
        made = RankingTask.from_data(test)
        store = test[USER_ITEM]
        rating = {
            pair: label
            for pair, label in zip(
                zip(*store.edge_label_index.tolist(), strict=True),
                store.edge_label.tolist(),
                strict=True,
            )
            if label > 0
        }
        got = dict(zip(zip(*made.truth.tolist(), strict=True), made.weight.tolist(), strict=True))
        assert got == rating

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
        assert made.seen.size(1) == 0

    def test_candidates_and_users_are_passed_on(self):
        *_, test = RandomLinkSplit(edge_types=USER_ITEM)(hetero())
        made = RankingTask.from_data(test, users=torch.tensor([0, 1]), candidates=torch.arange(30))
        assert made.users.tolist() == [0, 1]
        assert made.candidates.numel() == 30

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

    def test_a_labelled_reverse_type_is_not_taken_for_the_real_one(self):
        *_, test = RandomLinkSplit(
            edge_types=USER_ITEM, rev_edge_types=("item", "rev_rates", "user")
        )(ToUndirected()(hetero()))
        reverse = test["item", "rev_rates", "user"]
        reverse.edge_label_index = test[USER_ITEM].edge_label_index.flip([0])
        assert RankingTask.from_data(test).num_users == 40

    def test_what_is_missing_is_named(self):
        data = hetero()
        with pytest.raises(ValueError, match=r"'edge_label_index' .*'rates'"):
            RankingTask.from_data(data)
        with pytest.raises(ValueError, match=r"one of \[\('user', 'rates', 'item'\)\] \(got"):
            RankingTask.from_data(data, ("user", "likes", "item"))
        with pytest.raises(ValueError, match="'edge_label_index'"):
            RankingTask.from_data(data, USER_ITEM)
        with pytest.raises(ValueError, match="'num_users' applies to homogeneous"):
            RankingTask.from_data(data, num_users=40)
        with pytest.raises(TypeError, match=r"'Data' or 'HeteroData' object \(got dict\)"):
            RankingTask.from_data({})

    def test_an_unknown_number_of_nodes_is_named(self):
        data = HeteroData()
        data[USER_ITEM].edge_label_index = TRUTH
        data[USER_ITEM].edge_index = TRUTH
        with (
            pytest.warns(UserWarning, match="Unable to accurately infer"),
            pytest.raises(ValueError, match=r"'data\['user'\].num_nodes' needs to be set"),
        ):
            RankingTask.from_data(data)

    def test_message_passing_edges_are_needed(self):
        data = hetero()
        data[USER_ITEM].edge_label_index = data[USER_ITEM].edge_index
        del data[USER_ITEM].edge_index
        with pytest.raises(ValueError, match="message-passing edges as 'edge_index'"):
            RankingTask.from_data(data)


def homogeneous():
    forward = hetero()[USER_ITEM].edge_index + torch.tensor([[0], [40]])
    return Data(edge_index=torch.cat([forward, forward.flip([0])], dim=1), num_nodes=70)


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

    def test_a_split_that_leaks_through_reverse_edges(self):
        *_, test = RandomLinkSplit(num_val=0.0, num_test=0.2, neg_sampling_ratio=0.0)(homogeneous())
        with pytest.warns(UserWarning, match="ground-truth edges are also in 'seen'"):
            made = RankingTask.from_data(test, num_users=40)
        either = {(min(e), max(e) - 40) for e in pairs(test.edge_label_index)}
        seen = {(min(e), max(e) - 40) for e in pairs(test.edge_index)}
        assert pairs(made.truth) == either - seen

    def test_the_number_of_users_is_needed(self):
        *_, test = RandomLinkSplit(is_undirected=True)(homogeneous())
        with pytest.raises(ValueError, match="'num_users' needs to be given"):
            RankingTask.from_data(test)
        with pytest.raises(ValueError, match=r"less than the number of nodes 70 \(got 70\)"):
            RankingTask.from_data(test, num_users=70)
        with pytest.raises(ValueError, match="'edge_type' applies to 'HeteroData'"):
            RankingTask.from_data(test, USER_ITEM, num_users=40)

    def test_edges_within_one_side_are_counted(self):
        *_, test = RandomLinkSplit(is_undirected=True)(homogeneous())
        with pytest.raises(ValueError, match=r"'edge_label_index' needs to connect users"):
            RankingTask.from_data(test, num_users=10)
        test.edge_index = torch.tensor([[0, 0, 50], [1, 45, 51]])
        with pytest.raises(ValueError, match=r"'edge_index' .*\(got 2 edges within one side\)"):
            RankingTask.from_data(test, num_users=40)

    def test_ground_truth_is_needed(self):
        with pytest.raises(ValueError, match="'edge_label_index'"):
            RankingTask.from_data(homogeneous(), num_users=40)


class TestToDict:
    def make_task(self):
        """A task in which no argument has its default."""
        return task(
            seen=torch.tensor([[0, 1, 2], [0, 1, 1]]),
            weight=torch.tensor([1.0, 2.5, 3.0]),
            candidates=torch.tensor([0, 2, 3]),
            users=torch.tensor([0, 1]),
        )

    def test_it_holds_every_argument(self):
        parameters = inspect.signature(RankingTask).parameters
        fields = self.make_task().to_dict()
        assert set(fields) == set(parameters)
        for name, parameter in parameters.items():
            assert fields[name] is not parameter.default, name

    def test_a_task_that_is_made_of_it_is_the_same(self):
        made = self.make_task()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = RankingTask(**made.to_dict())
        assert vars(again).keys() == vars(made).keys()
        for name, value in vars(made).items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(getattr(again, name), value), name
                assert getattr(again, name).dtype == value.dtype, name
            elif name != "catalogue":
                assert getattr(again, name) == value, name
        assert torch.equal(again.catalogue.seen, made.catalogue.seen)
        assert repr(again) == repr(made)

    def test_of_some_users_only(self):
        made = task().select_users(torch.tensor([0]))
        again = RankingTask(**made.to_dict())
        assert again.users.tolist() == [0]
        assert torch.equal(again.truth, made.truth)
