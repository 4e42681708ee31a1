"""RankedEdges: every ground-truth edge with its rank, the one meeting point of all the rest.

Recommenders stand on one side of it and metrics on the other. Lists, scored pairs, negatives and
files that others have ranked become ranked edges here, too.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import index_to_mask, lexsort, segment

from pyg_recmetrics.checks import (
    EdgesLike,
    TensorLike,
    as_tensor,
    check_choice,
    check_device,
    check_double_precision,
    check_finite,
    check_finite_number,
    check_integer,
    check_integers,
    check_natural_number,
    check_pairs,
    check_ranked_scores,
    check_scores,
    check_weight,
    check_weighted_edges,
    unless_all_one,
)
from pyg_recmetrics.kernels.devices import at_once
from pyg_recmetrics.kernels.entries import max_id, spread
from pyg_recmetrics.kernels.exact.ranks import (
    NOT_RETRIEVED,
    Ranks,
    find_runs,
    ranks_in_lists,
    ranks_within_rows,
    without_repeats,
)
from pyg_recmetrics.task import Catalogue, TruthByUser
from pyg_recmetrics.task.data_frames import number_texts
from pyg_recmetrics.task.edges import coalesce_truth, order_of_edges, read_person
from pyg_recmetrics.task.task import check_catalogue
from pyg_recmetrics.utils import (
    arguments_of,
    hashed,
    list_some,
    made_of,
    reading,
    set_attributes,
    warn,
)


class ListStatistics(NamedTuple):
    """Counts of items in the lists of users, down to the depth of each ranking: `[num_users]` each.

    All of them are `-1` for users whose lists were not looked at.

    Attributes:
        length: How long the list is, up to the last place that holds an item.
        num_items: How many of its items are candidates.
        num_unknown: How many of its items the task does not have.
    """

    length: Tensor
    num_items: Tensor
    num_unknown: Tensor


def describe_lack(
    table: Tensor,
    degree: Tensor,
    num_candidates: Tensor,
    depth: int | None,
    needs_degree: bool,
    user_ids: Sequence[Hashable] | None = None,
    users: str = "users",
    user_of_row: Tensor | None = None,
) -> str | None:
    """Returns how many users with truth have too few items in their lists, and which; or `None`.

    Args:
        table (torch.Tensor): The columns of :class:`ListStatistics`, of shape `[num_users, 3]`.
        degree (torch.Tensor): How many items are relevant to each user, of shape `[num_users]`.
        num_candidates (torch.Tensor): How many items each can get, of shape `[num_users]`.
        depth (int or None): How many items are looked at; `None` for all candidates.
        needs_degree (bool): Whether as many items as are relevant are looked at, too.
        user_ids (sequence, optional): The original ids of users. (default: `None`, row numbers)
        users (str, optional): What the users are called. (default: `"users"`)
        user_of_row (torch.Tensor, optional): The user of each row, if each row is an edge.
            (default: `None`, the number of the row)
    """
    listed = ListStatistics(*table.unbind(1))
    wanted, what = num_candidates, "fewer items than candidates"
    if depth is not None and needs_degree:
        wanted = wanted.minimum(degree.clamp(min=depth))
        what = "fewer items than are relevant"
        if depth > 1:
            what = f"fewer than {depth} items, or than are relevant,"
    elif depth is not None:
        wanted, what = wanted.clamp(max=depth), f"fewer than {depth} items"
    is_counted = (degree > 0) & (listed.length >= 0)
    is_short = is_counted & (listed.num_items + listed.num_unknown < wanted)
    if not bool(is_short.any()):
        return None
    if user_of_row is None:
        user_of_row = torch.arange(degree.numel(), device=degree.device)
    short = user_of_row[is_short].unique().tolist()
    named = list_some([repr(user if user_ids is None else user_ids[user]) for user in short])
    num_counted = user_of_row[is_counted].unique().numel()
    return (
        f"{what} for {len(short):,} of {num_counted:,} {users} ({named}), as their lists are "
        f"missing or too short, hold items that were seen or are no candidates, or are padded "
        f"with -1"
    )


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
    def from_matrix(cls, items: Tensor) -> Lists:
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
        user, _, item = self.places(k, with_others=with_others)
        return torch.stack([user, item])

    def places(
        self, k: int, users: Tensor | None = None, *, with_others: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the users, the ranks and the items in the top `k`, of shape `[num_places]` each.

        Places without an item of the catalogue keep their rank, and are left out.

        Args:
            k (int): The cut-off.
            users (torch.Tensor, optional): Some users, in the order in which they are wanted.
                (default: `None`, all)
            with_others (bool, optional): Whether items that the catalogue does not have are among
                them. (default: `False`)
        """
        if users is None:
            users = torch.arange(self.ptr.numel() - 1, device=self.ptr.device)
        row, entry = spread(self.ptr[users], self.ptr.diff()[users].clamp(max=k))
        user, item = users[row], self.item[entry]
        rank = entry - self.ptr[user] + 1
        is_item = item != -1 if with_others else item >= 0
        if bool(is_item.all()):
            return user, rank, item
        return user[is_item], rank[is_item], item[is_item]

    def length(self, k: int) -> Tensor:
        """Returns how many items each user has in its top `k`, of shape `[num_users]`."""
        num_before = F.pad((self.item != -1).cumsum(0), (1, 0))
        start, length = self.ptr[:-1], self.ptr.diff().clamp(max=k)
        return num_before[start + length] - num_before[start]

    def of(self, users: Tensor) -> Lists:
        """Returns the same lists without the items of all but the users of a mask `[num_users]`."""
        is_kept = users.repeat_interleave(self.ptr.diff())
        return Lists(self.item.masked_fill(~is_kept, -1), self.ptr)

    def to(self, device: torch.device | str) -> Lists:
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
            `[num_users, 3]`; `None` if a task was ranked by scores, or there was no task.
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


def _warn_about_negative(relevance: Tensor, name: str) -> None:
    if num_negative := int((relevance < 0).sum()):
        warn(f"{num_negative} numbers of '{name}' are negative and count as not relevant")


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
    is_shared = negative.dim() == 1 and (num == 1 or negative.numel() % num > 0)
    if negative.numel() == 0 or not (is_matrix or is_shared):
        raise ValueError(
            f"'negative' needs to have shape [{num}, num_negatives] with num_negatives > 0, or "
            f"[num_negatives] if all share them; where that is a multiple of {num}, write "
            f"negative.view({num}, -1) or negative.expand({num}, -1) (got {list(negative.shape)})"
        )
    if is_matrix and negative.stride(0) == 0:
        negative = negative[0]  # which `expand` has repeated
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
    return num_above, num_not_below - num_above, num


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


