"""Confidence sequences: bets that are counted one by one, and bounds that hold for sure."""

import math
from fractions import Fraction
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics.sequential import ConfidenceSequence


def money_one_by_one(values, margins, mean, sign, num_users, stakes=(1.0,), prior=0.25):
    """The largest sum that a bettor ever has, by a loop over users."""
    money = [1.0] * len(stakes)
    seen, most = [], 0.0
    for value, margin in zip(values, margins, strict=True):
        means = [(0.5 + sum(seen[: n + 1])) / (n + 2) for n in range(len(seen))]
        squares = sum((x - m) ** 2 for x, m in zip(seen, means, strict=True))
        variance = (prior + squares) / (len(seen) + 1)
        left = (num_users * mean - sum(seen)) / (num_users - len(seen))
        left = min(max(left, 1e-9), 1 - 1e-9)
        for index, factor in enumerate(stakes):
            largest = 0.75 / (left if sign > 0 else 1 - left)
            stake = min(factor * margin / variance, largest)
            money[index] *= 1 + sign * stake * (value - left)
        seen.append(value)
        most = max(most, sum(money) / len(money))
    return most


def drawn(num_users, rate=0.3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(num_users, generator=generator, dtype=torch.double)
    return values * (torch.rand(num_users, generator=generator) < rate)


def end_by_halving(sequence, impossible, sign):
    """An end of the interval, from nothing but what is refuted."""
    refuted, kept = impossible, sequence.mean
    for _ in range(50):
        middle = (refuted + kept) / 2
        refuted, kept = (middle, kept) if sequence.is_refuted(middle, sign) else (refuted, middle)
    return refuted


class TestBets:
    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.floats(0, 1), min_size=1, max_size=12),
        st.integers(0, 5),
        st.floats(0.01, 0.99),
        st.sampled_from([1, -1]),
        st.sampled_from([(1.0,), (1.0, 4.0, 16.0)]),
        st.sampled_from([0.25, 1 / 16]),
    )
    def test_they_are_those_that_a_loop_makes(self, values, num_left, mean, sign, stakes, prior):
        num_users, half = len(values) + num_left, len(values) // 2
        sequence = ConfidenceSequence(num_users, 0.05, stakes=stakes, prior_variance=prior)
        margins = [0.2] * half + [0.05] * (len(values) - half)
        sequence.add(torch.tensor(values[:half], dtype=torch.double), 0.2)
        sequence.add(torch.tensor(values[half:], dtype=torch.double), 0.05)
        wanted = money_one_by_one(values, margins, mean, sign, num_users, stakes, prior)
        found = float(sequence._log_money(mean, sign).exp().max())
        assert found == pytest.approx(wanted, rel=1e-6)
        if abs(wanted - 40) > 1e-3:
            assert sequence.is_refuted(mean, sign) == (wanted > 40)

    def test_a_fair_bettor_has_the_same_on_average(self):
        """Over all orders of the values, what a bettor against the true mean has left is 1."""
        values = torch.tensor([0.0, 0.0, 0.3, 1.0, 0.2], dtype=torch.double)
        ends = []
        for order in permutations(range(5)):
            sequence = ConfidenceSequence(5, 0.05, stakes=(1.0, 3.0))
            sequence.add(values[list(order[:4])], margin=0.1)
            ends.append(sequence._log_money(float(values.mean()), 1).exp()[-1])
        assert float(torch.stack(ends).mean()) == pytest.approx(1)


