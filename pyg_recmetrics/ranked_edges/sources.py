"""Lists, and the ground truth of lists, pairs, negatives and files that others have ranked."""

import csv
import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import lexsort

from pyg_recmetrics.checks import (
    check_device,
    check_double_precision,
    check_finite,
    check_finite_number,
    check_integer,
    check_integers,
    check_matrix,
    check_pairs,
    check_ranked_scores,
    check_scores,
    check_weight,
    check_weighted_edges,
)
from pyg_recmetrics.inputs import EdgesLike, TensorLike, as_tensor
from pyg_recmetrics.kernels.devices import at_once
from pyg_recmetrics.kernels.entries import max_id
from pyg_recmetrics.kernels.exact.ranks import (
    Ranks,
    ranks_in_lists,
    ranks_within_rows,
    without_repeats,
)
from pyg_recmetrics.task.data_frames import number_texts
from pyg_recmetrics.task.edges import coalesce_truth
from pyg_recmetrics.utils import list_some, reading, warn


class ListStatistics(NamedTuple):
    """Counts of items in the lists of users, down to the depth of each ranking: `[num_users]` each.

    All of them are `-1` for users whose lists were not looked at.

    Attributes:
        length: How long the list is, up to the last place that holds an item.
        num_items: How many of its items are candidates.
        num_unknown: How many of its items the task does not have.
        num_empty: How many of its places hold no item, though there are candidates for them.
        num_dropped: How many items were left out of it, as the user must not get them.
    """

    length: Tensor
    num_items: Tensor
    num_unknown: Tensor
    num_empty: Tensor
    num_dropped: Tensor


def describe_lack(
    table: Tensor,
    degree: Tensor,
    num_candidates: Tensor,
    depth: int | None,
    needs_degree: bool,
    user_ids: Sequence[Hashable] | None = None,
    users: str = "users",
) -> str | None:
    """Says how many users with truth have too few items in their lists, and why; or `None`.

    Args:
        table (torch.Tensor): The columns of :class:`ListStatistics`, of shape `[num_users, 5]`.
        degree (torch.Tensor): How many items are relevant to each user, of shape `[num_users]`.
        num_candidates (torch.Tensor): How many items each can get, of shape `[num_users]`.
        depth (int or None): How many items are looked at; `None` for all candidates.
        needs_degree (bool): Whether as many items as are relevant are looked at, too.
        user_ids (sequence, optional): The original ids of users. (default: `None`, row numbers)
        users (str, optional): What the users are called. (default: `"users"`)
    """
    is_counted = (degree > 0) & (table[:, 0] >= 0)
    listed = ListStatistics(*table[is_counted].unbind(1))
    wanted, what = num_candidates[is_counted], "fewer items than candidates"
    if depth is not None:
        deepest = degree[is_counted] if needs_degree else torch.zeros_like(wanted)
        wanted = wanted.minimum(deepest.clamp(min=depth).to(wanted))
        what = f"fewer than {depth} items" + (", or than are relevant" if needs_degree else "")
        if depth == 1 and needs_degree:
            what = "fewer items than are relevant"
    num_places = listed.num_items + listed.num_unknown
    is_short, is_none = num_places < wanted, listed.length == 0
    if not bool(is_short.any()):
        return None
    num_seen, num_empty, num_none = (
        int(number[is_short].sum()) for number in (listed.num_dropped, listed.num_empty, is_none)
    )
    reasons = []
    if num_seen:
        top = "" if depth is None else f" before taking the top {depth}"
        reasons.append(
            f"{num_seen:,} of theirs may not be retrieved, such as seen ones: leave these out{top}"
        )
    if num_empty:
        share = float(listed.num_empty.sum() / (num_places + listed.num_empty).sum())
        reasons.append(f"{share:.1%} of all places hold no item")
    if num_none:
        rows = is_counted.nonzero().squeeze(1)[is_none & is_short].tolist()
        named = list_some([repr(row if user_ids is None else user_ids[row]) for row in rows])
        reasons.append(f"there is no list for {num_none:,} ({named})")
    why = ", and ".join(reasons) or "the lists are shorter"
    return f"{what} for {int(is_short.sum()):,} of {is_short.numel():,} {users}, as {why}"


