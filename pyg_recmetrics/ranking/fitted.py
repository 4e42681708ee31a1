"""Fitted models of other libraries, one small adapter for each library.

An adapter reads what a model has learned, as embeddings, a function or lists, and says in words
what that is. None of them imports its library: a model is known by the module of its class.
"""

import importlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.nn.pool.knn import KNNIndex

from pyg_recmetrics.checks import check_shape
from pyg_recmetrics.inputs import as_tensor
from pyg_recmetrics.messages import all_items, list_some, warn
from pyg_recmetrics.task import RankingTask

#: What becomes of users and items that a model does not know.
_CONSEQUENCES = {
    "user": "They count as users for whom nothing was retrieved",
    "item": "They are never retrieved",
}


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


def look_up(task: RankingTask, kind: str, known: Mapping[Any, int], library: str) -> Tensor:
    """Returns the row that a fitted model has for each user or item of a task; `-1` for none.

    An id that is not found is looked up as text, since some libraries read all ids as text.

    Args:
        task (RankingTask): The task, whose positions are looked up if it has no original ids.
        kind (str): `"user"` or `"item"`.
        known (mapping): The row of each user or item that the model knows, by id.
        library (str): The library, for warnings and errors.

    Raises:
        ValueError: If none is known.
    """
    of_users = task.user_ids or range(task.num_users)
    ids = of_users if kind == "user" else task.item_ids or range(task.num_items)
    rows = [known.get(id_, known.get(str(id_), -1)) for id_ in ids]
    missing = [id_ for id_, row in zip(ids, rows, strict=True) if row < 0]
    if len(missing) == len(rows):
        raise ValueError(
            f"'recommender' needs to know the {kind}s of the task by their original ids (got none "
            f"of {_shown(ids)} among those that {library} knows: {_shown(known)})"
        )
    if kind == "item" and len(known) > len(rows) - len(missing):
        found = set(rows)
        warn_of_others([id_ for id_, row in known.items() if row not in found], _CONSEQUENCES[kind])
    if missing:
        warn(
            f"'recommender' does not know {len(missing)} of {len(rows)} {kind}s "
            f"({_shown(missing)}). {_CONSEQUENCES[kind]}"
        )
    return torch.tensor(rows, device="cpu")


def _shown(ids: Iterable[Hashable]) -> str:
    return list_some([repr(id_) for id_ in ids])


def scores_by_row(
    user: Tensor, item: Tensor, scores_of: Callable[[int], Any]
) -> Callable[[Tensor], Tensor]:
    """Returns a function of the users of a task.

    What the model does not know has no score, and is never retrieved.

    Args:
        user (torch.Tensor): The row of every user of the task, of shape `[num_users]`.
        item (torch.Tensor): The row of every item, of shape `[num_items]`.
        scores_of (callable): Takes the row of a user, and returns the scores of all items.
    """
    is_known = item >= 0

    def scores(users: Tensor) -> Tensor:
        shape = (users.numel(), item.numel())
        found = torch.full(shape, -torch.inf, dtype=torch.double, device="cpu")
        for of_user, row in zip(found, user[users.cpu()].tolist(), strict=True):
            if row >= 0:
                given = as_tensor(scores_of(row), "recommender").double()
                of_user[is_known] = given[item[is_known]]
        return found.to(users.device)

    return scores


def read_cornac(model: Any, task: RankingTask) -> Reading:
    """Reads a fitted model, whose users and items are found by their ids."""
    check_fitted(model.uid_map, model, "Cornac")
    # The ids of its test data are there, too, at higher rows.
    users = {id_: row for id_, row in model.uid_map.items() if model.knows_user(row)}
    items = {id_: row for id_, row in model.iid_map.items() if model.knows_item(row)}
    rows = look_up(task, "user", users, "Cornac"), look_up(task, "item", items, "Cornac")
    return scores_by_row(*rows, model.score), f"the scores of {name_of(model)} of Cornac"


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


def read_lightfm(model: Any, task: RankingTask) -> Reading:
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
    return (user, item, item_bias), "the embeddings and item biases of LightFM"


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


#: What adds an item bias to an inner product. The mean and the bias of a user move no item.
_OF_FACTORS = ("SVD", "NMF")


def read_surprise(model: Any, task: RankingTask) -> Reading:
    """Reads a fitted algorithm, whose users and items are found by their raw ids."""
    check_fitted(getattr(model, "trainset", None), model, "Surprise")
    train = model.trainset
    users = {train.to_raw_uid(row): row for row in train.all_users()}
    items = {train.to_raw_iid(row): row for row in train.all_items()}
    user_row = look_up(task, "user", users, "Surprise")
    item_row = look_up(task, "item", items, "Surprise")
    words = f"{name_of(model)} of Surprise, not clipped to the scale of ratings"
    is_its_own = type(model).__module__.startswith("surprise.")
    if is_its_own and name_of(model) in _OF_FACTORS:
        user, item, bias = model.pu, model.qi, model.bi
        if not model.biased:
            bias = 0 * bias
        words = f"factors of {words}"
        if bool((user_row >= 0).all() & (item_row >= 0).all()):  # it knows all
            return (user[user_row], item[item_row], bias[item_row]), words
        return scores_by_row(user_row, item_row, lambda row: item @ user[row] + bias), words

    def scores_of(row: int) -> list[float]:
        raw = train.to_raw_uid(row)
        return [float(model.predict(raw, id_, clip=False).est) for id_ in items]

    return scores_by_row(user_row, item_row, scores_of), f"predictions of {words}"


#: The adapter of each library, by the name of its package.
ADAPTERS: dict[str, Callable[[Any, RankingTask], Reading]] = {
    "cornac": read_cornac,
    "faiss": read_faiss,
    "implicit": read_implicit,
    "lenskit": read_lenskit,
    "lightfm": read_lightfm,
    "recbole": read_recbole,
    "surprise": read_surprise,
}


def warn_of_others(others: Sequence[Hashable], consequence: str) -> None:
    """Warns of items that a recommender knows and its task does not, if there are any."""
    if others:
        warn(
            f"Items of 'recommender' are no candidates, as the task does not have them: "
            f"{len(others):,} ({_shown(others)}). {consequence}. The candidates are "
            f"the whole catalogue with {all_items()}"
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
