"""How many users a margin takes, and how many are ranked next."""

import math

import pytest

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
