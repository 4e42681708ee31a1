"""Confidence sequences: bets that are counted one by one, and bounds that hold for sure."""

import math
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pyg_recmetrics import Evaluator, Margin, RankingTask
from pyg_recmetrics.margins import ConfidenceSequence, needed_users, num_to_rank


def money_one_by_one(values, margin, mean, sign, num_users):
    """The largest sum that a bettor ever has, by a loop over users, of whom some have no value."""
    money, seen, most = 1.0, [], 0.0
    for number, value in enumerate(values):
        means = [(0.5 + sum(seen[: n + 1])) / (n + 2) for n in range(len(seen))]
        squares = sum((x - m) ** 2 for x, m in zip(seen, means, strict=True))
        variance = (0.25 + squares) / (len(seen) + 1)
        num_left = num_users - number
        left = ((len(seen) + num_left) * mean - sum(seen)) / num_left
        left = min(max(left, 1e-9), 1 - 1e-9)
        stake = min(margin / variance, 0.75 / (left if sign > 0 else 1 - left))
        money *= 1 + sign * stake * ((mean if math.isnan(value) else value) - left)
        seen += [] if math.isnan(value) else [value]
        most = max(most, money)
    return most


def drawn(num_users, rate=0.3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(num_users, generator=generator, dtype=torch.double)
    return values * (torch.rand(num_users, generator=generator) < rate)


def is_refuted(sequence, mean, sign):
    """Whether somebody who bets on more (`1`) or less (`-1`) has ever won enough."""
    return sequence._excess(mean, sign) > 0


def end_by_halving(sequence, impossible, sign):
    """An end of the interval, from nothing but what is refuted."""
    refuted, kept = impossible, sequence.mean
    for _ in range(50):
        middle = (refuted + kept) / 2
        refuted, kept = (middle, kept) if is_refuted(sequence, middle, sign) else (refuted, middle)
    return refuted


class TestBets:
    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.floats(0, 1) | st.just(math.nan), min_size=1, max_size=12),
        st.integers(0, 5),
        st.floats(0.01, 0.99),
        st.sampled_from([1, -1]),
        st.sampled_from([0.2, 0.05]),
    )
    def test_they_are_those_that_a_loop_makes(self, values, num_left, mean, sign, margin):
        num_users, known = len(values) + num_left, torch.tensor(values, dtype=torch.double)
        sequence = ConfidenceSequence(known, num_users, 0.05, margin)
        wanted = money_one_by_one(values, margin, mean, sign, num_users)
        found = float(sequence._log_money(mean, sign).exp().max())
        assert found == pytest.approx(wanted, rel=1e-9)
        if abs(wanted - 40) > 1e-3:
            assert is_refuted(sequence, mean, sign) == (wanted > 40)

    @pytest.mark.parametrize("first", [0.0, math.nan])
    @pytest.mark.parametrize(("num_others", "other"), [(0, 0.0), (2, 0.0), (1, 1.0)])
    def test_a_fair_bettor_has_the_same_on_average(self, first, num_others, other):
        """Over all orders of the users, what a bettor against the true mean has left is 1."""
        values = torch.tensor([first, 0.1, 0.3, 1.0, 0.6], dtype=torch.double)
        mean = float(torch.cat([values, values.new_full((num_others,), other)]).nanmean())
        ends = []
        for order in permutations(range(5)):
            first = values[list(order[:4])]
            sequence = ConfidenceSequence(first, 5, 0.05, 0.1, (0, 1), num_others, other)
            ends.append(sequence._log_money(mean, 1).exp()[-1])
        assert float(torch.stack(ends).mean()) == pytest.approx(1)


class TestIntervals:
    def test_they_hold_the_mean_of_the_known_values_and_whatever_is_possible(self):
        values = drawn(400)
        assert ConfidenceSequence(values[:0], 400, 0.05, margin=0.05).interval() == (0, 1)
        for first in range(0, 400, 50):
            sequence = ConfidenceSequence(values[: first + 50], 400, 0.05, margin=0.05)
            low, high = sequence.interval()
            known = float(values[: first + 50].sum())
            assert known / 400 - 1e-9 <= low <= sequence.mean <= high
            assert high <= (known + 350 - first) / 400 + 1e-9
            assert sequence.is_known == (max(sequence.mean - low, high - sequence.mean) <= 0.05)

    @pytest.mark.parametrize("margin", [1e-5, 0.002, 0.05, 0.6])
    @pytest.mark.parametrize("rate", [0.0, 0.003, 0.3, 1.0])
    def test_their_ends_are_those_that_halving_finds(self, rate, margin):
        for last in (100, 600, 990):
            sequence = ConfidenceSequence(drawn(1000, rate)[:last], 1000, 0.05, margin)
            total = sequence.mean * last
            ends = (total / 1000, 1), ((total + 1000 - last) / 1000, -1)
            for end, (impossible, sign) in zip(sequence.interval(), ends, strict=True):
                wanted = end_by_halving(sequence, impossible, sign)
                assert end == pytest.approx(wanted, abs=2e-4 * margin)

    def test_they_follow_the_range_of_the_values(self):
        values = drawn(2000)[:500]
        narrow = ConfidenceSequence(values, 2000, 0.05, 0.05)
        wide = ConfidenceSequence(8 * values - 3, 2000, 0.05, 0.4, (-3, 5))
        ends = [8 * end - 3 for end in narrow.interval()]
        assert wide.interval() == pytest.approx(ends, abs=1e-4)
        assert wide.variance == pytest.approx(64 * narrow.variance)
        assert wide.mean == pytest.approx(8 * narrow.mean - 3)


