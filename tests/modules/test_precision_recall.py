"""Curves of precision and recall over mini-batches, against their functions and torchmetrics."""

import copy
import inspect
import io
import itertools
import math
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics import RankedEdges, metrics
from pyg_recmetrics.modules import PrecisionRecallCurve, RecallAtFixedPrecision
from tests.support.cases.strategies import cases, scored_pairs
from tests.support.machines.optional import needs_torchmetrics, torchmetrics

PREDS = torch.tensor([0.4, 0.01, 0.5, 0.6, 0.2, 0.3, 0.5, 0.9, 0.8])
TARGET = torch.tensor([1, 0, 0, 1, 1, 0, 1, 0, 0])
INDEXES = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2])
PAIRS = (PREDS, TARGET, INDEXES)

#: With few pairs kept, and with all of them.
KEPT = ({"max_k": 4}, {"max_k": 4, "aggregation": "median"}, {})


def batches(pairs, size):
    """Mini-batches of some users each."""
    indexes = pairs[2]
    for start in range(0, int(indexes.max()) + 1, size):
        is_in = (indexes >= start) & (indexes < start + size)
        yield tuple(part[is_in] for part in pairs)


@pytest.fixture
def double_results():
    """Lets metrics return double precision, so that what they return shows every difference."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def quarter(values, dim):
    return values.quantile(0.25, dim=dim)


options = st.fixed_dictionaries(
    {
        "max_k": st.none() | st.integers(2, 12),
        "adaptive_k": st.booleans(),
        "empty_target_action": st.sampled_from(["neg", "pos", "skip"]),
        "aggregation": st.sampled_from(["mean", "median", "min", "max", quarter]),
    }
)


@pytest.mark.usefixtures("double_results")
@settings(max_examples=200)
@given(
    case=cases(),
    options=options,
    size=st.integers(1, 3),
    min_precision=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_mini_batches_add_up_to_the_function(case, options, size, min_precision):
    pairs = scored_pairs(case)
    curve = PrecisionRecallCurve(**options)
    recall = RecallAtFixedPrecision(min_precision, **options)
    for batch in batches(pairs, size):
        curve.update(*batch)
        recall.update(*batch)
    ranked = RankedEdges.from_pairs(*pairs)
    for found, wanted in zip(
        (*curve.compute(), *recall.compute()),
        (
            *metrics.precision_recall_curve(ranked, **options),
            *metrics.recall_at_fixed_precision(ranked, min_precision, **options),
        ),
        strict=True,
    ):
        assert found.dtype == wanted.dtype
        # Where there is one cut-off, torchmetrics makes a number of what its metrics return.
        assert found.reshape(-1).tolist() == pytest.approx(wanted.reshape(-1).tolist(), abs=1e-12)


@needs_torchmetrics
@settings(max_examples=200)
@given(
    case=cases(),
    options=options,
    size=st.integers(1, 3),
    min_precision=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    ignored=st.sampled_from([None, -100]),
    data=st.data(),
)
def test_torchmetrics_has_the_same_values(case, options, size, min_precision, ignored, data):
    preds, target, indexes = scored_pairs(case)
    if ignored is not None:
        flags = data.draw(st.lists(st.booleans(), min_size=len(target), max_size=len(target)))
        is_ignored = torch.tensor(flags)
        is_ignored[0] = False  # an empty mini-batch is an error of theirs
        target = target.long().masked_fill(is_ignored, ignored)
    for ours, theirs in (
        (PrecisionRecallCurve, torchmetrics.retrieval.RetrievalPrecisionRecallCurve),
        (RecallAtFixedPrecision, torchmetrics.retrieval.RetrievalRecallAtFixedPrecision),
    ):
        given = {**options, "ignore_index": ignored}
        if ours is RecallAtFixedPrecision:
            given["min_precision"] = min_precision
        ours, theirs = ours(**given), theirs(**given)
        for batch in batches((preds, target, indexes), size):
            ours.update(*batch)
        theirs.update(preds, target, indexes=indexes)
        for found, wanted in zip(ours.compute(), theirs.compute(), strict=True):
            assert found.dtype == wanted.dtype
            assert found.tolist() == pytest.approx(wanted.reshape(found.shape).tolist(), abs=1e-6)


@settings(max_examples=200)
@given(case=cases(), options=options, num_batches=st.integers(1, 4), data=st.data())
def test_the_pairs_of_a_user_may_come_in_any_mini_batches(case, options, num_batches, data):
    pairs = scored_pairs(case)
    draws = st.integers(0, num_batches - 1)
    drawn = data.draw(st.lists(draws, min_size=len(pairs[0]), max_size=len(pairs[0])))
    # Equal scores rank in the order in which they come.
    order = torch.tensor(drawn, dtype=torch.long).argsort(stable=True)
    pairs = tuple(part[order] for part in pairs)
    sizes = torch.bincount(torch.tensor(drawn, dtype=torch.long), minlength=num_batches).tolist()
    parts, whole = PrecisionRecallCurve(**options), PrecisionRecallCurve(**options)
    for batch in zip(*(part.split(sizes) for part in pairs), strict=True):
        parts.update(*batch)
    whole.update(*pairs)
    wanted = metrics.precision_recall_curve(RankedEdges.from_pairs(*pairs), **options)
    for found, alone, expected in zip(parts.compute(), whole.compute(), wanted, strict=True):
        assert torch.equal(found, alone)
        assert found.reshape(-1).tolist() == pytest.approx(expected.tolist(), abs=1e-6)


@needs_torchmetrics
@pytest.mark.parametrize("max_k", [None, 1, 2, 5, 10])
@pytest.mark.parametrize("ignore_index", [None, 1])
@pytest.mark.parametrize("kind", ["few queries", "many queries", "no truth", "cube"])
def test_torchmetrics_has_the_same_values_of_queries_in_four_mini_batches(
    kind, ignore_index, max_k
):
    """The settings of torchmetrics' own test of its class."""
    generator = torch.Generator().manual_seed(42)
    shape = (4, 32, 3) if kind == "cube" else (4, 32)
    indexes = torch.randint(64 if kind == "many queries" else 10, shape, generator=generator)
    preds = torch.rand(shape, generator=generator)
    target = torch.randint(2, shape, generator=generator)
    if kind == "no truth":
        target = torch.zeros_like(target)
    for adaptive_k, action, aggregation in itertools.product(
        [False, True], ["neg", "skip", "pos"], ["mean", "median", "max", "min", quarter]
    ):
        given = {"adaptive_k": adaptive_k, "empty_target_action": action}
        given |= {"max_k": max_k, "ignore_index": ignore_index, "aggregation": aggregation}
        given |= {"dist_sync_on_step": False}
        ours = PrecisionRecallCurve(**given)
        theirs = torchmetrics.retrieval.RetrievalPrecisionRecallCurve(**given)
        for batch in zip(preds, target, indexes, strict=True):
            ours.update(*batch)
            theirs.update(*batch)
        for found, wanted in zip(ours.compute(), theirs.compute(), strict=True):
            assert torch.allclose(found, wanted.reshape(found.shape))


