"""Variance by its sources, against plain loops, statsmodels, and simulations."""

import math

import numpy as np
import pytest
import torch

from pyg_recmetrics.results.estimates import mean_of_users, ratio_of_sums
from pyg_recmetrics.results.inference import Sample, interval_of_mean, randomization_test
from pyg_recmetrics.results.uncertainty import uncertainty_of, uncertainty_of_means

stats = pytest.importorskip("scipy.stats")

NUM_SIMULATIONS = 1500


def normal(*shape, generator):
    return torch.randn(*shape, generator=generator, dtype=torch.double)


def draw(num_runs, num_users, seed=0, person=None, users=1.0, runs=0.1, rest=1.0):
    """Values of users in the runs of a recommender: `[num_runs, num_users]`, around zero."""
    generator = torch.Generator().manual_seed(seed)
    of_users = users * normal(num_users, generator=generator)
    of_users = of_users if person is None else of_users[person]
    of_runs = runs * normal(num_runs, 1, generator=generator)
    return of_users + of_runs + rest * normal(num_runs, num_users, generator=generator)


def uncertainty_of_mean(values, person=None):
    return uncertainty_of(Sample(values.mean(dim=0), person), [values])


class TestSample:
    def test_persons_have_the_variance_of_a_loop(self):
        values = torch.tensor([1.0, 4.0, 2.0, 0.0, 3.0], dtype=torch.double)
        person = torch.tensor([0, 1, 0, 2, 1])
        mean, total = 2.0, 0.0
        for number in range(3):
            total += sum(values[i].item() - mean for i in range(5) if person[i] == number) ** 2
        assert Sample(values, person).variance == pytest.approx(3 / 2 * total / 25)

    def test_persons_of_one_row_are_users(self):
        values = draw(1, 50)[0]
        person = torch.randperm(50, generator=torch.Generator().manual_seed(0))
        one, other = Sample(values), Sample(values, person)
        assert one.variance == pytest.approx(float(values.var()) / 50)
        assert other.variance == pytest.approx(one.variance)

    def test_repeated_rows_of_a_person_tell_nothing_new(self):
        values, person = draw(1, 40)[0], torch.arange(40)
        repeated = Sample(values.repeat(7), person.repeat(7))
        assert repeated.variance == pytest.approx(Sample(values).variance)
        assert randomization_test(repeated) == randomization_test(Sample(values))
        for method in ("t", "bootstrap"):
            wanted = interval_of_mean(Sample(values), method=method, seed=3)
            assert interval_of_mean(repeated, method=method, seed=3) == pytest.approx(wanted)

    def test_persons_are_those_of_statsmodels(self):
        statsmodels = pytest.importorskip("statsmodels.api")
        person = torch.randint(30, (200,), generator=torch.Generator().manual_seed(0))
        values = draw(1, 200, person=person)[0]
        fitted = statsmodels.OLS(values.numpy(), np.ones(200)).fit(
            cov_type="cluster", cov_kwds={"groups": person.numpy(), "use_correction": False}
        )
        factor = len(person.unique()) / (len(person.unique()) - 1)
        wanted = float(fitted.bse[0]) ** 2 * factor
        assert Sample.of(values, person).variance == pytest.approx(wanted)

    def test_who_does_not_count_is_no_person(self):
        values = torch.tensor([1.0, math.nan, 3.0, math.nan], dtype=torch.double)
        sample = Sample.of(values, torch.tensor([0, 1, 2, 2]))
        assert sample.num_drawn == 2
        assert math.isnan(Sample.of(values, torch.tensor([0, 1, 0, 2])).variance)
        assert Sample.of(values[1:2], torch.tensor([0])).num_drawn == 0


