"""Whether results are of one task, so that their users are pairs."""

from collections.abc import Mapping

import torch
from torch import Tensor

from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.task.edges import coalesce_truth


def check_same_task(by_name: Mapping[str, EvaluationResult]) -> None:
    """Raises if results are of different tasks, or measured in a way that moves their numbers."""
    (first_name, first), *others = by_name.items()
    identity, details = _identity(first), _details(first)
    for name, result in others:
        if differing := _differing(identity, details, result):
            raise ValueError(
                f"'results' needs to be of the same task (got '{first_name}' and '{name}', which "
                f"differ in {', '.join(sorted(differing))})"
            )


def is_of_same_task(result: EvaluationResult, other: EvaluationResult) -> bool:
    """Returns whether two results are of the same task, and measured alike."""
    return result is other or not _differing(_identity(result), _details(result), other)


def _differing(
    identity: Mapping[str, object], details: Mapping[str, object], result: EvaluationResult
) -> list[str]:
    """Returns in what a result differs from one with such an identity and such details."""
    other, other_details = _identity(result), _details(result)
    differing = [
        key for key in {**identity, **other} if not is_same(identity.get(key), other.get(key))
    ]
    both = details.keys() & other_details.keys()
    return differing + [key for key in both if not is_same(details[key], other_details[key])]


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
        # Tasks with different thresholds have the same pairs if these select the same truth.
        del fields["threshold"]
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
