"""What users or items differ in, and the conditions by which slices are made of it."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_recmetrics.checks import check_labels
from pyg_recmetrics.labels import is_missing, read_labels
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.results.cohorts import quantile_bins
from pyg_recmetrics.task import Catalogue, RankingTask
from pyg_recmetrics.task.data_frames import FrameLike, as_frame

#: A value of each user or item, missing ones among them.
Column: TypeAlias = NDArray[Any]

#: Columns of users or items: a data frame with their ids, or arrays by name in the order of rows.
FeaturesLike: TypeAlias = FrameLike | Mapping[str, Any]

#: How many groups of about the same size the values of a feature are cut into.
_NUM_BINS = 8

#: How many of the most frequent labels of a feature are conditions.
_MOST_LABELS = 50

#: A range of numbers, and what it says.
_Condition: TypeAlias = tuple[int, int, str]

#: The kinds of NumPy's dtypes that have an order in which ranges make sense.
_ORDERED = "iufmM"


@dataclass(frozen=True, eq=False)
class Feature:
    """Something in which users or items differ, cut into a few numbered values.

    A condition is a range of these numbers.

    Attributes:
        code (torch.Tensor): The number of the value of each row, of shape `[num_rows]`.
        first (torch.Tensor): The first number of each condition, of shape `[num_conditions]`.
        last (torch.Tensor): The last number of each condition.
        labels (sequence of str): What each condition says.
    """

    code: Tensor
    first: Tensor
    last: Tensor
    labels: Sequence[str]

    @property
    def size(self) -> int:
        """The number of values."""
        return int(torch.cat([self.code, self.last]).max()) + 1

    def is_met(self, condition: int) -> Tensor:
        """Returns which rows meet a condition, a mask of shape `[num_rows]`."""
        return (self.code >= self.first[condition]) & (self.code <= self.last[condition])


def anything(num_rows: int) -> Feature:
    """Returns what all rows have in common, whose only condition all of them meet."""
    none = torch.zeros(1, dtype=torch.long, device="cpu")
    return Feature(none.expand(num_rows), none, none, [""])


def make_feature(name: str, column: Column) -> Feature:
    """Cuts a column into values: ordered ones into groups of about the same size.

    Args:
        name (str): The name of the column.
        column (numpy.ndarray): Its values, of shape `[num_rows]`.
    """
    missing = _is_missing(column)
    known = column[~missing]
    if known.dtype == object and _are_all(known, Real):
        known = known.astype(np.float64)
    is_ordered = known.dtype.kind in _ORDERED or _are_all(known, datetime.date)
    distinct, number = _distinct(known)
    code, conditions = (_ranges if is_ordered else _labels)(name, distinct, number)
    # What is missing has the last number.
    num_codes = int(code.max()) + 1 if len(code) else 0
    code_of_all = torch.full(column.shape, num_codes, device="cpu")
    code_of_all[torch.from_numpy(~missing)] = code
    if missing.any():
        conditions.append((num_codes, num_codes, f"{name} missing"))
    first, last = (
        torch.tensor([end[side] for end in conditions], dtype=torch.long, device="cpu")
        for side in (0, 1)
    )
    return Feature(code_of_all, first, last, [label for _, _, label in conditions])


def columns_of_users(ranked: RankedEdges, task: RankingTask | None) -> dict[str, Column]:
    """Returns what is known of the user of each row: their history, and their truth."""
    user, catalogue = ranked.user_of_row, ranked.catalogue
    num_users = num_users_of(ranked, task)
    seen = _seen_by(num_users, catalogue, task)
    columns: dict[str, Column] = {}
    if seen is not None and catalogue is not None:
        columns |= _columns_of_histories(seen, num_users, catalogue)
    degree = ranked.degree if user is None else torch.bincount(user, minlength=num_users)
    columns["relevant items"] = degree.cpu().numpy()
    columns = rows_of_users(columns, ranked)
    if user is not None and catalogue is not None and catalogue.seen is not None:
        popularity = catalogue.popularity[ranked.edge_label_index[1]]
        columns["popularity of the item"] = popularity.cpu().numpy()
    return columns


def num_users_of(ranked: RankedEdges, task: RankingTask | None) -> int:
    """Returns the number of users, of whom each may have several rows."""
    if ranked.user_of_row is None:
        return ranked.num_users
    known = 0 if task is None else task.num_users
    return max(known, int(ranked.user_of_row.max()) + 1)


def rows_of_users(columns: Mapping[str, Column], ranked: RankedEdges) -> dict[str, Column]:
    """Returns columns of users as those of rows, of which a user may have several."""
    if ranked.user_of_row is None:
        return dict(columns)
    user = ranked.user_of_row.cpu().numpy()
    return {name: column[user] for name, column in columns.items()}


def columns_of_items(ranked: RankedEdges, degree: Tensor) -> dict[str, Column]:
    """Returns what is known of all items.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        degree (torch.Tensor): To how many users each item is relevant, of shape `[num_items]`.
    """
    columns, catalogue = {"ground-truth degree": degree.cpu().numpy()}, ranked.catalogue
    if catalogue is None:
        return columns
    if catalogue.seen is not None:
        columns["training degree"] = catalogue.popularity.cpu().numpy()
    if catalogue.item_category is not None:
        category = catalogue.item_category.cpu()
        if category.dim() == 1:
            return columns | {"category": _named(category)}
        for number, has_it in enumerate((category > 0).T[:_MOST_LABELS]):
            columns[f"category {number}"] = has_it.numpy()
    return columns


def read_columns(
    features: FeaturesLike | None, ids: Sequence[Any] | None, num_rows: int, key: str
) -> dict[str, Column]:
    """Reads the columns that somebody has of all users or items.

    Args:
        features (data frame or mapping): The columns.
        ids (sequence, optional): The original ids, in the order of the rows; `None` if these are
            the numbers from `0` on.
        num_rows (int): How many users or items there are.
        key (str): What has an id: `"user"` or `"item"`.

    Raises:
        TypeError: If `features` is something else.
        ValueError: If an array has another length, or a frame has no ids, repeats one, or has none
            of those that are needed.
    """
    if features is None:
        return {}
    if isinstance(features, Mapping):
        for values in features.values():
            check_labels(values, "features", ids)
        return {str(name): _as_column(name, x, num_rows, key) for name, x in features.items()}
    return _read_frame(features, range(num_rows) if ids is None else ids, key)


def _as_column(name: Any, values: Any, num_rows: int, key: str) -> Column:
    column = values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if column.shape != (num_rows,):
        raise ValueError(
            f"'features' needs to have a value for every {key}, of shape [{num_rows}] "
            f"(got {list(column.shape)} for '{name}')"
        )
    return column


def _read_frame(features: FrameLike, ids: Iterable[Any], key: str) -> dict[str, Column]:
    """Returns the columns of a data frame in the order of ids; ids without a row have none."""
    frame = as_frame(features, "features", "slices")
    names = (key, f"{key}_id", "id")
    column = next((name for name in names if name in frame.columns), None)
    if column is not None:
        given = frame.get_column(column).to_list()
    elif getattr(index := getattr(features, "index", None), "name", None) in names:
        given = index.tolist()  # type: ignore[union-attr]
    else:
        raise ValueError(
            f"'features' needs to have a column or an index of ids that is called '{key}', "
            f"'{key}_id' or 'id' (got the columns {frame.columns})"
        )
    row = {id_: place for place, id_ in enumerate(given)}
    if len(row) < len(given):
        raise ValueError(
            f"'features' needs to have one row for every {key} (got {len(given)} rows of "
            f"{len(row)})"
        )
    place = np.array([row.get(id_, -1) for id_ in ids])
    if (place < 0).all():
        raise ValueError(
            f"'features' needs to have rows of the {key}s of the result (got ids such as "
            f"{next(iter(row), None)!r}, where {next(iter(ids), None)!r} is needed)"
        )
    rest = [name for name in frame.columns if name != column]
    return {name: _in_order(frame.get_column(name).to_numpy(), place) for name in rest}


def _in_order(column: Column, place: Column) -> Column:
    """Returns values in another order, in which those at `-1` are missing."""
    if (place >= 0).all():
        return column[place]
    of_known = column.astype(object) if column.dtype.kind not in "fmM" else column
    ordered = of_known[place]
    ordered[place < 0] = np.datetime64("NaT") if column.dtype.kind in "mM" else np.nan
    return ordered


def _seen_by(
    num_users: int, catalogue: Catalogue | None, task: RankingTask | None
) -> Tensor | None:
    """Returns what the users have seen, edges of shape `[2, num_seen]`; `None` if unknown."""
    if task is not None:
        return task.seen if task.seen.numel() else None
    if catalogue is None or catalogue.seen is None:
        return None
    # The catalogue may know of others who have seen the items.
    seen = catalogue.interactions
    return seen[:, seen[0] < num_users]


def _columns_of_histories(seen: Tensor, num_users: int, catalogue: Catalogue) -> dict[str, Column]:
    user, item = seen
    degree = torch.bincount(user, minlength=num_users)
    popularity = torch.bincount(user, catalogue.popularity[item].double(), minlength=num_users)
    columns = {
        "training degree": degree.cpu().numpy(),
        "popularity of the history": (popularity / degree).cpu().numpy(),
    }
    if catalogue.item_category is not None:
        columns |= _columns_of_categories(user, item, num_users, catalogue.item_category)
    return columns


def _columns_of_categories(
    user: Tensor, item: Tensor, num_users: int, category: Tensor
) -> dict[str, Column]:
    """Returns the most frequent category of each history, and over how many it is spread."""
    user, label, num_categories = _categories_of_edges(user.cpu(), item.cpu(), category.cpu())
    pair, count = (user * num_categories + label).unique(return_counts=True)
    user, label = pair // num_categories, pair % num_categories
    total = torch.bincount(user, count, minlength=num_users)
    share = count / total[user]
    entropy = torch.bincount(user, -share * share.log2(), minlength=num_users)
    # The largest count, and of equal ones the lowest number, which counts down.
    key = count * num_categories + (num_categories - 1 - label)
    largest = torch.full((num_users,), -1).scatter_reduce(0, user, key, "amax")
    main = torch.where(largest < 0, -1, num_categories - 1 - largest % num_categories)
    return {
        "main category": _named(main),
        "categories of the history": torch.where(total > 0, 2**entropy, torch.nan).numpy(),
    }


def _categories_of_edges(
    user: Tensor, item: Tensor, category: Tensor
) -> tuple[Tensor, Tensor, int]:
    """Returns the user and the category of every edge, once for each category of its item."""
    if category.dim() == 1:
        return user, category[item], int(category.max()) + 1
    labels = (category > 0).nonzero()[:, 1]
    number = (category > 0).sum(dim=1)
    start = number.cumsum(0) - number
    edge = torch.arange(len(item)).repeat_interleave(number[item])
    first = number[item].cumsum(0) - number[item]
    place = start[item[edge]] + torch.arange(len(edge)) - first[edge]
    return user[edge], labels[place], category.size(1)


def _named(number: Tensor) -> Column:
    """Returns numbers as names, which have no order; those below zero are missing."""
    return np.array([None if each < 0 else str(each) for each in number.tolist()], dtype=object)


def _is_missing(column: Column) -> Column:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype == object:
        return np.array([is_missing(value) for value in column], dtype=bool)
    return np.zeros(column.shape, dtype=bool)


def _are_all(column: Column, kind: type) -> bool:
    return column.dtype == object and all(
        isinstance(value, kind) and not isinstance(value, bool) for value in column
    )


def _distinct(column: Column) -> tuple[list[Any], Tensor]:
    """Returns the distinct values in their order, and the number of each value."""
    if column.dtype != object:
        distinct, place = np.unique(column, return_inverse=True)
        return list(distinct), torch.from_numpy(place.reshape(-1))
    number, labels = read_labels(column.tolist(), "features", "row", len(column))
    return labels, number


def _ranges(name: str, distinct: Sequence[Any], number: Tensor) -> tuple[Tensor, list[_Condition]]:
    """Cuts values into groups, and returns all ranges of groups but for that of all of them."""
    group = quantile_bins(number, _NUM_BINS)
    num_groups = int(group.max()) + 1 if len(group) else 0
    lowest = [distinct[int(number[group == each].min())] for each in range(num_groups)]
    highest = [distinct[int(number[group == each].max())] for each in range(num_groups)]
    conditions = [
        (first, last, f"{name} {_words(lowest, highest, first, last)}")
        for first in range(num_groups)
        for last in range(first, num_groups)
        if last - first + 1 < num_groups
    ]
    return group, conditions


def _words(lowest: Sequence[Any], highest: Sequence[Any], first: int, last: int) -> str:
    low, high = _format(lowest[first]), _format(highest[last])
    if low == high:
        return f"= {low}"
    if first == 0:
        return f"≤ {high}"
    return f"≥ {low}" if last == len(highest) - 1 else f"{low} to {high}"


def _format(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if abs(float(value)) >= 1000 else f"{value:.3g}"
    return str(value.astype("M8[D]")) if isinstance(value, np.datetime64) else str(value)


def _labels(name: str, distinct: Sequence[Any], number: Tensor) -> tuple[Tensor, list[_Condition]]:
    """Takes the most frequent labels for conditions. No condition is about the others."""
    count = torch.bincount(number, minlength=len(distinct))
    frequent = count.argsort(descending=True, stable=True)[:_MOST_LABELS].sort().values
    return number, [(each, each, f"{name} = {distinct[each]}") for each in frequent.tolist()]
