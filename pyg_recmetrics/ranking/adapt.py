"""Makes a recommender of whatever a user has: a model, embeddings, scores, a function or lists."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn.kge import KGEModel
from torch_geometric.nn.models import LightGCN
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from pyg_recmetrics.checks import (
    check_device,
    check_edges,
    check_finite,
    check_ids,
    check_labels,
    check_range,
    check_scores,
    check_shape,
    check_weight,
)
from pyg_recmetrics.inputs import (
    TensorLike,
    as_tensor,
    is_edges_like,
    is_sparse_matrix,
    to_coordinates,
)
from pyg_recmetrics.kernels.exact.ranks import find_runs
from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.ranked_edges import Lists
from pyg_recmetrics.ranking.fitted import is_fitted, read_fitted
from pyg_recmetrics.ranking.knowledge_graph import from_kge_model
from pyg_recmetrics.ranking.models import (
    FoundModel,
    HasRecommend,
    ModelRecommender,
    Recommend,
    find_doubt,
    find_model,
    state_of,
    unwrapped,
)
from pyg_recmetrics.ranking.recommenders import (
    SCORES_ARE_FLOATS,
    EmbeddingRecommender,
    FixedListRecommender,
    FunctionRecommender,
    MatrixRecommender,
    PairRecommender,
    PairScorer,
    Recommender,
)
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.data_frames import (
    FrameLike,
    as_frame,
    find_column,
    look_up_ids,
    read_column,
)

#: How many entries of lists are looked at at once.
_ENTRIES_AT_ONCE = 2**22

#: What to do if a task holds no ids.
_NEEDS_IDS = (
    "needs a task that holds the original ids, as 'RankingTask.from_frames' makes it, or "
    "RankingTask(..., user_ids=..., item_ids=...)"
)


def are_lists_by_id(value: Any) -> bool:
    """Returns whether `value` is a dict, or a data frame with columns of users and items."""
    columns = getattr(value, "columns", ())
    has_both = find_column(columns, "user") is not None and find_column(columns, "item") is not None
    return isinstance(value, Mapping) or has_both


def read_lists(value: Any, task: RankingTask) -> Recommender:
    """Reads lists by the original ids of a task, and warns about what does not fit it.

    Args:
        value (mapping or data frame): The items of every user, best first; or rows of a user, an
            item, and its rank or score.
        task (RankingTask): The task.

    Raises:
        TypeError: If a list is not a sequence.
        ValueError: If the task holds no ids, or ids, ranks or scores are missing or repeated.
    """
    if task.user_ids is None or task.item_ids is None:
        raise ValueError(
            f"'recommender' {_NEEDS_IDS} (got lists by id, a {type(value).__name__}; embeddings "
            f"are passed as (user_embedding, item_embedding))"
        )
    read = _read_mapping if isinstance(value, Mapping) else _read_frame
    user, item, unknown = read(value, _numbers(task.user_ids), _numbers(task.item_ids))
    is_user = user < task.num_users
    user, item = user[is_user], item[is_user]
    is_item = item < task.num_items
    for is_known, kind, ids in ((is_user, "user", task.user_ids), (is_item, "item", task.item_ids)):
        if not bool(is_known.any()):
            raise ValueError(
                f"'recommender' needs to hold lists by the original ids of the task, such as the "
                f"{kind} {ids[0]!r} (got no {kind} of the task)"
            )
    _check_once(user, item, task.user_ids)
    if others := (item[~is_item].unique() - task.num_items).tolist():
        named = list_some([repr(unknown[number]) for number in others])
        warn(
            f"'recommender' lists {len(others)} items that the task does not have ({named}). They "
            f"keep their places as items that are not relevant"
        )
    length = torch.bincount(user, minlength=task.num_users)
    _warn_about_missing_users(length, task, task.user_ids)
    ptr = torch.cat([length.new_zeros(1), length.cumsum(0)])
    # An item that the task does not have keeps its place.
    lists = Lists(item.masked_fill(item >= task.num_items, -1), ptr).to(task.device)
    return FixedListRecommender(lists, task, "lists of items by their original ids")


def by_id(part: Any, ids: Sequence[Hashable] | None, what: str) -> Any:
    """Returns what is labelled by ids in the order of these ids, and anything else as it is.

    Args:
        part (Any): A dict or an object series from ids to vectors, a data frame with a column of
            ids, or anything.
        ids (sequence): The original ids, in their order; `None` if there are none.
        what (str): What has an id, such as `"user"`.

    Raises:
        ValueError: If there are no ids, or one of them has no vector.
    """
    labelled = _labelled(part, what)
    if labelled is None:
        return part
    if ids is None:
        raise ValueError(f"'recommender' {_NEEDS_IDS} (got embeddings by id)")
    row, vectors = labelled
    if missing := [id_ for id_ in ids if id_ not in row]:
        named = list_some([repr(id_) for id_ in missing])
        raise ValueError(
            f"'recommender' needs to have an embedding of every {what} of the task (got none of "
            f"{len(missing)}: {named})"
        )
    wanted = [row[id_] for id_ in ids]
    if isinstance(vectors, np.ndarray):
        return as_tensor(vectors[wanted], "recommender")
    return as_tensor([vectors[place] for place in wanted], "recommender")


def check_not_ids(lists: Tensor, task: RankingTask) -> None:
    """Warns if lists of positions could as well be lists of original ids.

    Args:
        lists (torch.Tensor): Integers of shape `[num_users, K]`.
        task (RankingTask): The task.
    """
    ids = task.item_ids
    if ids is None or ids == (*range(task.num_items),) or any(type(id_) is not int for id_ in ids):
        return
    lowest, highest = (int(bound) for bound in lists.aminmax())
    if lowest < -1 or not 0 <= highest < task.num_items:
        return
    # The last place is that of `-1`.
    is_id = torch.zeros(task.num_items + 1, dtype=torch.bool, device=lists.device)
    in_range = [id_ for id_ in ids if isinstance(id_, int) and 0 <= id_ < task.num_items]
    is_id[torch.tensor([*in_range, -1], device=lists.device)] = True
    rows_at_once = max(1, _ENTRIES_AT_ONCE // lists.size(1))
    if all(bool(is_id[rows.long()].all()) for rows in lists.split(rows_at_once)):
        warn(
            "'recommender' holds integers that are read as positions of items, from 0 on, but all "
            "of them are original ids of items, too. If they are ids, pass "
            "dict(zip(task.user_ids, lists))"
        )


def _numbers(ids: Sequence[Hashable]) -> dict[Hashable, int]:
    return {id_: number for number, id_ in enumerate(ids)}


def _read_mapping(
    lists: Mapping[Any, Any], users: dict[Hashable, int], items: dict[Hashable, int]
) -> tuple[Tensor, Tensor, list[Hashable]]:
    """Returns the users and items of all entries, and the items that are unknown."""
    listed = {users[id_]: _as_list(given, id_) for id_, given in lists.items() if id_ in users}
    numbers = dict(items)
    item = [
        numbers.setdefault(id_, len(numbers)) for number in sorted(listed) for id_ in listed[number]
    ]
    user = [number for number in sorted(listed) for _ in listed[number]]
    edges = torch.tensor([user, item], dtype=torch.long, device="cpu")
    return edges[0], edges[1], list(numbers)[len(items) :]


def _as_list(given: Any, user_id: Hashable) -> Sequence[Hashable]:
    # Arrays, series of pandas, and series of polars
    as_list = getattr(given, "tolist", getattr(given, "to_list", None))
    listed = given if as_list is None else as_list()
    if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
        raise TypeError(
            f"'recommender' needs to hold a sequence of item ids for every user, best first "
            f"(got {type(given).__name__} for {user_id!r})"
        )
    if wrong := [id_ for id_ in listed if not isinstance(id_, Hashable) or id_ != id_]:
        raise ValueError(
            f"'recommender' needs to hold item ids in the list of every user (got {wrong[0]!r} for "
            f"{user_id!r})"
        )
    return listed


def _read_frame(
    given: Any, users: dict[Hashable, int], items: dict[Hashable, int]
) -> tuple[Tensor, Tensor, list[Hashable]]:
    """Returns the users and items of all rows, best first, and the items that are unknown."""
    frame = as_frame(given, "recommender", "evaluate")
    by = next((what for what in ("rank", "score") if find_column(frame.columns, what)), None)
    if by is None:
        raise ValueError(
            f"'recommender' needs to have columns of users and items, and 'rank' or 'score' "
            f"(got {frame.columns})"
        )
    user, _ = look_up_ids(read_column(frame, "user", None, "recommender"), users)
    item, unknown = look_up_ids(read_column(frame, "item", None, "recommender"), items)
    value = as_tensor(read_column(frame, by, None, "recommender").to_numpy(), "recommender")
    order = item.sort(stable=True).indices
    for key, is_descending in ((value, by == "score"), (user, False)):
        order = order[key[order].sort(stable=True, descending=is_descending).indices]
    user, item, value = user[order], item[order], value[order]
    if by == "rank":
        _check_ranks(user, value)
    return user, item, unknown


def _check_ranks(user: Tensor, rank: Tensor) -> None:
    """Raises if the ranks of a user do not count from one on. Rows are sorted by user and rank."""
    start, _ = find_runs(user)
    place = torch.arange(user.numel(), device=user.device)
    if num_wrong := int((rank != place - start + 1).sum()):
        raise ValueError(
            f"'recommender' needs to rank the items of every user as 1, 2, 3 and so on, without "
            f"gaps (got {num_wrong} other ranks); a column 'score' in place of 'rank' may hold any "
            f"numbers, higher for better items"
        )


def _check_once(user: Tensor, item: Tensor, ids: Sequence[Hashable]) -> None:
    num_numbers = int(item.max()) + 1
    key = (user * num_numbers + item).sort().values
    if repeated := (key[1:][key[1:] == key[:-1]] // num_numbers).unique().tolist():
        raise ValueError(
            f"'recommender' needs to list every item once for a user (got an item more than once "
            f"for {list_some([repr(ids[number]) for number in repeated])})"
        )


def _warn_about_missing_users(length: Tensor, task: RankingTask, ids: Sequence[Hashable]) -> None:
    users = task.users.cpu()
    needed = users[task.degree.cpu()[users] > 0]
    if missing := needed[length[needed] == 0].tolist():
        warn(
            f"'recommender' has no list for {len(missing)} of {needed.numel()} users with ground "
            f"truth ({list_some([repr(ids[user]) for user in missing])}). They count as users for "
            f"whom nothing was retrieved"
        )


def _labelled(part: Any, what: str) -> tuple[dict[Hashable, int], Any] | None:
    """Returns the row of every id, and the rows; `None` if nothing is labelled by ids."""
    if isinstance(part, Mapping):
        return _rows([*part]), [*part.values()]
    if hasattr(part, "columns"):
        return _read_vectors(part, what)
    if hasattr(part, "iloc") and part.dtype == object:
        return _rows(part.index.tolist()), part.tolist()
    return None


def _rows(ids: list[Hashable]) -> dict[Hashable, int]:
    row = _numbers(ids)
    if len(row) < len(ids):
        raise ValueError(
            f"'recommender' needs to have one embedding for every id (got {len(ids)} of "
            f"{len(row)} ids)"
        )
    return row


def _read_vectors(given: Any, what: str) -> tuple[dict[Hashable, int], Any] | None:
    column = find_column(given.columns, what, "id")
    if column is None:
        # A column of vectors whose labels are the ids is read as a series.
        is_column = hasattr(given, "iloc") and len(given.columns) == 1
        return _labelled(given.iloc[:, 0], what) if is_column else None
    frame = as_frame(given, "recommender", "evaluate")
    number, ids = look_up_ids(read_column(frame, what, column, "recommender"), {})
    row = _rows([ids[place] for place in number.tolist()])
    rest = frame.drop(column)
    if len(rest.columns) == 1 and not rest[rest.columns[0]].dtype.is_numeric():
        return row, rest[rest.columns[0]].to_list()
    return row, rest.to_numpy()


def complete_counts(
    recommender: object, data: object, num_users: int | None, num_items: int | None
) -> tuple[int | None, int | None]:
    """Returns the number of users and items, where ground-truth edges need them.

    What is given counts. What is not comes from the nodes of a LightGCN, from embeddings, or from
    scores. It stays `None` if these do not know it, or if `data` knows it by itself.
    """
    knows = isinstance(data, RankingTask | Data | HeteroData) or not is_edges_like(data)
    if knows or None not in (num_users, num_items):
        return num_users, num_items
    users, items = _counts_of(recommender, num_users)
    return users if num_users is None else num_users, items if num_items is None else num_items


def _counts_of(recommender: object, num_users: int | None) -> tuple[int | None, int | None]:
    if is_fitted(recommender) or are_lists_by_id(recommender):
        return None, None  # its own ids need a task that knows them
    if model := find_model(recommender):
        asked = model.bound_object
        if isinstance(asked, LightGCN) and num_users is not None:
            return None, asked.num_nodes - num_users
        return None, None
    if isinstance(recommender, tuple | list) and len(recommender) in (2, 3):
        if any(isinstance(part, Mapping) or hasattr(part, "columns") for part in recommender):
            return None, None  # what is labelled by ids needs a task that knows them
        user, item, *_ = (as_tensor(part, "recommender") for part in recommender)
        if user.is_floating_point() and user.dim() == item.dim() == 2:
            return user.size(0), item.size(0)
        return None, None
    if not hasattr(recommender, "__array__") or hasattr(recommender, "columns"):
        return None, None
    given = as_tensor(recommender, "recommender")
    num_users, num_items = given.shape if given.dim() == 2 else (None, given.numel())
    return num_users, num_items if given.is_floating_point() else None


#: Every form that can be ranked, one a line.
FORMS = (
    "a model with recommend(edge_index, src_index, dst_index, k)",
    "a model of torch_geometric.nn.kge with forward(head_index, rel_type, tail_index), for a task "
    "of RankingTask.from_triples",
    "a pair (user_embedding, item_embedding), or (user_embedding, item_embedding, item_bias)",
    "floating-point scores [num_users, num_items]",
    "a function of user ids that returns their scores [len(users), num_items]",
    "PairScorer(function), which scores pairs of a user and an item",
    "floating-point scores of items [num_items], the same for everybody",
    "lists of item ids [num_users, K], integers, best first",
    "lists by the original ids of the task: a dict {user_id: [item_id, ...]}, or a data frame with "
    "the columns (user_id, item_id, rank) or (user_id, item_id, score)",
    "a fitted model of implicit, LightFM, Cornac, Surprise, RecBole or a pipeline of LensKit, or a "
    "pair (user_embedding, index) with an index of faiss",
)

#: The line for any other model.
_FUNCTION = (
    "For any other model, write a function that returns the scores of all items for some users, "
    "as in evaluate(lambda users: model.predict(users), data)"
)


def unknown_form(value: object) -> TypeError:
    """Returns the error for a value that has none of the forms."""
    forms = "".join(f"\n  - {form}" for form in FORMS)
    return TypeError(
        f"'recommender' needs to be one of these (got {describe(value)}):{forms}{_remedy(value)}"
    )


def describe(value: object) -> str:
    """Returns what a value is that cannot be asked by `recommend`."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    is_module = isinstance(value, torch.nn.Module)
    return type(value).__name__ + (" without a method 'recommend'" if is_module else "")


