"""Ranking users until means are known to a margin: which margins there can be, and the loop."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics import processes
from pyg_recmetrics.checks import (
    check_finite_number,
    check_level,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.conventions import Convention, Population
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
from pyg_recmetrics.results.estimates import Interval
from pyg_recmetrics.results.sampling import Sampling, Stopped
from pyg_recmetrics.sequential import (
    FEW_USERS,
    FIRST_BATCH,
    ConfidenceSequence,
    Forecast,
    UserOrder,
    forecast,
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

    @property
    def alpha(self) -> float:
        """The probability that the bounds on one metric are ever wrong."""
        return (1 - self.level) / len(self.sizes)


def _size(margin: object) -> float:
    size = check_finite_number(margin, "margin")
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
        if reason := _why_no_sample(metric) or (name in margins.sizes and _why_no_bounds(metric)):
            raise ValueError(f"'margin' needs means of bounded values (got '{name}', {reason})")
    if task.person is not None:
        raise ValueError(
            "'margin' needs users who are drawn one by one (got a task with the persons of its "
            "rows, who have several each)"
        )
    if not convention.population.constant_scores:
        raise ValueError(
            "'margin' needs to know before the ranking who is evaluated (got a population with "
            "'constant_scores=False', which scores decide)"
        )


def _why_no_sample(metric: Metric) -> str | None:
    """Returns why the mean over a sample is no estimate of the metric; `None` if it is one."""
    arguments = metric.all_arguments
    if metric.is_aggregate:
        return "which has one value for all users together"
    if metric.is_pooled:
        return "which is a ratio of two sums over users"
    if not metric.needs_truth:
        return "which is a mean over those who turn out to have a list, with or without truth"
    if arguments.get("users") == "hit":
        return "which is a mean over those who turn out to have a hit"
    return None


def _why_no_bounds(metric: Metric) -> str | None:
    """Returns why nothing can be guaranteed about the mean of a metric; `None` if it can."""
    low, high = metric.definition.range
    if not high < torch.inf or not low > -torch.inf:
        return "whose values have no upper bound"
    if metric.all_arguments.get("propensity", "none") != "none":
        return "whose weights have no bound"
    return None


class Frame:
    """The users of a task in random order, and who of them counts in the mean of each metric.

    This does not depend on the recommender, and is made once for all epochs.

    Args:
        task (RankingTask): The task.
        margins (Margin): The margins.
        action (str): What users without ground truth count as.
        seed (int): The seed of the order.
    """

    def __init__(
        self, task: RankingTask, margins: Margin, action: EmptyTargetAction, seed: int
    ) -> None:
        degree = task.degree
        self.order = UserOrder(task.users, degree[task.users] > 0, seed)
        self.task, self.margins, self.action, self.seed = task, margins, action, seed
        self.num_users = self.order.with_truth.numel()
        self.num_without_truth = self.order.without_truth.numel()
        check_num_without_truth(self.num_without_truth, action)
        self.most = min(self.num_users, margins.max_users or self.num_users)
        self._counted: dict[Metric, Tensor] = {}

    def counted(self, metric: Metric, population: Population, catalogue: Catalogue) -> Tensor:
        """Returns whether a metric is defined for each user, in their order: `[num_users]`.

        This is known before anything is ranked, from a ranking that could not be better.
        """
        if metric not in self._counted:
            self._counted[metric] = self._find_counted(metric, population, catalogue)
        return self._counted[metric]

    def _find_counted(self, metric: Metric, population: Population, catalogue: Catalogue) -> Tensor:
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
            catalogue=catalogue,
            num_above=above,
            num_tied=torch.zeros_like(above),
        )
        return ~measure(metric, perfect, population)[self.order.with_truth].isnan()

    def weight(self, num_counted: int) -> tuple[float, float]:
        """Returns the share of those who count and have truth, and what the others add."""
        number = self.num_in_mean(num_counted)
        return weight_of_truth(number, self.num_without_truth, self.action)

    def num_in_mean(self, num_counted: int) -> int:
        """Returns how many users a mean is over, given how many with truth count in it."""
        return num_counted + num_filled(self.num_without_truth, self.action)


def measure(metric: Metric, ranked: RankedEdges, population: Population) -> Tensor:
    """Returns the value of every user, of shape `[num_users]`; `NaN` where it is undefined."""
    return metric(ranked).masked_fill(~population.is_defined(metric, ranked), torch.nan)


class _Known:
    """What is known of the mean of one metric.

    Args:
        frame (Frame): The users.
        name (str): The name of the metric.
        metric (Metric): What is computed under it.
        population (Population): For whom it is defined.
        catalogue (Catalogue): What is known about items.
    """

    def __init__(
        self, frame: Frame, name: str, metric: Metric, population: Population, catalogue: Catalogue
    ) -> None:
        self.name, self.metric, self._population = name, metric, population
        self._order = frame.order.with_truth
        self._is_counted = frame.counted(metric, population, catalogue)
        num_counted = int(self._is_counted.sum())
        if num_counted == 0:
            raise ValueError(f"'margin' needs users for whom '{name}' is defined (got none)")
        self._share_of_order = num_counted / frame.num_users
        self._share, self._shift = frame.weight(num_counted)
        self._sequence = ConfidenceSequence(
            num_counted, frame.margins.alpha, bounds=metric.definition.range
        )

    def add(self, values: Tensor, first: int, last: int, margin: float) -> None:
        """Adds the values of users from one place in the order to another."""
        is_counted = self._is_counted[first:last]
        value = values[self._order[first:last]]
        if not torch.equal(~value.isnan(), is_counted):
            odd = int(self._order[first:last][value.isnan() == is_counted][0])
            raise ValueError(
                f"'margin' needs to know before the ranking for whom '{self.name}' is defined "
                f"(got scores or lists that decide it for user {odd})"
            )
        try:
            self._sequence.add(value[is_counted], margin / self._share)
        except ValueError as error:
            raise ValueError(f"'margin' needs bounded values of '{self.name}': {error}") from None

    def is_known(self, margin: float) -> bool:
        """Returns whether the mean is known to a margin."""
        return self._sequence.num_known > 0 and self._share * self._sequence.reach() <= margin

    def num_needed(self, margin: float) -> float:
        """Returns how many users of the order a margin is expected to take."""
        return self._sequence.forecast(margin / self._share) / self._share_of_order

    @property
    def bounds(self) -> Interval:
        """The bounds on the mean over all users."""
        low, high = self._sequence.interval()
        return Interval(self._share * low + self._shift, self._share * high + self._shift)


class Sampler:
    """Ranks users in random order, until the means are known to their margins.

    Args:
        frame (Frame): The users and the margins.
        convention (Convention): How metrics are defined.
        metrics (tuple of Metric): The metrics.
        catalogue (Catalogue): What is known about items.
        with_ties (callable): Returns a ranking in which equal scores are ranked as they should be.
    """

    def __init__(
        self,
        frame: Frame,
        convention: Convention,
        metrics: tuple[Metric, ...],
        catalogue: Catalogue,
        with_ties: Callable[[RankedEdges], RankedEdges],
    ) -> None:
        self.frame, self.convention, self.metrics = frame, convention, metrics
        self.catalogue, self.with_ties = catalogue, with_ties

    def rank(self, ranking: OpenRanking, num_first: int) -> tuple[RankedEdges, Sampling]:
        """Ranks users, and returns the ranking with what is known by it.

        Args:
            ranking (OpenRanking): What ranks.
            num_first (int): How many users to rank first, as many as it took in an earlier epoch;
                zero if there was none.
        """
        frame, margins = self.frame, self.frame.margins
        known: list[_Known] = []
        forecasts: list[Forecast] = []
        num_ranked = 0
        while True:
            num_next = self._num_next(known, num_ranked, num_first, forecasts)
            if num_next == num_ranked:
                break
            users = self._between(num_ranked, num_next)
            ranking.rank(users)
            with processes.fail_together():
                ranked = ranking.to_ranked_edges(users).with_catalogue(self.catalogue)
                ranked = self.with_ties(ranked)
                known = known or self._known(knows_ties=ranked.num_tied is not None)
                self._add(known, ranked, num_ranked, num_next)
            num_ranked = num_next
        ranked = self._ranked(ranking, num_ranked)
        return ranked, Sampling(
            num_users=frame.num_users,
            num_ranked=num_ranked,
            num_without_truth=frame.num_without_truth,
            num_counted=self._num_counted(knows_ties=ranked.num_tied is not None),
            margins=margins.sizes,
            bounds={each.name: each.bounds for each in known},
            level=margins.level,
            seed=frame.seed,
            stopped=self._stopped(known, num_ranked),
            forecasts=tuple(forecasts),
        )

    def _num_next(
        self, known: list[_Known], num_ranked: int, num_first: int, forecasts: list[Forecast]
    ) -> int:
        """Returns how many users are to be ranked after the next batch; as many if it is enough."""
        frame, sizes = self.frame, self.frame.margins.sizes
        if not known:
            is_small = frame.num_users <= FEW_USERS
            return min(num_first or (frame.num_users if is_small else FIRST_BATCH), frame.most)
        num_next = num_ranked
        if not all(each.is_known(sizes[each.name]) for each in known):
            needed = max(each.num_needed(sizes[each.name]) for each in known)
            forecasts.append(Forecast(num_ranked, math.ceil(needed)))
            num_next = min(forecast(num_ranked, needed, frame.num_users), frame.most)
        # All processes have the same values. Should they round differently, one goes on for all.
        return max(processes.collect(max(num_next, num_ranked)))

    def _known(self, *, knows_ties: bool) -> list[_Known]:
        definitions = self.convention.resolve_all(self.metrics, knows_ties=knows_ties)
        population = self.convention.population
        return [
            _Known(self.frame, name, definitions[name], population, self.catalogue)
            for name in self.frame.margins.sizes
        ]

    def _num_counted(self, *, knows_ties: bool) -> dict[str, int]:
        """Returns how many of all users count in the mean of each metric."""
        frame, population = self.frame, self.convention.population
        definitions = self.convention.resolve_all(self.metrics, knows_ties=knows_ties)
        return {
            name: frame.num_in_mean(int(frame.counted(metric, population, self.catalogue).sum()))
            for name, metric in definitions.items()
        }

    def _add(self, known: list[_Known], ranked: RankedEdges, first: int, last: int) -> None:
        sizes = self.frame.margins.sizes
        for each in known:
            values = measure(each.metric, ranked, self.convention.population)
            each.add(values, first, last, sizes[each.name])

    def _between(self, first: int, last: int) -> Tensor:
        """Returns the users whom a larger sample has in addition, sorted."""
        larger = self.frame.order.sample(last)
        return larger[~torch.isin(larger, self.frame.order.sample(first))] if first else larger

    def _stopped(self, known: list[_Known], num_ranked: int) -> Stopped:
        if num_ranked == self.frame.num_users:
            return "all"
        sizes = self.frame.margins.sizes
        return "margin" if all(each.is_known(sizes[each.name]) for each in known) else "max_users"

    def _ranked(self, ranking: OpenRanking, num_ranked: int) -> RankedEdges:
        """Returns the ranking of all users so far."""
        if num_ranked == self.frame.num_users:
            return self.with_ties(ranking.to_ranked_edges())
        ranking.warn()
        return self.with_ties(ranking.to_ranked_edges(self.frame.order.sample(num_ranked)))