class TestMemory:
    @pytest.mark.parametrize("adaptive_k", [True, False])
    def test_pairs_that_cannot_matter_are_not_kept(self, adaptive_k):
        metric = PrecisionRecallCurve(max_k=2, adaptive_k=adaptive_k)
        metric.update(*PAIRS)
        assert torch.equal(metric.get("preds"), PREDS[[0, 2, 3, 4, 5, 6, 7, 8]].double())
        metric.reset()
        generator = torch.Generator().manual_seed(0)
        target = torch.arange(1000) == 999
        for user in range(3):
            indexes = torch.full((1000,), user)
            metric.update(torch.rand(1000, generator=generator), target, indexes)
        assert metric.get("preds").numel() <= 3 * 3
        assert metric.get("target").sum() == 3
        assert metric.get("target").dtype == torch.bool

    def test_all_pairs_are_kept_where_there_is_no_last_cut_off(self):
        metric = PrecisionRecallCurve(ignore_index=0)
        metric.update(*PAIRS)
        assert metric.get("indexes").tolist() == [0, 0, 1, 1]


class TestWhatIsGiven:
    def test_arguments_are_those_of_torchmetrics_in_the_same_order(self):
        retrieval = pytest.importorskip("torchmetrics.retrieval")
        for ours, theirs in (
            (PrecisionRecallCurve, retrieval.RetrievalPrecisionRecallCurve),
            (RecallAtFixedPrecision, retrieval.RetrievalRecallAtFixedPrecision),
        ):
            own, wanted = (
                {name: parameter.default for name, parameter in parameters.items()}
                for parameters in (inspect.signature(cls).parameters for cls in (ours, theirs))
            )
            kwargs = wanted.pop("kwargs")
            # Their second class takes the aggregation among its kwargs.
            wanted |= {"aggregation": "mean", "kwargs": kwargs}
            assert list(own.items()) == list(wanted.items())

    def test_printing(self):
        assert repr(PrecisionRecallCurve()) == "PrecisionRecallCurve()"
        assert repr(PrecisionRecallCurve(4, aggregation="max")) == (
            "PrecisionRecallCurve(max_k=4, aggregation='max')"
        )
        assert repr(RecallAtFixedPrecision(0.5, 4)) == (
            "RecallAtFixedPrecision(min_precision=0.5, max_k=4)"
        )

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ({"max_k": 0}, ValueError, "'max_k' needs to be a positive integer"),
            ({"adaptive_k": 1}, TypeError, "'adaptive_k' needs to be a boolean"),
            ({"empty_target_action": "no"}, ValueError, "'empty_target_action' needs to be one of"),
            ({"ignore_index": -1.0}, ValueError, r"'ignore_index' .* an integer \(got -1.0\)"),
            ({"ignore_index": True}, ValueError, "'ignore_index' needs to be an integer"),
            ({"aggregation": "sum"}, ValueError, r"'aggregation' .*or a function \(got 'sum'\)"),
            ({"min_precision": 1.5}, ValueError, r"'min_precision' needs to be in \[0, 1\]"),
        ],
    )
    def test_wrong_arguments_are_named(self, given, error, message):
        with pytest.raises(error, match=message):
            RecallAtFixedPrecision(**given)

    @pytest.mark.parametrize("ignore_index", [None, 0])
    def test_pairs_of_other_shapes_are_refused(self, ignore_index):
        metric = PrecisionRecallCurve(max_k=4, ignore_index=ignore_index)
        with pytest.raises(ValueError, match="needs to"):
            metric.update(PREDS, TARGET[:-1], INDEXES)
        with pytest.raises(ValueError, match="'indexes' needs to"):
            metric.update(PREDS, TARGET, INDEXES[:-1])
        with pytest.raises(TypeError, match="'target' needs to be a tensor"):
            metric.update(PREDS, None, INDEXES)
        assert metric.get("indexes").numel() == 0
        metric.update(PREDS.view(3, 3), TARGET.view(3, 3), INDEXES.view(3, 3))
        assert metric.get("indexes").unique().numel() == 3 - (ignore_index == 0)

    def test_ignored_pairs_are_no_candidates(self):
        metric = PrecisionRecallCurve(adaptive_k=True, ignore_index=-100)
        metric.update(PREDS[:4], torch.tensor([1, -100, -100, 1]), INDEXES[:4])
        precisions, recalls, top_k = metric.compute()
        assert precisions.tolist() == [1, 1]
        assert recalls.tolist() == [0.5, 1]
        assert top_k.tolist() == [1, 2]

    def test_scores_may_be_negative(self):
        positive, negative = PrecisionRecallCurve(), PrecisionRecallCurve()
        positive.update(*PAIRS)
        negative.update(PREDS - 7, TARGET, INDEXES)
        for one, other in zip(positive.compute(), negative.compute(), strict=True):
            assert torch.equal(one, other)

    @pytest.mark.parametrize("options", KEPT)
    def test_users_without_truth_can_be_an_error(self, options):
        metric = PrecisionRecallCurve(**options, empty_target_action="error")
        metric.update(*(part[:2] for part in PAIRS))
        metric.update(PREDS[3:4], TARGET[3:4] * 0, INDEXES[3:4])  # has truth in the first
        metric.compute()
        metric.update(*PAIRS)
        with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
            metric.compute()

    def test_a_query_may_have_no_finite_score_in_one_of_its_mini_batches(self):
        metric = PrecisionRecallCurve(max_k=2)
        metric.update(torch.tensor([-torch.inf, -torch.inf]), TARGET[:2], INDEXES[:2])
        with pytest.raises(ValueError, match="'preds' needs to hold a finite score for every"):
            metric.compute()
        metric.update(PREDS[:1], TARGET[:1], INDEXES[:1])
        assert metric.compute()[1].tolist() == [0.5, 0.5]