def _rank_run(
    user: Tensor, item: Tensor, score: Tensor, truth: Tensor, num_users: int, num_items: int
) -> tuple[Lists, Ranks]:
    """Returns the list of every user by score, and where the truth stands in it."""
    key, order = (user * num_items + item).sort()
    user, item = user[order], item[order]
    listed = ranks_within_rows(user, score[order])
    wanted = truth[0] * num_items + truth[1]
    place = torch.searchsorted(key, wanted).clamp_(max=key.numel() - 1)
    found = (key[place] == wanted).nonzero().squeeze(1)
    ranks = Ranks.unknown(wanted)
    ranks.update(found, Ranks(*(known[place[found]] for known in listed)))
    best = lexsort([listed.rank, user])
    return Lists(item[best], index2ptr(user, num_users)), ranks


# How ties are broken: the ranks of relevant items that score the same as other candidates.
#
# Let `a` candidates of a user score higher than a relevant item, let `g` of them score the same
# (the item itself among them), and let `m` of these `g` be relevant. The `m` relevant items take
# `m` of the ranks from `a + 1` to `a + g`. They never share a rank: the `j`-th of them has a rank
# of at least `a + j`.

#: How equal scores are ranked.
Ties: TypeAlias = Literal["index", "best", "worst", "mean", "random"]

#: What a recipe says about each way to rank equal scores.
TIES_IN_WORDS: dict[str, str] = {
    "index": "equal scores rank the lower item id first",
    "best": "equal scores rank relevant items first",
    "worst": "equal scores rank relevant items last",
    "mean": "equal scores share the mean of their best and their worst rank",
    "random": "equal scores rank in random order",
}

#: What SplitMix64 adds, and by how many bits it shifts before it multiplies by what.
_STEP = 0x9E3779B97F4A7C15 - 2**64
_MIXERS = (30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64)


def check_ties(ties: object, seed: object) -> int:
    """Returns `seed` if there is such a way to rank ties, and it is a non-negative integer."""
    check_choice(ties, "ties", get_args(Ties))
    return check_natural_number(seed, "seed")


def break_ties(
    ranked: RankedEdges, ties: Ties, seed: int, hits: tuple[int, int] | None = None
) -> Tensor:
    """Returns the ranks of relevant items, of shape `[num_edges]`.

    Heavier items have the better ranks with `"best"`, and the worse ones with `"worst"` and
    `"mean"`.

    Args:
        ranked (RankedEdges): The ranking.
        ties (str): Any of `"best"`, `"worst"`, `"mean"` and `"random"`.
        seed (int): The seed of `"random"`. What is drawn for a user depends on nothing but this
            seed and the user: neither on other users nor on the order of edges.
        hits (tuple, optional): A cut-off `k`, and how many relevant items of a run of equal scores
            that `k` cuts are to be in the top `k`, as far as that can be. They rank first or last
            among those of the run in the top `k`, and the others among those behind, as `ties`
            says: `"best"` or `"worst"`. (default: `None`, as many as `ties` puts there)

    Raises:
        ValueError: If scores are not known.
    """
    if ranked.num_above is None or ranked.num_tied is None:
        raise ValueError(
            f"'ties' needs to be 'index' where scores are not known, as for lists (got '{ties}')"
        )
    user, item = ranked.edge_label_index
    keys = ranked._keys() if ties == "random" else ()
    among_equals = [item]
    if ties == "random":
        among_equals.append(_draw(seed, "order", *keys, item))
    elif ranked.weight is not None:
        among_equals.append(-ranked.weight if ties == "best" else ranked.weight)
    order = lexsort([*among_equals, ranked.num_above, user])
    above, tied = ranked.num_above[order], ranked.num_tied[order]
    first, num_relevant = find_runs(user[order], above)
    place = torch.arange(first.numel(), device=first.device) - first
    num_others = tied + 1 - num_relevant
    if ties == "random":
        uniform = _draw(seed, "places", *(key[order] for key in keys), above + place)
        shift = _random_shift(place, num_relevant, num_others, uniform)
    elif ties == "mean":
        shift = num_others.double() / 2
    elif hits is not None:
        k, num_hits = hits
        num_places = (k - above).clamp(min=0).minimum(tied + 1)
        num_in_top = num_places.minimum(num_relevant).clamp(max=num_hits)
        num_in_top = num_in_top.maximum(num_places - num_others)
        others_in_top, none = num_places - num_in_top, torch.zeros_like(num_others)
        first, last = (none, others_in_top) if ties == "best" else (others_in_top, num_others)
        shift = torch.where(place < num_in_top, first, last)
    else:
        shift = num_others if ties == "worst" else torch.zeros_like(num_others)
    is_unknown = above == NOT_RETRIEVED
    rank = above.masked_fill(is_unknown, 0) + 1 + place + shift
    rank.masked_fill_(is_unknown, NOT_RETRIEVED)
    return torch.empty_like(rank).scatter_(0, order, rank)


def _random_shift(
    place: Tensor, num_relevant: Tensor, num_others: Tensor, uniform: Tensor
) -> Tensor:
    r"""Returns how many other items rank above each relevant one, in a random order of all.

    Place by place, each group finds how many other items come before its next relevant item. Of
    :math:`n` other items and :math:`q` relevant ones that are left, :math:`g` or more others come
    first with a probability of :math:`\binom{n - g + q}{q} / \binom{n + q}{q}`.

    Args:
        place (torch.Tensor): The place of each relevant item in its group, from `0` on.
        num_relevant (torch.Tensor): How many relevant items its group has.
        num_others (torch.Tensor): How many other items have the same score.
        uniform (torch.Tensor): A number from `0` to `1` for each.
    """
    device = place.device  # on a CPU, so that all devices round alike
    place, num_relevant, num_others, uniform = (
        x.cpu() for x in (place, num_relevant, num_others, uniform)
    )
    num_above = torch.zeros_like(num_others)
    num_left = num_others.clamp(min=0)
    first = torch.arange(place.numel(), device="cpu") - place
    for at in _places(place, num_others):
        group = first[at]
        drawn = _num_before(num_left[group], (num_relevant - place)[at], uniform[at])
        num_left[group] -= drawn
        num_above[at] = num_others[at] - num_left[group]
    return num_above.to(device)


def _num_before(num_others: Tensor, num_relevant: Tensor, uniform: Tensor) -> Tensor:
    """Returns a random number of others that come first, by bisection of its distribution."""
    n, q = num_others.double(), num_relevant.double()
    of_all = torch.lgamma(n + 1) - torch.lgamma(n + q + 1)
    low, high = torch.zeros_like(num_others), num_others
    for _ in range(int(num_others.max()).bit_length()):
        middle = (low + high + 1) // 2
        left = (num_others - middle).double()
        chance = (torch.lgamma(left + q + 1) - torch.lgamma(left + 1) + of_all).exp()
        is_enough = chance > uniform
        low, high = torch.where(is_enough, middle, low), torch.where(is_enough, high, middle - 1)
    return torch.minimum(low, high)


