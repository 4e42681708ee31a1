"""The splits obey their laws on random graphs in every form that PyG has for them."""

import math
from collections import Counter
from dataclasses import dataclass

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader
from torch_geometric.nn import LightGCN
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.transforms import Compose, RandomLinkSplit, ToUndirected

from pyg_recmetrics import RankingTask, datasets, evaluate
from pyg_recmetrics.transforms import (
    KCore,
    LeaveLastOut,
    PerUserSplit,
    SampledCandidates,
    TemporalSplit,
    check_split,
)

USER_ITEM = ("user", "rates", "item")
ITEM_USER = ("item", "rev_rates", "user")
FORMS = ("hetero", "hetero and reverse", "homogeneous", "undirected", "backward")


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
        edges = [self.edges[place] for place in order]
        edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
        attributes = {
            "time": torch.tensor([self.times[place] for place in order], dtype=torch.long),
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
def graphs(draw, max_users=5, max_items=7, max_edges=25):
    num_users, num_items = draw(st.integers(1, max_users)), draw(st.integers(1, max_items))
    edge = st.tuples(st.integers(0, num_users - 1), st.integers(0, num_items - 1))
    edges = draw(st.lists(edge, min_size=1, max_size=max_edges))
    edges += draw(st.lists(st.sampled_from(edges), max_size=4))  # repeated ones
    # PyG takes attributes for those of nodes if there are as many nodes as edges.
    assume(num_users + num_items not in (len(edges), 2 * len(edges)))
    times = draw(st.lists(st.integers(0, 12), min_size=len(edges), max_size=len(edges)))
    return Graph(num_users, num_items, edges, times)


def stores(part, kind="edge_index"):
    """The user-item edges of a part, as `(user, item, edge_id)`, of all its stores."""
    found = set()
    for store in part.edge_stores:
        ids = store.edge_id.tolist()
        for (one, other), edge_id in zip(store.edge_index.t().tolist(), ids, strict=True):
            if isinstance(part, Data):
                user, item = sorted((one, other))
                found.add((user, item - part.num_users, edge_id))
            elif store._key == USER_ITEM:
                found.add((one, other, edge_id))
            else:
                found.add((other, one, edge_id))
    return found


def known(part):
    return {(user, item) for user, item, _ in stores(part)}


def truth(part):
    """The truth as a list, so that what is repeated can be counted."""
    store = part if isinstance(part, Data) else part[USER_ITEM]
    shift = part.num_users if isinstance(part, Data) else 0
    return [(user, item - shift) for user, item in store.edge_label_index.t().tolist()]


def as_sets(parts):
    return [(frozenset(stores(part)), frozenset(Counter(truth(part)).items())) for part in parts]


def per_user(pairs):
    return Counter(user for user, _ in pairs)


SPLITS = {
    "per user": PerUserSplit(test=0.3, val=0.2, seed=1),
    "last": LeaveLastOut(k=2, val=1),
    "random last": LeaveLastOut(time_attr=None, seed=3),
    "temporal": TemporalSplit(val=0.2, test=0.3),
    "temporal, known only": TemporalSplit(test=0.4, new_users="drop", new_items="drop"),
}


def split(transform, graph, form, order=None):
    """The parts, or `None` where there is nothing to train with."""
    if isinstance(transform, TemporalSplit):
        shares = (transform.val, transform.test)
        if sum(math.floor(len(graph.pairs) * share + 0.5) for share in shares) >= len(graph.pairs):
            with pytest.raises(ValueError, match="left to train with"):
                transform(graph.data(form, order))
            return None
    return transform(graph.data(form, order))


@pytest.mark.parametrize("name", SPLITS)
@given(form=st.sampled_from(FORMS), graph=graphs(), data=st.data())
def test_laws_of_all_splits(name, form, graph, data):
    parts = split(SPLITS[name], graph, form)
    if parts is None:
        return
    train, val, test = parts

    # No truth, and no reverse of it, is known in its part. Parts are disjoint.
    assert set(truth(train)) == known(train)
    for part in (val, test):
        assert not set(truth(part)) & known(part)
    assert not set(truth(train)) & set(truth(val))
    assert not set(truth(val)) & set(truth(test))
    assert not set(truth(train)) & set(truth(test))

    # What is known grows; together with the truth of the test, it is everything.
    assert stores(train) <= stores(val) <= stores(test)
    assert known(val) == known(train)
    assert set(truth(val)) <= known(test)
    if "known only" not in name:
        assert known(test) == known(train) | set(truth(val))
        assert known(test) | set(truth(test)) == graph.pairs

    # Attributes follow their edges; in both directions there are the same edges.
    for part in parts:
        for user, item, edge_id in stores(part):
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
    assert as_sets(split(SPLITS[name], graph, form, order)) == as_sets(parts)
    assert as_sets(split(SPLITS[name], graph, "hetero")) == as_sets(parts)


@given(
    form=st.sampled_from(FORMS),
    graph=graphs(),
    test=st.floats(0.05, 0.94),
    share=st.floats(0, 0.9),
    seed=st.integers(0, 5),
)
def test_users_are_split_by_exact_counts(form, graph, test, share, seed):
    val = share * (1 - test)
    _, val_data, test_data = PerUserSplit(test=test, val=val, seed=seed)(graph.data(form))
    for user in range(graph.num_users):
        num_items = len(graph.items(user))
        for part, fraction in ((val_data, val), (test_data, test)):
            product = num_items * fraction
            rounded = math.floor(product) + (product - math.floor(product) >= 0.5)
            assert per_user(set(truth(part)))[user] == rounded


@given(form=st.sampled_from(FORMS), graph=graphs(), k=st.integers(1, 3), val=st.integers(0, 2))
def test_the_last_items_are_left_out(form, graph, k, val):
    parts = LeaveLastOut(k=k, val=val)(graph.data(form))
    for user in range(graph.num_users):
        last = {}
        for (other, item), time in zip(graph.edges, graph.times, strict=True):
            if other == user:
                last[item] = max(time, last.get(item, time))
        mine = [{item for other, item in set(truth(part)) if other == user} for part in parts]
        if last:
            num_test = min(k, len(last) - 1)
            num_val = min(val, len(last) - 1 - num_test)
            assert [len(items) for items in mine[1:]] == [num_val, num_test]
        for earlier, later in ((0, 1), (1, 2), (0, 2)):
            for one in mine[earlier]:
                for other in mine[later]:
                    assert last[one] <= last[other]


@given(form=st.sampled_from(FORMS), graph=graphs(), val=st.floats(0, 0.4), test=st.floats(0.1, 0.5))
def test_the_future_never_trains_the_past(form, graph, val, test):
    parts = split(TemporalSplit(val=val, test=test), graph, form)
    if parts is None:
        return
    first = {}
    for pair, time in zip(graph.edges, graph.times, strict=True):
        first[pair] = min(time, first.get(pair, time))
    for part in parts[1:]:
        for pair in truth(part):
            for *_, edge_id in stores(part):
                assert graph.times[edge_id] < first[pair]
    for earlier, later in ((0, 1), (1, 2), (0, 2)):
        for one in truth(parts[earlier]):
            for other in truth(parts[later]):
                assert first[one] < first[other]
    # Nothing but edges of the same moment makes a part smaller, and nothing larger.
    ordered = sorted(first.values())
    num_test = math.floor(len(first) * test + 0.5)
    num_val = math.floor(len(first) * val + 0.5)
    cut = ordered[len(ordered) - num_test - 1]
    assert len(set(truth(parts[2]))) == sum(time > cut for time in ordered) <= num_test
    last_of_train = ordered[len(ordered) - num_test - num_val - 1]
    assert known(parts[0]) == {pair for pair, time in first.items() if time <= last_of_train}


@given(form=st.sampled_from(FORMS), graph=graphs())
def test_truth_of_who_is_new_can_be_dropped(form, graph):
    kept = split(TemporalSplit(val=0.3, test=0.3), graph, form)
    if kept is None:
        return
    for options, position in (({"new_users": "drop"}, 0), ({"new_items": "drop"}, 1)):
        parts = TemporalSplit(val=0.3, test=0.3, **options)(graph.data(form))
        for part, whole in zip(parts, kept, strict=True):
            assert stores(part) == stores(whole)
            old = {pair[position] for pair in known(whole)}
            assert truth(part) == [pair for pair in truth(whole) if pair[position] in old]


def test_a_repetition_is_neither_truth_nor_known_before_its_time():
    graph = Graph(1, 3, [(0, 0), (0, 1), (0, 0), (0, 2)], [1, 2, 3, 4])
    train, val, test = TemporalSplit(val=0.0, test=1 / 3)(graph.data("hetero"))
    assert {edge_id for *_, edge_id in stores(train)} == {0, 1}
    assert {edge_id for *_, edge_id in stores(test)} == {0, 1}
    assert truth(test) == [(0, 2)]
    train, val, test = TemporalSplit(val=1 / 3, test=1 / 3)(
        Graph(1, 3, [(0, 0), (0, 1), (0, 0), (0, 2)], [1, 2, 2, 4]).data("hetero")
    )
    assert [truth(part) for part in (train, val, test)] == [[(0, 0)], [(0, 1)], [(0, 2)]]
    assert {edge_id for *_, edge_id in stores(val)} == {0}
    assert {edge_id for *_, edge_id in stores(test)} == {0, 1, 2}


def test_a_reverse_edge_without_time_has_that_of_its_edge():
    graph = Graph(2, 3, [(0, 0), (0, 1), (1, 0), (1, 2), (0, 2)], [5, 1, 4, 2, 3])
    data = graph.data("hetero and reverse")
    expected = as_sets(TemporalSplit(val=0.2, test=0.4)(data))
    del data[ITEM_USER].time
    assert as_sets(TemporalSplit(val=0.2, test=0.4)(data)) == expected
    assert as_sets(LeaveLastOut()(data)) == as_sets(
        LeaveLastOut()(graph.data("hetero and reverse"))
    )


def test_a_reverse_edge_without_time_is_not_known_before_all_repetitions():
    graph = Graph(1, 3, [(0, 0), (0, 0), (0, 1), (0, 2)], [1, 9, 2, 5])
    data = graph.data("hetero and reverse")
    del data[ITEM_USER].time
    train, _, test = TemporalSplit(val=0.0, test=1 / 3)(data)
    for part in (train, test):
        assert part[USER_ITEM].edge_index.tolist() == [[0, 0], [0, 1]]
        assert part[ITEM_USER].edge_index.tolist() == [[1], [0]]


def test_times_are_those_of_edges_even_if_there_are_as_many_nodes():
    data = Data(num_nodes=5, num_users=2, time=torch.arange(5))
    data.edge_index = torch.tensor([[0, 0, 0, 1, 1], [2, 3, 4, 2, 3]])
    for part, num_edges in zip(TemporalSplit(0.2, 0.2)(data), (3, 3, 4), strict=True):
        assert part.time.tolist() == list(range(num_edges))


def eligible(graph, test, options):
    users = []
    for user in range(graph.num_users):
        degree = len(graph.items(user))
        product = degree * test
        num_test = math.floor(product) + (product - math.floor(product) >= 0.5)
        if (
            degree > 0
            and num_test >= options["min_pos_test"]
            and graph.num_items - (degree - num_test) >= options["min_items_pool"]
            and (num_test < degree or options["consider_cold_start"])
            and graph.num_items - degree >= 2
        ):
            users.append(user)
    return users


@given(
    form=st.sampled_from(FORMS),
    graph=graphs(max_users=8, max_edges=40),
    test=st.sampled_from([0.25, 0.3, 0.5, 0.9]),
    users=st.sampled_from([(0.5, None), (None, 2), (0.9, 3), (None, None), (0.01, 10)]),
    options=st.fixed_dictionaries(
        {
            "min_pos_test": st.integers(0, 2),
            "min_items_pool": st.integers(0, 6),
            "consider_cold_start": st.booleans(),
        }
    ),
    seed=st.integers(0, 3),
)
def test_users_are_drawn_and_either_separated_or_joined(form, graph, test, users, options, seed):
    fraction, most = users
    arguments = dict(
        test=test, users_test_fraction=fraction, max_test_users=most, seed=seed, **options
    )
    can_be_drawn = eligible(graph, test, options)
    data = graph.data(form)
    if not can_be_drawn:
        with pytest.raises(ValueError, match="a user who can be evaluated"):
            PerUserSplit(split_type="separated", **arguments)(data)
        return
    train, val, test_part = PerUserSplit(split_type="separated", **arguments)(data)
    num_drawn = graph.num_users if most is None else most
    if fraction is not None:
        num_drawn = min(num_drawn, max(1, round(graph.num_users * fraction)))
    mask = (test_part if isinstance(data, Data) else test_part["user"]).eval_mask
    drawn = mask.nonzero().flatten().tolist()
    assert len(drawn) == min(num_drawn, len(can_be_drawn))
    assert set(drawn) <= set(can_be_drawn)

    # The remainder has all of the others; the test has that and what is left of the drawn ones.
    assert known(train) == {pair for pair in graph.pairs if pair[0] not in drawn}
    assert known(test_part) | set(truth(test_part)) == graph.pairs
    assert {user for user, _ in truth(test_part)} <= set(drawn)
    assert known(val) == known(test_part)
    assert set(truth(train)) == known(train)
    assert not truth(val)
    for user in drawn:
        num_items = len(graph.items(user))
        product = num_items * test
        rounded = math.floor(product) + (product - math.floor(product) >= 0.5)
        assert per_user(set(truth(test_part)))[user] == rounded

    # Joined: the same, but for what is known in training, and for the numbers of users.
    joined = PerUserSplit(split_type="joined", **arguments)(data)
    order = drawn + [user for user in range(graph.num_users) if user not in drawn]
    for part in joined:
        ids = part.n_id if isinstance(part, Data) else part["user"].n_id
        features = part.x if isinstance(part, Data) else part["user"].x
        assert ids[: graph.num_users].tolist() == order
        assert torch.equal(features, ids)
    renamed = {(order[user], item) for user, item in set(truth(joined[2]))}
    assert renamed == set(truth(test_part))
    assert {(order[user], item) for user, item in known(joined[2])} == known(test_part)
    assert known(joined[0]) == known(joined[2])
    mask = (joined[2] if isinstance(data, Data) else joined[2]["user"]).eval_mask
    assert mask.nonzero().flatten().tolist() == list(range(len(drawn)))


def interactions(**options):
    return ToUndirected()(datasets.synthetic_interactions(60, 40, mean_degree=8, **options))


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


def test_seeds_make_different_splits():
    data = interactions()
    made = {
        tuple(PerUserSplit(seed=seed)(data)[2]["rates"].edge_label_index[1].tolist())
        for seed in range(5)
    }
    assert len(made) == 5


def test_every_user_can_be_drawn():
    data = interactions()
    times_drawn = torch.zeros(60)
    for seed in range(50):
        split_users = PerUserSplit(split_type="separated", users_test_fraction=0.5, seed=seed)
        times_drawn += split_users(data)[2]["user"].eval_mask
    # 25 of 50 times on average, give or take less than 5 deviations of 3.5.
    assert 25 - 17 < times_drawn.min() <= times_drawn.max() < 25 + 17


def test_items_are_drawn_evenly_for_each_user():
    edges = [(user, item) for user in range(2000) for item in range(4)]
    data = Graph(2000, 4, edges, [0] * len(edges)).data("hetero")
    *_, test = PerUserSplit(test=0.5)(data)
    chosen = torch.zeros(2000, 4)
    chosen[tuple(test[USER_ITEM].edge_label_index)] = 1
    # Each of the six pairs of items is as likely: 333 of 2000, give or take 4 deviations of 17.
    counts = Counter(map(tuple, chosen.tolist()))
    assert len(counts) == 6
    assert all(abs(count - 2000 / 6) < 4 * 17 for count in counts.values())


class WholeGraph(BaseSampler):
    """Samples everything: PyG's own samplers need a library that is not on the package index."""

    def __init__(self, data):
        self.data = data

    def sample_from_nodes(self, *args, **kwargs):
        raise NotImplementedError

    def sample_from_edges(self, inputs, neg_sampling=None):
        row, col = self.data.edge_index
        truth = torch.stack([inputs.row, inputs.col])
        return SamplerOutput(
            node=torch.arange(self.data.num_nodes),
            row=row,
            col=col,
            edge=torch.arange(row.numel()),
            metadata=(inputs.input_id, truth, inputs.label, inputs.time),
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
        *_, earlier = PerUserSplit(split_type="separated")(data)
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
        PerUserSplit(split_type="joined")(data)
        KCore(3)(data)
        after = data.to_dict()
        assert str(before) == str(after)

    def test_tasks_know_users_and_candidates(self):
        *_, test = PerUserSplit(split_type="separated", users_test_fraction=0.2)(interactions())
        task = RankingTask.from_data(test)
        assert task.users.numel() == 12
        assert task.users.tolist() == test["user"].eval_mask.nonzero().flatten().tolist()
        assert RankingTask.from_data(test, users=torch.arange(60)).users.numel() == 60
        task = RankingTask.from_data(SampledCandidates(7)(test))
        assert task.candidates.size(0) == 2
        assert RankingTask.from_data(test, candidates=torch.arange(40)).candidates.dim() == 1

    @pytest.mark.parametrize("transform", [*SPLITS.values(), PerUserSplit(split_type="joined")])
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

    def test_loaders_take_parts_as_they_are(self):
        data = interactions().to_homogeneous()
        data.num_users = 60
        for part in TemporalSplit()(data):
            loader = LinkLoader(
                part,
                WholeGraph(part),
                edge_label_index=part.edge_label_index,
                edge_label=part.edge_label,
                edge_label_time=part.edge_label_time,
                batch_size=50,
            )
            batches = list(loader)
            labels = [batch.edge_label_index for batch in batches]
            assert torch.equal(torch.cat(labels, dim=1), part.edge_label_index)
            times = [batch.edge_label_time for batch in batches]
            assert torch.equal(torch.cat(times), part.edge_label_time)
            for batch in batches:
                assert torch.equal(batch.edge_index, part.edge_index)
                assert torch.equal(batch.time, part.time)

    def test_a_mask_of_users_is_checked(self):
        *_, test = PerUserSplit()(interactions())
        test["user"].eval_mask = torch.ones(60)
        with pytest.raises(ValueError, match=r"'eval_mask' needs to be a mask of shape \[60\]"):
            RankingTask.from_data(test)


class TestFindingEdges:
    def test_other_types_are_left_alone(self):
        data = interactions()
        views = ("user", "views", "item")
        data[views].edge_index = data[USER_ITEM].edge_index[:, :9]
        data["user", "knows", "user"].edge_index = torch.tensor([[0, 1], [1, 2]])
        with pytest.raises(ValueError, match=r"'edge_type' needs to be given.*'rates'.*'views'"):
            PerUserSplit()(data)
        parts = PerUserSplit(edge_type=USER_ITEM)(data)
        for part in parts:
            assert torch.equal(part[views].edge_index, data[views].edge_index)
        joined, *_ = PerUserSplit(edge_type=USER_ITEM, split_type="joined")(data)
        ids = joined["user"].n_id
        for key, ends in ((views, (True, False)), (("user", "knows", "user"), (True, True))):
            for new, old, is_user in zip(
                joined[key].edge_index, data[key].edge_index, ends, strict=True
            ):
                assert torch.equal(ids[new] if is_user else new, old)

    def test_a_type_is_the_reverse_if_it_holds_the_same_edges(self):
        data = interactions()
        data["item", "bought_by", "user"].edge_index = data[ITEM_USER].edge_index[:, :30]
        *_, test = PerUserSplit(edge_type=USER_ITEM)(data)
        assert test["item", "bought_by", "user"].num_edges == 30
        assert test[ITEM_USER].num_edges == test[USER_ITEM].num_edges
        with pytest.raises(ValueError, match="hold the reverse edges"):
            PerUserSplit(edge_type=USER_ITEM, rev_edge_type=("item", "bought_by", "user"))(data)
        with pytest.warns(UserWarning, match="ground-truth edges leak: their reverse edges"):
            RankingTask.from_data(test)
        assert check_split(*PerUserSplit(edge_type=USER_ITEM)(data)).test.num_reverse_leaks > 0
        del data["item", "bought_by", "user"]
        given_type = PerUserSplit(edge_type=USER_ITEM, rev_edge_type=ITEM_USER)
        assert as_edges(given_type(data)) == as_edges(PerUserSplit()(data))

    @pytest.mark.parametrize(
        ("transform", "message"),
        [
            (PerUserSplit(edge_type=("a", "b", "c")), r"'edge_type' needs to be one of \[\('user'"),
            (PerUserSplit(rev_edge_type=USER_ITEM), "'rev_edge_type' needs to be a type of edges"),
            (PerUserSplit(num_users=4), "'num_users' applies to homogeneous"),
            (TemporalSplit(time_attr="when"), "needs to hold the times of edges as 'when'"),
        ],
    )
    def test_what_does_not_fit_is_named(self, transform, message):
        with pytest.raises(ValueError, match=message):
            transform(interactions())

    def test_homogeneous_graphs_need_to_know_their_users(self):
        data = Graph(2, 3, [(0, 1)], [0]).data("homogeneous")
        del data.num_users
        with pytest.raises(ValueError, match="'num_users' needs to be given"):
            PerUserSplit()(data)
        train, *_ = PerUserSplit(num_users=2)(data)
        assert train.num_users == 2
        with pytest.raises(ValueError, match=r"'edge_type' applies to 'HeteroData'"):
            PerUserSplit(edge_type=USER_ITEM, num_users=2)(data)
        with pytest.raises(TypeError, match=r"'Data' or 'HeteroData' object \(got dict\)"):
            PerUserSplit()({})

    def test_times_are_checked(self):
        data = interactions()
        data[USER_ITEM].time = torch.full((data[USER_ITEM].num_edges,), torch.nan)
        with pytest.raises(ValueError, match="'time' needs to hold finite numbers"):
            TemporalSplit()(data)
        data[USER_ITEM].time = torch.zeros(3)
        with pytest.raises(ValueError, match="'time' needs to have shape"):
            TemporalSplit()(data)
        del data[USER_ITEM].time
        with pytest.warns(UserWarning, match="no 'time', so items are left out at random"):
            LeaveLastOut()(data)


def as_edges(parts):
    return [
        {
            key: store.edge_index.tolist()
            for key, store in zip(part.edge_types, part.edge_stores, strict=True)
        }
        for part in parts
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PerUserSplit(test=1.0), r"'test' needs to be in \(0, 1\) \(got 1.0\)"),
        (lambda: PerUserSplit(test="a"), "'test' needs to be a finite number"),
        (lambda: PerUserSplit(val=-0.1), r"'val' needs to be in \[0, 1\) \(got -0.1\)"),
        (lambda: PerUserSplit(test=0.5, val=0.5), r"'test' \+ 'val' needs to be in \(0, 1\)"),
        (lambda: PerUserSplit(split_type="some"), r"'split_type' .*'joined'\] \(got 'some'\)"),
        (lambda: PerUserSplit(users_test_fraction=2), "'users_test_fraction' needs to be in"),
        (lambda: PerUserSplit(max_test_users=0), "'max_test_users' needs to be a positive"),
        (lambda: PerUserSplit(min_pos_test=-1), "'min_pos_test' needs to be a non-negative"),
        (lambda: PerUserSplit(min_items_pool=0.5), "'min_items_pool' needs to be a non-neg"),
        (lambda: PerUserSplit(seed=-1), "'seed' needs to be a non-negative integer"),
        (lambda: LeaveLastOut(k=0), "'k' needs to be a positive integer"),
        (lambda: LeaveLastOut(val=-1), "'val' needs to be a non-negative integer"),
        (lambda: TemporalSplit(test=0), r"'test' needs to be in \(0, 1\)"),
        (lambda: TemporalSplit(val=0.5, test=0.5), r"'val' \+ 'test' needs to be in"),
        (lambda: TemporalSplit(new_users="ignore"), r"'new_users' .*\['keep', 'drop'\]"),
        (lambda: TemporalSplit(new_items=None), r"'new_items' .*\(got None\)"),
        (lambda: KCore(0), "'k' needs to be a positive integer"),
        (lambda: SampledCandidates(0), "'num_negatives' needs to be a positive integer"),
        (lambda: SampledCandidates(popularity=math.nan), "'popularity' needs to be a finite"),
    ],
)
def test_wrong_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_transforms_say_what_they_are():
    assert repr(PerUserSplit()) == "PerUserSplit(test=0.3, val=0.0, split_type='all', seed=0)"
    assert repr(LeaveLastOut()) == "LeaveLastOut(k=1, val=1, time_attr='time', seed=0)"
    assert repr(TemporalSplit()) == (
        "TemporalSplit(val=0.1, test=0.2, time_attr='time', new_users='keep', new_items='keep')"
    )
    assert repr(KCore(5)) == "KCore(5)"
    assert repr(SampledCandidates()) == (
        "SampledCandidates(num_negatives=99, popularity=0.0, seed=0)"
    )


