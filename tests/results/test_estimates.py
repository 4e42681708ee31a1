"""Means over persons, against a loop over persons."""

import math
import statistics
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import EvaluationResult, RankedEdges, RankingTask, compare, evaluate
from pyg_recmetrics.results import estimates
from pyg_recmetrics.results.estimates import (
    Basis,
    Sample,
    alpha_of,
    difference_of_users,
    holm,
    mean_of_runs,
    mean_of_users,
    ratio_of_sums,
    t_quantile,
)
from pyg_recmetrics.results.notes import caution, caution_on_persons
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.cases.strategies import cases
from tests.support.references.variance_components import margin_over_runs

pytest.importorskip("scipy")
stats = pytest.importorskip("scipy.stats")


OF_AVERAGES_1 = pytest.mark.filterwarnings(
    "ignore:.*the order of ties", "ignore:.*may be too narrow"
)

METRICS = ["recall@2", "ndcg@3"]


def means_by_loop(values, persons):
    rows = {}
    for value, person in zip(values, persons, strict=True):
        if not math.isnan(value):
            rows.setdefault(person, []).append(value)
    return [statistics.fmean(rows[person]) for person in sorted(rows)]


@pytest.mark.usefixtures("expect_lost_truth")
@OF_AVERAGES_1
@given(case=cases(), data=st.data())
def test_the_mean_is_that_of_the_means_of_persons(case, data):
    person = data.draw(
        st.lists(st.integers(0, 2), min_size=case.num_users, max_size=case.num_users)
    )
    task = case.task(person=torch.tensor(person))
    over_rows = evaluate(case.score_matrix, task, METRICS)
    result = evaluate(case.score_matrix, task, METRICS, per="person")
    for metric in METRICS:
        wanted = means_by_loop(over_rows.per_user[metric].tolist(), person)
        assert result[metric] == pytest.approx(statistics.fmean(wanted))
        contributed = result.values_of(metric)[0]
        assert contributed[~contributed.isnan()].tolist() == pytest.approx(wanted)
        assert torch.equal(
            result.per_user[metric].nan_to_num(-1), over_rows.per_user[metric].nan_to_num(-1)
        )
        low, high = result.tie_range(metric)
        assert low - 1e-12 <= result[metric] <= high + 1e-12


def made(scores=None, **options):
    generator = torch.Generator().manual_seed(0)
    truth = torch.stack([torch.arange(60), torch.randint(8, (60,), generator=generator)])
    person = torch.randint(12, (60,), generator=generator)
    task = RankingTask(truth, num_users=60, num_items=8, person=person)
    if scores is None:
        scores = torch.rand(60, 8, generator=generator)
    return evaluate(scores, task, "recall@2", **options)


@pytest.mark.usefixtures("expect_lost_truth")
@OF_AVERAGES_1
def test_intervals_draw_persons():
    result = made(per="person")
    values = result.values_of("recall@2")[0]
    margin = 2.200985 * statistics.stdev(values.tolist()) / math.sqrt(12)
    low, high = result.confidence_interval("recall@2")
    assert (high - low) / 2 == pytest.approx(margin, rel=1e-6)
    assert "interval of the mean over persons" in str(result)
    assert "60 users evaluated" in str(result)
    assert "persons" in result.recipe()


@pytest.mark.usefixtures("expect_lost_truth")
@OF_AVERAGES_1
def test_groups_are_of_persons():
    result = made(per="person")
    cohorts = result.by([number % 2 for number in range(12)])
    values = result.values_of("recall@2")[0]
    assert cohorts[0]["recall@2"].value == pytest.approx(float(values[::2].mean()))
    with pytest.raises(ValueError, match=r"'groups' .* every person"):
        result.by([0] * 60)


@pytest.mark.usefixtures("expect_lost_truth")
@OF_AVERAGES_1
def test_pairs_are_persons():
    first, second = made(per="person"), made(torch.rand(60, 8), per="person")
    (pair,) = compare({"a": first, "b": second})
    difference = first.values_of("recall@2")[0] - second.values_of("recall@2")[0]
    assert pair.difference == pytest.approx(float(difference.mean()))
    with pytest.raises(ValueError, match="which differ in per"):
        compare({"a": first, "b": made()})


