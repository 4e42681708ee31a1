"""Notes below a table about several data sets."""

from collections.abc import Iterable, Mapping


def notes_of_all(notes: Mapping[str, Iterable[str]]) -> list[str]:
    """Returns each note once, after the data sets that it is about if these are not all.

    Args:
        notes (mapping): The notes on each data set.

    Example:
        >>> notes_of_all({"A": ["all", "some"], "B": ["all"]})
        ['all', 'A: some']
    """
    data_sets: dict[str, list[str]] = {}
    for data_set, of_one in notes.items():
        for note in of_one:
            data_sets.setdefault(note, []).append(data_set)
    return [
        note if len(names) == len(notes) else f"{', '.join(names)}: {note}"
        for note, names in data_sets.items()
    ]
