"""Metric classes for loops over mini-batches: one tester of all of them.

A :class:`Use` is a class with some arguments and some mini-batches. Hypothesis draws uses of every
class, and every :func:`law` holds for all of them.
"""

import copy
import inspect
import itertools
import math
import pickle
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from torch_geometric import metrics as pyg

from pyg_recmetrics import Catalogue, RankedEdges, metrics, modules
from tests.support.cases.strategies import cases, scored_pairs
from tests.support.machines.optional import needs_collection, needs_torchmetrics, torchmetrics
from tests.support.machines.other_process import run_python
from tests.support.tools import module_stubs
from tests.support.tools.laws import values_of

NAMES = dir(modules)
CURVES = ("PrecisionRecallCurve", "RecallAtFixedPrecision")
OF_LISTS = [name for name in NAMES if name not in CURVES]

CATALOGUE = Catalogue(
    40,
    seen=torch.stack([torch.arange(200), torch.arange(200).pow(2) % 40]),
    item_category=torch.arange(40) % 3,
    item_embedding=torch.randn(40, 4, generator=torch.Generator().manual_seed(0)),
)
#: Of each law. Without torchmetrics, what is different is seen at once.
NUM_EXAMPLES = 1 if torchmetrics is None else 30

#: What a user without truth counts as.
COUNTS_AS = {"skip": math.nan, "neg": 0.0, "pos": 1.0}

LISTS, TRUTH = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]]), torch.tensor([[0, 0, 1], [1, 2, 2]])
WEIGHT = torch.tensor([1.0, 3.0, 2.0])
PAIRS = (torch.tensor([0.4, 0.01, 0.5, 0.6]), torch.tensor([1, 0, 0, 1]), torch.zeros(4).long())
#: A mini-batch of lists, and one of pairs.
BATCH = ((LISTS, TRUTH), PAIRS)

# What is said of lists that are too short, and by torchmetrics of `compute` before any `update`.
pytestmark = [
    pytest.mark.filterwarnings("ignore:'pred_index_mat' holds lists of"),
    pytest.mark.filterwarnings("ignore:The ``compute`` method of metric"),
]


@dataclass
class Use:
    """A class, its arguments, mini-batches, the same as one, and what the function says of it."""

    cls: type
    arguments: dict
    batches: list[dict]
    whole: dict
    wanted: tuple

    def new(self, **more):
        return self.cls(**self.arguments, **more)

    @property
    def is_of_lists(self):
        return "pred_index_mat" in self.whole

    def after(self, *batches, metric=None, **more):
        """A metric that has seen mini-batches."""
        metric = self.new(**more) if metric is None else metric
        for batch in batches:
            metric.update(**batch)
        return metric


@st.composite
def uses(draw, names=NAMES):
    name = draw(st.sampled_from(names))
    cls = getattr(modules, name)
    return draw((uses_of_pairs if name in CURVES else uses_of_lists)(cls))


@st.composite
def uses_of_lists(draw, cls):
    case, parameters = draw(cases()), inspect.signature(cls).parameters
    row = st.lists(st.integers(-1, 9), min_size=4, max_size=4)
    lists = torch.tensor(draw(st.lists(row, min_size=case.num_users, max_size=case.num_users)))
    truth = torch.tensor(case.truth).t()
    weight = None if case.weights is None else torch.tensor(case.weights)
    of_function = {
        each: draw(st.sampled_from(values_of(parameter, k=14)))
        for each, parameter in cls.definition.parameters.items()
        if each != "average" and draw(st.booleans())
    }
    if weight is None:
        of_function.pop("weighted", None)  # for which a class requires weights
    k = draw(st.integers(1, 12)) if "k" in parameters else None
    arguments = of_function | ({} if k is None else {"k": k})
    action = draw(st.sampled_from(list(COUNTS_AS)))
    options = {"empty_target_action": action, "catalogue": CATALOGUE}
    arguments |= {each: value for each, value in options.items() if each in parameters}
    cuts = sorted(draw(st.lists(st.integers(0, case.num_users), max_size=4)))
    batches = [
        users_between(start, stop, lists, truth, weight)
        for start, stop in pairwise([0, *cuts, case.num_users])
    ]
    metric = metrics.Metric(cls.definition.name, k, of_function)
    value = metric(RankedEdges.from_topk(lists, truth, weight).with_catalogue(CATALOGUE))
    whole = users_between(0, case.num_users, lists, truth, weight)
    if metric.is_aggregate:
        return Use(cls, arguments, batches, whole, (value,))
    counted = value.tolist()
    if metric.needs_truth:
        weights = case.weights or [1] * len(case.truth)
        pairs = zip(case.truth, weights, strict=True)
        have_truth = {user for (user, _), each in pairs if each > 0}
        for user in set(range(case.num_users)) - have_truth:
            counted[user] = COUNTS_AS[action]
    return Use(cls, arguments, batches, whole, (torch.tensor(counted).nanmean(),))


