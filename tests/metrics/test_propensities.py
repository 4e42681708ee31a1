"""Estimates for complete data, from relevant items that were observed with some propensities."""

import math
import re
from functools import cache

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    RankedEdges,
    evaluate,
    metrics,
    rank,
)
from tests.support.cases.small_task import GOOD_SCORES, TASK
from tests.support.cases.strategies import cases
from tests.support.references import naive

OPTIONS = {
    "recall": {"average": ["macro", "micro"], "weighted": [False, True]},
    "dcg": {"gain": ["linear", "exponential", "binary"], "discount": ["log2", "lenskit"]},
    "roc_auc": {},
}

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


@st.composite
def arguments_of(draw, name):
    """A cut-off, if the metric has one, and other arguments."""
    arguments = {
        key: draw(st.sampled_from(values))
        for key, values in OPTIONS[name].items()
        if draw(st.booleans())
    }
    return arguments | ({} if name == "roc_auc" else {"k": draw(st.integers(1, 12))})


CLIPS = st.sampled_from([None, 1e-200, 1e-9, 0.05, 0.3, 0.7, 1.0])


def chances_of(num_items):
    chance = st.sampled_from([1e-100, 1e-9, 0.01, 0.1, 0.3, 0.5, 1.0])
    return st.lists(chance, min_size=num_items, max_size=num_items)


def with_chances(ranked, chances):
    chances = torch.as_tensor(chances, dtype=torch.double)
    return ranked.with_catalogue(Catalogue(chances.numel(), propensity=chances))


@pytest.mark.parametrize("name", OPTIONS)
class TestLaws:
    @given(case=cases(), data=st.data(), clip=CLIPS)
    def test_given_propensities_equal_naive_loops(self, name, case, data, clip):
        chances = data.draw(chances_of(case.num_items))
        arguments = data.draw(arguments_of(name))
        ranked = with_chances(rank(case.score_matrix, case.task(), full=True), chances)
        value = getattr(metrics, name)(ranked, propensity="given", clip=clip, **arguments)
        chances = naive.clipped(chances, clip)
        wanted = naive.estimate(name, case.rankings, case.truths, chances, **arguments)
        assert value.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True)

    @given(
        case=cases(), data=st.data(), gamma=st.sampled_from([0.5, 1.5, 2.0, 3.0, 9.9]), clip=CLIPS
    )
    def test_those_of_popularity_equal_naive_loops(self, name, case, data, gamma, clip):
        assume(case.seen)
        arguments = data.draw(arguments_of(name)) | {"gamma": gamma, "clip": clip}
        ranked = rank(case.score_matrix, case.task(), full=True).with_catalogue(case.catalogue)
        value = getattr(metrics, name)(ranked, propensity="popularity", **arguments)
        del arguments["gamma"], arguments["clip"]
        chances = naive.chances_by_popularity(case.naive_catalogue, gamma)
        chances = naive.clipped(chances, clip)
        wanted = naive.estimate(name, case.rankings, case.truths, chances, **arguments)
        assert value.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True)

    @given(case=cases(), data=st.data(), chance=st.floats(1e-100, 1))
    def test_the_same_for_all_items_gives_the_plain_metric(self, name, case, data, chance):
        arguments = data.draw(arguments_of(name))
        ranked = rank(case.score_matrix, case.task(), full=True)
        ranked = with_chances(ranked, [chance] * case.num_items)
        value = getattr(metrics, name)(ranked, propensity="given", **arguments)
        plain = getattr(metrics, name)(ranked, **arguments)
        if name == "dcg":  # of which it is the mean over relevant items, and not the sum
            plain /= ranked.degree
        assert value.tolist() == pytest.approx(plain.tolist(), abs=1e-12, nan_ok=True)

    @given(case=cases(), data=st.data(), factor=st.sampled_from([1e-3, 0.25, 0.7]))
    def test_a_common_factor_changes_nothing(self, name, case, data, factor):
        chance = st.floats(0.01, 1)
        chances = data.draw(st.lists(chance, min_size=case.num_items, max_size=case.num_items))
        arguments = data.draw(arguments_of(name))
        ranked = rank(case.score_matrix, case.task(), full=True)
        value, scaled = (
            getattr(metrics, name)(with_chances(ranked, own), propensity="given", **arguments)
            for own in (chances, [factor * chance for chance in chances])
        )
        assert scaled.tolist() == pytest.approx(value.tolist(), abs=1e-12, nan_ok=True)

    @given(case=cases(), data=st.data(), clip=CLIPS)
    def test_values_are_within_bounds(self, name, case, data, clip):
        ranked = rank(case.score_matrix, case.task(), full=True)
        ranked = with_chances(ranked, data.draw(chances_of(case.num_items)))
        arguments = data.draw(arguments_of(name))
        assume(arguments.get("average") != "micro")
        value = getattr(metrics, name)(ranked, propensity="given", clip=clip, **arguments)
        low, high = metrics.definition(name).range
        assert all(low <= x <= high for x in value[~value.isnan()].tolist())


