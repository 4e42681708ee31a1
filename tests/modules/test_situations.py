"""Situations that metrics of PyG and torchmetrics get into, and what becomes of ours in them.

Where PyG or torchmetrics do something else on purpose, the test is in `TestWhereOthersDiffer`.
"""

import copy
import inspect
import math
import pickle

import pytest
import torch
from torch_geometric import metrics as pyg

from pyg_recmetrics import Catalogue, RankedEdges, metrics, modules
from tests.support.machines.optional import needs_collection, needs_torchmetrics, torchmetrics

#: What torchmetrics says of `compute` before any `update`.
NO_UPDATE = "ignore:The ``compute`` method of metric"

NUM_USERS, NUM_ITEMS, K = 40, 30, 6
CATALOGUE = Catalogue(
    NUM_ITEMS,
    seen=torch.stack([torch.arange(200), torch.arange(200).pow(2) % NUM_ITEMS]),
    item_category=torch.arange(NUM_ITEMS) % 3,
    item_embedding=torch.randn(NUM_ITEMS, 4, generator=torch.Generator().manual_seed(0)),
)
NAMES = [name for name in dir(modules) if issubclass(getattr(modules, name), modules.RankingMetric)]
NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def make(name, k=K, **arguments):
    known = inspect.signature(getattr(modules, name)).parameters
    given = {"k": k, "catalogue": CATALOGUE, "keep_per_user": False}
    return getattr(modules, name)(
        **{key: value for key, value in given.items() if key in known}, **arguments
    )


def draw(seed=0, num_users=NUM_USERS, width=NUM_ITEMS):
    """Lists of all items, truth of most users, and a weight for every true edge."""
    generator = torch.Generator().manual_seed(seed)
    lists = torch.rand(num_users, NUM_ITEMS, generator=generator).argsort()[:, :width]
    is_true = torch.rand(num_users, NUM_ITEMS, generator=generator) < 0.15
    is_true[::9] = False
    truth = is_true.nonzero().t().contiguous()
    weight = torch.randint(1, 5, truth[0].shape, generator=generator).float()  # grades of ERR
    return lists, truth, weight


def split(lists, truth, weight, sizes):
    """Mini-batches with as many users each as `sizes` says."""
    start = 0
    for size in sizes:
        is_in = (truth[0] >= start) & (truth[0] < start + size)
        row = truth[:, is_in] - torch.tensor([[start], [0]])
        yield lists[start : start + size], row, weight[is_in]
        start += size


def value_of(name, *batch, k=K):
    """What the function says, which does not know of mini-batches."""
    definition = getattr(modules, name).definition
    ranked = RankedEdges.from_topk(*batch).with_catalogue(CATALOGUE)
    value = metrics.Metric(definition.name, k if definition.has_cut_off else None)(ranked)
    return float(value if value.dim() == 0 else value.nanmean())


