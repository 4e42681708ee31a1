"""Models of LightFM: embeddings and item biases."""

from typing import Any

from pyg_recmetrics.ranking.fitted.reading import Reading
from pyg_recmetrics.task import RankingTask


def read(model: Any, task: RankingTask) -> Reading:
    """Reads a model without features, whose rows are the positions of the task.

    Raises:
        ValueError: If it has other rows, such as those of features.
    """
    _, user = model.get_user_representations()
    item_bias, item = model.get_item_representations()
    if (len(user), len(item)) != (task.num_users, task.num_items):
        raise ValueError(
            f"'recommender' needs to have embeddings of {task.num_users} users and "
            f"{task.num_items} items (got {len(user)} and {len(item)} rows); for a model with "
            f"features, write\n"
            f"  _, user = model.get_user_representations(user_features)\n"
            f"  item_bias, item = model.get_item_representations(item_features)\n"
            f"  evaluate((user, item, item_bias), data)"
        )
    return Reading((user, item, item_bias), "the embeddings and item biases of LightFM")