class TestSubclasses:
    class Mine(RecallAtFixedPrecision):
        def __init__(self, **kw):
            super().__init__(0.5, **kw)

    def test_they_may_take_other_arguments(self):
        metric = self.Mine(max_k=4)
        assert repr(metric) == "Mine(min_precision=0.5, max_k=4)"
        metric.update(*PAIRS)
        for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
            assert repr(other) == repr(metric)
            assert other.compute() == metric.compute()


class TestNobody:
    def test_all_users_are_left_out(self):
        for options in KEPT[:2]:
            metric = PrecisionRecallCurve(**options, empty_target_action="skip")
            metric.update(PREDS[7:], TARGET[7:], INDEXES[7:])
            precisions, recalls, top_k = metric.compute()
            assert precisions.tolist() == recalls.tolist() == [0, 0, 0, 0]
            assert top_k.tolist() == [1, 2, 3, 4]

    @pytest.mark.filterwarnings("ignore:The ``compute`` method of metric")
    @pytest.mark.parametrize("max_k", [None, 4])
    def test_a_curve_of_no_pairs_is_an_error(self, max_k):
        """As in torchmetrics. A curve of zeros would look like a model that hits nothing."""
        metric = RecallAtFixedPrecision(0.5, max_k=max_k)
        with pytest.raises(ValueError, match=r"'update' needs to be called with pairs"):
            metric.compute()
        metric.update(PREDS[:0], TARGET[:0], INDEXES[:0])
        with pytest.raises(ValueError, match=r"before 'compute' \(got none\)"):
            metric.compute()


