"""merge(): the result of all users, from the results of some of them each.

A ranking of some users is complete in itself: no number in it depends on other users. So rankings
are laid side by side, and then measured.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.checks import check_boolean
from pyg_recmetrics.ranked_edges import Lists, RankedEdges, catalogue_of, evaluated_mask
from pyg_recmetrics.ranked_edges.ranked_edges import PER_EDGE
from pyg_recmetrics.results.result import EvaluationResult, largest
from pyg_recmetrics.results.same_task import is_same
from pyg_recmetrics.task import Catalogue, RankingTask
from pyg_recmetrics.task.task import PartOf
from pyg_recmetrics.utils import warn

#: What parts of one task have in common, and tasks of other users need not have.
_OF_USERS = ("num_users", "user_ids", "seen", "candidates", "person", "query")

#: What all tasks have in common whose results can be merged.
_OF_ITEMS = ("num_items", "item_ids", "exclude_seen", "threshold", "missing", "num_relations")

#: What a ranking has that does not say it: no masked items, and nothing but candidates.
_IF_MISSING: dict[str, Callable[[RankedEdges], Tensor]] = {
    "origin.num_masked": lambda ranked: torch.zeros_like(ranked.ptr[1:]),
    "is_candidate": lambda ranked: torch.ones_like(ranked.rank, dtype=torch.bool),
}

#: What is known about items, besides who has seen them.
_FACTS = ("item_embedding", "item_category")


def merge(
    results: Iterable[EvaluationResult | str | Path], *, partial: bool = False
) -> EvaluationResult:
    r"""Merges the results of disjoint users: the result of all, as one call would have returned it.

    Every mean, value per user and interval is that of one call, to the last bit. A part knows how
    many users its task has, so that none can be missing without a word.

    Args:
        results (iterable): The results, or the files in which :meth:`EvaluationResult.save` has
            written them, in any order. They are of

            - parts of one task, which :meth:`RankingTask.part` returns: users stand in the order of
              the task; or
            - tasks of the same items with users of their own, which `user_ids` name: users stand
              one after the other. Items are the same if they have the same numbers.
        partial (bool, optional): Whether parts of one task may be missing. A warning, the table and
            the recipe then say of how many users the result is. (default: `False`)

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
    tasks = [_task_of(part).to(first.ranked.rank.device) for part in parts]
    rankings = [part.ranked.to(first.ranked.rank.device) for part in parts]
    _check_alike(parts, tasks)
    users = _Users(tasks, check_boolean(partial, "partial"))
    task = users.task()
    merged = EvaluationResult(
        _side_by_side(rankings, users, task),
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
    if isinstance(result, EvaluationResult):
        return result
    if isinstance(result, str | PathLike):
        return EvaluationResult.load(Path(result))
    raise TypeError(
        f"'results' needs to hold results, or paths of saved ones (got {type(result).__name__})"
    )


def _task_of(result: EvaluationResult) -> RankingTask:
    if result.sampling is not None:
        raise ValueError(
            "'results' needs to hold results of all users of their tasks (got one with a margin)"
        )
    if result.task is None:
        raise ValueError(
            "'results' needs to hold results of tasks, which say who their users are (got one "
            "without a task)"
        )
    return result.task


def _check_alike(parts: Sequence[EvaluationResult], tasks: Sequence[RankingTask]) -> None:
    """Raises if results differ in anything that is not about their users."""
    first, *others = (_in_common(*pair) for pair in zip(parts, tasks, strict=True))
    for number, other in enumerate(others, 1):
        if differing := [name for name in first if not is_same(first[name], other[name])]:
            raise ValueError(
                f"'results' needs to hold results that differ in their users alone (got a first "
                f"one and one at place {number}, which differ in {', '.join(differing)})"
            )
    # Where no user is evaluated, lists are empty.
    kept = [part.ranked.lists for part in parts]
    if len(widths := {lists.width for lists in kept if lists is not None and lists.width}) > 1:
        raise ValueError(
            f"'results' needs to hold lists of one length (got {sorted(widths)} items); give the "
            f"same 'keep_items' to each part"
        )


def _in_common(result: EvaluationResult, task: RankingTask) -> dict[str, object]:
    ranked, catalogue = result.ranked, catalogue_of(result.ranked)
    candidates, query = task.candidates, task.query
    return {
        "metrics": result.metrics,
        "convention": result.convention,
        "empty_target_action": result.empty_target_action,
        "average_over": result.average_over,
        "per": ranked.origin.user_of_row is None,
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


class _Users:
    """The users of several tasks, and the numbers that they have among all.

    Args:
        tasks (sequence of RankingTask): The tasks.
        partial (bool): Whether parts of a task may be missing.
    """

    def __init__(self, tasks: Sequence[RankingTask], partial: bool) -> None:
        self.tasks, self.first = tasks, tasks[0]
        differing = [
            name
            for name in _OF_USERS
            if not all(is_same(getattr(task, name), getattr(self.first, name)) for task in tasks)
        ]
        self.is_one_task = not differing
        *offsets, num_users = accumulate((task.num_users for task in tasks), initial=0)
        self.num_users = self.first.num_users if self.is_one_task else num_users
        self.offsets = [0] * len(tasks) if self.is_one_task else offsets
        ids = [id_ for task in tasks for id_ in self._evaluated(task, differing)]
        if repeated := [id_ for id_, number in Counter(ids).items() if number > 1]:
            raise ValueError(
                f"'results' needs to hold each user once (got {len(repeated)} users twice, such as "
                f"{repeated[0]!r})"
            )
        self.part_of = self._find_part_of(partial)

    def _evaluated(self, task: RankingTask, differing: list[str]) -> Sequence[Hashable]:
        """Returns who the users of a task are."""
        if self.is_one_task:
            numbers: list[int] = task.users.tolist()
            return numbers if task.user_ids is None else [task.user_ids[user] for user in numbers]
        if task.person is not None:
            raise ValueError(
                "'results' needs to hold parts of one task where persons are known, who may have "
                "rows in several (got several tasks)"
            )
        if task.user_ids is not None:
            return task.user_ids
        raise ValueError(
            f"'results' needs to hold parts of one task, or of tasks whose 'user_ids' name their "
            f"users (got tasks without them that differ in {', '.join(differing)})"
        )

    def _find_part_of(self, partial: bool) -> PartOf | None:
        """Returns what all of these users are a part of; `None` if they are whole tasks."""
        parts = [task.part_of for task in self.tasks]
        if self.is_one_task and len({part and part[1:] for part in parts}) > 1:
            raise ValueError(
                "'results' needs to hold parts of one task (got parts of several, whose truth, "
                "weights or users differ)"
            )
        num_own = Counter[PartOf]()
        for part in filter(None, parts):
            num_own[part._replace(num_own=0)] += part.num_own
        for whole, number in num_own.items():
            if number == whole.num_users:
                continue
            held = f"{number:,} of the {whole.num_users:,} users of a task"
            if not (partial and self.is_one_task):
                raise ValueError(
                    f"'results' needs to hold all parts of a task (got {held}); for the result of "
                    f"these users alone, write merge(results, partial=True)"
                )
            warn(f"'results' hold {held}: every number is of these users alone")
            return whole._replace(num_own=number)
        return None

    def edges(self, name: str) -> Tensor:
        """Returns the edges of all tasks, with the numbers that users have among all."""
        shifted = [
            torch.stack([edges[0] + offset, edges[1]])
            for edges, offset in zip(map(attrgetter(name), self.tasks), self.offsets, strict=True)
        ]
        return torch.cat(shifted, dim=1)

    def task(self) -> RankingTask:
        """Returns the task of all users."""
        truth, weight = self.edges("truth"), _together(self.tasks, "weight")
        if self.is_one_task:
            order = truth[0].argsort(stable=True)  # those of each user are sorted by item
            users = torch.cat([task.users for task in self.tasks]).sort().values
            weight = None if weight is None else weight[order]
            truth = truth[:, order]
            return self.first._with(users=users, truth=truth, weight=weight, part_of=self.part_of)
        candidates, offsets = self.first.candidates, zip(self.tasks, self.offsets, strict=True)
        if candidates is not None and candidates.dim() > 1:
            candidates = self.edges("candidates")
        ids = [task.user_ids for task in self.tasks if task.user_ids is not None]
        return RankingTask(
            truth,
            weight=weight,
            num_users=self.num_users,
            seen=self.edges("seen"),
            candidates=candidates,
            users=torch.cat([task.users + offset for task, offset in offsets]),
            user_ids=list(chain(*ids)),
            query=_together(self.tasks, "query"),
            **{name: getattr(self.first, name) for name in _OF_ITEMS},
        )

    def rows(self, per_edge: bool) -> Tensor:
        """Returns where each row stands if the rows of all rankings follow one another."""
        if per_edge:
            return self.edges("truth")[0].argsort(stable=True)
        row = torch.arange(self.num_users, device=self.first.device)
        if self.is_one_task:  # each ranking has a row for every user, and says something of its own
            for number, task in enumerate(self.tasks):
                row[task.users] += number * self.num_users
        return row


def _side_by_side(rankings: list[RankedEdges], users: _Users, task: RankingTask) -> RankedEdges:
    """Returns the ranking of all users, from those of some users each."""
    first = rankings[0]
    per_edge = first.origin.user_of_row is not None
    source = users.rows(per_edge)  # which of all these rows becomes the first one, the second, ..
    starts = accumulate((ranked.num_users for ranked in rankings), initial=0)
    edges = [ranked.edge_label_index for ranked in rankings]
    row = torch.cat([edge[0] + start for edge, start in zip(edges, starts, strict=False)])
    place = row.new_zeros(sum(ranked.num_users for ranked in rankings))
    row = place.scatter_(0, source, torch.arange(len(source), device=row.device))[row]
    order = row.argsort(stable=True)
    of_edges: dict[str, Any] = {name: _together(rankings, name, order) for name in PER_EDGE}
    num_candidates = _together(rankings, "num_candidates", source)
    is_evaluated = torch.cat([evaluated_mask(ranked) for ranked in rankings])[source]
    person = _together(rankings, "origin.person", source)
    return replace(
        first,
        **of_edges,
        edge_label_index=torch.stack([row, torch.cat([edge[1] for edge in edges])])[:, order],
        ptr=index2ptr(row[order], len(source)),
        num_candidates=num_candidates,
        users=None if bool(is_evaluated.all()) else is_evaluated.nonzero().squeeze(1),
        lists=_lists([ranked.lists for ranked in rankings if ranked.lists is not None], source),
        depth=_depth(rankings, num_candidates),
        catalogue=_catalogue(rankings, users, task),
        user_ids=task.user_ids,
        origin=replace(
            first.origin,
            num_masked=_together(rankings, "origin.num_masked", source),
            listed=_together(rankings, "origin.listed", source),
            # A user is a person with all of its edges, unless persons are known.
            person=task.truth[0] if per_edge and task.person is None else person,
            user_of_row=task.truth[0] if per_edge else None,
        ),
    )


def _together(parts: Sequence[Any], name: str, index: Tensor | None = None) -> Tensor | None:
    """Returns the values of all parts, in the order of an index; `None` if there are none."""
    values = list(map(attrgetter(name), parts))
    if all(value is None for value in values):
        return None
    if name in _IF_MISSING:
        pairs = zip(parts, values, strict=True)
        values = [_IF_MISSING[name](part) if value is None else value for part, value in pairs]
    together = torch.cat(values)
    return together if index is None else together[index]


def _lists(of_each: list[Lists], source: Tensor) -> Lists | None:
    """Returns the lists of all rows, from those of each ranking; `None` if there are none."""
    if not of_each:
        return None
    item = torch.cat([lists.item for lists in of_each])
    starts = accumulate((lists.item.numel() for lists in of_each), initial=0)
    first = torch.cat([x.ptr[:-1] + start for x, start in zip(of_each, starts, strict=False)])
    length = torch.cat([lists.ptr.diff() for lists in of_each])[source]
    ptr = F.pad(length.cumsum(0), (1, 0))
    shift = (first[source] - ptr[:-1]).repeat_interleave(length)
    return Lists(item[torch.arange(len(shift), device=shift.device) + shift], ptr)


def _depth(rankings: list[RankedEdges], num_candidates: Tensor | None) -> int | None:
    """Returns how deep all ranks are known; `None` if all of them are."""
    depths = {ranked.depth for ranked in rankings if ranked.depth is not None}
    if len(depths) > 1:
        raise ValueError(f"'results' needs to hold rankings of one depth (got {sorted(depths)})")
    depth = max(depths, default=None)
    is_of_lists = rankings[0].origin.listed is not None  # which may be longer
    if is_of_lists or num_candidates is None or depth is None:
        return depth
    return depth if bool((num_candidates > depth).any()) else None


def _catalogue(rankings: list[RankedEdges], users: _Users, task: RankingTask) -> Catalogue:
    """Returns what is known about the items, with what all users have seen."""
    catalogues = [catalogue_of(ranked) for ranked in rankings]
    first = catalogues[0]
    pairs = zip(catalogues, users.tasks, strict=True)
    if not users.is_one_task and all(is_same(x.seen, each.catalogue.seen) for x, each in pairs):
        return Catalogue(**first.to_dict() | {"seen": task.catalogue.seen})
    if not all(is_same(each.seen, first.seen) for each in catalogues):
        raise ValueError(
            "'results' needs to hold results that differ in their users alone (got two that differ "
            "in the seen edges of the catalogue)"
        )
    return first
