"""Whom a result is about: what its rows are called, how many count, and how much each weighs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from torch import Tensor

from pyg_recmetrics.messages import list_some, singular, warn
from pyg_recmetrics.metrics import Metric, definition
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction, check_num_without_truth
from pyg_recmetrics.ranked_edges import RankedEdges, catalogue_of, evaluated_mask, grouped_truth
from pyg_recmetrics.sums import exact_mean, exact_sum


def those_who(noun: str) -> str:
    """Returns such as "users who", with the pronoun of persons or of things."""
    return f"{noun} {'who' if noun in ('users', 'persons') else 'that'}"


class Nouns(NamedTuple):
    """What a result is about, in the plural.

    Attributes:
        users: What has truth: `"users"` or `"queries"`.
        rows: What each row is: one of these, or `"edges"`.
        means: What its means are over: these rows, or `"persons"`.
        drawn: What its intervals draw: `"users"`, `"queries"` or `"persons"`.
    """

    users: str
    rows: str
    means: str
    drawn: str

    @property
    def user(self) -> str:
        """One of the users."""
        return singular(self.users)


#: The nouns where every row is a user, and every user a person.
USERS = Nouns("users", "users", "users", "users")

#: The nouns where every row is a query of its own.
QUERIES = Nouns("queries", "queries", "queries", "queries")


#: A mean over users who have fewer observations than that is too biased to tell recommenders apart.
_FEWEST = 5

#: How many metrics a warning names.
_MAX_NAMED = 4

#: The parameters that say how much each observation counts.
_OF_WEIGHTS = frozenset({"propensity", "gamma", "clip"})


class EffectiveNumber(NamedTuple):
    """How many observations of equal weight vary as much as those of different weights.

    Attributes:
        per_user: The mean over users of the number of each.
        total: The number of all observations together, on which a micro average rests.
    """

    per_user: float
    total: float

    @classmethod
    def of(cls, ranked: RankedEdges, weight: Tensor) -> "EffectiveNumber":
        """Returns it for the users who are evaluated, from a weight per edge, `[num_edges]`."""
        is_counted = evaluated_mask(ranked) & (ranked.degree > 0)
        sums, squares = (ranked.sum(value)[is_counted] for value in (weight, weight.square()))
        per_user = exact_mean(sums.square() / squares)
        total, squared = exact_sum(sums), exact_sum(squares)
        return cls(per_user, total**2 / squared if squared else math.nan)

    def __str__(self) -> str:
        return f"{self.per_user:.2f} per user on average, {self.total:,.0f} in total"


class Observations:
    """How many observations the means rest on that weigh them by propensities.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        definitions (mapping): What is computed under the name of each metric.
    """

    def __init__(self, ranked: RankedEdges, definitions: Mapping[str, Metric]) -> None:
        self.ranked = ranked
        self.weighted = {
            name: metric for name, metric in definitions.items() if _is_weighted(metric)
        }

    @cached_property
    def numbers(self) -> dict[str, EffectiveNumber]:
        """The effective number of observations by how they are weighted, as that is spelled."""
        by_weighting = {_weighting(metric): metric for metric in self.weighted.values()}
        return {
            weighting: EffectiveNumber.of(self.ranked, self._weight(metric))
            for weighting, metric in by_weighting.items()
        }

    def notes(self) -> list[str]:
        """Returns the lines below a table that say the numbers."""
        return [
            f"effective number of observations with {weighting}: {number}"
            for weighting, number in self.numbers.items()
            if not math.isnan(number.per_user)  # as it is if nobody has truth
        ]

    def warn(self) -> None:
        """Warns of means over users who have few observations each."""
        few = {
            name: self.numbers[_weighting(metric)].per_user
            for name, metric in self.weighted.items()
            if metric.all_arguments.get("average") != "micro"
            # Rounded as it is printed, so that rounding errors of five are no fewer.
            and round(self.numbers[_weighting(metric)].per_user, 2) < _FEWEST
        }
        if few:
            warn(
                f"{list_some(list(few), _MAX_NAMED)} may name the wrong winner: the estimate of a "
                f"user rests on {min(few.values()):.2f} effective observations on average, and is "
                f"biased towards what is often observed if they are fewer than {_FEWEST}. Use "
                f"'average=micro', such as '{_micro(self.weighted[next(iter(few))])}'"
            )

    def _weight(self, metric: Metric) -> Tensor:
        arguments: dict[str, Any] = {name: metric.all_arguments[name] for name in _OF_WEIGHTS}
        item = self.ranked.edge_label_index[1]
        return catalogue_of(self.ranked).inverse_propensity(item, **arguments)


def _is_weighted(metric: Metric) -> bool:
    is_taken = metric.definition.parameters.keys() >= _OF_WEIGHTS
    return is_taken and metric.all_arguments["propensity"] != "none"


def _weighting(metric: Metric) -> str:
    """Spells those arguments of a metric that say how much each observation counts."""
    return ",".join(f"{name}={value}" for name, value in metric.arguments if name in _OF_WEIGHTS)


def _micro(metric: Metric) -> Metric:
    """Returns the micro-averaged recall with the same propensities."""
    takes = definition("recall").parameters
    arguments = {name: value for name, value in metric.arguments if name in takes}
    return Metric("recall", metric.k or 20, tuple((arguments | {"average": "micro"}).items()))


@dataclass(frozen=True)
class UserCounts:
    """How many users stand behind a result.

    Attributes:
        num_evaluated (int): Users who have truth that can be retrieved.
        num_without_truth (int): Users who were to be evaluated but have none.
        num_without_candidates (int or None): Those of them who have no candidate, because they have
            seen everything; `None` if candidates are not known.
        num_left_out (int): Users whom the convention does not evaluate.
        num_with_few_candidates (int or None): Evaluated users who have fewer candidates than the
            largest k; `None` if candidates are not known.
        num_with_list (int or None): Users who have a list; `None` if lists were not kept.
        nouns (Nouns): What the users are called: they may be queries, or edges of them.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> users = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr").user_counts
        >>> users.num_evaluated, users.num_without_truth
        (2, 0)
    """

    num_evaluated: int
    num_without_truth: int
    num_without_candidates: int | None
    num_left_out: int
    num_with_few_candidates: int | None
    num_with_list: int | None
    nouns: Nouns = USERS

    @classmethod
    def of(
        cls,
        ranked: RankedEdges,
        max_k: int | None,
        num_left_out: int,
        action: EmptyTargetAction,
        nouns: Nouns = USERS,
    ) -> "UserCounts":
        """Counts the users of a ranking.

        Args:
            ranked (RankedEdges): The ranked ground truth.
            max_k (int, optional): The largest cut-off.
            num_left_out (int): How many users the convention does not evaluate.
            action (str): What users without ground truth count as.
            nouns (Nouns, optional): What the users are called. (default: users)

        Raises:
            ValueError: If there is a user without truth and `action` is `"error"`.
        """
        num_users, num_evaluated = ranked.num_users, grouped_truth(ranked).num_with_truth
        if ranked.users is not None:
            num_users = ranked.users.numel()
            num_evaluated = int((ranked.degree[ranked.users] > 0).sum())
        num_without_truth = num_users - num_evaluated
        num_without_candidates = num_with_few_candidates = num_with_list = None
        if ranked.num_candidates is not None:
            num_without_candidates = num_with_few_candidates = 0
            if ranked.num_users and int(ranked.num_candidates.min()) < max(max_k or 0, 1):
                is_evaluated, num_candidates = evaluated_mask(ranked), ranked.num_candidates
                num_without_candidates = int((is_evaluated & (num_candidates == 0)).sum())
                has_truth = is_evaluated & (ranked.degree > 0)
                num_with_few_candidates = int((has_truth & (num_candidates < (max_k or 0))).sum())
        if ranked.lists is not None:
            has_list = ranked.lists.length(ranked.lists.width) > 0
            num_with_list = int((evaluated_mask(ranked) & has_list).sum())
        counts = cls(
            num_evaluated,
            num_without_truth,
            num_without_candidates,
            num_left_out,
            num_with_few_candidates,
            num_with_list,
            nouns,
        )
        check_num_without_truth(counts.num_without_truth, action)
        return counts

    def of_all(self, num_without_truth: int) -> "UserCounts":
        """Returns the counts of a sample, with all users of the task who have no truth."""
        is_known = self.num_without_candidates is not None and (
            num_without_truth == self.num_without_truth
        )
        number = self.num_without_candidates if is_known else None
        return replace(self, num_without_truth=num_without_truth, num_without_candidates=number)