def _remedy(value: object) -> str:
    if isinstance(value, type):
        return f"\nMake an object of the class first, as in {value.__name__}(...)"
    if isinstance(value, torch.nn.Module):
        return (
            f"\n{_FUNCTION}"
            f"\nFor two towers and the like, compute the embeddings of users and items, and write "
            f"evaluate((user_embedding, item_embedding), data)"
        )
    return "" if type(value).__module__ == "builtins" else f"\n{_FUNCTION}"


#: Embeddings, which may be labelled by ids.
VectorsLike: TypeAlias = TensorLike | Mapping[Any, Any] | FrameLike

#: Whatever :func:`as_recommender` understands.
RecommenderLike: TypeAlias = (
    HasRecommend
    | KGEModel
    | Tensor
    | ArrayLike
    | tuple[VectorsLike, VectorsLike]
    | tuple[VectorsLike, VectorsLike, VectorsLike]
    | list[TensorLike]
    | Mapping[Any, Sequence[Hashable] | TensorLike]
    | FrameLike
    | Callable[[Tensor], Tensor]
    | PairScorer
    | Recommend
)


def as_recommender(value: RecommenderLike, task: RankingTask) -> Recommender:
    """Converts `value` to a recommender, and checks that it fits the task.

    Args:
        value: What to rank, see :func:`pyg_recmetrics.rank`.
        task (RankingTask): The task, with the edges that a model propagates over.

    Raises:
        TypeError: If `value` has none of the forms that can be ranked.
        ValueError: If it does not fit the task.
    """
    if _are_tables(value):  # nothing else is as fast to rank, so that questions take time
        return _from_embeddings(value, task)
    if isinstance(value, PairScorer):
        return PairRecommender(value, task)
    if (reading := read_fitted(value, task)) is not None:
        recommender = as_recommender(reading.recommender, task)
        recommender.in_words, recommender.state = reading.in_words, state_of(value)
        if recommender.mask is not None:
            recommender.mask.allows_empty = True
        return recommender
    if model := find_model(value):
        return _from_model(model, task)
    if isinstance(kge_model := unwrapped(value), KGEModel):
        return from_kge_model(kge_model, task)
    if isinstance(value, torch.nn.Module | type):
        raise unknown_form(value)
    if are_lists_by_id(value):
        return read_lists(value, task)
    if isinstance(value, tuple | list):
        if not _is_matrix(value):
            return _from_embeddings(tuple(value), task)
        value = _stacked(value, task)
    if callable(value):
        return FunctionRecommender(value, task)
    if isinstance(value, Tensor) or hasattr(value, "__array__") or is_sparse_matrix(value):
        return _from_tensor(value, as_tensor(value, "recommender"), task)
    raise unknown_form(value)