@pytest.mark.usefixtures("expect_lost_truth")
@OF_AVERAGES_1
def test_it_is_saved(tmp_path):
    result = made(per="person")
    result.save(tmp_path / "result.npz")
    assert str(EvaluationResult.load(tmp_path / "result.npz")) == str(result)


@pytest.mark.usefixtures("expect_lost_truth")
@OF_AVERAGES_1
def test_rankings_without_a_task_know_their_persons():
    ranked = RankedEdges.from_negatives(torch.tensor([0.9, 0.2, 0.4]), torch.tensor([0.5, 0.3]))
    ranked = ranked.with_person(["ann", "ann", "bob"])
    result = EvaluationResult(ranked, "hit_rate@1", average_over="person")
    assert result["hit_rate@1"] == (1 / 2 + 0) / 2
    assert EvaluationResult(ranked, "hit_rate@1").ranked.origin.person.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match=r"'person' .* a label for every user"):
        ranked.with_person([0, 1])


@pytest.mark.usefixtures("expect_lost_truth")
@OF_AVERAGES_1
def test_what_has_no_mean_over_persons_is_named():
    with pytest.raises(ValueError, match=r"means over persons need a task"):
        evaluate(
            torch.rand(4),
            RankingTask([[0], [1]], num_users=1, num_items=4),
            "mrr",
            per="person",
        )
    result = made()
    pooled = pytest.raises(ValueError, match=r"means over rows .*got 'recall.average=micro.@2'")
    with pooled:
        EvaluationResult(
            result.ranked, "recall(average=micro)@2", task=result.task, average_over="person"
        )
    with pooled:
        evaluate(torch.rand(8), result.task, "recall(average=micro)@2", per="person")
    with pytest.raises(ValueError, match="'by_degree' needs means over rows"):
        made(per="person").by_degree()
    with pytest.raises(ValueError, match="'per' needs to be one of"):
        made(per="query")


def sample(num_users, num_hits=None, person=None):
    values = torch.zeros(num_users, dtype=torch.double)
    values[: num_users if num_hits is None else num_hits] = 1.0
    values[0] = 0.5
    return Sample(values, person)


def basis(num_users, num_hits=None, metric="recall@5"):
    return Basis.of(metric, sample(num_users, num_hits))


def test_many_users_and_hits_need_none():
    assert caution([basis(100), basis(5000, 20, "mrr@5")]) is None
    assert caution([]) is None


def test_few_users():
    assert caution([basis(99)]) == "intervals may be too narrow: there are few users (99)"
    # A single user has no interval.
    assert caution([basis(1)]) is None


def test_rare_hits_are_named_by_metric():
    assert caution([basis(500, 19), basis(500, 20, "recall@20"), basis(500, 3, "mrr")]) == (
        "intervals may be too narrow: few users have more than zero in recall@5, mrr"
    )


