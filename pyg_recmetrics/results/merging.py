"""merge(): the result of all users, from the results of some of them each.

A ranking of some users is complete in itself: no number in it depends on other users. So rankings
are laid side by side, and then measured.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from os import PathLike
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.ranked_edges import Lists, RankedEdges
from pyg_recmetrics.ranked_edges.ranked_edges import PER_EDGE
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.same_task import is_same
from pyg_recmetrics.task import Catalogue, RankingTask

#: What parts of one task have in common, and tasks of other users have not.
_OF_USERS = ("num_users", "user_ids", "seen", "candidates", "person", "query")

#: What all tasks have in common whose results can be merged.
_OF_ITEMS = ("num_items", "item_ids", "exclude_seen", "threshold", "missing", "num_relations")

#: What is known about items, besides who has seen them.
_FACTS = ("item_embedding", "item_category", "propensity")


def merge(results: Iterable[EvaluationResult | str | Path]) -> EvaluationResult:
    r"""Merges the results of disjoint users: the result of all, as one call would have returned it.

    Every mean, value per user and interval is that of one call, to the last bit.

    Args:
        results (iterable): The results, or the files in which :meth:`EvaluationResult.save` has
            written them, in any order. They are of

            - parts of one task, which :meth:`RankingTask.part` returns: users stand in the order of
              the task; or
            - tasks of the same items with users of their own, whom `user_ids` name: users stand one
              after the other. Items are the same if they have the same numbers.

    Returns:
        The result of all of these users.

    Raises:
        OSError: If a file cannot be opened.
        TypeError: If something is neither a result nor a path.
        ValueError: If there is no result, a user is in two of them, one has a margin or no task, or
            they differ in items, metrics, convention, depth, ties or catalogue; the error says in
            what they differ.

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
    parts = [_read(result) for result in results]
    if not parts:
        raise ValueError("'results' needs to hold at least one result (got none)")
    first = parts[0]
    tasks = [_task_of(part).to(first.ranked.rank.device) for part in parts]
    rankings = [part.ranked.to(first.ranked.rank.device) for part in parts]
    _check_alike(parts, tasks)
    users = _Users(tasks)
    task = users.task()
    rows = _Rows.of_edges(users) if first.ranked.user_of_row is not None else _Rows.of_users(users)
    return EvaluationResult(
        _side_by_side(rankings, rows, users, task),
        first.metrics,
        task=task,
        empty_target_action=first.empty_target_action,
        convention=first.convention,
        num_left_out=sum(part.num_left_out for part in parts),
        average_over=first.average_over,
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
    for other in others:
        if differing := [name for name in first if not is_same(first[name], other[name])]:
            raise ValueError(
                f"'results' needs to hold results that differ in their users alone (got two that "
                f"differ in {', '.join(differing)})"
            )
    # Where nobody is evaluated, lists are empty.
    kept = [part.ranked.lists for part in parts]
    if len(widths := {lists.width for lists in kept if lists is not None and lists.width}) > 1:
        raise ValueError(
            f"'results' needs to hold lists of one length (got {sorted(widths)} items); give the "
            f"same 'keep_items' to each part"
        )


def _in_common(result: EvaluationResult, task: RankingTask) -> dict[str, object]:
    ranked, catalogue = result.ranked, result.ranked.required_catalogue
    return {
        "metrics": result.metrics,
        "convention": result.convention,
        "empty_target_action": result.empty_target_action,
        "average_over": result.average_over,
        "per": ranked.user_of_row is None,
        "ties": (ranked.ties, ranked.num_tied is None),
        "seed": ranked.seed,
        "recommender": ranked.ranked_by,
        "keep_items": ranked.lists is None,
        "weight": task.weight is None,
        **{name: getattr(task, name) for name in _OF_ITEMS},
        **{name: getattr(catalogue, name) for name in _FACTS},
    }


class _Users:
    """The users of several tasks, and the numbers that they have among all.

    Args:
        tasks (sequence of RankingTask): The tasks.
    """

    def __init__(self, tasks: Sequence[RankingTask]) -> None:
        self.tasks, self.first = tasks, tasks[0]
        differing = [name for name in _OF_USERS if not all(map(self._has_same(name), tasks))]
        self.is_one_task = not differing
        if self.is_one_task:
            self.offsets, self.num_users = [0] * len(tasks), self.first.num_users
            names, of_all = self.first.user_ids, torch.cat([task.users for task in tasks])
            repeated = (torch.bincount(of_all) > 1).nonzero().flatten().tolist()
            repeated = [names[user] for user in repeated] if names else repeated
        else:
            *self.offsets, self.num_users = accumulate((x.num_users for x in tasks), initial=0)
            ids = [id_ for task in tasks for id_ in _ids_of(task, differing)]
            repeated = [id_ for id_, number in Counter(ids).items() if number > 1]
        if repeated:
            raise ValueError(
                f"'results' needs to hold each user once (got {len(repeated)} users twice, such as "
                f"{repeated[0]!r})"
            )

    def _has_same(self, name: str) -> Callable[[RankingTask], bool]:
        return lambda task: is_same(getattr(task, name), getattr(self.first, name))

    def merged(self, name: str) -> Tensor | None:
        """Returns the edges of all tasks, with the numbers that users have among all."""
        values = [getattr(task, name) for task in self.tasks]
        if any(value is None for value in values):
            return None
        edges = [_shifted(*pair) for pair in zip(values, self.offsets, strict=True)]
        return torch.cat(edges, dim=1)

    def task(self) -> RankingTask:
        """Returns the task of all users."""
        truth, weight = self.merged("truth"), None
        if self.first.weight is not None:
            weight = torch.cat([task.weight for task in self.tasks if task.weight is not None])
        if self.is_one_task:
            users = torch.cat([task.users for task in self.tasks]).sort().values
            return self.first.of_users(users, *_sorted_edges(truth, weight))
        candidates = self.first.candidates
        if candidates is not None and candidates.dim() > 1:
            candidates = self.merged("candidates")
        queries = [task.query for task in self.tasks if task.query is not None]
        ids = [task.user_ids for task in self.tasks if task.user_ids is not None]
        evaluated = zip(self.tasks, self.offsets, strict=True)
        return RankingTask(
            truth,
            weight=weight,
            num_users=self.num_users,
            seen=self.merged("seen"),
            candidates=candidates,
            users=torch.cat([task.users + offset for task, offset in evaluated]),
            user_ids=[id_ for of_task in ids for id_ in of_task] if ids else None,
            query=torch.cat(queries) if queries else None,
            **{name: getattr(self.first, name) for name in _OF_ITEMS},
        )


def _ids_of(task: RankingTask, differing: list[str]) -> Sequence[Hashable]:
    """Returns who the users of a task of their own are."""
    if task.person is not None:
        raise ValueError(
            "'results' needs to hold parts of one task where persons are known, who may have rows "
            "in several (got several tasks)"
        )
    if task.user_ids is not None:
        return task.user_ids
    if task.query is not None:
        return [tuple(row) for row in task.query.tolist()]
    raise ValueError(
        f"'results' needs to hold parts of one task, or of tasks whose 'user_ids' name their users "
        f"(got tasks without them that differ in {', '.join(differing)})"
    )


class _Rows:
    """Where the rows of several rankings stand in the one of all users.

    Attributes:
        own (list of torch.Tensor): Which rows of each ranking are about its own users.
        place (list of torch.Tensor): Where these rows stand among all.
        num_rows (int): How many rows there are.
        user_of_row (torch.Tensor or None): The user of each row, if rows are edges.
    """

    def __init__(
        self, own: list[Tensor], place: list[Tensor], num_rows: int, user_of_row: Tensor | None
    ) -> None:
        self.own, self.place = own, place
        self.num_rows, self.user_of_row = num_rows, user_of_row

    @classmethod
    def of_users(cls, users: _Users) -> "_Rows":
        """Every row is a user."""
        if users.is_one_task:
            own = [task.users for task in users.tasks]
            return cls(own, own, users.num_users, None)
        own = [torch.arange(task.num_users, device=task.device) for task in users.tasks]
        place = [x + offset for x, offset in zip(own, users.offsets, strict=True)]
        return cls(own, place, users.num_users, None)

    @classmethod
    def of_edges(cls, users: _Users) -> "_Rows":
        """Every row is an edge of the truth; those of a user stay together."""
        truth = [
            _shifted(task.truth, offset)
            for task, offset in zip(users.tasks, users.offsets, strict=True)
        ]
        user = torch.cat([edges[0] for edges in truth])
        order = user.argsort(stable=True)
        place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)).to(order))
        places = list(place.split([edges.size(1) for edges in truth]))
        own = [torch.arange(len(x), device=x.device) for x in places]
        return cls(own, places, len(order), user[order])

    def merge(self, values: list[Tensor]) -> Tensor:
        """Returns a value of each row among all, from those in each ranking."""
        num_own = values[0].size(0)
        merged = (
            values[0].clone() if num_own == self.num_rows else values[0].new_empty(self.num_rows)
        )
        for value, own, place in zip(values, self.own, self.place, strict=True):
            merged[place] = value[own]
        return merged

    def of_edge(self, rankings: list[RankedEdges]) -> Tensor:
        """Returns the row among all of each edge, one ranking after the other."""
        rows = []
        for ranked, own, place in zip(rankings, self.own, self.place, strict=True):
            of_all = place.new_empty(ranked.num_users)
            of_all[own] = place
            rows.append(of_all[ranked.edge_label_index[0]])
        return torch.cat(rows)

    def merge_lists(self, of_each: list[Lists]) -> Lists:
        """Returns the lists of all rows."""
        length = self.merge([lists.ptr.diff() for lists in of_each])
        ptr = F.pad(length.cumsum(0), (1, 0))
        item = of_each[0].item.new_empty(int(ptr[-1]))
        for lists, own, place in zip(of_each, self.own, self.place, strict=True):
            number = length[place]
            within = torch.arange(int(number.sum()), device=number.device)
            within -= (number.cumsum(0) - number).repeat_interleave(number)
            source, target = (x.repeat_interleave(number) for x in (lists.ptr[own], ptr[place]))
            item[target + within] = lists.item[source + within]
        return Lists(item, ptr)