def _places(place: Tensor, num_others: Tensor) -> tuple[Tensor, ...]:
    """Returns the first relevant items of all groups, then the second ones, and so on."""
    tied = (num_others > 0).nonzero().squeeze(1)
    tied = tied[place[tied].argsort(stable=True)]
    groups: tuple[Tensor, ...] = tied.split(torch.bincount(place[tied]).tolist())
    return groups


def keys_of(user_ids: Sequence[Hashable]) -> Tensor:
    """Returns a number for each user, which its id alone decides."""
    keys = [x if type(x) is int and -(2**63) <= x < 2**63 else hashed(repr(x)) for x in user_ids]
    return torch.tensor(keys, dtype=torch.long, device="cpu")


def _draw(seed: int, what: str, *keys: Tensor) -> Tensor:
    """Returns a number from `0` to `1` for each element, which its keys alone decide.

    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
    """
    mixed = torch.full_like(keys[0], hashed(f"{seed} {what}"))
    for key in keys:
        mixed = mixed.bitwise_xor(key) + _STEP
        for bits, factor in _MIXERS:
            mixed = mixed.bitwise_xor(_shifted(mixed, bits)) * factor
        mixed = mixed.bitwise_xor(_shifted(mixed, 31))
    return _shifted(mixed, 11).double() * 2.0**-53