def test_persons_count_by_how_many_of_one_size_they_are():
    """One person with 200 rows and 100 with one are worth little more than one."""
    person = torch.cat([torch.zeros(200, dtype=torch.long), torch.arange(1, 101)])
    uneven = sample(300, person=person)
    assert uneven.num_effective == pytest.approx(300**2 / (200**2 + 100))
    assert caution_on_persons(uneven) == (
        "intervals may be too narrow: there are few persons (101, worth 2 of one size)"
    )
    even = sample(300, person=torch.arange(300) // 6)
    assert even.num_effective == 50
    assert caution_on_persons(even) is None
    assert caution_on_persons(sample(10)) is None


def test_differences_of_few_users_or_of_few_who_differ():
    assert caution([], are_differences=True) is None
    assert caution([basis(100, 20), basis(5000, 30)], are_differences=True) is None
    assert caution([basis(500, 100), basis(99, 50)], are_differences=True) == (
        "intervals may be too narrow: there are few users (99)"
    )
    assert caution([basis(1, 1)], are_differences=True) is None
    two = [basis(500, 19), basis(500, 19), basis(500, 7, "mrr"), basis(500, 100, "ndcg@5")]
    assert caution(two, are_differences=True) == (
        "intervals may be too narrow: few users differ in recall@5, mrr"
    )
    # What is the same does not differ for few.
    assert caution([Basis("mrr", 500, None, 0)], are_differences=True) is None


def test_a_comparison_says_so_as_a_result_does():
    pytest.importorskip("scipy")
    generator = torch.Generator().manual_seed(0)
    for num_users in (40, 150):
        truth = torch.stack([torch.arange(num_users), torch.arange(num_users) % 5])
        task = RankingTask(truth, num_users=num_users, num_items=5)
        a, b = (
            evaluate(torch.rand(num_users, 5, generator=generator), task, "recall@2")
            for _ in range(2)
        )
        with warnings.catch_warnings(action="error"):
            comparison = compare({"a": a, "b": b})
        said = "intervals may be too narrow: there are few users (40)"
        for shown in (a, comparison, comparison.select("recall@2")):
            assert (said in str(shown)) == (num_users == 40)


def test_few_persons_warn():
    truth = torch.stack([torch.arange(40), torch.arange(40) % 5])
    task = RankingTask(truth, num_users=40, num_items=5).with_person(torch.arange(40) // 4)
    generator = torch.Generator().manual_seed(0)
    a, b = (evaluate(torch.rand(40, 5, generator=generator), task, "recall@2") for _ in range(2))
    assert "there are few persons (10, worth 10 of one size)" in str(a)
    with pytest.warns(UserWarning, match="there are few persons"):
        a.confidence_interval("recall@2")
    pytest.importorskip("scipy")
    with pytest.warns(UserWarning, match="there are few persons"):
        comparison = compare({"a": a, "b": b})
    assert "there are few persons" in str(comparison)


def test_values_that_are_all_the_same_have_no_margin():
    task = RankingTask(torch.stack([torch.arange(30)] * 2), num_users=30, num_items=30)
    text = str(evaluate(torch.eye(30), task, "recall@1"))
    assert "recall  1.0000\n" in text
    assert "± ." not in text


NUM_RUNS, NUM_USERS = 3, 90
IS_FIRST = torch.arange(NUM_USERS) % 3 == 0


def draw(seed, num_runs=NUM_RUNS):
    """Values of two groups with means 2 and 1, which each user and each run move."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    rest = 0.2 * normal(num_runs, NUM_USERS)
    of_run = 0.05 * torch.where(IS_FIRST, normal(num_runs, 1), normal(num_runs, 1))
    return 1 + IS_FIRST + 0.3 * normal(NUM_USERS) + of_run + rest


def groups_of(values, person=None):
    masks = (~IS_FIRST, IS_FIRST)
    return [mean_of_users(values.masked_fill(mask, math.nan), person) for mask in masks]


@pytest.mark.parametrize("seed", range(4))
def test_margins_are_those_of_plain_sums(seed):
    values = draw(seed)
    a, b = values[:, IS_FIRST].numpy(), values[:, ~IS_FIRST].numpy()
    first, second = groups_of(values)
    assert first.value == pytest.approx(a.mean())
    assert first.margin(0.9) == pytest.approx(margin_over_runs([(1, a)], 0.9))
    difference = first.minus(second)
    assert difference.value == pytest.approx(a.mean() - b.mean())
    assert difference.margin(0.9) == pytest.approx(margin_over_runs([(1, a), (-1, b)], 0.9))
    ratio = first.over(second)
    wanted = a.mean() / b.mean()
    assert ratio.value == pytest.approx(wanted)
    weights = 1 / b.mean(), -wanted / b.mean()
    margin = margin_over_runs(list(zip(weights, (a, b), strict=True)), 0.9)
    ends = wanted * np.exp([-margin / wanted, margin / wanted])
    assert ratio.interval(0.9) == pytest.approx(tuple(ends))


@pytest.mark.parametrize("persons", [False, True])
def test_equal_runs_are_one_run(persons):
    person = torch.arange(NUM_USERS) // 4 if persons else None
    one = draw(0, 2)[:1]
    one[0, ::7] = math.nan
    first, second = groups_of(one, person)
    a, b = groups_of(one.repeat(3, 1), person)
    for single, several in (
        (first, a),
        (second, b),
        (first.minus(second), a.minus(b)),
        (first.over(second), a.over(b)),
    ):
        assert several.interval(0.8) == pytest.approx(single.interval(0.8))
        assert several.num_drawn == single.num_drawn


def test_users_count_who_count_in_every_run():
    values = draw(1)
    values[0, 5] = values[2, 8] = math.nan
    left = [user for user in range(NUM_USERS) if user not in (5, 8)]
    estimate = mean_of_users(values, None)
    assert estimate.num_drawn == len(left)
    assert estimate.value == pytest.approx(float(values[:, left].mean()))
    assert estimate.margin(0.95) == pytest.approx(margin_over_runs([(1, values[:, left])]))


def test_what_has_no_runs_is_the_same_in_each():
    values = draw(2)
    known = mean_of_users(values[:1], None)
    several = mean_of_users(values, None)
    repeated = mean_of_users(values[:1].repeat(NUM_RUNS, 1), None)
    for found, wanted in (
        (several.minus(known), several.minus(repeated)),
        (several.over(known), several.over(repeated)),
    ):
        assert found.interval(0.95) == pytest.approx(wanted.interval(0.95))


def test_too_few_users_and_no_divisor():
    values = torch.full((2, 3), math.nan, dtype=torch.double)
    values[:, 0] = torch.tensor([1.0, 2.0])
    one = mean_of_users(values, None)
    assert one.value == 1.5
    assert math.isnan(one.margin(0.95))
    zero = mean_of_users(torch.zeros(2, 3, dtype=torch.double), None)
    assert math.isnan(one.over(zero).value)
    assert all(map(math.isnan, one.over(zero).interval(0.95)))


@pytest.mark.parametrize("num_runs", [2, 5])
@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_intervals_hold_what_is_estimated(kind, num_runs):
    held, num_draws = 0, 400
    for seed in range(num_draws):
        first, second = groups_of(draw(seed, num_runs))
        estimate = first.minus(second) if kind == "difference" else first.over(second)
        low, high = estimate.interval(0.95)
        held += low <= (1 if kind == "difference" else 2) <= high
    assert 0.92 <= held / num_draws <= 0.99


METRICS_OF_INFERENCE = ["recall@2", "ndcg@3", "r_precision"]


@pytest.fixture(scope="module")
def task():
    return random_task(60, 12, truth_share=0.2, seen_share=0.2)


@pytest.fixture(scope="module")
def result(task):
    return evaluate(random_scores(task, 1), task, METRICS_OF_INFERENCE)


class TestIntervals:
    @pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
    def test_the_t_interval_is_that_of_scipy(self, result, level):
        values = result.values_of("recall@2")[0]
        values = values[~values.isnan()].numpy()
        expected = stats.t.interval(
            level, len(values) - 1, loc=values.mean(), scale=stats.sem(values)
        )
        assert result.confidence_interval("recall@2", level) == pytest.approx(expected)

    def test_it_is_the_same_on_every_device(self, device, task, result):
        moved = evaluate(random_scores(task, 1).to(device), task.to(device), METRICS_OF_INFERENCE)
        expected = result.confidence_interval("ndcg@3")
        assert moved.confidence_interval("ndcg@3") == pytest.approx(expected, rel=1e-12)

    def test_it_is_what_the_table_shows(self, result):
        low, high = result.confidence_interval("r_precision")
        assert f"{result['r_precision']:.4f} ± {(high - low) / 2:.4f}".replace("± 0", "± ") in str(
            result
        )

    def test_it_holds_the_mean_as_often_as_promised(self):
        """Of intervals of 200 samples from a skewed distribution, nine in ten hold its mean."""
        samples = torch.distributions.Exponential(1.0)
        torch.manual_seed(0)
        held = 0
        for _ in range(200):
            low, high = Sample(samples.sample((80,)).double()).estimate.interval(0.9)
            held += low <= 1 <= high
        assert 0.82 <= held / 200 <= 0.95

    def test_a_single_user_has_no_interval(self):
        ranked = RankedEdges.from_topk(torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0], [1]]))
        result = EvaluationResult(ranked, ["recall@1"])
        assert all(map(math.isnan, result.confidence_interval("recall@1")))
        assert "±" not in str(result)

    def test_what_is_wrong_is_named(self, result):
        for level in (0, 1, 95, "a", True):
            with pytest.raises(ValueError, match=r"'level' needs to be a number between 0 and 1"):
                result.confidence_interval("ndcg@3", level)


def p_value(difference):
    sample = Sample(difference)
    return sample.estimate.uncertainty.p_value(sample.mean)


def t_interval(difference, level):
    sample = Sample(difference)
    return sample.estimate.uncertainty.interval_at(sample.mean, 1 - level)


class TestPairedTests:
    #: Student's data on the hours of sleep that two drugs gain ten patients (1908): the paired
    #: t is -4.06 with p = .00283.
    sleep = (
        torch.tensor([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], dtype=torch.double),
        torch.tensor([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4], dtype=torch.double),
    )

    def test_published_numbers(self):
        difference = estimates.paired_difference(*self.sleep)
        assert p_value(difference) == pytest.approx(0.00283, abs=5e-6)
        low, high = t_interval(difference, 0.95)
        assert (low, high) == pytest.approx((-2.4599, -0.7001), abs=5e-5)

    @given(st.integers(0, 10**6), st.sampled_from([5, 30, 100]))
    def test_they_are_those_of_scipy(self, seed, num_users):
        generator = np.random.default_rng(seed)
        a, b = generator.integers(0, 5, size=(2, num_users)) / 4
        a[0], b[0] = 1, 0
        a[1], b[1] = 0.25, 0.75
        difference = estimates.paired_difference(torch.tensor(a), torch.tensor(b))
        t_test = stats.ttest_rel(a, b)
        assert p_value(difference) == pytest.approx(t_test.pvalue)
        interval = t_test.confidence_interval(0.9)
        assert t_interval(difference, 0.9) == pytest.approx(tuple(interval))

    def test_no_difference_and_nothing_but_a_difference(self):
        zero = torch.zeros(20, dtype=torch.double)
        assert p_value(zero) == 1
        assert p_value(zero + 1) < 1e-3

    def test_rounding_is_no_difference(self):
        a = torch.tensor([0.3, 0.3, 0.0], dtype=torch.double)
        b = torch.tensor([0.1 + 0.2, 0.3 + 1e-9, 1e-300], dtype=torch.double)
        assert a[0] != b[0]
        assert (estimates.paired_difference(a, b) != 0).tolist() == [False, True, True]


def naive_holm(p_values):
    """Holm's method as in his paper, which says for a level which hypotheses are rejected."""

    def rejected(level):
        left = dict(enumerate(p_values))
        out = set()
        while left:
            hypothesis = min(left, key=left.get)
            if left[hypothesis] * len(left) > level:
                break
            out.add(hypothesis)
            del left[hypothesis]
        return out

    candidates = sorted({min(1.0, p * m) for p in p_values for m in range(1, len(p_values) + 1)})
    adjusted = []
    for hypothesis in range(len(p_values)):
        adjusted.append(next((lv for lv in candidates if hypothesis in rejected(lv)), 1.0))
    return adjusted


class TestHolm:
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
    def test_it_is_that_of_a_loop_over_the_levels(self, p_values):
        assert holm(p_values) == pytest.approx(naive_holm(p_values))

    def test_what_was_not_tested_does_not_count(self):
        assert holm([0.01, math.nan, 0.03]) == pytest.approx([0.02, math.nan, 0.03], nan_ok=True)
        assert holm([]) == []


class TestAlpha:
    @pytest.mark.parametrize("level", [0.5, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.999])
    def test_what_is_equal_to_it_is_significant(self, level):
        thousandths = 1000 - round(1000 * level)
        assert thousandths / 1000 <= alpha_of(level) < (thousandths + 1e-3) / 1000
        # Corrections round once more.
        for num_tests in range(1, 20):
            assert thousandths / 1000 / num_tests * num_tests <= alpha_of(level)
        assert 6 * 0.05 > 0.3
        assert holm([0.05] * 6)[0] <= alpha_of(0.7)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.99, 0.9999])
