"""Reads lists and embeddings that are labelled by the original ids of a task."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.inputs import as_tensor
from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.ranking.scores_and_lists import ListRecommender
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.data_frames import as_frame, look_up_ids, read_column

#: What a column of ids may be called in a frame of embeddings.
_ID_COLUMNS = ("id", "user_id", "item_id")

#: How many entries of lists are looked at at once.
_ENTRIES_AT_ONCE = 2**22

#: What to do if a task holds no ids.
_NEEDS_IDS = (
    "needs a task that holds the original ids, as 'RankingTask.from_frames' makes it, or "
    "RankingTask(..., user_ids=..., item_ids=...)"
)


class ListsByIdRecommender(ListRecommender):
    """Recommends from lists by the original ids, which differ in length.

    An item that the task does not have keeps its place, and is `-1`.

    Args:
        item (torch.Tensor): The items of one list after the other, of shape `[num_entries]`.
        ptr (torch.Tensor): The list of user `u` is that from `ptr[u]` to `ptr[u + 1]`.
        task (RankingTask): The task.
    """

    in_words = "lists of items by their original ids"

    max_depth: int

    def __init__(self, item: Tensor, ptr: Tensor, task: RankingTask) -> None:
        self.max_depth = int(ptr.diff().max())
        super().__init__(task, self.max_depth)
        self.item, self.ptr = item.to(task.device), ptr.to(task.device)

    def answer(self, users: Tensor) -> object:
        return self.item, self.ptr

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        place = torch.arange(self.max_depth, device=self.ptr.device)
        entry = self.ptr[chunk.users].unsqueeze(1) + place
        is_listed = entry < self.ptr[chunk.users + 1].unsqueeze(1)
        lists = self.item[entry.clamp_(max=self.item.numel() - 1)]
        return self.best_allowed(lists.masked_fill_(~is_listed, -1), chunk, k)


def are_lists_by_id(value: Any) -> bool:
    """Returns whether `value` is a dict, or a data frame with a column of lists by id."""
    columns = getattr(value, "columns", ())
    return isinstance(value, Mapping) or not {"user_id", "item_id"}.isdisjoint(columns)


def read_lists(value: Any, task: RankingTask) -> ListsByIdRecommender:
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
    return ListsByIdRecommender(item.masked_fill(item >= task.num_items, -1), ptr, task)


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
    labelled = _labelled(part)
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
    by = next((name for name in ("rank", "score") if name in frame.columns), None)
    if by is None or not {"user_id", "item_id"} <= {*frame.columns}:
        raise ValueError(
            f"'recommender' needs to have the columns 'user_id', 'item_id', and 'rank' or 'score' "
            f"(got {frame.columns})"
        )
    user, _ = look_up_ids(read_column(frame, "user_id", "user_id", "recommender"), users)
    item, unknown = look_up_ids(read_column(frame, "item_id", "item_id", "recommender"), items)
    value = as_tensor(read_column(frame, by, by, "recommender").to_numpy(), "recommender")
    order = item.sort(stable=True).indices
    for key, is_descending in ((value, by == "score"), (user, False)):
        order = order[key[order].sort(stable=True, descending=is_descending).indices]
    user, item, value = user[order], item[order], value[order]
    if by == "rank":
        _check_ranks(user, value)
    return user, item, unknown


def _check_ranks(user: Tensor, rank: Tensor) -> None:
    """Raises if the ranks of a user do not count from one on. Rows are sorted by user and rank."""
    is_first = torch.ones_like(user, dtype=torch.bool)
    is_first[1:] = user[1:] != user[:-1]
    place = torch.arange(user.numel(), device=user.device)
    start = torch.where(is_first, place, 0).cummax(0).values
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


def _labelled(part: Any) -> tuple[dict[Hashable, int], Any] | None:
    """Returns the row of every id, and the rows; `None` if nothing is labelled by ids."""
    if isinstance(part, Mapping):
        return _rows([*part]), [*part.values()]
    if hasattr(part, "columns"):
        return _read_vectors(part)
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


def _read_vectors(given: Any) -> tuple[dict[Hashable, int], Any] | None:
    column = next((name for name in _ID_COLUMNS if name in given.columns), None)
    if column is None:
        # A column of vectors whose labels are the ids is read as a series.
        is_column = hasattr(given, "iloc") and len(given.columns) == 1
        return _labelled(given.iloc[:, 0]) if is_column else None
    frame = as_frame(given, "recommender", "evaluate")
    number, ids = look_up_ids(read_column(frame, column, column, "recommender"), {})
    row = _rows([ids[place] for place in number.tolist()])
    rest = frame.drop(column)
    if len(rest.columns) == 1 and not rest[rest.columns[0]].dtype.is_numeric():
        return row, rest[rest.columns[0]].to_list()
    return row, rest.to_numpy()
