"""merge(): the result of all users, from the results of some of them each.

A ranking of some users is complete in itself: no number in it depends on other users. So rankings
are laid side by side, and then measured.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import cumsum

from pyg_recmetrics.checks import check_boolean
from pyg_recmetrics.kernels.entries import spread
from pyg_recmetrics.ranked_edges import (
    PER_EDGE,
    RankedEdges,
    catalogue_of,
    fields_of,
    from_fields,
)
from pyg_recmetrics.results.result import EvaluationResult, largest
from pyg_recmetrics.results.runs import check_alike, differing_keys, how_measured, is_same
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.task import PartOf
from pyg_recmetrics.utils import list_some, warn

#: What parts of one task have in common, and tasks of other users need not have.
_OF_USERS = {"num_users", "user_ids", "seen", "candidates", "person", "query"}

#: What all tasks have in common whose results can be merged.
_OF_ITEMS = ("num_items", "item_ids", "exclude_seen", "threshold", "missing", "num_relations")

#: What a ranking has for each of its rows.
_PER_ROW = ("num_candidates", "num_masked", "listed", "person")

#: What a ranking has that does not say it: no masked items, and nothing but candidates.
_IF_MISSING: dict[str, Callable[[Mapping[str, Tensor]], Tensor]] = {
    "num_masked": lambda ranked: torch.zeros_like(ranked["ptr"][1:]),
    "is_candidate": lambda ranked: torch.ones_like(ranked["rank"], dtype=torch.bool),
}

#: What results that are merged need to be.
_NEED = "hold results that differ in their users alone"


def merge(
    results: Iterable[EvaluationResult | str | Path], *, partial: bool = False
) -> EvaluationResult:
    r"""Merges the results of disjoint users: the result of all, as one call would have returned it.

    Every mean, value per user and interval is that of one call, to the last bit. A part knows how
    many users its task has, so missing users raise an error.

    Args:
        results (iterable): The results, or the files in which :meth:`EvaluationResult.save` has
            written them, in any order. They are of

            - parts of one task, which :meth:`RankingTask.part` returns: users stand in the order of
              the task; or
            - tasks of the same items with users of their own, which `user_ids` name: users stand
              one after the other. Item `i` needs to be the same item in all of them.
        partial (bool, optional): Whether parts of one task may be missing. A warning, the table and
            the recipe then say how many users were merged. (default: `False`)

    Returns:
        The result of all of these users.

    Raises:
        OSError: If a file cannot be opened.
        TypeError: If something is neither a result nor a path, or `partial` is not a boolean.
        ValueError: If there is no result, a user is in two of them, parts of a task are missing or
            are of another task (with other truth, say), one has a margin or no task, or they differ
            in items, metrics, convention, depth, ties or catalogue; the error says in what they
            differ.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate, merge
        >>> truth, scores = torch.tensor([[0, 1, 2], [2, 0, 1]]), torch.tensor([0.1, 0.3, 0.2])
        >>> task = RankingTask(truth, num_users=3, num_items=3)
        >>> parts = [evaluate(scores, task.part(index, 2), "recall@2") for index in range(2)]
        >>> [dict(part) for part in parts]
        [{'recall@2': 1.0}, {'recall@2': 0.0}]
        >>> dict(merge(parts)) == dict(evaluate(scores, task, "recall@2"))
        True
    """
    if isinstance(results, str | PathLike | Mapping) or not isinstance(results, Iterable):
        raise TypeError(
            f"'results' needs to be an iterable of results or of their files (got "
            f"{type(results).__name__})"
        )
    is_partial = check_boolean(partial, "partial")
    parts = [_read(result) for result in results]
    if not parts:
        raise ValueError("'results' needs to hold at least one result (got none)")
    first = parts[0]
    device = first.ranked.rank.device
    tasks = [_task_of(part).to(device) for part in parts]
    rankings = [part.ranked.to(device) for part in parts]
    _check_alike(parts, tasks)
    task, edge, row = _join(tasks, is_partial)
    is_per_edge = first.ranked.origin.user_of_row is not None
    fields = _side_by_side(rankings, edge if is_per_edge else row, task)
    fields["catalogue"] |= {"seen": _seen(rankings, tasks, task)}
    merged = EvaluationResult(
        from_fields(fields),
        first.metrics,
        task=task,
        empty_target_action=first.empty_target_action,
        convention=first.convention,
        num_left_out=sum(part.user_counts.num_left_out for part in parts),
        average_over=first.average_over,
        num_calls=max(part.num_calls for part in parts),
    )
    return merged._with(
        num_trials=largest(part.num_trials for part in parts),
        seconds=largest(part.seconds for part in parts),
    )


def _read(result: object) -> EvaluationResult:
    if isinstance(result, str | PathLike):
        return EvaluationResult.load(Path(result))
    if isinstance(result, EvaluationResult):
        return result
    raise TypeError(
        f"'results' needs to hold results, or paths of saved ones (got {type(result).__name__})"
    )


def _task_of(result: EvaluationResult) -> RankingTask:
    if result.sampling is None and result.task is not None:
        return result.task
    what = "without a task" if result.task is None else "with a margin"
    raise ValueError(
        f"'results' needs to hold results of all users of their tasks (got one {what})"
    )


def _check_alike(parts: Sequence[EvaluationResult], tasks: Sequence[RankingTask]) -> None:
    """Raises if results differ in anything that is not about their users."""
    # Of few candidates, all ranks are known, and lists of no users are empty: these fit all others.
    depth = largest(part.ranked.depth for part in parts)
    width = largest(part.ranked.lists.width for part in parts if part.ranked.lists is not None)
    facts: dict[str, dict[str, object]] = {}
    for number, (part, task) in enumerate(zip(parts, tasks, strict=True)):
        ranked = part.ranked
        catalogue = catalogue_of(ranked)
        candidates = task.candidates
        has_own_candidates = candidates is not None and candidates.dim() > 1
        facts[f"result {number}"] = {
            **how_measured(part),
            "metrics": part.metrics,
            "ties": (ranked.ties, ranked.num_tied is None),
            "seed": ranked.origin.seed,
            "recommender": ranked.origin.ranked_by,
            "depth": ranked.depth or depth,
            "keep_items": ranked.lists and (ranked.lists.width or width),
            "weight": task.weight is None,
            "candidates": "of each user" if has_own_candidates else candidates,
            "query": None if task.query is None else task.query.size(1),
            "item_embedding": catalogue.item_embedding,
            "item_category": catalogue.item_category,
            **{name: getattr(task, name) for name in _OF_ITEMS},
        }
    check_alike(facts, _NEED)


def _join(tasks: Sequence[RankingTask], partial: bool) -> tuple[RankingTask, Tensor, Tensor]:
    """Returns the task of all users, and where each of its edges and of its users comes from.

    That is a place among the edges and the users of all tasks, which follow one another.
    """
    first = tasks[0]
    fields = [task.to_dict() for task in tasks]
    differing = {key for other in fields for key in differing_keys(fields[0], other)} & _OF_USERS
    *starts, num_users = accumulate((task.num_users for task in tasks), initial=0)
    # Parts of one task number its users alike, and other tasks have users of their own.
    offsets = starts if differing else [0] * len(tasks)
    truth = _shifted([task.truth for task in tasks], offsets)
    edge = truth[0].argsort(stable=True)  # those of each user are sorted by item
    users = [task.users + offset for task, offset in zip(tasks, offsets, strict=True)]
    changes: dict[str, Any] = {
        "truth": truth[:, edge],
        "weight": _together(fields, "weight", edge),
        "users": torch.cat(users).sort().values,
    }
    if differing:
        user_ids = _ids_of_all(tasks, differing)
        candidates = first.candidates
        if candidates is not None and candidates.dim() > 1:
            candidates = _shifted([of_task["candidates"] for of_task in fields], offsets)
        changes |= {
            "num_users": num_users,
            "user_ids": user_ids,
            "seen": _shifted([task.seen for task in tasks], offsets),
            "candidates": candidates,
            "query": _together(fields, "query"),
        }
        whole = RankingTask.from_dict(fields[0] | changes)
    else:
        numbers = changes["users"].tolist()
        _check_once(numbers if first.user_ids is None else [first.user_ids[x] for x in numbers])
        whole = first._with(**changes, part_of=_part_of(tasks, partial))
    row = torch.arange(whole.num_users, device=first.device)
    for task, of_task, start in zip(tasks, users, starts, strict=True):
        row[of_task] = task.users + start
    return whole, edge, row


def _check_once(users: Iterable[Hashable]) -> None:
    """Raises if a user is there twice."""
    if repeated := [user for user, number in Counter(users).items() if number > 1]:
        raise ValueError(
            f"'results' needs to hold each user once (got {len(repeated)} users twice, such as "
            f"{repeated[0]!r})"
        )


def _ids_of_all(tasks: Sequence[RankingTask], differing: Iterable[str]) -> tuple[Hashable, ...]:
    """Returns the ids of the users of tasks that have users of their own."""
    if any(task.user_ids is None or task.person is not None for task in tasks):
        raise ValueError(
            f"'results' needs to hold parts of one task, or of tasks without persons whose "
            f"'user_ids' name their users (got tasks that differ in {', '.join(sorted(differing))})"
        )
    if any(task.part_of for task in tasks):
        raise ValueError("'results' needs to hold all parts of a task as one result (got parts)")
    user_ids = tuple(id_ for task in tasks for id_ in task.user_ids or ())
    _check_once(user_ids)
    return user_ids


def _part_of(tasks: Sequence[RankingTask], partial: bool) -> PartOf | None:
    """Returns what the users of some parts are a part of; `None` if they are a whole task."""
    parts = [task.part_of for task in tasks]
    if len({part and part.digest for part in parts}) > 1:
        raise ValueError(
            "'results' needs to hold parts of one task (got parts of several, whose truth, "
            "weights or users differ)"
        )
    whole = parts[0]
    number = sum(part.num_own for part in parts if part)
    if whole is None or number == whole.num_users:
        return None
    held = f"{number:,} of the {whole.num_users:,} users of a task"
    found = {(part.num_parts, part.number) for part in parts if part}
    all_parts = {(whole.num_parts, index) for index in range(whole.num_parts)}
    if found < all_parts:
        missing = [f"part {index}" for _, index in sorted(all_parts - found)]
        held += f", not those of {list_some(missing)} of {whole.num_parts}"
    if not partial:
        raise ValueError(
            f"'results' needs to hold all parts of a task (got {held}); for the result of "
            f"these users alone, write merge(results, partial=True)"
        )
    warn(f"'results' hold {held}: every number is of these users alone")
    return whole._replace(num_own=number, num_parts=0)


def _side_by_side(
    rankings: Sequence[RankedEdges], source: Tensor, task: RankingTask
) -> dict[str, Any]:
    """Returns the fields of the ranking of all users, from those of some users each.

    Args:
        rankings (sequence of RankedEdges): The rankings.
        source (torch.Tensor): Which row of all rankings becomes each row, of shape `[num_rows]`.
        task (RankingTask): The task of all users.
    """
    parts = [fields_of(ranked) for ranked in rankings]
    *starts, num_sources = accumulate((ranked.num_users for ranked in rankings), initial=0)
    place = source.new_full((num_sources,), -1)
    place[source] = torch.arange(len(source), device=source.device)
    user, item = _shifted([ranked.edge_label_index for ranked in rankings], starts)
    row, order = place[user].sort(stable=True)
    is_evaluated = torch.cat([ranked._is_evaluated for ranked in rankings])[source]
    fields = parts[0] | {name: _together(parts, name, order) for name in PER_EDGE}
    fields |= {name: _together(parts, name, source) for name in _PER_ROW}
    if fields["user_of_row"] is not None:
        # A user is a person with all of its edges, unless persons are known.
        person = task.truth[0] if task.person is None else fields["person"]
        fields |= {"person": person, "user_of_row": task.truth[0]}
    depth = largest(ranked.depth for ranked in rankings)
    if depth is not None and fields["listed"] is None and fields["num_candidates"] is not None:
        # All ranks are known if no user has more candidates.
        depth = depth if bool((fields["num_candidates"] > depth).any()) else None
    return fields | {
        "edge_label_index": torch.stack([row, item[order]]),
        "ptr": index2ptr(row, len(source)),
        "users": None if bool(is_evaluated.all()) else is_evaluated.nonzero().squeeze(1),
        "lists": _lists([part["lists"] for part in parts], source),
        "depth": depth,
        "user_ids": task.user_ids,
    }


def _shifted(edges: Iterable[Tensor], offsets: Iterable[int]) -> Tensor:
    """Returns the edges of all parts, whose users have the numbers from an offset on."""
    shifted = []
    for (user, item), offset in zip(edges, offsets, strict=True):
        shifted.append(torch.stack([user + offset, item]))
    return torch.cat(shifted, dim=1)


def _together(
    parts: Sequence[Mapping[str, Any]], name: str, index: Tensor | None = None
) -> Tensor | None:
    """Returns the values of all parts, in the order of an index; `None` if there are none."""
    if all(part[name] is None for part in parts):
        return None
    known = [_IF_MISSING[name](part) if part[name] is None else part[name] for part in parts]
    together = torch.cat(known)
    return together if index is None else together[index]


def _lists(lists: Sequence[Mapping[str, Tensor]], source: Tensor) -> dict[str, Tensor] | None:
    """Returns the lists of all rows, from those of each ranking; `None` if there are none."""
    if not lists[0]:
        return None
    lengths = torch.cat([each["ptr"].diff() for each in lists])
    starts = lengths.cumsum(0) - lengths
    _, place = spread(starts[source], lengths[source])
    return {
        "item": torch.cat([each["item"] for each in lists])[place],
        "ptr": cumsum(lengths[source]),
    }


def _seen(
    rankings: Sequence[RankedEdges], tasks: Sequence[RankingTask], task: RankingTask
) -> Tensor | None:
    """Returns the seen edges of the catalogue: those of the tasks, or those all have in common."""
    seen = [catalogue_of(ranked).seen for ranked in rankings]
    if all(is_same(x, of.catalogue.seen) for x, of in zip(seen, tasks, strict=True)):
        return task.catalogue.seen
    check_alike({f"result {number}": {"catalogue": x} for number, x in enumerate(seen)}, _NEED)
    return seen[0]