def test_they_are_those_of_scipy(level):
    for freedom in [*range(1, 60), 100, 500, 999, 1000, 1001, 30_000, 10**8]:
        wanted = stats.t.ppf((1 + level) / 2, freedom)
        assert t_quantile(level, freedom) == pytest.approx(wanted, rel=1e-9)


def test_published_numbers():
    """The table of Fisher (1925)."""
    assert t_quantile(0.95, 1) == pytest.approx(12.706, abs=5e-4)
    assert t_quantile(0.95, 10) == pytest.approx(2.228, abs=5e-4)
    assert t_quantile(0.99, 30) == pytest.approx(2.750, abs=5e-4)


NUM_SIMULATIONS = 1500


def normal(*shape, generator):
    return torch.randn(*shape, generator=generator, dtype=torch.double)


def draw_of_uncertainty(num_runs, num_users, seed=0, person=None, users=1.0, runs=0.1, rest=1.0):
    """Values of users in the runs of a recommender: `[num_runs, num_users]`, around zero."""
    generator = torch.Generator().manual_seed(seed)
    of_users = users * normal(num_users, generator=generator)
    of_users = of_users if person is None else of_users[person]
    of_runs = runs * normal(num_runs, 1, generator=generator)
    return of_users + of_runs + rest * normal(num_runs, num_users, generator=generator)


