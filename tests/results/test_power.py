"""The power of a comparison, against statsmodels and what the tests of comparisons find."""

import math

import pytest

from pyg_recmetrics import compare, evaluate
from tests.support.cases.random_tasks import random_scores, random_task

pytest.importorskip("scipy")

METRICS = ["recall@3", "ndcg@3", "coverage@1"]


@pytest.fixture(scope="module")
def results():
    """Results of scores to which something is added where an item is relevant."""
    task = random_task(80, 60, truth_share=0.05, seen_share=0.2)
    found = {"good": [], "fair": [], "popular": []}
    for seed, (name, skill) in enumerate(
        [("good", 0.4), ("good", 0.4), ("fair", 0.2), ("fair", 0.2), ("popular", 0.2)]
    ):
        scores = random_scores(task, 1 + seed)
        scores[tuple(task.truth)] += skill
        found[name].append(evaluate(scores, task, METRICS))
    return found


@pytest.fixture(scope="module")
def comparison(results):
    return compare(results)


@pytest.fixture(scope="module")
def single(results):
    """The power of two recommenders with one run each."""
    return compare({name: results[name][0] for name in ("good", "fair")}).power("ndcg@3")


def test_it_is_that_of_statsmodels(results, single):
    power = pytest.importorskip("statsmodels.stats.power").TTestPower()
    first, second = (results[name][0].per_user["ndcg@3"] for name in ("good", "fair"))
    difference = first - second
    difference = difference[~difference.isnan()]
    deviation, number = float(difference.std()), difference.numel()
    for wanted in (0.5, 0.9):
        found = power.solve_power(None, number, 0.05, wanted) * deviation
        assert single.detectable(wanted) == pytest.approx(found, rel=1e-5)
    users = power.solve_power(0.1 / deviation, None, 0.05, 0.8)
    assert single.users(0.1) == math.ceil(users)
    assert single.users(-0.1) == single.users(0.1)


def test_as_many_users_as_there_are_detect_what_is_detectable(single):
    number = round(single._uncertainty.components[0].num_users)
    assert single.users(single.detectable()) == pytest.approx(number, abs=1)


def test_it_prints_what_it_detects(single):
    assert repr(single) == (
        f"Power(ndcg@3 of good and fair: detects a difference of {single.detectable():.4f} in "
        f"80% of cases)"
    )


def test_what_never_differs_says_nothing_of_what_is_detected(results):
    good = results["good"][0]
    power = compare({"a": good, "b": good}, metrics="ndcg@3").power("ndcg@3")
    assert not power.has_error
    assert repr(power) == "Power(ndcg@3 of a and b: all differences are the same)"


def test_runs_that_are_needed(comparison):
    power = comparison.power("ndcg@3", "good", "fair")
    assert power.runs(1e-9) is None
    needed = power.runs(0.5)
    assert power._uncertainty.with_number("runs", needed).power(0.5, 0.95) >= 0.8


def test_a_pair_is_named_in_any_order(comparison):
    assert comparison.power("ndcg@3", "fair", "good") is comparison.power("ndcg@3", "good", "fair")
    error = r"need to name one pair that was tested, of \[\('good', 'fair'\), \('good', 'popu"
    for pair in ((), ("good",), ("good", "good"), ("good", "best")):
        with pytest.raises(ValueError, match=error):
            comparison.power("ndcg@3", *pair)


def test_one_of_two_names_may_be_enough(results):
    comparison = compare(results, baseline="popular", metrics="ndcg@3")
    power = comparison.power("ndcg@3", "fair")
    assert (power.a, power.b) == ("fair", "popular")
    with pytest.raises(ValueError, match=r"\(got 'popular' and None\)"):
        comparison.power("ndcg@3", "popular")
    one = compare({name: results[name] for name in ("good", "fair")}, metrics="ndcg@3")
    assert one.power("ndcg @ 3").a == one.power("ndcg@3", b="good").a == "good"
    with pytest.raises(ValueError, match=r"\(got 'good' and 'good'\)"):
        one.power("ndcg@3", "good", "good")


def test_what_is_wrong_is_named(comparison, single):
    with pytest.raises(ValueError, match=r"of \['recall@3', 'ndcg@3'\] \(got 'cov"):
        comparison.power("coverage@1")
    with pytest.raises(ValueError, match="'power' needs to be in"):
        single.detectable(80)
    with pytest.raises(ValueError, match="'power' needs to be in"):
        single.users(0.1, power=1)
    with pytest.raises(ValueError, match="'difference' needs to be other than zero"):
        single.users(0)
    with pytest.raises(ValueError, match=r"several runs of 'good' or 'fair' \(got one of each\)"):
        single.runs(0.1)


def test_it_does_not_change(single):
    with pytest.raises(AttributeError):
        single.level = 0.9
