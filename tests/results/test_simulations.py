"""How often intervals hold, and how often tests find what is not there, in draws of known laws.

The bounds are those of what was measured, with three standard errors of room. A standard error that
is wrong by the root of two, or the wrong degrees of freedom, are outside of them.
"""

import math
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

from pyg_recmetrics import compare
from pyg_recmetrics.metrics import parse
from pyg_recmetrics.results.comparison import RecommenderPair
from pyg_recmetrics.results.statistics import difference_of_users, mean_of_users, run_variances
from pyg_recmetrics.results.verdicts import Equivalence
from tests.support.cases.drawn_results import SD_OF_INTERACTION, draw_runs, names_of, runs_of
from tests.support.cases.drawn_values import (
    MEAN,
    draw_gains,
    draw_linear,
    draw_recall,
    draw_recommenders,
)

coverage = pytest.importorskip("benchmarks.coverage")
variance_components = pytest.importorskip("tests.support.references.variance_components")

NUM_DRAWS, NUM_USERS = 1000, 1000


def draw_two(num_runs, deviations, num_draws=NUM_DRAWS, seed=0):
    """Values of two recommenders of the same mean, each of shape `[num_runs, num_draws, 1000]`."""
    generator = torch.Generator().manual_seed(seed)
    return [
        0.2 + draw_runs(number, num_draws, NUM_USERS, users=users, runs=runs, generator=generator)
        for number, users, runs in zip(num_runs, (SD_OF_INTERACTION, 0), deviations, strict=True)
    ]


def compare_two(values):
    """The differences in all draws."""
    a, b = map(runs_of, values)
    return compare({"a": a, "b": b}, metrics=names_of(values[0].size(1)))


@pytest.mark.parametrize("num_runs", [(1, 1), (3, 1), (2, 2), (3, 5), (10, 2)])
@pytest.mark.parametrize("deviation", [0.0, 0.004])
def test_intervals_of_differences_are_those_of_sums_of_squares(num_runs, deviation):
    values = draw_two(num_runs, (deviation, deviation), num_draws=8)
    for draw, found in enumerate(compare_two(values)):
        margin = variance_components.margin(*(x[:, draw].numpy() for x in values))
        assert (found.high - found.low) / 2 == pytest.approx(margin)


def pair_of(a, b):
    """What `compare` tests, given values of two recommenders, `[num_runs, num_users]` each."""
    both = [x.numpy().T for x in (a, b)]
    runs = run_variances({name: x.mean(axis=0) for name, x in zip("ab", both, strict=True)})
    return RecommenderPair(parse("mrr"), ("a", "b"), both, None, [runs.get(name) for name in "ab"])


def errors_of_differences(num_runs, deviations, num_draws, num_users=300):
    """The difference of each draw, in halves of its interval: the test finds it from one on."""
    drawn = draw_recommenders(num_runs, deviations, num_draws, num_users)
    for pair in map(pair_of, *drawn):
        yield abs(pair.difference.value) / pair.difference.uncertainty.margin(0.025)


def errors_of_equivalence(share, slope, num_draws):
    """How far the difference is from the bound where it truly is, in what makes it equivalent."""
    most = stats.t.isf(0.05, 999)
    equivalence = Equivalence(share, is_share=True)
    for pair in map(pair_of, *draw_gains(share, slope, num_draws)):
        yield stats.t.isf(pair.p_of_equivalence(equivalence), 999) / most


def errors_of_means(num_runs, deviation, num_draws):
    """The error of a mean over users and runs, in halves of its interval."""
    (drawn,) = draw_recommenders((num_runs,), (deviation,), num_draws)
    for values in drawn:
        mean = mean_of_users(values.numpy().T, None)
        yield abs(mean.value - MEAN) / mean.margin(0.95)


#: For each number of runs and each deviation of these, how often a difference is found that is not
#: there: in 2 to 7% of draws.
SIZES = {
    ((2, 2), (0, 0)): 0.019,
    ((3, 3), (0.004, 0.004)): 0.029,
    ((3, 3), (0.05, 0)): 0.056,
    ((10, 2), (0.02, 0.02)): 0.033,
    ((10, 2), (0.001, 0.02)): 0.059,
}