@pytest.mark.parametrize("options", KEPT)
class TestState:
    def test_it_can_be_pickled_and_copied(self, options):
        metric, both = PrecisionRecallCurve(**options), PrecisionRecallCurve(**options)
        inverse = (PREDS, 1 - TARGET, INDEXES)
        for batch in (PAIRS, inverse):
            both.update(*batch)
        metric.update(*PAIRS)
        before = [part.clone() for part in metric.compute()]
        for other in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
            other.update(*inverse)
            for one, another in zip(other.compute(), both.compute(), strict=True):
                assert torch.equal(one, another)
        for one, another in zip(metric.compute(), before, strict=True):
            assert torch.equal(one, another)

    def test_it_goes_through_a_state_dict(self, options):
        metric, other = PrecisionRecallCurve(**options), PrecisionRecallCurve(**options)
        metric.update(*PAIRS)
        file = io.BytesIO()
        torch.save(torch.nn.ModuleDict({"curve": metric}).state_dict(), file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
        torch.nn.ModuleDict({"curve": other}).load_state_dict(state)
        for one, another in zip(metric.compute(), other.compute(), strict=True):
            assert torch.equal(one, another)
        with pytest.raises(ValueError, match=r"'state' .*max_k=3.*got .*max_k="):
            PrecisionRecallCurve(max_k=3).load_state_dict(metric.state_dict())

    def test_a_reset_forgets_all_users(self, options):
        metric, alone = PrecisionRecallCurve(**options), PrecisionRecallCurve(**options)
        metric.update(*PAIRS)
        metric.compute()
        metric.reset()
        for each in (metric, alone):
            each.update(PREDS[:4], TARGET[:4], INDEXES[:4])
        for one, another in zip(metric.compute(), alone.compute(), strict=True):
            assert torch.equal(one, another)

    @needs_torchmetrics
    def test_forward_gives_the_mini_batch_and_keeps_all(self, options):
        metric, alone = PrecisionRecallCurve(**options), PrecisionRecallCurve(**options)
        alone.update(PREDS[4:], TARGET[4:], INDEXES[4:])
        metric(PREDS[:4], TARGET[:4], indexes=INDEXES[:4])
        for one, another in zip(
            metric(PREDS[4:], TARGET[4:], indexes=INDEXES[4:]), alone.compute(), strict=True
        ):
            assert torch.equal(one, another)
        wanted = metrics.precision_recall_curve(RankedEdges.from_pairs(*PAIRS), **options)
        for value, expected in zip(metric.compute(), wanted, strict=True):
            assert value.tolist() == pytest.approx(expected.tolist())
        assert metric.update_count == 2

    def test_on_any_device(self, options, device):
        metric = PrecisionRecallCurve(**options).to(device)
        metric.update(*(part.to(device) for part in PAIRS))
        assert {part.device.type for part in metric.compute()} == {device.type}
        metric.to("cpu").update(*(part.to(device) for part in PAIRS))
        assert {part.device.type for part in metric.compute()} == {"cpu"}


@needs_torchmetrics
class TestInTorchmetrics:
    def test_beside_its_own_and_sharing_what_is_the_same(self):
        collection = torchmetrics.MetricCollection(
            {
                "map": torchmetrics.retrieval.RetrievalMAP(),
                "curve": PrecisionRecallCurve(max_k=4),
                "recall": RecallAtFixedPrecision(0.6, max_k=4),
                "ignoring": PrecisionRecallCurve(max_k=4, ignore_index=0),
            }
        )
        # No pair is to be ignored in the first mini-batch, so all three start with one state.
        batches = [(PREDS[:4], torch.ones(4).long(), INDEXES[:4]), tuple(p[4:] for p in PAIRS)]
        for preds, target, indexes in batches:
            collection.update(preds, target, indexes=indexes)
        assert ["curve", "recall"] in collection.compute_groups.values()
        values = collection.compute()
        pairs = [torch.cat(parts) for parts in zip(*batches, strict=True)]
        wanted = {
            "curve": metrics.precision_recall_curve(RankedEdges.from_pairs(*pairs), 4),
            "recall": metrics.recall_at_fixed_precision(RankedEdges.from_pairs(*pairs), 0.6, 4),
            "ignoring": metrics.precision_recall_curve(
                RankedEdges.from_pairs(*(part[pairs[1] != 0] for part in pairs)), 4
            ),
        }
        for name, expected in wanted.items():
            for value, other in zip(values[name], expected, strict=True):
                assert value.tolist() == pytest.approx(other.tolist()), name
        assert values["curve"][0].tolist() != values["ignoring"][0].tolist()

    def test_plots(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        curve, recall = PrecisionRecallCurve(max_k=4), RecallAtFixedPrecision(0.6, max_k=4)
        for metric in (curve, recall):
            metric.update(*PAIRS)
        figure, axes = curve.plot()
        precisions, recalls, _ = curve.compute()
        (line,) = axes.get_lines()
        assert line.get_xdata().tolist() == recalls.tolist()
        assert line.get_ydata().tolist() == precisions.tolist()
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("Recall", "Precision")
        assert axes.get_title() == "PrecisionRecallCurve"
        curve.plot(curve.compute(), ax=axes)
        assert len(axes.get_lines()) == 2
        matplotlib.pyplot.close(figure)
        figure, axes = recall.plot()
        assert math.isclose(axes.get_lines()[0].get_ydata()[0], float(recall.compute()[0]))
        recall.plot([recall.compute()[0]] * 2, axes)
        matplotlib.pyplot.close(figure)


@pytest.mark.skipif(torchmetrics is not None, reason="needs torchmetrics to be missing")
@pytest.mark.parametrize("cls", [PrecisionRecallCurve, RecallAtFixedPrecision])
def test_plot_says_what_is_missing(cls):
    metric = cls(max_k=4)
    metric.update(*PAIRS)
    with pytest.raises(ImportError, match="pip install torchmetrics"):
        metric.plot()
