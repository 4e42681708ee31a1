"""How often daggers in the table of a paper are wrong, in draws of known laws.

Bounds are those of what is promised, with three standard errors of room.
"""

import math

import pytest
import torch

from pyg_recmetrics import Benchmark
from tests.support.cases.drawn_results import (
    SD_OF_INTERACTION,
    SD_OF_REST,
    DrawnResult,
    draw_runs,
    names_of,
)

NUM_DRAWS, NUM_USERS = 200, 200

#: The standard error of a share of .05 of so many draws.
ERROR = math.sqrt(0.05 * 0.95 / NUM_DRAWS)

#: The standard error of the difference of two recommenders with a run each.
UNIT = math.sqrt(2 * (SD_OF_INTERACTION**2 + SD_OF_REST**2) / NUM_USERS)


def draw_results(leads, num_data_sets, seed=0):
    """The results of each data set, whose draws are metrics.

    Args:
        leads: By how many standard errors each recommender is better than zero.
        num_data_sets: The number of data sets.
        seed: The seed.
    """
    generator = torch.Generator().manual_seed(seed)
    results = {}
    for place in range(num_data_sets):
        of_one = results.setdefault(f"set {place}", {})
        for name, lead in leads.items():
            options = {"users": SD_OF_INTERACTION, "runs": 0.0, "generator": generator}
            (values,) = draw_runs(1, NUM_DRAWS, NUM_USERS, **options)
            of_one[name] = DrawnResult(values + lead * UNIT)
    return results


def daggers(results, **options):
    """The recommenders that have a dagger in each draw."""
    for metric in names_of(NUM_DRAWS):
        compared = Benchmark(results, metric, **options).comparisons.values()
        yield [row.a for found in compared for row in found if row.verdict == "better"]


@pytest.mark.slow
@pytest.mark.parametrize("num_data_sets", [1, 4])
@pytest.mark.parametrize("proposed", [None, ["a"], ["a", "b"]])
def test_any_dagger_is_false_in_one_of_twenty_tables_of_equal_models(num_data_sets, proposed):
    results = draw_results(dict.fromkeys("abcd", 0), num_data_sets)
    found = list(daggers(results, proposed=proposed))
    assert sum(map(bool, found)) / len(found) <= 0.05 + 3 * ERROR


@pytest.mark.slow
@pytest.mark.parametrize("proposed", [None, "a"])
def test_they_find_most_of_what_is_there(proposed):
    found = list(daggers(draw_results({"a": 4.5, "b": 0, "c": 0}, 3), proposed=proposed))
    # The others are alike, and all pairs are compared where nobody is proposed.
    is_wrong = [any(name != "a" for name in names) for names in found]
    assert sum(is_wrong) / len(found) <= 0.05 + 3 * ERROR
    assert sum(names.count("a") for names in found) / len(found) >= 0.85 * 3
