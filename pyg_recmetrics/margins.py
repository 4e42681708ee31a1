"""Ranking users in random order until every mean is known to a margin."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import torch
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import index_to_mask

from pyg_recmetrics.checks import (
    check_level,
    check_natural_number,
    check_number,
    check_positive_integer,
)
from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.metrics.registry import (
    EmptyTargetAction,
    check_num_without_truth,
    num_filled,
    weight_of_truth,
)
from pyg_recmetrics.ranked_edges import RankedEdges, select_users
from pyg_recmetrics.ranking.ranking import OpenRanking
from pyg_recmetrics.results.counts import Sampling, Stopped
from pyg_recmetrics.results.statistics import Interval
from pyg_recmetrics.sums import exact_mean
from pyg_recmetrics.task import Catalogue, RankingTask
from pyg_recmetrics.utils import FrozenDict, set_attributes

#: How many users are ranked before anything can be said.
FIRST_BATCH = 512

#: As few users as this are all ranked at once.
FEW_USERS = 2 * FIRST_BATCH

#: A batch has at least this part of the users before it, since each has a cost of its own.
_SMALLEST_BATCH = 1 / 16


def needed_users(
    variance: float,
    margin: float,
    alpha: float,
    num_users: float,
    largest_stake: float = math.inf,
) -> float:
    r"""Returns how many users a margin takes, :math:`2 \ln(2 / \alpha) \sigma^2 / margin^2`.

    Where hits are rare, a bettor would stake more than the largest stake :math:`\lambda`, and needs
    :math:`\ln(2 / \alpha) / (\lambda \, margin - \lambda^2 \sigma^2 / 2)` users, which are more. Of
    a finite population, this is the number without replacement.

    Args:
        variance (float): The variance of the values.
        margin (float): The margin.
        alpha (float): The probability that the interval is ever wrong.
        num_users (float): How many users there are, which may be infinite.
        largest_stake (float): The most that may be staked on a difference of one.
    """
    if margin > largest_stake * variance:
        growth = largest_stake * (margin - largest_stake * variance / 2)
        threshold = math.log(2 / alpha)
        return threshold / (growth + threshold / num_users)
    spread = 2 * math.log(2 / alpha) * variance
    # Divided by this sum, since the square of a tiny margin is zero.
    return spread / (margin**2 + spread / num_users)


def num_to_rank(num_ranked: int, num_needed: float, num_users: int) -> int:
    """Returns how many users are to be ranked after the next batch.

    These are all users where half of them would not be enough: the mean is then exact, and stopping
    would save little. Otherwise, they are as many as are needed, and at most twice as many as
    before, as the variance may have been misjudged.

    Args:
        num_ranked (int): How many have been ranked.
        num_needed (float): How many will be needed.
        num_users (int): How many there are.
    """
    if num_needed > num_users / 2:
        return num_users
    least = num_ranked + math.ceil(_SMALLEST_BATCH * num_ranked)
    return min(max(math.ceil(num_needed), least), 2 * num_ranked, num_users)


# Bounds on the mean of a finite population, valid however often one looks at them.
#
# Users come in random order, without replacement. A bettor against the claim "the mean is
# :math:`m`" stakes a part of its money on the next value being above (or below) the mean of those
# who are left,
#
# .. math::
#     m_t = \frac{N m - \sum_{i < t} y_i}{N - t + 1}
#
# If the claim is true, every bet is fair, and the chance that the money ever grows to :math:`2 /
# \alpha` times what it was is at most :math:`\alpha / 2`. A claim against which it has grown so far
# is refuted for good. The stake is `margin / variance so far`, which refutes what is further away
# than the margin with the fewest users. It looks at the past alone, so bets stay fair.
#
# Sources: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting"
# (2024), for betting without replacement; Ville, "Étude critique de la notion de collectif" (1939),
# for the bound on the money.

#: A bettor may lose at most this part of its money at once.
_MAX_LOSS = 0.75

#: The mean of those who are left is kept away from both ends, where a bet would be infinite.
_SMALLEST = 1e-9

#: The interval is found to this part of the margin, or else to this part of the range: closer, its
#: ends could not be told from what rounding adds.
_PRECISION, _FINEST = 1e-4, 1e-12

#: What the variance is taken for before the first value, in units of the squared range: the largest
#: there is. It counts as much as one value, so that rare hits do not look like none.
_FIRST_VARIANCE = 0.25


class ConfidenceSequence:
    r"""The interval of the mean of `num_users` values, of which the first ones are known.

    Args:
        num_users (int): How many values there are, :math:`N`.
        alpha (float): The probability that the interval is ever wrong.
        margin (float): The margin that is looked for.
        limits (tuple, optional): The smallest and the largest possible value.
            (default: `(0.0, 1.0)`)

    Example:
        >>> import torch
        >>> from pyg_recmetrics.margins import ConfidenceSequence
        >>> values = torch.rand(10_000, generator=torch.Generator().manual_seed(0))
        >>> sequence = ConfidenceSequence(num_users=10_000, alpha=0.05, margin=0.03)
        >>> sequence.add(values[:1000])
        >>> low, high = sequence.interval()
        >>> low < values.mean() < high, high - low < 0.06
        (tensor(True), True)
    """

    def __init__(
        self,
        num_users: int,
        alpha: float,
        margin: float,
        limits: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.num_users, self.alpha, self.margin = num_users, alpha, margin
        self._threshold = math.log(2 / alpha)
        self._low, self._range = limits[0], limits[1] - limits[0]
        self._margin = margin / self._range
        self._values = torch.zeros(0, dtype=torch.double, device="cpu")

    @property
    def num_known(self) -> int:
        """How many values are known."""
        return self._values.numel()

    @property
    def mean(self) -> float:
        """The mean of the known values; `NaN` if there are none."""
        if self.num_known == self.num_users:
            # To the last bit, the mean that a result of all of them has.
            return self._unscaled(exact_mean(self._values))
        return self._unscaled(float(self._values.mean()))

    @property
    def variance(self) -> float:
        """The variance of the known values, shrunk as if one more had the prior variance."""
        return float(self._variances()[-1]) * self._range**2

    def add(self, values: Tensor) -> None:
        """Adds the values of the next users, in their random order.

        Args:
            values (torch.Tensor): The values, of shape `[num_added]`.

        Raises:
            ValueError: If a value is outside the limits, for which nothing would be guaranteed.
        """
        scaled = (values.to("cpu", torch.double) - self._low) / self._range
        # What is outside by rounding alone is at the end. `NaN` is never inside.
        is_inside = (scaled >= -_SMALLEST) & (scaled <= 1 + _SMALLEST)
        if not bool(is_inside.all()):
            wrong = float(values.cpu()[~is_inside][0])
            high = self._low + self._range
            raise ValueError(
                f"a value needs to be between {self._low:g} and {high:g} (got {wrong:g})"
            )
        self._values = torch.cat([self._values, scaled.clamp(0, 1)])
        self.__dict__.pop("_past", None)

    def interval(self) -> tuple[float, float]:
        """Returns the ends of the interval, which holds the mean of the known values."""
        if self.num_known == 0:
            return self._low, self._low + self._range
        # Whatever the values of those who are left may be.
        total, num_left = float(self._values.sum()), self.num_users - self.num_known
        mean = total / self.num_known
        if num_left == 0:
            return self.mean, self.mean
        low = self._end(total / self.num_users, mean, 1)
        high = self._end((total + num_left) / self.num_users, mean, -1)
        return self._unscaled(low), self._unscaled(high)

    def reach(self) -> float:
        """Returns how far the interval reaches from the mean of the known values at most.

        This is `NaN`, which is within no margin, if none is known.
        """
        low, high = self.interval()
        return max(self.mean - low, high - self.mean)

    def num_needed(self) -> float:
        """Returns how many users the margin will take, going by the variance so far."""
        # Of those who bet on more and on less, the one who may stake less takes longer.
        largest = _MAX_LOSS / max(self.mean - self._low, self._low + self._range - self.mean)
        return needed_users(self.variance, self.margin, self.alpha, self.num_users, largest)

    def _end(self, impossible: float, mean: float, sign: int) -> float:
        """Returns an end of the interval: what is refuted, close to what is not, by bisection."""
        refuted, kept = impossible, mean
        if self._excess(refuted, sign) <= 0:
            return refuted
        precision = max(_PRECISION * self._margin, _FINEST)
        while abs(kept - refuted) > precision:
            claim = (refuted + kept) / 2
            if self._excess(claim, sign) > 0:
                refuted = claim
            else:
                kept = claim
        return refuted

    def _excess(self, mean: float, sign: int) -> float:
        """Returns how far the log of the most that a bettor ever had is above what refutes."""
        return float(self._log_money(mean, sign).max()) - self._threshold

    def _log_money(self, mean: float, sign: int) -> Tensor:
        """Returns what a bettor has after each value, as a multiple of what it started with."""
        before, num_left, wanted = self._past
        mean_left = (self.num_users * mean - before) / num_left
        mean_left = mean_left.clamp(_SMALLEST, 1 - _SMALLEST)
        largest = _MAX_LOSS / (mean_left if sign > 0 else 1 - mean_left)
        return torch.log1p(sign * wanted.minimum(largest) * (self._values - mean_left)).cumsum(0)

    @cached_property
    def _past(self) -> tuple[Tensor, Tensor, Tensor]:
        """The sum before each value, how many were left, and the stake.

        None of them depends on the claim.
        """
        values = self._values
        num_left = self.num_users - torch.arange(values.numel(), device="cpu")
        stakes = values.new_tensor(self._margin) / self._variances()[:-1]
        return values.cumsum(0) - values, num_left, stakes

    def _variances(self) -> Tensor:
        """Returns the variance before the first value, and after each: `[num_known + 1]`."""
        values = self._values
        number = torch.arange(2, values.numel() + 2, dtype=torch.double, device="cpu")
        mean = (0.5 + values.cumsum(0)) / number
        squares = _FIRST_VARIANCE + (values - mean).square().cumsum(0)
        return torch.cat([squares.new_tensor([_FIRST_VARIANCE]), squares / number])

    def _unscaled(self, value: float) -> float:
        return self._low + self._range * value


class UserOrder:
    """The users with ground truth in random order, and those without it beside them.

    The order depends on the seed and on who the users are, and on nothing else: neither on the
    device nor on the number of processes. Every prefix of it is a random sample.

    Args:
        users (torch.Tensor): The ids of the users, sorted, of shape `[num_users]`.
        has_truth (torch.Tensor): Which of them have ground truth, of shape `[num_users]`.
        seed (int): The seed of the order.

    Attributes:
        with_truth (torch.Tensor): The ids of those with ground truth, in their order.
        without_truth (torch.Tensor): The ids of the others, in an order of their own.

    Example:
        >>> import torch
        >>> from pyg_recmetrics.margins import UserOrder
        >>> order = UserOrder(torch.arange(6), torch.tensor([1, 1, 0, 1, 0, 1]).bool(), seed=0)
        >>> order.with_truth, order.sample(2)
        (tensor([0, 1, 5, 3]), tensor([0, 1, 2]))
    """

    def __init__(self, users: Tensor, has_truth: Tensor, seed: int) -> None:
        generator = torch.Generator("cpu").manual_seed(seed)
        self.with_truth, self.without_truth = (
            _shuffled(part, generator) for part in (users[has_truth], users[~has_truth])
        )

    def sample(self, num_ranked: int) -> Tensor:
        """Returns the first users with ground truth, and as large a share of the others, sorted."""
        num_users = self.with_truth.numel()
        num_without = round(num_ranked / num_users * self.without_truth.numel())
        chosen = [self.with_truth[:num_ranked], self.without_truth[:num_without]]
        return torch.cat(chosen).sort().values


def _shuffled(users: Tensor, generator: torch.Generator) -> Tensor:
    order = torch.randperm(users.numel(), generator=generator, device="cpu")
    return users[order.to(users.device)]


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
            set_attributes(self, max_users=check_positive_integer(self.max_users, "max_users"))
        level, seed = check_level(self.level), check_natural_number(self.seed, "seed")
        set_attributes(self, size=size, level=level, seed=seed)

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


class UserSample:
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
        user_sample (UserSample): The users.
    """

    def __init__(self, name: str, metric: Metric, user_sample: UserSample) -> None:
        self.name, self._metric, self._user_sample = name, metric, user_sample
        self._is_counted = user_sample.counted(metric)
        num_counted = int(self._is_counted.sum())
        if num_counted == 0:
            raise ValueError(f"a margin needs users with a value of '{name}' (got none)")
        self._rate = num_counted / user_sample.num_users
        num_in_mean, margins = user_sample.num_in_mean(metric), user_sample.margins
        self._scale, self._shift = weight_of_truth(
            num_in_mean, user_sample.num_without_truth, user_sample.action
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
        users, is_counted = (
            self._user_sample.order.with_truth[first:last],
            self._is_counted[first:last],
        )
        values = self._user_sample.measure(self._metric, ranked)[users]
        is_odd = values.isnan() == is_counted
        if bool(is_odd.any()):
            raise ValueError(
                f"a margin needs to know before the ranking which users have a value of "
                f"'{self.name}' (got scores or lists that decide it for user "
                f"{int(users[is_odd][0])})"
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
    user_sample: UserSample,
    ranking: OpenRanking,
    with_ties: Callable[[RankedEdges], RankedEdges],
) -> tuple[RankedEdges, Sampling]:
    """Ranks users until the means are known to their margins.

    Args:
        user_sample (UserSample): The users.
        ranking (OpenRanking): A recommender that is prepared to rank.
        with_ties (callable): Returns a ranking in which equal scores are ranked as they should be.

    Returns:
        The ranking of these users, and of as many without truth as they stand for; and what they
        tell about all users.
    """
    margins, knows_ties = user_sample.margins, ranking.recommender.has_scores
    definitions = user_sample.convention.resolve_all(user_sample.metrics, knows_ties=knows_ties)
    means = [SampledMean(name, definitions[name], user_sample) for name in margins.sizes]
    first = user_sample.num_users if user_sample.num_users <= FEW_USERS else FIRST_BATCH
    num_ranked, num_next = 0, min(first, user_sample.most)
    while num_next > num_ranked:
        users = user_sample.order.with_truth[num_ranked:num_next].sort().values
        ranking.rank(users)
        ranked = with_ties(_ranked_of(users, ranking, user_sample))
        for mean in means:
            mean.add(ranked, num_ranked, num_next)
        num_ranked = num_next
        num_next = _num_next(means, num_ranked, user_sample)
    stopped: Stopped = "margin" if all(mean.is_known for mean in means) else "max_users"
    sampling = Sampling(
        num_users=user_sample.num_users,
        num_ranked=num_ranked,
        num_without_truth=user_sample.num_without_truth,
        num_counted={name: user_sample.num_in_mean(metric) for name, metric in definitions.items()},
        margins=margins.sizes,
        bounds={mean.name: mean.bounds for mean in means},
        level=margins.level,
        seed=margins.seed,
        stopped="all" if num_ranked == user_sample.num_users else stopped,
    )
    return with_ties(_ranked_of_sample(user_sample, ranking, num_ranked)), sampling


def _num_next(means: list[SampledMean], num_ranked: int, user_sample: UserSample) -> int:
    """Returns how many users are to be ranked after the next batch; as many if it is enough."""
    if all(mean.is_known for mean in means):
        return num_ranked
    needed = max(mean.num_needed for mean in means)
    return min(num_to_rank(num_ranked, needed, user_sample.num_users), user_sample.most)


def _ranked_of_sample(
    user_sample: UserSample, ranking: OpenRanking, num_ranked: int
) -> RankedEdges:
    """Returns the ranking of a sample, also of those without truth, whose lists may be kept."""
    users = user_sample.order.sample(num_ranked)
    ranking.rank(users[user_sample.task.degree[users] == 0])
    if num_ranked == user_sample.num_users:
        return ranking.to_ranked_edges(user_sample.catalogue)
    return _ranked_of(users, ranking, user_sample)


def _ranked_of(users: Tensor, ranking: OpenRanking, user_sample: UserSample) -> RankedEdges:
    """Returns the ranking of some users."""
    is_one = index_to_mask(users, user_sample.task.num_users)
    return select_users(ranking.to_ranked_edges(user_sample.catalogue), is_one)
