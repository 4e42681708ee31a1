"""Models: how `recommend` is asked, eval mode, and what other libraries have fitted."""

import functools
import importlib
import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from types import ModuleType
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.optim.swa_utils import AveragedModel
from torch_geometric.nn.models import LightGCN
from torch_geometric.nn.pool.knn import KNNIndex
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from pyg_recmetrics.checks import as_tensor, check_shape, misfit, to_coordinates
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.utils import all_items, list_some, warn

#: Attributes that hold what an object uses: an object may have been given the method of another
#: one, and a scorer its function.
_USED = ("recommend", "function", "__wrapped__")

#: Through so many functions and objects, one of which uses the next, modules are looked for.
_MOST_USED = 2


#: How many calls, in any threads, evaluate each module now, and the mode that the first found.
_evaluated: dict[torch.nn.Module, tuple[int, bool]] = {}
_lock = Lock()


@contextmanager
def evaluation_mode(recommender: object) -> Iterator[None]:
    """Puts a model in eval mode without gradients, and leaves it as it was found.

    If several threads evaluate it, the last of them does.

    Args:
        recommender (object): What is ranked: a module, an object that has modules as its
            attributes, a method of either, or a function that uses them.
    """
    roots = list(_modules_behind(recommender))
    modules = {module for root in roots for module in root.modules()}
    with _lock:
        for module in modules:
            num_calls, was_training = _evaluated.get(module, (0, module.training))
            _evaluated[module] = num_calls + 1, was_training
    try:
        for root in roots:
            root.eval()
        with torch.no_grad():
            yield
    finally:
        with _lock:
            for module in modules:
                num_calls, was_training = _evaluated.pop(module)
                if num_calls > 1:
                    _evaluated[module] = num_calls - 1, was_training
                else:
                    module.training = was_training


def _modules_behind(recommender: object) -> Iterator[torch.nn.Module]:
    """Yields the modules that something is, has as attributes, or uses if it is a function.

    A function may use another function, and an object may have another one. What those of a library
    use is not looked for, so that there is an end after some of them.
    """
    if isinstance(recommender, torch.nn.Module) and not any(map(vars(recommender).get, _USED)):
        yield recommender
        return
    waiting, known = [(recommender, _MOST_USED)], dict[int, object]()
    while waiting:
        value, num_left = waiting.pop(0)
        if id(value) in known or isinstance(value, Tensor | tuple | type | ModuleType):
            continue
        known[id(value)] = value
        of_value = dict(getattr(value, "__dict__", {}))
        used = [of_value.pop(name, None) for name in _USED]
        if isinstance(value, torch.nn.Module):
            yield value
        elif isinstance(value, functools.partial):
            used += [value.func, *value.args, *value.keywords.values()]
        elif inspect.isroutine(value):
            used += [getattr(value, "__self__", None), *(_variables_of(value) if num_left else ())]
            num_left -= 1
        else:
            used += [x for x in of_value.values() if num_left > 0 or isinstance(x, torch.nn.Module)]
            num_left -= 1
        waiting += [(each, num_left) for each in used]


def _variables_of(function: Any) -> list[Any]:
    """Returns the values from outside of a function that its code names."""
    try:
        variables = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # those of C have no code, and others may not be set yet
        return []
    return [*variables.nonlocals.values(), *variables.globals.values()]


#: The `recommend` of a model: a method of a module or of another object, or a function.
Recommend: TypeAlias = Callable[..., Tensor]

#: The forms in which a `recommend` is asked, by name: as PyG does, with the weights of edges if it
#: needs them; and for users.
_FORMS = (
    ("edge_index", "src_index", "dst_index", "k"),
    ("edge_index", "edge_weight", "src_index", "dst_index", "k"),
    ("users", "k"),
)


def find_form(recommend: Recommend) -> tuple[str, ...] | None:
    """Returns the first form that a `recommend` can be asked in, or `None`.

    Of compiled functions, which may have no signature, this is the form of PyG.
    """
    return next((x for x in _FORMS if misfit(recommend, **dict.fromkeys(x)) is None), None)


class HasRecommend(Protocol):
    """An object that recommends as PyG's :class:`~torch_geometric.nn.models.LightGCN` does."""

    @property
    def recommend(self) -> Recommend:
        """Returns the best items of users, in the numbering of a homogeneous graph."""


@dataclass(frozen=True, eq=False)
class FoundModel:
    """A model with all that is known about its `recommend`, which is looked at only once.

    Attributes:
        recommend (callable): The `recommend`.
        form (tuple): The names by which it is asked.
        bound_object (object): The object whose method it is, or else the function itself.
    """

    recommend: Recommend
    form: tuple[str, ...]
    bound_object: object

    @property
    def name(self) -> str:
        """The name of the class, or of the function."""
        return getattr(self.bound_object, "__name__", name_of(self.bound_object))

    @property
    def takes_edges(self) -> bool:
        """Whether it takes message-passing edges."""
        return "edge_index" in self.form

    def with_edges(self, edge_index: Adj | None, edge_weight: Tensor | None) -> Recommend:
        """Returns a `recommend` with its edges, to be asked by the other names of PyG.

        Raises:
            ValueError: If edges have weights, and it does not take them.
        """
        if not self.takes_edges:
            return lambda src_index, dst_index, k: self.recommend(users=src_index, k=k)
        if edge_weight is None and "edge_weight" not in self.form:
            return functools.partial(self.recommend, edge_index=edge_index)
        if misfit(self.recommend, **dict.fromkeys(_FORMS[1])):
            raise ValueError(
                f"'recommender.recommend()' needs to take 'edge_weight', as the edges have "
                f"weights (got recommend({', '.join(self.form)}))"
            )
        return functools.partial(self.recommend, edge_index=edge_index, edge_weight=edge_weight)


