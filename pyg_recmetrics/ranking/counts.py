"""How many users and items a recommender has, for edges that do not say it."""

from collections.abc import Mapping

from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn.models import LightGCN

from pyg_recmetrics.inputs import as_tensor, is_edges_like
from pyg_recmetrics.ranking.fitted import is_fitted
from pyg_recmetrics.ranking.found_model import find_model
from pyg_recmetrics.task import RankingTask


def complete_counts(
    recommender: object, data: object, num_users: int | None, num_items: int | None
) -> tuple[int | None, int | None]:
    """Returns the number of users and items, where ground-truth edges need them.

    What is given counts. What is not comes from the nodes of a LightGCN, from embeddings, or from
    scores. It stays `None` if these do not know it, or if `data` knows it by itself.
    """
    if isinstance(data, RankingTask | Data | HeteroData) or not is_edges_like(data):
        return num_users, num_items
    if None not in (num_users, num_items):
        return num_users, num_items
    known = _counts_of(recommender, num_users)
    return known[0] if num_users is None else num_users, known[
        1
    ] if num_items is None else num_items


def _counts_of(recommender: object, num_users: int | None) -> tuple[int | None, int | None]:
    if is_fitted(recommender):
        return None, None  # it may have its own ids, which only a task can map
    if model := find_model(recommender):
        asked = model.bound_object
        if not isinstance(asked, LightGCN) or num_users is None:
            return None, None
        return None, asked.num_nodes - num_users
    if isinstance(recommender, tuple | list) and len(recommender) in (2, 3):
        if any(isinstance(part, Mapping) or hasattr(part, "columns") for part in recommender):
            return None, None  # what is labelled by ids needs a task that knows them
        user, item, *_ = (as_tensor(part, "recommender") for part in recommender)
        if user.is_floating_point() and user.dim() == item.dim() == 2:
            return user.size(0), item.size(0)
        return None, None
    if not hasattr(recommender, "__array__") or hasattr(recommender, "columns"):
        return None, None
    return _counts_of_tensor(as_tensor(recommender, "recommender"))


def _counts_of_tensor(given: Tensor) -> tuple[int | None, int | None]:
    if given.dim() == 2:
        return given.size(0), given.size(1) if given.is_floating_point() else None
    return None, given.numel() if given.is_floating_point() else None
