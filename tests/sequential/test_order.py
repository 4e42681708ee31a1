"""The random order of users."""

import torch

from pyg_recmetrics.sequential import UserOrder

USERS = torch.arange(100, 160)
HAS_TRUTH = USERS % 3 != 0


def test_it_holds_every_user_once():
    order = UserOrder(USERS, HAS_TRUTH, seed=3)
    assert order.with_truth.sort().values.equal(USERS[HAS_TRUTH])
    assert order.without_truth.sort().values.equal(USERS[~HAS_TRUTH])
    assert order.sample(40).equal(USERS)


def test_a_sample_holds_the_first_and_as_many_others_as_there_are():
    order = UserOrder(USERS, HAS_TRUTH, seed=3)
    for number in (1, 10, 20, 33):
        sample = order.sample(number)
        assert sample.equal(sample.sort().values)
        with_truth = sample[sample % 3 != 0]
        assert with_truth.equal(order.with_truth[:number].sort().values)
        assert abs(sample.numel() - 1.5 * number) <= 0.5
        assert set(sample.tolist()) <= set(order.sample(number + 1).tolist())


def test_the_seed_decides():
    one, same, other = (UserOrder(USERS, HAS_TRUTH, seed) for seed in (0, 0, 1))
    assert one.with_truth.equal(same.with_truth)
    assert not one.with_truth.equal(other.with_truth)


def test_every_user_may_come_first():
    first = [int(UserOrder(USERS, HAS_TRUTH, seed).with_truth[0]) for seed in range(2000)]
    counts = torch.tensor(first).bincount(minlength=160)[USERS[HAS_TRUTH]]
    # 50 each on average, and a chi-square of 39 degrees of freedom.
    assert float(((counts - 50) ** 2 / 50).sum()) < 75
