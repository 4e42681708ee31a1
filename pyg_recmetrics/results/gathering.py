"""The ranking and the task of all users, put together from the shares of processes.

Users come in the order of their ids, so that it does not matter which process had which of them.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics import processes
from pyg_recmetrics.labels import in_order
from pyg_recmetrics.ranked_edges import Lists, RankedEdges
from pyg_recmetrics.ranked_edges.ranked_edges import PER_EDGE
from pyg_recmetrics.task import Catalogue, RankingTask
from pyg_recmetrics.task.edges import coalesce_edges
from pyg_recmetrics.task.shares import ids_of


def gather(task: RankingTask, ranked: RankedEdges) -> tuple[RankingTask, RankedEdges]:
    """Returns the task and the ranking of the users of all processes, which call it together.

    Args:
        task (RankingTask): The share of this process.
        ranked (RankedEdges): The ranking of its users.
    """
    ids = ids_of(task)
    of_all = processes.collect_objects(ids, task.device)
    places = {id_: place for place, id_ in enumerate(in_order([id_ for x in of_all for id_ in x]))}
    number = torch.tensor([places[id_] for id_ in ids], dtype=torch.long, device=task.device)
    whole = _gather_task(task, number, tuple(places))
    return whole, _gather_ranked(ranked, number, whole)


def _gather_task(task: RankingTask, number: Tensor, ids: Sequence[Hashable]) -> RankingTask:
    """Returns the task of all users.

    Args:
        task (RankingTask): The share of this process.
        number (torch.Tensor): The number of each of its users among all.
        ids (sequence): Who these are, in their order.
    """
    candidates = task.candidates
    fields: dict[str, Any] = task.to_dict() | {
        "num_users": len(ids),
        "truth": _edges(task.truth, number),
        "weight": None if task.weight is None else _rows(task.weight),
        "seen": _edges(task.seen, number),
        "users": _rows(number[task.users]),
        "user_ids": None if task.user_ids is None else ids,
        "is_share": False,
    }
    if task.query is not None:
        fields["query"] = _rows(task.query)[_rows(number).argsort()]
    if candidates is not None and candidates.dim() > 1:
        fields["candidates"] = _edges(candidates, number)
    return RankingTask(**fields)


def _gather_ranked(ranked: RankedEdges, number: Tensor, task: RankingTask) -> RankedEdges:
    """Returns the ranking of all users.

    Args:
        ranked (RankedEdges): The ranking of the users of this process.
        number (torch.Tensor): The number of each of its users among all.
        task (RankingTask): The task of all users.
    """
    of_row = ranked.user_of_row
    user = _rows(number if of_row is None else number[of_row])
    # A process has all rows of a user, which stay in their order.
    order = user.argsort(stable=True)
    place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)).to(order))
    sizes = [len(part) for part in processes.collect(ranked.ptr[1:])]
    own_place = place.split(sizes)[processes.process_index()]
    row = _rows(own_place[ranked.edge_label_index[0]])
    edge = row.argsort(stable=True)
    of_all = {name: _per_edge(ranked, name) for name in PER_EDGE}
    values: dict[str, Any] = {
        name: None if value is None else value[edge] for name, value in of_all.items()
    }
    is_evaluated = _rows(ranked.is_evaluated)[order]
    has_users = ranked.totals.largest(ranked.users is not None)
    return replace(
        ranked,
        edge_label_index=torch.stack([row, _rows(ranked.edge_label_index[1])])[:, edge],
        ptr=index2ptr(row[edge], len(order)),
        **values,
        num_candidates=_per_row(ranked.num_candidates, order),
        num_masked=_per_row(ranked.num_masked, order),
        users=is_evaluated.nonzero().squeeze(1) if has_users else None,
        lists=None if ranked.lists is None else _gather_lists(ranked.lists, order),
        catalogue=_gather_catalogue(ranked.required_catalogue, number),
        user_ids=task.user_ids,
        person=None if ranked.person is None or of_row is None else user[order],
        user_of_row=None if of_row is None else user[order],
        is_share=False,
    )


def _gather_lists(lists: Lists, order: Tensor) -> Lists:
    """Returns the lists of all rows, in their new order."""
    length = _rows(lists.ptr.diff())
    first = F.pad(length.cumsum(0), (1, 0))[order]
    ptr = F.pad(length[order].cumsum(0), (1, 0))
    shift = (first - ptr[:-1]).repeat_interleave(length[order])
    place = torch.arange(len(shift), device=shift.device) + shift
    return Lists(_rows(lists.item)[place], ptr)


def _gather_catalogue(catalogue: Catalogue, number: Tensor) -> Catalogue:
    """Returns what is known about items, with what all users have seen."""
    facts = catalogue.to_dict()
    if catalogue.seen is not None:
        edges = _edges(catalogue.interactions, number)
        facts["seen"] = coalesce_edges(edges, catalogue.num_items)
    return Catalogue(**facts)


def _per_edge(ranked: RankedEdges, name: str) -> Tensor | None:
    """Returns the values of the edges of all processes; `None` if no process has any."""
    value = getattr(ranked, name)
    if name == "is_candidate":
        value = torch.ones_like(ranked.rank, dtype=torch.bool) if value is None else value
        of_all = _rows(value)
        return None if bool(of_all.all()) else of_all
    return None if value is None else _rows(value)


def _per_row(value: Tensor | None, order: Tensor) -> Tensor | None:
    return None if value is None else _rows(value)[order]


def _edges(edges: Tensor, number: Tensor) -> Tensor:
    """Returns the edges of all processes, with the numbers that users have among all."""
    renumbered = torch.stack([number[edges[0]], edges[1]], dim=1)
    return _rows(renumbered).t()


def _rows(values: Tensor) -> Tensor:
    """Returns the rows of all processes, in the order of processes."""
    return torch.cat(processes.collect(values))
