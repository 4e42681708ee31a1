"""General models of RecBole, which score all items for users."""

import importlib
from typing import Any

from torch import Tensor

from pyg_recmetrics.ranking.fitted.reading import Reading, name_of
from pyg_recmetrics.task import RankingTask


def read(model: Any, task: RankingTask) -> Reading:
    """Reads a trained model. User 0 and item 0 of RecBole are padding, and are left out.

    Raises:
        TypeError: If it needs more than users, such as a sequence of items.
        ValueError: If it has not as many users and items as the task.
    """
    if hasattr(model, "ITEM_SEQ") or not hasattr(model, "n_users"):
        raise TypeError(
            f"'recommender' needs to score users without a sequence or other features (got "
            f"{name_of(model)} of RecBole); pass its scores as a function, see the page of the "
            f"documentation on fitted models"
        )
    found = (model.n_users - 1, model.n_items - 1)
    if found != (task.num_users, task.num_items):
        raise ValueError(
            f"'recommender' needs to have {task.num_users} users and {task.num_items} items "
            f"besides padding (got {found[0]} and {found[1]})"
        )
    interaction = importlib.import_module("recbole.data.interaction").Interaction

    def scores(users: Tensor) -> Tensor:
        of_all: Tensor = model.full_sort_predict(interaction({model.USER_ID: users + 1}))
        return of_all.view(users.numel(), -1)[:, 1:]

    return Reading(scores, f"the scores of {name_of(model)} of RecBole, without padding")
