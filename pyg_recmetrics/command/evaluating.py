"""The subcommand `evaluate`."""

import argparse
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from pyg_recmetrics.command import notes, reading
from pyg_recmetrics.command.notes import as_number, note
from pyg_recmetrics.command.reading import Numbers, TableFile, Texts
from pyg_recmetrics.evaluation import evaluate as measure
from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.task import RankingTask

#: The options that name one file, or an array in it.
_READ = ("test", "lists", "run", "users", "items", "scores", "user_ids", "item_ids")


class _Given(NamedTuple):
    """What recommends, as it is read.

    Attributes:
        parts: A frame of users, items and ranks; or arrays.
        rows: The id of each row of the arrays, or all ids that an option names, for `"user"` and
            for `"item"`.
        sides: What the dimensions of each array are: `"user"` or `"item"`.
    """

    parts: tuple[Any, ...]
    rows: dict[str, Texts]
    sides: tuple[tuple[str, ...], ...] = ()


def evaluate(options: argparse.Namespace) -> int:
    """Evaluates lists, embeddings or scores on interactions, and prints the means."""
    if (options.users is None) != (options.items is None):
        raise ValueError("--users and --items need each other")
    if options.output is not None:
        files = [str(file) for name in _READ if (file := getattr(options, name)) is not None]
        read = [reading.split_name(file)[0] for file in files]
        notes.check_output(options.output, [*options.train, *read])
    seen = [_read_interactions(path, options) for path in options.train]
    truth = _read_interactions(options.test, options, is_truth=True)
    if seen:
        _warn_about_new(truth, pd.concat(seen))
    notes.remember_file("truth", options.test)
    given = _read_recommender(options)
    task = _make_task([truth, *seen], given.rows.get("item"), options)
    recommender = _in_order(given, task, options)
    passed_on = notes.same_options(measure, options)
    result = measure(recommender, task, progress=notes.is_terminal(), **passed_on)
    if options.output is not None:
        result.save(options.output)
    notes.print_result(result, _to_json(result), options)
    return notes.DONE


def _read_interactions(
    path: Path, options: argparse.Namespace, *, is_truth: bool = False
) -> pd.DataFrame:
    """Returns the ids of users and items, and the ratings of the truth if they count."""
    table = reading.read_table(path, options.columns)
    more = ["rating"] if is_truth and _reads_ratings(table, options) else []
    frame = table.read(options, *more)
    if num_repeated := int(frame.duplicated(["user", "item"]).sum()):
        note(f"{path}: {num_repeated:,} rows repeat an interaction, which counts once")
    return frame


def _reads_ratings(table: TableFile, options: argparse.Namespace) -> bool:
    """Returns whether ratings of the truth count, and says so if they could and do not."""
    if options.rating_column is not None or options.threshold is not None:
        return True
    unused = reading.find_column(["rating"], table.columns)
    if unused is None or table.in_words == "TREC":
        return unused is not None
    why = f"{unused!r} is not used, so all rows are equally relevant"
    note(f"{table.path}: {why}; --rating-column {unused} and --threshold use it")
    return False


def _warn_about_new(truth: pd.DataFrame, seen: pd.DataFrame) -> None:
    """Warns about ids that only the truth has."""
    for kind in ("user", "item"):
        if new := truth[kind][~truth[kind].isin(seen[kind])].unique().tolist():
            named = f"{len(new):,} {kind}s of the truth that --train does not have"
            warn(f"nothing could be learned about {named} ({list_some(new)})")


def _make_task(
    frames: list[pd.DataFrame], items: "Texts | None", options: argparse.Namespace
) -> RankingTask:
    """Returns the task of the truth and of what was seen, with all items that are named."""
    user_ids, user = reading.number_ids([frame["user"] for frame in frames])
    more = [] if items is None else [items]
    item_ids, item = reading.number_ids([*(frame["item"] for frame in frames), *more])
    if num_more := len(item_ids) - len(np.unique(np.concatenate(item[: len(frames)]))):
        named = f"{num_more:,} items without interactions"
        note(f"{_file_of('item', options)}: {named} are candidates, too")
    truth, *seen = (torch.from_numpy(np.stack(pair)) for pair in zip(user, item, strict=False))
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


def _in_order(given: _Given, task: RankingTask, options: argparse.Namespace) -> Any:
    """Returns what recommends as `evaluate` takes it, in the order of a task."""
    ids: dict[str, Any] = {"user": task.user_ids, "item": task.item_ids}
    row_of = {
        kind: _rows_of(ids[kind], rows, kind, _file_of(kind, options))
        for kind, rows in given.rows.items()
    }
    if not given.sides:
        return _by_ids(given.parts[0], ids)
    arrays = []
    for array, sides in zip(given.parts, given.sides, strict=True):
        for dim, kind in enumerate(sides):
            # An array that is in order already stays in its file.
            if not np.array_equal(row_of[kind], np.arange(array.shape[dim])):
                array = array[(slice(None),) * dim + (row_of[kind],)]
        arrays.append(array)
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _file_of(kind: str, options: argparse.Namespace) -> str:
    """Returns the file that says what the rows of users or items are."""
    return str(getattr(options, f"{kind}_ids") or options.scores or getattr(options, f"{kind}s"))


