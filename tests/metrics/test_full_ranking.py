"""Metrics of the whole ranking, of a model that cannot tell items apart."""

import pytest
import torch

from pyg_recmetrics import metrics, rank


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
