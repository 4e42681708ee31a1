"""Means over users, persons and runs, against loops, scipy and statsmodels."""

import math
import statistics

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import stats

from pyg_recmetrics import EvaluationResult, RankedEdges, RankingTask, compare, evaluate
from pyg_recmetrics.results.notes import caution
from pyg_recmetrics.results.statistics import (
    alpha_of,
    holm,
    mean_of_users,
    paired_difference,
    run_variances,
)
from tests.support.references.variance_components import error_over_persons, margin_over_runs

pytestmark = [
    pytest.mark.usefixtures("expect_lost_truth"),
    pytest.mark.filterwarnings("ignore:.*the order of ties", "ignore:.*may be too narrow"),
    pytest.mark.filterwarnings("ignore:.*scores that fall"),
]


def made(scores=None, **options):
    generator = torch.Generator().manual_seed(0)
    truth = torch.stack([torch.arange(60), torch.randint(8, (60,), generator=generator)])
    person = torch.randint(12, (60,), generator=generator)
    task = RankingTask(truth, num_users=60, num_items=8, person=person)
    if scores is None:
        scores = torch.rand(60, 8, generator=generator)
    return evaluate(scores, task, "recall@2", **options)


def test_intervals_draw_persons():
    result = made(per="person")
    values = result.values_of("recall@2")[0]
    margin = 2.200985 * statistics.stdev(values.tolist()) / math.sqrt(12)
    low, high = result.confidence_interval("recall@2")
    assert (high - low) / 2 == pytest.approx(margin, rel=1e-6)
    assert "interval of the mean over persons" in str(result)
    assert "60 users evaluated" in str(result)
    assert "persons" in result.recipe()


def test_groups_are_of_persons():
    result = made(per="person")
    cohorts = result.by([number % 2 for number in range(12)])
    values = result.values_of("recall@2")[0]
    assert cohorts[0]["recall@2"].value == pytest.approx(float(values[::2].mean()))
    with pytest.raises(ValueError, match=r"'groups' .* every person"):
        result.by([0] * 60)


def test_pairs_are_persons():
    first, second = made(per="person"), made(torch.rand(60, 8), per="person")
    (pair,) = compare({"a": first, "b": second})
    difference = first.values_of("recall@2")[0] - second.values_of("recall@2")[0]
    assert pair.difference == pytest.approx(float(difference.mean()))
    with pytest.raises(ValueError, match="which differ in per"):
        compare({"a": first, "b": made()})


def test_rankings_without_a_task_know_their_persons():
    ranked = RankedEdges.from_negatives(torch.tensor([0.9, 0.2, 0.4]), torch.tensor([0.5, 0.3]))
    ranked = ranked.with_person(["ann", "ann", "bob"])
    result = EvaluationResult(ranked, "hit_rate@1", average_over="person")
    assert result["hit_rate@1"] == (1 / 2 + 0) / 2
    assert EvaluationResult(ranked, "hit_rate@1").ranked.origin.person.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match=r"'person' .* a label for every user"):
        ranked.with_person([0, 1])


def test_what_has_no_mean_over_persons_is_named():
    task = RankingTask([[0], [1]], num_users=1, num_items=4)
    with pytest.raises(ValueError, match="per='person' needs a task"):
        evaluate(torch.rand(4), task, "mrr", per="person")
    result = made()
    with pytest.raises(ValueError, match=r"means over rows .*got 'recall.average=micro.@2'"):
        evaluate(torch.rand(8), result.task, "recall(average=micro)@2", per="person")
    with pytest.raises(ValueError, match="'by_degree' needs means over rows"):
        made(per="person").by_degree()
    with pytest.raises(ValueError, match="'per' needs to be one of"):
        made(per="query")


def basis(num_users, num_hits=None, metric="recall@5", person=None):
    values = np.zeros(num_users)
    values[: num_users if num_hits is None else num_hits] = 1.0
    values[0] = 0.5
    return metric, mean_of_users(values[:, None], person)


def test_few_users():
    assert caution([basis(99)]) == "intervals may be too narrow: there are few users (99)"
    # A single user has no interval.
    for of in ([], [basis(1)], [basis(100), basis(5000, 20, "mrr@5")]):
        assert caution(of) is None


def test_rare_hits_are_named_by_metric():
    assert caution([basis(500, 19), basis(500, 20, "recall@20"), basis(500, 3, "mrr")]) == (
        "intervals may be too narrow: few users have more than zero in recall@5, mrr"
    )


@pytest.mark.parametrize("sizes", [[3] * 12, [1, 1, 2, 5, 30], [40, 1, 1, 1], [1, 2]])
def test_intervals_of_persons_are_those_of_bell_and_mccaffrey(sizes):
    person = np.repeat(np.arange(len(sizes)), sizes)
    values = np.random.default_rng(len(sizes)).random(len(person))
    error, freedom = error_over_persons(values, person)
    margin = stats.t.isf(0.025, freedom) * error
    low, high = mean_of_users(values[:, None], person).interval(0.95)
    assert [low, high] == pytest.approx([values.mean() - margin, values.mean() + margin])