@given(form=st.sampled_from(FORMS), graph=graphs(max_edges=40), k=st.integers(1, 4))
def test_the_core_is_what_is_left_when_nothing_changes_any_more(form, graph, k):
    left, before = graph.pairs, None
    while left != before:
        before = left
        users, items = per_user(left), Counter(item for _, item in left)
        left = {(user, item) for user, item in left if users[user] >= k and items[item] >= k}
    data = graph.data(form)
    if not left:
        with pytest.raises(ValueError, match="'k' needs to leave a user and an item"):
            KCore(k)(data)
        return
    core = KCore(k)(data)
    users, items = sorted({user for user, _ in left}), sorted({item for _, item in left})
    if isinstance(core, Data):
        ids = core.n_id.tolist()
        assert core.num_users == len(users)
        assert core.num_nodes == len(ids)
        assert torch.equal(core.x, core.n_id)
        ids = [ids[: len(users)], [item - graph.num_users for item in ids[len(users) :]]]
    else:
        ids = [core["user"].n_id.tolist(), core["item"].n_id.tolist()]
        assert (core["user"].num_nodes, core["item"].num_nodes) == (len(users), len(items))
        assert torch.equal(core["user"].x, core["user"].n_id)
    assert ids == [users, items]
    for user, item, edge_id in stores(core):
        assert graph.edges[edge_id] == (users[user], items[item])
    assert {(users[user], items[item]) for user, item in known(core)} == left
    assert as_sets(PerUserSplit()(core))  # it can be split


