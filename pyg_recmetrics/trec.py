"""Run and qrels files, as trec_eval and most tools of information retrieval read them.

A run has lines `user Q0 item rank score tag`, qrels have lines `user 0 item relevance`. Ids are
strings; here they are numbered, and the numbering is kept.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

#: A user, an item, and the score or the relevance that a line gives them.
Line = tuple[str, str, float]


def read_run(path: str | Path) -> list[Line]:
    """Reads the user, the item and the score of every line of a run.

    Raises:
        ValueError: If a line has not six fields, its score is no finite number, or an item is
            repeated; file and line are named.
    """
    return list(_read(Path(path), "user Q0 item rank score tag", 2, 4))


def read_qrels(path: str | Path) -> list[Line]:
    """Reads the user, the item and the relevance of every line of qrels.

    Raises:
        ValueError: If a line has not four fields, its relevance is no finite number, or an item is
            repeated; file and line are named.
    """
    return list(_read(Path(path), "user 0 item relevance", 2, 3))


def write_run(path: str | Path, lists: Iterator[tuple[str, Sequence[str]]]) -> None:
    """Writes ranked lists, with scores that fall with the rank."""
    with Path(path).open("w") as file:
        for user, items in lists:
            file.writelines(
                f"{user} Q0 {item} {rank} {len(items) - rank + 1} pyg_recmetrics\n"
                for rank, item in enumerate(items, start=1)
            )


def write_qrels(path: str | Path, judged: Iterator[tuple[str, str, int]]) -> None:
    """Writes relevant items."""
    with Path(path).open("w") as file:
        file.writelines(f"{user} 0 {item} {relevance}\n" for user, item, relevance in judged)


def number(ids: set[str]) -> dict[str, int]:
    """Numbers ids: by value if all are integers, and else in the order of the alphabet."""
    key: Callable[[str], Any] = str
    if all(one.isascii() and one.isdigit() for one in ids):
        key = _by_value
    return {one: place for place, one in enumerate(sorted(ids, key=key))}


def _by_value(one: str) -> tuple[int, str]:
    return int(one), one


def _read(path: Path, form: str, item_field: int, number_field: int) -> Iterator[Line]:
    seen: set[tuple[str, str]] = set()
    num_fields = len(form.split())
    with path.open() as file:
        for place, line in enumerate(file, start=1):
            fields = line.split()
            if not fields:
                continue
            where = f"{path}, line {place}"
            if len(fields) != num_fields:
                raise ValueError(f"{where} needs to be '{form}' (got {line.strip()[:80]!r})")
            user, item = fields[0], fields[item_field]
            value = _as_number(fields[number_field])
            if value is None:
                raise ValueError(
                    f"{where} needs a finite number as '{form.split()[number_field]}' "
                    f"(got {fields[number_field]!r})"
                )
            if (user, item) in seen:
                raise ValueError(f"{where} repeats item {item!r} of user {user!r}")
            seen.add((user, item))
            yield user, item, value


def _as_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
