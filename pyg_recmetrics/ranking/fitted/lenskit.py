"""Pipelines of LensKit, whose scorer is asked about one user after the other."""

import importlib
from typing import Any

from pyg_recmetrics.ranking.fitted.reading import Reading, by_user, name_of
from pyg_recmetrics.task import RankingTask


def read(value: Any, task: RankingTask) -> Reading:
    """Reads a trained pipeline, or a collection of lists of users, by original ids.

    Raises:
        TypeError: If `value` is neither.
    """
    if hasattr(value, "to_df"):  # a collection
        return Reading(value.to_df(), "lists of LensKit by their original ids")
    if not hasattr(value, "node"):
        raise TypeError(
            f"'recommender' needs to be a pipeline or an ItemListCollection of LensKit (got "
            f"{name_of(value)}); write lenskit.topn_pipeline(model) and train it"
        )
    users = task.user_ids or range(task.num_users)
    items = list(task.item_ids or range(task.num_items))
    score, make = (importlib.import_module("lenskit." + at) for at in ("operations", "data"))

    def scores_of(user: int) -> Any:
        return score.score(value, users[user], make.ItemList(item_ids=items)).scores()

    return Reading(by_user(scores_of), f"the scorer of the pipeline {value.name} of LensKit")