def ask_model(value: object, task: RankingTask) -> Recommender:
    """Converts a model to a recommender that asks its `recommend`, also if it is a LightGCN.

    The arguments are those of :func:`as_recommender`.

    Raises:
        TypeError: If `recommend` cannot be asked.
        ValueError: If `value` has no `recommend`, or does not fit the task.
    """
    model = find_model(value)
    if model is None:
        raise ValueError(
            f"'recommender' needs to be a model with a method 'recommend' for "
            f"algorithm='recommend' (got {describe(value)})"
        )
    return _ask(model, task)


def _ask(model: FoundModel, task: RankingTask) -> Recommender:
    edges = _message_passing(model, task)
    recommender = ModelRecommender(model.with_edges(*edges), task, "dst_index" in model.names)
    recommender.in_words = f"{model.form} of {model.name}"
    recommender.state = _state(model, *edges)
    return recommender


def _from_model(model: FoundModel, task: RankingTask) -> Recommender:
    if model.lightgcn is None:
        return _ask(model, task)
    num_nodes, wanted = model.lightgcn.num_nodes, task.num_users + task.num_items
    if num_nodes != wanted:
        raise ValueError(
            f"'recommender' needs to have a node for each of {task.num_users} users and "
            f"{task.num_items} items (got {num_nodes} nodes); make it as LightGCN({wanted}, ...), "
            f"or give the task the 'num_users' and 'num_items' that it was made for"
        )
    # LightGCN scores by inner products of embeddings, which it propagates anew in each call.
    edges = _message_passing(model, task)
    embedding = model.lightgcn.get_embedding(*edges)
    embedding = check_scores(embedding, "recommender.get_embedding()")
    shape = (wanted, *embedding.shape[1:])
    check_shape(embedding, "recommender.get_embedding()", shape, "embeddings of all nodes")
    recommender = _from_embeddings(embedding.split([task.num_users, task.num_items]), task)
    recommender.in_words = f"the embeddings of {model.name}"
    # Not its embeddings: some devices add up messages in another order in each process.
    recommender.state = _state(model, *edges)
    return recommender


