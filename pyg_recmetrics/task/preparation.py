"""What a task makes of its arguments: edges that are checked, sorted and can be retrieved."""

from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric.utils import index_to_mask

from pyg_recmetrics.checks import (
    check_bipartite,
    check_choice,
    check_device,
    check_finite_number,
    check_ids,
    check_integers,
    check_labels,
    check_matrix,
    check_positive_integer,
    check_weight,
)
from pyg_recmetrics.inputs import EdgesLike, TensorLike, as_edges
from pyg_recmetrics.labels import read_labels
from pyg_recmetrics.messages import warn
from pyg_recmetrics.task.edges import coalesce_edges, coalesce_truth, contains, count_zero_ratings

#: What becomes of truth that is not among the candidates.
Missing: TypeAlias = Literal["count", "drop"]


def read_person(
    person: Any, num_users: int, device: torch.device, user_ids: Sequence[Hashable] | None
) -> Tensor | None:
    """Returns the number of the person to whom each user belongs, of shape `[num_users]`."""
    if person is None:
        return None
    check_labels(person, "person", user_ids)
    return number_persons(person, "user", num_users).to(device)


def number_persons(person: Any, what: str, num_wanted: int) -> Tensor:
    """Returns the number of the person of each user, or of each of something else."""
    number, _ = read_labels(person, "person", what, num_wanted)
    if num_without := int((number < 0).sum()):
        raise ValueError(
            f"'person' needs to name a person for every {what} (got none for {num_without} of them)"
        )
    return number


def read_query(query: TensorLike | None, num_users: int, device: torch.device) -> Tensor | None:
    """Returns the query that each user stands for, of shape `[num_users, num_columns]`."""
    if query is None:
        return None
    rows = check_integers(query, "query")
    if rows.dim() != 2 or rows.size(0) != num_users or rows.size(1) == 0:
        raise ValueError(
            f"'query' needs to have shape [{num_users}, num_columns], a row for every user "
            f"(got {list(rows.shape)})"
        )
    check_device(rows, "query", device, "truth")
    return rows


def read_num_relations(num_relations: int | None, query: Tensor | None) -> int | None:
    """Returns the number of relations, if queries consist of an entity and a relation."""
    if num_relations is None:
        return None
    num_relations = check_positive_integer(num_relations, "num_relations")
    if query is None or query.size(1) != 2:
        raise ValueError(
            f"'num_relations' needs a 'query' of two columns, an entity and a relation "
            f"(got {'none' if query is None else list(query.shape)})"
        )
    check_ids(query[:, 1], "query", "relation", 2 * num_relations)
    return num_relations


def read_seen(
    seen: EdgesLike | None, num_users: int, num_items: int, device: torch.device
) -> Tensor:
    """Returns the coalesced edges to what users have seen."""
    if seen is None:
        return torch.empty(2, 0, dtype=torch.long, device=device)
    edges = check_bipartite(seen, "seen", num_users, num_items)
    check_device(edges, "seen", device, "truth")
    return coalesce_edges(edges, num_items)


def read_candidates(
    candidates: EdgesLike | None, num_users: int, num_items: int, device: torch.device
) -> Tensor | None:
    """Returns the sorted items that all users share, or the coalesced edges of each user."""
    if candidates is None:
        return None
    items_or_edges = check_integers(as_edges(candidates, "candidates")[0], "candidates")
    check_device(items_or_edges, "candidates", device, "truth")
    if items_or_edges.dim() == 1:
        check_ids(items_or_edges, "candidates", "item", num_items)
        shared: Tensor = torch.unique(items_or_edges)
        return shared
    check_matrix(candidates, "candidates", num_users, num_items)
    edges = check_bipartite(items_or_edges, "candidates", num_users, num_items)
    return coalesce_edges(edges, num_items)


def read_missing(missing: Missing | None, candidates: Tensor | None) -> Missing:
    """Returns what becomes of truth that is no candidate.

    Candidates that all users share say which part of the catalogue is looked at. A user's own
    candidates are what others have retrieved, so what is not among them has been missed.
    """
    if missing is None:
        return "count" if candidates is not None and candidates.dim() == 2 else "drop"
    check_choice(missing, "missing", get_args(Missing))
    return missing


def read_users(users: TensorLike | None, num_users: int, device: torch.device) -> Tensor:
    """Returns the sorted ids of the users to evaluate."""
    if users is None:
        return torch.arange(num_users, device=device)
    ids = check_integers(users, "users")
    check_device(ids, "users", device, "truth")
    if ids.dim() != 1:
        raise ValueError(f"'users' needs to have shape [num_users] (got {list(ids.shape)})")
    check_ids(ids, "users", "user", num_users)
    evaluated: Tensor = torch.unique(ids)
    return evaluated


def read_weight(weight: Tensor | None, edges: Tensor) -> Tensor | None:
    """Returns the weight of every edge in double precision, of shape `[num_edges]`."""
    if weight is None:
        return None
    in_double = check_weight(weight, "weight", edges)
    check_device(weight, "weight", edges.device, "truth")
    return in_double


def read_threshold(threshold: float | None, weight: Tensor | None) -> float | None:
    """Returns the smallest weight of a relevant item, in the precision in which weights came."""
    if threshold is None:
        warn_about_zero_ratings(0 if weight is None else count_zero_ratings(weight))
        return None
    if check_finite_number(threshold, "threshold") <= 0:
        raise ValueError(f"'threshold' needs to be positive (got {threshold!r})")
    if weight is None:
        raise ValueError(
            f"'threshold' needs a 'weight' of every edge, or data with an 'edge_label' "
            f"(got {threshold!r} and no weights)"
        )
    if not weight.is_floating_point():
        return threshold
    # A rating of 4.1 reaches a threshold of 4.1, also as 4.0999999 in single precision.
    return float(torch.tensor(threshold, dtype=weight.dtype, device="cpu"))


