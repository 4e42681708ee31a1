"""Ranking users in random order until every mean is known to a margin."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
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
# A user without a value counts as one who has the claimed mean, since the differences from it then
# still add up to zero over all users. Values that are known beforehand are part of what has come.
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
    r"""The interval of the mean over users, the first of which are known.

    Args:
        values (torch.Tensor): The values of the first users, in their random order, of shape
            `[num_known]`; `NaN` for users without one, who do not count in the mean.
        num_users (int): How many users come in random order, :math:`N`.
        alpha (float): The probability that the interval is ever wrong.
        margin (float): The margin that is looked for.
        limits (tuple, optional): The smallest and the largest possible value.
            (default: `(0.0, 1.0)`)
        num_others (int, optional): How many users beside them count in the mean, all with the same
            value. (default: `0`)
        other_value (float, optional): Their value. (default: `0.0`)

    Attributes:
        num_counted (float): How many of all users have a value, judging by the known ones.
        variance (float): The variance of the known values, shrunk as if one more had the largest.

    Raises:
        ValueError: If a value is outside the limits, for which nothing would be guaranteed.

    Example:
        >>> import torch
        >>> from pyg_recmetrics.margins import ConfidenceSequence
        >>> values = torch.rand(10_000, generator=torch.Generator().manual_seed(0))
        >>> first = values[:1000]
        >>> sequence = ConfidenceSequence(first, num_users=10_000, alpha=0.05, margin=0.03)
        >>> low, high = sequence.interval()
        >>> low < values.mean() < high, high - low < 0.06
        (tensor(True), True)
    """

    def __init__(
        self,
        values: Tensor,
        num_users: int,
        alpha: float,
        margin: float,
        limits: tuple[float, float] = (0.0, 1.0),
        num_others: int = 0,
        other_value: float = 0.0,
    ) -> None:
        low, high = limits
        self._low, self._range = low, high - low
        scaled = (values.to("cpu", torch.double) - low) / self._range
        # What is outside by rounding alone is at the end.
        is_outside = (scaled < -_SMALLEST) | (scaled > 1 + _SMALLEST)
        if bool(is_outside.any()):
            wrong = float(values.cpu()[is_outside][0])
            raise ValueError(f"a margin needs values from {low:g} to {high:g} (got {wrong:g})")
        self._values = scaled.clamp(0, 1)
        self._is_value = ~self._values.isnan()
        self.num_users, self.num_left = num_users, num_users - values.numel()
        self._share = float(self._is_value.double().mean())
        self.num_counted = num_users * self._share
        self.num_others, self._other_value = num_others, (other_value - low) / self._range
        self.alpha, self._threshold = alpha, math.log(2 / alpha)
        # The margin of the mean over the users in random order, in units of the range.
        self.margin, self._margin = margin, margin * (1 + num_others / num_users) / self._range
        # What a bettor knows before each user, whatever is claimed: the sum and the number of the
        # values that have come, how many users are left, and the stake.
        known, count = self._values.nan_to_num(0), self._is_value.cumsum(0)
        total = known.cumsum(0)
        self._before = total - known + num_others * self._other_value
        self._num_before = count - self._is_value.long() + num_others
        # Integers times a mean would be numbers in single precision.
        self._left = num_users - torch.arange(known.numel(), dtype=torch.double, device="cpu")
        mean = (0.5 + total) / (1 + count)
        squares = _FIRST_VARIANCE + ((known - mean).square() * self._is_value).cumsum(0)
        variance = torch.cat([known.new_tensor([_FIRST_VARIANCE]), squares / (1 + count)])
        self._wanted = known.new_tensor(self._margin) / variance[:-1]
        self.variance = float(variance[-1]) * self._range**2

    @property
    def mean(self) -> float:
        """The mean over all users, judging by the known ones; `NaN` if none has a value."""
        values = self._values[self._is_value]
        # To the last bit, the mean that a result of all of them has.
        mean = float(values.mean()) if self.num_left else exact_mean(values)
        if self.num_others:
            num_counted = self.num_counted
            total = num_counted * mean + self.num_others * self._other_value
            mean = total / (num_counted + self.num_others)
        return self._unscaled(mean)

    def interval(self) -> tuple[float, float]:
        """Returns the ends of the interval, which holds the mean of the known values."""
        if self.num_left == 0:
            return self.mean, self.mean
        # Whatever the values of those who are left may be.
        num_in_mean = int(self._is_value.sum()) + self.num_others + self.num_left
        total = float(self._values.nansum()) + self.num_others * self._other_value
        low, high = total / num_in_mean, (total + self.num_left) / num_in_mean
        if not math.isnan(self.mean):
            mean = (self.mean - self._low) / self._range
            low, high = self._end(low, mean, 1), self._end(high, mean, -1)
        return self._unscaled(low), self._unscaled(high)

    @property
    def is_known(self) -> bool:
        """Whether the mean is known to the margin. It is not as long as no user has a value."""
        low, high = self.interval()
        return max(self.mean - low, high - self.mean) <= self.margin

    def num_needed(self) -> float:
        """Returns how many users the margin will take, going by what is known so far."""
        if math.isnan(mean := float(self._values.nanmean())):
            return math.inf
        # Of those who bet on more and on less, the one who may stake less takes longer.
        largest = _MAX_LOSS / (max(mean, 1 - mean) * self._range)
        margin = self._margin * self._range
        needed = needed_users(self.variance, margin, self.alpha, self.num_counted, largest)
        return needed / self._share

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
        mean_left = ((self._num_before + self._left) * mean - self._before) / self._left
        mean_left = mean_left.clamp(_SMALLEST, 1 - _SMALLEST)
        largest = _MAX_LOSS / (mean_left if sign > 0 else 1 - mean_left)
        values = self._values.nan_to_num(mean)
        return torch.log1p(sign * self._wanted.minimum(largest) * (values - mean_left)).cumsum(0)

    def _unscaled(self, value: float) -> float:
        return self._low + self._range * value


@dataclass(frozen=True)
class Margin:
    """The margin of error of means: users are ranked in random order until it is reached.

    Args:
        size (float or dict): Half the width of the interval of every mean, in units of the metric,
            or those of some metrics. With `{"ndcg@20": 0.002}`, ranking stops when the mean NDCG
            is known to ± 0.002.
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
        if isinstance(self.size, Mapping):
            sizes = {str(parse(name, "margin")): _size(x) for name, x in self.size.items()}
            if not 0 < len(sizes) == len(self.size):
                raise ValueError(f"'margin' needs to name each metric once (got {list(self.size)})")
            set_attributes(self, size=FrozenDict(sizes))
        else:
            set_attributes(self, size=_size(self.size))
        if self.max_users is not None:
            set_attributes(self, max_users=check_positive_integer(self.max_users, "max_users"))
        level, seed = check_level(self.level), check_natural_number(self.seed, "seed")
        set_attributes(self, level=level, seed=seed)