class TestComponents:
    def test_they_are_the_mean_squares_of_a_loop(self):
        values = draw(4, 30, runs=0.5)
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
        # With all runs that there could be, the rest is gone.
        left = found.with_runs(math.inf).variance
        assert left == pytest.approx((users - rest) / 120)
        # The parts from users, from the rest, and from runs.
        parts = [((users - rest), 29), (rest, 29), (runs - rest, 3)]
        total = users + runs - rest
        assert found.freedom == pytest.approx(total**2 / sum(x**2 / n for x, n in parts))
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
        values = draw(6, 25, runs=0.8)
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
        found = uncertainty_of(Sample(torch.zeros(9, dtype=torch.double)), [])
        assert [found.p_value(x) for x in (0, 1e-9)] == [1, 0]

    def test_means_alone_vary_by_runs(self):
        means = torch.tensor([0.1, 0.4, 0.2], dtype=torch.double)
        found = uncertainty_of_means(means)
        low, high = found.interval(float(means.mean()), 0.9)
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
        sample = Sample(values[0].mean(dim=0) - values[1].mean(dim=0), person)
        yield uncertainty_of(sample, values), sample.mean


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
        low, high = uncertainty.interval(difference, 0.95)
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

    @pytest.mark.parametrize("num_rows", [1, 3])
    def test_randomization_is_right_as_often_as_it_says(self, num_rows):
        generator = torch.Generator().manual_seed(2)
        person = torch.arange(60).repeat(num_rows) if num_rows > 1 else None
        found = {0.0: 0, 0.4: 0}
        for seed in range(500):
            of_person = normal(60, generator=generator).repeat(num_rows)
            rest = 0.5 * normal(60 * num_rows, generator=generator)
            for shift in found:
                sample = Sample(of_person + rest + shift, person)
                found[shift] += randomization_test(sample, num_samples=400, seed=seed) <= 0.05
        assert 0.03 <= found[0.0] / 500 <= 0.07
        # The power of a t-test of 60 persons, which it nearly has.
        unit = math.sqrt((1 + 0.25 / num_rows) / 60)
        wanted = stats.norm.cdf(0.4 / unit - stats.t.isf(0.025, 59))
        assert found[0.4] / 500 == pytest.approx(wanted, abs=0.08)

    @pytest.mark.parametrize("method", ["bootstrap", "t"])
    @pytest.mark.parametrize("num_rows", [1, 4])
    def test_intervals_of_means_hold_the_mean(self, method, num_rows):
        generator = torch.Generator().manual_seed(1)
        held, num_persons = 0, 120
        person = torch.arange(num_persons).repeat(num_rows) if num_rows > 1 else None
        for seed in range(500):
            of_person = torch.empty(num_persons, dtype=torch.double).exponential_(
                generator=generator
            )
            rest = normal(num_persons * num_rows, generator=generator)
            sample = Sample(of_person.repeat(num_rows) + rest, person)
            low, high = interval_of_mean(sample, 0.95, method, num_samples=400, seed=seed)
            held += low <= 1 <= high
        assert 0.92 <= held / 500 <= 0.98


class TestEstimates:
    def test_a_mean_is_that_of_a_sample(self):
        generator = torch.Generator().manual_seed(0)
        values = torch.rand(60, generator=generator, dtype=torch.double)
        values[::7] = math.nan
        person = torch.randint(20, (60,), generator=generator)
        for of in (None, person):
            found, wanted = mean_of_users(values, of), Sample.of(values, of)
            assert found.value == pytest.approx(wanted.mean)
            assert float(found.influence.square().sum()) == pytest.approx(wanted.variance)

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
                estimate = mean_of_users(groups[0], None).minus(mean_of_users(groups[1], None))
                truth = -1
            else:
                first, second = mean_of_users(x, None), mean_of_users(y, None)
                estimate = first.minus(second) if kind == "difference" else first.over(second)
                truth = 1 if kind == "difference" else 2
            low, high = estimate.interval(0.95)
            held += low <= truth <= high
        assert 0.93 <= held / 1000 <= 0.97

    def test_nothing_is_no_divisor(self):
        zero, one = (mean_of_users(torch.full((3,), x).double(), None) for x in (0, 1))
        assert math.isnan(one.over(zero).value)
        assert zero.over(one).value == 0