def _state(model: FoundModel, edges: Adj | None, weight: Tensor | None) -> dict[str, Tensor] | None:
    """Returns the state of a model and the edges that it propagates over, if it has a state."""
    state = state_of(model.recommend)
    if state is None or edges is None or not model.takes_edges:
        return state
    if is_sparse(edges):
        index, weight = to_coordinates(edges)
    else:
        index = as_tensor(edges, "edge_index")
    state["edge_index"] = index
    return state if weight is None else state | {"edge_weight": weight}


def _message_passing(model: FoundModel, task: RankingTask) -> tuple[Adj | None, Tensor | None]:
    """Returns the edges that a model propagates over, and their weights, after checking them."""
    if isinstance(model.bound_object, torch.nn.Module):
        parameter = next(model.bound_object.parameters(), None)
        if parameter is not None:
            check_device(parameter, "recommender", task.device, "task")
    edges, weight = task.edge_index, task.edge_weight
    if edges is None and model.takes_edges:
        raise ValueError(
            f"'edge_index' needs to be given for {model.name}: the edges it propagates over, in "
            f"its own numbering (a task that was read from data knows them)"
        )
    if edges is not None and not is_sparse(edges):
        plain = check_edges(edges, "edge_index")
        check_ids(plain, "edge_index", "node", task.num_users + task.num_items)
        check_device(plain, "edge_index", task.device, "task")
        if weight is not None:
            check_device(weight, "edge_weight", task.device, "task")
            check_weight(weight, "edge_weight", plain)
    if model.takes_edges and (doubt := find_doubt(edges, task.num_users)):
        warn(doubt)
    return edges, weight


