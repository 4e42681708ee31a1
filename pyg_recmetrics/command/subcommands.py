"""The subcommands. Each reads files, calls one public function, and prints what it returns."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pyg_recmetrics.checks import check_level
from pyg_recmetrics.command.options import (
    DONE,
    FILES,
    UNDECIDED,
    WORSE,
    check_output,
    note,
    print_json,
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
from pyg_recmetrics.results.verdicts import Equivalence, PairedDifference
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
    read = [options.test, *(options.train or ()), *(getattr(options, form) for form in forms)]
    check_output(options.output, read)
    truth = reading.read_interactions(options.test, options, is_truth=True)
    seen = [reading.read_interactions(path, options) for path in options.train or ()]
    frames = [truth, *seen]
    FILES.update(test=options.test, truth=options.test, train="--train")
    recommender: Any
    users: Iterable[str] = ()
    items: Iterable[str] | None = None
    if "lists" in given:
        recommender = reading.read_lists(options.lists, options)
        if "item_ids" in given:
            items = reading.read_ids(options.item_ids)
        FILES.update(items=options.item_ids or options.lists, recommender=options.lists)
    else:
        users = user_vectors = reading.read_vectors("user", options.users)
        items = item_vectors = reading.read_vectors("item", options.items)
        FILES.update(items=options.items, recommender=f"{options.users} and {options.items}")
    user_ids = _ids_by_text([frame["user"] for frame in frames])
    more = [] if items is None else [pd.Series([*items], dtype=object)]
    item_ids = _ids_by_text([*(frame["item"] for frame in frames), *more])
    if "lists" in given:
        frames.append(recommender)
    else:
        recommender = (
            {user_ids[x]: vector for x, vector in user_vectors.items() if x in user_ids},
            {item_ids[x]: vector for x, vector in item_vectors.items()},
        )
    for frame in frames:
        # Texts that are no ids stay.
        frame["user"] = frame["user"].astype("category").cat.rename_categories(user_ids)
        frame["item"] = frame["item"].astype("category").cat.rename_categories(item_ids)
    has_weights = "rating" in truth and (options.threshold or not (truth["rating"] == 1).all())
    task = RankingTask.from_frames(
        train=pd.concat(seen) if seen else None,
        test=truth,
        rating="rating" if has_weights else None,
        items=None if items is None else [item_ids[text] for text in sorted(items, key=_place)],
        exclude_seen=not options.include_seen,
        threshold=options.threshold,
    )
    if num_others := len({*users} - user_ids.keys()):
        file = FILES["recommender"]
        note(f"{file}: users without interactions that are left out: {num_others:,}")
    passed_on = same_options(measure, options) | {"progress": sys.stderr.isatty()}
    result = measure(recommender, task, **passed_on)
    if options.output is not None:
        result.save(options.output)
    print_result(result, _means_to_json(result), options)
    return DONE


def _ids_by_text(columns: "Sequence[pd.Series[str]]") -> dict[str, Any]:
    """Returns the id that each text stands for: an integer if all of them are written so."""
    return {str(id_): id_ for id_ in number_texts(columns)[0]}


def _place(text: str) -> tuple[bool, int, str]:
    """Returns by what ids are sorted: integers by number, and then texts."""
    is_integer = INTEGER.fullmatch(text) is not None
    return not is_integer, int(text) if is_integer else 0, text


def _means_to_json(result: EvaluationResult) -> dict[str, Any]:
    metrics = {}
    # Of users that a margin has drawn, the ends are those of the mean over all.
    ends_of = result.confidence_interval if result._sampled is None else result.bounds
    for name in result:
        metrics[name] = {"mean": result[name]}
        if name in result.per_user:  # and not one value for all users together
            metrics[name] |= ends_of(name)._asdict()
    return {
        "metrics": metrics,
        "num_users": result.user_counts.num_evaluated,
        "num_without_truth": result.user_counts.num_without_truth,
        "convention": result.convention.name,
        "cautions": result.cautions(),
        "recipe": result.recipe(),
    }


def compare(options: Namespace) -> int:
    """Compares saved results, and prints their differences."""
    asked = same_options(compare_results, options) | {"results": _by_name(options.results)}
    comparison = compare_results(**asked)
    differences = [row._asdict() for row in comparison]
    as_json = {
        "claims": comparison.claims(),
        "cautions": comparison.protocol.remarks,
        "differences": differences,
    }
    print_result(comparison, as_json, options)
    return DONE


def report(options: Namespace) -> int:
    """Writes a page about saved results."""
    output = options.output or Path("report.html")
    check_output(output, [path for _, path in map(_split, options.results)])
    results = _by_name(options.results)
    asked = same_options(compare_results, options) | {"results": results}
    comparison = compare_results(**asked) if len(asked) > 1 else None
    shown = same_options(write_report, options) | {"results": results, "comparison": comparison}
    note(f"wrote {write_report(path=output, **shown)}")
    return DONE


def gate(options: Namespace) -> int:
    """Returns by the exit status whether a new model may replace the old one, and prints why."""
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
    if same := {*options.results} & {*options.baseline}:
        raise ValueError(f"the baseline needs to be another file (got {min(same)} twice)")
    first, baseline = options.results[0], options.baseline[0]
    a, b = first.stem, baseline.stem
    if a == b:
        a, b = str(first), str(baseline)
    comparison = compare_results(
        {a: [*map(_load, options.results)], b: [*map(_load, options.baseline)]},
        metrics=[options.metric],
        baseline=b,
        # An interval of both sides at 90% has the ends of those of one side at 95%.
        level=2 * level - 1,
        deterministic=options.deterministic or (),
    )
    protocol = comparison.protocol
    cautions = [*lines("one_run", protocol), *lines("limits", protocol, (), ""), *protocol.remarks]
    for caution in cautions:
        show_warning(caution)
    status, sentence, verdict, p_value = _decide(comparison, margin, level)
    if not options.json:
        print(sentence)
        return status
    print_json(
        {
            "status": status,
            "sentence": sentence,
            "cautions": cautions,
            "level": level,
            "margin": options.margin,
            "interval_level": round(protocol.level, 12),
            **comparison[0]._asdict(),
            # In place of a test for a difference.
            "verdict": verdict,
            "p_value": p_value,
            "p_adjusted": p_value,
        }
    )
    return status


#: Of so many who differ in one direction alone, others in the other direction may be unseen.
_FEW_DIFFERING = 30


def _why_undecided(row: PairedDifference, rows: str) -> str | None:
    """Returns why no test can decide, in a sentence; `None` if one may."""
    if row.wins is None or row.losses is None or row.verdict is None:
        return f"{row.metric} has too few {rows} for a test."
    differing = row.wins + row.losses
    if differing == 0:
        same = f"{row.a} and {row.b} are the same in {row.metric} for all {rows}"
        return f"{same}: undecided. If the model has not changed, leave the gate out."
    if differing < _FEW_DIFFERING and differing in (row.wins, row.losses):
        side = "better" if row.wins else "worse"
        few = f"few {rows} differ in {row.metric} ({differing:.3g})"
        return f"{few}, and {row.a} is {side} for all of them: too few to decide."
    return None


def _decide(
    comparison: Comparison, margin: Equivalence, level: float
) -> tuple[int, str, str | None, float | None]:
    """Returns whether the new model is surely not worse than the old one by more than a margin.

    Returns:
        The exit status, a sentence, and the verdict and the p-value of the test that has decided;
        `None` if no test can.
    """
    row = comparison[0]
    if sentence := _why_undecided(row, comparison.protocol.nouns.means):
        return UNDECIDED, sentence, None, None
    p_within, p_of_worse = p_of_margin(comparison, row, margin)
    by, alpha = f" by more than {margin}", alpha_of(level)
    if p_within <= alpha:
        status, verdict, p = DONE, "is not worse than", p_within
    elif 1 - p_within <= alpha:
        status, verdict, p = WORSE, "is worse than", 1 - p_within
    elif p_of_worse <= alpha:
        status, verdict, p = WORSE, "is worse than", p_of_worse
        by = f", and perhaps by more than {margin}"
    else:
        status, verdict, p = UNDECIDED, "may or may not be worse than", p_within
    # A mean of zero has no ratio to the other.
    low, high, unit = row.low, row.high, ""
    if margin.is_share and row.has_lift:
        low, high, unit = row.lift_low, row.lift_high, "%"
    shown = f"{low:+.3g}{unit} to {high:+.3g}{unit}, each limit at {level:.4g}"
    lower = "" if is_higher_better(row.metric) else ", where lower is better"
    sentence = f"{row.a} {verdict} {row.b} in {row.metric}{by} ({shown}{lower}; {p_in_words(p)})."
    return status, sentence, verdict, p


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