def uncertainty_of_mean(values, person=None):
    return mean_of_users(values, person).uncertainty


class TestSample:
    def test_persons_have_the_variance_of_a_loop(self):
        values = torch.tensor([1.0, 4.0, 2.0, 0.0, 3.0], dtype=torch.double)
        person = torch.tensor([0, 1, 0, 2, 1])
        mean, total = 2.0, 0.0
        for number in range(3):
            total += sum(values[i].item() - mean for i in range(5) if person[i] == number) ** 2
        assert Sample(values, person).estimate.variance == pytest.approx(3 / 2 * total / 25)

    def test_persons_of_one_row_are_users(self):
        values = draw_of_uncertainty(1, 50)[0]
        person = torch.randperm(50, generator=torch.Generator().manual_seed(0))
        one, other = Sample(values), Sample(values, person)
        assert one.estimate.variance == pytest.approx(float(values.var()) / 50)
        assert other.estimate.variance == pytest.approx(one.estimate.variance)

    def test_repeated_rows_of_a_person_tell_nothing_new(self):
        values, person = draw_of_uncertainty(1, 40)[0], torch.arange(40)
        repeated = Sample(values.repeat(7), person.repeat(7))
        assert repeated.estimate.variance == pytest.approx(Sample(values).estimate.variance)

    def test_persons_are_those_of_statsmodels(self):
        statsmodels = pytest.importorskip("statsmodels.api")
        person = torch.randint(30, (200,), generator=torch.Generator().manual_seed(0))
        values = draw_of_uncertainty(1, 200, person=person)[0]
        fitted = statsmodels.OLS(values.numpy(), np.ones(200)).fit(
            cov_type="cluster", cov_kwds={"groups": person.numpy(), "use_correction": False}
        )
        factor = len(person.unique()) / (len(person.unique()) - 1)
        wanted = float(fitted.bse[0]) ** 2 * factor
        assert Sample.of(values, person).estimate.variance == pytest.approx(wanted)

    def test_who_does_not_count_is_no_person(self):
        values = torch.tensor([1.0, math.nan, 3.0, math.nan], dtype=torch.double)
        sample = Sample.of(values, torch.tensor([0, 1, 2, 2]))
        assert sample.num_drawn == 2
        assert math.isnan(Sample.of(values, torch.tensor([0, 1, 0, 2])).estimate.variance)
        assert Sample.of(values[1:2], torch.tensor([0])).num_drawn == 0


