"""The subcommand `evaluate`."""

import argparse
from typing import Any

import torch
from torch import Tensor

from pyg_recmetrics.command import exits
from pyg_recmetrics.command.ids import Ids
from pyg_recmetrics.command.interactions import Interactions, read_interactions, reads_ratings
from pyg_recmetrics.command.notes import is_terminal, remember_file
from pyg_recmetrics.command.output import as_number, print_result
from pyg_recmetrics.command.recommenders import (
    Axis,
    ReadRecommender,
    lists_by_ids,
    make_axis,
    read_recommender,
    warn_about_new,
)
from pyg_recmetrics.evaluation import evaluate as measure
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.task import RankingTask

#: The options that `pyg_recmetrics.evaluate` takes by the same name, if they are given.
_PASSED_ON = (
    "metrics", "convention", "empty_target_action", "ties", "seed", "batch_size", "margin"
)  # fmt: skip


def evaluate(options: argparse.Namespace) -> int:
    """Evaluates lists, embeddings or scores on interactions, and prints the means."""
    users, items = Ids(), Ids()
    seen = [read_interactions(path, users, items, options) for path in options.train]
    num_known = len(users), len(items)
    truth = read_interactions(
        options.test, users, items, options, with_rating=reads_ratings(options.test, options)
    )
    if seen:
        for kind, ids, number in zip(("user", "item"), (users, items), num_known, strict=True):
            warn_about_new(kind, ids, number)
    remember_file("truth", options.test)
    given = read_recommender(options)
    where = options.scores or options.users or ""
    of_users = make_axis(users, given.users, "user", where, grows=False)
    where = options.scores or options.items or options.item_ids or ""
    of_items = make_axis(items, given.items, "item", where, grows=True)
    task = _make_task(truth, seen, of_users, of_items, options)
    passed_on = {name: getattr(options, name) for name in _PASSED_ON}
    result = measure(
        _recommender(given, of_users, of_items),
        task,
        keep_items=options.keep_items,
        progress=is_terminal(),
        **{name: value for name, value in passed_on.items() if value is not None},
    )
    if options.output is not None:
        result.save(options.output)
    print_result(result, _to_json(result), options)
    return exits.DONE


def _make_task(
    truth: Interactions,
    seen: list[Interactions],
    users: Axis,
    items: Axis,
    options: argparse.Namespace,
) -> RankingTask:
    rating = truth.rating
    if rating is not None and options.threshold is None and bool((rating == 1).all()):
        rating = None
    return RankingTask(
        _numbered(truth, users, items),
        num_users=users.size,
        num_items=items.size,
        seen=torch.cat([_numbered(part, users, items) for part in seen], dim=1) if seen else None,
        exclude_seen=not options.include_seen,
        weight=rating,
        threshold=options.threshold,
        user_ids=users.ids,
        item_ids=items.ids,
    )


def _numbered(interactions: Interactions, users: Axis, items: Axis) -> Tensor:
    user, item = interactions.edges
    return torch.stack([users.number_of[user], items.number_of[item]])


def _recommender(given: ReadRecommender, users: Axis, items: Axis) -> Any:
    recommender = given.aligned(users, items)
    return lists_by_ids(recommender, users, items) if isinstance(recommender, dict) else recommender


def _to_json(result: EvaluationResult) -> dict[str, Any]:
    return {
        "metrics": {name: _mean(result, name) for name in result},
        "num_users": result.num_evaluated,
        "num_without_truth": result.num_without_truth,
        "convention": result.convention.name,
        "recipe": result.recipe(),
    }


def _mean(result: EvaluationResult, name: str) -> dict[str, float | None]:
    mean = {"mean": as_number(result[name])}
    if name not in result.per_user:  # one value for all users together
        return mean
    low, high = result.confidence_interval(name)
    return mean | {"low": as_number(low), "high": as_number(high)}
