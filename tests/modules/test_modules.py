"""Metric classes for loops over mini-batches.

These tests are of several modules together.
"""

import copy
import doctest
import inspect
import io
import json
import math
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import metrics as pyg

from pyg_recmetrics import Catalogue, EvaluationResult, RankedEdges, metrics, modules
from pyg_recmetrics.metrics import registry
from tests.support.cases.strategies import cases
from tests.support.machines.optional import needs_collection, needs_torchmetrics, torchmetrics
from tests.support.tools import module_stubs
from tests.support.tools.laws import values_of

ROOT = Path(__file__).resolve().parents[2]

#: What is said of lists that are too short, where a test is about something else.
SHORT = "ignore:'pred_index_mat' holds lists of"
NAMES = [name for name in dir(modules) if issubclass(getattr(modules, name), modules.RankingMetric)]
LISTS = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
TRUTH = torch.tensor([[0, 0, 1], [1, 2, 2]])


CATALOGUE = Catalogue(
    40,
    seen=torch.stack([torch.arange(200), torch.arange(200).pow(2) % 40]),
    item_category=torch.arange(40) % 3,
    item_embedding=torch.randn(40, 4, generator=torch.Generator().manual_seed(0)),
)


def make(name, k=3, **arguments):
    known = inspect.signature(getattr(modules, name)).parameters
    given = {"k": k, "catalogue": CATALOGUE}
    return getattr(modules, name)(
        **{key: value for key, value in given.items() if key in known}, **arguments
    )


def random_lists(num_users=60, num_items=30, k=10, seed=0):
    """Lists and truth without anything that PyG's metrics are wrong about."""
    generator = torch.Generator().manual_seed(seed)
    lists = torch.rand(num_users, num_items, generator=generator).argsort()[:, :k]
    is_true = torch.rand(num_users, num_items, generator=generator) < 0.2
    is_true[::7] = False
    return lists, is_true.nonzero().t().contiguous()


def batches(lists, truth, size, weight=None):
    for start in range(0, len(lists), size):
        mask = (truth[0] >= start) & (truth[0] < start + size)
        row = truth[:, mask] - torch.tensor([[start], [0]])
        yield lists[start : start + size], row, None if weight is None else weight[mask]


