"""The subcommands on saved results: `compare`, `report` and `gate`."""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyg_recmetrics.checks import check_level
from pyg_recmetrics.command import notes
from pyg_recmetrics.command.notes import as_number, note, print_result
from pyg_recmetrics.metrics import parse
from pyg_recmetrics.reporting import report as write_report
from pyg_recmetrics.results import Comparison, EvaluationResult
from pyg_recmetrics.results import compare as compare_results
from pyg_recmetrics.results.comparison import is_higher_better, p_of_margin
from pyg_recmetrics.results.notes import notes_on_limits
from pyg_recmetrics.results.statistics import alpha_of
from pyg_recmetrics.results.verdicts import Equivalence, PairedDifference, Protocol
from pyg_recmetrics.tables import format_p

_STATUS = {"better": notes.DONE, "equivalent": notes.DONE, "worse": notes.WORSE}


def compare(options: argparse.Namespace) -> int:
    """Compares saved results, and prints their differences."""
    comparison = _compare(_by_name(options.results), options)
    as_json = {"claims": comparison.claims(), "differences": _to_json(comparison)}
    print_result(comparison, as_json, options)
    return notes.DONE


def report(options: argparse.Namespace) -> int:
    """Writes a page about saved results."""
    notes.check_output(options)
    results = _by_name(options.results)
    is_asked = notes.same_options(compare_results, options).keys() - {"results"}
    comparison = _compare(results, options) if is_asked else None
    title = {} if options.title is None else {"title": options.title}
    page = write_report(results, options.output, comparison=comparison, **title)
    note(f"wrote {page}")
    return notes.DONE


def gate(options: argparse.Namespace) -> int:
    """Says in one sentence whether a new model may replace the old one."""
    option = "--equivalence" if options.margin is None else "--margin"
    notes.files.update(metrics="--metric", level="--level", equivalence=option)
    level, size = _read_level(options), _read_size(options)
    sides = options.results, options.baseline
    paths = [[_split(file)[1] for file in files] for files in sides]
    if same := {*paths[0]} & {*paths[1]}:
        raise ValueError(f"the baseline needs to be another file (got {min(same)} twice)")
    names = [
        _split(files[0])[0] or path.stem for files, (path, *_) in zip(sides, paths, strict=True)
    ]
    if names[0] == names[1]:
        names = [str(path) for path, *_ in paths]
    comparison = compare_results(
        {
            name: [EvaluationResult.load(path) for path in side]
            for name, side in zip(names, paths, strict=True)
        },
        metrics=[options.metric],
        baseline=names[1],
        equivalence=options.equivalence,
        # An interval of both sides at 90% has the ends of those of one side at 95%.
        level=level if options.margin is None else 2 * level - 1,
        deterministic=options.deterministic or (),
    )
    cautions = list(_cautions(comparison.protocol))
    for caution in cautions:
        notes.show_warning(caution)
    row = comparison[0]
    if why := _why_undecided(row, comparison.protocol.nouns.rows):
        status, sentence = notes.UNDECIDED, why
    elif options.margin is None:
        status = _STATUS.get(row.verdict or "", notes.UNDECIDED)
        sentence = comparison.claims()[0]
    else:
        status, sentence = _by_margin(comparison, size, level)
    if options.form == "json":
        said = {"status": status, "sentence": sentence, "cautions": cautions}
        as_json = {**said, **_to_json(comparison)[0]}
        print_result(comparison, as_json, options)
    else:
        print(sentence)
    return status


def _cautions(protocol: Protocol) -> Iterator[str]:
    """Yields what the results know that may make the answer wrong."""
    if names := protocol.uncovered:
        yield f"one run of {', '.join(names)}: another seed may give another answer"
    yield from notes_on_limits(protocol, (), "")
    yield from protocol.remarks


#: Of so many who differ in one direction alone, others in the other direction may be unseen.
_FEW_DIFFERING = 30


def _why_undecided(row: PairedDifference, rows: str) -> str | None:
    """Returns why no test can decide, in a sentence; `None` if one may."""
    if row.wins is None or row.losses is None or row.verdict is None:
        return f"{row.metric} has too few {rows} for a test."
    differing = row.wins + row.losses
    if differing == 0:
        return f"{row.a} and {row.b} are the same in {row.metric} for all {rows}."
    if differing < _FEW_DIFFERING and differing in (row.wins, row.losses):
        side = "better" if row.wins else "worse"
        few = f"few {rows} differ in {row.metric} ({differing:.3g})"
        return f"{few}, and {row.a} is {side} for all of them: too few to decide."
    return None


def _read_level(options: argparse.Namespace) -> float:
    """Returns the level of the test. Intervals of one side are those of twice the rest."""
    level = 0.95 if options.level is None else check_level(options.level)
    if options.margin is not None and level <= 0.5:
        raise ValueError(f"'level' needs to be more than 0.5 with --margin (got {level})")
    return level


def _read_size(options: argparse.Namespace) -> Equivalence:
    """Returns the difference that matters, which is less than metrics can differ by at all."""
    size = Equivalence.of(options.equivalence if options.margin is None else options.margin)
    size.check(parse(options.metric))
    return size


def _by_margin(comparison: Comparison, margin: Equivalence, level: float) -> tuple[int, str]:
    """Returns whether the new model is surely not worse than the old one by more than a margin."""
    row = comparison[0]
    p_within, p_of_worse = p_of_margin(comparison, row, margin)
    is_within, is_worse = (p <= alpha_of(level) for p in (p_within, p_of_worse))
    status = notes.DONE if is_within else notes.WORSE if is_worse else notes.UNDECIDED
    says = ("is not worse than", "is worse than", "may be worse than")[status]
    by = "" if status == notes.WORSE else f" by more than {margin}"
    # A mean of zero has no ratio to the other.
    has_lift = margin.is_share and math.isfinite(row.lift_high - row.lift_low)
    low, high, unit = (row.lift_low, row.lift_high, "%") if has_lift else (row.low, row.high, "")
    shown = f"{low:+.3g}{unit} to {high:+.3g}{unit}, each limit at {level:.4g}"
    lower = "" if is_higher_better(row.metric) else ", where lower is better"
    p = format_p(p_of_worse if status == notes.WORSE else p_within)
    return status, f"{row.a} {says} {row.b} in {row.metric}{by} ({shown}{lower}; p = {p})."


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
        runs.setdefault(name or own, []).append(EvaluationResult.load(path))
    return runs


def _split(file: str) -> tuple[str | None, Path]:
    """Returns the name and the path of `NAME=FILE`; the name is `None` if there is none."""
    name, separator, path = file.partition("=")
    return (name, Path(path)) if separator and not Path(file).exists() else (None, Path(file))