@pytest.mark.parametrize("name", NAMES)
class TestEveryClass:
    def test_mini_batches_of_different_sizes_in_any_order(self, name):
        wanted = value_of(name, *draw())
        parts = list(split(*draw(), sizes=(1, 17, 0, 20, 2)))
        for order in (parts, parts[::-1]):
            metric = make(name)
            for batch in order:
                metric.update(*batch)
            assert float(metric.compute()) == pytest.approx(wanted, rel=1e-6)

    def test_arguments_by_name_and_edges_as_two_tensors(self, name):
        lists, truth, weight = draw()
        metric = make(name)
        metric.update(
            pred_index_mat=lists.int(),
            edge_label_index=(truth[0].clone(), truth[1].clone()),
            edge_label_weight=weight.double(),
        )
        assert float(metric.compute()) == pytest.approx(value_of(name, *draw()), rel=1e-6)

    def test_what_it_is_given_stays_what_it_is(self, name):
        given = draw()
        before = [tensor.clone() for tensor in given]
        metric = make(name)
        with torch.inference_mode():
            metric.update(*given)
        metric.update(*given)
        metric.compute()
        for tensor, earlier in zip(given, before, strict=True):
            assert torch.equal(tensor, earlier)

    def test_an_epoch_knows_nothing_of_the_one_before(self, name):
        metric = make(name)
        for seed in range(3):
            metric.reset()
            metric.update(*draw(seed))
            assert float(metric.compute()) == pytest.approx(value_of(name, *draw(seed)), rel=1e-6)

    def test_computing_is_no_update(self, name):
        metric, once = make(name), make(name)
        for batch in split(*draw(), sizes=(10, 10, 20)):
            metric.update(*batch)
            once.update(*batch)
            assert torch.equal(metric.compute(), metric.compute())
        assert torch.equal(metric.compute(), once.compute())

    @pytest.mark.filterwarnings(NO_UPDATE)
    def test_nobody(self, name):
        metric, empty = make(name), make(name)
        empty.update(torch.empty(0, K, dtype=torch.long), NO_EDGES)
        for value in (metric.compute(), empty.compute()):
            # Of no users, no items are covered; all else has no value.
            assert value.isnan() if name != "Coverage" else value == 0
            assert value.shape == ()

    @needs_torchmetrics
    def test_forward_is_the_value_of_the_mini_batch(self, name):
        metric, whole = make(name), make(name)
        for batch in split(*draw(), sizes=(25, 15)):
            alone = make(name)
            alone.update(*batch)
            assert torch.equal(metric(*batch), alone.compute())
            whole.update(*batch)
        assert float(metric.compute()) == pytest.approx(float(whole.compute()), rel=1e-6)
        assert metric.update_count == 2

    @needs_torchmetrics
    def test_a_clone_goes_its_own_way(self, name):
        metric = make(name)
        metric.update(*draw(0))
        other = metric.clone()
        other.update(*draw(1))
        assert float(metric.compute()) == pytest.approx(value_of(name, *draw(0)), rel=1e-6)
        assert hash(metric) != hash(other)

    @pytest.mark.parametrize("convert", ["half", "float", "double", "bfloat16"])
    def test_a_model_that_is_converted_takes_nothing_from_it(self, name, convert):
        metric, alone = make(name), make(name)
        model = torch.nn.ModuleDict({"layer": torch.nn.Linear(2, 2), "metric": metric})
        for number, batch in enumerate(split(*draw(), sizes=(15, 25))):
            metric.update(*batch)
            alone.update(*batch)
            if number == 0:
                getattr(model, convert)()
        assert torch.equal(metric.compute(), alone.compute())


class TestLists:
    def test_of_different_lengths(self):
        lists, truth, _ = draw()
        metric = modules.Recall(k=4, keep_per_user=True)
        metric.update(lists[:20, :4], truth[:, truth[0] < 20])
        metric.update(lists[20:, :9], truth[:, truth[0] >= 20] - torch.tensor([[20], [0]]))
        wanted = metrics.recall(RankedEdges.from_topk(lists, truth), k=4)
        assert torch.equal(metric.compute_per_user().nan_to_num(-1), wanted.float().nan_to_num(-1))

    @pytest.mark.parametrize("name", NAMES)
    def test_shorter_than_k_are_like_padded_ones(self, name):
        lists, truth, weight = draw(width=3)
        padded = torch.cat([lists, torch.full((NUM_USERS, 5), -1)], dim=1)
        metric = make(name, k=8)
        with pytest.warns(UserWarning, match="'pred_index_mat' holds lists of 3 items, but"):
            metric.update(lists, truth, weight)
        assert float(metric.compute()) == pytest.approx(
            value_of(name, padded, truth, weight, k=8), rel=1e-6
        )

    def test_that_are_a_view_of_others(self):
        lists, truth, _ = draw()
        one, other = modules.NDCG(k=4), modules.NDCG(k=4)
        one.update(lists.t().contiguous().t(), truth.t().contiguous().t())
        other.update(lists, truth)
        assert torch.equal(one.compute(), other.compute())


