"""Metrics of the whole ranking: pairs of equal scores, and models that cannot tell items apart."""

import math

import pytest
import torch
from hypothesis import given

from pyg_recmetrics import metrics, rank
from tests.support.cases.strategies import cases


def auc_with_half_credit(row, ranking, relevant):
    """The area under the ROC curve over all pairs, where ties count one half."""
    pairs = [
        (row[good] > row[bad]) + (row[good] == row[bad]) / 2
        for good in relevant
        for bad in ranking
        if bad not in relevant
    ]
    return sum(pairs) / len(pairs) if pairs else math.nan


@pytest.mark.usefixtures("expect_lost_truth", "expect_ties")
@pytest.mark.filterwarnings("ignore:.*scores that fall")
@given(case=cases())
def test_ties_that_count_one_half_equal_a_loop_over_all_pairs(case):
    users = zip(case.scores, case.rankings, case.truths, strict=True)
    expected = [auc_with_half_credit(*user) for user in users]
    ranked = rank(case.score_matrix, case.task(), full=True)
    value = metrics.roc_auc(ranked, ties="half").tolist()
    assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_a_constant_model_scores_chance_whatever_the_candidates():
    scores = torch.zeros(3, 9)
    scores[0, 5:] = scores[1, 3:] = -torch.inf
    truth = torch.tensor([[0, 0, 1, 2, 2, 2], [0, 3, 1, 0, 5, 8]])
    ranked = rank(scores, truth, full=True, ties="mean")
    for average in ("macro", "micro"):
        ratio = metrics.adjusted_mean_rank(ranked, average=average)
        index = metrics.adjusted_mean_rank_index(ranked, average=average)
        assert float(ratio.mean()) == pytest.approx(1, rel=1e-15)
        assert index.tolist() == [0, 0, 0]
