"""Fitted models of other libraries, one small adapter for each library.

An adapter reads what a model has learned, as embeddings, a function or lists, and says in words
what that is. None of them imports its library: a model is known by the module of its class.
"""

import importlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.nn.pool.knn import KNNIndex

from pyg_recmetrics.checks import as_tensor, check_shape
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.utils import all_items, list_some, warn

#: What a fitted model ranks by: embeddings, a function of users, or a function
#: `recommend(users, k)`; and, in words, what that is, and what is not exact about it.
Reading: TypeAlias = tuple[Any, str]


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


#: Indexes that compare every item.
_EXACT = ("IndexFlat", "IndexFlatIP", "IndexFlatL2", "GpuIndexFlatIP", "GpuIndexFlatL2")


def read_faiss(value: Any, task: RankingTask) -> Reading:
    """Reads `(user_embedding, index)`. Item `i` is the one that was added as `i`, or by its id.

    PyG's `MIPSKNNIndex` and its relatives are asked by the index of faiss that they hold.

    Raises:
        TypeError: If there are no user embeddings.
        ValueError: If there are not as many of them as users, or there are no items.
    """
    if not isinstance(value, tuple):
        raise TypeError(
            f"'recommender' needs to be a pair (user_embedding, index) for an index of faiss "
            f"(got {name_of(value)} alone)"
        )
    user, index = as_tensor(value[0], "recommender").cpu().float(), value[1]
    if isinstance(index, KNNIndex):
        check_fitted(index.index, index, "PyG")
        index = index.index
    check_shape(user, "recommender", (task.num_users, index.d), "user embeddings")

    # An index may hold ids of its own, which are those of the task then.
    has_ids = name_of(index).startswith("IndexIDMap") and task.item_ids is not None
    numbers = {id_: number for number, id_ in enumerate(task.item_ids or ())}
    if has_ids and index.ntotal > task.num_items:
        ids = importlib.import_module("faiss").vector_to_array(index.id_map).tolist()
        others = [id_ for id_ in ids if id_ not in numbers]
        warn_of_others(others, "Their places in lists hold no item")

    def recommend(users: Tensor, k: int) -> Tensor:
        _, items = index.search(user[users.cpu()].numpy(), min(k, index.ntotal))
        if has_ids:
            items = [[numbers.get(id_, -1) for id_ in row] for row in items.tolist()]
        return torch.as_tensor(items, device=users.device)

    how = "exact" if name_of(index) in _EXACT else "approximate"
    return recommend, f"lists of {name_of(index)} of faiss, whose search is {how}"


def read_implicit(model: Any, task: RankingTask) -> Reading:
    """Reads a fitted model, whose rows are the positions of the task."""
    if hasattr(model, "similarity"):
        check_fitted(model.similarity, model, "implicit")
        words = f"the similarities of {name_of(model)} of implicit, each seen item counted once"
        return (_of_similarities(model.similarity, task), words)
    if getattr(model, "approximate_recommend", False):
        words = f"lists of {name_of(model)} of implicit, whose search is approximate"
        return (_of_index(model), words)
    factors = getattr(model, "model", model)  # what an index was made of
    check_fitted(factors.user_factors, factors, "implicit")
    tables = (factors.user_factors, factors.item_factors)
    # Those on a GPU have a class of their own.
    user, item = (table.to_numpy() if hasattr(table, "to_numpy") else table for table in tables)
    return (user, item), f"the factors of {name_of(factors)} of implicit"


def _of_similarities(similarity: Any, task: RankingTask) -> Any:
    user, item = task.seen.cpu().numpy()
    ones = torch.ones(len(user), dtype=torch.double, device="cpu").numpy()
    seen = type(similarity)((ones, (user, item)), shape=(task.num_users, similarity.shape[0]))

    def scores(users: Tensor) -> Tensor:
        found = (seen[users.cpu().numpy()] @ similarity).tocoo()
        # It never recommends what is similar to nothing that was seen.
        result = torch.full(found.shape, -torch.inf, dtype=torch.double, device="cpu")
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


def read_lenskit(value: Any, task: RankingTask) -> Reading:
    """Reads a trained pipeline, or a collection of lists of users, by original ids.

    Raises:
        TypeError: If `value` is neither.
    """
    if hasattr(value, "to_df"):  # a collection
        return value.to_df(), "lists of LensKit by their original ids"
    if not hasattr(value, "node"):
        raise TypeError(
            f"'recommender' needs to be a pipeline or an ItemListCollection of LensKit (got "
            f"{name_of(value)}); write lenskit.topn_pipeline(model) and train it"
        )
    users = task.user_ids or range(task.num_users)
    items = list(task.item_ids or range(task.num_items))
    score, make = (importlib.import_module("lenskit." + at) for at in ("operations", "data"))

    def scores_of(user: int) -> Tensor:
        found = score.score(value, users[user], make.ItemList(item_ids=items)).scores()
        return as_tensor(found, "recommender").double()

    def scores(users: Tensor) -> Tensor:
        rows = torch.stack([scores_of(user) for user in users.tolist()])
        return rows.nan_to_num_(nan=-torch.inf).to(users.device)  # what has no number, has no score

    return scores, f"the scorer of the pipeline {value.name} of LensKit"


def read_recbole(model: Any, task: RankingTask) -> Reading:
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

    return scores, f"the scores of {name_of(model)} of RecBole, without padding"


#: The adapter of each library, by the name of its package.
ADAPTERS: dict[str, Callable[[Any, RankingTask], Reading]] = {
    "faiss": read_faiss,
    "implicit": read_implicit,
    "lenskit": read_lenskit,
    "recbole": read_recbole,
}


def warn_of_others(others: Sequence[Hashable], consequence: str) -> None:
    """Warns of items that a recommender knows and its task does not, if there are any."""
    if others:
        shown = list_some([repr(id_) for id_ in others])
        warn(
            f"Items of 'recommender' are no candidates, as the task does not have them: "
            f"{len(others):,} ({shown}). {consequence}. The candidates are the whole catalogue "
            f"with {all_items()}"
        )


def is_fitted(value: object) -> bool:
    """Returns whether `value` is a model of a library that has an adapter."""
    return _library_of(value) is not None


def read_fitted(value: object, task: RankingTask) -> Reading:
    """Reads a fitted model.

    Args:
        value (object): The model, or a pair of user embeddings and an index of items.
        task (RankingTask): The task.

    Raises:
        TypeError: If models of this class cannot be read.
        ValueError: If the model does not fit the task.
    """
    return ADAPTERS[str(_library_of(value))](value, task)


def _library_of(value: object) -> str | None:
    if isinstance(value, tuple):
        is_pair = len(value) == 2 and _library_of(value[1]) == "faiss"
        return "faiss" if is_pair else None
    if isinstance(value, KNNIndex):  # which holds an index of faiss
        return "faiss"
    packages = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((package for package in packages if package in ADAPTERS), None)