def _shifted(value: Tensor, bits: int) -> Tensor:
    """Shifts to the right, and zeros in from the left."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def without_other_truth(ranked: RankedEdges) -> Ranks:
    """Returns where edges stand if the other relevant items of their user are no candidates."""
    rank = torch.where(ranked.is_hit(None), ranked.rank - positions(ranked) + 1, ranked.rank)
    if ranked.num_above is None or ranked.num_tied is None:
        return Ranks.unknown(rank)._replace(rank=rank)
    others = ranks_within_rows(ranked.edge_label_index[0], -ranked.num_above)
    is_scored = ranked.num_above < NOT_RETRIEVED
    return Ranks(
        rank,
        torch.where(is_scored, ranked.num_above - others.num_above, ranked.num_above),
        torch.where(is_scored, ranked.num_tied - others.num_tied, ranked.num_tied),
    )


def without_others(num: Tensor, user: Tensor, is_counted: Tensor) -> Tensor:
    """Returns numbers of items of each user, less those that are other truth: `[..., num_edges]`.

    Args:
        num (torch.Tensor): How many items of each user there are, of shape `[..., num_users]`.
        user (torch.Tensor): The user of every edge, of shape `[num_edges]`.
        is_counted (torch.Tensor): Whether each edge is among these items, of shape `[num_edges]`.
    """
    num_relevant = torch.bincount(user[is_counted], minlength=num.size(-1))
    return (num - num_relevant)[..., user] + is_counted.long()


def depth_without_other_truth(ranked: RankedEdges, max_degree: int) -> int | None:
    """Returns how deep ranks are known if other truth may come first; `None` if all are.

    Args:
        ranked (RankedEdges): The ranking.
        max_degree (int): The largest number of relevant items of a user, also of those who are not
            in this ranking.

    Raises:
        ValueError: If given lists are so short that no rank is left.
    """
    # Nothing is known of what would come behind the end of given lists. Rankings go down to the
    # number of relevant items of each user.
    is_given = ranked.num_candidates is None and not bool(ranked.is_hit(None).all())
    depth = lists_of(ranked).width if is_given else ranked.depth
    most_edges = max(max_id(ranked.degree), max_degree)
    if depth is None or most_edges == 0:
        return depth
    left = depth - most_edges + 1
    if left < 1 and is_given:
        raise ValueError(
            f"'each_edge' needs lists of at least {most_edges} items, as many as the relevant "
            f"items of a user (got {depth})"
        )
    return max(left, 1)


#: The fields that may hold a value for every edge.
PER_EDGE = ("rank", "weight", "num_above", "num_tied", "is_candidate")


@dataclass(frozen=True, repr=False, eq=False)
class RankedEdges:
    r"""Ground-truth edges with the rank at which a recommender retrieved them, grouped by user.

    :func:`~pyg_recmetrics.rank` makes them from a model. :meth:`from_topk`, :meth:`from_pairs`,
    :meth:`from_negatives` and :meth:`from_trec` make them from what another system computed.

    Attributes:
        edge_label_index (torch.Tensor): The edges of shape `[2, num_edges]`, sorted by user and
            rank. Edges that were not retrieved come last, sorted by item.
        rank (torch.Tensor): The 1-based rank of every edge, of shape `[num_edges]`; larger than
            any k if the item was not retrieved.
        ptr (torch.Tensor): The edges of user `u` are those from `ptr[u]` to `ptr[u + 1]`. Of shape
            `[num_users + 1]`.
        weight (torch.Tensor or None): How relevant each edge is, of shape `[num_edges]`.
        num_candidates (torch.Tensor or None): How many items each user could have been
            recommended, of shape `[num_users]`; `None` if only lists are known.
        depth (int or None): Ranks are known down to this k, and always down to the user's own
            number of relevant items. `None` if the ranking is complete, or comes from
            given lists.
        lists (Lists or None): The lists of recommended items, if they were kept.
        catalogue (Catalogue or None): What is known about the items.
        user_ids (tuple or None): The original id of each user; `None` if ids are row numbers.
        item_ids (tuple or None): The original id of each item.
        users (torch.Tensor or None): The ids of the users who are evaluated, sorted; `None` for
            all users.
        ties (str): How equal scores are ranked, see :meth:`with_ties`.
        num_above (torch.Tensor or None): How many candidates score higher than each edge, of shape
            `[num_edges]`. Where these are as many as the depth of the ranking or more, it is a
            number that is larger than any k. `None` if scores are not known.
        num_tied (torch.Tensor or None): How many other candidates have the score of each edge, of
            shape `[num_edges]`; zero where `num_above` is larger than any k, and `-1` if the item
            is no candidate, such as one with a score of `-inf`. `None` if scores are not known.
        is_candidate (torch.Tensor or None): Whether each edge is among the candidates of its user,
            of shape `[num_edges]`; `None` if all are.
        origin (Provenance): Where the ranking comes from.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> ranked = RankedEdges.from_topk(
        ...     pred_index_mat=torch.tensor([[2, 0, 1], [1, 0, -1]]),
        ...     edge_label_index=torch.tensor([[0, 0, 1], [1, 2, 2]]),
        ... )
        >>> ranked.rank[:2], ranked.rank[2:] > 3
        (tensor([1, 3]), tensor([True]))
        >>> metrics.recall(ranked, k=2)
        tensor([0.5000, 0.0000], dtype=torch.float64)
    """

    edge_label_index: Tensor
    rank: Tensor
    ptr: Tensor
    weight: Tensor | None = None
    num_candidates: Tensor | None = None
    depth: int | None = None
    lists: Lists | None = None
    catalogue: Catalogue | None = None
    user_ids: tuple[Hashable, ...] | None = None
    item_ids: tuple[Hashable, ...] | None = None
    users: Tensor | None = None
    ties: Ties = "index"
    num_above: Tensor | None = None
    num_tied: Tensor | None = None
    is_candidate: Tensor | None = None
    origin: Provenance = field(default_factory=Provenance)

    @classmethod
    def from_topk(
        cls,
        pred_index_mat: TensorLike,
        edge_label_index: EdgesLike,
        edge_label_weight: TensorLike | None = None,
    ) -> RankedEdges:
        r"""Ranks edges by their position in given lists, with PyG's argument names.

        An item that is not in its user's list is not retrieved at any k. The lists are assumed to
        be complete: a metric at a k that is larger than `K` looks at `K` items, without a warning.
        The padding `-1` matches no item but keeps its position. A repeated item counts once, at its
        first position. Repeated edges are one edge.

        Args:
            pred_index_mat (torch.Tensor): The recommended items of every user, best first, of
                shape `[num_users, K]`, integers; `-1` where there is none.
            edge_label_index (torch.Tensor or tuple): The ground-truth edges of shape
                `[2, num_edges]`: rows of `pred_index_mat` and item ids.
            edge_label_weight (torch.Tensor, optional): How relevant each edge is, of shape
                `[num_edges]`. Edges of weight zero or less are not truth. (default: `None`)

        Returns:
            A ranking of all edges, whose `lists` are those that were given.

        Raises:
            TypeError: If an argument does not hold numbers.
            ValueError: If an argument has a wrong shape, dtype or device, or holds wrong ids.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges
            >>> lists, truth = torch.tensor([[2, 0, 1]]), torch.tensor([[0, 0], [1, 2]])
            >>> RankedEdges.from_topk(lists, truth).rank
            tensor([1, 3])
        """
        items = check_integers(pred_index_mat, "pred_index_mat")
        if items.dim() != 2:
            raise ValueError(
                f"'pred_index_mat' needs to have shape [num_users, K] (got {list(items.shape)})"
            )
        if items.numel() and int(items.min()) < -1:
            raise ValueError(
                f"'pred_index_mat' needs to hold item ids, or -1 for none (got {int(items.min())})"
            )
        check_double_precision(items.device, "pred_index_mat")
        num_users = items.size(0)
        edges, weight = check_weighted_edges(
            edge_label_index, edge_label_weight, "edge_label_index", "edge_label_weight", num_users
        )
        num_items = max_id(items, edges[1]) + 1
        check_pairs(edges, "edge_label_index", num_users, num_items)
        check_device(edges, "edge_label_index", items.device, "pred_index_mat")
        if weight is not None:
            weight = check_weight(weight, "edge_label_weight", edges, "edge_label_index")
            _warn_about_negative(weight, "edge_label_weight")
        truth, weight = coalesce_truth(edges, weight, num_items)
        rank = ranks_in_lists(items, truth[0], truth[1], num_items)
        lists = Lists.from_matrix(without_repeats(items))
        grouped = TruthByUser.of(truth[0], num_users)
        return sort_edges(truth, rank, grouped, weight=weight, lists=lists)

    @classmethod
    def from_pairs(
        cls,
        preds: TensorLike,
        target: TensorLike,
        indexes: TensorLike | None = None,
        *,
        ignore_index: int | None = None,
        ties: Ties = "index",
        seed: int = 0,
    ) -> RankedEdges:
        r"""Ranks scored pairs within their query, with torchmetrics' argument names.

        Unlike in torchmetrics, scores may have any sign. R is the number of relevant pairs *that
        are passed*: pass all of them, not only those of a top-k list.

        Args:
            preds (torch.Tensor): Floating-point scores of shape `[num_pairs]`, higher is better;
                with `indexes`, of any shape. A pair with a score of `-inf` is never retrieved.
            target (torch.Tensor): The relevance of each pair: booleans, integers, or
                floating-point weights. Zero or less is not relevant; a warning counts the negative.
            indexes (torch.Tensor, optional): The query (user) each pair belongs to, integers of any
                size. Row `r` of a metric is the query with the `r`-th smallest index.
                (default: `None`, all pairs belong to one query)
            ignore_index (int, optional): Pairs of this target are left out, as if they had not been
                given. (default: `None`, none are left out)
            ties (str, optional): How equal scores are ranked, see :meth:`with_ties`.
                (default: `"index"`, in the order in which the pairs are given)
            seed (int, optional): The seed of `ties="random"`. (default: `0`)

        Returns:
            A ranking of the relevant pairs: a user is a query, and an item is the place of its pair
            in `preds`.

        Raises:
            TypeError: If an argument does not hold numbers.
            ValueError: If shapes, dtypes or devices differ, a matrix comes without `indexes`,
                scores are NaN or `inf`, or `-inf` for a whole query, there is no such way to rank
                ties, or `seed` is not a non-negative integer.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges
            >>> ranked = RankedEdges.from_pairs(
            ...     preds=torch.tensor([0.2, 0.7, 0.9, -0.1]),
            ...     target=torch.tensor([True, False, True, True]),
            ...     indexes=torch.tensor([0, 0, 5, 5]),
            ... )
            >>> ranked.rank, ranked.ptr
            (tensor([2, 1, 2]), tensor([0, 1, 3]))
        """
        preds, target, indexes = check_scored_pairs(preds, target, indexes, ignore_index)
        # The pairs of a query mostly follow each other, so there are few runs to sort.
        runs, run = indexes.unique_consecutive(return_inverse=True)
        queries, number = runs.unique(return_inverse=True)
        query, num_queries = number[run], queries.numel()
        num_candidates, num_masked = torch.bincount(query, minlength=num_queries), None
        is_masked = preds.isneginf()
        if bool(is_masked.any()):
            num_masked = torch.bincount(query[is_masked], minlength=num_queries)
            num_candidates = num_candidates - num_masked
            _check_not_empty(num_candidates == 0, "preds", "query")
        _warn_about_negative(target, "target")
        relevant = (target > 0).nonzero().squeeze(1)
        relevant = relevant[query[relevant].argsort(stable=True)]
        ranks = Ranks(*(known[relevant] for known in ranks_within_rows(query, preds)))
        ranks.leave_out(is_masked[relevant])
        if num_queries == 1 and relevant.numel() >= _MANY_RELEVANT:
            warn(
                f"'from_pairs' ranks all {relevant.numel():,} relevant pairs as one query. A hit "
                f"rate or an MRR only counts the first of them. If each of them is a query against "
                f"shared negatives, use 'RankedEdges.from_negatives'"
            )
        truth = torch.stack([query[relevant], relevant])
        ranked = sort_edges(
            truth,
            grouped=TruthByUser.of(truth[0], num_queries),
            weight=unless_all_one(target[relevant].double()),
            num_candidates=num_candidates,
            origin=Provenance(num_masked=num_masked),
            **ranks._asdict(),
        )
        return ranked.with_ties(ties, seed=seed)

    @classmethod
    def from_negatives(
        cls, positive: TensorLike, negative: TensorLike, *, ties: Ties = "mean", seed: int = 0
    ) -> RankedEdges:
        r"""Ranks every positive against its negatives, given the scores that OGB and TGB take.

        Every positive is a row of its own with one relevant item. Negatives that all rows share are
        sorted once, so they take the memory of both tensors only. The hits@k of OGB are
        `hit_rate@k` with `ties="worst"`, and its MRR, like that of TGB, is `mrr` with
        `ties="mean"`.

        Args:
            positive (torch.Tensor): Floating-point scores of shape `[num_positives]`, higher is
                better. A positive with a score of `-inf` is never retrieved.
            negative (torch.Tensor): The scores of the negatives, of shape
                `[num_positives, num_negatives]`, or `[num_negatives]` if all rows share them. A
                multiple of `num_positives` could be either, and needs two dimensions, which
                `negative.view(num_positives, -1)` or `negative.expand(num_positives, -1)` adds. A
                score of `-inf` is padding, for rows that have fewer.
            ties (str, optional): How equal scores are ranked, see :meth:`with_ties`.
                (default: `"mean"`, with which a constant model has the mean rank of chance)
            seed (int, optional): The seed of `ties="random"`. (default: `0`)

        Returns:
            A ranking with a row for each positive, which is its only edge.

        Raises:
            TypeError: If an argument does not hold numbers.
            ValueError: If an argument has a wrong shape, dtype or device, scores are NaN or `inf`,
                a row has no finite score, there is no such way to rank ties, or `seed` is not a
                non-negative integer.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges, metrics
            >>> positive = torch.tensor([0.9, 0.2])
            >>> negative = torch.tensor([[0.1, 0.5, 0.3], [0.8, 0.2, 0.1]])
            >>> ranked = RankedEdges.from_negatives(positive, negative)
            >>> ranked.rank
            tensor([1.0000, 2.5000], dtype=torch.float64)
            >>> metrics.mrr(ranked)
            tensor([1.0000, 0.4000], dtype=torch.float64)
        """
        positive, negative = _check_negatives(positive, negative)
        count = _count_shared if negative.dim() == 1 else _count_own
        num_above, num_tied, num_negatives = count(positive, negative)
        is_candidate = ~positive.isneginf()
        num_candidates = num_negatives + is_candidate
        _check_not_empty(num_candidates == 0, "negative", "positive")
        ranks = Ranks(num_above + 1, num_above, num_tied)
        ranks.leave_out(~is_candidate)
        query = torch.arange(positive.numel(), device=positive.device)
        ranked = sort_edges(
            torch.stack([query, torch.zeros_like(query)]),
            grouped=TruthByUser.of(query, positive.numel()),
            num_candidates=num_candidates,
            origin=Provenance(
                num_masked=None if bool(is_candidate.all()) else (~is_candidate).long(),
                user_of_row=query,
            ),
            **ranks._asdict(),
        )
        return ranked.with_ties(ties, seed=seed)

    @classmethod
    def from_trec(
        cls, run: str | Path, qrels: str | Path, *, level: float | None = None
    ) -> RankedEdges:
        r"""Reads a run and its qrels, the files of trec_eval.

        Items are ordered by score, and equal scores rank the lower item id first, as everywhere in
        this package; :meth:`with_ties` ranks them in other ways. Like trec_eval, this ignores the
        column of ranks, what stands behind the last field, and lines that begin with `#`. Ids may
        be any strings. They are numbered, by value if all of them are integers; `user_ids` and
        `item_ids` keep what each number stands for. Files are text in UTF-8, and may be compressed
        by gzip. Memory is needed for the lines of both files, however long a list is.

        The users of the qrels are evaluated. One who is not in the run has no item retrieved, as
        with `trec_eval -c`. One who has judgements and no relevant item has no truth: with
        `empty_target_action="neg"` such users count as zero, as they do in trec_eval.

        Args:
            run (str or Path): A file with lines `user Q0 item rank score tag`.
            qrels (str or Path): A file with lines `user 0 item relevance`. A relevance of zero or
                less is not relevant; others are weights unless all are one.
            level (float, optional): The smallest relevance that is relevant, `trec_eval -l`.
                (default: `None`, all above zero)

        Returns:
            A ranking of what the qrels say is relevant, with the lists of the run.

        Raises:
            OSError: If a file cannot be opened, such as `FileNotFoundError`.
            ValueError: If a file is empty, a line is malformed, is not text in UTF-8 or repeats an
                item, or `level` is not positive; the error names the file and the line.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> from pyg_recmetrics import RankedEdges
            >>> folder = Path(tempfile.mkdtemp())
            >>> _ = (folder / "run").write_text("ann Q0 x 1 0.9 me\nann Q0 y 2 0.5 me\n")
            >>> _ = (folder / "qrels").write_text("ann 0 y 1\nbob 0 x 1\n")
            >>> ranked = RankedEdges.from_trec(folder / "run", folder / "qrels")
            >>> ranked.user_ids, ranked.item_ids, ranked.rank[0]
            (('ann', 'bob'), ('x', 'y'), tensor(2))
        """
        if level is not None and check_finite_number(level, "level") <= 0:
            raise ValueError(f"'level' needs to be positive (got {level!r})")
        scored, judged = _read_values(run, RUN, "score"), _read_values(qrels, QRELS, "relevance")
        user_ids, (user, judged_user) = number_texts([scored["user"], judged["user"]])
        item_ids, (item, judged_item) = number_texts([scored["item"], judged["item"]])
        score = torch.from_numpy(scored["value"].to_numpy(copy=True))
        relevance = torch.from_numpy(judged["value"].to_numpy(copy=True))
        edges, num_items = torch.stack([judged_user, judged_item]), len(item_ids)
        truth, weight = coalesce_truth(edges, relevance, num_items, level)
        lists, ranks = _rank_run(user, item, score, truth, len(user_ids), num_items)
        judged_users = judged_user.unique()
        return sort_edges(
            truth,
            grouped=TruthByUser.of(truth[0], len(user_ids)),
            weight=unless_all_one(weight),
            lists=lists,
            user_ids=tuple(map(str, user_ids)),
            item_ids=tuple(map(str, item_ids)),
            users=judged_users if judged_users.numel() < len(user_ids) else None,
            **ranks._asdict(),
        )

    @property
    def num_users(self) -> int:
        """The number of users, with or without truth."""
        return self.ptr.numel() - 1

    @cached_property
    def _grouped(self) -> TruthByUser:
        """What the ground truth says by itself."""
        return TruthByUser(self.edge_label_index[0], self.ptr)

    @property
    def degree(self) -> Tensor:
        """The number of relevant items R of every user, of shape `[num_users]`."""
        return self._grouped.degree

    def with_ties(self, ties: Ties, *, seed: int = 0) -> RankedEdges:
        r"""Returns a copy in which equal scores are ranked in another way.

        Only ranks change. Lists of recommended items keep the lower item id first.

        Args:
            ties (str): How a relevant item ranks among other candidates of the same score:

                - `"index"`: the item with the lower id first;
                - `"best"` and `"worst"`: relevant items first, and last. Metrics are then at their
                  upper and lower limits over all orders of the ties, but for those that a further
                  hit can lower: `map(normalizer=hits)`, `ndcg(ideal=retrieved)` and
                  `r_precision(users=hit)`;
                - `"mean"`: the mean of these two ranks, which may be a half. OGB and TGB rank so,
                  and PyKEEN calls it realistic. With it, the ROC-AUC is that of scikit-learn. If
                  relevant items of different weight tie with each other, the lighter ones come
                  first;
                - `"random"`: relevant items take random places among the others.
            seed (int, optional): The seed of `"random"`. What is drawn for a user depends on this
                seed and on the user alone. The global random state is not touched. (default: `0`)

        Raises:
            ValueError: If there is no such way to rank ties, `seed` is not a non-negative integer,
                scores are not known (as for lists), or `ties` is `"index"` and the ranking has been
                made in another way.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges
            >>> scores, target = torch.tensor([0.2, 0.2, 0.1, 0.2]), torch.tensor([0, 1, 0, 0])
            >>> ranked = RankedEdges.from_pairs(scores, target)
            >>> ranked.rank, ranked.num_tied
            (tensor([2]), tensor([2]))
            >>> ranked.with_ties("best").rank, ranked.with_ties("worst").rank
            (tensor([1]), tensor([3]))
            >>> ranked.with_ties("mean").rank
            tensor([2.], dtype=torch.float64)
        """
        seed = check_ties(ties, seed)
        if ties == self.ties and ties != "random":
            return self
        return self._with_ties(ties, seed)

    def _with_ties(
        self, ties: Ties, seed: int = 0, hits: tuple[int, int] | None = None
    ) -> RankedEdges:
        """Returns a copy that ranks equal scores in another way, see :func:`break_ties`."""
        if ties == "index":
            raise ValueError(
                f"'ties' cannot go back to 'index': this ranking was made with '{self.ties}'; rank "
                f"again"
            )
        rank = break_ties(self, ties, seed, hits)
        user, item = self.edge_label_index
        if self.depth is not None:
            deepest = self.degree.clamp(min=self.depth)[user]
            rank.masked_fill_(rank > deepest, NOT_RETRIEVED)
        origin = dataclasses.replace(self.origin, seed=seed if ties == "random" else None)
        fields = _of_edges(vars(self) | {"rank": rank}, lexsort([item, rank, user]))
        return dataclasses.replace(self, ties=ties, origin=origin, **fields)

    def with_catalogue(self, catalogue: Catalogue) -> RankedEdges:
        r"""Returns a copy with a catalogue, for the metrics that look at the items.

        Args:
            catalogue (Catalogue): What is known about the items.

        Raises:
            TypeError: If `catalogue` is not a `Catalogue`.
            ValueError: If it is on another device, or does not hold all items of the ranking.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
            >>> lists, truth = torch.tensor([[2, 0], [1, 0]]), torch.tensor([[0, 1], [1, 2]])
            >>> ranked = RankedEdges.from_topk(lists, truth).with_catalogue(Catalogue(num_items=4))
            >>> ranked.catalogue, metrics.coverage(ranked, k=1)
            (Catalogue(num_items=4), tensor(0.5000, dtype=torch.float64))
        """
        check_catalogue(catalogue)
        if catalogue is self.catalogue:
            return self
        catalogue._check_device(self.rank.device, "ranked")
        ids = [self.edge_label_index[1]]
        if self.lists is not None:
            ids.append(self.lists.item)
        if self.num_candidates is not None:
            ids.append(self.num_candidates - 1)
        largest = max_id(*ids)
        if largest >= catalogue.num_items:
            raise ValueError(
                f"'catalogue' needs to hold all items of the ranking, up to {largest} "
                f"(got num_items={catalogue.num_items})"
            )
        ranked = dataclasses.replace(self, catalogue=catalogue)
        set_attributes(ranked, _grouped=self._grouped)
        return ranked

    def each_edge(self, *, max_degree: int | None = None) -> RankedEdges:
        r"""Returns a ranking in which every edge is a row of its own, without the other truth.

        A row leaves out the other relevant items of its user. This gives the *filtered* rank of
        knowledge graphs, :math:`\text{rank} - \text{position} + 1`, as in evaluations by
        leave-one-out, or of one positive against many negatives. Row `r` is the `r`-th edge by user
        and item, as in the truth of a task. Rows of a user form one cluster, unless persons are
        known. Lists are dropped. If ranks are known down to a depth, `R - 1` of them are lost for
        the largest number of relevant items `R`, as so many other relevant items may come first.

        Args:
            max_degree (int, optional): The largest `R` of all users, if this is the ranking of some
                of them. (default: `None`, the largest here)

        Raises:
            ValueError: If given lists are so short that no rank is left.

        Sources: Bordes et al., "Translating embeddings for modeling multi-relational data" (2013).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import rank
            >>> scores, truth = torch.tensor([[0.4, 0.9, 0.5]]), torch.tensor([[0, 0], [0, 2]])
            >>> ranked = rank(scores, truth, full=True)
            >>> ranked.rank
            tensor([2, 3])
            >>> each = ranked.each_edge()
            >>> each.edge_label_index[1], each.rank, each.num_candidates
            (tensor([0, 2]), tensor([2, 2]), tensor([2, 2]))
        """
        if self.origin.user_of_row is not None:
            return self
        depth = depth_without_other_truth(self, max_degree or 0)
        ranks, can_be_retrieved = without_other_truth(self), _can_be_retrieved(self)
        if depth is not None:
            ranks.forget_beyond(torch.full_like(self.rank, depth))
            ranks.leave_out(~can_be_retrieved)  # which stays so
        known = ranks._asdict() if self.num_above is not None else {"rank": ranks.rank}
        order = lexsort([self.edge_label_index[1], self.edge_label_index[0]])
        fields = _of_edges(vars(self) | known, order)
        user, item = fields["edge_label_index"]
        can_be_retrieved = can_be_retrieved[order]
        num_candidates, origin = self.num_candidates, self.origin
        num_masked, listed, person = origin.num_masked, origin.listed, origin.person
        if num_candidates is not None:
            num_candidates = without_others(num_candidates, user, can_be_retrieved)
        if num_masked is not None:
            is_masked = ~can_be_retrieved
            if "is_candidate" in fields:
                is_masked &= fields["is_candidate"]
            num_masked = without_others(num_masked, user, is_masked)
        if listed is not None:  # the lists themselves are left out, but not their length
            listed = without_others(listed.t(), user, self.is_hit(None)[order]).t()
        row = torch.arange(user.numel() + 1, device=user.device)
        fields["edge_label_index"] = torch.stack([row[:-1], item])
        origin = dataclasses.replace(
            origin,
            num_masked=num_masked,
            listed=listed,
            person=user if person is None else person[user],
            user_of_row=user,
        )
        return dataclasses.replace(
            self,
            **fields,
            ptr=row,
            num_candidates=num_candidates,
            depth=depth,
            lists=None,
            users=None,
            origin=origin,
        )

    def with_person(self, person: TensorLike | Sequence[Hashable]) -> RankedEdges:
        """Returns a copy that knows the person that each row of users belongs to.

        Intervals and tests then draw persons, not rows. A ranking of a task knows those of the
        task.

        Args:
            person (torch.Tensor or sequence): A label for every user, of shape `[num_users]`:
                integers, or a sequence of names.

        Raises:
            TypeError: If `person` does not hold integers or names.
            ValueError: If there is not one for every user.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges
            >>> positive, negative = torch.tensor([0.9, 0.2, 0.4]), torch.tensor([0.5, 0.3])
            >>> ranked = RankedEdges.from_negatives(positive, negative)
            >>> ranked.with_person(["ann", "ann", "bob"]).origin.person
            tensor([0, 0, 1])
        """
        number = read_person(person, self.num_users, self.rank.device, self.user_ids)
        return dataclasses.replace(self, origin=dataclasses.replace(self.origin, person=number))

    def to(self, device: torch.device | str) -> RankedEdges:
        """Returns a copy on another device.

        Raises:
            ValueError: If the device has no double precision, which metrics need.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges
            >>> lists, truth = torch.tensor([[3, 1], [1, 5]]), torch.tensor([[0, 0, 1], [1, 9, 5]])
            >>> ranked = RankedEdges.from_topk(lists, truth)
            >>> ranked.to("cpu").rank.device
            device(type='cpu')
        """
        check_double_precision(torch.device(device), "device")
        moved: RankedEdges = _moved(self, device)
        return dataclasses.replace(moved, origin=_moved(self.origin, device))

    def __repr__(self) -> str:
        depth = "complete" if self.depth is None else self.depth
        return (
            f"{type(self).__name__}(num_users={self.num_users}, "
            f"num_edges={self.rank.numel()}, depth={depth})"
        )

    def _keys(self) -> tuple[Tensor, ...]:
        """Returns what random ties of each edge are drawn by, which is the same in any task."""
        row, item = self.edge_label_index
        user_of_row = self.origin.user_of_row
        user = row if user_of_row is None else user_of_row[row]
        if self.user_ids is not None:
            user = keys_of(self.user_ids).to(row.device)[user]
        return (user,) if user_of_row is None else (user, item)

    def is_hit(self, k: int | Tensor | None) -> Tensor:
        """Returns whether each edge is retrieved, booleans of shape `[num_edges]`.

        Metrics check that `k` is no deeper than the ranking. This does not.

        Args:
            k (int, torch.Tensor or None): The cut-off; one for every user, of shape `[num_users]`;
                or `None` for no cut-off.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges
            >>> lists, truth = torch.tensor([[3, 1], [1, 5]]), torch.tensor([[0, 0, 1], [1, 9, 5]])
            >>> ranked = RankedEdges.from_topk(lists, truth)
            >>> ranked.is_hit(1), ranked.is_hit(2)
            (tensor([False, False, False]), tensor([ True, False,  True]))
        """
        if isinstance(k, Tensor):
            return self.rank <= k.index_select(0, self._grouped.user)
        if k is None:
            return self.rank < NOT_RETRIEVED
        return self.rank <= k

    def hits(self, k: int | Tensor | None) -> Tensor:
        """Returns how many relevant items each user has in the top `k`, of shape `[num_users]`.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges
            >>> lists, truth = torch.tensor([[3, 1], [1, 5]]), torch.tensor([[0, 0, 1], [1, 9, 5]])
            >>> ranked = RankedEdges.from_topk(lists, truth)
            >>> ranked.hits(2)
            tensor([1., 1.], dtype=torch.float64)
        """
        if isinstance(k, Tensor):
            return self.sum(self.is_hit(k))
        if k not in self._hits:
            self._hits[k] = self.sum(self.is_hit(k))
        return self._hits[k].clone()

    @cached_property
    def _hits(self) -> dict[int | None, Tensor]:
        """The hits at every `k` that was asked for, since most metrics ask for the same ones."""
        return {}

    def sum(self, values: Tensor) -> Tensor:
        """Returns the sum of the values of each user's edges, doubles of shape `[num_users]`.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankedEdges
            >>> lists, truth = torch.tensor([[3, 1], [1, 5]]), torch.tensor([[0, 0, 1], [1, 9, 5]])
            >>> ranked = RankedEdges.from_topk(lists, truth)
            >>> ranked.sum(1 / ranked.rank)
            tensor([0.5000, 0.5000], dtype=torch.float64)
        """
        # Double precision makes the sum independent of the order in which a device adds up.
        return cast("Tensor", segment(values.double(), self.ptr, reduce="sum"))

    @cached_property
    def _is_evaluated(self) -> Tensor:
        """Whether each user is evaluated, of shape `[num_users]`."""
        if self.users is None:
            return torch.ones_like(self.degree, dtype=torch.bool)
        mask: Tensor = index_to_mask(self.users, self.num_users)
        return mask


# What metrics and results ask of a ranking.


def positions(ranked: RankedEdges) -> Tensor:
    """Returns the 1-based position of every edge among its user's edges, of shape `[num_edges]`."""
    return ranked._grouped.position


