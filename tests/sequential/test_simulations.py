"""How often bounds hold that are looked at after every user, in random orders of real values.

Each rate comes from 1,000 orders, and may be wrong in 50 of them. The most that is allowed is that
with three standard errors of room.
"""

import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate
from pyg_recmetrics.margins import ConfidenceSequence

pytestmark = pytest.mark.slow

NUM_ORDERS, ALPHA = 1000, 0.05

#: 50 of 1,000, and three standard errors.
MOST_WRONG = 70

METRICS = ["ndcg@20", "recall@1", "hit_rate@20"]


def values_of(recommender, task):
    result = evaluate(recommender, task, METRICS)
    return {name: values[~values.isnan()] for name, values in result.per_user.items()}


@pytest.fixture(scope="module")
def on_gowalla(gowalla):
    """What LightGCN gives each user of Gowalla."""
    seen, truth, user, item = gowalla
    task = RankingTask(truth, num_users=user.size(0), num_items=item.size(0), seen=seen)
    return values_of((user, item), task)


@pytest.fixture(scope="module")
def on_lastfm(lastfm):
    """What the most popular items give each user of LastFM."""
    task = RankingTask.from_data(lastfm)
    return values_of(torch.bincount(task.seen[1], minlength=task.num_items).float(), task)


@pytest.fixture(scope="module")
def on_rare_hits():
    """Values of 30,000 users, few of whom have a hit."""
    numbers = torch.arange(30_000)
    return {"1%": (numbers < 300).double(), "0.2%": (numbers < 60).double()}


def orders_of(num_users, num_orders=NUM_ORDERS, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randperm(num_users, generator=generator) for _ in range(num_orders))


def is_ever_wrong(values, margin, alpha):
    """Whether the true mean is refuted after any of all users."""
    sequence = ConfidenceSequence(values, values.numel(), alpha, margin)
    return any(sequence._excess(float(values.mean()), sign) > 0 for sign in (1, -1))


@pytest.mark.parametrize(
    ("source", "name", "margin"),
    [
        ("on_gowalla", "ndcg@20", 0.01),
        ("on_gowalla", "ndcg@20", 0.002),
        ("on_gowalla", "hit_rate@20", 0.02),
        ("on_lastfm", "ndcg@20", 0.01),
        ("on_rare_hits", "1%", 0.004),
        ("on_rare_hits", "0.2%", 0.001),
    ],
)
def test_bounds_hold_at_any_time(request, source, name, margin):
    values = request.getfixturevalue(source)[name]
    wrong = sum(is_ever_wrong(values[order], margin, ALPHA) for order in orders_of(values.numel()))
    assert wrong <= MOST_WRONG
    assert wrong >= 5 or source != "on_gowalla"