def users_between(start, stop, lists, truth, weight=None):
    is_in = (truth[0] >= start) & (truth[0] < stop)
    row = truth[:, is_in] - torch.tensor([[start], [0]])
    batch = {"pred_index_mat": lists[start:stop], "edge_label_index": row}
    return batch if weight is None else batch | {"edge_label_weight": weight[is_in]}


#: What curves take, where each argument may be left out.
CURVE_ARGUMENTS = {
    "max_k": st.none() | st.integers(1, 12),
    "adaptive_k": st.booleans(),
    "empty_target_action": st.sampled_from(list(COUNTS_AS)),
    "aggregation": st.sampled_from(["mean", "median", "min", "max", torch.amax]),
}
MIN_PRECISION = {"min_precision": st.sampled_from([0.0, 0.25, 1.0])}


@st.composite
def uses_of_pairs(draw, cls):
    preds, target, indexes = scored_pairs(draw(cases()))
    num_pairs, num_batches = len(preds), draw(st.integers(1, 4))
    batch = st.integers(0, num_batches - 1)
    drawn = torch.tensor(draw(st.lists(batch, min_size=num_pairs, max_size=num_pairs)))
    # Equal scores rank in the order in which they come.
    order = drawn.argsort(stable=True)
    preds, target, indexes = preds.double()[order] / 1e4, target.long()[order], indexes[order]
    of_class = MIN_PRECISION if cls.__name__ == "RecallAtFixedPrecision" else {}
    options = draw(st.fixed_dictionaries({}, optional=CURVE_ARGUMENTS | of_class))
    arguments = dict(options)
    is_kept = torch.ones(num_pairs, dtype=torch.bool)
    if draw(st.booleans()):
        arguments["ignore_index"] = -100
        flags = draw(st.lists(st.booleans(), min_size=num_pairs - 1, max_size=num_pairs - 1))
        is_kept[1:] = torch.tensor(flags, dtype=torch.bool)
        target = target.masked_fill(~is_kept, -100)
    pairs = {"preds": preds, "target": target, "indexes": indexes}
    sizes = torch.bincount(drawn, minlength=num_batches).tolist()
    parts = zip(*(part.split(sizes) for part in pairs.values()), strict=True)
    batches = [dict(zip(pairs, part, strict=True)) for part in parts]
    ranked = RankedEdges.from_pairs(*(part[is_kept] for part in pairs.values()))
    function = {
        "PrecisionRecallCurve": metrics.precision_recall_curve,
        "RecallAtFixedPrecision": metrics.recall_at_fixed_precision,
    }[cls.__name__]
    return Use(cls, arguments, batches, pairs, function(ranked, **options))


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def assert_close(found, wanted):
    for one, other in zip(as_tuple(found), as_tuple(wanted), strict=True):
        assert one.dtype == other.dtype
        # Where there is one cut-off, torchmetrics makes a number of what its metrics return.
        expected = pytest.approx(other.reshape(-1).tolist(), rel=1e-12, abs=1e-12, nan_ok=True)
        assert one.reshape(-1).tolist() == expected