class TestComponents:
    def test_they_are_the_mean_squares_of_a_loop(self):
        values = draw_of_uncertainty(4, 30, runs=0.5)
        x = values.tolist()
        grand = float(values.mean())
        of_user = [sum(row[u] for row in x) / 4 for u in range(30)]
        of_run = [sum(row) / 30 for row in x]
        users = 4 * sum((mean - grand) ** 2 for mean in of_user) / 29
        runs = 30 * sum((mean - grand) ** 2 for mean in of_run) / 3
        rest = sum(
            (x[s][u] - of_user[u] - of_run[s] + grand) ** 2 for s in range(4) for u in range(30)
        ) / (3 * 29)
        found = uncertainty_of_mean(values)
        assert found.of("users") == pytest.approx(users / 120)
        assert found.of("runs") == pytest.approx((runs - rest) / 120)
        assert found.variance == pytest.approx((users + runs - rest) / 120)
        # The parts from users, from the rest, and from runs.
        parts = [((users - rest), 29), (rest, 29), (runs - rest, 3)]
        total = users + runs - rest
        quantiles = sum(stats.t.isf(0.025, number) * part for part, number in parts)
        wanted = quantiles / total * math.sqrt(found.variance)
        assert found.margin(0.95) == pytest.approx(wanted)
        assert found.p_value(wanted) == pytest.approx(0.05)

    def test_equal_runs_add_nothing(self):
        values = torch.arange(30.0, dtype=torch.double).repeat(4, 1)
        several, single = (uncertainty_of_mean(x) for x in (values, values[:1]))
        assert several.variance == single.variance
        assert several.margin(0.9) == single.margin(0.9)

    def test_a_mixed_model_finds_the_same(self):
        formula = pytest.importorskip("statsmodels.formula.api")
        pandas = pytest.importorskip("pandas")
        values = draw_of_uncertainty(6, 25, runs=0.8)
        run, user = np.indices((6, 25))
        frame = pandas.DataFrame(
            {"x": values.flatten().numpy(), "run": run.ravel(), "user": user.ravel(), "all": 1}
        )
        parts = {"user": "0 + C(user)", "run": "0 + C(run)"}
        model = formula.mixedlm("x ~ 1", frame, groups="all", re_formula="0", vc_formula=parts)
        fitted = model.fit(reml=True)
        error = math.sqrt(uncertainty_of_mean(values).variance)
        assert float(fitted.bse_fe.iloc[0]) == pytest.approx(error, rel=1e-3)

    def test_without_variance_every_difference_is_found(self):
        found = uncertainty_of_mean(torch.zeros(1, 9, dtype=torch.double))
        assert [found.p_value(x) for x in (0, 1e-9)] == [1, 0]

    def test_means_alone_vary_by_runs(self):
        means = torch.tensor([0.1, 0.4, 0.2], dtype=torch.double)
        low, high = mean_of_runs(means).interval(0.9)
        wanted = stats.t.interval(0.9, 2, loc=means.mean(), scale=stats.sem(means))
        assert (low, high) == pytest.approx(wanted)