@dataclass(frozen=True, eq=False)
class Lists:
    """The recommended items of every user, best first, one list after the other.

    A matrix of lists is one without being copied. Lists of different length, as files hold them, do
    not have to be padded to the longest.

    Attributes:
        item: Item ids of shape `[num_places]`; `-1` for a place without an item, and lower numbers
            for items that the catalogue does not have.
        ptr: The places of user `u` are those from `ptr[u]` to `ptr[u + 1]`. Of shape
            `[num_users + 1]`.
    """

    item: Tensor
    ptr: Tensor

    @classmethod
    def from_matrix(cls, items: Tensor) -> "Lists":
        """Reads a matrix of shape `[num_users, K]`, in which `-1` is no item."""
        num_users, width = items.shape
        return cls(items.reshape(-1), torch.arange(num_users + 1, device=items.device) * width)

    def to_matrix(self) -> Tensor:
        """Returns a matrix of shape `[num_users, K]`, padded with `-1` to the longest list."""
        num_users = self.ptr.numel() - 1
        if self._is_matrix:
            return self.item.view(num_users, self.width)
        return self.rows(torch.arange(num_users, device=self.ptr.device))

    def rows(self, users: Tensor) -> Tensor:
        """Returns the rows that some users have in :meth:`to_matrix`."""
        if self._is_matrix:
            return self.to_matrix()[users]
        place = torch.arange(self.width, device=self.ptr.device)
        entry = self.ptr[users].unsqueeze(1) + place
        is_listed = entry < self.ptr[users + 1].unsqueeze(1)
        items = self.item[entry.clamp_(max=self.item.numel() - 1)]
        return items.masked_fill_(~is_listed, -1)

    @property
    def _is_matrix(self) -> bool:
        """Whether all lists have one length."""
        return self.item.numel() == (self.ptr.numel() - 1) * self.width

    @cached_property
    def width(self) -> int:
        """The number of places of the longest list."""
        return int(self.ptr.diff().max()) if self.ptr.numel() > 1 else 0

    def edges(self, k: int, *, with_others: bool = False) -> Tensor:
        """Returns an edge from every user to each item in its top `k`: `[2, num_recommended]`.

        Edges are sorted by user and rank. There are none for places without an item, and by
        default none to items that the catalogue does not have.
        """
        length = self.ptr.diff().clamp(max=k)
        user = torch.arange(length.numel(), device=length.device).repeat_interleave(length)
        item = self.item
        if user.numel() < item.numel():
            # What the cut-off leaves out of the lists before moves the places of a list.
            left_out = self.ptr[:-1] - (length.cumsum(0) - length)
            item = item[torch.arange(user.numel(), device=user.device) + left_out[user]]
        edges, is_item = torch.stack([user, item]), item != -1 if with_others else item >= 0
        return edges if bool(is_item.all()) else edges[:, is_item]

    def places(self, k: int, users: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the users, the ranks and the items in the top `k`, of shape `[num_places]` each.

        Places without an item of the catalogue keep their rank, and are left out.

        Args:
            k (int): The cut-off.
            users (torch.Tensor, optional): Some users, in the order in which they are wanted.
                (default: `None`, all)
        """
        if users is None:
            users = torch.arange(self.ptr.numel() - 1, device=self.ptr.device)
        length = self.ptr.diff()[users].clamp(max=k)
        user = users.repeat_interleave(length)
        first = (length.cumsum(0) - length).repeat_interleave(length)
        rank = 1 + torch.arange(user.numel(), device=user.device) - first
        item = self.item[self.ptr[user] + rank - 1]
        is_item = item >= 0
        return user[is_item], rank[is_item], item[is_item]

    def length(self, k: int) -> Tensor:
        """Returns how many items each user has in its top `k`, of shape `[num_users]`."""
        num_before = F.pad((self.item != -1).cumsum(0), (1, 0))
        start, length = self.ptr[:-1], self.ptr.diff().clamp(max=k)
        return num_before[start + length] - num_before[start]

    def of(self, users: Tensor) -> "Lists":
        """Returns the same lists without the items of all but the users of a mask `[num_users]`."""
        is_kept = users.repeat_interleave(self.ptr.diff())
        return dataclasses.replace(self, item=self.item.masked_fill(~is_kept, -1))

    def to(self, device: torch.device | str) -> "Lists":
        """Returns a copy on another device."""
        return Lists(self.item.to(device), self.ptr.to(device))


#: So many relevant pairs of a single query are probably queries of their own.
_MANY_RELEVANT = 100

#: So many scores are compared at once, which stay in the cache.
_NUM_SCORES = 2**16


#: What ranks the items alike for all users, in the words of :attr:`Provenance.ranked_by`.
ONE_SCORE_PER_ITEM = "one score per item"


@dataclass(frozen=True, eq=False)
class Provenance:
    """Where a ranking comes from: what ranked it, and what its rows are.

    Attributes:
        ranked_by: What ranked it, in words, such as `"recommend(src_index, k) of TwoTower"`; `None`
            if it is not known.
        seed: The seed of random ties; `None` for all others.
        num_masked: How many items of each user are no candidates because their score is `-inf`, of
            shape `[num_users]`; `None` if there are no such users.
        listed: What the list of each user holds, the columns of :class:`ListStatistics`, of shape
            `[num_users, 5]`; `None` if a task was ranked by scores, or there was no task.
        person: The number of the person that each row of users belongs to, of shape
            `[num_users]`, see :meth:`RankedEdges.with_person`; `None` if every row is a person.
        user_of_row: The user of the edge that each row is, of shape `[num_users]`, after
            :meth:`RankedEdges.each_edge` and :meth:`RankedEdges.from_negatives`; `None` if every
            row is a user.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, rank
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> rank(torch.tensor([0.1, 0.3, 0.2]), task, k=2).origin.ranked_by
        'one score per item'
    """

    ranked_by: str | None = None
    seed: int | None = None
    num_masked: Tensor | None = None
    listed: Tensor | None = None
    person: Tensor | None = None
    user_of_row: Tensor | None = None


#: What :func:`sort_edges` takes, by name.
RankedTruth: TypeAlias = dict[str, Any]


def rank_lists(
    pred_index_mat: TensorLike,
    edge_label_index: EdgesLike,
    edge_label_weight: TensorLike | None,
) -> RankedTruth:
    """Ranks edges by their position in lists, see :meth:`RankedEdges.from_topk`."""
    items = check_integers(pred_index_mat, "pred_index_mat", "; write scores.topk(20).indices")
    if items.dim() != 2:
        raise ValueError(
            f"'pred_index_mat' needs to have shape [num_users, K] (got {list(items.shape)})"
        )
    if items.numel() and int(items.min()) < -1:
        raise ValueError(
            f"'pred_index_mat' needs to hold item ids, or -1 for none (got {int(items.min())})"
        )
    check_double_precision(items.device, "pred_index_mat")
    edges, weight = check_weighted_edges(
        edge_label_index, edge_label_weight, "edge_label_index", "edge_label_weight"
    )
    num_users, num_items = items.size(0), max_id(items, edges[1]) + 1
    check_matrix(edge_label_index, "edge_label_index", num_users, None)
    check_pairs(edges, "edge_label_index", num_users, num_items)
    check_device(edges, "edge_label_index", items.device, "pred_index_mat")
    if weight is not None:
        weight = check_weight(weight, "edge_label_weight", edges)
        check_device(weight, "edge_label_weight", items.device, "pred_index_mat")
        _warn_about_negative(weight, "edge_label_weight")
    truth, weight = coalesce_truth(edges, weight, num_items)
    rank = ranks_in_lists(items, truth[0], truth[1], num_items)
    lists = Lists.from_matrix(without_repeats(items))
    return {
        "truth": truth,
        "rank": rank,
        "num_users": num_users,
        "weight": weight,
        "lists": lists,
    }


def rank_pairs(
    preds: TensorLike, target: TensorLike, indexes: TensorLike | None, ignore_index: int | None
) -> RankedTruth:
    """Ranks scored pairs within their query, see :meth:`RankedEdges.from_pairs`."""
    preds, target, indexes = check_scored_pairs(preds, target, indexes, ignore_index)
    query, num_queries = _number_queries(indexes)
    num_candidates = torch.bincount(query, minlength=num_queries)
    num_masked = None
    if bool((is_masked := preds.isneginf()).any()):
        num_masked = torch.bincount(query[is_masked], minlength=num_queries)
        num_candidates = num_candidates - num_masked
        _check_not_empty(num_candidates == 0, "preds", "query")
    is_binary = target.dtype == torch.bool or bool(
        ((target <= 1) & (target == target.round())).all()
    )
    _warn_about_negative(target, "target")
    relevant = (target > 0).nonzero().squeeze(1)
    relevant = relevant[query[relevant].argsort(stable=True)]
    ranks = Ranks(*(known[relevant] for known in ranks_within_rows(query, preds)))
    ranks.leave_out(is_masked[relevant])
    if num_queries == 1 and relevant.numel() >= _MANY_RELEVANT:
        warn(
            f"'from_pairs' ranks all {relevant.numel():,} relevant pairs as one query. A hit rate "
            f"or an MRR only counts the first of them. If each of them is a query against "
            f"shared negatives, use 'RankedEdges.from_negatives'"
        )
    return {
        "truth": torch.stack([query[relevant], relevant]),
        "num_users": num_queries,
        "weight": None if is_binary else target[relevant].double(),
        "num_candidates": num_candidates,
        "origin": Provenance(num_masked=num_masked),
        **ranks._asdict(),
    }


def _warn_about_negative(relevance: Tensor, name: str) -> None:
    if num_negative := int((relevance < 0).sum()):
        warn(f"{num_negative} numbers of '{name}' are negative and count as not relevant")


def rank_negatives(positive: TensorLike, negative: TensorLike) -> RankedTruth:
    """Ranks positives against negatives, see :meth:`RankedEdges.from_negatives`."""
    positive, negative = _check_negatives(positive, negative)
    count = _count_shared if negative.dim() == 1 else _count_own
    num_above, num_tied, num_negatives = count(positive, negative)
    is_candidate = ~positive.isneginf()
    num_candidates = num_negatives + is_candidate
    _check_not_empty(num_candidates == 0, "negative", "positive")
    ranks = Ranks(num_above + 1, num_above, num_tied)
    ranks.leave_out(~is_candidate)
    query = torch.arange(positive.numel(), device=positive.device)
    return {
        "truth": torch.stack([query, torch.zeros_like(query)]),
        "num_users": positive.numel(),
        "num_candidates": num_candidates,
        "origin": Provenance(
            num_masked=None if bool(is_candidate.all()) else (~is_candidate).long(),
            user_of_row=query,
        ),
        **ranks._asdict(),
    }


def _number_queries(indexes: Tensor) -> tuple[Tensor, int]:
    """Returns the number of the query of every pair, by ascending index, and how many there are."""
    # The pairs of a query mostly follow each other, so there are few runs to sort.
    runs, run = indexes.unique_consecutive(return_inverse=True)
    queries, number = runs.unique(return_inverse=True)
    return number[run], queries.numel()


def check_scored_pairs(
    preds: TensorLike, target: TensorLike, indexes: TensorLike | None, ignore_index: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the scores, targets and queries of the pairs to rank, of shape `[num_pairs]` each."""
    preds = check_scores(preds, "preds")
    check_double_precision(preds.device, "preds")
    if indexes is None and preds.dim() > 1:
        raise ValueError(
            f"'indexes' needs to say which query each pair belongs to unless 'preds' has one "
            f"dimension: if each row is a query, torch.arange({preds.size(0)}).view(-1, 1)"
            f".expand(preds.shape) (got 'preds' of shape {list(preds.shape)})"
        )
    preds, target = preds.flatten(), as_tensor(target, "target").flatten()
    if indexes is None:
        indexes = torch.zeros_like(preds, dtype=torch.long)
    indexes = check_integers(indexes, "indexes").flatten()
    for value, name in ((target, "target"), (indexes, "indexes")):
        check_device(value, name, preds.device, "preds")
        if value.shape != preds.shape:
            raise ValueError(
                f"'{name}' needs to have as many elements as 'preds', {preds.numel()} "
                f"(got {value.numel()})"
            )
    if ignore_index is not None:
        # Small integers would wrap around.
        targets = target.to(torch.promote_types(target.dtype, torch.long))
        is_counted = targets != check_integer(ignore_index, "ignore_index")
        preds, target, indexes = preds[is_counted], target[is_counted], indexes[is_counted]
    check_ranked_scores(preds, "preds")
    check_finite(target, "target")
    return preds, target, indexes


def _check_negatives(positive: TensorLike, negative: TensorLike) -> tuple[Tensor, Tensor]:
    positive, negative = check_scores(positive, "positive"), check_scores(negative, "negative")
    check_double_precision(positive.device, "positive")
    check_device(negative, "negative", positive.device, "positive")
    if positive.dim() != 1 or positive.numel() == 0:
        raise ValueError(
            f"'positive' needs to have shape [num_positives] with num_positives > 0 "
            f"(got {list(positive.shape)})"
        )
    num = positive.numel()
    is_matrix = negative.dim() == 2 and negative.size(0) == num
    if negative.dim() == 1 and negative.numel() == num > 1:
        raise ValueError(
            f"'negative' needs to say whether {num} positives have one negative each, as "
            f"negative.unsqueeze(1), or share all of them, as negative.expand({num}, -1) (got "
            f"{num} negatives)"
        )
    if negative.numel() == 0 or not (is_matrix or negative.dim() == 1):
        raise ValueError(
            f"'negative' needs to have shape [{num}, num_negatives], a row for every positive, or "
            f"[num_negatives] if all share them (got {list(negative.shape)})"
        )
    if positive.dtype != negative.dtype:
        raise ValueError(
            f"'negative' needs to have the dtype of 'positive', {positive.dtype}, or rounding "
            f"decides what is a tie (got {negative.dtype})"
        )
    check_ranked_scores(positive, "positive")
    check_ranked_scores(negative, "negative")
    return positive, negative


def _count_shared(positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Counts the negatives of all rows that score higher and the same, and all of them."""
    ordered = negative[~negative.isneginf()].sort().values
    num = torch.full_like(positive, ordered.numel(), dtype=torch.long)
    not_above = torch.searchsorted(ordered, positive, right=True)
    below = torch.searchsorted(ordered, positive)
    return num - not_above, not_above - below, num


def _count_own(positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Counts the negatives of each row that score higher and the same, and all of them."""
    rows = max(1, at_once(_NUM_SCORES, positive.device) // negative.size(1))
    parts = zip(positive.unsqueeze(1).split(rows), negative.split(rows), strict=True)
    counts = torch.cat([_compare(own, scores) for own, scores in parts], dim=1)
    num_above, num_not_below, num = counts.long()
    # What is no candidate ties with nothing, neither with padding.
    num_tied = (num_not_below - num_above).masked_fill(positive.isneginf(), 0)
    return num_above, num_tied, num


def _compare(own: Tensor, scores: Tensor) -> Tensor:
    """Counts the scores of each row that are higher, not lower, and of candidates."""
    masks = (scores > own, scores >= own, scores > -torch.inf)
    # Sums of 64 bits take twice as long.
    return torch.stack([mask.sum(dim=1, dtype=torch.int32) for mask in masks])


def _check_not_empty(is_empty: Tensor, name: str, row: str) -> None:
    """Raises if a user or query has no candidate but items that are masked by their score."""
    if num_empty := int(is_empty.sum()):
        raise ValueError(
            f"'{name}' needs to hold a finite score for every {row} (got only '-inf' for "
            f"{num_empty} of them, such as number {int(is_empty.nonzero()[0])})"
        )


# Run and qrels files, as trec_eval and most tools of information retrieval read them. The ids in
# the files are strings. They are numbered, and the names are kept.

#: The fields of a line. Trailing fields are ignored.
RUN = ("user", "Q0", "item", "rank", "score", "tag")
QRELS = ("user", "0", "item", "relevance")

#: How a number is written. Python also reads others, which no other tool does.
NUMBER = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"


def read_lines(file: IO[bytes], fields: tuple[str, ...]) -> pd.DataFrame:
    """Returns the fields of all lines as text, with the number of the line before as index.

    As in trec_eval, a line that begins with `#` is a comment, and further fields are ignored.

    Raises:
        ValueError: If there is no line, or one has too few fields or is not text in UTF-8.
    """
    # Empty lines are read, too, so that rows can be counted as lines.
    lines = pd.read_csv(
        file,
        sep=r"\s+",
        names=[*fields],
        usecols=[*range(len(fields))],
        dtype=str,
        na_filter=False,
        quoting=csv.QUOTE_NONE,
        skip_blank_lines=False,
    )
    # Files that were joined may have such a mark in the middle.
    lines["user"] = lines["user"].str.removeprefix("\ufeff")
    lines = lines[(lines["user"] != "") & ~lines["user"].str.startswith("#")]
    if lines.empty:
        raise ValueError(f"lines '{' '.join(fields)}' are needed (got none)")
    # UTF-16 has such signs.
    has_control = (lines["user"] + lines["item"]).str.contains(r"[\x00-\x1f]")
    _check_lines(lines, has_control | (lines[fields[-1]] == ""), "all fields in UTF-8")
    return lines


def _check_lines(lines: pd.DataFrame, is_wrong: Any, wanted: str) -> None:
    """Raises for the first line that is wrong."""
    if np.any(is_wrong):
        row = int(np.argmax(is_wrong))
        raise ValueError(
            f"line {lines.index[row] + 1} needs to be '{' '.join(lines.columns)}' with {wanted} "
            f"(got {' '.join(lines.iloc[row])!r:.80})"
        )


def _read_values(path: str | Path, fields: tuple[str, ...], name: str) -> pd.DataFrame:
    """Returns the user, the item and the finite number of every line, each pair once."""
    with reading(path) as file:
        lines = read_lines(file, fields)
        texts = lines[name].where(lines[name].str.fullmatch(NUMBER), "nan")
        values = texts.to_numpy(object).astype(np.float64)
        _check_lines(lines, ~np.isfinite(values), f"a finite {name}")
        _check_lines(lines, lines.duplicated(["user", "item"]), "each item of a user once")
    return lines[["user", "item"]].assign(value=values)


def read_trec(run: str | Path, qrels: str | Path, level: float | None) -> RankedTruth:
    """Reads a run and its qrels, in memory for as many numbers as there are lines.

    Raises:
        OSError: If a file cannot be opened.
        ValueError: If a file is empty, a line does not have its form or repeats an item, or `level`
            is not positive.
    """
    if level is not None and check_finite_number(level, "level") <= 0:
        raise ValueError(f"'level' needs to be positive (got {level!r})")
    scored, judged = _read_values(run, RUN, "score"), _read_values(qrels, QRELS, "relevance")
    user_ids, (user, judged_user) = number_texts([scored["user"], judged["user"]])
    item_ids, (item, judged_item) = number_texts([scored["item"], judged["item"]])
    score, relevance = (torch.from_numpy(x["value"].to_numpy(copy=True)) for x in (scored, judged))
    edges, num_items = torch.stack([judged_user, judged_item]), len(item_ids)
    truth, weight = coalesce_truth(edges, relevance, num_items, level)
    lists, ranks = _rank_run(user, item, score, truth, len(user_ids), num_items)
    judged_users = judged_user.unique()
    return {
        "truth": truth,
        "num_users": len(user_ids),
        "weight": None if weight is None or bool((weight == 1).all()) else weight,
        "lists": lists,
        "user_ids": tuple(map(str, user_ids)),
        "item_ids": tuple(map(str, item_ids)),
        "users": judged_users if judged_users.numel() < len(user_ids) else None,
        **ranks._asdict(),
    }


def _rank_run(
    user: Tensor, item: Tensor, score: Tensor, truth: Tensor, num_users: int, num_items: int
) -> tuple[Lists, Ranks]:
    """Returns the list of every user by score, and where the truth stands in it."""
    key, order = (user * num_items + item).sort()
    user, item = user[order], item[order]
    listed = ranks_within_rows(user, score[order])
    best = lexsort([listed.rank, user])
    wanted = truth[0] * num_items + truth[1]
    place = torch.searchsorted(key, wanted).clamp_(max=key.numel() - 1)
    is_listed = key[place] == wanted
    ranks = (
        torch.where(is_listed, known[place], beyond)
        for known, beyond in zip(listed, Ranks.unknown(wanted), strict=True)
    )
    return Lists(item[best], index2ptr(user[best], num_users)), Ranks(*ranks)