def has_constant_scores(ranked: RankedEdges) -> Tensor:
    """Returns whether all candidates of each user have the same score, of shape `[num_users]`.

    This is known for users with truth, if scores are known, and `False` for all others, such as
    users whose truth has a score of `-inf`.
    """
    if ranked.num_tied is None:
        return torch.zeros_like(ranked._is_evaluated)
    if ranked.num_candidates is None:  # of a run, whose scores are known and candidates are not
        lists = lists_of(ranked)
        num_candidates = lists.length(lists.width)
    else:
        num_candidates = ranked.num_candidates
    is_constant = ranked.num_tied + 1 == num_candidates[ranked.edge_label_index[0]]
    return ranked.sum(is_constant & (ranked.num_tied >= 0)) > 0


def count_irrelevant(ranked: RankedEdges) -> Tensor:
    """Returns the number of candidates of every user that are not relevant, of shape `[num_users]`.

    Raises:
        ValueError: If the number of candidates is not known.
    """
    return candidates_of(ranked) - ranked.sum(_can_be_retrieved(ranked)).long()


def candidates_of(ranked: RankedEdges) -> Tensor:
    """Returns the number of candidates of every user, of shape `[num_users]`.

    Raises:
        ValueError: If it is not known.
    """
    if ranked.num_candidates is None:
        raise ValueError("'ranked' needs to know the number of candidates (got only lists)")
    return ranked.num_candidates


