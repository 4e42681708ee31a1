"""How often stars over data sets are wrong, in draws of known laws.

Bounds are those of what is promised, with three standard errors of room.
"""

import math

import pytest
import torch

from pyg_recmetrics import Benchmark
from tests.support.cases.drawn_results import (
    SD_OF_INTERACTION,
    DrawnResult,
    draw_runs,
    names_of,
)

pytest.importorskip("scipy")

NUM_DRAWS, NUM_USERS = 200, 200

#: The standard error of a share of .05 of so many draws.
ERROR = math.sqrt(0.05 * 0.95 / NUM_DRAWS)

#: The standard error of the difference of two recommenders with a run each.
UNIT = math.sqrt((SD_OF_INTERACTION**2 + 2 * 0.07**2) / NUM_USERS)


def draw_benchmark(leads, seed=0):
    """A benchmark whose draws are metrics, and on whose data sets each is ahead of `base`.

    Args:
        leads: For each recommender, by how many standard errors it is better on each data set.
        seed: The seed.
    """
    generator = torch.Generator().manual_seed(seed)
    num_data_sets = len(next(iter(leads.values())))
    results = {}
    for place in range(num_data_sets):
        of_one = results.setdefault(f"set {place}", {})
        for name, of_name in {**leads, "base": [0.0] * num_data_sets}.items():
            sd = 0.0 if name == "base" else SD_OF_INTERACTION
            (values,) = draw_runs(1, NUM_DRAWS, NUM_USERS, users=sd, runs=0.0, generator=generator)
            of_one[name] = DrawnResult(values + of_name[place] * UNIT)
    return Benchmark(results)


def comparisons(benchmark, **options):
    for name in names_of(NUM_DRAWS):
        yield benchmark.compare(name, baseline="base", **options)


def rate(found):
    found = list(found)
    return sum(found) / len(found)


@pytest.mark.slow
class TestFamilies:
    def test_any_star_is_false_in_one_of_twenty_draws_over_all_data_sets(self):
        benchmark = draw_benchmark({"a": [0] * 4, "b": [0] * 4})
        found = list(comparisons(benchmark))
        any_star = rate(
            any(each.is_significant(row) for each in of_one.values() for row in each)
            for of_one in found
        )
        assert any_star <= 0.05 + 3 * ERROR
        # Corrected on each data set alone, more than one in ten would be.
        alone = rate(
            any(min(row.p_value for row in each) <= 0.025 for each in of_one.values())
            for of_one in found
        )
        assert alone > 0.05 + 3 * ERROR


@pytest.mark.slow
@pytest.mark.parametrize("num_better", [0, 1, 3])
def test_stars_are_more_than_there_are_in_one_of_twenty_draws(num_better):
    leads = [4.5] * num_better + [0.0] * (4 - num_better)
    found = [
        [row.verdict for each in of_one.values() for row in each]
        for of_one in comparisons(draw_benchmark({"a": leads}, seed=num_better))
    ]
    better = [verdicts.count("better") for verdicts in found]
    wrong = rate(
        number > num_better or "worse" in verdicts
        for number, verdicts in zip(better, found, strict=True)
    )
    assert wrong <= 0.05 + 3 * ERROR
    # They find most of what is there.
    assert 0.85 * num_better <= sum(better) / len(better) <= num_better + 0.1
