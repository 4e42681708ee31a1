"""Ranking users in random order until every mean is known to a margin."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.checks import (
    check_level,
    check_natural_number,
    check_number,
    check_positive_integer,
)
from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.frozen import FrozenDict, settle
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.metrics.empty_target_action import (
    EmptyTargetAction,
    check_num_without_truth,
    num_filled,
    weight_of_truth,
)
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.ranking.ranking import OpenRanking
from pyg_recmetrics.results.counts import Sampling, Stopped
from pyg_recmetrics.results.statistics import Interval
from pyg_recmetrics.sequential import (
    FEW_USERS,
    FIRST_BATCH,
    ConfidenceSequence,
    UserOrder,
    num_to_rank,
)
from pyg_recmetrics.task import Catalogue, RankingTask


@dataclass(frozen=True)
class Margin:
    """How exactly means are to be known: users are ranked in random order until they are.

    Args:
        size (float or dict): The margin of every mean, or those of some metrics, as in
            `{"ndcg@20": 0.002}`.
        level (float, optional): The level of confidence with which all means are known to their
            margins together. (default: `0.95`)
        max_users (int, optional): How many users to rank at most. (default: `None`)
        seed (int, optional): The seed of the order of users. (default: `0`)

    Raises:
        TypeError: If `size` is neither a number nor a mapping.
        ValueError: If a margin is not positive, a metric is named twice or does not exist, `level`
            is not between 0 and 1, `max_users` is not a positive integer, or `seed` is negative.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Margin, RankingTask, evaluate
        >>> users = torch.arange(20_000)
        >>> task = RankingTask(torch.stack([users, users % 4]), num_users=20_000, num_items=4)
        >>> margin = Margin(0.05, level=0.99, max_users=10_000)
        >>> result = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "recall@1", margin=margin)
        >>> result.sampling.level, result.sampling.stopped
        (0.99, 'margin')
    """

    size: float | Mapping[str, float]
    level: float = 0.95
    max_users: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        size: float | Mapping[str, float]
        if isinstance(self.size, Mapping):
            size = FrozenDict({str(parse(name)): _size(x) for name, x in self.size.items()})
            if not 0 < len(size) == len(self.size):
                raise ValueError(f"'margin' needs to name each metric once (got {list(self.size)})")
        else:
            size = _size(self.size)
        if self.max_users is not None:
            settle(self, max_users=check_positive_integer(self.max_users, "max_users"))
        level, seed = check_level(self.level), check_natural_number(self.seed, "seed")
        settle(self, size=size, level=level, seed=seed)

    @property
    def sizes(self) -> Mapping[str, float]:
        """The margin of each metric, if there is one for each."""
        return cast("Mapping[str, float]", self.size)


def _size(margin: object) -> float:
    size = check_number(margin, "margin", "a mapping of metrics to numbers")
    if size <= 0:
        raise ValueError(f"'margin' needs to be a positive number (got {margin!r})")
    return size


def read_margin(margin: float | Mapping[str, float] | Margin, metrics: Iterable[Metric]) -> Margin:
    """Returns a margin with a size for each metric that has one.

    Raises:
        TypeError: If it is neither a margin, a number nor a mapping.
        ValueError: If it names a metric that is not among the given ones.
    """
    read = margin if isinstance(margin, Margin) else Margin(margin)
    names = [str(metric) for metric in metrics]
    if not isinstance(read.size, Mapping):
        return replace(read, size=dict.fromkeys(names, read.size))
    if unknown := sorted(read.size.keys() - set(names)):
        raise ValueError(
            f"'margin' needs to name metrics that are evaluated, of {names} (got {unknown})"
        )
    return read


def check_can_sample(
    margins: Margin, definitions: Mapping[str, Metric], task: RankingTask, convention: Convention
) -> None:
    """Raises if a sample of users does not tell the means of a metric, and says why.

    Args:
        margins (Margin): The margins.
        definitions (mapping): What is computed under the name of each metric.
        task (RankingTask): The task.
        convention (Convention): Who is evaluated, and how ties are ranked.
    """
    for name, metric in definitions.items():
        if reason := _why_not(metric, needs_bounds=name in margins.sizes):
            raise ValueError(f"a margin needs means of bounded values (got '{name}', {reason})")
    if task.person is not None:
        raise ValueError(
            "a margin needs users who are drawn one by one (got a task with the persons of its "
            "rows, who have several each)"
        )
    if not convention.population.constant_scores:
        raise ValueError(
            "a margin needs to know before the ranking who is evaluated (got a population with "
            "'constant_scores=False', which scores decide)"
        )


def _why_not(metric: Metric, *, needs_bounds: bool) -> str | None:
    """Returns why a sample tells no mean of a metric, or no bounds on it; `None` if it does."""
    arguments, limits = metric.all_arguments, metric.definition.range
    reasons = {
        "which has one value for all users together": metric.is_aggregate,
        "which is a ratio of two sums over users": metric.is_pooled,
        "which is a mean over those who turn out to have a list, with or without truth": (
            not metric.needs_truth
        ),
        "which is a mean over those who turn out to have a hit": arguments.get("users") == "hit",
        "whose values have no upper bound": needs_bounds and torch.inf in map(abs, limits),
    }
    return next((reason for reason, is_so in reasons.items() if is_so), None)


class Frame:
    """The users of a task in random order, and who of them counts in the mean of each metric.

    This does not depend on the recommender, and is made once for all epochs.

    Args:
        task (RankingTask): The task.
        metrics (tuple of Metric): The metrics.
        margins (Margin): The margins.
        convention (Convention): How metrics are defined.
        catalogue (Catalogue): What is known about items.
        action (str): What users without ground truth count as.
    """

    def __init__(
        self,
        task: RankingTask,
        metrics: tuple[Metric, ...],
        margins: Margin,
        convention: Convention,
        catalogue: Catalogue,
        action: EmptyTargetAction,
    ) -> None:
        check_can_sample(margins, convention.resolve_all(metrics), task, convention)
        self.task, self.metrics, self.margins, self.convention = task, metrics, margins, convention
        self.catalogue, self.action = catalogue, action
        self.order = UserOrder(task.users, task.degree[task.users] > 0, margins.seed)
        self.num_users = self.order.with_truth.numel()
        self.num_without_truth = self.order.without_truth.numel()
        if action == "error":
            check_num_without_truth(self.num_without_truth)
        self.most = min(self.num_users, margins.max_users or self.num_users)
        self._counted: dict[Metric, Tensor] = {}

    def counted(self, metric: Metric) -> Tensor:
        """Returns whether a metric is defined for each user, in their order: `[num_users]`.

        This is known before anything is ranked, from a ranking that could not be better.
        """
        if metric not in self._counted:
            self._counted[metric] = self._find_counted(metric)
        return self._counted[metric]

    def num_in_mean(self, metric: Metric) -> int:
        """Returns how many of all users the mean of a metric is over."""
        return int(self.counted(metric).sum()) + num_filled(self.num_without_truth, self.action)

    def measure(self, metric: Metric, ranked: RankedEdges) -> Tensor:
        """Returns the value of every user, `[task.num_users]`; `NaN` where it is undefined."""
        is_defined = self.convention.population.is_defined(metric, ranked)
        return metric(ranked).masked_fill(~is_defined, torch.nan)

    def _find_counted(self, metric: Metric) -> Tensor:
        if "items" in metric.needs:
            return torch.ones_like(self.order.with_truth, dtype=torch.bool)
        user = self.task.truth[0]
        ptr = index2ptr(user, self.task.num_users)
        # The edges of a task are sorted by user.
        above = torch.arange(user.numel(), device=user.device) - ptr[user]
        perfect = RankedEdges(
            self.task.truth,
            above + 1,
            ptr,
            weight=self.task.weight,
            num_candidates=self.task.num_candidates,
            catalogue=self.catalogue,
            num_above=above,
            num_tied=torch.zeros_like(above),
            is_candidate=self.task.is_candidate,
        )
        return ~self.measure(metric, perfect)[self.order.with_truth].isnan()


class SampledMean:
    """Confidence sequence of one metric: bounds of its mean over all users.

    Args:
        name (str): The name of the metric.
        metric (Metric): What is computed under this name.
        frame (Frame): The users.
    """

    def __init__(self, name: str, metric: Metric, frame: Frame) -> None:
        self.name, self._metric, self._frame = name, metric, frame
        self._is_counted = frame.counted(metric)
        num_counted = int(self._is_counted.sum())
        if num_counted == 0:
            raise ValueError(f"a margin needs users for whom '{name}' is defined (got none)")
        self._rate = num_counted / frame.num_users
        num_in_mean, margins = frame.num_in_mean(metric), frame.margins
        self._scale, self._shift = weight_of_truth(
            num_in_mean, frame.num_without_truth, frame.action
        )
        self._margin = margins.sizes[name]
        self._sequence = ConfidenceSequence(
            num_counted,
            (1 - margins.level) / len(margins.sizes),
            self._margin / self._scale,
            metric.definition.range,
        )

    def add(self, ranked: RankedEdges, first: int, last: int) -> None:
        """Adds the values of the users between two places of their order, who have been ranked."""
        users, is_counted = self._frame.order.with_truth[first:last], self._is_counted[first:last]
        values = self._frame.measure(self._metric, ranked)[users]
        is_odd = values.isnan() == is_counted
        if bool(is_odd.any()):
            raise ValueError(
                f"a margin needs to know before the ranking for whom '{self.name}' is defined (got "
                f"scores or lists that decide it for user {int(users[is_odd][0])})"
            )
        try:
            self._sequence.add(values[is_counted])
        except ValueError as error:
            raise ValueError(f"a margin needs bounded values of '{self.name}': {error}") from None

    @property
    def bounds(self) -> Interval:
        """The bounds on the mean over all users."""
        low, high = self._sequence.interval()
        return Interval(self._scale * low + self._shift, self._scale * high + self._shift)

    @property
    def is_known(self) -> bool:
        """Whether the mean is known to its margin."""
        return self._scale * self._sequence.reach() <= self._margin

    @property
    def num_needed(self) -> float:
        """How many users the margin is expected to take."""
        return self._sequence.num_needed() / self._rate


def sample(
    frame: Frame,
    ranking: OpenRanking,
    with_ties: Callable[[RankedEdges], RankedEdges],
) -> tuple[RankedEdges, Sampling]:
    """Ranks users until the means are known to their margins.

    Args:
        frame (Frame): The users.
        ranking (OpenRanking): A recommender that is prepared to rank.
        with_ties (callable): Returns a ranking in which equal scores are ranked as they should be.

    Returns:
        The ranking of these users, and of as many without truth as they stand for; and what they
        tell about all users.
    """
    margins, knows_ties = frame.margins, ranking.recommender.has_scores
    definitions = frame.convention.resolve_all(frame.metrics, knows_ties=knows_ties)
    means = [SampledMean(name, definitions[name], frame) for name in margins.sizes]
    first = frame.num_users if frame.num_users <= FEW_USERS else FIRST_BATCH
    num_ranked, num_next = 0, min(first, frame.most)
    while num_next > num_ranked:
        users = frame.order.with_truth[num_ranked:num_next].sort().values
        ranking.rank(users)
        ranked = with_ties(ranking.to_ranked_edges(users)).with_catalogue(frame.catalogue)
        for mean in means:
            mean.add(ranked, num_ranked, num_next)
        num_ranked = num_next
        num_next = _num_next(means, num_ranked, frame)
    stopped: Stopped = "margin" if all(mean.is_known for mean in means) else "max_users"
    sampling = Sampling(
        num_users=frame.num_users,
        num_ranked=num_ranked,
        num_without_truth=frame.num_without_truth,
        num_counted={name: frame.num_in_mean(metric) for name, metric in definitions.items()},
        margins=margins.sizes,
        bounds={mean.name: mean.bounds for mean in means},
        level=margins.level,
        seed=margins.seed,
        stopped="all" if num_ranked == frame.num_users else stopped,
    )
    return with_ties(_ranked_of_sample(frame, ranking, num_ranked)), sampling


def _num_next(means: list[SampledMean], num_ranked: int, frame: Frame) -> int:
    """Returns how many users are to be ranked after the next batch; as many if it is enough."""
    if all(mean.is_known for mean in means):
        return num_ranked
    needed = max(mean.num_needed for mean in means)
    return min(num_to_rank(num_ranked, needed, frame.num_users), frame.most)


def _ranked_of_sample(frame: Frame, ranking: OpenRanking, num_ranked: int) -> RankedEdges:
    """Returns the ranking of a sample, also of those without truth, whose lists may be kept."""
    users = frame.order.sample(num_ranked)
    ranking.rank(users[frame.task.degree[users] == 0])
    if num_ranked == frame.num_users:
        return ranking.to_ranked_edges()
    ranking.warn()
    return ranking.to_ranked_edges(users)
