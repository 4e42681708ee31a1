"""Finds the users whose candidates all have the same score."""

import torch
from torch import Tensor
from torch_geometric.typing import Adj

from pyg_recmetrics import distributed
from pyg_recmetrics.ranking.adapt import RecommenderLike, as_recommender, evaluation_mode
from pyg_recmetrics.ranking.algorithms import ListItems
from pyg_recmetrics.ranking.ranking import rows_per_chunk
from pyg_recmetrics.ranking.recommender import ScoreRecommender
from pyg_recmetrics.ranking.schedule import Schedule
from pyg_recmetrics.task import RankingTask


def has_constant_scores(
    recommender: RecommenderLike,
    task: RankingTask,
    *,
    edge_index: Adj | None = None,
    edge_weight: Tensor | None = None,
    batch_size: int | None = None,
) -> Tensor:
    """Returns which users have the same score for all their candidates, of shape `[num_users]`.

    The arguments are those of :func:`~pyg_recmetrics.rank`. Lists have no scores, and so are never
    constant.
    """
    is_constant = torch.zeros(task.num_users, dtype=torch.uint8, device=task.device)
    with distributed.fail_together(task.device), evaluation_mode(recommender):
        ranker = as_recommender(recommender, task, edge_index, edge_weight)
        if not isinstance(ranker, ScoreRecommender):
            return is_constant.bool()
        # This takes as much memory as lists of one item.
        num_rows = rows_per_chunk(ListItems(ranker, task.num_items, depth=1), batch_size)
        for chunk in Schedule(task, distributed.share(task.users), 1, num_rows).chunks():
            is_constant[chunk.users] = ranker.is_constant(chunk).byte()
        ranker.check()
    distributed.check_same(task.users, task.seen, task.num_candidates)
    distributed.take_largest(is_constant)
    return is_constant.bool()