class TestIntervals:
    def test_they_hold_the_mean_of_the_known_values_and_whatever_is_possible(self):
        values = drawn(400)
        sequence = ConfidenceSequence(400, 0.05)
        assert sequence.interval() == (0, 1)
        for first in range(0, 400, 50):
            sequence.add(values[first : first + 50], margin=0.05)
            low, high = sequence.interval()
            known = float(values[: first + 50].sum())
            assert known / 400 - 1e-9 <= low <= sequence.mean <= high
            assert high <= (known + 350 - first) / 400 + 1e-9
            assert sequence.reach() == max(sequence.mean - low, high - sequence.mean)

    def test_their_ends_are_where_the_bets_are_won(self):
        sequence = ConfidenceSequence(5000, 0.05)
        sequence.add(drawn(5000)[:800], margin=0.02)
        low, high = sequence.interval()
        step = 0.02 * 2e-4
        assert sequence.is_refuted(low, 1)
        assert not sequence.is_refuted(low + step, 1)
        assert sequence.is_refuted(high, -1)
        assert not sequence.is_refuted(high - step, -1)

    @pytest.mark.parametrize("stakes", [(1.0,), (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)])
    @pytest.mark.parametrize("margin", [1e-5, 0.002, 0.05, 0.6])
    @pytest.mark.parametrize("rate", [0.0, 0.003, 0.3, 1.0])
    def test_their_ends_are_those_that_halving_finds(self, rate, margin, stakes):
        sequence = ConfidenceSequence(1000, 0.05, stakes=stakes)
        for first, last in ((0, 100), (100, 600), (600, 990)):
            sequence.add(drawn(1000, rate)[first:last], margin)
            total = sequence.mean * last
            ends = (total / 1000, 1), ((total + 1000 - last) / 1000, -1)
            for end, (impossible, sign) in zip(sequence.interval(), ends, strict=True):
                wanted = end_by_halving(sequence, impossible, sign)
                assert end == pytest.approx(wanted, abs=2e-4 * margin)

    def test_they_take_few_looks_at_the_bets(self, monkeypatch):
        num_looks, look = [], ConfidenceSequence._log_money
        monkeypatch.setattr(
            ConfidenceSequence,
            "_log_money",
            lambda *arguments: num_looks.append(1) or look(*arguments),
        )
        for stakes in ((1.0,), (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)):
            sequence = ConfidenceSequence(30_000, 0.05, stakes=stakes)
            for first in range(0, 10_000, 500):
                sequence.add(drawn(30_000)[first : first + 500], margin=0.01)
                sequence.interval()
        assert len(num_looks) <= 2 * 20 * 2 * 8  # halving takes 19 on each side

    def test_they_are_points_when_all_is_known(self):
        values = drawn(300)
        sequence = ConfidenceSequence(300, 0.05)
        sequence.add(values, margin=0.1)
        assert sequence.interval() == (sequence.mean, sequence.mean)
        assert sequence.mean == pytest.approx(float(values.mean()))

    def test_the_mean_of_all_is_rounded_once(self):
        for seed in range(5):
            values = drawn(1000, seed=seed)
            sequence = ConfidenceSequence(1000, 0.05)
            sequence.add(values, margin=0.1)
            assert sequence.mean == float(sum(map(Fraction, values.tolist())) / 1000)

    def test_they_follow_the_range_of_the_values(self):
        values = drawn(2000)[:500]
        narrow, wide = ConfidenceSequence(2000, 0.05), ConfidenceSequence(2000, 0.05, (-3, 5))
        narrow.add(values, margin=0.05)
        wide.add(8 * values - 3, margin=0.4)
        ends = [8 * end - 3 for end in narrow.interval()]
        assert wide.interval() == pytest.approx(ends, abs=1e-4)
        assert wide.variance == pytest.approx(64 * narrow.variance)
        assert wide.mean == pytest.approx(8 * narrow.mean - 3)

    def test_a_smaller_alpha_makes_them_wider(self):
        widths = []
        for alpha in (0.2, 0.05, 0.01):
            sequence = ConfidenceSequence(10**6, alpha)
            sequence.add(drawn(2000), margin=0.02)
            widths.append(sequence.reach())
        assert widths == sorted(widths)
        assert widths[2] == pytest.approx(
            widths[1] * math.log(2 / 0.01) / math.log(2 / 0.05), rel=0.3
        )

    def test_a_tighter_margin_goes_on_with_the_bets_that_were_made(self):
        values = drawn(10**5)
        sequence = ConfidenceSequence(10**6, 0.05)
        sequence.add(values[:2000], margin=0.04)
        before = sequence.interval()
        sequence.add(values[2000:40000], margin=0.01)
        low, high = sequence.interval()
        assert before[0] <= low <= high <= before[1]
        assert (high - low) / 2 < 0.01

    def test_rare_hits_are_not_taken_for_none(self):
        sequence = ConfidenceSequence(10**6, 0.05)
        sequence.add(torch.zeros(500), margin=0.001)
        assert sequence.interval()[1] > 0.005


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf])
def test_values_outside_the_bounds_are_an_error(value):
    sequence = ConfidenceSequence(10, 0.05)
    with pytest.raises(ValueError, match=r"a value needs to be between 0 and 1 \(got"):
        sequence.add(torch.tensor([0.5, value]), margin=0.1)


def test_more_values_than_users_are_an_error():
    sequence = ConfidenceSequence(2, 0.05)
    with pytest.raises(ValueError, match="there are 2 values"):
        sequence.add(torch.zeros(3), margin=0.1)
