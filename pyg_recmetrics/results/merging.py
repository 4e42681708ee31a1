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
from pyg_recmetrics.ranked_edges import (
    PER_EDGE,
    Lists,
    Provenance,
    RankedEdges,
    catalogue_of,
    evaluated_mask,
)
from pyg_recmetrics.results.result import EvaluationResult, largest
from pyg_recmetrics.results.runs import check_alike, differing_keys, how_measured, is_same
from pyg_recmetrics.task import Catalogue, RankingTask
from pyg_recmetrics.task.task import PartOf
from pyg_recmetrics.utils import arguments_of, list_some, made_of, warn

#: What parts of one task have in common, and tasks of other users need not have.
_OF_USERS = ("num_users", "user_ids", "seen", "candidates", "person", "query")

#: What all tasks have in common whose results can be merged.
_OF_ITEMS = ("num_items", "item_ids", "exclude_seen", "threshold", "missing", "num_relations")

#: What a ranking has for each of its rows.
_PER_ROW = ("num_candidates", "num_masked", "listed", "person")

#: What a ranking has that does not say it: no masked items, and nothing but candidates.
_IF_MISSING: dict[str, Callable[[Mapping[str, Tensor]], Tensor]] = {
    "num_masked": lambda ranked: torch.zeros_like(ranked["ptr"][1:]),
    "is_candidate": lambda ranked: torch.ones_like(ranked["rank"], dtype=torch.bool),
}