class TestValues:
    # Of item 0, one in two interactions was observed; of item 2, one in ten.
    scores = torch.tensor([[0.9, 0.5, 0.1, 0.3]])
    truth = torch.tensor([[0, 0], [0, 2]])
    ranked = with_chances(rank(scores, truth, full=True), [0.5, 1.0, 0.1, 1.0])

    @pytest.mark.parametrize(
        ("spelling", "expected"),
        [
            ("recall(propensity=given)@1", 2 / 12),
            ("recall(propensity=given)@4", 1),
            ("dcg(propensity=given)@1", 2 / 12),
            ("dcg(propensity=given)", (2 + 10 / math.log2(5)) / 12),
            ("roc_auc(propensity=given)", 2 / 12),
            ("recall(propensity=given,clip=0.25)@1", 2 / 6),
            ("recall(propensity=given,clip=0.7)@1", 1 / 2),
            ("dcg(propensity=given,clip=0.25)", (2 + 4 / math.log2(5)) / 6),
            ("roc_auc(propensity=given,clip=0.25)", 2 / 6),
        ],
    )
    def test_they_are_worked_out_by_hand(self, spelling, expected):
        assert metrics.parse(spelling)(self.ranked).tolist() == pytest.approx([expected])

    def test_an_item_that_nobody_has_seen_counts_most(self):
        # Three users have seen item 0, and nobody has seen item 2.
        seen = torch.tensor([[1, 2, 3], [0, 0, 0]])
        ranked = rank(self.scores, self.truth, full=True)
        ranked = ranked.with_catalogue(Catalogue(4, seen=seen))
        for gamma, one_of in ((1.0, 4), (3.0, 16)):
            value = metrics.recall(ranked, 1, propensity="popularity", gamma=gamma)
            assert value.tolist() == pytest.approx([1 / (1 + one_of)])
        # The most popular item has a propensity of one, and this one of a quarter.
        for clip, stands_for in ((0.2, 4), (0.4, 2.5)):
            value = metrics.recall(ranked, 1, propensity="popularity", gamma=1.0, clip=clip)
            assert value.tolist() == pytest.approx([1 / (1 + stands_for)])

    def test_a_value_is_as_large_as_a_gain_and_no_larger(self):
        weight = torch.tensor([1e308, 1e308], dtype=torch.double)
        ranked = RankedEdges.from_topk(torch.tensor([[0, 2]]), self.truth, weight)
        value = metrics.dcg(with_chances(ranked, [1, 1, 1e-100]), 2, propensity="given")
        assert value.tolist() == pytest.approx([1e308 / math.log2(3)])