def _from_embeddings(given: tuple[Any, ...], task: RankingTask) -> Recommender:
    if len(given) not in (2, 3):
        raise ValueError(
            f"'recommender' needs to be (user_embedding, item_embedding) or (user_embedding, "
            f"item_embedding, item_bias) (got {len(given)} parts); write torch.tensor(...) around "
            f"scores or lists of items"
        )
    labels = ((task.user_ids, "user"), (task.item_ids, "item"), (task.item_ids, "item"))
    given = tuple(by_id(part, *label) for part, label in zip(given, labels, strict=False))
    for part, (ids, _) in zip(given, labels, strict=False):
        check_labels(part, "recommender", ids)
    user, item, *biases = (check_scores(part, "recommender") for part in given)
    _check_embeddings(user, item, task)
    parts = (user, item, *biases)
    for part in parts:
        if part.device.type != "cpu":  # a table on the host can pass through any device
            check_device(part, "recommender", task.device, "task")
    of_user, of_item, *of_biases = (check_finite(part, "recommender") for part in parts)
    for bias, largest in zip(biases, of_biases, strict=True):
        check_shape(bias, "recommender", (task.num_items,), "item biases")
        check_range(of_user, of_item, largest, user.size(1))
    return EmbeddingRecommender(
        user, item, biases[0] if biases else None, task.device, max(of_item, *of_biases, 0), of_user
    )


