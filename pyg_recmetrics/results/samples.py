"""Several results of which some were made of a sample of users."""

from collections.abc import Mapping

from pyg_recmetrics.messages import list_some
from pyg_recmetrics.results.result import EvaluationResult


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