class TestArguments:
    ranked = RankedEdges.from_topk(torch.tensor([[0, 1]]), torch.tensor([[0], [1]]))

    @pytest.mark.parametrize("name", OPTIONS)
    def test_what_is_needed_is_named_before_anything_is_ranked(self, name):
        k = "" if name == "roc_auc" else "@2"
        for source, needed in (("given", "propensity"), ("popularity", "seen")):
            spelling = f"{name}(propensity={source}){k}"
            assert metrics.parse(spelling).needs == (needed.replace("seen", "popularity"),)
            with pytest.raises(ValueError, match=f"{re.escape(spelling)}' needs .*{needed}"):
                evaluate(lambda users: pytest.fail("it was ranked"), TASK, spelling)
        assert metrics.parse(f"{name}{k}").needs == ()
        with pytest.raises(ValueError, match=r"'recall' needs the propensity .*\(got none\)"):
            metrics.recall(self.ranked, 2, propensity="given")

    def test_min_of_k_and_all_that_is_relevant_is_not_known(self):
        ranked = with_chances(self.ranked, [0.5, 0.5])
        with pytest.raises(ValueError, match=r"'normalizer' needs to be 'R' .*\(got 'min' with 'g"):
            metrics.recall(ranked, 2, normalizer="min", propensity="given")

    def test_others_are_named(self):
        with pytest.raises(ValueError, match=r"'gamma' needs to be in \(0, 10\) \(got 0.0\)"):
            metrics.parse("recall(propensity=popularity,gamma=0)@2")
        for clip in ("0", "-0.1", "1.01"):
            with pytest.raises(ValueError, match=rf"'clip' needs to be in \(0, 1\] \(got {clip}"):
                metrics.parse(f"recall(propensity=given,clip={clip})@2")
        with pytest.raises(ValueError, match=r"'propensity' needs to be one of \['none', 'given'"):
            metrics.recall(self.ranked, 2, propensity=0.5)
        with pytest.raises(ValueError, match="'map' has the arguments"):
            metrics.parse("map(propensity=given)@2")

    @pytest.mark.parametrize("name", OPTIONS)
    def test_there_is_nothing_to_clip_without_them(self, name):
        k = {} if name == "roc_auc" else {"k": 2}
        message = r"'clip' needs a 'propensity' to go with it \(got 'none' with clip=0.5\)"
        with pytest.raises(ValueError, match=message):
            metrics.Metric(name, arguments=(("clip", 0.5),), **k)
        ranked = rank(torch.rand(2, 3), torch.tensor([[0], [0]]), full=True)
        with pytest.raises(ValueError, match=message):
            getattr(metrics, name)(ranked, clip=0.5, **k)

    def test_they_tell_relevant_items_apart(self):
        names = ["recall@2", "recall(propensity=given)@2", "roc_auc(propensity=popularity)"]
        assert [metrics.parse(name).depends_on_weight for name in names] == [False, True, True]


@pytest.mark.usefixtures("expect_few_observations")
def test_evaluate_takes_them_and_says_what_is_estimated(tmp_path):
    names = ["recall@1", "recall(propensity=given)@1"]
    result = evaluate(
        GOOD_SCORES, TASK, names, catalogue=Catalogue(4, propensity=[0.5, 0.1, 0.5, 0.5])
    )
    # The first user misses item 1, which stands for five times as many as item 2.
    assert result.per_user[names[1]].tolist() == pytest.approx([1 / 6, 1, math.nan], nan_ok=True)
    recipe = " ".join(result.recipe().split())
    assert "an estimate of the mean over all relevant items, observed or not, from those " in recipe
    assert "self-normalised by the inverse of propensities as given" in recipe
    result.save(tmp_path / "result")
    loaded = EvaluationResult.load(tmp_path / "result")
    assert loaded.recipe() == result.recipe()
    assert dict(loaded) == dict(result)
    assert torch.equal(
        loaded.ranked.catalogue.get("propensity"), result.ranked.catalogue.get("propensity")
    )


@cache
def complete_and_observed_data(seed=0):
    """Rankings of all relevant items, and of those observed, each item with its own chance."""
    generator = torch.Generator().manual_seed(seed)
    shape = 500, 1500
    chance = torch.linspace(0.1, 1.0, shape[1])
    is_relevant = torch.rand(shape, generator=generator) < 0.04
    is_observed = is_relevant & (torch.rand(shape, generator=generator) < chance)
    # The recommender knows something of what is relevant, and prefers what is often observed.
    scores = torch.randn(shape, generator=generator) + is_relevant + 2 * chance
    complete, observed = (
        rank(scores, truth.nonzero().t(), full=True) for truth in (is_relevant, is_observed)
    )
    return complete, with_chances(observed, chance)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", {"k": 100}),
        ("recall", {"k": 100, "average": "micro"}),
        ("dcg", {}),
        ("dcg", {"k": 100, "discount": "lenskit"}),
        ("roc_auc", {}),
    ],
)
def test_estimates_are_close_to_complete_data_and_plain_metrics_are_too_high(name, arguments):
    complete, observed = complete_and_observed_data()
    function = getattr(metrics, name)
    wanted, plain = function(complete, **arguments), function(observed, **arguments)
    estimate = function(observed, propensity="given", **arguments)
    if name == "dcg":  # of which the estimate is the mean over relevant items
        wanted, plain = wanted / complete.degree, plain / observed.degree
    wanted, plain, estimate = (float(value.nanmean()) for value in (wanted, plain, estimate))
    assert plain > 1.05 * wanted
    assert abs(estimate - wanted) < 0.2 * (plain - wanted)
