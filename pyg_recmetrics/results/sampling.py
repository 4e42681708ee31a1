"""Which users stand for all: how many were ranked, in which order, and what that tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyg_recmetrics.frozen import FrozenDict, arguments_of, made_of, settle
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction, weight_of_truth
from pyg_recmetrics.results.estimates import Interval
from pyg_recmetrics.results.recipe import USERS, Nouns
from pyg_recmetrics.sequential import FEW_USERS, Forecast
from pyg_recmetrics.tables import format_level

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
        forecasts (tuple): How many users were expected to be needed at each look.

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
    forecasts: tuple[Forecast, ...]

    def __post_init__(self) -> None:
        settle(
            self,
            num_counted=FrozenDict(self.num_counted),
            margins=FrozenDict(self.margins),
            bounds=FrozenDict(self.bounds),
        )

    @property
    def is_complete(self) -> bool:
        """Whether all users were ranked, so that every mean is known exactly."""
        return self.num_ranked == self.num_users

    @property
    def num_needed(self) -> int | None:
        """How many users the margins were last expected to take; `None` if that was not asked."""
        return self.forecasts[-1].num_needed if self.forecasts else None

    def note_on_bounds(self, nouns: Nouns = USERS) -> str:
        """Returns the line below a table that says what its intervals are."""
        together = " for all metrics together" if len(self.bounds) > 1 else ""
        return (
            f"±: the mean over {self._who_counts(nouns)} is within it, with "
            f"{format_level(self.level)} confidence{together}"
        )

    def note(self, nouns: Nouns = USERS) -> str:
        """Returns the line below a table that says why no more users were ranked."""
        wanted = self._wanted()
        # Those without ground truth are among the users of a mean if they count as zero or one.
        has_more = max(self.num_counted.values(), default=0) > self.num_users
        users = f"{nouns.users} with ground truth" if has_more else nouns.users
        ranked = (
            f"{self.num_ranked:,} of all {self.num_users:,} {users} were ranked in random "
            f"order (seed {self.seed}), until"
        )
        if self.stopped == "margin":
            return f"{ranked} {wanted}"
        if self.stopped == "all":
            return f"all {nouns.users} were ranked, {self._why_all(wanted)}"
        takes = "more" if self.num_needed is None else f"about {self.num_needed:,}"
        return f"{ranked} there were as many as 'max_users'; it takes {takes} until {wanted}"

    def _why_all(self, wanted: str) -> str:
        """Returns why all were ranked, with nothing said of a number that was not forecast."""
        if self.num_needed is not None:
            return f"as it takes about {self.num_needed:,} until {wanted}"
        return "as there are few" if self.num_users <= FEW_USERS else "as in an earlier call"

    def describe(self, nouns: Nouns = USERS) -> str:
        """Returns which users were ranked, in words for a recipe."""
        if self.is_complete:
            return f"all {self.num_users:,} {nouns.users} with ground truth"
        bounds = ", ".join(
            f"{name} from {low:.4f} to {high:.4f}" for name, (low, high) in self.bounds.items()
        )
        until = "" if self.stopped == "margin" else " or 'max_users' were ranked"
        return (
            f"{self.num_ranked:,} of {self.num_users:,} {nouns.users} with ground truth, in random "
            f"order (seed {self.seed}), until {self._wanted()}{until}, by a betting confidence "
            f"sequence without replacement of level {self.level:g} for the mean over "
            f"{self._who_counts(nouns)} ({bounds})"
        )

    def weighted(self, name: str, mean: float, action: EmptyTargetAction) -> float:
        """Returns a mean over all users, of whom those without ground truth are counted exactly.

        Args:
            name (str): The name of the metric.
            mean (float): The mean over the users with ground truth who were ranked.
            action (str): What users without ground truth count as.
        """
        share, shift = weight_of_truth(self.num_counted[name], self.num_without_truth, action)
        return share * mean + shift

    def _who_counts(self, nouns: Nouns) -> str:
        """Returns whom the means with bounds are over."""
        numbers = {self.num_counted[name] for name in self.bounds}
        if len(numbers) == 1:
            return f"all {numbers.pop():,} {nouns.users}"
        return f"all {nouns.users} for whom it is defined"

    def _wanted(self) -> str:
        margins = list(self.margins.values())
        if len(margins) == 1:
            return f"the mean of {next(iter(self.margins))} is known to ± {margins[0]:g}"
        if len(set(margins)) == 1:
            return f"every mean is known to ± {margins[0]:g}"
        each = ", ".join(f"{name} ± {margin:g}" for name, margin in self.margins.items())
        return f"every mean is known to its margin ({each})"

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as JSON can hold them."""
        return arguments_of(self) | {
            "num_counted": dict(self.num_counted),
            "margins": dict(self.margins),
            "bounds": {name: list(bounds) for name, bounds in self.bounds.items()},
            "forecasts": [list(forecast) for forecast in self.forecasts],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Sampling":
        """Returns what :meth:`to_dict` was called on.

        Raises:
            KeyError: If a field is missing.
        """
        parts = {
            "bounds": {name: Interval(*ends) for name, ends in fields["bounds"].items()},
            "forecasts": tuple(Forecast(*forecast) for forecast in fields["forecasts"]),
        }
        return made_of(cls, {**fields, **parts})
