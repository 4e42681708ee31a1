"""Data frames of a result: its means, users, lists and items."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from pyg_recmetrics.kernels.entries import max_id
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges, evaluated_mask, lists_of
from pyg_recmetrics.utils import list_some


def frame_of_means(means: Mapping[Metric, Mapping[str, float]]) -> pd.DataFrame:
    """Returns a row for every metric: `metric`, `k`, and what is given by name."""
    rows = [{"metric": metric.label, "k": metric.k, **mean} for metric, mean in means.items()]
    return pd.DataFrame(rows, index=list(map(str, means))).astype({"k": "Int64"})


def frame_of_users(
    ranked: RankedEdges, query: Tensor | None, values: Mapping[str, Tensor]
) -> pd.DataFrame:
    """Returns a row for every user who is evaluated: `user`, `degree`, and a column per metric.

    If each row is an edge, `item` takes the place of `degree`. Queries have a column for each of
    theirs, from `query_0` on.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        query (torch.Tensor, optional): The columns of every query, of shape
            `[num_users, num_columns]`.
        values (mapping): The value of every row by metric, of shape `[num_users]`.
    """
    rows = evaluated_mask(ranked).nonzero().squeeze(1)
    users = rows if ranked.origin.user_of_row is None else ranked.origin.user_of_row[rows]
    of_query = () if query is None else query.unbind(1)
    columns = {f"query_{number}": column[users] for number, column in enumerate(of_query)}
    if ranked.origin.user_of_row is None:
        columns["degree"] = ranked.degree[rows]
    columns |= {name: value[rows] for name, value in values.items()}
    frame = frame_by_id("user", users, ranked.user_ids, columns)
    if ranked.origin.user_of_row is not None:
        items = named_ids(ranked.edge_label_index[1], ranked.item_ids)
        frame.insert(1 + len(of_query), "item", items)
    return frame


def frame_of_lists(ranked: RankedEdges, k: int, users: Iterable[Any] | None) -> pd.DataFrame:
    """Returns a row for every item in the top `k`: `user`, `rank`, `item` and `is_relevant`.

    Args:
        ranked (RankedEdges): The ranked ground truth, with lists.
        k (int): The cut-off.
        users (iterable, optional): The original ids of the users, or their row numbers if there
            are no others; `None` for all users.

    Raises:
        TypeError: If `users` does not hold ids.
        ValueError: If lists were not kept down to `k`, or `users` holds others than those who are
            evaluated.
    """
    user, rank, item = lists_of(ranked, k).places(k, _numbers_of(users, ranked))
    return pd.DataFrame(
        {
            "user": named_ids(user, ranked.user_ids),
            "rank": rank.cpu().numpy(),
            "item": named_ids(item, ranked.item_ids),
            "is_relevant": _is_truth(ranked, user, item).cpu().numpy(),
        }
    )


def frame_of_items(ranked: RankedEdges, is_hit: Tensor, name: str) -> pd.DataFrame:
    """Returns a row for every item of the truth: `item`, `degree`, `hits`, and their ratio.

    There is a column `popularity`, too, if seen edges are known.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        is_hit (torch.Tensor): Whether each edge counts as retrieved, of shape `[num_edges]`.
        name (str): What the ratio is called.
    """
    items, index, degree = ranked.edge_label_index[1].unique(
        return_inverse=True, return_counts=True
    )
    hits = torch.bincount(index[is_hit], minlength=items.numel())
    columns = {"degree": degree, "hits": hits, name: hits.double() / degree}
    if ranked.catalogue is not None and ranked.catalogue.seen is not None:
        columns["popularity"] = ranked.catalogue.popularity[items]
    return frame_by_id("item", items, ranked.item_ids, columns)


def frame_by_id(
    key: str,
    numbers: Tensor,
    ids: Sequence[Any] | None,
    columns: Mapping[str, Tensor],
) -> pd.DataFrame:
    """Returns a row for each of some users or items: its original id, and the given columns.

    Args:
        key (str): The name of the column of ids.
        numbers (torch.Tensor): The numbers of users or items, of shape `[num_rows]`.
        ids (sequence, optional): The original ids of all users or items; `None` if there are none.
        columns (mapping): The other columns by name, of shape `[num_rows]`.
    """
    frame = pd.DataFrame({name: column.cpu().numpy() for name, column in columns.items()})
    frame.insert(0, key, named_ids(numbers, ids))
    return frame


def named_ids(numbers: Tensor, ids: Sequence[Any] | None) -> Any:
    """Returns the original ids of users or items, a column of the type that these have."""
    rows = numbers.cpu().numpy()
    return rows if ids is None else pd.Index(ids, tupleize_cols=False)[rows]


def _numbers_of(users: Iterable[Any] | None, ranked: RankedEdges) -> Tensor:
    """Returns the row numbers of users, in the order in which they are asked for."""
    evaluated = evaluated_mask(ranked).nonzero().squeeze(1)
    if users is None:
        return evaluated
    # Tensors, arrays and series return their values as Python's own.
    asked = users.tolist() if hasattr(users, "tolist") else users
    if isinstance(asked, str) or not isinstance(asked, Iterable):
        raise TypeError(f"'users' needs to be a sequence of user ids (got {type(users).__name__})")
    known = pd.Index(named_ids(evaluated, ranked.user_ids), tupleize_cols=False)
    try:
        wanted = pd.Index([*asked], tupleize_cols=False)
        place = known.get_indexer(wanted)
    except TypeError as error:
        raise TypeError(f"'users' needs to hold user ids (got an {error})") from error
    if unknown := list(map(repr, wanted[place < 0].tolist())):
        raise ValueError(f"'users' needs to hold ids of evaluated users (got {list_some(unknown)})")
    return evaluated[torch.from_numpy(place).to(evaluated.device)]


def _is_truth(ranked: RankedEdges, user: Tensor, item: Tensor) -> Tensor:
    """Returns whether each pair of a user and an item is a ground-truth edge."""
    user_of_edge, item_of_edge = ranked.edge_label_index
    num_items = max_id(item, item_of_edge) + 1
    return torch.isin(user * num_items + item, user_of_edge * num_items + item_of_edge)