@pytest.mark.parametrize(("num_others", "other"), [(0, 0.0), (60, 0.0), (60, 1.0)])
def test_means_are_over_those_who_have_a_value(num_others, other):
    values = drawn(300)
    values[::3] = math.nan
    mean = float(torch.cat([values, values.new_full((num_others,), other)]).nanmean())
    for num_known in (0, 100, 200, 300):
        known = values[:num_known]
        sequence = ConfidenceSequence(known, 300, 1e-6, 0.1, (0, 1), num_others, other)
        low, high = sequence.interval()
        assert low <= mean <= high or num_known == 300
    assert sequence.interval() == (sequence.mean, sequence.mean)
    assert sequence.mean == pytest.approx(mean)
    assert sequence.num_counted == pytest.approx(200)


@pytest.mark.parametrize("value", [-0.1, 1.1, -math.inf, math.inf])
def test_values_outside_the_limits_are_an_error(value):
    with pytest.raises(ValueError, match=r"a margin needs values from 0 to 1 \(got"):
        ConfidenceSequence(torch.tensor([0.5, value]), 10, 0.05, margin=0.1)


def test_the_number_depends_on_the_variance_and_hardly_on_the_population():
    variance = 0.181**2
    numbers = [needed_users(variance, 0.002, 0.05, users) for users in (1e4, 1e6, 1e9, math.inf)]
    assert numbers == pytest.approx([8580, 57000, 60420, 60420], rel=0.002)
    assert needed_users(variance, 0.001, 0.05, math.inf) == pytest.approx(4 * numbers[-1])


@pytest.mark.parametrize("margin", [1e-12, 1e-160, 1e-300])
def test_a_margin_whose_square_is_zero_takes_all_users(margin):
    assert needed_users(0.25, margin, 0.05, 1000) == pytest.approx(1000)


def test_users_without_a_value_are_needed_in_proportion():
    values = torch.rand(500, generator=torch.Generator().manual_seed(0))
    half = torch.full((1000,), math.nan)
    half[::2] = values
    whole = ConfidenceSequence(values, 10_000, 0.05, 0.02)
    with_others = ConfidenceSequence(half, 20_000, 0.05, 0.02)
    assert with_others.num_needed() == pytest.approx(2 * whole.num_needed())


def test_a_limit_on_stakes_counts_from_where_it_binds():
    variance, margin = 0.01, 0.002  # a stake of 0.2
    free = needed_users(variance, margin, 0.05, 1e5)
    assert needed_users(variance, margin, 0.05, 1e5, largest_stake=0.2) == free
    just = needed_users(variance, margin, 0.05, 1e5, largest_stake=0.2 * (1 - 1e-6))
    assert just == pytest.approx(free)
    assert needed_users(variance, margin, 0.05, 1e5, largest_stake=0.1) > 1.2 * free
    assert needed_users(0.0, margin, 0.05, 1e5) == 0


@pytest.mark.parametrize(
    ("num_ranked", "num_needed", "num_users", "wanted"),
    [
        (512, 5001, 10_000, 10_000),  # half would not be enough
        (512, 5000, 10_000, 1024),
        (512, 700, 10**6, 700),
        (512, 700.1, 10**6, 701),
        (512, 4000, 10**6, 1024),  # no more than a doubling
        (1600, 1000, 10**6, 1700),  # no tiny batch
        (1600, 1601, 10**6, 1700),
        (995, 400, 1000, 1000),  # there are no more than all
    ],
)
def test_a_batch_is_what_is_needed_within_limits(num_ranked, num_needed, num_users, wanted):
    assert num_to_rank(num_ranked, num_needed, num_users) == wanted


def sample_of_users(seed):
    """The order of 60 users, of whom every third has no ground truth."""
    users = torch.arange(60)
    users = users[users % 3 != 0]
    task = RankingTask(torch.stack([users, users % 2]), num_users=60, num_items=2)
    return Evaluator(task, "recall@1", margin=Margin(0.1, seed=seed))._user_sample


def test_it_holds_every_user_once():
    order = sample_of_users(3)
    assert order.in_order[0].sort().values.equal(order.task.users_with_truth)
    assert order.first(40).equal(torch.arange(60))
    assert order.in_order[1].sort().values.equal(torch.arange(0, 60, 3))


def test_a_sample_holds_the_first_and_as_many_others_as_there_are():
    order = sample_of_users(3)
    for number in (1, 10, 20, 33):
        sample = order.first(number)
        assert sample.equal(sample.sort().values)
        with_truth = sample[sample % 3 != 0]
        assert with_truth.equal(order.in_order[0][:number].sort().values)
        assert abs(sample.numel() - 1.5 * number) <= 0.5
        assert set(sample.tolist()) <= set(order.first(number + 1).tolist())


def test_every_user_may_come_first():
    order = sample_of_users(0)
    orders = (replace(order, margin=Margin(0.1, seed=seed)) for seed in range(2000))
    counts = torch.tensor([int(each.in_order[0][0]) for each in orders]).bincount(minlength=60)
    counts = counts[order.task.users_with_truth]
    # 50 each on average, and a chi-square of 39 degrees of freedom.
    assert float(((counts - 50) ** 2 / 50).sum()) < 75