class TestWeights:
    lists = torch.tensor([[0, 1, 2, 3]])
    truth = torch.tensor([[0, 0, 0], [1, 3, 7]])

    def test_say_how_much_is_gained(self):
        weight = torch.tensor([3.0, 0.5, 1.0])
        metric = modules.NDCG(k=4)
        metric.update(self.lists, self.truth, weight)
        gained = 3 / math.log2(3) + 0.5 / math.log2(5)
        ideal = 3 + 1 / math.log2(3) + 0.5 / math.log2(4)
        assert float(metric.compute()) == pytest.approx(gained / ideal)
        exponential = modules.DCG(k=4, gain="exponential")
        exponential.update(self.lists, self.truth, weight)
        gained = (2**3 - 1) / math.log2(3) + (2**0.5 - 1) / math.log2(5)
        assert float(exponential.compute()) == pytest.approx(gained)

    def test_of_zero_or_less_are_no_truth(self):
        weight = torch.tensor([1.0, 0.0, -2.0])
        for name in ("Recall", "NDCG", "MRR"):
            one, other = make(name, k=4), make(name, k=4)
            one.update(self.lists, self.truth, weight)
            other.update(self.lists, self.truth[:, :1])
            assert torch.equal(one.compute(), other.compute()), name
        metric = modules.Recall(k=4, empty_target_action="error")
        with pytest.raises(ValueError, match=r"\(got 1 without\)"):
            metric.update(self.lists, self.truth, -weight.abs())

    def test_are_of_no_concern_to_counts(self):
        weight = torch.tensor([3.0, 0.5, 1.0])
        for name in ("Precision", "Recall", "MAP", "HitRate", "F1"):
            one, other = make(name, k=4), make(name, k=4)
            one.update(self.lists, self.truth, weight)
            other.update(self.lists, self.truth)
            assert torch.equal(one.compute(), other.compute()), name


class TestWrongMiniBatches:
    lists, truth = torch.tensor([[0, 1], [2, 3]]), torch.tensor([[0, 1], [1, 0]])

    @pytest.mark.parametrize(
        ("batch", "error", "message"),
        [
            ((lists[0], truth), ValueError, r"'pred_index_mat' .*\[num_users, K\] \(got \[2\]\)"),
            ((lists.float(), truth), ValueError, "'pred_index_mat' needs to hold integers"),
            ((lists - 2, truth), ValueError, r"'pred_index_mat' .* or -1 for none \(got -2\)"),
            ((lists, truth[0]), ValueError, r"'edge_label_index' .*\[2, num_edges\]"),
            ((lists, truth + 2), ValueError, r"'edge_label_index' .*user ids in \[0, 2\) \(got 3"),
            ((lists, truth, torch.ones(3)), ValueError, r"'edge_label_weight' .*\[2\]"),
            ((lists, truth, torch.tensor([1, math.nan])), ValueError, "'edge_label_weight' needs"),
        ],
    )
    @pytest.mark.parametrize("name", ["NDCG", "Coverage", "Personalization"])
    def test_are_refused_and_add_nothing(self, name, batch, error, message):
        metric = make(name, k=2)
        metric.update(self.lists, self.truth)
        before = copy.deepcopy(metric).compute()
        with pytest.raises(error, match=message):
            metric.update(*batch)
        assert torch.equal(copy.deepcopy(metric).compute(), before)


