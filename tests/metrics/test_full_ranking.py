"""Metrics of the whole ranking: of a model that cannot tell items apart, and of odd users."""

import pytest
import torch

from pyg_recmetrics import (
    RankingTask,
    metrics,
    rank,
)


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


@pytest.mark.parametrize(("average", "weights"), [("candidates", (3, 4)), ("relevant", (1, 2))])
def test_users_whose_items_are_all_relevant_or_none_have_no_weight(average, weights):
    scores = torch.tensor([[3.0, 2, 1, 0], [1, 2, 3, 4], [1, 3, 2, 4], [1, 2, 3, 4]])
    truth = torch.tensor([[0, 1, 1, 1, 1, 2, 2], [1, 0, 1, 2, 3, 0, 1]])
    task = RankingTask(truth, num_users=4, num_items=4, seen=[[0], [3]])
    found = metrics.roc_auc(rank(scores, task, full=True), average=average)
    wanted = (weights[0] / 2 + weights[1] / 4) / sum(weights)
    assert float(found.nanmean()) == pytest.approx(wanted)


def test_only_the_median_is_no_mean_over_edges():
    pooled = [name for name in metrics.names() if metrics.definition(name).pools_edges]
    assert pooled == ["median_rank"]
