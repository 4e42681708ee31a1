"""The subcommands on saved results: `compare`, `report` and `gate`."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyg_recmetrics.command import notes
from pyg_recmetrics.command.notes import as_number, note, print_result
from pyg_recmetrics.reporting import report as write_report
from pyg_recmetrics.results import Comparison, EvaluationResult, Runs
from pyg_recmetrics.results import compare as compare_results
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.verdicts import Equivalence

_STATUS = {"better": notes.DONE, "equivalent": notes.DONE, "worse": notes.WORSE}


def compare(options: argparse.Namespace) -> int:
    """Compares saved results, and prints their differences."""
    comparison = _compare(_by_name(options.results), options)
    as_json = {"claims": comparison.claims(), "differences": _to_json(comparison)}
    print_result(comparison, as_json, options)
    return notes.DONE


def report(options: argparse.Namespace) -> int:
    """Writes a page about saved results."""
    notes.check_output(options.output, options)
    results = _by_name(options.results)
    is_asked = notes.same_options(compare_results, options).keys() - {"results"}
    comparison = _compare(results, options) if is_asked else None
    title = {} if options.title is None else {"title": options.title}
    page = write_report(results, options.output, comparison=comparison, **title)
    note(f"wrote {page}")
    return notes.DONE


def gate(options: argparse.Namespace) -> int:
    """Says in one sentence whether a new model may replace the old one."""
    if (options.margin is None) == (options.equivalence is None):
        raise ValueError("gate needs either --margin or --equivalence")
    sides = options.results, options.baseline
    paths = [[_split(file)[1] for file in files] for files in sides]
    if same := {*paths[0]} & {*paths[1]}:
        raise ValueError(f"the baseline needs to be another file (got {min(same)} twice)")
    names = [
        _split(files[0])[0] or path.stem for files, (path, *_) in zip(sides, paths, strict=True)
    ]
    if names[0] == names[1]:
        names = [str(path) for path, *_ in paths]
    level = 0.95 if options.level is None else options.level
    comparison = compare_results(
        {n: [run for x in side for run in _load(x)] for n, side in zip(names, paths, strict=True)},
        metrics=[options.metric],
        primary=options.metric,
        baseline=names[1],
        equivalence=options.equivalence,
        # An interval of both sides at 90% has the ends of those of one side at 95%.
        level=level if options.margin is None else 2 * level - 1,
        deterministic=options.deterministic or (),
    )
    decide = _by_equivalence if options.margin is None else _by_margin
    status, sentence = decide(comparison, options.margin)
    if options.form == "json":
        as_json = {"status": status, "sentence": sentence, **_to_json(comparison)[0]}
        print_result(comparison, as_json, options)
    else:
        print(sentence)
    return status


def _by_equivalence(comparison: Comparison, _: object) -> tuple[int, str]:
    """Returns whether a difference to either side is too small to matter, or which side it is."""
    claims = comparison.claims() or (f"{comparison[0].metric} has too few users for a test.",)
    return _STATUS.get(str(comparison[0].verdict), notes.UNDECIDED), claims[0]


def _by_margin(comparison: Comparison, margin: float | str) -> tuple[int, str]:
    """Returns whether the new model is surely not worse than the old one by more than a margin.

    Source: Piaggio et al., "Reporting of noninferiority and equivalence randomized trials" (2012).
    """
    notes.remember_file("equivalence", "--margin")
    row, size = comparison[0], Equivalence.of(margin)
    ends, limit, unit = (row.low, row.high), size.size, ""
    if size.is_share:
        ends, limit, unit = (row.lift_low, row.lift_high), 100 * size.size, "%"
    low, high = ends if is_higher_better(row.metric) else (-ends[1], -ends[0])
    status = notes.DONE if low > -limit else notes.WORSE if high < 0 else notes.UNDECIDED
    says = ("is not worse than", "is worse than", "may be worse than")[status]
    by = "" if status == notes.WORSE else f" by more than {size}"
    level = (1 + comparison.protocol.level) / 2
    shown = f"{low:+.3g}{unit} to {high:+.3g}{unit}, each limit at {level:.4g}"
    return status, f"{row.a} {says} {row.b} in {row.metric}{by} ({shown})."


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
        ValueError: If a file is given twice.
    """
    given = [_split(file) for file in files]
    if len({path for _, path in given}) < len(given):
        raise ValueError(f"every file needs to be given once (got {', '.join(files)})")
    stems = [path.stem for name, path in given if name is None]
    runs: dict[str, list[EvaluationResult]] = {}
    for name, path in given:
        # Folders tell files of one name apart.
        own = path.stem if stems.count(path.stem) == 1 else str(path.with_suffix(""))
        runs.setdefault(name or own, []).extend(_load(path))
    return runs


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
