"""Makes a recommender of whatever a user has: a model, embeddings, scores, a function or lists."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric.nn.kge import KGEModel
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
    EdgesLike,
    TensorLike,
    as_tensor,
    is_sparse_matrix,
    to_coordinates,
)
from pyg_recmetrics.messages import warn
from pyg_recmetrics.ranking.base import Recommender
from pyg_recmetrics.ranking.by_id import (
    are_lists_by_id,
    by_id,
    check_not_ids,
    read_lists,
)
from pyg_recmetrics.ranking.embeddings import EmbeddingRecommender
from pyg_recmetrics.ranking.evaluation_mode import state_of
from pyg_recmetrics.ranking.fitted import read_fitted
from pyg_recmetrics.ranking.forms import describe, unknown_form
from pyg_recmetrics.ranking.found_model import FoundModel, HasRecommend, find_model
from pyg_recmetrics.ranking.knowledge_graph import find_kge_model, from_kge_model
from pyg_recmetrics.ranking.message_passing import find_doubt, read_message_passing
from pyg_recmetrics.ranking.models import ModelRecommender
from pyg_recmetrics.ranking.pairs import PairRecommender, PairScorer
from pyg_recmetrics.ranking.recommend_forms import Recommend
from pyg_recmetrics.ranking.scores_and_lists import (
    SCORES_ARE_FLOATS,
    FixedListRecommender,
    FunctionRecommender,
    MatrixRecommender,
)
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.data_frames import FrameLike

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

#: How many entries of lists are looked at at once for repeats.
_ENTRIES_AT_ONCE = 2**22

#: Edges as they are passed to :func:`as_recommender`, and their weights.
_GivenEdges: TypeAlias = tuple[EdgesLike | None, TensorLike | None]


def as_recommender(
    value: RecommenderLike,
    task: RankingTask,
    edge_index: EdgesLike | None = None,
    edge_weight: TensorLike | None = None,
) -> Recommender:
    """Converts `value` to a recommender, and checks that it fits the task.

    Args:
        value: What to rank, see :func:`pyg_recmetrics.rank`.
        task (RankingTask): The task.
        edge_index (torch.Tensor or SparseTensor, optional): The edges that a model propagates
            over. (default: `None`, those of the task)
        edge_weight (torch.Tensor, optional): Their weights. (default: `None`)

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
        return _from_model(model, task, (edge_index, edge_weight))
    if (kge_model := find_kge_model(value)) is not None:
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
        tensor = as_tensor(value, "recommender")
        _check_order(value, tensor, task)
        return _from_tensor(tensor, task)
    raise unknown_form(value)


def ask_model(
    value: object,
    task: RankingTask,
    edge_index: EdgesLike | None = None,
    edge_weight: TensorLike | None = None,
) -> Recommender:
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
    return _ask(model, task, (edge_index, edge_weight))


def _ask(model: FoundModel, task: RankingTask, given: _GivenEdges) -> Recommender:
    edges = _message_passing(model, task, given)
    recommender = ModelRecommender(
        model.with_edges(*edges),
        task,
        takes_users="src_index" in model.form.arguments,
        takes_items="dst_index" in model.form.arguments,
    )
    recommender.in_words = f"{model.form} of {model.name}"
    recommender.state = _state(model, *edges)
    return recommender


def _from_model(model: FoundModel, task: RankingTask, given: _GivenEdges) -> Recommender:
    if model.lightgcn is None:
        return _ask(model, task, given)
    _check_num_nodes(model.lightgcn.num_nodes, task)
    # LightGCN scores by inner products of embeddings, which it propagates anew in each call.
    edges = _message_passing(model, task, given)
    embedding = model.lightgcn.get_embedding(*edges)
    embedding = check_scores(embedding, "recommender.get_embedding()")
    shape = (task.num_users + task.num_items, *embedding.shape[1:])
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


def _check_num_nodes(num_nodes: int, task: RankingTask) -> None:
    if num_nodes != (wanted := task.num_users + task.num_items):
        raise ValueError(
            f"'recommender' needs to have a node for each of {task.num_users} users and "
            f"{task.num_items} items (got {num_nodes} nodes); make it as LightGCN({wanted}, ...), "
            f"or give the task the 'num_users' and 'num_items' that it was made for"
        )


def _message_passing(
    model: FoundModel, task: RankingTask, given: _GivenEdges
) -> tuple[Adj | None, Tensor | None]:
    """Returns the edges that a model propagates over, and their weights, after checking them."""
    if isinstance(model.bound_object, torch.nn.Module):
        parameter = next(model.bound_object.parameters(), None)
        if parameter is not None:
            check_device(parameter, "recommender", task.device, "task")
    num_nodes = task.num_users + task.num_items
    edges, weight = read_message_passing(*given, num_nodes)
    if edges is None:
        edges, weight = task.edge_index, task.edge_weight if weight is None else weight
    if edges is None and model.takes_edges:
        raise ValueError(
            f"'edge_index' needs to be given for {model.name}: the edges it propagates over, in "
            f"its own numbering (a task that was read from data knows them)"
        )
    if edges is not None and not is_sparse(edges):
        plain = check_edges(edges, "edge_index")
        check_ids(plain, "edge_index", "node", num_nodes)
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
    return isinstance(part, tuple | list) and not any(map(_has_parts, part[:1]))


def _has_parts(value: object) -> bool:
    return isinstance(value, tuple | list | Tensor | np.ndarray)


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


def _check_order(value: object, tensor: Tensor, task: RankingTask) -> None:
    """Raises if scores or lists have labels of users or items in another order than the task."""
    if tensor.dim() == 1:
        check_labels(value, "recommender", task.item_ids)
    elif tensor.is_floating_point():
        check_labels(value, "recommender", task.user_ids, task.item_ids)
    else:
        check_labels(value, "recommender", task.user_ids)


def _from_tensor(value: Tensor, task: RankingTask) -> Recommender:
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
    return FixedListRecommender(value, task)


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
