"""The subcommand `evaluate`."""

from argparse import Namespace
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pyg_recmetrics.checks import check_raw_ids
from pyg_recmetrics.command import notes, reading
from pyg_recmetrics.command.notes import as_number, note
from pyg_recmetrics.evaluation import evaluate as measure
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.data_frames import find_column, number_texts


def evaluate(options: Namespace) -> int:
    """Evaluates lists or embeddings on interactions, and prints the means."""
    forms = ("lists", "item_ids", "users", "items")
    given = {form for form in forms if getattr(options, form) is not None}
    if given not in ({"lists"}, {"lists", "item_ids"}, {"users", "items"}):
        raise ValueError("evaluate needs --lists (and --item-ids), or --users and --items")
    notes.check_output(options)
    truth = _read_interactions(options.test, options, is_truth=True)
    seen = [_read_interactions(path, options) for path in options.train or ()]
    lists: pd.DataFrame | None = None
    items: Iterable[str] | None = None
    vectors: list[dict[str, NDArray[np.float32]]] = []
    if options.lists is not None:
        lists = _read_lists(options.lists, options)
        if options.item_ids is not None:
            items = reading.read_ids(options.item_ids)
        notes.files.update(items=options.item_ids or options.lists, recommender=options.lists)
        users: Iterable[str] = lists["user"].unique()
    else:
        vectors = [_read_vectors(kind, getattr(options, f"{kind}s")) for kind in ("user", "item")]
        users, items = vectors
        both = " and ".join(dict.fromkeys([str(options.users), str(options.items)]))
        notes.files.update(items=options.items, recommender=both)
    notes.files.update(test=options.test, truth=options.test, train="--train")
    task = _make_task(truth, seen, items, lists, options)
    if num_others := len({*map(str, users)} - {*map(str, task.user_ids or ())}):
        file = notes.files["recommender"]
        note(f"{file}: users without interactions that are left out: {num_others:,}")
    by_id = zip(vectors, (task.user_ids, task.item_ids), strict=False)
    recommender: Any = lists if lists is not None else tuple(_under_ids_of(*pair) for pair in by_id)
    passed_on = notes.same_options(measure, options)
    result = measure(recommender, task, progress=notes.is_terminal(), **passed_on)
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
        items=None if items is None else sorted(ids[text] for text in items),
        exclude_seen=not options.include_seen,
        threshold=options.threshold,
    )


def _under_ids_of(
    vectors: Mapping[str, NDArray[Any]], ids: Sequence[Hashable] | None
) -> dict[Hashable, NDArray[Any]]:
    """Returns the vectors under the ids of a task, of which some are integers."""
    return {id_: vectors[str(id_)] for id_ in ids or () if str(id_) in vectors}


def _read_lists(path: Path, options: Namespace) -> pd.DataFrame:
    """Returns users, items, and their ranks or scores."""
    table = reading.read_table(path, options.list_columns)
    by = "rank" if find_column(table.data.column_names, "rank") else "score"
    return table.read(**dict.fromkeys(("user", "item", by)))


def _read_vectors(kind: str, path: Path) -> dict[str, NDArray[np.float32]]:
    """Returns the embeddings of users or items by their ids."""
    table = reading.read_table(path)
    column = find_column(table.data.column_names, kind, "id")
    ids: list[str] = table.read(**{kind: column})[kind].tolist()
    check_raw_ids(ids, str(path))
    return dict(zip(ids, table.vectors(str(column)), strict=True))


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