def _side_by_side(
    rankings: list[RankedEdges], rows: _Rows, users: _Users, task: RankingTask
) -> RankedEdges:
    """Returns the ranking of all users.

    Args:
        rankings (list of RankedEdges): Those of some users each.
        rows (_Rows): Where their rows stand among all.
        users (_Users): The users of their tasks.
        task (RankingTask): The task of all users.
    """
    first = rankings[0]
    row = rows.of_edge(rankings)
    order = row.argsort(stable=True)
    item = torch.cat([ranked.edge_label_index[1] for ranked in rankings])
    is_evaluated = rows.merge([ranked.is_evaluated for ranked in rankings])
    lists = [ranked.lists for ranked in rankings if ranked.lists is not None]
    num_candidates = _per_row(rankings, rows, "num_candidates")
    return replace(
        first,
        edge_label_index=torch.stack([row, item])[:, order],
        ptr=index2ptr(row[order], rows.num_rows),
        **{name: _per_edge(rankings, name, order) for name in PER_EDGE},
        num_candidates=num_candidates,
        num_masked=_per_row(rankings, rows, "num_masked"),
        users=None if bool(is_evaluated.all()) else is_evaluated.nonzero().squeeze(1),
        lists=rows.merge_lists(lists) if lists else None,
        depth=_depth(rankings, num_candidates),
        catalogue=_catalogue(rankings, users, task),
        user_ids=task.user_ids,
        person=_person(rankings, rows, task),
        user_of_row=rows.user_of_row,
    )


