"""Reads ground-truth edges that are given in place of a graph, in either of their numberings."""

from typing import NamedTuple

from torch import Tensor

from pyg_recmetrics.checks import (
    check_device,
    check_ids,
    check_matrix,
    check_pairs,
    check_positive_integer,
    check_weighted_edges,
)
from pyg_recmetrics.inputs import EdgesLike, TensorLike, is_sparse_matrix, shape_of
from pyg_recmetrics.task.graph import to_bipartite


class GivenEdges(NamedTuple):
    """Edges in local ids, and message-passing edges as they were given.

    Attributes:
        num_users: The number of users.
        num_items: The number of items.
        truth: The ground truth, of shape `[2, num_edges]`.
        weight: Its weights, if it came as a matrix of them.
        seen: What users have seen, if message-passing edges were given.
        edge_index: The message-passing edges, in the numbering of the model.
        edge_weight: Their weights.
    """

    num_users: int
    num_items: int
    truth: Tensor
    weight: Tensor | None
    seen: Tensor | None = None
    edge_index: Tensor | None = None
    edge_weight: Tensor | None = None


def read_given_edges(
    truth: EdgesLike,
    edge_index: EdgesLike | None,
    edge_weight: TensorLike | None,
    *,
    num_users: int | None,
    num_items: int | None,
) -> GivenEdges:
    """Reads ground-truth edges, and the message-passing edges of a model.

    Raises:
        TypeError: If edges do not hold numbers.
        ValueError: If the number of users or items is not known, ids are wrong, or the numbering of
            the ground truth is in doubt.
    """
    num_users, num_items = _counts(truth, num_users, num_items)
    edges, weight = check_weighted_edges(truth, None, "data", "weight")
    if is_sparse_matrix(truth):
        check_matrix(truth, "data", num_users, num_items)
    else:
        edges = _to_local(edges, num_users, num_items)
        check_pairs(edges, "data", num_users, num_items)
    given = GivenEdges(num_users, num_items, edges, weight)
    if edge_index is None:
        return given
    edge_index, message_weight = check_weighted_edges(
        edge_index, edge_weight, "edge_index", "edge_weight"
    )
    check_ids(edge_index, "edge_index", "node", num_users + num_items)
    check_device(edge_index, "edge_index", edges.device, "data")
    return given._replace(
        seen=to_bipartite(edge_index, "edge_index", num_users),
        edge_index=edge_index,
        edge_weight=message_weight,
    )


def _counts(truth: EdgesLike, num_users: int | None, num_items: int | None) -> tuple[int, int]:
    """Returns the number of users and items: as given, or as the shape of a matrix says."""
    shape = shape_of(truth) if is_sparse_matrix(truth) else None
    of_matrix = shape if shape and len(shape) == 2 else (None, None)
    counts = []
    for name, given, known in zip(
        ("num_users", "num_items"), (num_users, num_items), of_matrix, strict=True
    ):
        count = known if given is None else given
        if count is None:
            raise ValueError(
                f"'{name}' needs to be given for edges: only a matrix, a graph, embeddings and "
                f"scores know it by themselves (got None)"
            )
        counts.append(check_positive_integer(count, name))
    return counts[0], counts[1]


def _to_local(edges: Tensor, num_users: int, num_items: int) -> Tensor:
    """Returns edges from users to items in local ids, if their numbering is beyond doubt.

    Local items are numbered from 0 on, those of a homogeneous graph from `num_users` on.
    """
    if edges.size(1) == 0:
        return edges
    is_user = edges < num_users
    is_of_graph = bool((is_user[0] != is_user[1]).all()) and int(edges.max()) < (
        num_users + num_items
    )
    is_local = bool(is_user[0].all()) and int(edges[1].max()) < num_items
    if is_of_graph and is_local:
        raise ValueError(
            f"'data' needs to be numbered beyond doubt (got items from {int(edges[1].min())} to "
            f"{int(edges[1].max())} for {num_users} users and {num_items} items, which may be "
            f"numbered from 0 or from 'num_users' on); write RankingTask(edge_label_index, "
            f"num_users={num_users}, num_items={num_items}, seen=...) for edges whose items are "
            f"numbered from 0 on, after edge_label_index[1] -= {num_users} if they are not"
        )
    return to_bipartite(edges, "data", num_users) if is_of_graph else edges
