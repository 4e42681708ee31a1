"""What the functions of this package take."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, TypeAlias

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import EvaluationResult, Runs
from pyg_recmetrics.results.cohorts import CohortMean, cohort_mean
from pyg_recmetrics.results.runs import runs_of

#: One result, or several by name.
Results: TypeAlias = EvaluationResult | Mapping[str, EvaluationResult]

#: One recommender with one run or several, or several recommenders by name.
Recommenders: TypeAlias = EvaluationResult | Runs | Mapping[str, EvaluationResult | Runs]


def named_recommenders(results: Recommenders) -> dict[str, EvaluationResult | Runs]:
    """Returns results and runs by name; the name of a single recommender is empty."""
    return named(results, EvaluationResult | Runs, "'EvaluationResult' or 'Runs'")


def named_results(results: Results) -> dict[str, EvaluationResult]:
    """Returns results by name; the name of a single one is empty."""
    return named(results, EvaluationResult, "'EvaluationResult'")


def named(results: Any, kinds: Any, what: str, argument: str = "results") -> dict[str, Any]:
    """Returns by name what a function draws; the name of a single object is empty.

    Args:
        results (Any): One object, or a mapping.
        kinds (type or types.UnionType): What the function draws.
        what (str): What the error says of these types.
        argument (str): What the error calls the objects.
    """
    is_mapping = isinstance(results, Mapping) and not isinstance(results, EvaluationResult)
    by_name = (
        {_label(name): result for name, result in results.items()} if is_mapping else {"": results}
    )
    if not by_name:
        raise ValueError(f"'{argument}' needs to hold at least one {what} (got none)")
    for result in by_name.values():
        if not isinstance(result, kinds):
            raise TypeError(f"'{argument}' needs to hold {what} (got {type(result).__name__})")
    return by_name


def cut_offs_of(recommenders: Iterable[EvaluationResult | Runs], max_k: int | None) -> list[int]:
    """Returns the cut-offs up to `max_k`, or up to where all results know the lists."""
    if max_k is not None:
        return list(range(1, check_positive_integer(max_k, "max_k") + 1))
    results = chain.from_iterable(runs_of(recommender) for recommender in recommenders)
    depths = [result.ranked.depth or result.max_k for result in results]
    finite_depths = [depth for depth in depths if depth is not None]
    if len(finite_depths) < len(depths):
        raise ValueError("'max_k' needs to be given if all candidates were ranked (got None)")
    return list(range(1, min(finite_depths, default=0) + 1))


def mean_of(
    result: EvaluationResult | Runs, metric: str | Metric, level: float = 0.95
) -> CohortMean:
    """Returns the mean of a metric over users, or over users and runs, with its interval."""
    if isinstance(result, Runs):
        num_users = int((~result.contributions(metric).isnan()).sum())
        return CohortMean(*result.mean(metric, level)[:3], num_users)
    return cohort_mean(result.contributions(metric), result.person, level, "normal")


def _label(name: object) -> str:
    """Returns a name as matplotlib shows it: it hides what starts with `_`, and `$` starts math."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