class TestArgumentsOfPyG:
    """What PyG's own classes take, of random lists in three mini-batches."""

    popularity = torch.arange(NUM_ITEMS).pow(2) % 11
    category = torch.arange(NUM_ITEMS) % 4

    @pytest.mark.parametrize(
        ("name", "theirs", "arguments"),
        [
            ("Coverage", "Coverage", {"num_dst_nodes": NUM_ITEMS}),
            ("Diversity", "Diversity", {"category": category}),
            ("Popularity", "AveragePopularity", {"popularity": popularity}),
            ("Recall", "Recall", {"weighted": True}),
            ("NDCG", "NDCG", {"weighted": True}),
            ("Precision", "Precision", {}),
            ("Recall", "Recall", {}),
            ("F1", "F1", {}),
            ("MAP", "MAP", {}),
            ("MRR", "MRR", {}),
            ("HitRate", "HitRatio", {}),
            ("Personalization", "Personalization", {}),
        ],
    )
    @pytest.mark.parametrize("k", [2, 5, 12])
    def test_give_the_values_of_pyg(self, name, theirs, arguments, k):
        theirs = getattr(pyg, f"LinkPred{theirs}", None)
        if theirs is None or not arguments.keys() <= inspect.signature(theirs).parameters.keys():
            pytest.skip("needs a later PyG")
        ours, theirs = getattr(modules, name)(k=k, **arguments), theirs(k=k, **arguments)
        for lists, truth, weight in split(*draw(seed=k), sizes=(10, 25, 5)):
            weights = (weight,) if "weighted" in arguments else ()
            ours.update(lists, truth, *weights)
            theirs.update(lists[:, :k], truth, *weights)
        assert float(ours.compute()) == pytest.approx(float(theirs.compute()), abs=1e-6)

    @pytest.mark.parametrize("name", ["Recall", "NDCG"])
    def test_weights_are_required_where_pyg_requires_them(self, name):
        lists, truth, weight = draw()
        metric = getattr(modules, name)(k=6, weighted=True)
        assert repr(metric) == f"{name}(k=6, weighted=True)"
        with pytest.raises(ValueError, match=f"'edge_label_weight' .* '{name}' .*weighted=True"):
            metric.update(lists, truth)
        make(name, weighted=False).update(lists, truth)
        metric.update(lists, truth, weight)
        with pytest.raises(TypeError, match="'weighted' needs to be a boolean"):
            modules.NDCG(k=3, weighted=1)

    @needs_collection
    def test_collections_of_pyg_know_which_metrics_are_weighted(self):
        collection = pyg.LinkPredMetricCollection([modules.NDCG(k=2, weighted=True)])
        assert list(collection) == ["WeightedNDCG@2"]
        with pytest.raises(ValueError, match="'edge_label_weight'"):
            collection.update(*draw()[:2])

    @pytest.mark.parametrize(
        ("make_one", "error", "message"),
        [
            (lambda: modules.Coverage(k=2), TypeError, "either 'catalogue' or 'num_.*neither"),
            (
                lambda: modules.Coverage(k=2, num_dst_nodes=9, catalogue=CATALOGUE),
                TypeError,
                "'Coverage' needs to be given either 'catalogue' or 'num_dst_nodes' .got both",
            ),
            (
                lambda: modules.Coverage(k=2, num_dst_nodes=0),
                ValueError,
                "'num_dst_nodes' needs to be a positive integer",
            ),
            (
                lambda: modules.Popularity(k=2, popularity=torch.rand(4)),
                ValueError,
                "'popularity' needs to hold integers",
            ),
            (
                lambda: modules.Popularity(k=2, popularity=torch.tensor([1, -1])),
                ValueError,
                "'popularity' needs to hold numbers of zero or more .got -1",
            ),
            (
                lambda: modules.Diversity(k=2, category=torch.ones(2, 2).long()),
                ValueError,
                "'category' needs to have shape",
            ),
        ],
    )
    def test_wrong_ones_are_named(self, make_one, error, message):
        with pytest.raises(error, match=message):
            make_one()

    def test_tensors_are_not_printed(self):
        assert repr(modules.Diversity(k=2, category=self.category)) == "Diversity(k=2)"
        assert repr(modules.Coverage(2, num_dst_nodes=9)) == "Coverage(k=2, num_dst_nodes=9)"