def test_a_core_is_taken_before_a_split():
    with pytest.raises(ValueError, match=r"filtered before it is split \(got 'edge_label_index'\)"):
        KCore(2)(PerUserSplit()(interactions())[0])


def test_a_core_with_edges_of_other_types():
    data = interactions()
    data["item", "in", "genre"].edge_index = torch.stack([torch.arange(40), torch.arange(40) % 3])
    data["genre"].num_nodes = 3
    core = KCore(5, edge_type=USER_ITEM)(data)
    item, genre = core["item", "in", "genre"].edge_index
    assert core["item"].num_nodes == item.numel() < 40
    assert torch.equal(core["item"].n_id[item] % 3, genre)


class TestSampledCandidates:
    @given(
        form=st.sampled_from(FORMS),
        graph=graphs(max_items=9),
        num=st.integers(1, 9),
        popularity=st.sampled_from([0, 1, -0.5]),
    )
    def test_truth_and_a_sample_of_what_is_not_known(self, form, graph, num, popularity):
        transform = SampledCandidates(num, popularity=popularity, seed=2)
        for part in PerUserSplit(test=0.5)(graph.data(form)):
            sampled = transform(part)
            store = sampled if isinstance(sampled, Data) else sampled[USER_ITEM]
            shift = graph.num_users if isinstance(sampled, Data) else 0
            found = [(u, i - shift) for u, i in store.candidate_edge_index.t().tolist()]
            negatives = [pair for pair in found if pair not in set(truth(part))]
            assert set(truth(part)) <= set(found)
            assert len(set(negatives)) == len(negatives)
            assert not set(negatives) & known(part)
            popular = {item for _, item in known(part)}
            for user in {user for user, _ in truth(part)}:
                left = graph.num_items if popularity == 0 else len(popular)
                mine = {i for u, i in known(part) | set(truth(part)) if u == user}
                left -= len(mine if popularity == 0 else mine & popular)
                assert per_user(negatives)[user] == min(num, left)
            assert {u for u, _ in found} == {u for u, _ in truth(part)}

    def test_the_order_of_edges_and_the_device_do_not_matter(self, device):
        *_, test = PerUserSplit()(interactions())
        expected = SampledCandidates(5, popularity=0.5)(test)[USER_ITEM].candidate_edge_index
        store = test[USER_ITEM]
        store.edge_index = store.edge_index.flip([1])
        store.edge_label_index = store.edge_label_index.flip([1])
        state = torch.random.get_rng_state()
        moved = SampledCandidates(5, popularity=0.5)(test.to(device))[USER_ITEM]
        assert torch.equal(torch.random.get_rng_state(), state)
        assert moved.candidate_edge_index.device.type == device.type
        found = moved.candidate_edge_index.cpu().t().tolist()
        assert set(map(tuple, found)) == set(map(tuple, expected.t().tolist()))

    @pytest.mark.parametrize("popularity", [0.0, 1.0])
    def test_items_are_as_likely_as_they_should_be(self, popularity):
        # Users 4000 and on make items 0, 1, 2, 3 popular at 4 : 3 : 2 : 1; the others have item 4.
        data = HeteroData()
        data["user"].num_nodes, data["item"].num_nodes = 4010, 6
        popular = torch.tensor([0] * 4 + [1] * 3 + [2] * 2 + [3])
        data[USER_ITEM].edge_index = torch.stack([torch.arange(4000, 4010), popular])
        data[USER_ITEM].edge_label_index = torch.stack([torch.arange(4000), torch.full((4000,), 4)])
        sampled = SampledCandidates(1, popularity=popularity)(data)[USER_ITEM]
        negatives = sampled.candidate_edge_index[1, sampled.candidate_edge_index[1] != 4]
        share = torch.bincount(negatives, minlength=6) / 4000
        expected = [0.2, 0.2, 0.2, 0.2, 0.0, 0.2] if popularity == 0 else [0.4, 0.3, 0.2, 0.1, 0, 0]
        # A share is off by more than five deviations of at most 0.008 once in a million times.
        assert share.tolist() == pytest.approx(expected, abs=0.04)

    def test_all_parts_of_a_split_can_be_composed(self, capsys):
        parts = Compose([LeaveLastOut(), SampledCandidates(9, progress=True)])(interactions())
        assert "Sampling" in capsys.readouterr().err
        for part in parts[1:]:
            assert evaluate(torch.rand(60, 40), part, "recall@10")["recall@10"] == 1

    def test_only_truth_can_have_competitors(self):
        with pytest.raises(ValueError, match="'edge_label_index'"):
            SampledCandidates()(interactions())


