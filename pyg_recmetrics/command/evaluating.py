"""The subcommand `evaluate`."""

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from pyg_recmetrics.command import notes, reading
from pyg_recmetrics.command.notes import as_number, note
from pyg_recmetrics.command.reading import Array, TableFile, Texts
from pyg_recmetrics.evaluation import evaluate as measure
from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.data_frames import find_column, number_texts


def evaluate(options: Namespace) -> int:
    """Evaluates lists, embeddings or scores on interactions, and prints the means."""
    if (options.users is None) != (options.items is None):
        raise ValueError("--users and --items need each other")
    if [options.lists, options.scores, options.users].count(None) != 2:
        raise ValueError("evaluate needs one of --lists, --scores, or --users and --items")
    if options.output is not None:
        notes.check_output(options.output, options)
    seen = [_read_interactions(path, options) for path in options.train or ()]
    truth = _read_interactions(options.test, options, is_truth=True)
    notes.remember_file("truth", options.test)
    files = {kind: _file_of(kind, options) for kind in ("user", "item")}
    notes.remember_file("recommender", options.lists or " and ".join(dict.fromkeys(files.values())))
    lists: pd.DataFrame | None = None
    arrays: list[Array] = []
    if options.lists is not None:
        lists = _read_lists(reading.read_table(Path(options.lists), options.list_columns), options)
        rows = {} if options.item_ids is None else {"item": _ids_in(options.item_ids)}
    elif options.scores is not None:
        arrays, rows = _read_scores(options)
    else:
        users, items = _read_vectors("user", options), _read_vectors("item", options)
        arrays, rows = [users[0], items[0]], {"user": users[1], "item": items[1]}
    task = _make_task([truth, *seen], rows.get("item"), files["item"], options)
    places = {kind: _places(task, kind, rows[kind], files[kind]) for kind in rows}
    recommender = _by_ids(lists, task) if lists is not None else _in_order(arrays, places)
    passed_on = notes.same_options(measure, options)
    result = measure(recommender, task, progress=notes.is_terminal(), **passed_on)
    if options.output is not None:
        result.save(options.output)
    notes.print_result(result, _to_json(result), options)
    return notes.DONE


def _read_interactions(path: Path, options: Namespace, *, is_truth: bool = False) -> pd.DataFrame:
    """Returns the ids of users and items, and the ratings of the truth if they count."""
    table = reading.read_table(path, options.columns)
    rating = find_column(table.data.column_names, "rating")
    is_asked = options.rating_column is not None or options.threshold is not None
    has_ratings = is_truth and (is_asked or (table.form == "TREC" and rating is not None))
    if is_truth and rating is not None and not has_ratings:
        why = f"{rating!r} is not used, so all rows are equally relevant"
        note(f"{path}: {why}; --rating-column {rating} and --threshold use it")
    frame = table.read(options, *(["rating"] if has_ratings else []))
    if num_repeated := int(frame.duplicated(["user", "item"]).sum()):
        note(f"{path}: rows that repeat an interaction, which counts once: {num_repeated:,}")
    return frame


def _file_of(kind: str, options: Namespace) -> str:
    """Returns the file that says what the rows of users or items are."""
    return str(getattr(options, f"{kind}_ids") or options.scores or getattr(options, f"{kind}s"))


def _make_task(
    frames: list[pd.DataFrame], items: "Texts | None", file: str, options: Namespace
) -> RankingTask:
    """Returns the task of the truth and of what was seen, with all items that are named."""
    user_ids, users = number_texts([frame["user"] for frame in frames])
    more = [] if items is None else [items]
    item_ids, all_items = number_texts([*(frame["item"] for frame in frames), *more])
    truth, *seen = map(torch.stack, zip(users, all_items, strict=False))
    for kind, ids, numbers in (("user", user_ids, users), ("item", item_ids, all_items)):
        new = np.setdiff1d(numbers[0], torch.cat(numbers[1 : len(frames)])) if seen else ()
        if len(new):
            named = f"{len(new):,} ({list_some([str(ids[number]) for number in new])})"
            warn(
                f"nothing could be learned about {kind}s of the truth that --train does not have: "
                f"{named}"
            )
    if num_more := len(item_ids) - torch.cat(all_items[: len(frames)]).unique().numel():
        note(f"{file}: items without interactions that are candidates, too: {num_more:,}")
    rating = frames[0].get("rating")
    if rating is not None and options.threshold is None and bool((rating == 1).all()):
        rating = None
    return RankingTask(
        truth,
        num_users=len(user_ids),
        num_items=len(item_ids),
        seen=torch.cat(seen, dim=1) if seen else None,
        exclude_seen=not options.include_seen,
        weight=None if rating is None else torch.tensor(rating.to_numpy()),
        threshold=options.threshold,
        user_ids=user_ids,
        item_ids=item_ids,
    )


def _ids_of(task: RankingTask, kind: str) -> tuple[np.ndarray[Any, Any], pd.Index]:
    """Returns the ids of users or items, and how files write them."""
    ids = np.asarray(task.user_ids if kind == "user" else task.item_ids)
    return ids, pd.Index(ids.astype(str))


