"""The splits obey their laws on random graphs, and return data in PyG's own convention."""

import re
import warnings
from collections import Counter
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import assume, given, settings, strategies as st
from torch_geometric.data import HeteroData
from torch_geometric.nn import LightGCN

from pyg_recmetrics import evaluate
from pyg_recmetrics.transforms import (
    JoinedUsers,
    KCore,
    LeaveLastOut,
    PerUserSplit,
    SampledCandidates,
    SeparatedUsers,
    TemporalSplit,
    check_split,
)
from tests.support.cases.graphs import (
    FORMS,
    ITEM_USER,
    SPLITS,
    SPLITS_OF_USERS,
    USER_ITEM,
    WITHOUT_LEFT_OUT,
    Graph,
    apply_split,
    as_sets,
    count_by_user,
    edges_with_ids,
    interactions,
    message_passing,
    random_graphs,
    rounded,
    truth,
    truth_store,
)

pytestmark = WITHOUT_LEFT_OUT


@settings(max_examples=80)
@given(
    name=st.sampled_from([*SPLITS]),
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    data=st.data(),
)
def test_laws_of_all_splits(name, form, graph, data):
    parts = apply_split(SPLITS[name], graph, form)
    if parts is None:
        return
    train, val, test = parts

    # No truth, and no reverse of it, is for message passing in its part. Parts are disjoint.
    assert set(truth(train)) == message_passing(train)
    for part in (val, test):
        assert not set(truth(part)) & message_passing(part)
    assert not set(truth(train)) & set(truth(val))
    assert not set(truth(val)) & set(truth(test))
    assert not set(truth(train)) & set(truth(test))

    # Message-passing edges grow. Together with the truth of the test, they are everything.
    assert edges_with_ids(train) <= edges_with_ids(val) <= edges_with_ids(test)
    assert message_passing(val) == message_passing(train)
    assert set(truth(val)) <= message_passing(test)
    if "drop new" not in name:
        assert message_passing(test) == message_passing(train) | set(truth(val))
        assert message_passing(test) | set(truth(test)) == graph.pairs

    # Attributes follow their edges; in both directions there are the same edges.
    for part in parts:
        for user, item, edge_id in edges_with_ids(part):
            assert graph.edges[edge_id] == (user, item)
        counts = Counter()
        for store in part.edge_stores:
            times = [graph.times[edge_id] for edge_id in store.edge_id.tolist()]
            assert store.time.tolist() == times
            counts.update(store.edge_id.tolist())
        num_directions = 2 if form in ("hetero and reverse", "undirected") else 1
        assert set(counts.values()) <= {num_directions}

    # The order of the edges does not matter, nor does the form of the graph.
    order = data.draw(st.permutations(range(len(graph.edges))))
    assert as_sets(apply_split(SPLITS[name], graph, form, order)) == as_sets(parts)
    assert as_sets(apply_split(SPLITS[name], graph, "hetero")) == as_sets(parts)


@given(
    name=st.sampled_from([*SPLITS, *SPLITS_OF_USERS]),
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
)
def test_every_visit_comes_out_of_a_split_or_is_counted_and_no_split_reports_a_leak_of_its_own(
    name, form, graph
):
    split = (SPLITS | SPLITS_OF_USERS)[name]
    parts = None
    with warnings.catch_warnings(record=True) as caught, suppress(ValueError):
        warnings.simplefilter("always")
        parts = split(graph.data(form))
        report = check_split(*parts)
    if not parts:  # nothing to train with, or no user to evaluate
        return
    said = " ".join(str(warning.message) for warning in caught)
    counted = Counter({what: int(n) for n, what in re.findall(r"leaves (\d+) (\w+)", said)})
    if "drop new" not in name:
        num_out = len(edges_with_ids(parts[2])) + len(truth(parts[2]))
        assert num_out + counted["repeated"] == len(graph.edges)
    if name.startswith("last") and split.time_attr:
        num_earlier = 0
        for part in parts[1:]:
            visits = [*zip(truth(part), truth_store(part).edge_label_time.tolist(), strict=True)]
            last = dict(sorted(visits, key=lambda visit: visit[1]))
            num_earlier += sum(time < last[pair] for pair, time in visits)
        assert counted["earlier"] == num_earlier
    assert not any((report.has_leaks, report.val.num_later, report.test.num_later))


@pytest.mark.parametrize("name", SPLITS)
def test_a_split_is_the_same_on_every_device_and_the_global_state_stays(name, device):
    data = interactions()
    state = torch.random.get_rng_state()
    parts = SPLITS[name](data.to(device))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert {part[USER_ITEM].edge_label_index.device.type for part in parts} == {device.type}
    for part, again in zip(parts, SPLITS[name](data.cpu()), strict=True):
        assert torch.equal(part[USER_ITEM].edge_index.cpu(), again[USER_ITEM].edge_index)
        assert torch.equal(part[ITEM_USER].edge_index.cpu(), again[ITEM_USER].edge_index)
        assert torch.equal(
            part[USER_ITEM].edge_label_index.cpu(), again[USER_ITEM].edge_label_index
        )


