"""Makes a recommender of whatever a user has: a model, embeddings, scores, a function or lists."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from pyg_recmetrics.checks import (
    check_device,
    check_edges,
    check_finite,
    check_ids,
    check_labels,
    check_scores,
    check_shape,
    check_weight,
)
from pyg_recmetrics.inputs import EdgesLike, TensorLike, as_tensor, is_sparse_matrix
from pyg_recmetrics.messages import warn
from pyg_recmetrics.ranking.embeddings import EmbeddingRecommender
from pyg_recmetrics.ranking.evaluation_mode import method_owner
from pyg_recmetrics.ranking.message_passing import find_doubt, read_message_passing
from pyg_recmetrics.ranking.models import (
    HasRecommend,
    ModelRecommender,
    Recommend,
    find_recommend,
    lightgcn_of,
    takes_edges,
    with_edges,
)
from pyg_recmetrics.ranking.pairs import PairRecommender, PairScorer
from pyg_recmetrics.ranking.recommender import Recommender
from pyg_recmetrics.ranking.recommenders import (
    FixedListRecommender,
    FunctionRecommender,
    MatrixRecommender,
)
from pyg_recmetrics.task import RankingTask

#: Whatever :func:`as_recommender` understands.
RecommenderLike: TypeAlias = (
    HasRecommend
    | Tensor
    | ArrayLike
    | tuple[TensorLike, TensorLike]
    | tuple[TensorLike, TensorLike, TensorLike]
    | list[TensorLike]
    | Callable[[Tensor], Tensor]
    | PairScorer
    | Recommend
)


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
    if isinstance(value, PairScorer):
        return PairRecommender(value, task)
    recommend = find_recommend(value)
    if recommend is not None:
        return _from_model(recommend, task, edge_index, edge_weight)
    if isinstance(value, torch.nn.Module):
        name = type(value).__name__
        raise TypeError(f"'recommender' needs to have a method 'recommend' (got {name} without)")
    if isinstance(value, tuple | list):
        return _from_embeddings(task, *_check_embeddings(tuple(value), task))
    if callable(value) and not isinstance(value, type):
        return FunctionRecommender(value, task)
    if isinstance(value, Tensor) or hasattr(value, "__array__") or is_sparse_matrix(value):
        tensor = as_tensor(value, "recommender")
        _check_order(value, tensor, task)
        return _from_tensor(tensor, task)
    raise TypeError(
        f"'recommender' needs to be a model with 'recommend', a pair of embeddings, a tensor or an "
        f"array of scores or item ids, or a function of users (got {type(value).__name__})"
    )


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
    recommend = find_recommend(value)
    if recommend is None:
        raise ValueError(
            f"'algorithm' can be 'recommend' for a model that has a method 'recommend' "
            f"(got {type(value).__name__})"
        )
    return _ask(recommend, task, edge_index, edge_weight)


def _from_model(
    recommend: Recommend,
    task: RankingTask,
    edge_index: EdgesLike | None,
    edge_weight: TensorLike | None,
) -> Recommender:
    model = lightgcn_of(recommend)
    if model is None:
        return _ask(recommend, task, edge_index, edge_weight)
    num_nodes = task.num_users + task.num_items
    if model.num_nodes != num_nodes:
        raise ValueError(
            f"'recommender' needs to have a node for each of {task.num_users} users and "
            f"{task.num_items} items (got {model.num_nodes} nodes)"
        )
    edges = _message_passing(recommend, task, edge_index, edge_weight)
    # LightGCN scores by inner products of embeddings, which it propagates anew in each call.
    embedding = check_scores(model.get_embedding(*edges), "recommender.get_embedding()")
    shape = (num_nodes, *embedding.shape[1:])
    check_shape(embedding, "recommender.get_embedding()", shape, "embeddings of all nodes")
    user, item = embedding.split([task.num_users, task.num_items])
    return _from_embeddings(task, *_check_embeddings((user, item), task))


def _ask(
    recommend: Recommend,
    task: RankingTask,
    edge_index: EdgesLike | None,
    edge_weight: TensorLike | None,
) -> Recommender:
    edges = _message_passing(recommend, task, edge_index, edge_weight)
    return ModelRecommender(with_edges(recommend, *edges), task)


def _message_passing(
    recommend: Recommend,
    task: RankingTask,
    edge_index: EdgesLike | None,
    edge_weight: TensorLike | None,
) -> tuple[Adj | None, Tensor | None]:
    """Returns the edges that a model propagates over, and their weights, after checking them."""
    model = method_owner(recommend)
    if isinstance(model, torch.nn.Module):
        parameter = next(model.parameters(), None)
        if parameter is not None:
            check_device(parameter, "recommender", task.device, "task")
    num_nodes = task.num_users + task.num_items
    edges, weight = read_message_passing(edge_index, edge_weight, num_nodes)
    if edges is None:
        edges, weight = task.edge_index, task.edge_weight if weight is None else weight
    if edges is None and takes_edges(recommend):
        raise ValueError(
            f"'edge_index' needs to be given for {type(model).__name__}: the edges it propagates "
            f"over, in its own numbering (a task that was read from data knows them)"
        )
    if edges is not None and not is_sparse(edges):
        plain = check_edges(edges, "edge_index")
        check_ids(plain, "edge_index", "node", num_nodes)
        check_device(plain, "edge_index", task.device, "task")
        if weight is not None:
            check_device(weight, "edge_weight", task.device, "task")
            check_weight(weight, "edge_weight", plain)
    if takes_edges(recommend) and (doubt := find_doubt(edges, task.num_users)):
        warn(doubt)
    return edges, weight


def _check_embeddings(parts: tuple[Any, ...], task: RankingTask) -> tuple[Tensor, ...]:
    if len(parts) not in (2, 3):
        raise ValueError(
            f"'recommender' needs to be (user_embedding, item_embedding) or (user_embedding, "
            f"item_embedding, item_bias) (got {len(parts)} parts)"
        )
    for part, ids in zip(parts, (task.user_ids, task.item_ids, task.item_ids), strict=False):
        check_labels(part, "recommender", ids)
    parts = tuple(check_scores(part, "recommender") for part in parts)
    dim = parts[0].size(-1) if parts[0].dim() else 0
    check_shape(parts[0], "recommender", (task.num_users, dim), "user embeddings")
    check_shape(parts[1], "recommender", (task.num_items, dim), "item embeddings")
    if len(parts) == 3:
        check_shape(parts[2], "recommender", (task.num_items,), "item biases")
    if dim == 0:
        raise ValueError("'recommender' needs to hold embeddings of one dimension or more (got 0)")
    for part in parts:
        if part.device.type != "cpu":  # a table on the host can pass through any device
            check_device(part, "recommender", task.device, "task")
        check_finite(part, "recommender")
    return parts


def _from_embeddings(
    task: RankingTask, user: Tensor, item: Tensor, bias: Tensor | None = None
) -> Recommender:
    if bias is not None:
        _check_range(user, item, bias)
    return EmbeddingRecommender(user, item, bias, task.device)


def _check_order(value: object, tensor: Tensor, task: RankingTask) -> None:
    """Raises if scores or lists have labels of users or items in another order than the task."""
    if tensor.dim() == 1:
        check_labels(value, "recommender", task.item_ids)
    elif tensor.is_floating_point():
        check_labels(value, "recommender", task.user_ids, task.item_ids)
    else:
        check_labels(value, "recommender", task.user_ids)


def _check_range(user: Tensor, item: Tensor, bias: Tensor) -> None:
    # A bias and the products it is added to share one scale. Otherwise, any size would do.
    largest = _largest(user) * _largest(item) * user.size(1) + _largest(bias)
    if largest > torch.finfo(torch.float32).max:
        raise ValueError(
            f"'recommender' needs to have scores in the range of single precision (got embeddings "
            f"whose scores may reach {largest:.1e})"
        )


def _largest(values: Tensor) -> float:
    return max(abs(float(bound)) for bound in values.aminmax())


def _from_tensor(value: Tensor, task: RankingTask) -> Recommender:
    check_device(value, "recommender", task.device, "task")
    if not value.is_floating_point():
        return _from_lists(value, task)
    check_scores(value, "recommender")
    if value.dim() == 1:
        check_shape(value, "recommender", (task.num_items,), "one score per item")
        return _from_item_scores(value, task)
    check_shape(
        value, "recommender", (task.num_users, task.num_items), "scores [num_users, num_items]"
    )
    return MatrixRecommender(value, task)


def _from_item_scores(scores: Tensor, task: RankingTask) -> Recommender:
    # The order of the scores is all that counts, and fits into single precision.
    level = scores.unique(return_inverse=True)[1]
    exact = level.float() if scores.numel() <= 2**24 else level.double()
    # What is not finite has no place in that order.
    exact = torch.where(scores.isfinite(), exact, scores.to(exact.dtype))
    return MatrixRecommender(exact.expand(task.num_users, -1), task)


def _from_lists(value: Tensor, task: RankingTask) -> Recommender:
    if value.dtype == torch.bool or value.is_complex():
        raise ValueError(f"'recommender' needs to hold scores or item ids (got {value.dtype})")
    if value.dim() != 2 or value.size(0) != task.num_users or value.size(1) == 0:
        is_one_per_item = value.shape == (task.num_items,)
        hint = "; scores need to be floating-point numbers" if is_one_per_item else ""
        raise ValueError(
            f"'recommender' needs to hold item ids of shape [{task.num_users}, K] "
            f"(got {list(value.shape)}){hint}"
        )
    return FixedListRecommender(value, task)