def _places(task: RankingTask, kind: str, rows: Texts, file: str) -> np.ndarray[Any, Any]:
    """Returns the row of each user or item of a task."""
    if num_repeated := len(rows) - rows.nunique():
        raise ValueError(f"{file}: every id needs one row (got {num_repeated:,} more)")
    _, written = _ids_of(task, kind)
    places = pd.Index(rows).get_indexer(written)
    if len(missing := written[places < 0]):
        named = f"{kind}s of the interactions without a row: {len(missing):,}"
        raise ValueError(
            f"{file}: {named} ({list_some([*missing])}); --{kind}-ids names the {kind} of each row "
            f"of an array"
        )
    if num_others := len(rows) - len(places):
        note(f"{file}: {kind}s without interactions that are left out: {num_others:,}")
    return places


def _in_order(arrays: list[Array], places: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Returns arrays as `evaluate` takes them, in the order of a task."""
    all_sides = (
        [("user",), ("item",)] if len(arrays) == 2 else [("user", "item")[-arrays[0].ndim :]]
    )
    for number, sides in enumerate(all_sides):
        for dim, kind in enumerate(sides):
            # An array that is in order already stays in its file.
            if not np.array_equal(places[kind], np.arange(arrays[number].shape[dim])):
                arrays[number] = arrays[number][(slice(None),) * dim + (places[kind],)]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _by_ids(lists: pd.DataFrame, task: RankingTask) -> pd.DataFrame:
    """Returns ranked items, by ids that are of the same type as those of a task."""
    for kind in ("user", "item"):
        ids, written = _ids_of(task, kind)
        place = written.get_indexer(pd.Index(lists[kind]))
        known = np.where(place < 0, lists[kind].to_numpy(object), ids.astype(object)[place])
        lists = lists.assign(**{kind: pd.Series(known, lists.index, object).infer_objects()})
        if kind == "user" and (place < 0).any():
            num_others = lists["user"][place < 0].nunique()
            note(f"users without interactions whose lists are left out: {num_others:,}")
            lists = lists[place >= 0]
    return lists


def _read_lists(table: TableFile, options: Namespace) -> pd.DataFrame:
    """Returns users, items and ranks. As in trec_eval, a run is ranked by its scores."""
    kinds = ("score", "rank") if table.form == "TREC" else ("rank", "score")
    names = table.data.column_names
    by = next((kind for kind in kinds if find_column(names, kind)), None)
    if by is None:
        wanted = "the order of items needs a column 'rank' or 'score'"
        raise ValueError(f"{table.path}: {wanted} (got {', '.join(map(repr, names))})")
    frame = table.read(options, by)
    if by == "rank":
        return frame
    ties = number_texts([frame["item"]])[1][0]
    frame = frame.iloc[np.lexsort((ties, -frame["score"]))]
    return frame[["user", "item"]].assign(rank=frame.groupby("user", sort=False).cumcount() + 1)


def _read_vectors(kind: str, options: Namespace) -> tuple[Array, Texts]:
    """Returns the embeddings of users or items, and the id of each row."""
    file = getattr(options, f"{kind}s")
    if reading.is_array_file(file):
        array = reading.read_array(file, kind)
        return array, _row_ids(array.shape[0], kind, file, options)
    table = reading.read_table(Path(file))
    names, id_column = table.data.column_names, table.find(kind, "id")
    vector = find_column(names, "vector")
    # All but the ids, and but the row numbers that pandas writes unasked.
    is_other = re.compile(rf"__index_level_\d+__|Unnamed: \d+||{re.escape(id_column)}")
    columns = (
        [name for name in names if not is_other.fullmatch(name)] if vector is None else [vector]
    )
    shown = columns[0] if len(columns) == 1 else f"{columns[0]} to {columns[-1]}"
    table.say(**{kind: id_column, "vector": shown})
    return table.vectors(columns).astype(np.float32), table.ids(id_column)


def _read_scores(options: Namespace) -> tuple[list[Array], dict[str, Texts]]:
    """Returns the scores, and the ids of their rows and columns."""
    scores = reading.read_array(options.scores, "score")
    if isinstance(scores, np.ndarray) and scores.dtype.kind in "iu":
        scores = scores.astype(np.float64)
    sizes = zip(("user", "item")[-scores.ndim :], scores.shape, strict=False)
    return [scores], {kind: _row_ids(n, kind, options.scores, options) for kind, n in sizes}


def _row_ids(num_rows: int, kind: str, file: str, options: Namespace) -> Texts:
    """Returns the ids of rows if an option names them, and else their numbers."""
    given = getattr(options, f"{kind}_ids")
    if given is None:
        note(f"{file}: row 0 is {kind} 0, and row {num_rows - 1} is {kind} {num_rows - 1}")
        return pd.Series(range(num_rows)).astype(str)
    ids = _ids_in(given)
    if len(ids) != num_rows:
        raise ValueError(f"{given}: {file} needs {num_rows:,} ids, one a row (got {len(ids):,})")
    return ids


def _ids_in(file: str) -> Texts:
    """Returns the ids in an array, or in the lines of a file."""
    if reading.is_array_file(file):
        ids = [str(id_) for id_ in np.asarray(reading.read_array(file, "id")).tolist()]
    else:
        ids = Path(file).read_text(encoding="utf-8-sig").splitlines()
    if "" in ids:
        raise ValueError(f"{file}, line {ids.index('') + 1}: an id is needed (got nothing)")
    return pd.Series(ids, dtype=object)


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