class TestConvention:
    def test_labels_and_times_follow(self):
        data = interactions()
        data[USER_ITEM].edge_label = torch.arange(data[USER_ITEM].num_edges) % 5
        pairs = map(tuple, data[USER_ITEM].edge_index.t().tolist())
        old = dict(zip(pairs, data[USER_ITEM].edge_label.tolist(), strict=True))
        parts = TemporalSplit()(data)
        for part in parts:
            store = part[USER_ITEM]
            assert store.edge_label.tolist() == [old[pair] for pair in truth(part)]
            assert store.edge_label_time.shape == store.edge_label.shape
        assert parts[0][USER_ITEM].edge_label_time.max() < parts[1][USER_ITEM].edge_label_time.min()
        assert parts[1][USER_ITEM].edge_label_time.max() < parts[2][USER_ITEM].edge_label_time.min()

    def test_an_earlier_split_leaves_no_trace(self):
        data = interactions()
        *_, earlier = PerUserSplit(users=SeparatedUsers())(data)
        earlier = SampledCandidates(5)(earlier)
        earlier[USER_ITEM].neg_edge_label_index = earlier[USER_ITEM].edge_label_index
        earlier[USER_ITEM].neg_edge_label = earlier[USER_ITEM].edge_label
        for part in PerUserSplit()(earlier):
            assert set(part[USER_ITEM].keys()) == {
                "edge_index",
                "time",
                "edge_label",
                "edge_label_index",
            }
            assert "eval_mask" not in part["user"]
        assert "candidate_edge_index" in earlier[USER_ITEM]

    def test_the_data_is_left_as_it_was(self):
        data = interactions()
        before = data.to_dict()
        for transform in SPLITS.values():
            transform(data)
        PerUserSplit(users=JoinedUsers())(data)
        KCore(3)(data)
        after = data.to_dict()
        assert str(before) == str(after)

    @pytest.mark.parametrize("transform", [*SPLITS.values(), *SPLITS_OF_USERS.values()])
    def test_parts_are_evaluated_as_they_are(self, transform):
        data = interactions()
        homogeneous = data.to_homogeneous()
        homogeneous.num_users = 60
        model = LightGCN(100, embedding_dim=8, num_layers=2)
        results = []
        for graph in (data, homogeneous):
            *_, test = transform(graph)
            results.append(evaluate(model, test, ["recall@5", "r_precision"]).to_dict())
        assert results[0] == results[1]


@pytest.mark.parametrize("users", [None, SeparatedUsers(fraction=0.5), JoinedUsers(fraction=0.5)])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("how", [PerUserSplit, partial(LeaveLastOut, time_attr=None)])
def test_a_matrix_is_split_as_its_graph_into_parts_that_add_up(users, form, how):
    whole = scipy.sparse.random_array((40, 30), density=0.3, rng=0, format=form) * 5
    split = how(num_val=0.1, num_test=0.3, users=users)
    matrices = split(whole)
    assert abs(sum(matrices) - whole).max() == 0
    for matrix in matrices:
        assert (matrix.shape, matrix.format, matrix.dtype) == (whole.shape, form, whole.dtype)
    edges = torch.from_numpy(whole.toarray()).nonzero().t()
    graph = HeteroData({"user": {"num_nodes": 40}, "item": {"num_nodes": 30}})
    graph["user", "to", "item"].edge_index = edges
    parts = split(graph)
    train, val, test = (part["user", "to", "item"] for part in parts)
    wanted = [train.edge_index, val.edge_label_index, test.edge_label_index]
    if isinstance(users, SeparatedUsers):
        is_drawn = parts[1]["user"].eval_mask[val.edge_index[0]]
        wanted.insert(1, val.edge_index[:, is_drawn])
    row = parts[0]["user"].get("n_id", torch.arange(40))
    for matrix, edges in zip(matrices, wanted, strict=True):
        dense = np.zeros(whole.shape)
        user, item = row[edges[0]].numpy(), edges[1].numpy()
        dense[user, item] = whole.toarray()[user, item]
        assert np.array_equal(matrix.toarray(), dense)


def test_what_is_left_out_is_counted():
    edges = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]
    data = Graph(3, 3, edges, [1, 2, 3, 4, 5]).data("hetero")
    with pytest.warns(UserWarning, match=r"KCore\(k=2\) leaves out 1 of 3 users and 1 of 3 items"):
        KCore(2)(data)
    with pytest.warns(UserWarning, match="leaves 1 edges of new users or items out of the truth"):
        *_, test = TemporalSplit(num_val=0, num_test=1, new_users="drop")(data)
    assert test["rates"].edge_label_index.numel() == 0
    *_, test = PerUserSplit(num_test=1)(data)
    with pytest.warns(UserWarning, match="fewer items than it is to sample for 2 of 2 users"):
        SampledCandidates(2)(test)


