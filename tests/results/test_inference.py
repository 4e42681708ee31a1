"""Intervals and tests, against scipy, plain loops and published numbers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import EvaluationResult, RankedEdges, evaluate
from pyg_recmetrics.results import inference
from pyg_recmetrics.results.inference import Sample
from pyg_recmetrics.results.uncertainty import uncertainty_of
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.references.bootstrap import bca_quantiles

stats = pytest.importorskip("scipy.stats")

METRICS = ["recall@2", "ndcg@3", "r_precision"]


@pytest.fixture(scope="module")
def task():
    return random_task(60, 12, truth_share=0.2, seen_share=0.2)


@pytest.fixture(scope="module")
def result(task):
    return evaluate(random_scores(task, 1), task, METRICS)


class TestIntervals:
    def test_bootstrap_means_are_those_of_a_loop_over_the_same_draws(self, result):
        values = result.contributions("ndcg@3")
        values = values[~values.isnan()]
        generator = torch.Generator().manual_seed(7)
        drawn = torch.randint(len(values), (50, len(values)), generator=generator).tolist()
        means = [float(np.mean([values.tolist()[user] for user in row])) for row in drawn]
        assert inference.bootstrap_means(Sample(values), 50, seed=7).tolist() == pytest.approx(
            means
        )
        found = result.confidence_interval("ndcg@3", 0.9, "bootstrap", num_samples=50, seed=7)
        ends = bca_quantiles(values.numpy(), np.ones(len(values)), means, 0.9)
        assert found == pytest.approx(tuple(np.quantile(means, ends)))

    def test_chunks_make_no_difference(self, monkeypatch, result):
        whole = result.confidence_interval("ndcg@3", method="bootstrap")
        monkeypatch.setattr(inference, "_NUM_DRAWS", 500)
        assert result.confidence_interval("ndcg@3", method="bootstrap") == whole

    def test_bootstrap_agrees_with_scipy(self, result):
        values = result.contributions("recall@2")
        values = values[~values.isnan()].numpy()
        theirs = stats.bootstrap(
            (values,), np.mean, method="BCa", n_resamples=20000, rng=0
        ).confidence_interval
        ours = result.confidence_interval("recall@2", method="bootstrap", num_samples=20000)
        assert ours == pytest.approx(tuple(theirs), abs=0.03 * (theirs.high - theirs.low))

    @pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
    def test_the_t_interval_is_that_of_scipy(self, result, level):
        values = result.contributions("recall@2")
        values = values[~values.isnan()].numpy()
        expected = stats.t.interval(
            level, len(values) - 1, loc=values.mean(), scale=stats.sem(values)
        )
        assert result.confidence_interval("recall@2", level, "t") == pytest.approx(expected)

    def test_it_is_the_same_on_every_device(self, device, task, result):
        moved = evaluate(random_scores(task, 1).to(device), task.to(device), METRICS)
        for method in ("t", "bootstrap"):
            expected = result.confidence_interval("ndcg@3", method=method)
            found = moved.confidence_interval("ndcg@3", method=method)
            assert found == pytest.approx(expected, rel=1e-12)

    def test_by_default_it_is_what_the_table_shows(self, result):
        low, high = result.confidence_interval("r_precision")
        assert f"{result['r_precision']:.4f} ± {(high - low) / 2:.4f}".replace("± 0", "± ") in str(
            result
        )

    def test_the_seed_decides_and_no_global_state_is_touched(self, result):
        state = torch.get_rng_state()
        interval = result.confidence_interval("ndcg@3", method="bootstrap")
        assert torch.equal(torch.get_rng_state(), state)
        torch.rand(1)
        assert result.confidence_interval("ndcg@3", method="bootstrap") == interval
        assert result.confidence_interval("ndcg@3", method="bootstrap", seed=1) != interval

    def test_it_holds_the_mean_as_often_as_promised(self):
        """Of intervals of 200 samples from a skewed distribution, nine in ten hold its mean."""
        samples = torch.distributions.Exponential(1.0)
        torch.manual_seed(0)
        for method in ("bootstrap", "t"):
            held = 0
            for _ in range(200):
                values = samples.sample((80,)).double()
                low, high = inference.interval_of_mean(Sample(values), 0.9, method, num_samples=300)
                held += low <= 1 <= high
            assert 0.82 <= held / 200 <= 0.95

    def test_a_single_user_has_no_interval(self):
        ranked = RankedEdges.from_topk(torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0], [1]]))
        result = EvaluationResult(ranked, ["recall@1"])
        for method in ("bootstrap", "t"):
            assert all(map(math.isnan, result.confidence_interval("recall@1", method=method)))
        assert "±" not in str(result)

    def test_the_printed_table_has_the_t_interval(self, result):
        low, high = result.confidence_interval("ndcg@3", method="t")
        margin = f"{(high - low) / 2:.4f}"[1:]
        assert f"{result['ndcg@3']:.4f} ± {margin}" in str(result)

    def test_what_is_wrong_is_named(self, result):
        for level in (0, 1, 95, "a", True):
            with pytest.raises(ValueError, match=r"'level' needs to be a number between 0 and 1"):
                result.confidence_interval("ndcg@3", level)
        with pytest.raises(ValueError, match=r"'method' needs to be one of \['t', 'bootstrap'"):
            result.confidence_interval("ndcg@3", method="jackknife")
        with pytest.raises(ValueError, match="'num_samples' needs to be a positive integer"):
            result.confidence_interval("ndcg@3", num_samples=0)


def p_value(difference, test="t-test", **options):
    sample = Sample(difference)
    if test == "t-test":
        return uncertainty_of(sample, []).p_value(sample.mean)
    return inference.randomization_test(sample, **options)


def t_interval(difference, level):
    sample = Sample(difference)
    return uncertainty_of(sample, []).interval(sample.mean, level)


class TestPairedTests:
    #: Student's data on the hours of sleep that two drugs gain ten patients (1908): the paired
    #: t is -4.06 with p = .00283.
    sleep = (
        torch.tensor([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], dtype=torch.double),
        torch.tensor([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4], dtype=torch.double),
    )

    def test_published_numbers(self):
        difference = inference.paired_difference(*self.sleep)
        assert p_value(difference) == pytest.approx(0.00283, abs=5e-6)
        low, high = t_interval(difference, 0.95)
        assert (low, high) == pytest.approx((-2.4599, -0.7001), abs=5e-5)

    @given(st.integers(0, 10**6), st.sampled_from([5, 30, 100]))
    def test_they_are_those_of_scipy(self, seed, num_users):
        generator = np.random.default_rng(seed)
        a, b = generator.integers(0, 5, size=(2, num_users)) / 4
        a[0], b[0] = 1, 0
        a[1], b[1] = 0.25, 0.75
        difference = inference.paired_difference(torch.tensor(a), torch.tensor(b))
        t_test = stats.ttest_rel(a, b)
        assert p_value(difference, "t-test") == pytest.approx(t_test.pvalue)
        interval = t_test.confidence_interval(0.9)
        assert t_interval(difference, 0.9) == pytest.approx(tuple(interval))

    def test_randomization_tries_all_signs_of_a_few_users(self):
        difference = torch.tensor([0.5, -0.25, 0.0, 1.0, 0.75, 0.25], dtype=torch.double)
        signs = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
        means = (signs * difference.numpy()).mean(axis=1)
        expected = np.mean(np.abs(means) >= float(difference.mean()) - 1e-12)
        assert p_value(difference, "randomization") == pytest.approx(expected)

    def test_randomization_draws_signs_of_many_users(self):
        generator = torch.Generator().manual_seed(0)
        difference = torch.randn(300, generator=generator, dtype=torch.double) + 0.12
        p = p_value(difference, "randomization", num_samples=2000)
        assert p == p_value(difference, "randomization", num_samples=2000)
        assert p == pytest.approx(p_value(difference, "t-test"), abs=0.015)

    @pytest.mark.parametrize("test", ["t-test", "randomization"])
    def test_no_difference_and_nothing_but_a_difference(self, test):
        zero = torch.zeros(20, dtype=torch.double)
        assert p_value(zero, test) == 1
        assert p_value(zero + 1, test) < 1e-3

    def test_randomization_of_one_user_who_differs(self):
        """Both assignments of signs are as extreme."""
        difference = torch.zeros(30, dtype=torch.double)
        difference[7] = 0.5
        assert p_value(difference, "randomization") == 1

    def test_rounding_is_no_difference(self):
        a = torch.tensor([0.3, 0.3, 0.0], dtype=torch.double)
        b = torch.tensor([0.1 + 0.2, 0.3 + 1e-9, 1e-300], dtype=torch.double)
        assert a[0] != b[0]
        assert (inference.paired_difference(a, b) != 0).tolist() == [False, True, True]