#: What is drawn in each simulation: users, runs of both, rows of a person, and three deviations.
DRAWS = {
    "one run of each": {"num_users": 100, "num_runs": (1, 1)},
    "a few runs of each": {"num_users": 150, "num_runs": (3, 3)},
    "one run of one of them": {"num_users": 150, "num_runs": (5, 1), "runs": 0.1},
    "persons of several rows": {"num_users": 240, "num_runs": (1, 1), "num_rows": 4},
    "runs and persons of several rows": {
        "num_users": 240,
        "num_runs": (4, 4),
        "num_rows": 4,
        "runs": 0.1,
    },
}


def simulate(num_users, num_runs, num_rows=1, users=1.0, runs=0.0, rest=1.0):
    """Draws two recommenders with the same mean, again and again.

    If a recommender has one run, its runs do not vary.

    Yields:
        The uncertainty, and the estimated difference.
    """
    generator = torch.Generator().manual_seed(num_users * num_rows + sum(num_runs))
    person = None
    if num_rows > 1:  # some persons have one row, others more
        num_persons = num_users // num_rows
        person = torch.cat(
            [
                torch.arange(num_persons),
                torch.randint(num_persons, (num_users - num_persons,), generator=generator),
            ]
        )
    for _ in range(NUM_SIMULATIONS):
        of_users = users * normal(num_users, generator=generator)
        values = []
        for number in num_runs:
            deviation = runs if number > 1 else 0.0
            of_runs = deviation * normal(number, 1, generator=generator)
            values.append(of_runs + rest * normal(number, num_users, generator=generator))
        values[0] = values[0] + (of_users if person is None else of_users[person])
        estimate = difference_of_users(*values, person)
        yield estimate.uncertainty, estimate.value


