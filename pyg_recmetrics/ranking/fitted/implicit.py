"""Models of `implicit`: factors, item-item similarities, and indexes of factors."""

from typing import Any

import torch
from torch import Tensor

from pyg_recmetrics.ranking.fitted.reading import Reading, check_fitted, name_of
from pyg_recmetrics.task import RankingTask


def read(model: Any, task: RankingTask) -> Reading:
    """Reads a fitted model, whose rows are the positions of the task."""
    if hasattr(model, "similarity"):
        check_fitted(model.similarity, model, "implicit")
        words = f"the similarities of {name_of(model)} of implicit, each seen item counted once"
        return Reading(_of_similarities(model.similarity, task), words)
    if getattr(model, "approximate_recommend", False):
        words = f"lists of {name_of(model)} of implicit, whose search is approximate"
        return Reading(_of_index(model), words)
    factors = getattr(model, "model", model)  # what an index was made of
    check_fitted(factors.user_factors, factors, "implicit")
    tables = (factors.user_factors, factors.item_factors)
    # Those on a GPU have a class of their own.
    user, item = (table.to_numpy() if hasattr(table, "to_numpy") else table for table in tables)
    return Reading((user, item), f"the factors of {name_of(factors)} of implicit")


def _of_similarities(similarity: Any, task: RankingTask) -> Any:
    user, item = task.seen.cpu().numpy()
    ones = torch.ones(len(user), dtype=torch.double).numpy()
    seen = type(similarity)((ones, (user, item)), shape=(task.num_users, similarity.shape[0]))

    def scores(users: Tensor) -> Tensor:
        found = (seen[users.cpu().numpy()] @ similarity).tocoo()
        # It never recommends what is similar to nothing that was seen.
        result = torch.full(found.shape, -torch.inf, dtype=torch.double)
        row, column = (torch.from_numpy(index).long() for index in (found.row, found.col))
        result[row, column] = torch.from_numpy(found.data).double()
        return result.to(users.device)

    return scores


def _of_index(model: Any) -> Any:
    def recommend(users: Tensor, k: int) -> Tensor:
        rows = users.cpu().numpy()
        items, _ = model.recommend(rows, None, N=k, filter_already_liked_items=False)
        return torch.as_tensor(items, device=users.device).long()

    return recommend
