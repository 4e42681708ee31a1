"""The subcommands on saved results: `compare`, `report` and `gate`."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyg_recmetrics.command import notes
from pyg_recmetrics.command.notes import as_number, check_output, note, print_result
from pyg_recmetrics.reporting import report as write_report
from pyg_recmetrics.results import Comparison, EvaluationResult, Runs
from pyg_recmetrics.results import compare as compare_results

_STATUS = {"better": notes.DONE, "equivalent": notes.DONE, "worse": notes.WORSE}


def compare(options: argparse.Namespace) -> int:
    """Compares saved results, and prints their differences."""
    comparison = _compare(_by_name(options.results), options)
    as_json = {"claims": comparison.claims(), "differences": _to_json(comparison)}
    print_result(comparison, as_json, options)
    return notes.DONE


def report(options: argparse.Namespace) -> int:
    """Writes a page about saved results."""
    check_output(options.output, map(_path_of, options.results))
    results = _by_name(options.results)
    is_asked = notes.same_options(compare_results, options).keys() - {"results"}
    comparison = _compare(results, options) if is_asked else None
    title = {} if options.title is None else {"title": options.title}
    page = write_report(results, options.output, comparison=comparison, **title)
    note(f"wrote {page}")
    return notes.DONE


def gate(options: argparse.Namespace) -> int:
    """Says in one sentence whether a new model may replace the old one."""
    if same := set(map(_path_of, options.results)) & set(map(_path_of, options.baseline)):
        raise ValueError(f"the baseline needs to be another file (got {min(same)} twice)")
    new, old = _load_all(options.results), _load_all(options.baseline)
    new_name, old_name = _names_of_sides(options.results[0], options.baseline[0])
    comparison = compare_results(
        {new_name: new, old_name: old},
        metrics=[options.metric],
        primary=options.metric,
        baseline=old_name,
        equivalence=options.equivalence,
        level=options.level,
        deterministic=options.deterministic,
    )
    verdict = comparison[0].verdict
    status = notes.UNDECIDED if verdict is None else _STATUS.get(verdict, notes.UNDECIDED)
    sentences = comparison.claims()
    sentence = sentences[0] if sentences else f"{options.metric} has too few users for a test."
    if options.json:
        as_json = {"status": status, "sentence": sentence, **_to_json(comparison)[0]}
        print_result(comparison, as_json, options)
    else:
        print(sentence)
    return status


def _compare(results: Mapping[str, Sequence[EvaluationResult]], options: Any) -> Comparison:
    return compare_results(**notes.same_options(compare_results, options) | {"results": results})


def _to_json(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {name: as_number(value) for name, value in difference._asdict().items()}
        for difference in comparison
    ]


def _by_name(files: Sequence[str]) -> dict[str, list[EvaluationResult]]:
    """Returns the runs of each recommender. Files of one given name are runs of one recommender.

    Raises:
        ValueError: If two files without a given name would have the same.
    """
    given = [_split(file) for file in files]
    paths = [path for name, path in given if name is None]
    stems = [path.stem for path in paths]
    runs: dict[str, list[EvaluationResult]] = {}
    for name, path in given:
        # Folders tell files of one name apart.
        own = path.stem if stems.count(path.stem) == 1 else str(path.with_suffix(""))
        runs.setdefault(own if name is None else name, []).extend(_load(path))
    if len(set(paths)) < len(paths):
        raise ValueError(f"every file needs to be given once (got {', '.join(files)})")
    return runs


def _names_of_sides(new: str, old: str) -> tuple[str, str]:
    """Returns what a sentence calls the new model and the old one."""
    (new_name, new_path), (old_name, old_path) = _split(new), _split(old)
    names = new_name or new_path.stem, old_name or old_path.stem
    return names if names[0] != names[1] else (str(new_path), str(old_path))


def _load_all(files: Sequence[str]) -> list[EvaluationResult]:
    return [result for file in files for result in _load(_path_of(file))]


def _path_of(file: str) -> Path:
    return _split(file)[1]


def _split(file: str) -> tuple[str | None, Path]:
    """Returns the name and the path of `NAME=FILE`; the name is `None` if there is none."""
    name, separator, path = file.partition("=")
    return (name, Path(path)) if separator and not Path(file).exists() else (None, Path(file))


def _load(path: Path) -> list[EvaluationResult]:
    """Returns the runs in a file, which may hold one result or several.

    Raises:
        OSError: If the file cannot be opened.
        ValueError: If it is no saved result.
    """
    try:
        return [EvaluationResult.load(path)]
    except ValueError as error:
        try:
            return list(Runs.load(path))
        except ValueError:
            raise ValueError(
                f"{path}: the file needs to be a result, as --output or "
                f"EvaluationResult.save writes it ({error.__cause__ or error})"
            ) from None