def is_model(value: object) -> bool:
    """Returns whether `value` has a `recommend`, or is a function of this name.

    The function has to take users and `k`.
    """
    return _find_recommend(value) is not None


def find_model(value: object) -> FoundModel:
    """Returns all that is known about a model.

    A model is an object with a method `recommend`, whatever its class; a wrapper that PyTorch puts
    around one; or a function of this name that takes users and `k`.

    Raises:
        TypeError: If `recommend` has none of the forms in which it can be asked.
    """
    recommend: Any = _find_recommend(value)
    form = find_form(recommend)
    if form is None:
        raise TypeError(
            f"'recommender.recommend()' needs to have one of these forms (got "
            f"recommend{inspect.signature(recommend)}):"
            f"\n  - recommend(edge_index, src_index, dst_index, k)"
            f"\n  - recommend(users, k)"
            f"\nFor any other, pass a function of users that returns the scores of all items, as "
            f"in evaluate(lambda users: model.scores(users), data), or of lists, as in evaluate("
            f"SimpleNamespace(recommend=lambda users, k: lists), data)"
        )
    original = inspect.unwrap(recommend) if inspect.isroutine(recommend) else recommend
    return FoundModel(recommend, form, getattr(original, "__self__", original))


def find_lightgcn(value: object) -> FoundModel | None:
    """Returns what is known about a LightGCN, unless a class or an instance replaced its method."""
    recommend: Any = _find_recommend(value)
    if getattr(recommend, "__func__", None) is not LightGCN.recommend:
        return None
    return FoundModel(recommend, _FORMS[0], recommend.__self__)


def unwrapped(value: Any) -> Any:
    """Returns the module that others are wrapped around, or the outermost that has `recommend`."""
    while isinstance(value, torch.nn.Module) and not hasattr(value, "recommend"):
        is_wrapper = isinstance(value, DataParallel | DistributedDataParallel | AveragedModel)
        # `torch.compile` keeps the original under this name.
        inner = value.module if is_wrapper else getattr(value, "_orig_mod", None)
        if inner is None:
            break
        value = inner
    return value


def _find_recommend(value: object) -> Recommend | None:
    if isinstance(value, Tensor | tuple | list | type):
        return None
    recommend: Recommend | None = getattr(unwrapped(value), "recommend", None)
    if callable(recommend):
        return recommend
    is_named = getattr(value, "__name__", "") == "recommend"
    return value if callable(value) and is_named and find_form(value) is not None else None


def find_doubt(edge_index: Adj, num_users: int) -> str | None:
    """Returns what is odd about message-passing edges, and how to mend it; `None` if nothing is.

    Users and items exchange messages over edges in both directions. Edges between users, or between
    items, may be meant. Far more often, ids are in another numbering.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges.
        num_users (int): The number of users, who come first. Items come after them.
    """
    if is_sparse(edge_index):
        edges = to_coordinates(edge_index)[0].flip([0])  # adjacency matrices of PyG are transposed
    else:
        edges = as_tensor(edge_index, "edge_index")
    from_item, to_item = edges >= num_users
    kinds = [to_item & ~from_item, from_item & ~to_item, edges[0] == edges[1]]
    *ways, num_loops = torch.stack(kinds).sum(dim=1).tolist()
    if sum(ways) + num_loops == edges.size(1) and 2 * min(ways) >= max(ways):
        return None
    num_within = edges.size(1) - num_loops - sum(ways)
    return (
        f"'edge_index' looks odd: {ways[0]} edges run from users to items, {ways[1]} run from "
        f"items to users, and {num_within} connect two users or two items. A model such as "
        f"LightGCN expects edges between users and items in both directions, as PyG's "
        f"'ToUndirected' makes them, with items numbered from 'num_users' ({num_users}) on"
    )


# Fitted models of other libraries, one small adapter for each library.
#
# An adapter reads what a model has learned, as embeddings, a function or lists, and says in words
# what that is. None of them imports its library: a model is known by the module of its class.

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
    edges, shape = task.seen.cpu().numpy(), (task.num_users, similarity.shape[0])
    seen = type(similarity)((np.ones(edges.shape[1]), tuple(edges)), shape=shape)

    def scores(users: Tensor) -> Tensor:
        found = (seen[users.cpu().numpy()] @ similarity).tocoo()
        # It never recommends what is similar to nothing that was seen.
        result = np.full(found.shape, -np.inf)
        result[found.row, found.col] = found.data
        return torch.from_numpy(result).to(users.device)

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
    operations = importlib.import_module("lenskit.operations")
    data = importlib.import_module("lenskit.data")

    def scores_of(user: int) -> Tensor:
        found = operations.score(value, users[user], data.ItemList(item_ids=items)).scores()
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
        shown = list_some(map(repr, others))
        warn(
            f"Items of 'recommender' are no candidates, as the task does not have them: "
            f"{len(others):,} ({shown}). {consequence}. The candidates are the whole catalogue "
            f"with {all_items()}"
        )


def library_of(value: object) -> str | None:
    """Returns the library that a model is of, if it has an adapter; else `None`."""
    if isinstance(value, tuple):
        is_pair = len(value) == 2 and library_of(value[1]) == "faiss"
        return "faiss" if is_pair else None
    if isinstance(value, KNNIndex):  # which holds an index of faiss
        return "faiss"
    packages = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((package for package in packages if package in ADAPTERS), None)