ALL_SPLITS = pytest.mark.parametrize("split", [PerUserSplit, LeaveLastOut, TemporalSplit])
FRACTIONS = st.floats(0.05, 0.9)


def held_out(num_items, val, test):
    """How many items of a user validate and test, in plain Python."""
    keeps_an_item = (type(val) is int and val > 0) or type(test) is int
    available = max(num_items - 1, 0) if keeps_an_item else num_items
    wanted = [
        amount if type(amount) is int else rounded(num_items, amount) for amount in (val, test)
    ]
    num_test = min(wanted[1], available)
    return min(wanted[0], available - num_test), num_test


@settings(max_examples=60)
@given(
    split=st.sampled_from([PerUserSplit, LeaveLastOut]),
    form=st.sampled_from(FORMS),
    graph=random_graphs(),
    val=st.one_of(st.just(0.0), FRACTIONS, st.integers(0, 3)),
    test=st.one_of(FRACTIONS, st.integers(1, 3)),
)
def test_amounts_of_each_user(split, form, graph, val, test):
    assume(isinstance(val, int) or isinstance(test, int) or val + test < 1)
    parts = split(num_val=val, num_test=test)(graph.data(form))
    counts = [count_by_user(set(truth(part))) for part in parts]
    for user in range(graph.num_users):
        num_items = len(graph.items(user))
        num_val, num_test = held_out(num_items, val, test)
        expected = [num_items - num_val - num_test, num_val, num_test]
        assert [count[user] for count in counts] == expected
        if num_items and (type(test) is int or (type(val) is int and val > 0)):
            assert counts[0][user] >= 1


@ALL_SPLITS
def test_fractions_leave_something_to_train_with(split):
    with pytest.raises(ValueError, match=r"need to sum to less than one \(got 0.5 and 0.5\)"):
        split(num_val=0.5, num_test=0.5)
    split(num_val=3, num_test=0.9)
    split(num_val=0.9, num_test=3)


NUM_TEST = r"'num_test' needs to be a positive integer or a fraction in \(0, 1\) \(got "
NUM_VAL = r"'num_val' needs to be a non-negative integer or a fraction in \[0, 1\) \(got "


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        *(
            (split, {name: value}, message)
            for split in (PerUserSplit, LeaveLastOut, TemporalSplit)
            for name, message, values in (
                ("num_test", NUM_TEST, (0, 0.0, 1.0, -0.1, float("nan"), True, "a", None)),
                ("num_val", NUM_VAL, (-1, 1.0, -0.1, float("nan"), False, "a", None)),
            )
            for value in values
        ),
        (PerUserSplit, {"users": SeparatedUsers}, r"'users' needs to be 'SeparatedUsers\("),
        (PerUserSplit, {"seed": -1}, "'seed' needs to be a non-negative integer"),
        (TemporalSplit, {"new_users": "ignore"}, r"'new_users' .*\['keep', 'drop'\]"),
        (TemporalSplit, {"new_items": None}, r"'new_items' .*\(got None\)"),
        (SeparatedUsers, {"fraction": 2}, r"'fraction' needs to be a number .* \(got 2\)"),
        (JoinedUsers, {"max_users": 0}, "'max_users' needs to be a positive"),
        (SeparatedUsers, {"min_pos_test": -1}, "'min_pos_test' needs to be a non-negative"),
        (JoinedUsers, {"min_items_pool": 0.5}, "'min_items_pool' needs to be a non-neg"),
        (JoinedUsers, {"consider_cold_start": "no"}, "'consider_cold_start' needs to be a boolean"),
        (KCore, {"k": 0}, "'k' needs to be a positive integer"),
        (SampledCandidates, {"num_negatives": 0}, "'num_negatives' needs to be a positive integer"),
        (SampledCandidates, {"popularity": float("nan")}, "'popularity' needs to be a finite"),
    ],
)
def test_what_is_wrong_is_named(make, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(**options)


@ALL_SPLITS
def test_a_published_test_is_not_lost_in_silence(split):
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = 3, 9
    store = data["user", "rates", "item"]
    store.edge_index = torch.stack([torch.arange(24) % 3, torch.arange(24) // 3])
    store.time = torch.arange(24)
    store.edge_label_index = store.edge_index[:, ::2]
    parts = split(num_val=0.25, num_test=0.25)(data)  # where nothing is beside the edges
    split(num_val=0.25, num_test=0.25)(parts[0])
    store.edge_label_index = torch.tensor([[0, 1, 2, 2], [8, 8, 8, 0]])
    with pytest.warns(UserWarning, match="leaves out 3 ground-truth edges"):
        split(num_val=0.25, num_test=0.25)(data)
