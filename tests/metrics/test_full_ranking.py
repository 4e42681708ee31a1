"""Metrics of the whole ranking: values worked out by hand, and the ranks they need."""

import math

import pytest
import torch

from pyg_recmetrics import RankedEdges, RankingTask, metrics, rank


def test_values_worked_out_by_hand():
    # Of five candidates, the relevant ones have the ranks 1 and 4; 5; 1 to 5, so that nothing else
    # is left; and 3 of the four that are left without what is seen. The last user has no truth.
    scores = torch.arange(5, 0, -1).float().repeat(5, 1)
    truth = [(0, 0), (0, 3), (1, 4), *((2, item) for item in range(5)), (3, 3)]
    seen = torch.tensor([[3], [0]])
    ranked = RankedEdges.from_scores(scores, torch.tensor(truth).t(), seen=seen)
    nan = math.nan
    expected = {
        "roc_auc": [4 / 6, 0, nan, 1 / 3, nan],
        "pr_auc": [(1 + 2 / 4) / 2, 1 / 5, 1, 1 / 3, nan],
        "mean_rank": [2.5, 5, 3, 3, nan],
        "median_rank": [2.5, 5, 3, 3, nan],
    }
    for name, values in expected.items():
        assert getattr(metrics, name)(ranked).tolist() == pytest.approx(values, nan_ok=True), name
    for k, values in {
        1: [1 / 2, 0, nan, 0, nan],
        2: [2 / 4, 0, nan, 0, nan],
        3: [4 / 6, 0, nan, 1 / 3, nan],
        9: [4 / 6, 0, nan, 1 / 3, nan],  # from the number of irrelevant items on, the whole area
    }.items():
        found = metrics.partial_auc(ranked, k).tolist()
        assert found == pytest.approx(values, nan_ok=True), k


@pytest.mark.parametrize(("score", "rank_of_it"), [(1.0, 3), (-1.0, 100)])
def test_the_median_does_not_move_with_a_single_bad_rank(score, rank_of_it):
    scores = torch.zeros(1, 100)
    scores[0, :3] = torch.tensor([3.0, 2.0, score])
    ranked = RankedEdges.from_scores(scores, torch.tensor([[0, 0, 0], [0, 1, 2]]))
    assert metrics.median_rank(ranked).tolist() == [2]
    assert metrics.mean_rank(ranked).tolist() == pytest.approx([(1 + 2 + rank_of_it) / 3])


def test_all_ranks_have_to_be_known():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=9)
    shallow = rank(torch.arange(9.0), task, k=2)
    lists = rank(torch.tensor([[3, 4]]), task, k=2)
    given = RankedEdges.from_topk(torch.tensor([[3, 1]]), torch.tensor([[0], [1]]))
    for ranked in (shallow, lists, given):
        for name in ("roc_auc", "pr_auc", "mean_rank"):
            with pytest.raises(ValueError, match="'full=True'"):
                getattr(metrics, name)(ranked)
    assert metrics.roc_auc(rank(torch.arange(9.0), task, full=True)).tolist() == [0.125]
    with pytest.raises(ValueError, match="'k' needs to be given"):
        metrics.mrr(shallow)
