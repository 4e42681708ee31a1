"""Results by name, as all functions take them that show or compare several."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pyg_recmetrics.checks import check_choice
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.runs import Runnable, Runs, result_or_runs, runs_of

#: What a recommender may be called. A number is the name that it prints as.
Name: TypeAlias = str | int | float

#: What a recommender has: one run, or several.
RUNNABLE = (EvaluationResult | Sequence, "'EvaluationResult' or 'Runs'")


def by_name(results: Any, kinds: Any, what: str, argument: str = "results") -> dict[str, Any]:
    """Returns what a mapping holds by name.

    Args:
        results (Any): What the caller gave.
        kinds (type or types.UnionType): What the mapping has to hold.
        what (str): What the error calls these types.
        argument (str): The name of the argument.

    Raises:
        TypeError: If it is no mapping, a name is neither a string nor a number, or something has
            another type.
        ValueError: If it is empty, or two names print alike.
    """
    return _read(results, kinds, what, argument, f"{argument} by name")


def one_or_by_name(
    results: Any, kinds: Any, what: str, argument: str = "results"
) -> dict[str, Any]:
    """Returns what a mapping holds by name, or a single object without a name.

    Arguments and errors are those of :func:`by_name`.
    """
    if isinstance(results, kinds):
        return {"": results}
    return _read(results, kinds, what, argument, f"one {what}, or {argument} by name")


def runs_by_name(results: Mapping[str, Runnable]) -> dict[str, tuple[EvaluationResult, ...]]:
    """Returns the runs of each recommender by name."""
    return {name: runs_of(result) for name, result in by_name(results, *RUNNABLE).items()}


def read_name(name: Name, argument: str, names: Sequence[str]) -> str:
    """Returns a name as results have it, by which they may be numbers.

    Raises:
        ValueError: If it is none of `names`.
    """
    return check_choice(str(name) if isinstance(name, Name) else name, argument, names)


def results_or_runs_by_name(
    results: Runnable | Mapping[str, Runnable],
) -> dict[str, EvaluationResult | Runs]:
    """Returns recommenders with one run or several by name; a single one has no name."""
    found = one_or_by_name(results, *RUNNABLE)
    return {name: result_or_runs(result) for name, result in found.items()}


def _read(results: Any, kinds: Any, what: str, argument: str, wanted: str) -> dict[str, Any]:
    if not isinstance(results, Mapping) or isinstance(results, EvaluationResult):
        raise TypeError(
            f"'{argument}' needs to be {wanted}, as in {{'A': a, 'B': b}} "
            f"(got {type(results).__name__})"
        )
    if not results:
        raise ValueError(f"'{argument}' needs to hold at least one {what} (got none)")
    for name, result in results.items():
        if not isinstance(name, Name):
            raise TypeError(f"'{argument}' needs strings or numbers as names (got {name!r})")
        if not isinstance(result, kinds) or isinstance(result, str):
            hint = "; choose one of the runs, such as runs[0]" if isinstance(result, Runs) else ""
            raise TypeError(
                f"'{argument}' needs to hold {what} (got {type(result).__name__} as '{name}'{hint})"
            )
        if any("\ud800" <= letter <= "\udfff" for letter in str(name)):
            raise ValueError(f"'{argument}' needs names that can be written (got {name!r})")
    named = {str(name): result for name, result in results.items()}
    if len(named) < len(results):
        raise ValueError(f"'{argument}' needs a name of its own for each (got {list(results)})")
    return named
