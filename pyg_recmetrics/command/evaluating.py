"""The subcommand `evaluate`."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pyg_recmetrics.checks import check_raw_ids
from pyg_recmetrics.command import notes, reading
from pyg_recmetrics.command.notes import as_number, note
from pyg_recmetrics.evaluation import evaluate as measure
from pyg_recmetrics.messages import list_some
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.data_frames import find_column, number_texts


def evaluate(options: Namespace) -> int:
    """Evaluates lists, embeddings or scores on interactions, and prints the means."""
    if (options.users is None) != (options.items is None):
        raise ValueError("--users and --items need each other")
    if [options.lists, options.scores, options.users].count(None) != 2:
        raise ValueError("evaluate needs one of --lists, --scores, or --users and --items")
    notes.check_output(options)
    truth = _read_interactions(options.test, options, is_truth=True)
    seen = [_read_interactions(path, options) for path in options.train or ()]
    files = {
        kind: str(getattr(options, f"{kind}_ids") or options.scores or getattr(options, f"{kind}s"))
        for kind in ("user", "item")
    }
    lists: pd.DataFrame | None = None
    arrays: list[NDArray[Any]] = []
    if options.lists is not None:
        lists = _read_lists(Path(options.lists), options)
        rows = {"item": _ids_in(options.item_ids)} if options.item_ids else {}
    elif options.scores is not None:
        scores = reading.read_array(options.scores)
        arrays = [scores.astype(np.float64) if scores.dtype.kind in "iu" else scores]
        sizes = zip(("user", "item")[-scores.ndim :], scores.shape, strict=False)
        rows = {kind: _row_ids(n, kind, options.scores, options) for kind, n in sizes}
    else:
        users, items = _read_vectors("user", options), _read_vectors("item", options)
        arrays, rows = [users[0], items[0]], {"user": users[1], "item": items[1]}
    for kind, ids in rows.items():
        check_raw_ids(ids, files[kind])
    recommender = options.lists or " and ".join(dict.fromkeys(files.values()))
    notes.files.update(test=options.test, truth=options.test, train="--train")
    notes.files.update(items=files["item"], recommender=recommender)
    task = _make_task(truth, seen, rows.get("item"), lists, options)
    known = {*map(str, task.user_ids or ())}
    named = rows.get("user", ()) if lists is None else map(str, lists["user"].unique())
    if num_others := len({*named} - known):
        note(f"{recommender}: users without interactions that are left out: {num_others:,}")
    given = _in_order(arrays, rows, task, files) if lists is None else lists
    passed_on = notes.same_options(measure, options)
    result = measure(given, task, progress=notes.is_terminal(), **passed_on)
    if options.output is not None:
        result.save(options.output)
    notes.print_result(result, _to_json(result), options)
    return notes.DONE


def _read_interactions(path: Path, options: Namespace, *, is_truth: bool = False) -> pd.DataFrame:
    """Returns the ids of users and items, and the ratings of the truth if they count."""
    table = reading.read_table(path, options.columns)
    given = {"user": options.user_column, "item": options.item_column}
    rating = find_column(table.data.column_names, "rating")
    is_asked = options.rating_column is not None or options.threshold is not None
    if is_truth and (is_asked or (table.form == "TREC" and rating is not None)):
        given["rating"] = options.rating_column
    elif is_truth and rating is not None:
        why = f"{rating!r} is not used, so all rows are equally relevant"
        note(f"{path}: {why}; --rating-column {rating} and --threshold use it")
    frame = table.read(**given)
    if num_repeated := int(frame.duplicated(["user", "item"]).sum()):
        note(f"{path}: rows that repeat an interaction, which counts once: {num_repeated:,}")
    return frame


def _make_task(
    truth: pd.DataFrame,
    seen: Sequence[pd.DataFrame],
    items: Sequence[str] | None,
    lists: pd.DataFrame | None,
    options: Namespace,
) -> RankingTask:
    """Returns the task. Ids of all frames become integers if those of it are all written so."""
    for kind in ("user", "item"):
        texts = [frame[kind] for frame in (truth, *seen)]
        more = [] if kind == "user" or items is None else [pd.Series(items, dtype=object)]
        ids = {str(id_): id_ for id_ in number_texts([*texts, *more])[0]}
        for frame in (truth, *seen, *([] if lists is None else [lists])):
            codes, own = pd.factorize(frame[kind])
            frame[kind] = pd.Series([ids.get(text, text) for text in own]).to_numpy()[codes]
    has_weights = "rating" in truth and (options.threshold or not (truth["rating"] == 1).all())
    return RankingTask.from_frames(
        train=pd.concat(seen) if seen else None,
        test=truth,
        rating="rating" if has_weights else None,
        items=None if items is None else sorted(ids[text] for text in items),
        exclude_seen=not options.include_seen,
        threshold=options.threshold,
    )


def _in_order(
    arrays: list[NDArray[Any]],
    rows: Mapping[str, Sequence[str]],
    task: RankingTask,
    files: Mapping[str, str],
) -> Any:
    """Returns arrays as `evaluate` takes them, in the order of a task."""
    all_sides = [("user",), ("item",)] if len(arrays) == 2 else [tuple(rows)]
    for number, sides in enumerate(all_sides):
        for dim, kind in enumerate(sides):
            ids = [*map(str, (task.user_ids if kind == "user" else task.item_ids) or ())]
            places = pd.Index(rows[kind]).get_indexer(pd.Index(ids))
            if missing := [ids[number] for number in np.flatnonzero(places < 0)]:
                raise ValueError(
                    f"{files[kind]}: {kind}s of the interactions without a row: {len(missing):,} "
                    f"({list_some(missing)}); --{kind}-ids names the {kind} of each row of an array"
                )
            # An array that is in order already stays in its file.
            if not np.array_equal(places, np.arange(arrays[number].shape[dim])):
                arrays[number] = arrays[number][(slice(None),) * dim + (places,)]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _read_lists(path: Path, options: Namespace) -> pd.DataFrame:
    """Returns users, items and ranks. Of equal scores, the lower id comes first."""
    table = reading.read_table(path, options.list_columns)
    if find_column(table.data.column_names, "rank"):
        return table.read(user=None, item=None, rank=None)
    frame = table.read(user=None, item=None, score=None)
    ties = number_texts([frame["item"]])[1][0]
    frame = frame.iloc[np.lexsort((ties, -frame["score"]))]
    return frame[["user", "item"]].assign(rank=frame.groupby("user", sort=False).cumcount() + 1)


def _read_vectors(kind: str, options: Namespace) -> tuple[NDArray[Any], list[str]]:
    """Returns the embeddings of users or items, and the id of each row."""
    file = getattr(options, f"{kind}s")
    if reading.is_array_file(file):
        array = reading.read_array(file)
        return array, _row_ids(array.shape[0], kind, file, options)
    table = reading.read_table(Path(file))
    column = find_column(table.data.column_names, kind, "id")
    ids: list[str] = table.read(**{kind: column})[kind].tolist()
    return table.vectors(str(column)), ids


def _row_ids(num_rows: int, kind: str, file: str, options: Namespace) -> list[str]:
    """Returns the ids of rows if an option names them, and else their numbers."""
    given = getattr(options, f"{kind}_ids")
    if given is None:
        note(f"{file}: row 0 is {kind} 0, and row {num_rows - 1} is {kind} {num_rows - 1}")
        return [*map(str, range(num_rows))]
    ids = _ids_in(given)
    if len(ids) != num_rows:
        raise ValueError(f"{given}: {file} needs {num_rows:,} ids, one a row (got {len(ids):,})")
    return ids


def _ids_in(file: str) -> list[str]:
    """Returns the ids in an array, or in the lines of a file."""
    if reading.is_array_file(file):
        ids = [str(id_) for id_ in np.asarray(reading.read_array(file)).tolist()]
    else:
        ids = Path(file).read_text(encoding="utf-8-sig").splitlines()
    if "" in ids:
        raise ValueError(f"{file}, line {ids.index('') + 1}: an id is needed (got nothing)")
    return ids


def _to_json(result: EvaluationResult) -> dict[str, Any]:
    metrics: dict[str, dict[str, Any]] = {}
    for name in result:
        metrics[name] = {"mean": as_number(result[name])}
        if name in result.per_user:  # and not one value for all users together
            low, high = result.confidence_interval(name)
            metrics[name] |= {"low": as_number(low), "high": as_number(high)}
    return {
        "metrics": metrics,
        "num_users": result.user_counts.num_evaluated,
        "num_without_truth": result.user_counts.num_without_truth,
        "convention": result.convention.name,
        "recipe": result.recipe(),
    }
