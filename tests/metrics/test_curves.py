"""Metrics at every k at once, and what is read off them."""

import math

import pytest
import torch
from hypothesis import given, strategies as st

import pyg_recmetrics.metrics.curves
from pyg_recmetrics import RankedEdges, RankingTask, metrics, rank
from tests.support.cases.strategies import cases, scored_pairs

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


@given(case=cases(), max_k=st.integers(1, 12), ties=st.sampled_from(["index", "mean"]))
def test_a_curve_is_the_metric_at_every_k(case, max_k, ties):
    ranked = rank(case.score_matrix, case.task(), k=max_k, ties=ties)
    found = {}
    for name in ("recall", "precision", "ndcg(gain=exponential)", "map(normalizer=hits)"):
        curve = found[name] = metrics.curve(ranked, name, max_k)
        for k, values in enumerate(curve.unbind(dim=1), start=1):
            at_k = metrics.parse(f"{name}@{k}")(ranked)
            torch.testing.assert_close(values, at_k, rtol=0, atol=0, equal_nan=True)
    of_users = metrics.precision_recall_curve(ranked, max_k, empty_target_action="skip")
    for name, values in zip(("precision", "recall"), of_users, strict=False):
        torch.testing.assert_close(values, found[name].nanmean(dim=0))


@given(case=cases(max_users=15), max_k=st.none() | st.integers(1, 12), adaptive_k=st.booleans())
def test_the_size_of_blocks_of_cut_offs_changes_nothing(case, max_k, adaptive_k):
    ranked = RankedEdges.from_pairs(*scored_pairs(case))
    whole = metrics.precision_recall_curve(ranked, max_k, adaptive_k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyg_recmetrics.metrics.curves, "_NUM_VALUES_AT_ONCE", 1)
        in_blocks = metrics.precision_recall_curve(ranked, max_k, adaptive_k)
    assert all(map(torch.equal, whole, in_blocks))


def test_a_precision_is_reached_in_spite_of_rounding():
    truth = torch.cartesian_prod(torch.arange(3), torch.arange(7)).t()
    ranked = RankedEdges.from_topk(torch.arange(10).repeat(3, 1), truth)
    assert (0.7 + 0.7 + 0.7) / 3 < 0.7
    found = metrics.recall_at_fixed_precision(ranked, 0.7, max_k=10)
    assert [float(value) for value in found] == [1, 10]


#: Precisions 1, 1/2, 2/3, 1/2 and recalls 1/2, 1/2, 1, 1.
LISTS = RankedEdges.from_topk(torch.tensor([[0, 1, 2, 3]]), torch.tensor([[0, 0], [0, 2]]))


def test_a_recall_that_is_not_defined_is_not_the_largest():
    def mean_below_one(values, dim):
        mean = values.mean(dim=dim)
        return mean.masked_fill(mean == 1, math.nan)

    found = metrics.recall_at_fixed_precision(LISTS, 0.0, max_k=4, aggregation=mean_below_one)
    assert [float(value) for value in found] == [0.5, 2]


@pytest.mark.filterwarnings("ignore:.*(gives too few items|holds every item once)")
@pytest.mark.parametrize("action", ["neg", "pos", "skip"])
def test_only_users_who_are_evaluated_count(action):
    truth = torch.tensor([[0, 1, 1, 2], [0, 1, 2, 0]])
    lists = torch.tensor([[0, 1, 2], [0, 1, 2], [2, 1, 0], [0, 1, 2]])

    def recalls(users, action):
        task = RankingTask(truth, num_users=4, num_items=3, users=torch.tensor(users))
        ranked = rank(lists, task, k=3)
        return metrics.precision_recall_curve(ranked, 3, empty_target_action=action)[1].tolist()

    by_hand = {"neg": [0, 0.25, 0.5], "pos": [0.5, 0.75, 1], "skip": [0, 0.5, 1]}
    assert recalls([1, 3], action) == by_hand[action]
    assert recalls([0, 1], "error") == recalls([0, 1], action)
    with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
        recalls([1, 3], "error")


def test_nobody_to_count_gives_zeros():
    no_truth = RankedEdges.from_topk(torch.tensor([[1]]), torch.empty(2, 0, dtype=torch.long))
    for ranked in (no_truth, NOBODY):
        found = metrics.precision_recall_curve(ranked, 2, empty_target_action="skip")
        assert [values.tolist() for values in found] == [[0, 0], [0, 0], [1, 2]]


NOBODY = RankedEdges.from_pairs(torch.empty(0), *torch.empty(2, 0, dtype=torch.long))
SCORES = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
FULL = rank(SCORES, torch.tensor([[0, 0], [0, 2]]), full=True)
DEEP = rank(SCORES, torch.tensor([[0], [1]]), k=2)
precision_recall_curve = metrics.precision_recall_curve

#: What is called, and what is wrong about it.
ERRORS = [
    (lambda: precision_recall_curve(LISTS), ValueError, "number of candidates"),
    (lambda: precision_recall_curve(NOBODY), ValueError, "'max_k' needs to be given if there are"),
    (lambda: precision_recall_curve(DEEP, 3), ValueError, r"'max_k' .* at most 2, .*\(got 3\)"),
    (lambda: metrics.recall_at_fixed_precision(FULL, 1.1), ValueError, "'min_precision' needs"),
    (lambda: metrics.recall_at_fixed_precision(FULL, True), ValueError, "'min_precision' needs"),
    (lambda: metrics.curve(FULL, "recall", 0), ValueError, "'max_k' needs to be a positive"),
    (lambda: metrics.curve(FULL, "r_precision", 3), ValueError, "'r_precision' has no cut-off"),
    *(
        (lambda function=function: function(SCORES, SCORES), TypeError, r"RankedEdges\.from_pairs")
        for function in (precision_recall_curve, metrics.recall_at_fixed_precision)
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_what_is_wrong_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