class TestSubclasses:
    class Mine(modules.NDCG):
        def __init__(self, **kw):
            super().__init__(k=3, **kw)

    def test_they_may_take_other_arguments(self):
        metric = self.Mine(gain="binary")
        assert repr(metric) == "Mine(k=3, gain='binary')"
        metric.update(*draw())
        for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
            assert repr(other) == repr(metric)
            assert other.compute() == metric.compute()


class TestArgumentsOfTorchmetrics:
    @needs_torchmetrics
    @pytest.mark.parametrize("name", dir(modules))
    def test_every_class_takes_them(self, name):
        cls = getattr(modules, name)
        given = {
            "compute_on_cpu": True,
            "dist_sync_on_step": True,
            "process_group": None,
            "dist_sync_fn": gather_from_nobody,
            "distributed_available_fn": lambda: False,
            "sync_on_compute": False,
            "compute_with_cache": False,
        }
        known = set(modules.streaming_metric.TorchmetricsArguments.__annotations__)
        assert given.keys() == known
        metric = make(name, **given) if issubclass(cls, modules.RankingMetric) else cls(**given)
        for argument, value in given.items():
            assert getattr(metric, argument) is value
        assert "compute_on_cpu" not in repr(metric)
        with pytest.raises(ValueError, match="`sync_on_compute`"):
            make(name, sync_on_compute=1)
        with pytest.raises(TypeError, match="unexpected keyword argument 'sync_on_step'"):
            make(name, sync_on_step=True)

    @needs_torchmetrics
    def test_states_of_processes_are_gathered_by_the_function_that_is_given(self):
        """As torchmetrics calls it: each process gives its tensor, and gets those of all."""
        twice = {"distributed_available_fn": lambda: True, "dist_sync_fn": gather_twice}
        metric = modules.Recall(k=1, keep_per_user=True, **twice)
        curve = modules.PrecisionRecallCurve(max_k=2, empty_target_action="skip", **twice)
        metric.update(torch.tensor([[0], [1]]), torch.tensor([[0, 1], [0, 0]]))
        curve.update(torch.tensor([0.9, 0.1]), torch.tensor([0, 1]), torch.tensor([3, 3]))
        assert metric.compute() == 0.5
        assert metric.compute_per_user().tolist() == [1, 0, 1, 0]
        assert curve.compute()[1].tolist() == [0, 0]  # below both that are not relevant
        assert curve.get("preds").numel() == 2

    @needs_torchmetrics
    def test_a_state_on_the_cpu_stays_there(self):
        for metric in (modules.NDCG(k=3, compute_on_cpu=True), modules.Personalization(k=3)):
            metric.to("meta")
            assert metric.state_device.type == ("cpu" if metric.compute_on_cpu else "meta")
        metric = modules.NDCG(k=3, compute_on_cpu=True, keep_per_user=True).to("meta")
        metric.update(*draw())
        assert metric.get("per_user").device.type == "cpu"
        assert metric.compute().device.type == "meta"

    @pytest.mark.skipif(torchmetrics is not None, reason="needs torchmetrics to be missing")
    def test_without_torchmetrics_they_say_what_is_missing(self):
        with pytest.raises(ImportError, match="'sync_on_compute' needs torchmetrics"):
            modules.NDCG(k=3, sync_on_compute=False)


def gather_from_nobody(tensor, group=None):
    return [tensor]


def gather_twice(tensor, group=None):
    return [tensor, tensor]