class TestCheckSplit:
    @given(form=st.sampled_from(FORMS), graph=graphs(), seed=st.integers(0, 99))
    def test_it_counts_what_a_careless_split_leaks(self, form, graph, seed):
        if len(graph.edges) * (2 if form == "undirected" else 1) < 5:
            return
        torch.manual_seed(seed)
        hetero = {"edge_types": USER_ITEM} if form.startswith("hetero") else {}
        parts = RandomLinkSplit(0.2, 0.3, neg_sampling_ratio=0.0, **hetero)(graph.data(form))
        report = check_split(*parts)
        for part, found, earlier in zip(
            parts, (report.train, report.val, report.test), (None, [0], [0, 1]), strict=True
        ):
            forward = part if isinstance(part, Data) else part[USER_ITEM]
            pairs = (
                {(min(e), max(e)) for e in map(tuple, forward.edge_index.t().tolist())}
                if isinstance(part, Data)
                else set(map(tuple, forward.edge_index.t().tolist()))
            )
            shift = graph.num_users if isinstance(part, Data) else 0
            pairs = {(user, item - shift) for user, item in pairs}
            label = {
                (min(e), max(e)) if shift else e
                for e in map(tuple, forward.edge_label_index.t().tolist())
            }
            label = {(user, item - shift) for user, item in label}
            assert found.num_edges == len(pairs)
            assert found.num_truth == len(label)
            assert found.num_repeated_truth == forward.edge_label_index.size(1) - len(label)
            assert found.num_users_without_truth == graph.num_users - len({u for u, _ in label})
            assert found.num_empty_items == graph.num_items - len({i for _, i in label | pairs})
            assert found.num_empty_users == graph.num_users - len({u for u, _ in label | pairs})
            assert found.num_cold_users == len({u for u, _ in label} - {u for u, _ in pairs})
            assert found.num_cold_items == len({i for _, i in label} - {i for _, i in pairs})
            if pairs:
                degrees = sorted(per_user(pairs).values())
                assert (found.user_degree.min, found.user_degree.max) == (degrees[0], degrees[-1])
                assert found.user_degree.mean == pytest.approx(sum(degrees) / len(degrees))
            if earlier is None:
                assert found.num_leaks is None
                continue
            assert found.num_leaks == len(label & pairs)
            leaking = form == "hetero and reverse"
            assert found.num_reverse_leaks == (len(label & graph.pairs) if leaking else 0)
            before = set()
            for number in earlier:
                before |= checked(parts[number], graph)
            assert found.num_earlier == len(label & before)

    def test_a_split_of_ours_has_none(self):
        for transform in SPLITS.values():
            assert not check_split(*transform(interactions())).has_leaks

    def test_it_is_a_table(self):
        text = str(check_split(*LeaveLastOut()(interactions())))
        assert text.splitlines()[0].split() == ["train", "val", "test"]
        assert "cold items" in text
        assert text.endswith("No leaks.")
        careless = RandomLinkSplit(edge_types=USER_ITEM, neg_sampling_ratio=0.0)(interactions())
        assert str(check_split(*careless)).endswith("There are leaks.")

    def test_repeated_edges_are_counted_but_not_reverse_ones(self):
        graph = Graph(2, 3, [(0, 0), (0, 0), (0, 1), (0, 2), (1, 1)], [1, 2, 3, 4, 5])
        for form in FORMS:
            report = check_split(*LeaveLastOut()(graph.data(form)))
            assert report.train.num_repeated_edges == report.train.num_repeated_truth == 1
            assert report.test.num_repeated_edges == 1
            assert report.test.num_repeated_truth == 0

    def test_parts_of_different_graphs_are_refused(self):
        train, val, _ = LeaveLastOut()(interactions())
        with pytest.raises(ValueError, match="the same users and items"):
            check_split(train, val, LeaveLastOut()(KCore(5)(interactions()))[2])

    def test_evaluate_warns_of_the_same_leaks_and_only_once(self):
        *_, test = RandomLinkSplit(edge_types=USER_ITEM, neg_sampling_ratio=0.0)(interactions())
        num_leaks = check_split(test, test, test).test.num_reverse_leaks
        with pytest.warns(UserWarning, match=f"^{num_leaks} of {num_leaks} .* leak") as caught:
            evaluate(torch.rand(60, 40), test)
        assert len(caught) == 1
        test[USER_ITEM].edge_index = torch.cat(
            [test[USER_ITEM].edge_index, test[USER_ITEM].edge_label_index[:, :3]], dim=1
        )
        with pytest.warns(UserWarning, match="ground-truth edges") as caught:
            evaluate(torch.rand(60, 40), test)
        assert [str(warning.message).split(" of ")[0] for warning in caught] == [
            "3",
            str(num_leaks - 3),
        ]

    def test_who_evaluates_on_training_edges_is_not_warned(self):
        train, *_ = LeaveLastOut()(interactions())
        assert RankingTask.from_data(train, exclude_seen=False).truth.size(1) > 0


def checked(part, graph):
    store = part if isinstance(part, Data) else part[USER_ITEM]
    shift = graph.num_users if isinstance(part, Data) else 0
    edges = torch.cat([store.edge_index, store.edge_label_index], dim=1).t().tolist()
    return {((min(e), max(e) - shift) if shift else tuple(e)) for e in edges}