#: What is known about items, besides who has seen them.
_FACTS = ("item_embedding", "item_category")


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
    parts = [_read(result) for result in results]
    if not parts:
        raise ValueError("'results' needs to hold at least one result (got none)")
    first = parts[0]
    device = parts[0].ranked.rank.device
    tasks = [_task_of(part).to(device) for part in parts]
    _check_alike(parts, tasks)
    is_partial = check_boolean(partial, "partial")
    per_edge = first.ranked.origin.user_of_row is not None
    of_users = [{name: getattr(task, name) for name in _OF_USERS} for task in tasks]
    differing = sorted({key for x in of_users for key in differing_keys(of_users[0], x)})
    if differing:
        task, source = _append(tasks, per_edge, differing)
    else:
        task, source = _join(tasks, per_edge, is_partial)
    rankings = [part.ranked.to(device) for part in parts]
    merged = EvaluationResult(
        _side_by_side(rankings, source, task, _catalogue(rankings, tasks, task)),
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
    pairs = zip(parts, tasks, strict=True)
    facts = {f"result {number}": _in_common(*pair) for number, pair in enumerate(pairs)}
    check_alike(facts, "hold results that differ in their users alone")
    depths = {x for part in parts if (x := part.ranked.depth) is not None}
    # Where no user is evaluated, lists are empty.
    widths = {of.width for part in parts if (of := part.ranked.lists) is not None} - {0}
    for what, found in (("lists of one length", widths), ("rankings of one depth", depths)):
        if len(found) > 1:
            raise ValueError(
                f"'results' needs to hold {what} (got {sorted(found)}); give the same metrics and "
                f"'keep_items' to each part"
            )


def _in_common(result: EvaluationResult, task: RankingTask) -> dict[str, object]:
    ranked = result.ranked
    catalogue = catalogue_of(result.ranked)
    candidates = task.candidates
    query = task.query
    return {
        **how_measured(result),
        "metrics": result.metrics,
        "ties": (ranked.ties, ranked.num_tied is None),
        "seed": ranked.origin.seed,
        "recommender": ranked.origin.ranked_by,
        "keep_items": ranked.lists is None,
        "weight": task.weight is None,
        "candidates": candidates if candidates is None or candidates.dim() == 1 else "of each user",
        "query": None if query is None else query.size(1),
        **{name: getattr(task, name) for name in _OF_ITEMS},
        **{name: getattr(catalogue, name) for name in _FACTS},
    }


def _check_once(users: Iterable[Hashable]) -> None:
    """Raises if a user is there twice."""
    if repeated := [user for user, number in Counter(users).items() if number > 1]:
        raise ValueError(
            f"'results' needs to hold each user once (got {len(repeated)} users twice, such as "
            f"{repeated[0]!r})"
        )


def _join(
    tasks: Sequence[RankingTask], per_edge: bool, partial: bool
) -> tuple[RankingTask, Tensor]:
    """Returns the task of all users of its parts, and where each of its rows comes from.

    That is its place if the rows of all rankings follow one another.
    """
    first = tasks[0]
    users = torch.cat([task.users for task in tasks])
    numbers: list[int] = users.tolist()
    _check_once(numbers if first.user_ids is None else [first.user_ids[user] for user in numbers])
    truth = torch.cat([task.truth for task in tasks], dim=1)
    weight = _together([task.to_dict() for task in tasks], "weight")
    order = truth[0].argsort(stable=True)  # those of each user are sorted by item
    whole = first._with(
        users=users.sort().values,
        truth=truth[:, order],
        weight=None if weight is None else weight[order],
        part_of=_part_of(tasks, partial),
    )
    if per_edge:
        return whole, order
    # Each ranking has a row for every user, and says something of its own.
    row = torch.arange(first.num_users, device=first.device)
    for number, task in enumerate(tasks):
        row[task.users] += number * first.num_users
    return whole, row


def _part_of(tasks: Sequence[RankingTask], partial: bool) -> PartOf | None:
    """Returns what the users of some parts are a part of; `None` if they are a whole task."""
    parts = [task.part_of for task in tasks]
    if len({part and (part.num_users, part.num_edges, part.digest) for part in parts}) > 1:
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


def _append(
    tasks: Sequence[RankingTask], per_edge: bool, differing: Sequence[str]
) -> tuple[RankingTask, Tensor]:
    """Returns the same of tasks of their own users, who stand one after the other."""
    first = tasks[0]
    fields = [task.to_dict() for task in tasks]
    if any(task.user_ids is None or task.person is not None for task in tasks):
        raise ValueError(
            f"'results' needs to hold parts of one task, or of tasks without persons whose "
            f"'user_ids' name their users (got tasks that differ in {', '.join(differing)})"
        )
    if any(task.part_of for task in tasks):
        raise ValueError("'results' needs to hold all parts of a task as one result (got parts)")
    user_ids = [id_ for task in tasks for id_ in task.user_ids or ()]
    _check_once(user_ids)
    *offsets, num_users = accumulate((task.num_users for task in tasks), initial=0)
    candidates = first.candidates
    if candidates is not None and candidates.dim() > 1:
        candidates = _shifted([of["candidates"] for of in fields], offsets)
    whole = RankingTask(
        _shifted([task.truth for task in tasks], offsets),
        weight=_together(fields, "weight"),
        num_users=num_users,
        seen=_shifted([task.seen for task in tasks], offsets),
        candidates=candidates,
        users=torch.cat([x.users + offset for x, offset in zip(tasks, offsets, strict=True)]),
        user_ids=user_ids,
        query=_together(fields, "query"),
        **{name: getattr(first, name) for name in _OF_ITEMS},
    )
    num_rows = whole.truth.size(1) if per_edge else num_users
    return whole, torch.arange(num_rows, device=first.device)


def _side_by_side(
    rankings: Sequence[RankedEdges], source: Tensor, task: RankingTask, catalogue: Catalogue
) -> RankedEdges:
    """Returns the ranking of all users, from those of some users each.

    Args:
        rankings (sequence of RankedEdges): The rankings.
        source (torch.Tensor): Which row of all rankings becomes each row, of shape `[num_rows]`.
        task (RankingTask): The task of all users.
        catalogue (Catalogue): What is known about the items.
    """
    parts = [arguments_of(ranked) | arguments_of(ranked.origin) for ranked in rankings]
    num_rows = len(source)
    starts = [0, *accumulate(ranked.num_users for ranked in rankings)]
    place = source.new_full((starts[-1],), -1)
    place[source] = torch.arange(num_rows, device=source.device)
    user, item = _shifted([ranked.edge_label_index for ranked in rankings], starts)
    row, order = place[user].sort(stable=True)
    is_evaluated = torch.cat([evaluated_mask(ranked) for ranked in rankings])[source]
    fields = parts[0] | {name: _together(parts, name, order) for name in PER_EDGE}
    fields |= {name: _together(parts, name, source) for name in _PER_ROW}
    if fields["user_of_row"] is not None:
        # A user is a person with all of its edges, unless persons are known.
        person = task.truth[0] if task.person is None else fields["person"]
        fields |= {"person": person, "user_of_row": task.truth[0]}
    fields |= {
        "edge_label_index": torch.stack([row, item[order]]),
        "ptr": index2ptr(row, num_rows),
        "users": None if bool(is_evaluated.all()) else is_evaluated.nonzero().squeeze(1),
        "lists": _lists(rankings, source),
        "depth": _depth(rankings, fields["num_candidates"]),
        "catalogue": catalogue,
        "user_ids": task.user_ids,
    }
    return made_of(RankedEdges, fields | {"origin": made_of(Provenance, fields)})


def _shifted(edges: Iterable[Tensor], offsets: Iterable[int]) -> Tensor:
    """Returns the edges of all parts, whose users have the numbers from an offset on."""
    pairs = zip(edges, offsets, strict=False)
    return torch.cat([torch.stack([user + offset, item]) for (user, item), offset in pairs], dim=1)


def _together(
    parts: Sequence[Mapping[str, Any]], name: str, index: Tensor | None = None
) -> Tensor | None:
    """Returns the values of all parts, in the order of an index; `None` if there are none."""
    if all(part[name] is None for part in parts):
        return None
    known = [_IF_MISSING[name](part) if part[name] is None else part[name] for part in parts]
    together = torch.cat(known)
    return together if index is None else together[index]


def _lists(rankings: Sequence[RankedEdges], source: Tensor) -> Lists | None:
    """Returns the lists of all rows, from those of each ranking; `None` if there are none."""
    lists = [ranked.lists for ranked in rankings if ranked.lists is not None]
    if not lists:
        return None
    lengths = torch.cat([each.ptr.diff() for each in lists])
    starts = lengths.cumsum(0) - lengths
    ptr = cumsum(lengths[source])
    # Each list is moved as a whole.
    place = torch.arange(int(ptr[-1]), device=ptr.device)
    place += (starts[source] - ptr[:-1]).repeat_interleave(ptr.diff())
    return Lists(torch.cat([each.item for each in lists])[place], ptr)


def _depth(rankings: Sequence[RankedEdges], num_candidates: Tensor | None) -> int | None:
    """Returns how deep all ranks are known; `None` if all of them are."""
    depth = largest(ranked.depth for ranked in rankings)
    is_of_lists = rankings[0].origin.listed is not None  # which may be longer
    if is_of_lists or num_candidates is None or depth is None:
        return depth
    return depth if bool((num_candidates > depth).any()) else None


def _catalogue(
    rankings: Sequence[RankedEdges], tasks: Sequence[RankingTask], task: RankingTask
) -> Catalogue:
    """Returns what is known about the items, with what all users have seen."""
    first, *others = catalogues = [catalogue_of(ranked) for ranked in rankings]
    if all(is_same(x.seen, of.catalogue.seen) for x, of in zip(catalogues, tasks, strict=True)):
        return Catalogue(**first.to_dict() | {"seen": task.catalogue.seen})
    if all(is_same(each.seen, first.seen) for each in others):
        return first
    raise ValueError(
        "'results' needs to hold results that differ in their users alone (got two that differ "
        "in the seen edges of the catalogue)"
    )
