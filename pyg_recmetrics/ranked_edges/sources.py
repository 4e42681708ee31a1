"""Ranks from what another system computed: lists, or scored pairs."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_device,
    check_double_precision,
    check_finite,
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
from pyg_recmetrics.ranked_edges.lists import Lists
from pyg_recmetrics.task.edges import coalesce_truth
from pyg_recmetrics.utils import warn

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
            f"'from_pairs' ranks all {relevant.numel():,} relevant pairs as one query, of which a "
            f"hit rate or an MRR looks for the first alone. If each of them is a query against "
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