def catalogue_of(ranked: RankedEdges) -> Catalogue:
    """Returns what is known about the items.

    Raises:
        ValueError: If there is no catalogue.
    """
    if ranked.catalogue is None:
        raise ValueError("'ranked' needs a catalogue: attach one by 'ranked.with_catalogue'")
    return ranked.catalogue


def lists_of(ranked: RankedEdges, k: int = 0) -> Lists:
    """Returns the lists of recommended items, of which at least the top `k` were kept.

    Raises:
        ValueError: If lists were not kept, or not down to `k`.
    """
    lists = ranked.lists
    if lists is None:
        raise ValueError(
            "'ranked' needs to hold the lists of recommended items: evaluate with 'keep_items=True'"
        )
    # Lists that were given are all there is, but a ranking could have kept more, unless it is one
    # of no users.
    may_be_cut = ranked.num_candidates is not None and 0 < lists.width < k
    if may_be_cut and lists.width < int(candidates_of(ranked).max()):
        raise ValueError(
            f"'k' needs to be at most {lists.width}, the number of items kept of each list, "
            f"unless more are kept with 'keep_items={k}' (got {k})"
        )
    return lists


def length_of_lists(ranked: RankedEdges, k: int) -> Tensor:
    """Returns the last place in the top `k` of every user's list with an item, `[num_users]`.

    A ranking by scores lists all candidates. A place without an item that others follow counts.

    Raises:
        ValueError: If neither lists nor the number of candidates are known.
    """
    if ranked.origin.listed is not None:
        return ListStatistics(*ranked.origin.listed.unbind(1)).length.clamp(0, k)
    if ranked.num_candidates is not None:
        return ranked.num_candidates.clamp(max=k)
    lists = lists_of(ranked)
    user, place, _ = lists.places(lists.width)
    length = torch.zeros_like(ranked.degree)
    return length.scatter_reduce_(0, user, place, "amax").clamp_(max=k)


