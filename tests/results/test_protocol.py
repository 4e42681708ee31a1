"""How a comparison was made, in the notes below its table."""

import pytest

from pyg_recmetrics import metrics
from pyg_recmetrics.results import PairedDifference, Protocol
from pyg_recmetrics.results.paired import Equivalence

TESTED = PairedDifference("mrr", "A", "B", 0.1, 0.05, 0.15, p_value=0.01)
DESCRIBED = PairedDifference("map", "A", "B", 0.1, 0.05, 0.15)
OF_ALL = PairedDifference("coverage@3", "A", "B", 0.1)


def make(**options):
    wanted = {
        "test": "t-test",
        "level": 0.95,
        "equivalence": None,
        "primary": None,
        "simultaneous": False,
        "num_runs": {"A": 1, "B": 1, "C": 1},
        "deterministic": ("A", "B"),
        "unit": "users",
        "num_tests": 1,
        "num_tested_metrics": 1,
    }
    return Protocol(**{**wanted, **options})


def notes(*rows, **options):
    return list(make(**options).notes(rows or (TESTED,)))


INTERVAL = "a - b: mean difference over users ± its 95% confidence interval, for other users"


def test_a_single_test():
    assert notes() == [INTERVAL, "p: paired t-test, a single test; *: at most 0.05"]
    assert notes(simultaneous=True, unit="persons") == [
        INTERVAL.replace("other users", "other persons"),
        "p: paired t-test, a single test by random signs of persons; *: at most 0.05",
    ]


def test_several_tests_are_counted_whether_they_are_shown_or_not():
    several = {"num_tests": 12, "num_tested_metrics": 2}
    assert notes(**several)[1:] == [
        "p: paired t-test, adjusted for 12 tests of 2 metrics by Holm's method; *: at most 0.05",
        "an interval is one of a single difference; 'simultaneous=True' corrects it, too",
    ]
    assert notes(**several, simultaneous=True, level=0.9) == [
        "a - b: mean difference over users ± its 90% confidence interval of all differences "
        "together, for other users",
        "p: paired t-test, adjusted for 12 tests of 2 metrics by the largest of all; *: at most "
        "0.1",
    ]
    assert "12 tests of 1 metric by" in notes(num_tests=12, num_tested_metrics=1)[1]


def test_what_is_not_tested_needs_no_words_on_tests():
    untested = {"num_tests": 0, "num_tested_metrics": 0, "equivalence": Equivalence.of(0.1)}
    assert notes(OF_ALL, **untested, deterministic=()) == [
        "a - b: the difference; an interval and a test need values of two users or more"
    ]
    assert notes(DESCRIBED, primary=metrics.parse("mrr"), deterministic=()) == [
        INTERVAL,
        "p: only mrr is tested",
    ]


def test_stars_in_brackets_are_explained_where_they_may_stand():
    said = "(*): for these trained models; other seeds of A, B are not covered"
    assert notes(deterministic=())[-1] == said
    assert notes(deterministic=("B", "C"))[-1] == said.replace("A, B", "A")


def test_runs_and_equivalence_and_a_caution():
    found = notes(
        num_runs={"A": 3, "B": 1},
        equivalence=Equivalence.of("2%"),
        caution="intervals may be too narrow: there are few users (9)",
    )
    assert found == [
        f"{INTERVAL} and other runs",
        "p: paired t-test, a single test; *: at most 0.05",
        "equivalent: the difference is smaller than 2% of the mean of b, by two one-sided tests",
        "runs: 3 of A, 1 of B; wins are averaged over pairs of runs",
        "intervals may be too narrow: there are few users (9)",
    ]


@pytest.mark.parametrize("level", [0.5, 0.7, 0.8, 0.9, 0.95])
def test_a_p_value_of_alpha_is_significant(level):
    assert round(1 - level, 9) <= make(level=level).alpha
    assert round(1 - level, 9) + 1e-8 > make(level=level).alpha
