"""Several results of which some were made of a sample of users."""

from collections.abc import Mapping
from functools import reduce

import torch

from pyg_recmetrics.messages import list_some
from pyg_recmetrics.results.result import EvaluationResult


def check_users_in_common(results: Mapping[str, EvaluationResult]) -> None:
    """Raises if there is no user whom all results have ranked."""
    ranked = [result.ranked.users for result in results.values()]
    some = [users.cpu() for users in ranked if users is not None]
    if some and reduce(lambda one, other: one[torch.isin(one, other)], some).numel() == 0:
        raise ValueError(
            f"'results' needs to have users whom all have ranked (got none for "
            f"{list_some(list(results))}; with a 'margin', the same 'seed' draws the same users)"
        )


def describe_samples(
    results: Mapping[str, EvaluationResult], purpose: str = "are compared"
) -> str | None:
    """Returns whose users stand for all of the task; `None` if nobody's do.

    Args:
        results (mapping): Results of one task by name.
        purpose (str, optional): What becomes of the users whom all results have ranked.
    """
    samples = {
        name: result.sampling
        for name, result in results.items()
        if result.sampling is not None and not result.sampling.is_complete
    }
    if not samples:
        return None
    first = next(iter(samples.values()))
    users = next(iter(results.values())).nouns.users
    sizes = [f"{sample.num_ranked:,} for {name}" for name, sample in samples.items()]
    return (
        f"of {first.num_users:,} {users}, a 'margin' drew {list_some(sizes)}; those whom all have "
        f"ranked {purpose}"
    )