def num_with_other_places(ranked: RankedEdges) -> int:
    """Returns how many users with truth have places in their lists that hold no candidate."""
    if ranked.origin.listed is None or ranked.origin.user_of_row is not None:
        return 0
    listed = ListStatistics(*ranked.origin.listed[ranked.degree > 0].unbind(1))
    return int((listed.length > listed.num_items).sum())


def select_users(ranked: RankedEdges, is_selected: Tensor) -> RankedEdges:
    """Returns a copy that evaluates only the users of a mask, of shape `[num_users]`.

    The truth and the lists of all others are left out.
    """
    is_selected = is_selected & ranked._is_evaluated
    return dataclasses.replace(
        select_edges(ranked, is_selected[ranked.edge_label_index[0]]),
        users=is_selected.nonzero().squeeze(1),
        lists=None if ranked.lists is None else ranked.lists.of(is_selected),
    )


def select_edges(ranked: RankedEdges, mask: Tensor) -> RankedEdges:
    """Returns a copy whose truth has only some of the edges. Ranks stay what they are.

    Args:
        ranked (RankedEdges): The ranking.
        mask (torch.Tensor): The edges to keep, booleans of shape `[num_edges]`.
    """
    fields = _of_edges(vars(ranked), mask.nonzero().squeeze(1))
    ptr = index2ptr(fields["edge_label_index"][0], ranked.num_users)
    return dataclasses.replace(ranked, ptr=ptr, **fields)


