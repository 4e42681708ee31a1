"""The subcommands. Each reads files, calls one public function, and prints what it returns."""

import argparse
import math
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pyg_recmetrics.checks import check_level
from pyg_recmetrics.command.options import (
    DONE,
    FILES,
    UNDECIDED,
    WORSE,
    as_number,
    check_output,
    note,
    print_result,
    same_options,
    show_warning,
)
from pyg_recmetrics.evaluation import evaluate as measure
from pyg_recmetrics.metrics import parse
from pyg_recmetrics.reporting import report as write_report
from pyg_recmetrics.results import Comparison, EvaluationResult, compare as compare_results
from pyg_recmetrics.results.comparison import is_higher_better, p_of_margin
from pyg_recmetrics.results.notes import lines
from pyg_recmetrics.results.statistics import alpha_of
from pyg_recmetrics.results.verdicts import Equivalence, PairedDifference, Protocol
from pyg_recmetrics.tables import p_in_words
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.data_frames import INTEGER, number_texts
from pyg_recmetrics.utils import requires_package


def evaluate(options: Namespace) -> int:
    """Evaluates lists or embeddings on interactions, and prints the means."""
    with requires_package("pyarrow", "evaluate"):
        from pyg_recmetrics.command import reading
    forms = ("lists", "item_ids", "users", "items")
    given = {form for form in forms if getattr(options, form) is not None}
    if given not in ({"lists"}, {"lists", "item_ids"}, {"users", "items"}):
        raise ValueError("evaluate needs --lists (and --item-ids), or --users and --items")
    check_output(options)
    truth = reading.read_interactions(options.test, options, is_truth=True)
    seen = [reading.read_interactions(path, options) for path in options.train or ()]
    lists: pd.DataFrame | None = None
    items: Iterable[str] | None = None
    vectors: list[dict[str, NDArray[np.float32]]] = []
    if options.lists is not None:
        lists = reading.read_lists(options.lists, options)
        if options.item_ids is not None:
            items = reading.read_ids(options.item_ids)
        FILES.update(items=options.item_ids or options.lists, recommender=options.lists)
    else:
        vectors = [reading.read_vectors(x, getattr(options, f"{x}s")) for x in ("user", "item")]
        items = vectors[1]
        FILES.update(items=options.items, recommender=f"{options.users} and {options.items}")
    FILES.update(test=options.test, truth=options.test, train="--train")
    task = _make_task(truth, seen, items, lists, options)
    users: Iterable[str] = vectors[0] if lists is None else lists["user"].unique()
    if num_others := len({*map(str, users)} - {*map(str, task.user_ids or ())}):
        file = FILES["recommender"]
        note(f"{file}: users without interactions that are left out: {num_others:,}")
    by_id = zip(vectors, (task.user_ids or (), task.item_ids or ()), strict=False)
    # Some ids of the task are integers.
    pair: Any = tuple({x: of[str(x)] for x in ids if str(x) in of} for of, ids in by_id)
    passed_on = same_options(measure, options) | {"progress": sys.stderr.isatty()}
    result = measure(pair if lists is None else lists, task, **passed_on)
    if options.output is not None:
        result.save(options.output)
    print_result(result, _means_to_json(result), options)
    return DONE


def _place(text: str) -> tuple[bool, int, str]:
    """Returns by what ids are sorted: integers by number, and then texts."""
    is_integer = INTEGER.fullmatch(text) is not None
    return not is_integer, int(text) if is_integer else 0, text


def _make_task(
    truth: pd.DataFrame,
    seen: Sequence[pd.DataFrame],
    items: Iterable[str] | None,
    lists: pd.DataFrame | None,
    options: Namespace,
) -> RankingTask:
    """Returns the task. Ids of all frames become integers if those of it are all written so."""
    for kind in ("user", "item"):
        texts = [frame[kind] for frame in (truth, *seen)]
        more = [] if kind == "user" or items is None else [pd.Series([*items], dtype=object)]
        ids = {str(id_): id_ for id_ in number_texts([*texts, *more])[0]}
        for frame in (truth, *seen, *([] if lists is None else [lists])):
            codes, own = pd.factorize(frame[kind])
            frame[kind] = pd.Series([ids.get(text, text) for text in own]).to_numpy()[codes]
    has_weights = "rating" in truth and (options.threshold or not (truth["rating"] == 1).all())
    return RankingTask.from_frames(
        train=pd.concat(seen) if seen else None,
        test=truth,
        rating="rating" if has_weights else None,
        items=None if items is None else [ids[text] for text in sorted(items, key=_place)],
        exclude_seen=not options.include_seen,
        threshold=options.threshold,
    )


def _means_to_json(result: EvaluationResult) -> dict[str, Any]:
    metrics: dict[str, dict[str, Any]] = {}
    for name in result:
        metrics[name] = {"mean": as_number(result[name])}
        if name in result.per_user:  # and not one value for all users together
            # Of users that a margin has drawn, the ends are those of the mean over all.
            ends = result.confidence_interval if result._sampled is None else result.bounds
            low, high = ends(name)
            metrics[name] |= {"low": as_number(low), "high": as_number(high)}
    return {
        "metrics": metrics,
        "num_users": result.user_counts.num_evaluated,
        "num_without_truth": result.user_counts.num_without_truth,
        "convention": result.convention.name,
        "recipe": result.recipe(),
    }


