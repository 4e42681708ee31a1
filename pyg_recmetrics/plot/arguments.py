"""What the functions of this package take."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.cohorts import CohortMean, cohort_mean

#: One result, or several by name.
Results: TypeAlias = EvaluationResult | Mapping[str, EvaluationResult]


def named_results(results: Results) -> dict[str, EvaluationResult]:
    """Returns results by name; the name of a single one is empty."""
    return named(results, EvaluationResult, "'EvaluationResult'")


def named(results: Any, kinds: Any, what: str) -> dict[str, Any]:
    """Returns by name what a function draws; the name of a single object is empty.

    Args:
        results (Any): One object, or a mapping.
        kinds (type or types.UnionType): What the function draws.
        what (str): What the error says of these types.
    """
    is_mapping = isinstance(results, Mapping) and not isinstance(results, EvaluationResult)
    by_name = (
        {_label(name): result for name, result in results.items()} if is_mapping else {"": results}
    )
    if not by_name:
        raise ValueError("'results' needs to hold at least one result (got none)")
    for result in by_name.values():
        if not isinstance(result, kinds):
            raise TypeError(f"'results' needs to hold {what} (got {type(result).__name__})")
    return by_name


def cut_offs_of(results: Iterable[EvaluationResult], max_k: int | None) -> list[int]:
    """Returns the cut-offs up to `max_k`, or up to where all results know the lists."""
    if max_k is not None:
        return list(range(1, check_positive_integer(max_k, "max_k") + 1))
    depths = [result.ranked.depth or result.max_k for result in results]
    finite_depths = [depth for depth in depths if depth is not None]
    if len(finite_depths) < len(depths):
        raise ValueError("'max_k' needs to be given if all candidates were ranked (got None)")
    return list(range(1, min(finite_depths, default=0) + 1))


def mean_of(result: EvaluationResult, metric: str | Metric, level: float = 0.95) -> CohortMean:
    """Returns the mean of a metric over users, with its interval."""
    return cohort_mean(result.contributions(metric), result.owner, level, "normal")


def _label(name: object) -> str:
    """Returns a name as matplotlib shows it: it hides what starts with `_`, and `$` starts math."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
