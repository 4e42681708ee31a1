"""Indexes of faiss, which list the nearest items of user embeddings."""

from typing import Any

import torch
from torch import Tensor

from pyg_recmetrics.inputs import as_tensor
from pyg_recmetrics.ranking.fitted.reading import Reading, name_of
from pyg_recmetrics.task import RankingTask

#: Indexes that compare every item.
_EXACT = ("IndexFlat", "IndexFlatIP", "IndexFlatL2", "GpuIndexFlatIP", "GpuIndexFlatL2")


def read(value: Any, task: RankingTask) -> Reading:
    """Reads `(user_embedding, index)`. Item `i` is the one that was added as `i`, or by its id.

    Raises:
        TypeError: If there are no user embeddings.
        ValueError: If there are not as many of them as users.
    """
    if not isinstance(value, tuple):
        raise TypeError(
            f"'recommender' needs to be a pair (user_embedding, index) for an index of faiss "
            f"(got {name_of(value)} alone)"
        )
    user, index = as_tensor(value[0], "recommender").cpu().float(), value[1]
    if tuple(user.shape) != (task.num_users, index.d):
        raise ValueError(
            f"'recommender' needs to hold user embeddings of shape {[task.num_users, index.d]} "
            f"(got {list(user.shape)})"
        )

    # An index may hold ids of its own, which are those of the task then.
    has_ids = name_of(index).startswith("IndexIDMap") and task.item_ids is not None
    numbers = {id_: number for number, id_ in enumerate(task.item_ids or ())}

    def recommend(users: Tensor, k: int) -> Tensor:
        _, items = index.search(user[users.cpu()].numpy(), min(k, index.ntotal))
        if has_ids:
            items = [[numbers.get(id_, -1) for id_ in row] for row in items.tolist()]
        return torch.as_tensor(items, device=users.device)

    how = "exact" if name_of(index) in _EXACT else "approximate"
    return Reading(recommend, f"lists of {name_of(index)} of faiss, whose search is {how}")