def compare(options: argparse.Namespace) -> int:
    """Compares saved results, and prints their differences."""
    comparison = _compare(_by_name(options.results), options)
    as_json = {"claims": comparison.claims(), "differences": _differences_to_json(comparison)}
    print_result(comparison, as_json, options)
    return DONE


def report(options: argparse.Namespace) -> int:
    """Writes a page about saved results."""
    check_output(options)
    results = _by_name(options.results)
    is_asked = same_options(compare_results, options).keys() - {"results"}
    comparison = _compare(results, options) if is_asked else None
    title = {} if options.title is None else {"title": options.title}
    page = write_report(results, options.output, comparison=comparison, **title)
    note(f"wrote {page}")
    return DONE


def gate(options: argparse.Namespace) -> int:
    """Says in one sentence whether a new model may replace the old one."""
    FILES.update(metrics="--metric", equivalence="--margin")
    level = 0.95 if options.level is None else check_level(options.level)
    if level <= 0.5:
        raise ValueError(f"'level' needs to be more than 0.5 (got {level})")
    margin, metric = Equivalence.of(options.margin), parse(options.metric)
    margin.check(metric)
    if metric.is_aggregate:
        raise ValueError(
            f"'metrics' needs to be one with a value for every user, which a test compares (got "
            f"{metric}, which has one for all users together)"
        )
    sides = [[Path(file) for file in files] for files in (options.results, options.baseline)]
    if same := {*sides[0]} & {*sides[1]}:
        raise ValueError(f"the baseline needs to be another file (got {min(same)} twice)")
    names = [path.stem for path, *_ in sides]
    if names[0] == names[1]:
        names = [str(path) for path, *_ in sides]
    comparison = compare_results(
        {name: [_load(path) for path in side] for name, side in zip(names, sides, strict=True)},
        metrics=[options.metric],
        baseline=names[1],
        # An interval of both sides at 90% has the ends of those of one side at 95%.
        level=2 * level - 1,
        deterministic=options.deterministic or (),
    )
    cautions = list(_cautions(comparison.protocol))
    for caution in cautions:
        show_warning(caution)
    row, decisive = comparison[0], dict[str, Any](verdict=None, p_value=None, p_adjusted=None)
    if sentence := _why_undecided(row, comparison.protocol.nouns.rows):
        status = UNDECIDED
    else:
        status, sentence, decisive = _by_margin(comparison, margin, level)
    if options.form == "json":
        said = {"status": status, "sentence": sentence, "cautions": cautions, "level": level}
        said |= {"margin": options.margin, "interval_level": round(comparison.protocol.level, 12)}
        as_json = {**said, **_differences_to_json(comparison)[0], **decisive}
        print_result(comparison, as_json, options)
    else:
        print(sentence)
    return status


def _cautions(protocol: Protocol) -> Iterator[str]:
    """Yields what the results know that may make the answer wrong."""
    if names := protocol.uncovered:
        yield f"one run of {', '.join(names)}: another seed may give another answer"
    yield from lines("limits", protocol, (), "")
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


def _by_margin(
    comparison: Comparison, margin: Equivalence, level: float
) -> tuple[int, str, dict[str, Any]]:
    """Returns whether the new model is surely not worse than the old one by more than a margin.

    Returns:
        The exit status, a sentence, and what has decided, in place of a test for a difference.
    """
    row = comparison[0]
    p_within, p_of_worse = p_of_margin(comparison, row, margin)
    p_beyond = 1 - p_within
    by, alpha = f" by more than {margin}", alpha_of(level)
    if p_within <= alpha:
        status, says, p = DONE, "is not worse than", p_within
    elif p_beyond <= alpha:
        status, says, p = WORSE, "is worse than", p_beyond
    elif p_of_worse <= alpha:
        status, says, p = WORSE, "is worse than", p_of_worse
        by = f", and perhaps by more than {margin}"
    else:
        status, says, p = UNDECIDED, "may or may not be worse than", p_within
    # A mean of zero has no ratio to the other.
    has_lift = margin.is_share and math.isfinite(row.lift_high - row.lift_low)
    low, high, unit = (row.lift_low, row.lift_high, "%") if has_lift else (row.low, row.high, "")
    shown = f"{low:+.3g}{unit} to {high:+.3g}{unit}, each limit at {level:.4g}"
    lower = "" if is_higher_better(row.metric) else ", where lower is better"
    decisive = {"verdict": says, "p_value": p, "p_adjusted": p}
    of_test = f"({shown}{lower}; {p_in_words(p)})"
    return status, f"{row.a} {says} {row.b} in {row.metric}{by} {of_test}.", decisive


def _compare(results: Mapping[str, Sequence[EvaluationResult]], options: Any) -> Comparison:
    return compare_results(**same_options(compare_results, options) | {"results": results})


def _differences_to_json(comparison: Comparison) -> list[dict[str, Any]]:
    return [{name: as_number(x) for name, x in row._asdict().items()} for row in comparison]


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
        runs.setdefault(name or own, []).append(_load(path))
    return runs


def _load(path: Path) -> EvaluationResult:
    FILES["path"] = path
    return EvaluationResult.load(path)


def _split(file: str) -> tuple[str | None, Path]:
    """Returns the name and the path of `NAME=FILE`; the name is `None` if there is none."""
    name, separator, path = file.partition("=")
    return (name, Path(path)) if separator and not Path(file).exists() else (None, Path(file))