def _size(margin: object) -> float:
    size = check_number(margin, "margin", "a mapping of metrics to numbers")
    if size <= 0:
        raise ValueError(f"'margin' needs to be a positive number (got {margin!r})")
    return size


@dataclass(frozen=True, eq=False)
class UserSample:
    """The users of a task in random order, made once for all epochs.

    The order depends on the seed and on who the users are, and on nothing else: neither on the
    device nor on the number of processes. Every prefix of it is a random sample.

    Args:
        task (RankingTask): The task.
        metrics (tuple of Metric): The metrics.
        margin (Margin): The margin.
        convention (Convention): How metrics are defined.
        catalogue (Catalogue): What is known about items.
        action (str): What users without ground truth count as.
    """

    task: RankingTask
    metrics: tuple[Metric, ...]
    margin: Margin
    convention: Convention
    catalogue: Catalogue
    action: EmptyTargetAction

    def __post_init__(self) -> None:
        for name, metric in self.convention.resolve_all(self.metrics).items():
            is_mean = metric.needs_truth and not (metric.is_aggregate or metric.is_pooled)
            is_bounded = torch.inf not in map(abs, metric.definition.range)
            if not is_mean or (name in self.margins and not is_bounded):
                raise ValueError(
                    f"a margin needs means of bounded values over users with truth (got '{name}')"
                )
        if self.task.person is not None:
            raise ValueError(
                "a margin needs users who are drawn one by one (got a task with the persons of its "
                "rows, who have several each)"
            )
        if not self.convention.population.constant_scores:
            raise ValueError(
                "a margin needs to know before the ranking who is evaluated (got a population with "
                "'constant_scores=False', which scores decide)"
            )
        if self.action == "error":
            check_num_without_truth(len(self.in_order[1]))

    @cached_property
    def margins(self) -> Mapping[str, float]:
        """The margin of every metric that has one."""
        names, size = [str(metric) for metric in self.metrics], self.margin.size
        if not isinstance(size, Mapping):
            return dict.fromkeys(names, size)
        if unknown := sorted(size.keys() - set(names)):
            raise ValueError(
                f"'margin' needs to name metrics that are evaluated, of {names} (got {unknown})"
            )
        return size

    @cached_property
    def in_order(self) -> list[Tensor]:
        """The users with ground truth in random order, and the others in an order of their own."""
        generator = torch.Generator("cpu").manual_seed(self.margin.seed)
        users = self.task.users
        has_truth = self.task.degree[users] > 0
        in_order = []
        for part in (users[has_truth], users[~has_truth]):
            order = torch.randperm(part.numel(), generator=generator, device="cpu")
            in_order.append(part[order.to(part.device)])
        return in_order

    def first(self, num_ranked: int) -> Tensor:
        """Returns the first users with ground truth, and as large a share of the others, sorted."""
        with_truth, without_truth = self.in_order
        num_without = round(num_ranked / len(with_truth) * len(without_truth))
        chosen = [with_truth[:num_ranked], without_truth[:num_without]]
        return torch.cat(chosen).sort().values

    def ranked(self, users: Tensor, ranking: OpenRanking) -> RankedEdges:
        """Returns the ranking of some users, where no others are evaluated."""
        is_one = index_to_mask(users, self.task.num_users)
        return select_users(ranking.to_ranked_edges(self.catalogue), is_one)


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
    margin, action = user_sample.margin, user_sample.action
    with_truth, without_truth = user_sample.in_order
    num_users, num_others = len(with_truth), num_filled(len(without_truth), action)
    convention = user_sample.convention
    knows_ties = ranking.recommender.has_scores
    metrics = convention.resolve_all(user_sample.metrics, knows_ties=knows_ties)
    measure = convention.population.measure
    values = dict.fromkeys(user_sample.margins, torch.zeros(0, dtype=torch.double, device="cpu"))
    most = min(num_users, margin.max_users or num_users)
    num_ranked = 0
    num_next = min(num_users if num_users <= FEW_USERS else FIRST_BATCH, most)
    while num_next > num_ranked:
        users = with_truth[num_ranked:num_next]
        ranking.rank(users.sort().values)
        ranked = with_ties(user_sample.ranked(users, ranking))
        for name, known in values.items():
            values[name] = torch.cat([known, measure(metrics[name], ranked)[users].cpu()])
        sequences = {
            name: ConfidenceSequence(
                values[name],
                num_users,
                (1 - margin.level) / len(user_sample.margins),
                size,
                metrics[name].definition.range,
                num_others,
                1.0 if action == "pos" else 0.0,
            )
            for name, size in user_sample.margins.items()
        }
        num_ranked = num_next
        is_known = all(sequence.is_known for sequence in sequences.values())
        if not is_known:
            needed = max(sequence.num_needed() for sequence in sequences.values())
            num_next = min(num_to_rank(num_ranked, needed, num_users), most)
    # Lists may be kept of users without truth, too.
    sampled = user_sample.first(num_ranked)
    ranking.rank(sampled[user_sample.task.degree[sampled] == 0])
    stopped: Stopped = "margin" if is_known else "max_users"
    if num_ranked == num_users:
        stopped, ranked = "all", ranking.to_ranked_edges(user_sample.catalogue)
    else:
        ranked = user_sample.ranked(sampled, ranking)
    ranked, users = with_ties(ranked), with_truth[:num_ranked]
    num_counted = {}
    for name, metric in metrics.items():
        share = float((~measure(metric, ranked)[users].isnan()).double().mean())
        num_counted[name] = round(share * num_users) + num_others
    sampling = Sampling(
        num_users=num_users,
        num_ranked=num_ranked,
        num_without_truth=len(without_truth),
        num_counted=num_counted,
        margins=user_sample.margins,
        bounds={name: Interval(*sequence.interval()) for name, sequence in sequences.items()},
        level=margin.level,
        seed=margin.seed,
        stopped=stopped,
    )
    return ranked, sampling
