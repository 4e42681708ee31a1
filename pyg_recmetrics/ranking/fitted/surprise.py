"""Algorithms of Surprise: factors and biases, or predictions of one pair after the other."""

from typing import Any

from pyg_recmetrics.ranking.fitted.reading import Reading, Rows, check_fitted, name_of
from pyg_recmetrics.task import RankingTask

#: What adds an item bias to an inner product. The mean and the bias of a user move no item.
_OF_FACTORS = ("SVD", "NMF")


def read(model: Any, task: RankingTask) -> Reading:
    """Reads a fitted algorithm, whose users and items are found by their raw ids."""
    check_fitted(getattr(model, "trainset", None), model, "Surprise")
    train = model.trainset
    users = {train.to_raw_uid(row): row for row in train.all_users()}
    items = {train.to_raw_iid(row): row for row in train.all_items()}
    rows = Rows.of(task, users, items, "Surprise")
    words = f"{name_of(model)} of Surprise, not clipped to the scale of ratings"
    is_its_own = type(model).__module__.startswith("surprise.")
    if is_its_own and name_of(model) in _OF_FACTORS:
        user, item, bias = model.pu, model.qi, model.bi
        if not model.biased:
            bias = 0 * bias
        if rows.are_complete:
            return Reading(
                (user[rows.user], item[rows.item], bias[rows.item]), f"factors of {words}"
            )
        return Reading(rows.scores(lambda row: item @ user[row] + bias), f"factors of {words}")

    def scores_of(row: int) -> list[float]:
        raw = train.to_raw_uid(row)
        return [float(model.predict(raw, id_, clip=False).est) for id_ in items]

    return Reading(rows.scores(scores_of), f"predictions of {words}")