def _are_tables(value: object) -> TypeGuard[tuple[Tensor, ...]]:
    """Returns whether `value` holds nothing but tensors, the first two of which are matrices."""
    if type(value) is not tuple or len(value) not in (2, 3):
        return False
    return all(isinstance(part, Tensor) for part in value) and all(x.dim() == 2 for x in value[:2])


def _is_matrix(value: tuple[Any, ...] | list[Any]) -> bool:
    """Returns whether `value` holds rows of numbers, and not embeddings."""
    return len(value) > 0 and all(map(_is_row, value))


def _is_row(part: Any) -> bool:
    if isinstance(part, Tensor | np.ndarray):
        return part.ndim == 1 and not as_tensor(part, "recommender").is_floating_point()
    return isinstance(part, tuple | list) and not (
        part and isinstance(part[0], tuple | list | Tensor | np.ndarray)
    )


def _stacked(rows: tuple[Any, ...] | list[Any], task: RankingTask) -> Tensor:
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise ValueError(
            f"'recommender' needs to hold lists of one length, filled up with -1, or "
            f"dict(zip(task.user_ids, lists)) of original ids (got {min(lengths)} to "
            f"{max(lengths)} items)"
        )
    if any(isinstance(entry, str) for entry in rows[0][:1]):
        raise ValueError(
            f"'recommender' needs to hold lists of original ids by user, as "
            f"dict(zip(task.user_ids, lists)) holds them (got a list that starts with "
            f"{rows[0][0]!r})"
        )
    return as_tensor(rows, "recommender")