def find_relevant(
    edges: Tensor, weight: Tensor | None, threshold: float | None, num_items: int
) -> tuple[Tensor, Tensor | None]:
    """Returns the coalesced edges that are relevant, and their weights."""
    if edges.size(1) == 0:
        raise ValueError("'truth' needs to hold at least one edge (got none)")
    truth, weight_of_truth = coalesce_truth(edges, weight, num_items, threshold)
    if weight is None or truth.size(1):
        return truth, weight_of_truth
    largest = f"{float(weight.max()):g}"
    if threshold is None:
        raise ValueError(
            f"'weight' needs to be positive for at least one edge (got at most {largest})"
        )
    raise ValueError(
        f"'threshold' needs to be reached by the weight of at least one edge "
        f"(got {threshold:g}, and weights of at most {largest})"
    )


def check_truth_of(users: Tensor, truth: Tensor) -> None:
    """Raises if none of the users to evaluate has ground truth."""
    if truth.size(1) == 0:
        raise ValueError(
            f"'users' (or the 'eval_mask' of data) needs to hold a user with ground truth "
            f"(got {users.numel()} users, none with ground truth)"
        )


def truth_of(
    truth: Tensor, weight: Tensor | None, users: Tensor, num_users: int
) -> tuple[Tensor, Tensor | None]:
    """Returns the truth of some users, and its weights."""
    return select(truth, weight, index_to_mask(users, num_users)[truth[0]])


def keep_retrievable(
    truth: Tensor,
    weight: Tensor | None,
    excluded: Tensor,
    candidates: Tensor | None,
    num_items: int,
    missing: Missing,
) -> tuple[Tensor, Tensor | None]:
    """Returns the truth that can be retrieved or counts as missed, and warns of all other."""
    in_seen = contains(excluded, truth, num_items)
    remedy = (
        "truth that a model learns from is a leak, unless this is the training part of a split, "
        "which takes 'exclude_seen=False'"
    )
    is_missing = ~are_candidates(truth, candidates, num_items)
    losses = [
        (in_seen, "are also in 'seen'", remedy),
        (is_missing, "are not among the 'candidates'", "add relevant items to the 'candidates'"),
    ]
    is_kept = torch.ones_like(in_seen)
    for is_lost, reason, remedy in losses:
        is_left = is_kept & ~is_lost
        counts_as_missed = is_lost is is_missing and missing == "count"
        if not counts_as_missed and (num_lost := int((is_lost & is_kept).sum())):
            warn(
                f"ground-truth edges that {reason}: {num_lost} of {int(is_kept.sum())}. They can "
                f"never be retrieved, and are taken out of the truth"
                f"{_what_is_missing(is_kept, is_left) if is_lost is is_missing else ''}"
            )
        if not bool(is_left.any()):
            raise ValueError(
                f"'truth' needs to hold an edge that can be retrieved: {remedy} (got only "
                f"edges that {reason})"
            )
        is_kept = is_kept if counts_as_missed else is_left
    return select(truth, weight, is_kept)


def _what_is_missing(is_kept: Tensor, is_left: Tensor) -> str:
    return (
        f". A recall of 1 then stands for {int(is_left.sum()) / int(is_kept.sum()):.4f} of all "
        f"truth; if the candidates come from a first stage, what it has missed counts with "
        f"missing='count'"
    )


def count_candidates(
    candidates: Tensor | None, excluded: Tensor, num_users: int, num_items: int
) -> Tensor:
    """Returns how many items can be recommended to each user, of shape `[num_users]`."""
    user = excluded[0, are_candidates(excluded, candidates, num_items)]
    num_excluded = torch.bincount(user, minlength=num_users)
    if candidates is None:
        return num_items - num_excluded
    if candidates.dim() == 1:
        return candidates.numel() - num_excluded
    return torch.bincount(candidates[0], minlength=num_users) - num_excluded


def warn_about_low_ratings(rating: Tensor) -> None:
    """Warns of positive ratings that differ, as the lowest is relevant without a threshold."""
    low, high = (float(bound) for bound in rating.aminmax()) if rating.numel() else (0.0, 0.0)
    if 0 < low < high:
        warn(
            f"all {rating.numel()} ratings count as relevant, from {low:g} to {high:g}. Set "
            f"'threshold' to choose the cut-off."
        )


def warn_about_zero_ratings(num_zero: int) -> None:
    """Warns if edges are left out of the truth because their rating is zero or less."""
    if num_zero:
        warn(
            f"{num_zero} edges have a rating of zero or less and are ignored; all others count as "
            f"relevant. Set 'threshold' to choose the cut-off.",
        )


def are_candidates(edges: Tensor, candidates: Tensor | None, num_items: int) -> Tensor:
    """Returns whether each edge is one to a candidate of its user, of shape `[num_edges]`."""
    if candidates is None:
        return torch.ones_like(edges[0], dtype=torch.bool)
    if candidates.dim() == 1:
        return torch.isin(edges[1], candidates)
    return contains(candidates, edges, num_items)


def select(truth: Tensor, weight: Tensor | None, is_kept: Tensor) -> tuple[Tensor, Tensor | None]:
    """Returns the truth that is kept, and its weights."""
    return truth[:, is_kept], None if weight is None else weight[is_kept]
