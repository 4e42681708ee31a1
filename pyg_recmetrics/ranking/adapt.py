"""Makes a recommender of whatever a user has: a model, embeddings, scores, a function or lists."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.nn.kge import KGEModel
from torch_geometric.typing import Adj
from torch_geometric.utils import lexsort

from pyg_recmetrics.checks import (
    TensorLike,
    as_tensor,
    as_values,
    check_all_finite,
    check_device,
    check_labels,
    check_range,
    check_scores,
    check_shape,
    is_edges_like,
    is_sparse_matrix,
)
from pyg_recmetrics.kernels.exact.ranks import without_repeats
from pyg_recmetrics.ranked_edges import ONE_SCORE_PER_ITEM, Lists
from pyg_recmetrics.ranking.knowledge_graph import from_kge_model
from pyg_recmetrics.ranking.models import (
    ADAPTERS,
    FoundModel,
    HasRecommend,
    Recommend,
    find_doubt,
    find_lightgcn,
    find_model,
    is_model,
    library_of,
    unwrapped,
    warn_of_others,
)
from pyg_recmetrics.ranking.recommenders import (
    COUNTS,
    NO_CHANCE,
    EmbeddingRecommender,
    FixedListRecommender,
    FunctionRecommender,
    MatrixRecommender,
    ModelRecommender,
    PairRecommender,
    PairScorer,
    Recommender,
    are_hardly_chance,
    begins_behind_users,
)
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.data_frames import (
    NO_HEADER,
    FrameLike,
    check_frame,
    columns_of,
    find_column,
    look_up_ids,
    read_column,
)
from pyg_recmetrics.utils import counted, hashed, list_some, warn, written_as

#: How many entries of lists are looked at at once.
_ENTRIES_AT_ONCE = 2**22

#: By so many numbers, it is judged whether they are scores.
_ENTRIES_LOOKED_AT = 2**13

#: What to do with integers that are no item ids.
SCORES_ARE_FLOATS = (
    "scores need to be floating-point numbers, as '.float()' or, outside of torch, "
    "'.astype(float)' makes them"
)

#: What to do with integers that are original ids.
IDS_ARE_IN_DICTS = "original ids need to be in a dict, as in dict(zip(task.user_ids, lists))"

#: What to do with as many integers for each user as there are items.
_EITHER = (
    "if they are scores, write evaluate(recommender.float(), ...), and if they are lists, pass "
    "only the first few places, as in recommender[:, :20]"
)

#: What to do if a task holds no ids.
_NEEDS_IDS = (
    "needs a task that holds the original ids, as 'RankingTask.from_frames' makes it, or "
    "RankingTask(..., user_ids=..., item_ids=...)"
)


#: How items in lists are treated that the task does not have.
_OF_STRANGERS = (
    "They keep their places in lists, and count as items that no user has seen, which the coverage "
    "and the Gini index of the catalogue leave out"
)


def _read_lists(value: Any, task: RankingTask) -> Recommender:
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
            f"of node types are passed as (z['user'], z['item']))"
        )
    read = _read_dict if isinstance(value, Mapping) else _read_rows
    user, item, strangers, unknown = read(value, task.user_ids, task.item_ids)
    is_item = item < task.num_items
    for found, kind, ids, others in (
        (user, "user", task.user_ids, strangers),
        (item[is_item], "item", task.item_ids, unknown),
    ):
        if found.numel() == 0:
            got = list_some(map(repr, others)) or "none"
            alike = written_as(
                f"write ids in the same way, as by {type(ids[0]).__name__}(...)",
                "ids need to be the same in all files",
            )
            raise ValueError(
                f"'recommender' needs to hold lists by the original ids of the task, such as the "
                f"{kind} {ids[0]!r} (got {got}); {alike}"
            )
    if strangers:
        warn(
            f"'recommender' has lists of {counted(len(strangers), 'users')} that the task does not "
            f"have ({list_some(map(repr, strangers))}): they are left out"
        )
    others = [unknown[number] for number in (item[~is_item].unique() - task.num_items).tolist()]
    warn_of_others(others, _OF_STRANGERS)
    # Numbers below `-1`, the same in every process, as parts of a task are merged.
    below = [-2 - hashed(repr(id_)) % 2**56 for id_ in unknown]
    item = torch.tensor([*range(task.num_items), *below], device="cpu")[item]
    lists = Lists(item, index2ptr(user, task.num_users)).to(task.device)
    return FixedListRecommender(lists, task, "lists of items by their original ids")


def _read_dict(
    lists: Mapping[Any, Any], user_ids: Sequence[Hashable], item_ids: Sequence[Hashable]
) -> tuple[Tensor, Tensor, list[Hashable], list[Hashable]]:
    """Returns the users and the items of all lists, and the users and items that are unknown."""
    items, lengths = list[Hashable](), list[int]()
    for user_id in user_ids:
        name = f"recommender[{user_id!r}]"
        listed = as_values(lists.get(user_id, ()), name, "item ids, best first")
        if wrong := [id_ for id_ in listed if id_ is None or id_ != id_]:
            raise ValueError(f"'{name}' needs to hold item ids (got {wrong[0]!r} among them)")
        items += listed
        lengths.append(len(listed))
    user = torch.from_numpy(np.repeat(np.arange(len(user_ids)), lengths))
    item, unknown = look_up_ids(pd.Series(items, name="item", dtype=object), item_ids)
    _check_once(user, item, user_ids)
    known = {*user_ids}
    return user, item, [id_ for id_ in lists if id_ not in known], unknown


def _read_rows(
    given: Any, user_ids: Sequence[Hashable], item_ids: Sequence[Hashable]
) -> tuple[Tensor, Tensor, list[Hashable], list[Hashable]]:
    """Returns the known users and the items of rows, best first, and those that are unknown."""
    names = check_frame(given, "recommender")
    by = next((what for what in ("rank", "score") if find_column(names, what)), None)
    if by is None:
        raise ValueError(
            f"'recommender' needs to have columns of users and items, and 'rank' or 'score' "
            f"(got {names}); if rows are in order, write "
            f"frame.assign(rank=frame.groupby('user_id').cumcount() + 1), after "
            f"frame.explode(column) if a column holds lists"
        )
    user, strangers = look_up_ids(read_column(given, "user", None, "recommender"), user_ids)
    item, unknown = look_up_ids(read_column(given, "item", None, "recommender"), item_ids)
    values = read_column(given, by, None, "recommender")
    value = as_tensor(values.to_numpy(), f"recommender[{values.name!r}]")
    if by == "score":  # of which the lowest integer has no negative
        value = -value if value.is_floating_point() else value.long().bitwise_not()
    order = lexsort([item, value, user])
    order = order[user[order] < len(user_ids)]
    user, item = user[order], item[order]
    _check_once(user, item, user_ids)
    if by == "rank":
        _check_ranks(user, value[order], user_ids)
    return user, item, strangers, unknown


def _check_once(user: Tensor, item: Tensor, user_ids: Sequence[Hashable]) -> None:
    """Raises if a user has an item more than once."""
    rows = pd.DataFrame({"user": user.numpy(), "item": item.numpy()})
    repeated = rows["user"][rows.duplicated()].unique()
    if len(repeated):
        named = list_some([repr(user_ids[number]) for number in repeated])
        once = written_as("frame.drop_duplicates([user, item]) or dict.fromkeys(items)", "one row")
        raise ValueError(
            f"'recommender' needs to list every item once for a user (got an item more than once "
            f"for {named}); write {once} for each"
        )


def _check_ranks(user: Tensor, rank: Tensor, user_ids: Sequence[Hashable]) -> None:
    """Raises if the ranks of a user do not count from one on. Rows are sorted by user and rank."""
    rows = pd.DataFrame({"user": user.numpy(), "rank": rank.numpy()})
    is_wrong = rows["rank"] != rows.groupby("user").cumcount() + 1
    if is_wrong.any():
        number = rows["user"][is_wrong].iloc[0]
        found = list_some([f"{rank:g}" for rank in rows["rank"][rows["user"] == number]])
        raise ValueError(
            f"'recommender' needs to rank the items of every user as 1, 2, 3 and so on, without "
            f"gaps (got {is_wrong.sum()} other ranks, as in {found} of {user_ids[number]!r}); a "
            f"column 'score' in place of 'rank' may hold any numbers, higher for better items"
        )


#: Every form that can be ranked, one a line.
FORMS = (
    "a model with recommend(edge_index, src_index, dst_index, k)",
    "a model of torch_geometric.nn.kge with forward(head_index, rel_type, tail_index), for a task "
    "of RankingTask.from_triples",
    "a pair (user_embedding, item_embedding), or (user_embedding, item_embedding, item_bias)",
    "floating-point scores [num_users, num_items]",
    "a function of user ids that returns their scores [len(users), num_items]",
    "PairScorer(function), which scores pairs of a user and an item",
    "floating-point scores of items [num_items], the same for all users",
    "lists of item ids [num_users, K], integers, best first",
    "lists by the original ids of the task: a dict {user_id: [item_id, ...]}, or a data frame with "
    "the columns (user_id, item_id, rank) or (user_id, item_id, score)",
    "a fitted model of implicit or RecBole, a pipeline of LensKit, or a pair "
    "(user_embedding, index) with an index of faiss, such as PyG's MIPSKNNIndex",
)


def _unknown_form(value: object) -> TypeError:
    """Returns the error for a value that has none of the forms."""
    got = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    forms = "".join(f"\n  - {form}" for form in FORMS)
    return TypeError(
        f"'recommender' needs to be one of these (got {got}):{forms}\nWrite "
        f"evaluate(recommender, data), in this order. For any other model, write a function that "
        f"returns the scores of all items for some users, as in "
        f"evaluate(lambda users: model.predict(users), data). EvaluationResult(ranked, metrics) "
        f"measures 'RankedEdges'"
    )


#: Whatever one of the :data:`RECOMMENDER_FORMS` reads.
RecommenderLike: TypeAlias = (
    HasRecommend
    | KGEModel
    | Tensor
    | ArrayLike
    | tuple[TensorLike | Mapping[Any, Any], ...]
    | Mapping[Any, Any]
    | FrameLike
    | PairScorer
    | Recommend
)


def ask_model(value: object, task: RankingTask) -> Recommender:
    """Converts a model to a recommender that asks its `recommend`, also if it is a LightGCN.

    The arguments are those of :func:`as_recommender`.

    Raises:
        TypeError: If `recommend` cannot be asked.
        ValueError: If `value` has no `recommend`, or does not fit the task.
    """
    if not is_model(value):
        raise ValueError(
            f"'recommender' needs to be a model with a method 'recommend' for "
            f"algorithm='recommend' (got {type(value).__name__})"
        )
    model = find_model(value)
    edges = _message_passing(model, task)
    recommender = ModelRecommender(model.with_edges(*edges), task, model.takes_edges)
    names = ", ".join(name for name in model.form if name != "edge_weight")
    recommender.in_words = f"recommend({names}) of {model.name}"
    return recommender


def _from_lightgcn(value: object, task: RankingTask) -> Recommender:
    model: Any = find_lightgcn(value)
    lightgcn, wanted = model.bound_object, task.num_users + task.num_items
    if (num_nodes := lightgcn.num_nodes) != wanted:
        raise ValueError(
            f"'recommender' needs to have a node for each of {task.num_users} users and "
            f"{task.num_items} items (got {num_nodes} nodes); make it as LightGCN({wanted}, ...), "
            f"or give the task the 'num_users' and 'num_items' that it was made for; where rows "
            f"are queries, or users are the items, pass a pair of z = "
            f"model.get_embedding(edge_index), such as (z[task.query[:, 0]], z) or (z, z)"
        )
    # LightGCN scores by inner products of embeddings, which it propagates anew in each call.
    edges = _message_passing(model, task)
    embedding = check_scores(lightgcn.get_embedding(*edges), "recommender.get_embedding()")
    recommender = _of_tables(*embedding.tensor_split([task.num_users]), task=task)
    recommender.in_words = f"the embeddings of {model.name}"
    recommender.is_propagated = True
    return recommender


def _message_passing(model: FoundModel, task: RankingTask) -> tuple[Adj | None, Tensor | None]:
    """Returns the edges that a model propagates over, and their weights."""
    if isinstance(model.bound_object, torch.nn.Module):
        parameter = next(model.bound_object.parameters(), None)
        if parameter is not None:
            check_device(parameter, "recommender", task.device, "task")
    if task.edge_index is None and model.takes_edges:
        raise ValueError(
            f"'edge_index' needs to be given for {model.name}: the edges it propagates over, in "
            f"its own numbering (a task that was read from data knows them)"
        )
    if model.takes_edges and (doubt := find_doubt(task.edge_index, task.num_users)):
        warn(doubt)
    return task.edge_index, task.edge_weight


def _from_embeddings(given: tuple[Any, ...], task: RankingTask) -> Recommender:
    if len(given) not in (2, 3) or any(map(_is_row, given[:2])) or hasattr(given, "indices"):
        raise ValueError(
            f"'recommender' needs to be (user_embedding, item_embedding) or (user_embedding, "
            f"item_embedding, item_bias) (got {len(given)} parts); write torch.tensor(...) around "
            f"scores or positions of items, and scores.topk(20).indices for what topk returns; "
            f"{IDS_ARE_IN_DICTS}"
        )
    user, *of_items = given
    tables = [_read_table(user, task.user_ids, "user")]
    tables += [_read_table(part, task.item_ids, "item") for part in of_items]
    return _of_tables(*tables, task=task)


def _read_table(part: Any, ids: Sequence[Hashable] | None, what: str) -> Tensor:
    """Returns the vectors or biases of users or items; those by ids, in the order of ids.

    A warning is given of vectors of other items.

    Args:
        part (Any): A dict from ids to vectors, or what holds numbers.
        ids (sequence): The original ids, in their order; `None` if there are none.
        what (str): What has an id, such as `"user"`.

    Raises:
        ValueError: If there are no ids, or one of them has no vector, or ids are in a data frame,
            whose numbers would be read as vectors.
    """
    if (column := find_column(columns_of(part), what, "id")) is not None:
        raise ValueError(
            f"'recommender' needs to hold embeddings by id in a dict, as in "
            f"dict(zip(frame[{column!r}], vectors)) (got a data frame)"
        )
    if not isinstance(part, Mapping):
        check_labels(part, "recommender", ids)
        return check_scores(part, "recommender")
    if ids is None:
        raise ValueError(f"'recommender' {_NEEDS_IDS} (got embeddings by id)")
    if missing := [id_ for id_ in ids if id_ not in part]:
        named = list_some(map(repr, missing))
        raise ValueError(
            f"'recommender' needs to have an embedding of every {what} of the task (got none of "
            f"{len(missing)}: {named})"
        )
    if what == "item" and len(part) > len(ids):
        known = set(ids)
        warn_of_others([id_ for id_ in part if id_ not in known], "They are never retrieved")
    return check_scores([part[id_] for id_ in ids], "recommender")


def _of_tables(*parts: Tensor, task: RankingTask) -> EmbeddingRecommender:
    """Ranks by embeddings of users and of items, and by item biases if there are any."""
    user, item, *biases = parts
    dim = user.size(-1) if user.dim() else 0
    if dim == 0 or (user.shape, item.shape) != ((task.num_users, dim), (task.num_items, dim)):
        raise ValueError(
            f"'recommender' needs to hold user embeddings of shape [{task.num_users}, dim] and "
            f"item embeddings of shape [{task.num_items}, dim], in this order (got "
            f"{list(user.shape)} and {list(item.shape)}); write .T for a table with a column for "
            f"each user or item{COUNTS}"
        )
    for part in parts:
        if part.device.type != "cpu":  # a table on the host can pass through any device
            check_device(part, "recommender", task.device, "task")
    of_user, *of_items = check_all_finite(parts, "recommender")
    if biases:
        check_shape(biases[0], "recommender", (task.num_items,), "item biases")
        check_range(of_user, of_items[0], of_items[1], user.size(1))
    return EmbeddingRecommender(user, item, *biases, device=task.device, largest=max(of_items))


def _is_row(part: object) -> bool:
    """Returns whether a part holds numbers or ids, as a row of a matrix in nested lists does."""
    return isinstance(part, tuple | list) and all(isinstance(x, int | float | str) for x in part)


def _from_numbers(given: Any, task: RankingTask) -> Recommender:
    """Ranks by scores or lists, whose labels, if they are given any, are in the order of a task."""
    names = columns_of(given)
    is_narrow = len(names) in (2, 3, 4) and len(given) != task.num_users
    # Nullable numbers become objects, too, but are of another kind.
    kinds = {getattr(dtype, "kind", "O") for dtype in (given.dtypes if names else ())}
    if is_narrow or ("O" in kinds and np.asarray(given).dtype == object):
        raise ValueError(
            f"'recommender' needs to have the columns 'user_id', 'item_id' and 'rank' or 'score', "
            f"or a row of numbers for every user (got {len(given)} rows, and the columns "
            f"{list_some(map(repr, names))}); {NO_HEADER}"
        )
    value = as_tensor(given, "recommender")
    labels = (task.item_ids,) if value.dim() == 1 else (task.user_ids, task.item_ids)
    check_labels(given, "recommender", *(labels if value.is_floating_point() else labels[:1]))
    check_device(value, "recommender", task.device, "task")
    if not value.is_floating_point():
        return _from_lists(value, task)
    check_scores(value, "recommender")
    if value.dim() == 1:
        remedy = f"; write PairScorer(score), with score(user, item), for scores of pairs{COUNTS}"
        check_shape(value, "recommender", (task.num_items,), ONE_SCORE_PER_ITEM, remedy)
        recommender = MatrixRecommender(value.expand(task.num_users, -1), task)
        recommender.in_words = ONE_SCORE_PER_ITEM
        return recommender
    shape = (task.num_users, task.num_items)
    remedy = f"; pass (user_embedding, item_embedding), or scores.topk(20).indices as lists{COUNTS}"
    if value.shape == shape[::-1]:
        remedy = "; write scores.T if rows are items"
    elif value.shape[:1] == (sum(shape),):
        remedy = f"; write tuple(embedding.split({list(shape)})) for embeddings of all nodes"
    check_shape(value, "recommender", shape, "scores [num_users, num_items]", remedy)
    if value.numel() and (doubt := _doubt_scores(value)):
        warn(doubt)
    return MatrixRecommender(value, task)


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
    lowest, highest = (int(bound) for bound in value.aminmax())
    if lowest < -1 or highest >= task.num_items:
        raise ValueError(
            f"'recommender' needs to hold item ids in [0, {task.num_items}), or -1 for none, as "
            f"integers are read as lists (got {lowest} to {highest}); subtract 1, or 'num_users' "
            f"({task.num_users}), if items are numbered from there on; {SCORES_ARE_FLOATS}; "
            f"{IDS_ARE_IN_DICTS}"
        )
    is_listed = torch.zeros(task.num_items + 1, dtype=torch.bool, device=value.device)
    for part in value.split(max(1, _ENTRIES_AT_ONCE // value.size(1))):
        is_listed[part.long()] = True  # the last place is that of `-1`
        if value.size(1) == task.num_items and bool((without_repeats(part) != part).any()):
            raise ValueError(
                f"'recommender' needs to hold lists in which no item comes twice, or scores as "
                f"floating-point numbers (got integers of shape {list(value.shape)}, one for every "
                f"item, of which some repeat in a row); {_EITHER}"
            )
    items = is_listed[:-1].nonzero().squeeze(1)
    if value.size(1) == task.num_items > 1 and lowest == 0:
        warn(
            f"'recommender' holds every item once for every user, in integers that are read as "
            f"lists, best first, but may be ranks; {_EITHER}"
        )
    elif begins_behind_users(items, task.num_users, task.num_items):
        warn(
            f"'recommender' holds no item below {task.num_users}, the number of users. Lists "
            f"number items from 0 on: subtract 'num_users' if these are numbered from there on"
        )
    elif _could_be_ids(items, task):
        warn(
            "'recommender' holds integers that are read as positions of items, from 0 on, but all "
            "of them are original ids of items, too. If they are ids, pass "
            "dict(zip(task.user_ids, lists))"
        )
    return FixedListRecommender(Lists.from_matrix(value), task, "lists of items")


def _could_be_ids(items: Tensor, task: RankingTask) -> bool:
    """Returns whether the items of all lists are original ids, too, which is hardly chance."""
    ids = [id_ for id_ in task.item_ids or () if type(id_) is int]
    in_range = [id_ for id_ in ids if 0 <= id_ < task.num_items]
    if len(ids) < task.num_items or not are_hardly_chance(items, len(in_range), task.num_items):
        return False
    return bool(torch.isin(items, torch.tensor(in_range, device=items.device)).all())


def _doubt_scores(scores: Tensor) -> str | None:
    """Returns what scores seem to be instead, by the first rows; `None` if nothing is odd."""
    num_items = scores.size(1)
    part = scores[: max(2, _ENTRIES_LOOKED_AT // num_items)].float()
    if part.size(0) * math.lgamma(num_items + 1) < NO_CHANCE:
        return None
    # NumPy takes a fraction of the time to be asked.
    rows = part.cpu().numpy()
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    are_falling = bool((rows[:, 1:] <= rows[:, :-1]).all())
    if are_falling and bool((rows != rows[0]).any()):
        return (
            "'recommender' holds scores that fall from the first item to the last for every "
            "user, as the values of 'topk' do. If they are these, pass its indices, as in "
            "scores.topk(20).indices; if not, pass a function, as in "
            "lambda users: scores[users]"
        )
    are_wide = bool((np.isfinite(low) & (high == low + num_items - 1)).all())
    if are_wide and not are_falling and (np.sort(rows) - low == np.arange(num_items)).all():
        return (
            "'recommender' holds floating-point numbers that are ranks or items, one of each for "
            "every user, and are read as scores. If they are items, best first, pass integers, as "
            "in recommender.long(); if they are scores, higher for better items, pass a function, "
            "as in lambda users: scores[users]"
        )
    return None


def _from_fitted(value: object, task: RankingTask) -> Recommender:
    read, in_words = ADAPTERS[str(library_of(value))](value, task)
    recommender = as_recommender(read, task)
    recommender.in_words = in_words
    if recommender.mask is not None:
        recommender.mask.allows_empty = True
    return recommender


#: The number of users and items, as far as a recommender knows them.
Counts: TypeAlias = tuple[int | None, int | None]


def _counts_of_embeddings(value: Any, num_users: int | None) -> Counts:
    # What is labelled by ids needs a task that knows them.
    if len(value) not in (2, 3) or any(map(_is_labelled, value)):
        return None, None
    user, item = (as_tensor(part, "recommender") for part in value[:2])
    are_vectors = user.is_floating_point() and user.dim() == item.dim() == 2
    return (user.size(0), item.size(0)) if are_vectors else (None, None)


def _counts_of_lightgcn(value: object, num_users: int | None) -> Counts:
    model: Any = find_lightgcn(value)
    return None, None if num_users is None else model.bound_object.num_nodes - num_users


def _counts_of_numbers(value: Any, num_users: int | None) -> Counts:
    if _is_labelled(value):
        return None, None
    given = as_tensor(value, "recommender")
    users, items = given.shape if given.dim() == 2 else (None, given.numel())
    return users, items if given.is_floating_point() else None


def _is_labelled(part: object) -> bool:
    return isinstance(part, Mapping) or hasattr(part, "columns")


class RecommenderForm(NamedTuple):
    """One kind of recommender.

    Attributes:
        is_it: Returns whether something is of this kind.
        read: Makes a recommender of it for a task.
        counts: Returns how many users and items it knows, given the number of users if that is
            known.
    """

    is_it: Callable[[Any], object]
    read: Callable[[Any, RankingTask], Recommender]
    counts: Callable[[Any, int | None], Counts] = lambda value, num_users: (None, None)


#: All that can be ranked. The first that fits is it.
RECOMMENDER_FORMS = (
    RecommenderForm(find_lightgcn, _from_lightgcn, _counts_of_lightgcn),
    RecommenderForm(library_of, _from_fitted),
    RecommenderForm(
        lambda value: isinstance(value, tuple | list), _from_embeddings, _counts_of_embeddings
    ),
    RecommenderForm(lambda value: isinstance(value, PairScorer), PairRecommender),
    RecommenderForm(is_model, ask_model),
    RecommenderForm(lambda value: isinstance(unwrapped(value), KGEModel), from_kge_model),
    RecommenderForm(
        lambda value: (
            isinstance(value, Mapping)
            or find_column(columns_of(value), "user", "item", "rank", "score") is not None
        ),
        _read_lists,
    ),
    RecommenderForm(
        lambda value: callable(value) and not isinstance(value, torch.nn.Module),
        FunctionRecommender,
    ),
    RecommenderForm(
        lambda value: hasattr(value, "__array__") or is_sparse_matrix(value),
        _from_numbers,
        _counts_of_numbers,
    ),
)


def find_recommender_form(value: object) -> RecommenderForm:
    """Returns what kind of recommender something is.

    Raises:
        TypeError: If it is none.
    """
    for form in RECOMMENDER_FORMS:
        if not isinstance(value, type) and form.is_it(value):
            return form
    raise _unknown_form(value)


def as_recommender(value: RecommenderLike, task: RankingTask) -> Recommender:
    """Converts `value` to a recommender, and checks that it fits the task.

    Args:
        value: What to rank, see :func:`pyg_recmetrics.rank`.
        task (RankingTask): The task, with the edges that a model propagates over.

    Raises:
        TypeError: If `value` has none of the forms that can be ranked.
        ValueError: If it does not fit the task.
    """
    return find_recommender_form(value).read(value, task)


def complete_counts(
    recommender: object, data: object, num_users: int | None, num_items: int | None
) -> Counts:
    """Returns the number of users and items, where ground-truth edges need them.

    What is given counts. What is not comes from the recommender. It stays `None` if this does not
    know it, or if `data` knows it by itself.
    """
    if not is_edges_like(data) or None not in (num_users, num_items):
        return num_users, num_items
    users, items = find_recommender_form(recommender).counts(recommender, num_users)
    return users if num_users is None else num_users, items if num_items is None else num_items