class TestUsersWithoutTruth:
    #: One user hits, one misses, and one has no truth.
    batch = torch.tensor([[0], [0], [0]]), torch.tensor([[0, 1], [0, 5]])

    @pytest.mark.parametrize("name", ["Recall", "Precision", "MRR", "NDCG", "MAP", "HitRate", "F1"])
    @pytest.mark.parametrize(("action", "mean"), [("skip", 1 / 2), ("neg", 1 / 3), ("pos", 2 / 3)])
    def test_count_as_they_are_told_to(self, name, action, mean):
        metric = make(name, k=1, empty_target_action=action)
        metric.update(*self.batch)
        assert torch.allclose(metric.compute(), torch.tensor(mean))

    @needs_torchmetrics
    @pytest.mark.parametrize("action", ["skip", "neg", "pos"])
    def test_count_as_in_torchmetrics(self, action):
        lists, truth, _ = draw()
        is_true = torch.zeros(NUM_USERS, NUM_ITEMS, dtype=torch.bool)
        is_true[truth[0], truth[1]] = True
        position = torch.arange(NUM_ITEMS).expand_as(lists)
        scores = torch.empty(lists.shape).scatter(1, lists, 1.0 / (1 + position))
        index = torch.arange(NUM_USERS).unsqueeze(1).expand_as(lists)
        options = {"empty_target_action": action}
        for name, theirs in {
            "Precision": torchmetrics.retrieval.RetrievalPrecision(top_k=K, **options),
            "Recall": torchmetrics.retrieval.RetrievalRecall(top_k=K, **options),
            "NDCG": torchmetrics.retrieval.RetrievalNormalizedDCG(top_k=K, **options),
            "MRR": torchmetrics.retrieval.RetrievalMRR(top_k=K, **options),
            "HitRate": torchmetrics.retrieval.RetrievalHitRate(top_k=K, **options),
            "RPrecision": torchmetrics.retrieval.RetrievalRPrecision(**options),
        }.items():
            ours = make(name, **options)
            for batch in split(lists, truth, truth[0].float(), sizes=(15, 25)):
                ours.update(*batch[:2])
            theirs.update(scores, is_true, indexes=index)
            assert torch.allclose(ours.compute(), theirs.compute()), name

    @pytest.mark.parametrize("action", ["neg", "pos"])
    def test_only_count_if_there_are_any(self, action):
        metric = modules.Recall(k=1, empty_target_action=action)
        metric.update(torch.tensor([[0], [1]]), NO_EDGES)
        assert metric.compute() == (action == "pos")


@needs_collection
class TestCollectionsOfPyG:
    def test_with_several_cut_offs_over_several_epochs(self):
        collection = pyg.LinkPredMetricCollection(
            [make(name, k=k) for name in ("NDCG", "Recall", "Coverage") for k in (1, 4, 6)]
        )
        assert collection.max_k == 6
        for seed in range(2):
            collection.reset()
            for batch in split(*draw(seed), sizes=(25, 15)):
                collection.update(*batch)
            for name, value in collection.compute().items():
                name, k = name.split("@")
                wanted = value_of(name, *draw(seed), k=int(k))
                assert float(value) == pytest.approx(wanted, rel=1e-6), name

    def test_by_name_and_moved_with_a_model(self):
        named = {"far": modules.Recall(k=6), "near": modules.Recall(k=1)}
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), pyg.LinkPredMetricCollection(named))
        model.half().to("cpu")
        model[1].update(*draw())
        values = model[1].compute()
        assert float(values["far"]) == pytest.approx(value_of("Recall", *draw(), k=6), rel=1e-6)
        assert float(values["near"]) == pytest.approx(value_of("Recall", *draw(), k=1), rel=1e-6)


