"""Estimates of several runs: their intervals, against plain sums and in simulations."""

import math

import numpy as np
import pytest
import torch

from pyg_recmetrics.results.estimates import mean_of_users
from pyg_recmetrics.results.estimates_of_runs import mean_of_users_and_runs
from tests.support.references.variance_components import margin_over_runs

pytest.importorskip("scipy")

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
    return [mean_of_users_and_runs(values.masked_fill(mask, math.nan), person) for mask in masks]


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
    estimate = mean_of_users_and_runs(values, None)
    assert estimate.num_drawn == len(left)
    assert estimate.value == pytest.approx(float(values[:, left].mean()))
    assert estimate.margin(0.95) == pytest.approx(margin_over_runs([(1, values[:, left])]))


def test_what_has_no_runs_is_the_same_in_each():
    values = draw(2)
    known = mean_of_users(values[0], None)
    several = mean_of_users_and_runs(values, None)
    repeated = mean_of_users_and_runs(values[:1].repeat(NUM_RUNS, 1), None)
    for found, wanted in (
        (several.minus(known), several.minus(repeated)),
        (several.over(known), several.over(repeated)),
    ):
        assert found.interval(0.95) == pytest.approx(wanted.interval(0.95))


def test_too_few_users_and_no_divisor():
    values = torch.full((2, 3), math.nan, dtype=torch.double)
    values[:, 0] = torch.tensor([1.0, 2.0])
    one = mean_of_users_and_runs(values, None)
    assert one.value == 1.5
    assert math.isnan(one.margin(0.95))
    zero = mean_of_users_and_runs(torch.zeros(2, 3, dtype=torch.double), None)
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
