"""The users of a result: what its rows are called, how many count, and who stands for all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from torch import Tensor

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.metrics.registry import EmptyTargetAction, num_filled
from pyg_recmetrics.results.statistics import Interval
from pyg_recmetrics.utils import FrozenDict, arguments_of, made_of, set_attributes, singular


class RowNouns(NamedTuple):
    """Nouns for the rows and users of a result, in the plural.

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


@dataclass(frozen=True)
class UserCounts:
    """How many users stand behind a result.

    Attributes:
        num_evaluated (int): Users who have truth that can be retrieved.
        num_without_truth (int): Users who were to be evaluated but have none.
        num_left_out (int): Users that the convention does not evaluate.
        num_with_few_candidates (int or None): Evaluated users who have fewer candidates than the
            largest k; `None` if candidates are not known.
        num_with_list (int or None): Users who have a list; `None` if lists were not kept.

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
    num_left_out: int
    num_with_few_candidates: int | None
    num_with_list: int | None


#: What a mean is over: rows, or persons with the mean over the rows of each.
AverageOver: TypeAlias = Literal["user", "person"]


def check_means_of_persons(person: Tensor | None, metrics: Iterable[Metric]) -> None:
    """Raises if persons are not known, or a metric is no mean over rows, of which they have one."""
    if person is None:
        raise ValueError(
            "per='person' needs a task that knows the persons of its rows (got none); write "
            "RankingTask(..., person=...)"
        )
    for metric in metrics:
        if metric.is_pooled:
            raise ValueError(
                f"'metrics' needs to hold means over rows with per='person' (got '{metric}')"
            )


def check_has_rows(average_over: AverageOver, method: str) -> None:
    """Raises if a method that looks at single rows is called for means over persons."""
    if average_over == "person":
        raise ValueError(f"'{method}' needs means over rows (got per='person')")


def num_persons(person: Tensor | None) -> int:
    """Returns how many persons there are."""
    return int(person.max()) + 1 if person is not None and person.numel() else 0


def means_of_persons(values: Tensor, person: Tensor) -> Tensor:
    """Returns the mean of the rows of each person that count: `[num_persons]`.

    Args:
        values (torch.Tensor): A value for every row, of shape `[num_users]`; `NaN` for those that
            do not count.
        person (torch.Tensor): The person that each row belongs to, of shape `[num_users]`.
    """
    person = person.to(values.device)
    zeros = values.new_zeros(num_persons(person))
    sums = zeros.index_add(0, person, values.nan_to_num(0.0))
    counts = zeros.index_add(0, person, (~values.isnan()).to(values.dtype))
    return sums / counts


#: Why no more users were ranked: every mean was known to its margin, these were all users, or as
#: many as there may be.
Stopped: TypeAlias = Literal["margin", "all", "max_users"]


@dataclass(frozen=True)
class Sampling:
    """How users were drawn who stand for all users of a task.

    They were ranked in a random order that was drawn before. The bounds are about the mean over
    *all users of the task*, and hold together, whenever the ranking stopped. Confidence intervals
    are about other users than those of the task.

    Attributes:
        num_users (int): How many users have ground truth.
        num_ranked (int): How many of them were ranked.
        num_without_truth (int): How many users have no ground truth, who are counted exactly.
        num_counted (mapping): How many users count in the mean of each metric, ranked or not,
            judging by those who were ranked.
        margins (mapping): The margin to which the mean of each metric was to be known.
        bounds (mapping): The bounds on the mean of each of these metrics.
        level (float): The level of confidence of all bounds together.
        seed (int): The seed of the order.
        stopped (str): Why no more users were ranked: `"margin"`, `"all"` or `"max_users"`.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> users = torch.arange(20_000)
        >>> task = RankingTask(torch.stack([users, users % 4]), num_users=20_000, num_items=4)
        >>> result = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "recall@1", margin=0.05)
        >>> result.sampling.num_ranked < 20_000, result.sampling.seed
        (True, 0)
    """

    num_users: int
    num_ranked: int
    num_without_truth: int
    num_counted: Mapping[str, int]
    margins: Mapping[str, float]
    bounds: Mapping[str, Interval]
    level: float
    seed: int
    stopped: Stopped

    def __post_init__(self) -> None:
        for name in ("num_counted", "margins", "bounds"):
            set_attributes(self, **{name: FrozenDict(getattr(self, name))})

    @property
    def is_complete(self) -> bool:
        """Whether all users were ranked, so that every mean is known exactly."""
        return self.num_ranked == self.num_users

    @property
    def has_one_margin(self) -> bool:
        """Whether the mean of every metric was to be known to the same margin."""
        return len({*self.margins.values()}) == 1 and len(self.margins) == len(self.num_counted)

    @property
    def num_with_bounds(self) -> int | None:
        """How many users the means with bounds are over; `None` if they are over different ones."""
        numbers = {self.num_counted[name] for name in self.bounds}
        has_one = len(numbers) == 1 and max(numbers) >= self.num_users
        return numbers.pop() if has_one else None

    def mean_over_all(self, name: str, mean: float, action: EmptyTargetAction) -> float:
        """Returns a mean over all users, where those without ground truth are counted exactly.

        Args:
            name (str): The name of the metric.
            mean (float): The mean over the users with ground truth who were ranked.
            action (str): What users without ground truth count as.
        """
        num_others = num_filled(self.num_without_truth, action)
        if num_others == 0:
            return mean
        num_counted = self.num_counted[name]
        share = (num_counted - num_others) / num_counted
        return share * mean + (1 - share if action == "pos" else 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields."""
        return arguments_of(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Sampling":
        """Returns what :meth:`to_dict` was called on.

        Raises:
            KeyError: If a field is missing.
        """
        bounds = {name: Interval(*ends) for name, ends in fields["bounds"].items()}
        return made_of(cls, fields | {"bounds": bounds})