def sort_edges(truth: Tensor, rank: Tensor, grouped: TruthByUser, **fields: Any) -> RankedEdges:
    """Sorts edges of known `rank` by user and rank; those of a user come sorted by item.

    Args:
        truth (torch.Tensor): The edges, of shape `[2, num_edges]`.
        rank (torch.Tensor): Their ranks, of shape `[num_edges]`.
        grouped (TruthByUser): The users of the edges.
        **fields: Other fields of :class:`RankedEdges`, with their values for these edges.
    """
    fields |= {"edge_label_index": truth, "rank": rank}
    fields |= _of_edges(fields, order_of_edges(grouped.user, rank))
    ranked = RankedEdges(ptr=grouped.ptr, **fields)
    set_attributes(ranked, _grouped=grouped)
    return ranked


def fields_of(ranked: RankedEdges) -> dict[str, Any]:
    """Returns all fields by name, with lists and catalogue as dictionaries of their own."""
    fields = arguments_of(ranked) | arguments_of(ranked.origin)
    del fields["origin"]
    return fields | {
        "lists": ranked.lists and arguments_of(ranked.lists),
        "catalogue": ranked.catalogue and ranked.catalogue.to_dict(),
    }


def from_fields(fields: Mapping[str, Any]) -> RankedEdges:
    """Returns what :func:`fields_of` was called on.

    Raises:
        KeyError: If a field is missing.
    """
    # Files keep original ids as lists.
    parts = {name: tuple(x) if isinstance(x, list) else x for name, x in fields.items()}
    parts |= {
        "lists": fields["lists"] and made_of(Lists, fields["lists"]),
        "catalogue": fields["catalogue"] and Catalogue(**fields["catalogue"]),
        "origin": made_of(Provenance, fields),
    }
    return made_of(RankedEdges, parts)


def _can_be_retrieved(ranked: RankedEdges) -> Tensor:
    """Returns whether each edge is a candidate that no score keeps out, of shape `[num_edges]`."""
    if ranked.num_tied is not None:
        return ranked.num_tied >= 0
    if ranked.is_candidate is not None:
        return ranked.is_candidate
    return torch.ones_like(ranked.rank, dtype=torch.bool)


def _moved(value: Any, device: torch.device | str) -> Any:
    """Returns a copy that holds its parts on another device."""
    parts = {
        name: part.to(device)
        for name, part in arguments_of(value).items()
        if isinstance(part, Tensor | Lists | Catalogue)
    }
    return dataclasses.replace(value, **parts)


def _of_edges(fields: Mapping[str, Any], edges: Tensor) -> dict[str, Any]:
    """Returns what fields hold for some edges, by the names of those that hold anything."""
    values = {name: fields.get(name) for name in ("edge_label_index", *PER_EDGE)}
    # To index takes several times as long.
    return {name: x.index_select(-1, edges) for name, x in values.items() if x is not None}