@pytest.fixture
def double_results():
    """Lets metrics return double precision, so that what they return shows every difference."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@st.composite
def any_module(draw):
    """A class, and arguments for it, as a dictionary."""
    cls = getattr(modules, draw(st.sampled_from(NAMES)))
    options = {
        name: st.sampled_from(values_of(parameter, k=14))
        for name, parameter in cls.definition.parameters.items()
        if not parameter.refines  # what needs more than the metric itself
    }
    arguments = {name: draw(values) for name, values in options.items() if draw(st.booleans())}
    arguments.pop("average", None)
    if cls.definition.has_cut_off:
        arguments["k"] = draw(st.integers(1, 12))
    return cls, arguments


class TestClasses:
    def test_there_is_one_for_every_metric_that_lists_are_enough_for(self):
        made = {getattr(modules, name).definition.name for name in NAMES}
        unmade = {n for n in metrics.names() if metrics.definition(n).needs_all_ranks}
        assert made == set(metrics.names()) - unmade - {"calibration", "fall_out"}
        assert {"NDCG", "DCG", "MRR", "MAP", "F1", "RPrecision", "HitRate"} <= set(NAMES)

    def test_two_look_at_scored_pairs(self):
        assert set(dir(modules)) - set(NAMES) == {"PrecisionRecallCurve", "RecallAtFixedPrecision"}

    def test_what_lists_are_not_enough_for_says_so(self):
        with pytest.raises(AttributeError, match=r"no 'ROCAUC': 'roc_auc' needs .*'evaluate"):
            _ = modules.ROCAUC
        with pytest.raises(
            AttributeError, match=r"'calibration' needs .*the history of every user"
        ):
            _ = modules.Calibration
        with pytest.raises(AttributeError, match=r"'fall_out' needs .*the number of candidates"):
            _ = modules.FallOut
        with pytest.raises(ImportError, match="NDGC"):
            from pyg_recmetrics.modules import NDGC  # noqa: F401
        with pytest.raises(ValueError, match=r"'average' needs to be 'macro'.*\(got 'micro'\)"):
            modules.Recall(k=3, average="micro")

    @pytest.mark.parametrize("name", NAMES)
    def test_they_have_the_signature_and_the_words_of_the_function(self, name):
        cls = getattr(modules, name)
        own = dict(inspect.signature(cls).parameters)
        more = {"empty_target_action": "skip", "keep_per_user": False}
        pygs = {"num_dst_nodes": None, "category": None, "popularity": None}
        needs_catalogue = bool(set(cls.definition.needs) - {"items"}) and not pygs.keys() & own
        more |= pygs | {"catalogue": inspect.Parameter.empty if needs_catalogue else None}
        if name != "Recall":  # whose function takes it, too
            more["weighted"] = False
        assert own.pop("kwargs").kind is inspect.Parameter.VAR_KEYWORD
        more = {n: default for n, default in more.items() if n in own}
        assert {n: own.pop(n).default for n in more} == more
        function = inspect.signature(cls.definition.function).parameters
        assert {n: p.default for n, p in own.items()} == {
            n: p.default for n, p in function.items() if n != "ranked"
        }
        assert cls.__doc__.startswith(cls.definition.docstring.summary)
        for word in (*own, *more):
            assert f"    {word} (" in cls.__doc__
        assert "ranked (" not in cls.__doc__
        assert (cls.__module__, cls.__qualname__) == ("pyg_recmetrics.modules", name)

    @pytest.mark.parametrize("name", NAMES)
    def test_their_examples_run(self, name):
        example = doctest.DocTestParser().get_doctest(
            getattr(modules, name).__doc__, {}, name, None, None
        )
        results = doctest.DocTestRunner().run(example)
        assert results.attempted >= 4
        assert results.failed == 0

    def test_a_new_metric_has_a_class_at_once(self, monkeypatch):
        def twice_recall(ranked, k: int):
            """Twice the recall."""
            return 2 * metrics.recall(ranked, k=k)

        monkeypatch.setattr(registry, "_DEFINITIONS", dict(registry._DEFINITIONS))
        metrics.register(bounds=(0.0, 2.0))(twice_recall)
        monkeypatch.setattr(modules, "TwiceRecall", modules.TwiceRecall)  # and forgotten again
        metric = modules.TwiceRecall(k=3)
        metric.update(LISTS, TRUTH)
        assert metric.compute() == 2

    def test_arguments_are_checked(self):
        with pytest.raises(TypeError, match="missing a required argument: 'k'"):
            modules.Recall()
        with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
            modules.Recall(k=3, depth=4)
        with pytest.raises(ValueError, match=r"'k' needs to be a positive integer \(got 0\)"):
            modules.Recall(0)
        with pytest.raises(ValueError, match=r"'gain' needs to be one of .*\(got 'log'\)"):
            modules.NDCG(k=3, gain="log")
        with pytest.raises(ValueError, match="'empty_target_action' needs to be one of"):
            modules.NDCG(k=3, empty_target_action="drop")

    def test_printing(self):
        assert repr(modules.RPrecision()) == "RPrecision()"
        assert repr(modules.NDCG(20, gain="binary")) == "NDCG(k=20, gain='binary')"
        assert repr(modules.MRR(empty_target_action="neg")) == "MRR(empty_target_action='neg')"


class TestValues:
    @pytest.mark.usefixtures("double_results")
    @pytest.mark.filterwarnings(SHORT)
    @given(case=cases(), module=any_module(), size=st.integers(1, 3), data=st.data())
    def test_any_mini_batches_add_up_to_the_mean_over_users(self, case, module, size, data):
        cls, arguments = module
        if case.weights is None:
            arguments.pop("weighted", None)  # for which a class requires weights
        truth = torch.tensor(case.truth).reshape(-1, 2).t()
        weight = None if case.weights is None else torch.tensor(case.weights)
        row = st.lists(st.integers(-1, 9), min_size=4, max_size=4)
        lists = data.draw(st.lists(row, min_size=case.num_users, max_size=case.num_users))
        lists = torch.tensor(lists)
        options = {"keep_per_user": True, "catalogue": CATALOGUE}
        known = inspect.signature(cls).parameters
        metric = cls(**arguments, **{n: value for n, value in options.items() if n in known})
        for batch in batches(lists, truth, size, weight):
            metric.update(*batch)
        k = arguments.pop("k", None)
        spelled = metrics.Metric(cls.definition.name, k, tuple(arguments.items()))
        ranked = RankedEdges.from_topk(lists, truth, weight).with_catalogue(CATALOGUE)
        if spelled.is_aggregate:
            assert float(metric.compute()) == pytest.approx(float(spelled(ranked)), nan_ok=True)
            return
        wanted = spelled(ranked).tolist()
        defined = [value for value in wanted if not math.isnan(value)]
        assert metric.compute_per_user().tolist() == pytest.approx(wanted, nan_ok=True)
        if defined:
            assert float(metric.compute()) == pytest.approx(sum(defined) / len(defined))

    @pytest.mark.usefixtures("double_results")
    @pytest.mark.filterwarnings(SHORT)
    @pytest.mark.parametrize("name", NAMES)
    def test_a_thousand_updates_equal_one(self, name):
        lists, truth = random_lists(num_users=1000, num_items=20)
        whole, parts = make(name), make(name)
        whole.update(lists, truth)
        for batch in batches(lists, truth, size=1):
            parts.update(*batch)
        assert float(parts.compute()) == pytest.approx(float(whole.compute()), rel=1e-13)

    @pytest.mark.parametrize("name", ["Precision", "Recall", "F1", "MAP", "NDCG", "MRR"])
    def test_they_agree_with_pygs_own_where_these_are_right(self, name):
        lists, truth = random_lists()
        ours, theirs = make(name, k=5), getattr(pyg, f"LinkPred{name}")(k=5)
        for batch in batches(lists, truth, size=25):
            ours.update(*batch)
            pred_index_mat, edge_label_index, _ = batch
            # PyG 2.6 takes lists of exactly k items, and no weight.
            theirs.update(pred_index_mat[:, :5], edge_label_index)
        assert float(ours.compute()) == pytest.approx(float(theirs.compute()), abs=1e-6)

    def test_personalization_agrees_with_pygs_own(self):
        lists, truth = random_lists(num_users=40)
        ours, theirs = modules.Personalization(k=5), pyg.LinkPredPersonalization(k=5)
        for batch in batches(lists, truth, size=15):
            ours.update(*batch)
            theirs.update(*batch)
        assert float(ours.compute()) == pytest.approx(float(theirs.compute()), abs=1e-6)

    @pytest.mark.parametrize("name", ["Entropy", "Personalization"])
    def test_what_needs_lists_only_keeps_the_items_that_were_recommended(self, name):
        metric = getattr(modules, name)(k=2)
        assert "catalogue" not in inspect.signature(type(metric)).parameters
        for _ in range(3):
            metric.update(torch.tensor([[10**6, 3], [7, 10**6]]), TRUTH[:, :0])
        assert metric.get("position").numel() == metric.get("value").numel() <= 4
        wanted = {"Entropy": 1.5, "Personalization": 1 - (3 * 0.5 + 3 + 3 + 6 * 0.5) / 15}
        assert float(metric.compute()) == pytest.approx(wanted[name])

    @pytest.mark.filterwarnings(SHORT)
    def test_paddings_and_repetitions_count_for_nobody(self):
        metric = modules.Recall(k=50, keep_per_user=True)  # and k is wider than the matrix
        lists = torch.tensor([[3, 3, 1], [-1, -1, -1], [-1, 0, -1]])
        truth = torch.tensor([[0, 0, 0, 1, 2], [3, 3, 7, 0, 0]])
        metric.update(lists, truth)
        assert metric.compute_per_user().tolist() == [0.5, 0.0, 1.0]

    @pytest.mark.parametrize("action", ["skip", "neg", "pos"])
    def test_users_without_truth_count_as_in_evaluate(self, action):
        metric = modules.Recall(k=1, empty_target_action=action, keep_per_user=True)
        metric.update(LISTS, TRUTH)
        ranked = RankedEdges.from_topk(LISTS, TRUTH)
        wanted = EvaluationResult(ranked, "recall@1", empty_target_action=action)["recall@1"]
        assert float(metric.compute()) == pytest.approx(wanted)
        assert metric.compute_per_user().isnan().tolist() == [False, False, True]

    def test_users_without_truth_can_be_an_error_that_adds_nothing(self):
        metric = modules.Recall(k=1, empty_target_action="error")
        metric.update(LISTS[:2], TRUTH)
        before = float(metric.compute())
        with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
            metric.update(LISTS, TRUTH)
        assert float(metric.compute()) == before

    def test_mini_batches_without_users_or_truth(self):
        metric = modules.NDCG(k=3, keep_per_user=True)
        metric.update(LISTS, TRUTH)
        metric.update(LISTS[:0], TRUTH[:, :0])
        metric.update(LISTS, TRUTH[:, :0])
        assert metric.compute_per_user().isnan().tolist() == [False, False, *[True] * 4]
        assert metric.get("count") == 2
        metric.reset()
        metric.update(LISTS, TRUTH[:, :0])
        assert metric.compute().isnan()
        assert metric.compute_per_user().numel() == 3

    def test_values_per_user_are_kept_only_if_asked_for(self):
        metric = modules.NDCG(k=3)
        metric.update(LISTS, TRUTH)
        with pytest.raises(ValueError, match="'keep_per_user' needs to be set"):
            metric.compute_per_user()
        assert set(metric.get_extra_state()) == {"metric", "empty_target_action", "sum", "count"}

    def test_on_any_device(self, device):
        metric = modules.NDCG(k=3, keep_per_user=True).to(device)
        metric.update(LISTS.to(device), TRUTH.to(device))
        assert metric.compute().device.type == device.type
        metric.to("cpu").update(LISTS.to(device), TRUTH.to(device))
        assert metric.compute_per_user().device.type == "cpu"


class TestDtypeAndDevice:
    @pytest.mark.parametrize("name", NAMES)
    def test_results_are_in_the_default_dtype(self, name):
        metric = make(name)
        metric.update(LISTS, TRUTH)
        value = metric.compute()
        assert value.dtype == torch.get_default_dtype() == torch.float32
        assert torch.allclose(value, torch.tensor(float(value)))

    def test_values_per_user_have_the_dtype_of_their_mean(self):
        metric = modules.Recall(k=1, keep_per_user=True)
        metric.update(LISTS, TRUTH)
        values = metric.compute_per_user()
        assert torch.allclose(values, torch.tensor([0.5, 0.0, math.nan]), equal_nan=True)
        assert torch.equal(values.nanmean(), metric.compute())

    @pytest.mark.usefixtures("double_results")
    def test_a_double_default_dtype_gives_the_whole_precision(self):
        metric = modules.MAP(k=3, keep_per_user=True)
        metric.update(LISTS, TRUTH)
        wanted = metrics.map(RankedEdges.from_topk(LISTS, TRUTH), k=3)
        assert torch.equal(metric.compute_per_user().nan_to_num(-1), wanted.nan_to_num(-1))
        assert torch.equal(metric.compute(), wanted.nansum() / 2)

    def test_the_sum_over_many_users_is_in_double_precision(self):
        """In single precision, a sum stops to grow at 2**24."""
        metric = modules.Precision(k=1)
        metric.set("sum", torch.tensor(2.0**24, dtype=torch.float64))
        metric.set("count", torch.tensor(2**24))
        hit = torch.zeros(1, 1, dtype=torch.long)
        for _ in range(3):
            metric.update(hit, torch.zeros(2, 1, dtype=torch.long))
        assert metric.get("sum") == 2**24 + 3

    @pytest.fixture
    def no_double(self, monkeypatch):
        """The device 'meta' stands for one without double precision."""
        monkeypatch.setattr(
            modules.streaming_metric,
            "holds_double_precision",
            lambda device: device.type != "meta",
        )

    @pytest.mark.usefixtures("no_double")
    @pytest.mark.parametrize("name", ["NDCG", "Coverage", "Personalization"])
    def test_the_state_stays_on_the_cpu_if_a_device_holds_no_double_precision(self, name):
        metric, alone = make(name), make(name)
        model = torch.nn.ModuleDict({"metric": metric})
        for reset in (False, True):
            if reset:
                metric.reset()
            metric.update(LISTS[:2], TRUTH)
            model.to("meta")
            metric.update(LISTS[2:], TRUTH[:, :0])
            assert metric.compute().device.type == "meta"
            assert metric.compute().dtype == torch.float32
        alone.update(LISTS[:2], TRUTH)
        alone.update(LISTS[2:], TRUTH[:, :0])
        for part in metric.merged_by():
            assert torch.equal(metric.get(part), alone.get(part))  # both on the CPU

    def test_mini_batches_of_such_a_device_are_moved_to_where_double_precision_is(self):
        metric, alone = modules.NDCG(k=3), modules.NDCG(k=3)
        weight = torch.tensor([1.0, 3.0, 2.0])
        lists, truth, w = (OnApple(x) for x in (LISTS, TRUTH, weight))
        with pytest.raises(TypeError, match="float64"):
            RankedEdges.from_topk(lists, truth, w)
        metric.update(lists, truth, w)
        metric.update(lists, (OnApple(TRUTH[0]), OnApple(TRUTH[1])))
        alone.update(LISTS, TRUTH, weight)
        alone.update(LISTS, TRUTH)
        assert torch.equal(metric.compute(), alone.compute())


class OnApple(torch.Tensor):
    """A tensor that says it is on an Apple device, and refuses double precision as such do."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.Tensor.device.__get__:
            return torch.device("mps")
        kwargs = kwargs or {}
        if function is torch.Tensor.to and torch.device("cpu") in args:
            return args[0].as_subclass(torch.Tensor)
        result = super().__torch_function__(function, types, args, kwargs)
        if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return result