def assert_equal(found, wanted):
    for one, other in zip(as_tuple(found), as_tuple(wanted), strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def assert_same_state(one, other):
    assert_equal(tuple(one.state.values()), tuple(other.state.values()))


@pytest.fixture
def double_results():
    """Lets metrics return double precision, so that what they return shows every difference."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def law(check):
    """Lets a test hold for random uses of every class."""

    @pytest.mark.usefixtures("double_results")
    @settings(max_examples=NUM_EXAMPLES)
    @given(use=uses())
    def checked(use):
        check(use)

    return checked


@law
def test_any_mini_batches_and_one_update_equal_the_function(use):
    given = copy.deepcopy(use.batches)
    parts, computed = use.after(*use.batches), use.new()
    for batch in use.batches:
        use.after(batch, metric=computed)
        if use.is_of_lists:  # a curve of no pairs is an error
            computed.compute()
    for metric in (parts, computed, use.after(use.whole)):
        assert_close(metric.compute(), use.wanted)
        assert_equal(metric.compute(), metric.compute())
    if use.is_of_lists:
        assert_close(use.after(*use.batches[::-1]).compute(), use.wanted)
    for batch, before in zip(use.batches, given, strict=True):
        assert_equal(tuple(batch.values()), tuple(before.values()))


@law
def test_a_reset_forgets_all_users(use):
    metric = use.after(*use.batches)
    metric.compute()
    metric.reset()
    assert_same_state(metric, use.new())
    use.after(use.whole, metric=metric)
    assert_equal(metric.compute(), use.after(use.whole).compute())


@law
def test_copies_go_their_own_way_also_through_a_state_dict(use):
    first, *others = use.batches
    metric = use.after(first)
    copies = [copy.deepcopy(metric)]
    if use.arguments.get("aggregation") is not torch.amax:
        copies.append(pickle.loads(pickle.dumps(metric)))
    if torchmetrics is not None:
        copies += [metric.clone(), use.new()]
        metric.persistent(True)
        copies[-1].persistent(True)
        copies[-1].load_state_dict(metric.half().state_dict())
    for each in copies:
        assert repr(each) == repr(metric)
        if use.is_of_lists:  # a curve of no pairs is an error
            assert_equal(each.compute(), use.after(first).compute())
        assert_close(use.after(*others, metric=each).compute(), use.wanted)
    assert_same_state(metric, use.after(first))


@law
def test_a_model_that_is_converted_takes_nothing_from_it(use):
    first, *others = use.batches
    for convert in ("half", "bfloat16", "float", "double"):
        metric = use.after(first)
        getattr(torch.nn.Sequential(torch.nn.Linear(2, 2), metric), convert)()
        if torchmetrics is not None:
            metric.set_dtype(torch.half)
        use.after(*others, metric=metric)
        assert_equal(metric.compute(), use.after(*use.batches).compute())
        metric.reset()
        assert_same_state(metric, use.new())


@needs_torchmetrics
@law
def test_forward_is_the_value_of_the_mini_batch(use):
    metric = use.new()
    for batch in use.batches:
        if use.is_of_lists or (batch["target"] >= 0).any():
            assert_equal(metric(**batch), use.after(batch).compute())
    assert_close(metric.compute(), use.wanted)


@needs_torchmetrics
@law
def test_processes_and_machines_merge_their_states(use):
    first, *others = use.batches
    other, states = use.after(*others), iter(())

    def gather(tensor, group=None):  # as torchmetrics calls it, for each tensor in order
        return [tensor, next(states)]

    metric = use.after(first, dist_sync_fn=gather, distributed_available_fn=lambda: True)
    states = iter([*other.state.values()] * 2)
    assert_close(metric.compute(), use.wanted)
    assert_same_state(metric, use.after(first))
    merged = use.after(first)
    merged.merge_state(other)
    assert_close(merged.compute(), use.wanted)


@pytest.mark.usefixtures("double_results")
@settings(max_examples=NUM_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(use=uses(), has_double=st.booleans())
def test_on_any_device_also_without_double_precision(device, use, has_double):
    first, *others = ({key: x.to(device) for key, x in batch.items()} for batch in use.batches)
    with patch.object(modules.ranking_metric, "holds_double_precision", lambda _: has_double):
        metric = use.new()
        for _ in range(2):
            use.after(*others, metric=use.after(first, metric=metric).to(device))
            kept = {part.device.type for part in metric.state.values()}
            assert kept == {device.type if has_double else "cpu"}
            assert {part.device.type for part in as_tuple(metric.compute())} == {device.type}
            assert_close(metric.to("cpu").compute(), use.wanted)
            metric.to(device).reset()


@pytest.mark.parametrize("name", NAMES)
def test_results_are_in_the_default_dtype_and_nobody_has_a_value(name):
    metric, batch = make(name), BATCH[name in CURVES]
    for parts in ([part[..., :0] if part is TRUTH else part[:0] for part in batch], batch):
        if name in CURVES:
            with pytest.raises(ValueError, match=r"'update' .* with pairs .* \(got none\)"):
                metric.compute()
        else:  # of no users, no items are covered; all else has no value
            value = metric.compute()
            assert (value.shape, value.nan_to_num(0)) == ((), 0)
            assert value.isnan() == (name != "Coverage")
        metric.update(*parts)
    assert as_tuple(metric.compute())[0].dtype == torch.float32


@needs_torchmetrics
@pytest.mark.parametrize("name", NAMES)
def test_it_takes_the_arguments_of_torchmetrics(name):
    given = {"compute_on_cpu": True, "dist_sync_on_step": True, "process_group": None}
    given |= {"sync_on_compute": False, "compute_with_cache": False, "dist_sync_fn": as_tuple}
    given |= {"distributed_available_fn": lambda: False}
    assert given.keys() == modules.ranking_metric.TorchmetricsArguments.__annotations__.keys()
    metric = make(name, **given)
    assert all(getattr(metric, argument) is value for argument, value in given.items())
    assert "compute_on_cpu" not in repr(metric)
    metric.to("meta").update(*BATCH[name in CURVES])
    assert {part.device.type for part in metric.state.values()} == {"cpu"}
    with pytest.raises(TypeError, match="takes no 'sync_on_step'"):
        make(name, sync_on_step=True)


@pytest.mark.parametrize("name", OF_LISTS)
def test_it_has_the_signature_and_the_words_of_the_function(name):
    cls, definition = getattr(modules, name), getattr(modules, name).definition
    own = dict(inspect.signature(cls).parameters)
    assert cls.__doc__.startswith(definition.about)
    assert f":func:`~pyg_recmetrics.metrics.{definition.name}`" in cls.__doc__
    _, *of_function = inspect.signature(definition.function).parameters.values()
    assert [own.pop(each.name).default for each in of_function] == [x.default for x in of_function]
    assert ("catalogue" in own) == bool(set(definition.needs) - {"items"})
    more = {"empty_target_action": "skip", "weighted": False}
    more |= dict.fromkeys(("catalogue", "kwargs"), inspect.Parameter.empty)
    assert {each: own[each].default for each in own} == {each: more[each] for each in own}
    assert (cls.__module__, cls.__qualname__) == ("pyg_recmetrics.modules", name)
    assert cls.higher_is_better is definition.higher_is_better
    ends = (cls.plot_lower_bound, cls.plot_upper_bound)  # of the axis of its plots
    assert ends == tuple(None if math.isinf(end) else end for end in definition.range)


def make(name, k=3, **arguments):
    cls = getattr(modules, name)
    given = {"k": k, "catalogue": CATALOGUE}
    known = inspect.signature(cls).parameters
    return cls(**{each: value for each, value in given.items() if each in known}, **arguments)


def random_batches(seed, k=30, num_items=30):
    """Mini-batches without anything that PyG's metrics are wrong about."""
    generator = torch.Generator().manual_seed(seed)
    lists = torch.rand(40, num_items, generator=generator).argsort()[:, :k]
    is_true = torch.rand(40, num_items, generator=generator) < 0.15
    is_true[::9] = False
    truth = is_true.nonzero().t().contiguous()
    weight = torch.randint(1, 5, truth[0].shape, generator=generator).float()
    cuts = ((0, 10), (10, 35), (35, 40))
    return [users_between(*each, lists, truth, weight) for each in cuts]


@needs_torchmetrics
@settings(max_examples=30)
@given(use=uses(CURVES))
def test_curves_are_those_of_torchmetrics_whose_arguments_come_in_the_same_order(use):
    cls = getattr(torchmetrics.retrieval, f"Retrieval{use.cls.__name__}")
    theirs = cls(**use.arguments)
    theirs.update(**use.whole)
    for one, other in zip(use.wanted, theirs.compute(), strict=True):
        assert other.reshape(-1).tolist() == pytest.approx(one.reshape(-1).tolist(), abs=1e-6)
    own, wanted = (
        {each: parameter.default for each, parameter in inspect.signature(x).parameters.items()}
        for x in (use.cls, cls)
    )
    kwargs = wanted.pop("kwargs")  # among which their second class takes the aggregation
    assert [*own.items()] == [*(wanted | {"aggregation": "mean", "kwargs": kwargs}).items()]


class TestCollections:
    @needs_torchmetrics
    def test_metrics_do_not_take_each_others_state(self):
        """A collection takes metrics for one that start alike, as all do that miss everything."""
        made = {name: make(name) for name in NAMES} | {f"{x}@1": make(x, k=1) for x in OF_LISTS}
        made |= {"neg": make("Recall", empty_target_action="neg")}
        made |= {"ignoring": make("PrecisionRecallCurve", ignore_index=0)}
        collection = torchmetrics.MetricCollection(copy.deepcopy(made))
        preds, target, indexes = PAIRS
        for lists, relevant in ((-torch.ones_like(LISTS), target**0), (LISTS, target)):
            batch = {"pred_index_mat": lists, "edge_label_index": TRUTH}
            batch |= {"preds": preds, "target": relevant, "indexes": indexes}
            for each in (collection, *made.values()):
                names = batch.keys() & inspect.signature(each.update).parameters
                each.update(**(batch if each is collection else {x: batch[x] for x in names}))
        values = collection.compute()
        for name, metric in made.items():
            assert_equal(values[name], metric.compute())
        assert [*CURVES] in [sorted(x) for x in collection.compute_groups.values()]

    @needs_collection
    def test_those_of_pyg_take_all_of_them(self):
        made = [make(name, k) for name in OF_LISTS for k in (2, 5) if name != "RPrecision"]
        alone = copy.deepcopy(made)
        theirs = [pyg.LinkPredMAP(k=4), modules.NDCG(k=3, weighted=True), modules.RPrecision()]
        collection = pyg.LinkPredMetricCollection([*made, *theirs])
        assert collection.max_k == 5
        for seed in range(2):
            for each in (collection.half(), *alone):
                each.reset()
            for batch, each in itertools.product(random_batches(seed), (collection, *alone)):
                each.update(**batch)
        values = collection.compute()
        for metric in alone:
            assert_equal(values[f"{type(metric).__name__}@{metric.k}"], metric.compute())
        assert {"RPrecision@all", "LinkPredMAP@4", "WeightedNDCG@3"} <= values.keys()


class TestMemory:
    def test_a_mean_keeps_two_numbers_and_all_else_one_for_each_item(self):
        for name, most in (("NDCG", 2), ("Entropy", 40), ("Personalization", 41)):
            metric = make(name, k=2)
            for _ in range(3):
                metric.update(torch.tensor([[38, 3], [7, 38]]), TRUTH[:, :0])
            assert sum(part.numel() for part in metric.state.values()) == most

    def test_pairs_that_cannot_matter_are_not_kept(self):
        metric = modules.PrecisionRecallCurve(max_k=2, adaptive_k=True)
        for user in range(3):
            target, indexes = torch.arange(1000) == 999, torch.full((1000,), user)
            metric.update(torch.arange(1000) / 1000, target.flip(0), indexes)
        assert metric.state["preds"].numel() == 9
        assert metric.state["target"].sum() == 3


@pytest.mark.parametrize(
    ("metric", "enough", "needed"),
    [
        (modules.NDCG(k=5, ideal="retrieved", ideal_k=11), 11, 11),
        (modules.RPrecision(), 7, 7),
        (modules.Recall(k=50), 30, 50),  # enough are all items
    ],
    ids=repr,
)
def test_a_metric_warns_once_of_short_lists_whatever_happens_to_it(metric, enough, needed):
    lists, truth, _ = random_batches(0)[1].values()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.update(lists[:, :enough], truth)
        metric.update(LISTS[:0], TRUTH[:, :0])
        message = f"lists of {enough - 1} items, but {needed} are needed"
        with pytest.warns(UserWarning, match=message) as warned:
            metric.update(lists[:, : enough - 1], truth)
        assert [each.filename for each in warned] == [__file__]
        metric.reset()
        for same in (metric, copy.deepcopy(metric)):
            same.update(lists[:, : enough - 1], truth)


#: What is called with the module of classes and an NDCG, and what is wrong about it.
ERRORS = [
    (lambda m, _: m.ROCAUC, AttributeError, r"no 'ROCAUC': 'roc_auc' needs .*'evaluate"),
    (lambda m, _: m.NDGC, AttributeError, "has no attribute 'NDGC'"),
    (lambda m, _: m.Recall(3, average="micro"), ValueError, r"'average' .*\(got 'micro'\)"),
    (lambda m, _: m.Coverage(k=2), TypeError, "missing a required argument: 'catalogue'"),
    (lambda m, _: m.RecallAtFixedPrecision(1.5), ValueError, r"'min_precision' .* \[0, 1\]"),
    (lambda m, _: m.PrecisionRecallCurve(ignore_index=-1.0), ValueError, r"\(got -1.0\)"),
    (lambda _, x: x.update(LISTS, TRUTH + 3, WEIGHT), ValueError, r"'edge_label_index' .*\[0, 3\)"),
    (lambda _, x: x.update(LISTS, TRUTH, WEIGHT), ValueError, r"'error' \(got 1 without\)"),
    (lambda _, x: x.update(LISTS, TRUTH), ValueError, "'edge_label_weight' .* 'NDCG' with 'weigh"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_what_is_wrong_is_said_and_adds_nothing(call, error, message):
    metric = modules.NDCG(k=3, empty_target_action="error", weighted=True)
    metric.update(LISTS[:2], TRUTH, WEIGHT)
    before = copy.deepcopy(metric)
    with pytest.raises(error, match=message):
        call(modules, metric)
    assert_same_state(metric, before)


def test_errors_of_pairs_which_add_nothing():
    preds, target, indexes = PAIRS
    metric = modules.PrecisionRecallCurve(max_k=2, ignore_index=0, empty_target_action="error")
    for pairs in ((preds, target[1:], indexes), (preds, target, indexes[1:])):
        with pytest.raises(ValueError, match="needs to"):
            metric.update(*pairs)
        assert metric.state["indexes"].numel() == 0
    metric.update(*(part.view(2, 2) for part in PAIRS))  # other shapes are flattened
    assert metric.state["indexes"].numel() == 2
    curve = modules.PrecisionRecallCurve(max_k=2, empty_target_action="error")
    curve.update(torch.full((2,), -torch.inf), target[:2], indexes[:2])
    with pytest.raises(ValueError, match="'preds' needs to hold a finite score for every"):
        curve.compute()
    curve.update(*(part[:1] for part in PAIRS))
    assert curve.compute()[1].tolist() == [0.5, 0.5]
    curve.update(preds, target * 0, indexes + 1)
    with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
        curve.compute()


@pytest.mark.skipif(torchmetrics is not None, reason="needs torchmetrics to be missing")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_missing_without_torchmetrics(name):
    with pytest.raises(ImportError, match="'sync_on_compute' needs torchmetrics"):
        make(name, sync_on_compute=False)
    metric = make(name)
    metric.update(*BATCH[name in CURVES])
    with pytest.raises(ImportError, match="pip install torchmetrics"):
        metric.plot()
    with pytest.raises(ImportError, match=r"write update\(\.\.\.\) and compute\(\)"):
        metric(*BATCH[name in CURVES])


def test_printing_also_of_a_subclass_that_takes_other_arguments():
    class Curve(modules.RecallAtFixedPrecision):
        def __init__(self, **kw):
            super().__init__(0.5, **kw)

    assert repr(modules.NDCG(20, gain="binary")) == "NDCG(k=20, gain='binary')"
    assert repr(Curve(max_k=4)) == "Curve(min_precision=0.5, max_k=4)"


@needs_torchmetrics
@pytest.mark.parametrize("name", ["NDCG", *CURVES])
def test_plots(name):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    metric = make(name)
    metric.update(*BATCH[name in CURVES])
    figure, axes = metric.plot()
    drawn, values = axes.get_lines()[0], as_tuple(metric.compute())
    assert drawn.get_ydata().tolist() == pytest.approx(values[0].reshape(-1).tolist())
    if name == "PrecisionRecallCurve":
        assert drawn.get_xdata().tolist() == values[1].tolist()
        assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == (
            *("Recall", "Precision"),
            name,
        )
    metric.plot(values if name == "PrecisionRecallCurve" else [values[0]] * 2, axes)
    matplotlib.pyplot.close(figure)


@pytest.mark.slow
@needs_torchmetrics
def test_all_else_works_without_torchmetrics():
    code = "import sys, pytest; sys.modules['torchmetrics'] = None; "
    code += "sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-p", "no:cacheprovider", "-k", "not any_mini and not any_device"]
    done = run_python("-c", code, *options, Path(__file__).parent)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "skipped" in done.stdout


def test_the_stub_is_that_of_the_registry():
    assert module_stubs.STUB.read_text() == module_stubs.stub()