def _rows_of(ids: Any, rows: Texts, kind: str, file: str) -> Numbers:
    """Returns the row of each id."""
    if num_repeated := len(rows) - rows.nunique():
        raise ValueError(f"{file}: every id needs one row (got {num_repeated:,} more)")
    row_of = pd.Index(rows).get_indexer(pd.Index([str(id_) for id_ in ids]))
    if missing := [repr(id_) for id_, row in zip(ids, row_of, strict=True) if row < 0]:
        named = f"{len(missing):,} {kind}s of the interactions, {list_some(missing)}, have no row"
        raise ValueError(f"{file}: {named}; --{kind}-ids names the {kind} of each row of an array")
    if num_others := len(rows) - len(ids):
        note(f"{file}: {num_others:,} {kind}s without interactions are left out")
    return np.asarray(row_of, dtype=np.int64)


def _by_ids(lists: pd.DataFrame, ids: dict[str, Any]) -> pd.DataFrame:
    """Returns ranked items, by ids that are of the same type as those of a task."""
    for kind in ("user", "item"):
        if all(isinstance(id_, int) for id_ in ids[kind]):
            lists = lists.assign(**{kind: lists[kind].map(reading.as_id).astype(object)})
    if num_others := int((~lists["user"].drop_duplicates().isin(ids["user"])).sum()):
        note(f"the lists of {num_others:,} users without interactions are left out")
    columns = {"user": "user_id", "item": "item_id", "rank": "rank"}
    return lists[[*columns]].rename(columns=columns)


def _read_recommender(options: argparse.Namespace) -> _Given:
    """Reads what the options name."""
    file = options.lists or options.run or options.scores or f"{options.users}, {options.items}"
    notes.remember_file("recommender", file)
    if options.users is not None:
        users, user_rows = _read_vectors(options.users, "user", options)
        items, item_rows = _read_vectors(options.items, "item", options)
        rows = {"user": user_rows, "item": item_rows}
        return _Given((users, items), rows, (("user",), ("item",)))
    if options.scores is not None:
        return _read_scores(options)
    rows = {} if options.item_ids is None else {"item": _ids_in(options.item_ids)}
    is_run = options.run is not None
    table = reading.read_table(Path(file), options.list_columns, is_run=is_run)
    return _Given((_read_lists(table, options),), rows)


def _read_vectors(file: str, kind: str, options: argparse.Namespace) -> tuple[Any, Texts]:
    """Returns the embeddings of users or items, and the id of each row."""
    if reading.is_array_file(file):
        array = reading.read_array(file, kind)
        return array, _row_ids(array.shape[0], kind, file, options)
    table = reading.read_table(Path(file))
    id_column = table.find("id", options, kind)
    if reading.find_column(["vector"], table.columns):
        names = [table.find("vector", options)]
    else:  # all but the ids, and but the row numbers that pandas writes unasked
        is_other = re.compile(rf"__index_level_\d+__|Unnamed: \d+||{re.escape(id_column)}")
        names = [name for name in table.columns if not is_other.fullmatch(name)]
    shown = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    table.say(**{kind: id_column, "vector": shown})
    return table.vectors(names).astype(np.float32), table.ids(id_column)


def _read_scores(options: argparse.Namespace) -> _Given:
    scores = reading.read_array(options.scores, "score")
    if isinstance(scores, np.ndarray) and scores.dtype.kind in "iu":
        scores = scores.astype(np.float64)
    sides = ("item",) if scores.ndim == 1 else ("user", "item")
    sizes = zip(sides, scores.shape, strict=False)
    rows = {kind: _row_ids(size, kind, options.scores, options) for kind, size in sizes}
    return _Given((scores,), rows, (sides,))


def _row_ids(num_rows: int, kind: str, file: str, options: argparse.Namespace) -> Texts:
    """Returns the ids of rows if an option names them, and else their numbers."""
    given = getattr(options, f"{kind}_ids")
    if given is None:
        note(f"{file}: row 0 is {kind} 0, and row {num_rows - 1} is {kind} {num_rows - 1}")
        return pd.Series(map(str, range(num_rows)), dtype=object)
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


def _read_lists(table: TableFile, options: argparse.Namespace) -> pd.DataFrame:
    """Returns users, items and ranks. Of equal scores, the lower id comes first."""
    # Scores come first in a run, as in trec_eval, which ignores its ranks.
    kinds = ("score", "rank") if table.in_words == "TREC" else ("rank", "score")
    by = next((kind for kind in kinds if reading.find_column([kind], table.columns)), None)
    if by is None:
        wanted = "the order of items needs a column 'rank' or 'score'"
        raise ValueError(f"{table.path}: {wanted} (got {', '.join(map(repr, table.columns))})")
    frame = table.read(options, by)
    if by == "rank":
        return frame
    ties = reading.number_ids([frame["item"]])[1][0]
    if table.in_words == "TREC":  # where the first line does
        ties = np.arange(len(frame))
    frame = frame.iloc[np.lexsort((ties, -frame["score"].to_numpy()))]
    return frame.assign(rank=frame.groupby("user", sort=False).cumcount() + 1)


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
