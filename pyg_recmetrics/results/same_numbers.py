"""Whether differences are those of some results."""

import math
from collections.abc import Iterable, Mapping, Sequence

from pyg_recmetrics.metrics import parse
from pyg_recmetrics.results.paired import PairedDifference, difference_of_runs
from pyg_recmetrics.results.protocol import Protocol
from pyg_recmetrics.results.result import EvaluationResult

#: What of a difference depends on two recommenders alone, and not on the level or on other tests.
_NUMBERS = (
    *("mean_a", "mean_b", "difference", "wins", "ties", "losses"),
    *("effect_size", "user_error", "run_error"),
)

#: Numbers of the same results differ by less than this, such as on different devices.
_ROUNDING = 1e-9


def check_same_numbers(
    rows: Iterable[PairedDifference],
    protocol: Protocol,
    runs: Mapping[str, Sequence[EvaluationResult]],
) -> None:
    """Raises if a comparison was not made of these results, or of equal ones.

    Args:
        rows (iterable of PairedDifference): Its differences.
        protocol (Protocol): How they were tested.
        runs (mapping): The runs of each recommender by name.

    Raises:
        ValueError: If it is one of other recommenders, of other numbers of runs, or of other
            results. The error says what differs.
    """
    given, found = {name: len(of_name) for name, of_name in runs.items()}, protocol.num_runs
    if given != found:
        raise ValueError(
            f"'comparison' needs to be of the results {list(given)} (got one that differs in "
            f"{_differing(given, found)})"
        )
    for row in rows:
        if said := _difference(row, protocol, runs):
            raise ValueError(
                f"'comparison' needs to be of these results (got one of others, {said})"
            )


def _differing(given: Mapping[str, int], found: Mapping[str, int]) -> str:
    """Says which recommenders or numbers of runs differ."""
    names = {**given, **found}
    return ", ".join(
        f"'{name}', of which it has {_count(found.get(name))} and not {_count(given.get(name))}"
        for name in names
        if given.get(name) != found.get(name)
    )


def _count(num_runs: int | None) -> str:
    return f"{num_runs or 'no'} run{'' if num_runs == 1 else 's'}"


def _difference(
    row: PairedDifference, protocol: Protocol, runs: Mapping[str, Sequence[EvaluationResult]]
) -> str | None:
    """Says in which number a difference is not that of the runs; `None` if it is."""
    try:
        wanted = difference_of_runs(
            parse(row.metric),
            (row.a, row.b),
            (runs[row.a], runs[row.b]),
            protocol.alpha,
        )
    except ValueError as error:
        return f"which know {row.metric}: {error}"
    for field in _NUMBERS:
        value, other = getattr(row, field), getattr(wanted, field)
        if not _is_same(value, other):
            return (
                f"in which {field} of '{row.a}' and '{row.b}' in {row.metric} is {_format(value)} "
                f"and not {_format(other)}"
            )
    return None


def _is_same(value: float | None, other: float | None) -> bool:
    if value is None or other is None:
        return value is other
    if math.isnan(value) or math.isnan(other):
        return math.isnan(value) and math.isnan(other)
    return math.isclose(value, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _format(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"
