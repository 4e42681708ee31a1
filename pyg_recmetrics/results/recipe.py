"""The prose of a result: a paragraph for a paper, and the notes below a table."""

import textwrap
from collections.abc import Iterable
from typing import NamedTuple

from torch import Tensor

from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction
from pyg_recmetrics.ranked_edges.ties import TIES_IN_WORDS, Ties
from pyg_recmetrics.results.nouns import Nouns
from pyg_recmetrics.results.user_counts import UserCounts
from pyg_recmetrics.tables import format_level
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.version import __version__

#: How wide a recipe is printed.
_NUM_COLUMNS = 88


class Ranking(NamedTuple):
    """What was ranked, and how.

    Attributes:
        task: The task, if it is known.
        ties: How equal scores were ranked; `None` if scores are not known.
        num_masked: How many items a score of `-inf` kept out of the rankings.
        num_persons: How many persons the means are over; `None` if they are over rows.
        ranked_by: What ranked, in words, if it is known.
        num_seen: How many seen edges there are.
    """

    task: RankingTask | None
    ties: Ties | None
    num_masked: int
    num_persons: int | None
    ranked_by: str | None
    num_seen: int


def write_recipe(
    definitions: Iterable[Metric],
    users: UserCounts,
    action: EmptyTargetAction,
    convention: Convention,
    ranking: Ranking,
    sample: str | None = None,
) -> str:
    """Returns a paragraph that says what exactly was measured, see `EvaluationResult.recipe`.

    `sample` says which users were ranked if they stand for all.
    """
    definitions = list(definitions)
    text = (
        f"Metrics: {_metrics(definitions)}, where R is {_degree(users)}"
        f"{_threshold(ranking.task)}. "
        f"Population: {_population(definitions, users, action, convention, sample)}"
        f"{_persons(users, ranking.num_persons)}. "
        f"Ranking: {_items(ranking, users.nouns.user)}{_of_edges(users)}{_ties(ranking)}. "
        f"Computed with pyg_recmetrics {__version__}, convention '{convention.name}' "
        f"({convention.source})."
    )
    return textwrap.fill(text, width=_NUM_COLUMNS)


def note_on_intervals(level: float, person: Tensor | None, nouns: Nouns, num_runs: int = 1) -> str:
    """Returns the line below a table that says what its intervals are."""
    note = f"±: {format_level(level)} confidence interval of the mean"
    if num_runs > 1:
        return f"{note} for other {nouns.drawn} and other runs"
    if person is None:
        return f"{note} over {nouns.means}"
    num_drawn = person.unique().numel()
    return f"{note} over {nouns.means}, for other {nouns.drawn} ({num_drawn:,} behind all rows)"


def summarize_users(
    users: UserCounts, action: EmptyTargetAction, convention: Convention, max_k: int | None
) -> str:
    """Returns one line that counts the users behind the means."""
    parts = [f"{users.num_evaluated:,} {users.nouns.rows} evaluated"]
    if users.num_without_truth:
        counted_as = {"neg": " (count as 0)", "pos": " (count as 1)"}.get(action, "")
        parts.append(f"{users.num_without_truth:,} without ground truth{counted_as}")
    if users.num_with_few_candidates:
        parts.append(f"{users.num_with_few_candidates:,} with fewer than {max_k} candidates")
    if users.num_left_out:
        parts.append(f"{_left_out(users)} left out of the population")
    if convention.name != "standard":
        parts.append(f"convention {convention.name}")
    return ", ".join(parts)


def _degree(users: UserCounts) -> str:
    """Says what R is."""
    if users.nouns.rows == "edges":
        return "one, as each edge is ranked alone"
    return f"the number of relevant items of a {users.nouns.user}"


def _left_out(users: UserCounts) -> str:
    """Says how many were left out, and that these are no rows where they are users of edges."""
    number = f"{users.num_left_out:,}"
    if users.nouns.rows == users.nouns.users:
        return number
    return f"{number} {users.nouns.user if users.num_left_out == 1 else users.nouns.users}"


def _metrics(definitions: list[Metric]) -> str:
    """Says what the metrics are, with one definition for all cut-offs of a metric."""
    cut_offs: dict[tuple[str, str, bool], list[str]] = {}
    for metric in definitions:
        # A metric without a cut-off, such as "mrr", is no cut-off of "mrr@10".
        same = cut_offs.setdefault((metric.name, metric.variant, metric.k is None), [])
        cut_off = "" if metric.k is None else f"@{metric.k}"
        if cut_off not in same:  # Two metrics may differ in an argument that has no effect.
            same.append(cut_off)
    said = []
    for (name, variant, _), (*others, last) in cut_offs.items():
        spelled = name + (f"{', '.join(others)} and {last}" if others else last)
        said.append(f"{spelled} ({variant})" if variant else spelled)
    return "; ".join(said)


def _threshold(task: RankingTask | None) -> str:
    if task is None or task.threshold is None:
        return ""
    return f", those of weight {task.threshold:g} or more"


def _population(
    definitions: list[Metric],
    users: UserCounts,
    action: EmptyTargetAction,
    convention: Convention,
    sample: str | None,
) -> str:
    required = " and ".join(convention.population.describe())
    if sample:
        text = f"{sample}, of those with {required}" if required else sample
    elif required:
        text = f"the {users.num_evaluated:,} {users.nouns.rows} with ground truth and {required}"
    else:
        text = f"all {users.num_evaluated:,} {users.nouns.rows} with ground truth"
    if users.num_without_truth:
        what_becomes_of_them = {
            "skip": "are left out",
            "neg": "count as zero",
            "pos": "count as one",
        }.get(action, "")
        without = f"{users.num_without_truth:,} without"
        if users.num_without_candidates:
            without += f", {users.num_without_candidates:,} of them without any candidate,"
        text += f" ({without} {what_becomes_of_them})"
    if of_lists := [str(metric) for metric in definitions if not metric.needs_truth]:
        text += f", and for {', '.join(of_lists)} all {users.num_with_list:,} users with a list"
    if required:
        others = "other" if users.num_left_out == 1 else "others"
        text += f" ({users.num_left_out:,} {others} excluded)"
    return text


def _persons(users: UserCounts, num_persons: int | None) -> str:
    if num_persons is None:
        return ""
    return f"; means are over {num_persons:,} persons, each with the mean of its {users.nouns.rows}"


def _of_edges(users: UserCounts) -> str:
    if users.nouns.rows != "edges":
        return ""
    return f"; each edge is ranked without the other relevant items of its {users.nouns.user}"


def _ties(ranking: Ranking) -> str:
    return f"; {TIES_IN_WORDS[ranking.ties]}" if ranking.ties else ""


def _items(ranking: Ranking, user: str) -> str:
    task = ranking.task
    if task is None:
        return "as given"
    if task.candidates is None:
        items = f"all {task.num_items:,} items"
    elif task.candidates.dim() == 1:
        items = f"{task.candidates.numel():,} of {task.num_items:,} items"
    else:
        items = f"each {user}'s own candidates"
        if task.missing == "count":
            items += " (truth that is not among them counts as not retrieved)"
    if ranking.num_seen and task.exclude_seen:
        items += f" except those that the {user} is connected to by {ranking.num_seen:,} seen edges"
    elif ranking.num_seen:
        items += f", also those that the {user} has seen"
    if ranking.num_masked:
        items += (
            f", except {ranking.num_masked:,} pairs of a {user} and an item with a score of -inf"
        )
    return items if ranking.ranked_by is None else f"{items}, by {ranking.ranked_by}"
