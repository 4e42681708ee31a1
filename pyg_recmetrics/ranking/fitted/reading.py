"""What is read from a fitted model, and where the users and items of a task are in it."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.inputs import as_tensor
from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.task import RankingTask

#: What becomes of users and items that a model does not know.
_CONSEQUENCES = {
    "user": "They count as users for whom nothing was retrieved",
    "item": "They are never retrieved",
}


class Reading(NamedTuple):
    """What a fitted model ranks by.

    Attributes:
        recommender: Embeddings, a function of users, or a function `recommend(users, k)`.
        in_words: What that is, and what is not exact about it.
    """

    recommender: Any
    in_words: str


class Rows(NamedTuple):
    """Where a fitted model has the users and items of a task.

    Attributes:
        user: The row of every user, of shape `[num_users]`; `-1` if the model does not know one.
        item: The row of every item, of shape `[num_items]`.
    """

    user: Tensor
    item: Tensor

    @property
    def are_complete(self) -> bool:
        """Whether the model knows everybody and everything."""
        return not bool((self.user < 0).any() | (self.item < 0).any())

    @classmethod
    def of(
        cls, task: RankingTask, users: Mapping[Any, int], items: Mapping[Any, int], library: str
    ) -> "Rows":
        """Looks up the original ids of a task, or its positions if it has none.

        An id that is not found is looked up as text, since some libraries read all ids as text.

        Args:
            task (RankingTask): The task.
            users (mapping): The row of each user that the model knows, by id.
            items (mapping): The row of each item that the model knows, by id.
            library (str): The library, for warnings and errors.

        Raises:
            ValueError: If no user or no item is known.
        """
        return cls(
            _look_up(task.user_ids or range(task.num_users), users, "user", library),
            _look_up(task.item_ids or range(task.num_items), items, "item", library),
        )

    def scores(self, scores_of: Callable[[int], Any]) -> Callable[[Tensor], Tensor]:
        """Returns a function of the users of a task.

        What the model does not know has no score, and is never retrieved.

        Args:
            scores_of (callable): Takes the row of a user, and returns the scores of all items.
        """

        def of_users(users: Tensor) -> Tensor:
            return torch.stack([of_user(row) for row in self.user[users.cpu()].tolist()]).to(
                users.device
            )

        def of_user(row: int) -> Tensor:
            scores = torch.full(self.item.shape, -torch.inf, dtype=torch.double)
            if row >= 0:
                is_known = self.item >= 0
                given = as_tensor(scores_of(row), "recommender").double()
                scores[is_known] = given[self.item[is_known]]
            return scores

        return of_users


def by_user(scores_of: Callable[[int], Any]) -> Callable[[Tensor], Tensor]:
    """Returns a function of users from one of a single user. What has no number has no score.

    Args:
        scores_of (callable): Takes a user, and returns the scores of all items of the task.
    """

    def of_users(users: Tensor) -> Tensor:
        rows = [as_tensor(scores_of(user), "recommender") for user in users.tolist()]
        return torch.stack(rows).double().nan_to_num_(nan=-torch.inf).to(users.device)

    return of_users


def check_fitted(what_fit_sets: object, model: object, library: str) -> None:
    """Raises if a model was not fitted.

    Args:
        what_fit_sets (object): An attribute that is `None` before.
        model (object): The model.
        library (str): The library, for the error.

    Raises:
        ValueError: If the attribute is `None`.
    """
    if what_fit_sets is None:
        raise ValueError(
            f"'recommender' needs to be fitted (got a {name_of(model)} of {library} without a fit)"
        )


def name_of(model: object) -> str:
    """Returns the name of the class of a model."""
    return type(model).__name__


def _look_up(
    ids: Sequence[Hashable] | range, known: Mapping[Any, int], kind: str, library: str
) -> Tensor:
    rows = [known.get(id_, known.get(str(id_), -1)) for id_ in ids]
    missing = [id_ for id_, row in zip(ids, rows, strict=True) if row < 0]
    if len(missing) == len(rows):
        raise ValueError(
            f"'recommender' needs to know the {kind}s of the task by their original ids (got none "
            f"of {_shown(ids)} among those that {library} knows: {_shown(known)})"
        )
    if missing:
        warn(
            f"'recommender' does not know {len(missing)} of {len(rows)} {kind}s "
            f"({_shown(missing)}). {_CONSEQUENCES[kind]}"
        )
    return torch.tensor(rows, device="cpu")


def _shown(ids: Iterable[Hashable]) -> str:
    return list_some([repr(id_) for id_ in ids])