class TestState:
    @pytest.fixture
    def metric(self):
        metric = modules.NDCG(k=3, keep_per_user=True)
        metric.update(LISTS, TRUTH)
        return metric

    def test_it_can_be_pickled_and_copied(self, metric):
        for other in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
            assert other.compute() == metric.compute()
            other.update(LISTS[:2], TRUTH)
            assert other.compute_per_user().numel() == 5
        assert metric.compute_per_user().numel() == 3

    def test_it_goes_through_a_state_dict(self, metric):
        file = io.BytesIO()
        torch.save(torch.nn.ModuleDict({"ndcg": metric}).state_dict(), file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
        other = modules.NDCG(k=3, keep_per_user=True)
        other.update(-torch.ones_like(LISTS), TRUTH)
        assert other.compute() == 0
        torch.nn.ModuleDict({"ndcg": other}).load_state_dict(state)
        assert other.compute() == metric.compute()
        other.update(LISTS, TRUTH)
        assert other.compute_per_user().numel() == 6
        assert state["ndcg._extra_state"]["per_user"].numel() == 3

    def test_a_state_that_was_read_can_be_computed_at_once(self, metric):
        other = modules.NDCG(k=3, keep_per_user=True)
        other.load_state_dict(metric.state_dict())
        assert other.compute() == metric.compute()

    @pytest.mark.parametrize("convert", ["half", "bfloat16", "float", "set_dtype"])
    def test_half_precision_costs_nothing(self, convert):
        metric = modules.Recall(k=1)
        model = torch.nn.ModuleDict({"layer": torch.nn.Linear(2, 2), "metric": metric})
        hit, user = torch.ones(5001, 1, dtype=torch.long), torch.arange(5001)
        truth = torch.stack([user, user.clamp(max=1)])  # the first user misses
        metric.update(hit, truth)
        if convert != "set_dtype":
            getattr(model, convert)()
        elif torchmetrics is not None:
            metric.set_dtype(torch.half)
        metric.update(hit[:1], truth[:, :1])
        assert float(metric.get("sum") / metric.get("count")) == pytest.approx(
            5000 / 5002, abs=1e-12
        )
        metric.reset()
        metric.update(hit[:3], truth[:, :3])
        assert metric.get("sum").dtype == torch.float64
        assert metric.compute().dtype == torch.float32

    def test_it_is_small(self):
        metric = modules.NDCG(k=10)
        for _ in range(3):
            metric.update(*random_lists())
        state = metric.get_extra_state().values()
        assert sum(value.numel() for value in state if isinstance(value, torch.Tensor)) == 2

    @pytest.mark.parametrize(
        ("other", "difference"),
        [
            (modules.NDCG(k=5, keep_per_user=True), r"'ndcg@3 .*got .*'ndcg@5"),
            (modules.NDCG(k=3, gain="binary", keep_per_user=True), "linear.*got .*binary"),
            (modules.DCG(k=3, keep_per_user=True), "'ndcg@3 .*got .*'dcg@3"),
            (
                modules.NDCG(k=3, empty_target_action="neg", keep_per_user=True),
                "'skip'.*got .*'neg'",
            ),
            (modules.NDCG(k=3), r"\['sum', 'count', 'per_user'\] of .*got \['sum', 'count'\] of"),
            (modules.Coverage(k=3, catalogue=CATALOGUE), "'ndcg@3 .*got .*'coverage@3"),
        ],
        ids=repr,
    )
    def test_the_state_of_another_metric_is_refused(self, metric, other, difference):
        before = metric.compute()
        with pytest.raises(ValueError, match=f"'state' needs to hold .*{difference}"):
            metric.load_state_dict(other.state_dict())
        assert metric.compute() == before
        with pytest.raises(ValueError, match="'state' needs to hold"):
            other.load_state_dict(metric.state_dict())

    @pytest.mark.parametrize(
        ("part", "message"),
        [
            ({"sum": torch.zeros(2).double()}, r"'sum' in torch.float64 of shape \[\]"),
            ({"count": torch.tensor(2.0)}, r"'count' in torch.int64 .*got torch.float32"),
            ({"per_user": torch.zeros(2, 2).double()}, r"'per_user' .* of shape \[n\]"),
        ],
    )
    def test_a_state_that_was_damaged_is_refused(self, metric, part, message):
        before = metric.compute()
        with pytest.raises(ValueError, match=f"'state' needs to hold {message}"):
            metric.set_extra_state(metric.get_extra_state() | part)
        assert metric.compute() == before
        with pytest.raises(TypeError, match=r"'state' needs to be a mapping \(got list\)"):
            metric.set_extra_state([1, 2])

    def test_a_state_over_another_number_of_items_is_refused(self):
        few, many = (modules.Coverage(k=3, catalogue=Catalogue(n)) for n in (3, 40))
        with pytest.raises(ValueError, match=r"'state' .* of shape \[40\] .*of shape \[3\]"):
            many.load_state_dict(few.state_dict())


class TestShortLists:
    def lists_of(self, width, num_users=60):
        lists, truth = random_lists(num_users=num_users, k=30)
        return lists[:, :width], truth

    @pytest.mark.parametrize(
        ("metric", "needed"),
        [
            (modules.Recall(k=20), 20),
            (modules.NDCG(k=5, ideal="retrieved", ideal_k=11), 11),
            (modules.Novelty(k=20, catalogue=CATALOGUE), 20),
            (modules.Gini(k=20, catalogue=CATALOGUE), 20),
        ],
        ids=repr,
    )
    def test_lists_that_are_shorter_than_k_are_warned_about(self, metric, needed):
        with pytest.warns(UserWarning, match=f"holds lists of 10 items, but {needed} are needed"):
            metric.update(*self.lists_of(10))

    def test_lists_that_are_shorter_than_the_largest_number_of_relevant_items(self):
        lists, truth = self.lists_of(30)
        largest = int(torch.bincount(truth[0]).max())
        modules.RPrecision().update(lists[:, :largest], truth)
        shorter = lists[:, : largest - 1]
        with pytest.warns(UserWarning, match=f"of {largest - 1} items, but {largest} are needed"):
            modules.RPrecision().update(shorter, truth)

    @pytest.mark.parametrize("name", ["Recall", "RPrecision"])
    def test_a_metric_warns_once_whatever_happens_to_it(self, name):
        metric = make(name, k=20)
        with pytest.warns(UserWarning, match="'pred_index_mat' holds lists") as warned:
            metric.update(*self.lists_of(2))
        assert len(warned) == 1
        assert warned[0].filename == __file__
        for _ in range(3):
            metric.reset()
            for batch in batches(*self.lists_of(2), size=25):
                metric.update(*batch)
            metric.compute()
        copy.deepcopy(metric).update(*self.lists_of(2))

    @pytest.mark.parametrize(
        "metric", [modules.Recall(k=2), modules.Recall(k=10), modules.MRR(), modules.RPrecision()]
    )
    def test_lists_that_are_long_enough_are_not_warned_about(self, metric):
        metric.update(*self.lists_of(20))
        metric.update(LISTS[:0], TRUTH[:, :0])

    def test_lists_of_all_items_are_not_warned_about(self):
        modules.Recall(k=50).update(*self.lists_of(30))
        catalogue = Catalogue(40, seen=CATALOGUE.seen)
        with pytest.warns(UserWarning, match="lists of 30 items"):
            modules.Novelty(k=50, catalogue=catalogue).update(*self.lists_of(30))

    @needs_collection
    def test_so_do_the_metrics_of_a_collection(self):
        collection = pyg.LinkPredMetricCollection(
            [modules.Recall(k=5), modules.Recall(k=20), modules.NDCG(k=20)]
        )
        with pytest.warns(UserWarning, match="'pred_index_mat' holds lists") as warned:
            collection.update(*self.lists_of(10))
        assert len(warned) == 2  # those that look at 20
        for batch in batches(*self.lists_of(10), size=5):
            collection.update(*batch)


@needs_collection
class TestInPyG:
    @pytest.mark.filterwarnings(SHORT)
    def test_beside_pygs_own(self):
        lists, truth = random_lists()
        own = {"LinkPredMAP@5": pyg.LinkPredMAP(k=5), "NDCG@5": modules.NDCG(k=5)}
        collection = pyg.LinkPredMetricCollection(
            [modules.RPrecision(), pyg.LinkPredMAP(k=5), modules.NDCG(k=5), modules.MRR()]
        )
        for batch in batches(lists, truth, size=25):
            collection.update(*batch)
            for metric in own.values():
                metric.update(*batch)
        values = collection.compute()
        assert list(values) == ["RPrecision@all", "LinkPredMAP@5", "NDCG@5", "MRR@all"]
        assert collection.max_k == 5
        for name, metric in own.items():
            assert values[name] == metric.compute()
        collection.reset()
        collection.update(LISTS, TRUTH)
        first = collection.compute()["NDCG@5"]
        collection.update(LISTS[:1], TRUTH[:, :0])
        collection.update(-torch.ones_like(LISTS), TRUTH)
        assert float(collection.compute()["NDCG@5"]) == pytest.approx(float(first) / 2)

    def test_weights_reach_all_that_look_at_them(self):
        weight = torch.tensor([1.0, 3.0, 2.0])
        collection = pyg.LinkPredMetricCollection(
            [modules.NDCG(k=2), pyg.LinkPredNDCG(k=2, weighted=True), pyg.LinkPredRecall(k=2)]
        )
        collection.update(LISTS, TRUTH, weight)
        values = collection.compute()
        assert float(values["NDCG@2"]) == pytest.approx(float(values["WeightedLinkPredNDCG@2"]))
        alone = modules.NDCG(k=2)
        alone.update(LISTS, TRUTH)
        assert float(alone.compute()) != pytest.approx(float(values["NDCG@2"]))


@needs_torchmetrics
class TestInTorchmetrics:
    def test_metrics_of_a_collection_do_not_take_each_others_state(self):
        """They start alike here, and a collection takes such metrics for one."""
        parts = {
            "recall@1": modules.Recall(k=1),
            "recall@2": modules.Recall(k=2),
            "hit_rate@2": modules.HitRate(k=2),
            "ndcg": modules.NDCG(k=2),
            "binary": modules.NDCG(k=2, gain="binary"),
            "neg": modules.Recall(k=1, empty_target_action="neg"),
        }
        collection = torchmetrics.MetricCollection(copy.deepcopy(parts))
        for lists in (-torch.ones_like(LISTS[:2]), LISTS[:2], LISTS):
            collection.update(lists, TRUTH)
            for metric in parts.values():
                metric.update(lists, TRUTH)
        assert collection.compute() == {name: metric.compute() for name, metric in parts.items()}

    def test_forward_gives_the_mini_batch_and_keeps_all(self):
        metric = modules.Recall(k=1, keep_per_user=True)
        assert metric(LISTS, TRUTH) == 0.25
        assert metric(-torch.ones_like(LISTS), TRUTH) == 0
        assert metric.compute() == 0.125
        assert metric.compute_per_user().numel() == 6

    def test_metrics_of_two_machines_can_be_merged(self):
        one, two, both = (modules.Recall(k=1, keep_per_user=True) for _ in range(3))
        one.update(LISTS, TRUTH)
        two.update(LISTS[:2], TRUTH[:, :1])
        both.update(LISTS, TRUTH)
        both.update(LISTS[:2], TRUTH[:, :1])
        one.merge_state(two)
        assert one.compute() == both.compute()
        assert one.compute_per_user().nansum() == both.compute_per_user().nansum()

    def test_plot(self, monkeypatch):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        metric = modules.NDCG(k=3)
        metric.update(LISTS, TRUTH)
        figure, axes = metric.plot()
        assert axes.get_ylim()[0] <= 0
        metric.plot([metric.compute(), metric.compute()], axes)
        matplotlib.pyplot.close(figure)


@pytest.mark.skipif(torchmetrics is not None, reason="needs torchmetrics to be missing")
def test_plot_says_what_is_missing():
    with pytest.raises(ImportError, match="pip install torchmetrics"):
        modules.NDCG(k=3).plot()


@needs_torchmetrics
def test_all_else_works_without_torchmetrics():
    code = (
        "import sys, pytest; sys.modules['torchmetrics'] = None; "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    here = Path(__file__).parent
    options = ["-q", "-p", "no:cacheprovider", "-k", "not thousand and not mini_batches"]
    done = subprocess.run(
        [sys.executable, "-c", code, *options, str(here)],
        cwd=here.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "skipped" in done.stdout


def test_the_stub_is_that_of_the_registry_and_part_of_the_package():
    assert module_stubs.STUB.read_text() == module_stubs.stub()
    (included,) = re.findall(
        r"^\[tool.setuptools.package-data\]\npyg_recmetrics = (.*)$",
        (ROOT / "pyproject.toml").read_text(),
        flags=re.MULTILINE,
    )
    patterns = json.loads(included)
    name = module_stubs.STUB.relative_to(ROOT / "pyg_recmetrics")
    assert any(name.match(pattern) for pattern in patterns)