#: Each error, how often it leaves its interval, and in how many draws that is counted.
RATES = [
    *((partial(errors_of_differences, *cell), wanted, 5000) for cell, wanted in SIZES.items()),
    # Three equal copies of a recommender without a seed are one run.
    (partial(errors_of_differences, (3, 1), (0.02, 0), num_users=1000), 0.046, 1500),
    (partial(errors_of_equivalence, 0.1, 0.25), 0.05, 1500),
    (partial(errors_of_equivalence, 0.5, 0.5), 0.05, 1500),
    *(
        (partial(errors_of_means, num_runs, deviation), wanted, 1500)
        for num_runs, wanted in {2: 0.043, 3: 0.033, 5: 0.046}.items()
        for deviation in (0.01, 0.02)
    ),
]


def name_of(case):
    return f"{case.func.__name__}{case.args}" if isinstance(case, partial) else str(case)


@pytest.mark.slow
@pytest.mark.parametrize(("errors", "wanted", "num_draws"), RATES, ids=name_of)
def test_a_standard_error_that_is_wrong_by_the_root_of_two_would_show(errors, wanted, num_draws):
    found = torch.tensor(list(errors(num_draws=num_draws)), dtype=torch.double)
    room = 3 * math.sqrt(wanted * (1 - wanted) / num_draws)
    # What is found if standard errors are right, too large and too small.
    right, *wrong = ((found > by).double().mean() for by in (1, 2**0.5, 0.5**0.5))
    assert abs(right - wanted) <= room
    assert all(abs(rate - wanted) > room for rate in wrong)


def stars(values, tail):
    """Which differences of all pairs are larger than chance makes them, with some tail each."""
    names = range(len(values))
    runs = run_variances({name: values[name].mean(axis=0) for name in names})
    for a, b in combinations(names, 2):
        found = difference_of_users([values[a], values[b]], None, [runs.get(a), runs.get(b)])
        yield (a, b), abs(found.value) > found.uncertainty.margin(tail)


NUM_TABLES = 400

#: Numbers of runs, and the deviations of their effects.
TABLES = [
    *(([runs] * 3, [0.02] * 3) for runs in (2, 3, 5)),
    ([2] * 10, [0.02] * 10),
    ([3] * 5, [0.004, 0.0075, 0.015, 0.015, 0.03]),
    ([2, 2], [0.02, 0.02]),
    ([3, 3], [0.05, 0.0]),
]


@pytest.mark.slow
class TestStars:
    """Some star should appear in one of twenty tables of recommenders that are alike."""

    @pytest.mark.parametrize("draw", [draw_linear, draw_recall])
    @pytest.mark.parametrize(("num_runs", "deviations"), TABLES)
    def test_few_tables_of_equal_recommenders_have_any(self, draw, num_runs, deviations):
        rng, num_pairs = np.random.default_rng(60), math.comb(len(num_runs), 2)
        tables = [draw(num_runs, deviations, rng) for _ in range(NUM_TABLES)]
        found = sum(any(star for _, star in stars(x, 0.025 / num_pairs)) for x in tables)
        assert found / NUM_TABLES <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / NUM_TABLES)

    @pytest.mark.parametrize(
        ("deviation", "lead", "least"), [(0.0, 0.03, 0.4), (0.004, 0.03, 0.3), (0.02, 0.08, 0.6)]
    )
    def test_a_better_recommender_has_its_stars(self, deviation, lead, least):
        rng, found = np.random.default_rng(60), []
        for _ in range(100):
            values = draw_recall([3] * 5, [deviation] * 5, rng)
            values[0] = values[0] + lead
            found += [star for (a, _), star in stars(values, 0.0025) if a == 0]
        assert sum(found) / len(found) >= least


@pytest.mark.slow
def test_the_table_of_the_documentation_is_measured_again():
    shares = coverage.measure(num_draws=250)
    (shown,) = coverage.TABLE.findall(coverage.README.read_text())
    found, wanted = (
        [[float(cell) for cell in row.split("|")[4:-1]] for row in table.splitlines()[2:]]
        for table in (coverage.table(shares), shown)
    )
    assert torch.tensor(found) == pytest.approx(torch.tensor(wanted), abs=0.1)
