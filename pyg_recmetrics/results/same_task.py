"""Whether results are of one task, so that their users are pairs."""

from collections.abc import Mapping

import torch
from torch import Tensor

from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.task.edges import coalesce_truth


def check_same_task(by_name: Mapping[str, EvaluationResult]) -> None:
    """Raises if results are of different tasks, or measured in a way that moves their numbers."""
    (first_name, first), *others = by_name.items()
    for name, result in others:
        if differing := differences_of_task(first, result):
            raise ValueError(
                f"'results' needs to be of the same task (got '{first_name}' and '{name}', which "
                f"differ in {', '.join(sorted(differing))})"
            )


def differences_of_task(first: EvaluationResult, second: EvaluationResult) -> list[str]:
    """Returns in what the tasks of two results differ, or how these are measured."""
    a, b = _identity(first), _identity(second)
    differing = [key for key in a | b if not is_same(a.get(key), b.get(key))]
    a, b = _details(first), _details(second)
    return differing + [key for key in a.keys() & b.keys() if not is_same(a[key], b[key])]


def _details(result: EvaluationResult) -> dict[str, object]:
    """Returns what two results must have in common if both have it.

    Lists know no ties, and facts about items count if a metric looks at them.
    """
    ranked, catalogue = result.ranked, result.ranked.catalogue
    needed = {need for metric in result.definitions.values() for need in metric.needs}
    facts = {"seen" if need == "popularity" else need for need in needed - {"items"}}
    details: dict[str, object] = {fact: getattr(catalogue, fact) for fact in sorted(facts)}
    if ranked.num_tied is not None:
        details |= {"ties": ranked.ties, "seed of ties": ranked.origin.seed}
    return details


def _identity(result: EvaluationResult) -> dict[str, object]:
    """Returns what two results must have in common for their users to be pairs.

    The edges and ids of a task are sorted and unique, so equal tasks have equal tensors.
    """
    ranked, task = result.ranked, result.task
    how: dict[str, object] = {
        "convention": result.convention,
        "empty_target_action": result.empty_target_action,
        "num_users": ranked.num_users,
        "per": (result.average_over, ranked.origin.user_of_row is None),
    }
    if task is not None:
        fields = task.to_dict()
        # Tasks have the same pairs if they have the same truth, whatever it was selected from.
        for name in ("threshold", "part_of", "knows_seen"):
            del fields[name]
        return how | fields | {"person": ranked.origin.person}
    edges = ranked.edge_label_index
    num_items = int(edges[1].max()) + 1 if edges.numel() else 1
    truth, weight = coalesce_truth(edges, ranked.weight, num_items)
    ids = {
        "user_ids": ranked.user_ids,
        "person": ranked.origin.person,
        "rows": ranked.origin.user_of_row,
    }
    return how | {"truth": truth, "weight": weight, **ids}


def is_same(first: object, second: object) -> bool:
    """Returns whether two values are equal, on whatever devices tensors are."""
    if first is second:
        return True
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.shape == second.shape and torch.equal(first, second.to(first.device))
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        return False
    return first == second