@needs_torchmetrics
class TestInTorchmetrics:
    def test_a_collection_with_a_prefix(self):
        collection = torchmetrics.MetricCollection(
            [modules.NDCG(k=6), modules.Recall(k=6)], prefix="val/"
        )
        test = collection.clone(prefix="test/")
        for batch in split(*draw(), sizes=(25, 15)):
            of_batch = collection(*batch)
            test.update(*batch)
        assert list(of_batch) == ["val/NDCG", "val/Recall"]
        for name in ("NDCG", "Recall"):
            assert test.compute()[f"test/{name}"] == collection.compute()[f"val/{name}"]
            wanted = value_of(name, *draw())
            assert float(collection.compute()[f"val/{name}"]) == pytest.approx(wanted, rel=1e-6)
        collection.reset()
        assert collection["NDCG"].get("count") == 0

    def test_a_tracker_knows_which_epoch_was_best(self):
        for name, best in (("Recall", max), ("Popularity", min)):
            tracker = torchmetrics.MetricTracker(make(name), maximize=None)
            values = []
            for seed in range(3):
                tracker.increment()
                tracker.update(*draw(seed))
                values.append(value_of(name, *draw(seed)))
            found, step = tracker.best_metric(return_step=True)
            assert found == pytest.approx(best(values), rel=1e-6)
            assert step == values.index(best(values))

    def test_arithmetic(self):
        total = modules.Recall(k=6) + 2 * modules.Precision(k=6)
        total.update(*draw())
        wanted = value_of("Recall", *draw()) + 2 * value_of("Precision", *draw())
        assert float(total.compute()) == pytest.approx(wanted, rel=1e-6)

    def test_the_extremes_of_several_values(self):
        metric = torchmetrics.wrappers.MinMaxMetric(modules.Recall(k=6))
        values = []
        for seed in range(3):
            values.append(value_of("Recall", *draw(seed)))
            metric.reset()
            metric.update(*draw(seed))
            assert float(metric.compute()["raw"]) == pytest.approx(values[-1], rel=1e-6)

    def test_an_early_result_is_not_returned_again(self):
        metric = modules.Recall(k=6)
        for seed in range(2):
            metric.update(*draw(seed))
            metric.compute()
        both = (value_of("Recall", *draw(0)), value_of("Recall", *draw(1)))
        counts = [int((torch.bincount(draw(seed)[1][0]) > 0).sum()) for seed in range(2)]
        wanted = sum(v * n for v, n in zip(both, counts, strict=True)) / sum(counts)
        assert float(metric.compute()) == pytest.approx(wanted, rel=1e-6)


class TestWhereOthersDiffer:
    def test_a_mean_over_nobody_is_not_zero(self):
        """PyG and torchmetrics return zero, which looks like a model that hits nothing."""
        batch = (torch.tensor([[0], [1]]), NO_EDGES)
        ours, theirs = modules.Recall(k=1), pyg.LinkPredRecall(k=1)
        for metric in (ours, theirs):
            metric.update(*batch)
        assert ours.compute().isnan()
        assert theirs.compute() == 0

    def test_a_repeated_edge_is_one_edge(self):
        """PyG counts it twice among the relevant items and once among the hits."""
        batch = (torch.tensor([[0, 1]]), torch.tensor([[0, 0, 0], [0, 0, 7]]))
        ours, theirs = modules.Recall(k=2), pyg.LinkPredRecall(k=2)
        for metric in (ours, theirs):
            metric.update(*batch)
        assert ours.compute() == 0.5
        assert theirs.compute() != 0.5

    def test_a_padding_is_no_item(self):
        """PyG takes -1 for the last item of the user before."""
        lists = torch.tensor([[0], [-1]])
        truth = torch.tensor([[0, 1], [3, 3]])
        ours = modules.Recall(k=1)
        ours.update(lists, truth)
        assert ours.compute() == 0

    def test_the_state_dict_holds_the_state(self):
        """That of torchmetrics is empty unless a metric is made persistent."""
        metric = modules.Recall(k=1)
        assert list(metric.state_dict()) == ["_extra_state"]

    @needs_torchmetrics
    def test_a_target_may_be_a_rating_and_a_mini_batch_empty(self):
        """Both are errors of torchmetrics' curve."""
        ours = modules.PrecisionRecallCurve(max_k=1)
        theirs = torchmetrics.retrieval.RetrievalPrecisionRecallCurve(max_k=1)
        rated = torch.tensor([0.1, 0.9]), torch.tensor([3, 5]), torch.tensor([0, 0])
        nothing = tuple(value[:0] for value in rated)
        for batch in (rated, nothing):
            ours.update(*batch)
            with pytest.raises(ValueError, match="`"):
                theirs.update(*batch)
        assert ours.compute()[1] == 0.5
