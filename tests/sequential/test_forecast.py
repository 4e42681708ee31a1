"""How many users a margin takes, and how many are ranked next."""

import math
from statistics import median

import pytest
import torch

from pyg_recmetrics.sequential import ConfidenceSequence, forecast
from pyg_recmetrics.sequential.forecast import needed_users
from tests.sequential.test_confidence_sequence import drawn


def test_the_number_depends_on_the_variance_and_hardly_on_the_population():
    variance = 0.181**2
    numbers = [needed_users(variance, 0.002, 0.05, users) for users in (1e4, 1e6, 1e9, math.inf)]
    assert numbers == pytest.approx([8580, 57000, 60420, 60420], rel=0.002)
    assert needed_users(variance, 0.001, 0.05, math.inf) == pytest.approx(4 * numbers[-1])


@pytest.mark.parametrize("margin", [1e-12, 1e-160, 1e-300])
def test_a_margin_whose_square_is_zero_takes_all_users(margin):
    assert needed_users(0.25, margin, 0.05, 1000) == pytest.approx(1000)


def test_a_mean_is_known_to_the_margin_about_when_it_is_forecast():
    values, margin = drawn(200_000), 0.01
    sequence = ConfidenceSequence(200_000, 0.05)
    sequence.add(values[:1000], margin)
    needed = math.ceil(sequence.forecast(margin))
    sequence.add(values[1000:needed], margin)
    assert sequence.reach() == pytest.approx(margin, rel=0.1)


def rare_hits(rate, seed, num_values=20_000):
    return (torch.rand(num_values, generator=torch.Generator().manual_seed(seed)) < rate).double()


def num_taken(values, margin, num_users):
    """How many values it takes until their mean is known to a margin, by halving."""
    few, many = 0, values.numel()
    while many - few > 20:
        sequence, middle = ConfidenceSequence(num_users, 0.05), (few + many) // 2
        sequence.add(values[:middle], margin)
        few, many = (few, middle) if sequence.reach() <= margin else (middle, many)
    return many


@pytest.mark.parametrize(
    ("rate", "margin"), [(0.0002, 0.002), (0.0005, 0.002), (0.001, 0.004), (0.002, 0.004)]
)
def test_rare_hits_take_about_what_is_forecast(rate, margin):
    """On the whole: a single hit more or less changes what it takes."""
    ratios = []
    for seed in range(9):
        values, sequence = rare_hits(rate, seed), ConfidenceSequence(10**6, 0.05)
        sequence.add(values[:1000], margin)
        ratios.append(num_taken(values, margin, 10**6) / sequence.forecast(margin))
    assert 1 / 1.3 < median(ratios) < 1.3


def test_no_hits_at_all_take_what_the_largest_stakes_take():
    """Whoever stakes 0.75 on each value gets that part of the margin each time."""
    least = math.log(40) / math.log1p(0.75 * 0.002)
    for low, high in ((0.0, 1.0), (-3.0, 5.0)):
        for rare in (0.0, 1.0):  # misses may be rare instead
            sequence = ConfidenceSequence(10**9, 0.05, bounds=(low, high))
            sequence.add(torch.full((1000,), low + rare * (high - low)), 0.002 * (high - low))
            forecast_of_all = sequence.forecast(0.002 * (high - low))
            assert least < forecast_of_all < 1.3 * least


def test_a_limit_on_stakes_counts_from_where_it_binds():
    variance, margin = 0.01, 0.002  # a stake of 0.2
    free = needed_users(variance, margin, 0.05, 1e5)
    assert needed_users(variance, margin, 0.05, 1e5, largest_stake=0.2) == free
    just = needed_users(variance, margin, 0.05, 1e5, largest_stake=0.2 * (1 - 1e-6))
    assert just == pytest.approx(free)
    assert needed_users(variance, margin, 0.05, 1e5, largest_stake=0.1) > 1.2 * free
    assert needed_users(0.0, margin, 0.05, 1e5) == 0


def test_all_are_ranked_where_half_would_not_be_enough():
    assert forecast(512, 5001, 10_000) == 10_000
    assert forecast(512, 5000, 10_000) == 1024


@pytest.mark.parametrize(
    ("num_ranked", "num_needed", "wanted"),
    [(512, 700, 700), (512, 700.1, 701), (512, 4000, 1024), (1600, 1000, 1700), (1600, 1601, 1700)],
)
def test_a_batch_is_what_is_needed_and_neither_tiny_nor_more_than_a_doubling(
    num_ranked, num_needed, wanted
):
    assert forecast(num_ranked, num_needed, 10**6) == wanted


def test_there_are_no_more_than_all():
    assert forecast(995, 400, 1000) == 1000