def _check_embeddings(user: Tensor, item: Tensor, task: RankingTask) -> None:
    num_rows = [part.size(0) if part.dim() == 2 else None for part in (user, item)]
    num_users, num_items = task.num_users, task.num_items
    if num_users != num_items and num_rows == [num_items, num_users]:
        raise ValueError(
            f"'recommender' needs to hold embeddings of {num_users} users, and then of "
            f"{num_items} items (got {num_rows[0]} and {num_rows[1]} rows); write "
            f"(user_embedding, item_embedding) in this order"
        )
    shapes = [list(part.shape) for part in (user, item)]
    if [shape[1:] for shape in shapes] == [[num_users], [num_items]] != [[dim] for dim in num_rows]:
        raise ValueError(
            f"'recommender' needs to hold one row for each user and item (got {shapes[0]} and "
            f"{shapes[1]}); transpose both"
        )
    dim = user.size(-1) if user.dim() else 0
    check_shape(user, "recommender", (num_users, dim), "user embeddings")
    check_shape(item, "recommender", (num_items, dim), "item embeddings")
    if dim == 0:
        raise ValueError("'recommender' needs to hold embeddings of one dimension or more (got 0)")


def _from_tensor(given: object, value: Tensor, task: RankingTask) -> Recommender:
    """Ranks by scores or lists, whose labels, if they are given any, are in the order of a task."""
    labels = (task.item_ids,) if value.dim() == 1 else (task.user_ids, task.item_ids)
    check_labels(given, "recommender", *(labels if value.is_floating_point() else labels[:1]))
    check_device(value, "recommender", task.device, "task")
    if not value.is_floating_point():
        return _from_lists(value, task)
    check_scores(value, "recommender")
    if value.dim() == 1:
        check_shape(value, "recommender", (task.num_items,), "one score per item")
        return _from_item_scores(value, task)
    shape = (task.num_users, task.num_items)
    if value.shape == shape[::-1] != shape:
        raise ValueError(
            f"'recommender' needs to hold scores [num_users, num_items] of shape {list(shape)} "
            f"(got {list(value.shape)}); transpose them"
        )
    check_shape(value, "recommender", shape, "scores [num_users, num_items]")
    return MatrixRecommender(value, task)


def _from_item_scores(scores: Tensor, task: RankingTask) -> Recommender:
    # The order of the scores is all that counts, and fits into single precision.
    level = scores.unique(return_inverse=True)[1]
    exact = level.float() if scores.numel() <= 2**24 else level.double()
    # What is not finite has no place in that order.
    exact = torch.where(scores.isfinite(), exact, scores.to(exact.dtype))
    recommender = MatrixRecommender(exact.expand(task.num_users, -1), task)
    recommender.in_words = "one score per item"
    return recommender


def _from_lists(value: Tensor, task: RankingTask) -> Recommender:
    if value.dtype == torch.bool or value.is_complex():
        raise ValueError(
            f"'recommender' needs to hold floating-point scores or integer item ids "
            f"(got {value.dtype})"
        )
    if value.dim() != 2 or value.size(0) != task.num_users or value.size(1) == 0:
        raise ValueError(
            f"'recommender' needs to hold item ids of shape [{task.num_users}, K] "
            f"(got {list(value.shape)}); {SCORES_ARE_FLOATS}"
        )
    if value.size(1) == task.num_items and _has_repeats(value, task.num_items):
        raise ValueError(
            f"'recommender' needs to hold lists in which no item comes twice, or floating-point "
            f"scores (got integers of shape {list(value.shape)}, one for every item, of which some "
            f"repeat in a row); if they are scores, write evaluate(recommender.float(), ...), and "
            f"if they are lists, pass only the first few places, as in recommender[:, :20]"
        )
    check_not_ids(value, task)
    return FixedListRecommender(Lists.from_matrix(value), task, "lists of items")


def _has_repeats(lists: Tensor, num_items: int) -> bool:
    """Returns whether a row has an item more than once; what is outside `num_items` is none."""
    for part in lists.split(max(1, _ENTRIES_AT_ONCE // lists.size(1))):
        # Two more columns take what is no item.
        column = part.long().clamp(-1, num_items).add_(1)
        is_listed = column.new_zeros(part.size(0), num_items + 2, dtype=torch.bool)
        is_listed.scatter_(1, column, True)
        is_item = (column > 0) & (column <= num_items)
        if bool((is_listed[:, 1:-1].sum(dim=1) < is_item.sum(dim=1)).any()):
            return True
    return False