def _per_edge(rankings: list[RankedEdges], name: str, order: Tensor) -> Tensor | None:
    """Returns what is known of all edges, in their order; `None` if nothing is."""
    values = [getattr(ranked, name) for ranked in rankings]
    if all(value is None for value in values):
        return None
    if name == "is_candidate":  # where it is not known, all are
        each = zip(values, rankings, strict=True)
        values = [torch.ones_like(r.rank, dtype=torch.bool) if x is None else x for x, r in each]
    return torch.cat(values)[order]


def _per_row(rankings: list[RankedEdges], rows: _Rows, name: str) -> Tensor | None:
    """Returns a number of each row; `None` if it is not known, or zero for all."""
    values = [getattr(ranked, name) for ranked in rankings]
    if all(value is None for value in values):
        return None
    each = zip(values, rankings, strict=True)
    return rows.merge([torch.zeros_like(ranked.ptr[1:]) if x is None else x for x, ranked in each])


def _depth(rankings: list[RankedEdges], num_candidates: Tensor | None) -> int | None:
    """Returns how deep all ranks are known; `None` if all of them are."""
    depths = {ranked.depth for ranked in rankings if ranked.depth is not None}
    if len(depths) > 1:
        raise ValueError(
            f"'results' needs to hold rankings of one depth (got {sorted(depths)}); evaluate the "
            f"same metrics in each part"
        )
    depth = max(depths, default=None)
    if depth is None or num_candidates is None or depth < int(num_candidates.max()):
        return depth
    return None


def _catalogue(rankings: list[RankedEdges], users: _Users, task: RankingTask) -> Catalogue:
    """Returns what is known about the items, with what all users have seen."""
    catalogues = [ranked.required_catalogue for ranked in rankings]
    first = catalogues[0]
    if all(is_same(each.seen, first.seen) for each in catalogues):
        return first
    pairs = zip(catalogues, users.tasks, strict=True)
    if users.is_one_task or not all(is_same(x.seen, each.catalogue.seen) for x, each in pairs):
        raise ValueError(
            "'results' needs to hold results that differ in their users alone (got two that differ "
            "in the seen edges of the catalogue)"
        )
    return Catalogue(**first.to_dict() | {"seen": task.catalogue.seen})


def _person(rankings: list[RankedEdges], rows: _Rows, task: RankingTask) -> Tensor | None:
    """Returns the person of each row; `None` if every row is one."""
    if rankings[0].person is None:
        return None
    if rows.user_of_row is not None and task.person is None:
        return rows.user_of_row
    return rows.merge([ranked.person for ranked in rankings if ranked.person is not None])


def _sorted_edges(truth: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Returns edges sorted by user, as those of each user are sorted by item."""
    order = truth[0].argsort(stable=True)
    return truth[:, order], None if weight is None else weight[order]


def _shifted(edges: Tensor, offset: int) -> Tensor:
    return torch.stack([edges[0] + offset, edges[1]])
