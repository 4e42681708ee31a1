"""The difference of two recommenders, against scipy and plain loops."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from pyg_recmetrics import compare, evaluate, metrics
from pyg_recmetrics.results.paired import Equivalence, Pair, difference_of_means
from tests.support.cases.random_tasks import random_scores, random_task

stats = pytest.importorskip("scipy.stats")

METRIC = "ndcg@3"


def make_runs(task, skill, seeds):
    """Results of scores to which `skill` is added where an item is relevant."""
    results = []
    for seed in seeds:
        scores = random_scores(task, seed)
        scores[tuple(task.truth)] += skill
        results.append(evaluate(scores, task, METRIC))
    return results


@pytest.fixture(scope="module")
def task():
    return random_task(150, 20, truth_share=0.15, seen_share=0.2)


@pytest.fixture(scope="module")
def runs(task):
    return {"a": make_runs(task, 0.3, range(4)), "b": make_runs(task, 0.2, range(10, 13))}


def values_of(results):
    values = np.array([result.per_user[METRIC].tolist() for result in results])
    return values[:, ~np.isnan(values).any(axis=0)]


def pair_of_values(first, second):
    """Two recommenders with one run each, by the values of users."""
    values = [torch.tensor([x], dtype=torch.double) for x in (first, second)]
    is_paired = torch.ones(len(first), dtype=torch.bool)
    return Pair(metrics.parse(METRIC), "a", "b", *values, is_paired, None)


class TestRuns:
    """Aggregates over users that do not depend on how many runs there are."""

    def test_wins_and_effect_sizes_are_averages_over_pairs_of_runs(self, runs):
        (row,) = compare(runs)
        first, second = values_of(runs["a"]), values_of(runs["b"])
        pairs = [x - y for x, y in product(first, second)]
        assert row.wins == pytest.approx(np.mean([(d > 0).sum() for d in pairs]))
        assert row.ties == pytest.approx(np.mean([(d == 0).sum() for d in pairs]))
        assert row.losses == pytest.approx(np.mean([(d < 0).sum() for d in pairs]))
        deviation = math.sqrt(np.mean([d.var(ddof=1) for d in pairs]))
        assert row.effect_size == pytest.approx(row.difference / deviation)

    def test_equal_runs_are_one_run(self, runs):
        (one,) = compare({"a": runs["a"][0], "b": runs["b"][0]})
        (several,) = compare({"a": runs["a"][:1] * 3, "b": runs["b"][:1] * 2})
        assert several.run_error == 0
        same = several._replace(run_error=math.nan)
        numbers = [i for i, field in enumerate(one) if isinstance(field, float)]
        assert [same[i] for i in numbers] == pytest.approx([one[i] for i in numbers], nan_ok=True)


class TestNoDifference:
    def test_what_is_the_same_is_equivalent_within_any_bound(self):
        """A share of a mean of zero is zero."""
        task = random_task(30, 20, truth_share=0.1, seen_share=0.0)
        scores = torch.zeros(30, 20)
        scores[tuple(task.truth)] = -1.0 - torch.rand(task.truth.size(1))
        last = evaluate(scores, task, "ndcg@3")
        first = evaluate(-scores, task, "ndcg@3")
        assert last["ndcg@3"] == 0
        for bound in ("2%", 0.01, 1e-300):
            (row,) = compare({"a": last, "b": last}, equivalence=bound)
            assert row.verdict == "equivalent"
            (row,) = compare({"a": [last, last], "b": [last] * 3}, equivalence=bound)
            assert row.verdict == "equivalent"
        (row,) = compare({"a": first, "b": last}, equivalence="2%")
        assert row.verdict == "better"
        assert compare({"a": last, "b": last}, equivalence="2%").claims() == (
            "As trained here, a is as good as b in ndcg@3 (within ± 0).",
        )

    def test_what_differs_is_not_equivalent_within_nothing(self):
        pair = pair_of_values([0.1, 0.3, -0.1, -0.3], [0.0] * 4)
        assert pair.difference == 0
        assert pair.p_of_equivalence(0.0) == pytest.approx(0.5)
        assert not pair.is_same

    def test_rounding_is_no_difference(self):
        pair = pair_of_values([0.1, 0.2, 0.0], [0.0, 0.0, 0.3])
        assert pair.sample.mean != 0
        row = pair.row(0.05)
        assert (row.difference, row.lift, row.effect_size) == (0, 0, 0)
        assert row.low == -row.high
        assert pair.p_value == 1
        same = difference_of_means(metrics.parse("coverage@3"), ("a", "b"), 0.1 + 0.2, 0.3)
        assert (same.difference, same.lift) == (0, 0)
        other = difference_of_means(metrics.parse("coverage@3"), ("a", "b"), 0.3001, 0.3)
        assert other.difference == pytest.approx(1e-4)

    def test_nobody_has_no_difference(self):
        assert math.isnan(pair_of_values([], []).row(0.05).difference)


class TestLift:
    def test_its_interval_is_that_of_the_logarithm(self, runs):
        """The delta method, with each user's share of both means."""
        (row,) = compare({"a": runs["a"][0], "b": runs["b"][0]}, level=0.9)
        x, y = (values_of([runs[name][0]])[0] for name in "ab")
        assert row.lift == pytest.approx(100 * (x.mean() / y.mean() - 1))
        error = stats.sem(x / x.mean() - y / y.mean())
        margin = stats.t.ppf(0.95, len(x) - 1) * error
        ratio = x.mean() / y.mean()
        assert row.lift_low == pytest.approx(100 * (ratio * math.exp(-margin) - 1))
        assert row.lift_high == pytest.approx(100 * (ratio * math.exp(margin) - 1))

    def test_several_runs_widen_it(self, runs):
        (row,) = compare(runs)
        users = stats.sem(
            values_of(runs["a"]).mean(axis=0) / row.mean_a
            - values_of(runs["b"]).mean(axis=0) / row.mean_b
        )
        width = math.log((100 + row.lift_high) / (100 + row.lift_low)) / 2
        assert width >= stats.norm.ppf(0.975) * users

    @pytest.mark.slow
    def test_it_holds_as_often_as_it_says(self):
        generator = np.random.default_rng(0)
        held = 0
        for _ in range(1000):
            common = generator.gamma(0.5, size=300)
            x, y = (common * scale + generator.gamma(1, size=300) for scale in (2.0, 1.0))
            values = [torch.tensor(v).unsqueeze(0) for v in (x, y)]
            pair = make_pair(*values)
            row = pair.row(0.05)
            held += row.lift_low <= 100 * (2.0 / 1.5 - 1) <= row.lift_high
        assert 0.935 <= held / 1000 <= 0.965

    def test_nothing_has_no_lift(self, task):
        scores = torch.zeros(task.num_users, task.num_items)
        scores[tuple(task.truth)] = -1.0
        nothing = evaluate(scores, task, "ndcg@1")
        assert nothing["ndcg@1"] == 0
        (row,) = compare({"a": nothing, "b": nothing})
        assert all(map(math.isnan, (row.lift, row.lift_low, row.lift_high)))
        assert (row.difference, row.effect_size, row.verdict) == (0, 0, "inconclusive")


def make_pair(first, second):
    from pyg_recmetrics.metrics import parse
    from pyg_recmetrics.results.paired import Pair

    mask = torch.ones(first.size(1), dtype=torch.bool)
    return Pair(parse(METRIC), "a", "b", first, second, mask, None)


@pytest.mark.parametrize(
    ("value", "text"), [(0.005, "0.005"), ("2%", "2%"), (" .5 % ", "0.5%"), (1, "1")]
)
def test_equivalence_prints_as_it_was_given(value, text):
    assert str(Equivalence.of(value)) == text
