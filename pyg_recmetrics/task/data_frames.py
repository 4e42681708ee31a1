"""Reads interactions from data frames, and numbers users and items."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from pandas.api.types import is_numeric_dtype
from torch import Tensor

from pyg_recmetrics.checks import as_tensor, as_values, check_raw_ids
from pyg_recmetrics.utils import counted, list_some, warn, written_as

#: Names of columns in lower case without punctuation, by what the columns hold, most usual first.
_NAMES = {
    "user": "userid user uid users useridx customerid visitorid memberid accountid reviewerid "
    "sessionid session queryid qid query",
    "item": "itemid item iid items itemidx movieid productid articleid bookid artistid trackid "
    "songid gameid businessid newsid videoid asin parentasin isbn sku docid docno",
    "rating": "rating ratings stars relevance label overall weight",
    "score": "score scores prediction pred predicted estimate est",
    "rank": "rank ranking position",
    "time": "timestamp time unixtime unixreviewtime datetime date ts eventtime createdat",
    "vector": "features embedding embeddings vector vectors factors emb",
    "id": "id ids index",
}

#: How the columns of a file are named that has no names in its first line.
NO_HEADER = "pd.read_csv(..., names=['user_id', 'item_id', ...]) reads a file without a header"

#: How an integer is written, in up to 18 digits.
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def find_column(columns: Iterable[object], *what: str) -> str | None:
    """Returns the column with one of the usual names of what it holds; `None` if there is none.

    Case and punctuation do not count, nor does a type behind a colon, as RecBole writes it.

    Args:
        columns (iterable): The columns of a table.
        *what (str): What the column may hold, such as `"user"`, the first before the others.
    """
    by_name: dict[str, str] = {}
    for column in columns:
        if isinstance(column, str):
            by_name.setdefault(re.sub(r"[\W_]", "", column.partition(":")[0].lower()), column)
    names = (name for kind in what for name in _NAMES[kind].split())
    return next((by_name[name] for name in names if name in by_name), None)


def number_texts(columns: "Sequence[pd.Series[str]]") -> tuple[list[Any], list[Tensor]]:
    """Returns all ids in their order, and the numbers of the ids of each column.

    Ids are integers if all of them are written as such, and else texts.
    """
    codes, ids = pd.factorize(pd.concat(columns, ignore_index=True))
    if all(map(INTEGER.fullmatch, ids)):
        ids = ids.astype(np.int64)
    order = ids.argsort()
    numbers = torch.from_numpy(order.argsort()[codes])
    return ids[order].tolist(), list(numbers.split([*map(len, columns)]))


class FrameLike(Protocol):
    """A data frame of pandas or polars, or a table of pyarrow."""

    @property
    def columns(self) -> Any:
        """Returns the names of its columns."""

    def __getitem__(self, name: Any) -> Any:
        """Returns a column."""


def read_frames(
    test: FrameLike,
    train: FrameLike | None,
    *,
    user: str | None,
    item: str | None,
    rating: str | None,
    users: Any,
    items: Any,
    candidates: FrameLike | Sequence[Hashable] | None = None,
) -> dict[str, Any]:
    """Reads the arguments of a task from data frames.

    A warning names ids that only the test frame has.

    Raises:
        TypeError: If a frame is not a data frame, or all users or items are one.
        ValueError: If there is no such column, a value is missing, or an id is unknown.
    """
    are_shared = candidates is not None and not columns_of(candidates)
    if are_shared:  # ids in place of pairs
        ids = pd.Series(as_values(candidates, "candidates", "item ids"), dtype=object)
        candidates = pd.DataFrame({item or "item_id": ids})
    given = {"test": test, "train": train, "candidates": candidates}
    frames = {owner: frame for owner, frame in given.items() if frame is not None}
    of_item = {owner: read_column(frame, "item", item, owner) for owner, frame in frames.items()}
    if are_shared:
        del frames["candidates"]
    of_user = {owner: read_column(frame, "user", user, owner) for owner, frame in frames.items()}
    user_ids, user_numbers, new_users = _number(of_user, "user", users)
    item_ids, item_numbers, new_items = _number(of_item, "item", items)
    if len(of_user["test"]) == 0:
        raise ValueError("'test' needs to hold at least one row (got none)")
    edges = {owner: torch.stack([user_numbers[owner], item_numbers[owner]]) for owner in frames}
    weight = None
    if rating is not None:
        column = read_column(test, "rating", rating, "test")
        weight = as_tensor(column.to_numpy(), "rating")
    elif (name := find_column(columns_of(test), "rating")) is not None:
        grades = _as_series(test[name])
        if is_numeric_dtype(grades) and (num_zero := int((grades <= 0).sum())):
            warn(
                f"'test' has {counted(num_zero, 'rows')} whose {name!r} is zero or less, which "
                f"count as relevant: write rating={name!r} to leave them out"
            )
    new = [_in_words(ids, kind) for ids, kind in ((new_users, "user"), (new_items, "item")) if ids]
    if new and train is not None:
        both = (new_users, of_user["test"]), (new_items, of_item["test"])
        are_all_new = any(len(ids) == column.nunique() for ids, column in both)
        warn(
            f"'test' has {' and '.join(new)} that 'train' does not have, so nothing could be "
            f"learned about them{'. Are ids written in the same way in both?' * are_all_new}"
        )
    if train is None and items is None:
        all_of_them = written_as(f"items=catalogue[{of_item['test'].name!r}]", "--item-ids")
        warn(
            f"'test' comes alone, so only its {len(item_ids):,} items are candidates, which may "
            f"inflate metrics. Pass 'train', or the ids of all items, as in {all_of_them}"
        )
    return {
        "truth": edges["test"],
        "weight": weight,
        "seen": edges.get("train"),
        "candidates": edges.get("candidates", item_numbers.get("candidates")),
        "num_users": len(user_ids),
        "num_items": len(item_ids),
        "user_ids": user_ids,
        "item_ids": item_ids,
    }


def columns_of(frame: Any) -> list[Any]:
    """Returns the names of the columns of a data frame; none if it is not one."""
    # A table of pyarrow has columns that are no names, and a lazy frame has no shape.
    names = getattr(frame, "column_names", getattr(frame, "columns", ()))
    return list(names) if hasattr(frame, "shape") else []


def check_frame(frame: Any, name: str) -> list[Any]:
    """Returns the names of the columns of a data frame.

    Raises:
        TypeError: If it is not a data frame.
        ValueError: If two columns have one name.
    """
    names = columns_of(frame)
    if not (names or isinstance(frame, pd.DataFrame)):
        raise TypeError(
            f"'{name}' needs to be a data frame of pandas or polars (got {type(frame).__name__})"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"'{name}' needs to have columns of different names (got {names})")
    return names


def read_column(frame: Any, what: str, column: str | None, owner: str) -> "pd.Series[Any]":
    """Returns a column without missing values, by default the one with a usual name."""
    names = check_frame(frame, owner)
    if column is None and (column := find_column(names, what)) is None:
        raise ValueError(
            f"'{owner}' needs to have a column of {what}s with a usual name, such as '{what}_id' "
            f"(got {names}); from_frames(.., {what}=name) or frame.rename(columns=...) takes "
            f"others, and {NO_HEADER}"
        )
    if column not in names:
        raise ValueError(
            f"'{what}' needs to be a column of '{owner}', one of {names} (got {column!r})"
        )
    series = _as_series(frame[column])
    if num_missing := int(series.isna().sum()):
        raise ValueError(
            f"'{owner}' needs a value in every row of the column {column!r} (got {num_missing} "
            f"without); leave these rows out"
        )
    return series.rename(column)


def _as_series(values: Any) -> "pd.Series[Any]":
    """Returns a column of any library as one of pandas."""
    if isinstance(values, pd.Series):
        # Two columns may have different categories, so their values are what they share.
        is_category = isinstance(values.dtype, pd.CategoricalDtype)
        return values.astype(values.cat.categories.dtype) if is_category else values
    array = np.asarray(values)
    # Python has no nanoseconds, so that two times could become one.
    if array.ndim == 1 and (array.dtype.kind in "biuf" or array.dtype.str.endswith("[ns]")):
        return pd.Series(array)
    to_list = getattr(values, "to_pylist", getattr(values, "to_list", array.tolist))
    return pd.Series(to_list(), dtype=object)


def look_up_ids(column: "pd.Series[Any]", ids: Sequence[Hashable]) -> tuple[Tensor, list[Hashable]]:
    """Returns the number of the id in every row, and the ids that have none.

    These are numbered from `len(ids)` on.
    """
    place, found = _factorize(column, str(column.name))
    number = {id_: position for position, id_ in enumerate(ids)}
    for id_ in found:
        number.setdefault(id_, len(number))
    return _numbers_of(found, number)[place], [*number][len(ids) :]


def _number(
    columns: "Mapping[str, pd.Series[Any]]", side: str, known: Any
) -> tuple[tuple[Hashable, ...], dict[str, Tensor], list[Hashable]]:
    """Numbers the ids of a column of several frames in their order, or in that of all known ids.

    Returns:
        All ids, the number of the id of every row for each frame, and the ids that the test has
        and the training has not.
    """
    read = {owner: _factorize(column, side) for owner, column in columns.items()}
    own = {owner: set(ids) for owner, (_, ids) in read.items()}
    name = columns["test"].name
    _check_types(own, f"train[{name!r}]", side)
    found = set().union(*own.values())
    texts = {id_ for id_ in found if isinstance(id_, str)}
    if texts and (twice := texts & {str(id_) for id_ in found - texts}):
        raise ValueError(
            f"'{side}' needs to be a column in which ids are texts, or none is (got "
            f"{min(twice)!r} as a text and as another type); convert it, as in "
            f"test[{name!r}].astype(str)"
        )
    ids = tuple(_in_order(found)) if known is None else check_raw_ids(known, f"{side}s")
    if unknown := _in_order(found.difference(ids)):
        raise ValueError(
            f"'{side}s' needs to hold all {side}s of the frames (got none of "
            f"{_in_words(unknown, side)})"
            f"{written_as('', '; to rank some items alone, leave the others out of all files')}"
        )
    number = {id_: place for place, id_ in enumerate(ids)}
    numbers = {owner: _numbers_of(each, number)[place] for owner, (place, each) in read.items()}
    return ids, numbers, _in_order(own["test"] - own.get("train", set()))


def _check_types(ids: Mapping[str, set[Any]], column: str, side: str) -> None:
    """Raises if frames have no ids in common, as theirs are of different types."""
    types = {owner: sorted({type(id_).__name__ for id_ in own}) for owner, own in ids.items()}
    is_apart = all(ids.values()) and not set.intersection(*ids.values())
    if is_apart and types["test"] != types.get("train", types["test"]):
        raise ValueError(
            f"'{side}' needs to be a column of one type in both frames: convert one of them, as in "
            f"{column}.astype(str) (got {types})"
        )


def _factorize(column: "pd.Series[Any]", name: str) -> tuple[Tensor, list[Any]]:
    """Returns the distinct ids of a column, and which of these stands in every row."""
    try:
        place, ids = pd.factorize(column)
    except TypeError as error:
        raise TypeError(f"'{name}' needs to be a column of single ids ({error})") from error
    return torch.from_numpy(place).long(), ids.tolist()


def _numbers_of(ids: Iterable[Any], number: Mapping[Any, int]) -> Tensor:
    return torch.tensor([number[id_] for id_ in ids], dtype=torch.long, device="cpu")


def _in_order(ids: Iterable[Any]) -> list[Any]:
    try:
        return sorted(ids)
    except TypeError:  # ids of different types
        return sorted(ids, key=lambda id_: (type(id_).__name__, str(id_)))


def _in_words(ids: list[Hashable], kind: str) -> str:
    return f"{counted(len(ids), f'{kind}s')} ({list_some(map(repr, ids))})"
