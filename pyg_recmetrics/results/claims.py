"""What a comparison says in words: one sentence for each pair of recommenders."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pyg_recmetrics.results.paired import PairedDifference
from pyg_recmetrics.tables import format_p


def claims(
    rows: Iterable[PairedDifference],
    uncovered: Collection[str],
    bound: Callable[[PairedDifference], float | None],
) -> tuple[str, ...]:
    """Returns one sentence for each pair in which a metric was tested.

    Args:
        rows (iterable of PairedDifference): The differences.
        uncovered (collection of str): The recommenders that might have had other runs.
        bound (callable): Returns the smallest difference that matters.
    """
    by_pair: dict[tuple[str, str], list[PairedDifference]] = {}
    for row in rows:
        if row.verdict is not None:
            by_pair.setdefault((row.a, row.b), []).append(row)
    return tuple(
        _sentence(a, b, tested, not {a, b} & set(uncovered), bound)
        for (a, b), tested in by_pair.items()
    )


def _sentence(
    a: str,
    b: str,
    rows: Sequence[PairedDifference],
    covers_training: bool,
    bound: Callable[[PairedDifference], float | None],
) -> str:
    sentence = "; ".join(_clauses(a, b, _by_verdict(rows), bound))
    if not covers_training:
        return f"As trained here, {sentence}."
    return f"{sentence}."


def _by_verdict(rows: Iterable[PairedDifference]) -> dict[str, list[PairedDifference]]:
    found: dict[str, list[PairedDifference]] = {}
    for row in rows:
        found.setdefault(str(row.verdict), []).append(row)
    return found


def _clauses(
    a: str,
    b: str,
    rows: Mapping[str, Sequence[PairedDifference]],
    bound: Callable[[PairedDifference], float | None],
) -> Iterator[str]:
    for verdict in ("better", "worse"):
        if found := rows.get(verdict):
            yield f"{a} is {verdict} than {b} in {_listed(map(_with_size, found))}"
    if found := rows.get("equivalent"):
        within = (f"{row.metric} (within ± {bound(row):.2g})" for row in found)
        yield f"{a} is as good as {b} in {_listed(within)}"
    if found := rows.get("inconclusive"):
        is_first = len(rows) == 1
        who = f" between {a} and {b}" if is_first else ""
        are = "is" if len(found) == 1 else "are"
        yield f"{_listed(map(_with_p, found))} {are} undecided{who}"


def _with_size(row: PairedDifference) -> str:
    return f"{row.metric} ({row.difference:+.4f}{_lift(row)})"


def _with_p(row: PairedDifference) -> str:
    return f"{row.metric} ({row.difference:+.4f}{_lift(row)}, p = {format_p(row.p_adjusted)})"


def _lift(row: PairedDifference) -> str:
    return "" if row.lift != row.lift else f", {row.lift:+.1f}%"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
