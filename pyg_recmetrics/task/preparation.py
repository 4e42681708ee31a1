"""What a task makes of its other arguments than edges, and of those that are optional."""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, get_args

import torch
from torch import Tensor

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
from pyg_recmetrics.inputs import EdgesLike, TensorLike, as_edges, read_labels
from pyg_recmetrics.task.edges import Missing, coalesce_edges, count_zero_ratings
from pyg_recmetrics.utils import warn


def read_person(
    person: Any, num_users: int, device: torch.device, user_ids: Sequence[Hashable] | None
) -> Tensor | None:
    """Returns the number of the person that each user belongs to, of shape `[num_users]`."""
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
    """Returns how to treat truth that is no candidate.

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


def read_ratings(weight: Tensor, edges: Tensor) -> Tensor | None:
    """Returns the weight of every edge of a task without a threshold, see :func:`read_weight`."""
    in_double = read_weight(weight, edges)
    read_threshold(None, weight)
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


def check_truth_of(users: Tensor, truth: Tensor) -> None:
    """Raises if none of the users to evaluate has ground truth."""
    if truth.size(1) == 0:
        raise ValueError(
            f"'users' (or the 'eval_mask' of data) needs to hold a user with ground truth "
            f"(got {users.numel()} users, none with ground truth)"
        )


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


def digest(fields: Mapping[str, object]) -> str:
    """Returns what tells the arguments of a task from those of any other, on whatever device."""
    hashed = hashlib.blake2b(digest_size=16)
    for name, value in sorted(fields.items()):
        said = f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else repr(value)
        hashed.update(f"{name} {len(said)} {said} ".encode(errors="backslashreplace"))
        if isinstance(value, Tensor):
            hashed.update(value.cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()
