"""Metrics of the whole ranking: of a model that cannot tell items apart, and of single edges."""

import statistics
import warnings

import pytest
import torch

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    evaluate,
    merge,
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


def draw_ranks(seed):
    """Scores of a positive and its negatives, and the ranks that follow by counting."""
    generator = torch.Generator().manual_seed(seed)
    num, num_negatives = 1 + seed, 12
    positive = torch.randint(0, 6, (num,), generator=generator).float()
    negative = torch.randint(0, 6, (num, num_negatives), generator=generator).float()
    above = (negative > positive[:, None]).sum(1)
    tied = (negative == positive[:, None]).sum(1)
    return positive, negative, (1 + above + tied / 2).tolist()


#: What PyKEEN computes of all ranks together, each among as many candidates.
OF_ALL_RANKS = {
    "median_rank": lambda ranks, n: statistics.median(ranks),
    "mean_rank": lambda ranks, n: statistics.fmean(ranks),
    "adjusted_mean_rank": lambda ranks, n: statistics.fmean(ranks) / ((n + 1) / 2),
    "adjusted_mean_rank_index": lambda ranks, n: 1 - (statistics.fmean(ranks) - 1) / ((n - 1) / 2),
    "mrr": lambda ranks, n: statistics.fmean(1 / rank for rank in ranks),
    "roc_auc": lambda ranks, n: statistics.fmean((n - rank) / (n - 1) for rank in ranks),
    "pr_auc": lambda ranks, n: statistics.fmean(1 / rank for rank in ranks),
    "recall(average=micro)@3": lambda ranks, n: sum(rank <= 3 for rank in ranks) / len(ranks),
    "precision(average=micro)@3": lambda ranks, n: sum(x <= 3 for x in ranks) / (3 * len(ranks)),
}


@pytest.mark.parametrize("name", OF_ALL_RANKS)
@pytest.mark.parametrize("seed", range(5))
def test_where_rows_are_edges_a_metric_is_that_of_all_edges(name, seed):
    positive, negative, ranks = draw_ranks(seed)
    scores = torch.cat([positive[:, None], negative], dim=1)
    users = torch.arange(len(ranks))
    task = RankingTask(torch.stack([users, 0 * users]), num_users=len(ranks), num_items=13)
    wanted = pytest.approx(OF_ALL_RANKS[name](ranks, 13))
    ranked = RankedEdges.from_negatives(positive, negative, ties="mean")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*depending on the order of ties")
        assert EvaluationResult(ranked, name)[name] == wanted
        result = evaluate(scores, task, name, per="edge", ties="mean")
        num_parts = min(3, len(ranks))
        parts = [
            evaluate(scores, task.part(x, num_parts), name, per="edge", ties="mean")
            for x in range(num_parts)
        ]
    assert result[name] == merge(parts)[name] == wanted
    assert (name in result.per_user) == (name != "median_rank")


def test_only_the_median_is_no_mean_over_edges():
    pooled = [name for name in metrics.names() if metrics.definition(name).pools_edges]
    assert pooled == ["median_rank"]
