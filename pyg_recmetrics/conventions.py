"""Conventions: how other libraries define the same names, to reproduce their numbers.

A convention spells every metric that a library offers in the arguments of ours. It also says what
users without ground truth count as, and who is evaluated at all. It does not reproduce plain bugs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_boolean, check_choice, check_mapping, check_positive_integer
from pyg_recmetrics.metrics import Metric, Value, definition, parse
from pyg_recmetrics.metrics.registry import EmptyTargetAction, check_empty_target_action
from pyg_recmetrics.ranked_edges import (
    RankedEdges,
    Ties,
    count_irrelevant,
    has_constant_scores,
    select_users,
)
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.utils import FrozenDict, arguments_of, made_of, set_attributes, warn

__all__ = ["CONVENTIONS", "Convention", "Population", "get"]
__dir__ = __all__.copy  # what completion shows

#: How to treat metrics at a `k` that is not smaller than the number of candidates.
FewCandidates: TypeAlias = Literal["count", "undefined"]

#: Stands for the largest cut-off of all metrics that are evaluated together.
DEEPEST = "deepest"


@dataclass(frozen=True)
class Population:
    """Which users are evaluated, in the words of recometrics.

    Args:
        min_pos_test (int, optional): The smallest number of relevant items. (default: `1`)
        min_items_pool (int, optional): The smallest number of candidates. Users without any
            candidate have no ground truth: `empty_target_action` decides about them, unless more
            than one candidate is required. (default: `1`)
        consider_cold_start (bool, optional): Whether users who have seen nothing are evaluated.
            (default: `True`)
        constant_scores (bool, optional): Whether to evaluate users whose candidates all have the
            same score. (default: `True`)
        few_candidates (str, optional): What happens if a user has few candidates: `"count"`
            measures all metrics. With `"undefined"`, a metric at `k` is undefined for users with
            fewer than `k` candidates. It is also undefined for users with exactly `k` candidates
            if it ignores the order within the top `k` (such as recall), and for users whose
            candidates are all relevant if it ignores weights (all but the DCG, the NDCG, the
            expected reciprocal rank and the weighted recall). (default: `"count"`)

    Raises:
        ValueError: If a number is not a positive integer, or `few_candidates` is neither
            `"count"` nor `"undefined"`.
        TypeError: If `consider_cold_start` or `constant_scores` is not a boolean.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Population, RankingTask, conventions, evaluate
        >>> task = RankingTask(torch.tensor([[0, 0, 1], [1, 2, 0]]), num_users=2, num_items=3)
        >>> scores = torch.tensor([0.1, 0.9, 0.5])
        >>> mine = conventions.get("standard").with_population(Population(min_pos_test=2))
        >>> evaluate(scores, task, "recall@2", convention=mine)
        EvaluationResult(recall@2: 1.0000)
    """

    min_pos_test: int = 1
    min_items_pool: int = 1
    consider_cold_start: bool = True
    constant_scores: bool = True
    few_candidates: FewCandidates = "count"

    def __post_init__(self) -> None:
        set_attributes(
            self,
            min_pos_test=check_positive_integer(self.min_pos_test, "min_pos_test"),
            min_items_pool=check_positive_integer(self.min_items_pool, "min_items_pool"),
        )
        check_boolean(self.consider_cold_start, "consider_cold_start")
        check_boolean(self.constant_scores, "constant_scores")
        check_choice(self.few_candidates, "few_candidates", get_args(FewCandidates))

    def is_eligible(self, task: RankingTask) -> Tensor:
        """Returns which users of a task may be evaluated, of shape `[num_users]`.

        This does not look at scores. It leaves out users without ground truth only if more than
        one relevant item or candidate is required: otherwise, `empty_target_action` decides about
        them.

        Raises:
            ValueError: If no user with ground truth is left. Of some users, such as those of a
                part, none may be left, which gives a warning.
        """
        eligible = torch.ones_like(task.num_candidates, dtype=torch.bool)
        if self.min_items_pool > 1:
            eligible &= task.num_candidates >= self.min_items_pool
        if self.min_pos_test > 1:
            eligible &= task.degree >= self.min_pos_test
        if not self.consider_cold_start:
            eligible &= torch.bincount(task.seen[0], minlength=task.num_users) > 0
        if not bool((task.degree[eligible] > 0).any()):
            left_out = f"the population needs to leave a user with ground truth (got {self})"
            if task.users.numel() == task.num_users:
                raise ValueError(left_out)
            warn(left_out)
        return eligible

    @cached_property
    def _leaves_out(self) -> bool:
        """Whether some users of a task may not be eligible."""
        requires_more = self.min_items_pool > 1 or self.min_pos_test > 1
        return requires_more or not self.consider_cold_start

    def select(self, ranked: RankedEdges) -> tuple[RankedEdges, int]:
        """Returns the ranking of those whose scores may be evaluated, and how many others had one.

        Every metric is undefined if no user with ground truth is left.
        """
        if self.constant_scores:
            return ranked, 0
        is_constant = has_constant_scores(ranked)
        if not bool((ranked.degree[~is_constant] > 0).any()):
            warn(
                "'constant_scores' of the population leaves no user with ground truth: all "
                "candidates of each have the same score, so every metric is undefined"
            )
        return select_users(ranked, ~is_constant), int(is_constant.sum())

    def measure(self, metric: Metric, ranked: RankedEdges) -> Tensor:
        """Returns a metric of every user, `NaN` for those with too few candidates for it."""
        if metric.is_aggregate or self.few_candidates == "count" or ranked.num_candidates is None:
            return metric(ranked)
        k = metric.k or 0
        can_differ = (count_irrelevant(ranked) > 0) | metric.depends_on_weight
        is_defined = can_differ & (ranked.num_candidates > k)
        if metric.definition.depends_on_order:
            is_defined |= ranked.num_candidates == k
        # A ratio of sums is one over those who count, so the others leave before it is made.
        value = metric(select_users(ranked, is_defined))
        return value.masked_fill(~is_defined, torch.nan) if value.dim() else value

    def describe(self) -> list[str]:
        """Returns the conditions on users that differ from the default, in words."""
        requirements = {
            f"at least {self.min_pos_test} relevant items": self.min_pos_test > 1,
            f"at least {self.min_items_pool} candidates": self.min_items_pool > 1,
            "something they have seen": not self.consider_cold_start,
            "scores that are not all equal": not self.constant_scores,
            "enough candidates for the metric": self.few_candidates == "undefined",
        }
        return [words for words, is_required in requirements.items() if is_required]


@dataclass(frozen=True)
class Convention:
    """The definitions of one library.

    Args:
        name (str): Its name, as :func:`~pyg_recmetrics.evaluate` takes it.
        source (str): The library, and the version whose definitions these are.
        metrics (mapping or None): The arguments of every metric that the library offers; `None`
            for all metrics with their defaults. An argument `ties` holds where scores are known.
        without_cut_off (tuple, optional): The metrics that the library does not cut off at k.
            (default: `()`)
        empty_target_action (str, optional): What users without ground truth count as.
            (default: `"skip"`)
        population (Population, optional): Who is evaluated. (default: all users)
        ties (str, optional): How equal scores are ranked, where scores are known, see
            :meth:`RankedEdges.with_ties`. (default: `"index"`, the lower item id first)
        note (str, optional): What to know about the convention. (default: `""`)

    Raises:
        TypeError: If `population` is not a `Population`, `metrics` is not a mapping, or
            `without_cut_off` is not a tuple or a list.
        ValueError: If there is no such metric, argument, `empty_target_action` or `ties`, or a
            metric is there twice.

    Example:
        >>> from pyg_recmetrics import conventions
        >>> mine = conventions.Convention("mine", "our paper", {"ndcg": {"gain": "binary"}})
        >>> mine.resolve("ndcg@10")
        ndcg(gain=binary)@10
    """

    name: str
    source: str
    metrics: Mapping[str, Mapping[str, Value]] | None
    without_cut_off: tuple[str, ...] = ()
    empty_target_action: EmptyTargetAction = "skip"
    population: Population = field(default_factory=Population)
    ties: Ties = "index"
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_empty_target_action(self.empty_target_action)
        check_choice(self.ties, "ties", get_args(Ties))
        if not isinstance(self.population, Population):
            raise TypeError(
                f"'population' needs to be a 'Population' (got {type(self.population).__name__})"
            )
        # A convention is a value, which no caller can change for all others by accident.
        if self.metrics is not None:
            given = check_mapping(self.metrics, "metrics").items()
            checked = {definition(name).name: _checked(name, each) for name, each in given}
            if len(checked) < len(given):
                raise ValueError(f"'metrics' needs each metric once (got {[*self.metrics]})")
            set_attributes(self, metrics=FrozenDict(checked))
        if not isinstance(self.without_cut_off, list | tuple):
            raise TypeError(
                f"'without_cut_off' needs to be a tuple of names (got {self.without_cut_off!r})"
            )
        without_cut_off = tuple(definition(name).name for name in self.without_cut_off)
        set_attributes(self, without_cut_off=without_cut_off)

    def with_population(self, population: Population) -> "Convention":
        """Returns the same definitions for other users.

        Args:
            population (Population): Who is evaluated. All of its options count, and none of those
                that the convention had. `dataclasses.replace(convention.population,
                min_pos_test=5)` changes one of them.

        Raises:
            TypeError: If `population` is not a `Population`.

        Example:
            >>> from pyg_recmetrics import Population, conventions
            >>> mine = conventions.get("standard").with_population(Population(min_pos_test=5))
            >>> mine.name, mine.population.min_pos_test
            ('standard', 5)
        """
        return replace(self, population=population)

    def resolve(
        self, asked: str | Metric, deepest: int | None = None, *, knows_ties: bool = True
    ) -> Metric:
        """Returns the metric that the library computes under a name.

        Arguments that are spelled out take precedence over those of the convention.

        Args:
            asked (str or Metric): The metric that is asked for, such as `"ndcg@10"`.
            deepest (int, optional): The largest cut-off of all metrics that are evaluated
                together, on which the NDCG of `ngcf` depends. (default: `None`, that of `asked`)
            knows_ties (bool, optional): Whether it is known which scores are equal. It is not for
                lists, of which the convention takes the order as it is. (default: `True`)

        Raises:
            ValueError: If the library does not offer the metric; the error lists those it does.

        Example:
            >>> from pyg_recmetrics import conventions
            >>> conventions.get("rectools").resolve("ndcg@10")
            ndcg(gain=binary,ideal=k)@10
            >>> conventions.get("trec_eval").resolve("mrr@10")
            mrr
            >>> conventions.get("torchmetrics").resolve("roc_auc")
            roc_auc(ties=half)
        """
        asked = parse(asked)
        if self.metrics is None:
            return asked
        if asked.name not in self.metrics:
            raise ValueError(
                f"'metrics' needs to name metrics of the convention '{self.name}', "
                f"{list(self.metrics)} (got '{asked}'); name some of these, or spell the variants "
                f"without a convention, as in 'recall(normalizer=min)@10'"
            )
        arguments = {
            name: max(deepest or 1, asked.k or 1) if value == DEEPEST else value
            for name, value in self.metrics[asked.name].items()
            if knows_ties or name != "ties"
        }
        arguments |= dict(asked.arguments)
        k = None if asked.name in self.without_cut_off else asked.k
        return Metric(asked.name, k, tuple(arguments.items()))

    def resolve_all(
        self, metrics: tuple[Metric, ...], *, knows_ties: bool = True
    ) -> dict[str, Metric]:
        """Returns what the library computes under names that are evaluated together."""
        deepest = max((metric.k for metric in metrics if metric.k), default=None)
        return {
            str(metric): self.resolve(metric, deepest, knows_ties=knows_ties) for metric in metrics
        }

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as JSON can hold them."""
        metrics = self.metrics and {name: dict(args) for name, args in self.metrics.items()}
        return arguments_of(self) | {
            "metrics": metrics,
            "without_cut_off": list(self.without_cut_off),
            "population": arguments_of(self.population),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Convention":
        """Returns what :meth:`to_dict` was called on.

        Raises:
            KeyError: If a field is missing.
        """
        return made_of(cls, {**values, "population": made_of(Population, values["population"])})


def _checked(name: str, arguments: object) -> FrozenDict[str, Value]:
    """Returns the arguments of a metric if it takes them."""
    given = FrozenDict(check_mapping(arguments, "metrics"))
    spelled_out = {key: value for key, value in given.items() if value != DEEPEST}
    # A cut-off of one, since whether there is one does not matter here.
    Metric(name, 1 if definition(name).has_cut_off else None, tuple(spelled_out.items()))
    return given


def _read(name: str, row: dict[str, Any]) -> Convention:
    """Reads what a library offers from its row in the table, in which a note has several lines."""
    population = Population(**row.pop("population", {}))
    return Convention(name, **row | {"note": " ".join(row["note"]), "population": population})


_TABLE = json.loads((files(__package__) / "conventions.json").read_text(encoding="utf-8"))

#: All conventions by their name.
CONVENTIONS: FrozenDict[str, Convention] = FrozenDict(
    {name: _read(name, row) for name, row in _TABLE.items()}
)


def get(convention: str | Convention) -> Convention:
    """Returns a convention by its name.

    Raises:
        ValueError: If there is no convention of that name; the error lists all names.

    Example:
        >>> from pyg_recmetrics import conventions
        >>> conventions.get("ranx").source
        'ranx 0.3.21'
    """
    if isinstance(convention, Convention):
        return convention
    return CONVENTIONS[check_choice(convention, "convention", CONVENTIONS)]
