"""Laws over the whole registry: all metrics equal naive loops, and obey the same laws.

These tests are of several modules together. Each module of metrics also has a file of its own.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics import Catalogue, RankedEdges, RankingTask, metrics, rank
from tests.support.references.world import Row, measure
from tests.support.tools import laws
from tests.support.tools.laws import (
    CUT_OFFS,
    metrics_of_all_ranks,
    metrics_of_lists,
    metrics_of_ranks,
)

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


@st.composite
def half_ranks(draw, is_full):
    """The ranks, weights and number of candidates of each user, where ranks may be halves.

    The `j`-th relevant item has at least `j` as its rank, and at least one more than the one
    before: half a rank is what irrelevant items of the same score add.
    """
    users = []
    for _ in range(draw(st.integers(1, 4))):
        num_above = sorted(draw(st.lists(st.integers(0, 12), max_size=5)))
        ranks = [place + number / 2 for place, number in enumerate(num_above, start=1)]
        if not is_full:
            num_retrieved = draw(st.integers(0, len(ranks)))
            ranks = ranks[:num_retrieved] + [math.inf] * (len(ranks) - num_retrieved)
        weights = [draw(st.integers(1, 3)) for _ in ranks]
        fewest = max(1, len(ranks) + (max([0, *num_above]) + 1) // 2)
        users.append((ranks, weights, fewest + draw(st.integers(0, 3))))
    return users


def ranked_by(users):
    """The same as `RankedEdges`, with ranks in double precision."""
    degree = torch.tensor([len(ranks) for ranks, _, _ in users])
    user = torch.arange(len(users)).repeat_interleave(degree)
    rank = [2.0**63 if rank == math.inf else rank for ranks, _, _ in users for rank in ranks]
    item = [item for ranks, _, _ in users for item in range(len(ranks))]
    return RankedEdges(
        torch.stack([user, torch.tensor(item, dtype=torch.long)]),
        torch.tensor(rank, dtype=torch.double),
        ptr=torch.cat([torch.zeros(1, dtype=torch.long), degree.cumsum(0)]),
        weight=torch.tensor([float(w) for _, weights, _ in users for w in weights]).double(),
        num_candidates=torch.tensor([num_candidates for _, _, num_candidates in users]),
    )


def by_loops(name, users, arguments):
    """The values of a metric by the reference of all doors."""
    rows = [
        Row.of(ranks, weights, num_candidates, num_candidates - len(ranks))
        for ranks, weights, num_candidates in users
    ]
    return [math.nan if x is None else x for x in measure(name, rows, **arguments)]


def check_half_ranks(users, metrics_):
    ranked = ranked_by(users)
    for metric in metrics_:
        arguments = dict(metric.arguments) | ({} if metric.k is None else {"k": metric.k})
        loop = by_loops(metric.name, users, arguments)
        value = metric(ranked).tolist()
        assert value == pytest.approx(loop, nan_ok=True), metric
        if metric.is_pooled:
            continue  # which the bounds of a user do not hold for
        low, high = metrics.definition(metric.name).range
        assert all(math.isnan(x) or low <= x <= high + 1e-12 for x in value), metric


@settings(max_examples=200)
@given(users=half_ranks(is_full=False), k=st.sampled_from(CUT_OFFS))
def test_metrics_of_half_ranks_equal_naive_loops_and_keep_their_bounds(users, k):
    check_half_ranks(users, metrics_of_ranks(k))


@settings(max_examples=150)
@given(users=half_ranks(is_full=True))
def test_metrics_of_all_half_ranks_equal_naive_loops_and_keep_their_bounds(users):
    check_half_ranks(users, metrics_of_all_ranks())


@given(users=half_ranks(is_full=False), max_k=st.integers(1, 12))
def test_curves_of_half_ranks_equal_the_metrics_at_each_k(users, max_k):
    ranked = ranked_by(users)
    precisions, recalls, top_k = metrics.precision_recall_curve(ranked, max_k)
    for k, precision, recall in zip(top_k.tolist(), precisions, recalls, strict=True):
        for name, value in (("precision", precision), ("recall", recall)):
            loop = by_loops(name, users, {"k": k})
            mean = sum(x for x in loop if not math.isnan(x)) / len(loop)
            assert float(value) == pytest.approx(mean), (name, k)


def test_values_are_within_bounds_and_undefined_just_without_truth():
    laws.check_bounds()


@pytest.mark.filterwarnings("ignore:.*that are ranks or items")
def test_renumbering_users_and_items_changes_nothing():
    laws.check_renumbering()


def test_the_order_and_repetition_of_edges_changes_nothing():
    laws.check_order_and_repetition()


@pytest.mark.filterwarnings("ignore:.*scores that fall")
def test_both_halves_of_the_users_make_the_whole():
    laws.check_halves()


def test_devices_agree(device):
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(50, (2, 400), generator=generator)
    seen = torch.randint(50, (2, 300), generator=generator)
    weight = torch.randint(1, 4, (400,), generator=generator)
    scores = torch.randint(9, (50, 50), generator=generator).float()
    task = RankingTask(truth, num_users=50, num_items=50, seen=seen, weight=weight)
    category = torch.rand(50, 6, generator=generator).round()
    items = Catalogue(50, seen=seen, item_category=category, item_embedding=category - 0.3)
    here = rank(scores, task, k=27, keep_items=True).with_catalogue(items)
    there = rank(scores.to(device), task.to(device), k=27, keep_items=True)
    assert there.rank.device.type == there.catalogue.popularity.device.type == device.type
    there = there.with_catalogue(items.to(device))
    for metric in metrics_of_ranks(20) + metrics_of_lists(10):
        for other in (there, here.to(device)):
            assert torch.allclose(metric(here), metric(other).cpu(), atol=1e-12, equal_nan=True)
