"""Which users stand for all: how many were ranked, in which order, and what that tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyg_recmetrics.metrics.registry import EmptyTargetAction, weight_of_truth
from pyg_recmetrics.results.statistics import Interval
from pyg_recmetrics.utils import FrozenDict, arguments_of, made_of, set_attributes

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
        num_counted (mapping): How many users count in the mean of each metric, ranked or not.
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
        set_attributes(
            self,
            num_counted=FrozenDict(self.num_counted),
            margins=FrozenDict(self.margins),
            bounds=FrozenDict(self.bounds),
        )

    @property
    def is_complete(self) -> bool:
        """Whether all users were ranked, so that every mean is known exactly."""
        return self.num_ranked == self.num_users

    def mean_over_all(self, name: str, mean: float, action: EmptyTargetAction) -> float:
        """Returns a mean over all users, where those without ground truth are counted exactly.

        Args:
            name (str): The name of the metric.
            mean (float): The mean over the users with ground truth who were ranked.
            action (str): What users without ground truth count as.
        """
        scale, shift = weight_of_truth(self.num_counted[name], self.num_without_truth, action)
        return scale * mean + shift

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as JSON can hold them."""
        return arguments_of(self) | {
            "num_counted": dict(self.num_counted),
            "margins": dict(self.margins),
            "bounds": {name: list(ends) for name, ends in self.bounds.items()},
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Sampling":
        """Returns what :meth:`to_dict` was called on.

        Raises:
            KeyError: If a field is missing.
        """
        bounds = {name: Interval(*ends) for name, ends in fields["bounds"].items()}
        return made_of(cls, fields | {"bounds": bounds})
