"""Models of Cornac, which score all items for one user after the other."""

from typing import Any

from pyg_recmetrics.ranking.fitted.reading import Reading, Rows, check_fitted, name_of
from pyg_recmetrics.task import RankingTask


def read(model: Any, task: RankingTask) -> Reading:
    """Reads a fitted model, whose users and items are found by their ids."""
    check_fitted(model.uid_map, model, "Cornac")
    # The ids of its test data are there, too, at higher rows.
    users = {id_: row for id_, row in model.uid_map.items() if model.knows_user(row)}
    items = {id_: row for id_, row in model.iid_map.items() if model.knows_item(row)}
    rows = Rows.of(task, users, items, "Cornac")
    return Reading(rows.scores(model.score), f"the scores of {name_of(model)} of Cornac")