#: What is drawn where intervals are wider than they need to be, as few runs differ a lot.
CAREFUL = {
    "runs that differ as much as users": {"num_users": 150, "num_runs": (3, 3), "runs": 0.1},
    "three runs that differ a lot": {"num_users": 200, "num_runs": (3, 3), "runs": 0.5},
    "runs that differ more than users": {"num_users": 150, "num_runs": (5, 4), "runs": 0.3},
}


def share_held(draws):
    """How often 95% intervals hold the difference, and tests find none."""
    held, kept = 0, 0
    for uncertainty, difference in simulate(**draws):
        low, high = uncertainty.interval_at(difference, 0.05)
        held += low <= 0 <= high
        kept += uncertainty.p_value(difference) > 0.05
    assert held == kept
    return held / NUM_SIMULATIONS


@pytest.mark.slow
class TestWhatIsPromised:
    @pytest.mark.parametrize("name", DRAWS)
    def test_intervals_and_tests_are_right_as_often_as_they_say(self, name):
        assert 0.93 <= share_held(DRAWS[name]) <= 0.97

    @pytest.mark.parametrize("name", CAREFUL)
    def test_they_are_careful_where_few_runs_differ_a_lot(self, name):
        assert 0.94 <= share_held(CAREFUL[name]) <= 0.995

    @pytest.mark.parametrize("num_rows", [1, 4])
    def test_intervals_of_means_hold_the_mean(self, num_rows):
        generator = torch.Generator().manual_seed(1)
        held, num_persons = 0, 120
        person = torch.arange(num_persons).repeat(num_rows) if num_rows > 1 else None
        for _ in range(500):
            of_person = torch.empty(num_persons, dtype=torch.double).exponential_(
                generator=generator
            )
            rest = normal(num_persons * num_rows, generator=generator)
            sample = Sample(of_person.repeat(num_rows) + rest, person)
            low, high = sample.estimate.interval(0.95)
            held += low <= 1 <= high
        assert 0.92 <= held / 500 <= 0.98


class TestEstimates:
    def test_a_mean_is_that_of_a_sample(self):
        generator = torch.Generator().manual_seed(0)
        values = torch.rand(60, generator=generator, dtype=torch.double)
        values[::7] = math.nan
        person = torch.randint(20, (60,), generator=generator)
        for of in (None, person):
            found, wanted = mean_of_users(values.unsqueeze(0), of), Sample.of(values, of)
            assert found.value == pytest.approx(wanted.mean)
            assert float(found.influence.square().sum()) == pytest.approx(wanted.estimate.variance)

    @pytest.mark.parametrize("kind", ["ratio of sums", "difference", "ratio", "disjoint groups"])
    def test_intervals_hold_what_is_estimated(self, kind):
        """Of users with values of mean 2, 1 and 3, which have a part in common."""
        generator = torch.Generator().manual_seed(0)
        held = 0
        for _ in range(1000):
            common = torch.rand(200, generator=generator, dtype=torch.double)
            x, y, z = (
                mean - 1 + common + torch.rand(200, generator=generator, dtype=torch.double)
                for mean in (2, 1, 3)
            )
            if kind == "ratio of sums":
                estimate, truth = ratio_of_sums(x, z, None), 2 / 3
            elif kind == "disjoint groups":
                is_first = torch.arange(200) < 80
                groups = (x.masked_fill(~is_first, math.nan), z.masked_fill(is_first, math.nan))
                first, second = (mean_of_users(group.unsqueeze(0), None) for group in groups)
                estimate = first.minus(second)
                truth = -1
            else:
                first, second = (mean_of_users(each.unsqueeze(0), None) for each in (x, y))
                estimate = first.minus(second) if kind == "difference" else first.over(second)
                truth = 1 if kind == "difference" else 2
            low, high = estimate.interval(0.95)
            held += low <= truth <= high
        assert 0.93 <= held / 1000 <= 0.97

    def test_nothing_is_no_divisor(self):
        zero, one = (mean_of_users(torch.full((1, 3), x).double(), None) for x in (0, 1))
        assert math.isnan(one.over(zero).value)
        assert zero.over(one).value == 0