def test_persons_count_by_how_many_of_one_size_they_are():
    """One person with 200 rows and 100 with one are worth few of one size."""
    person = np.array([*[0] * 200, *range(1, 101)])
    uneven = basis(300, person=person)
    _, freedom = error_over_persons(np.zeros(300), person)
    assert uneven[1].num_persons == pytest.approx(1 + freedom)
    assert caution([uneven], drawn="persons").startswith(
        "intervals may be too narrow: there are few persons (101, worth 3 of one size)"
    )
    values = np.random.default_rng(0).random((300, 1))
    even = mean_of_users(values, np.arange(300) // 6)
    assert even.num_persons == 50
    assert not even.has_few_persons


def test_differences_of_few_users_or_of_few_who_differ():
    assert caution([], are_differences=True) is None
    assert caution([basis(100, 20), basis(5000, 30)], are_differences=True) is None
    two = [basis(500, 19), basis(500, 19), basis(500, 7, "mrr"), basis(500, 100, "ndcg@5")]
    assert caution(two, are_differences=True).startswith(
        "intervals may be too narrow: few users differ in recall@5, mrr, and"
    )
    # What is the same does not differ for few.
    same = mean_of_users(np.zeros((500, 1)), None)
    assert caution([("mrr", same)], are_differences=True) is None


def test_few_persons_warn():
    truth = torch.stack([torch.arange(40), torch.arange(40) % 5])
    task = RankingTask(truth, num_users=40, num_items=5).with_person(torch.arange(40) // 4)
    generator = torch.Generator().manual_seed(0)
    a, b = (evaluate(torch.rand(40, 5, generator=generator), task, "recall@2") for _ in range(2))
    assert "there are few persons (10, worth 10 of one size)" in str(a)
    with pytest.warns(UserWarning, match="there are few persons"):
        a.confidence_interval("recall@2")
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


def draw(seed):
    """Values of two groups with means 2 and 1, which each user and each run move."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    rest = 0.2 * normal(NUM_RUNS, NUM_USERS)
    of_run = 0.05 * torch.where(IS_FIRST, normal(NUM_RUNS, 1), normal(NUM_RUNS, 1))
    return (1 + IS_FIRST + 0.3 * normal(NUM_USERS) + of_run + rest).numpy()


def mean_over(values, person=None):
    """The mean of values of shape `[num_runs, num_users]`."""
    return mean_of_users(np.asarray(values).T, person)


def groups_of(values, person=None):
    masks = (~IS_FIRST, IS_FIRST)
    return [mean_over(np.where(mask, math.nan, values), person) for mask in masks]


@pytest.mark.parametrize("seed", range(4))
def test_margins_are_those_of_plain_sums(seed):
    values = draw(seed)
    a, b = values[:, IS_FIRST], values[:, ~IS_FIRST]
    first, second = groups_of(values)
    assert first.value == pytest.approx(a.mean())
    assert first.margin(0.9) == pytest.approx(margin_over_runs([(1, a)], 0.9))
    difference = first.minus(second)
    assert difference.value == pytest.approx(a.mean() - b.mean())
    assert difference.margin(0.9) == pytest.approx(margin_over_runs([(1, a), (-1, b)], 0.9))


def test_users_count_who_count_in_every_run():
    values = draw(1)
    values[0, 5] = values[2, 8] = math.nan
    left = [user for user in range(NUM_USERS) if user not in (5, 8)]
    estimate = mean_over(values)
    assert estimate.num_drawn == len(left)
    assert estimate.value == pytest.approx(float(values[:, left].mean()))
    assert estimate.margin(0.95) == pytest.approx(margin_over_runs([(1, values[:, left])]))


def test_too_few_users():
    one = mean_over([[1.0, math.nan, math.nan], [2.0, math.nan, math.nan]])
    assert one.value == 1.5
    assert math.isnan(one.margin(0.95))


def test_rounding_is_no_difference():
    a = np.array([0.3, 0.3, 0.0])
    b = np.array([0.1 + 0.2, 0.3 + 1e-9, 1e-300])
    assert a[0] != b[0]
    assert (paired_difference(a, b) != 0).tolist() == [False, True, True]


class TestHolm:
    @settings(max_examples=6)  # as statsmodels collects garbage in each call
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
    def test_it_is_that_of_statsmodels(self, p_values):
        multitest = pytest.importorskip("statsmodels.stats.multitest")
        wanted = multitest.multipletests(p_values, method="holm")[1]
        assert holm(p_values) == pytest.approx(wanted)

    def test_what_was_not_tested_does_not_count(self):
        assert holm([0.01, math.nan, 0.03]) == pytest.approx([0.02, math.nan, 0.03], nan_ok=True)
        assert holm([]) == []


@pytest.mark.parametrize("level", [0.5, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.999])
def test_what_is_equal_to_alpha_is_significant(level):
    thousandths = 1000 - round(1000 * level)
    assert thousandths / 1000 <= alpha_of(level) < (thousandths + 1e-3) / 1000
    # Corrections round once more.
    for num_tests in range(1, 20):
        assert thousandths / 1000 / num_tests * num_tests <= alpha_of(level)
    assert 6 * 0.05 > 0.3
    assert holm([0.05] * 6)[0] <= alpha_of(0.7)


def draw_of_uncertainty(num_runs, num_users, runs=0.1):
    """Values of users in the runs of a recommender: `[num_runs, num_users]`, around zero."""
    rng = np.random.default_rng(0)
    sizes = (num_users,), (num_runs, 1), (num_runs, num_users)
    users, of_runs, rest = map(rng.standard_normal, sizes)
    return users + runs * of_runs + rest


class TestPersons:
    def test_a_gap_to_a_single_person_has_no_interval(self):
        person = np.array([0, 0, 1, 2, 3, 3])
        values = np.arange(6.0)[:, None]
        one, others = (
            mean_of_users(np.where(is_in[:, None], values, math.nan), person)
            for is_in in (person == 0, person > 0)
        )
        for gap in (one.minus(others), others.minus(one)):
            assert math.isnan(gap.margin(0.95))

    def test_rows_of_a_person_that_cancel_are_no_difference(self):
        mean = mean_over([[1.0, -1.0, 2.0, -2.0]], np.array([0, 0, 1, 1]))
        assert mean.uncertainty.p_value(mean.value) == 1

    def test_who_does_not_count_is_no_person(self):
        values = [[1.0, math.nan, 3.0, math.nan]]
        assert mean_over(values, np.array([0, 1, 2, 2])).num_drawn == 2
        assert math.isnan(mean_over(values, np.array([0, 1, 0, 2])).margin(0.95))
        assert mean_over([[math.nan]], np.array([0])).num_drawn == 0


class TestComponents:
    def test_a_mixed_model_finds_the_same(self):
        formula = pytest.importorskip("statsmodels.formula.api")
        values = draw_of_uncertainty(6, 25, runs=0.8)
        run, user = np.indices((6, 25))
        frame = pd.DataFrame(
            {"x": values.ravel(), "run": run.ravel(), "user": user.ravel(), "all": 1}
        )
        parts = {"user": "0 + C(user)", "run": "0 + C(run)"}
        model = formula.mixedlm("x ~ 1", frame, groups="all", re_formula="0", vc_formula=parts)
        fitted = model.fit(reml=True)
        error = math.sqrt(mean_over(values).uncertainty.variance)
        assert float(fitted.bse_fe.iloc[0]) == pytest.approx(error, rel=1e-3)

    @pytest.mark.parametrize("value", [0.0, 1.0, 0.1 + 0.2])
    def test_without_variance_every_difference_is_found(self, value):
        found = mean_over(np.full((1, 50), value)).uncertainty
        assert found.variance == 0
        assert [found.p_value(x) for x in (0, 1e-9, value)] == [1, 0, value == 0]


class TestRunVariances:
    def test_fewer_runs_are_no_less_than_the_pooled_ones(self):
        many, few = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0])
        found = run_variances({"many": many, "few": few})
        own = many.var(ddof=1)
        assert found["many"] == pytest.approx((own, 2, 3))
        assert found["few"] == pytest.approx((2 / 3 * own, 3, 3))

    def test_those_of_one_spread_are_pooled(self):
        rng = np.random.default_rng(0)
        means = {
            name: np.array([1.0, 2.0, 4.0]) * sign
            for name, sign in zip("abc", (1, -1, 1), strict=True)
        }
        means["d"] = means["a"] + rng.normal()
        (found,) = {*run_variances(means).values()}
        assert found == pytest.approx((means["a"].var(ddof=1), 8, 8))

    def test_others_lie_between_their_own_and_the_pooled_one(self):
        rng = np.random.default_rng(1)
        means = {name: 10.0**name * rng.normal(size=4) for name in range(-2, 3)}
        own = np.array([values.var(ddof=1) for values in means.values()])
        found = run_variances(means)
        variances = np.array([each.variance for each in found.values()])
        between = (variances - own) / (own.mean() - own)
        assert (np.diff(own) > 0).all()
        assert ((between > 0) & (between < 0.5)).all()
        assert all(3 < each.freedom < 15 for each in found.values())

    def test_those_that_do_not_vary(self):
        same = {name: np.ones(3) for name in "abc"}
        assert {each.variance for each in run_variances(same).values()} == {0.0}
