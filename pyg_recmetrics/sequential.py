"""What is known of a mean while users are still being ranked, one random batch after the other."""

import math
from functools import cached_property

import torch
from torch import Tensor

from pyg_recmetrics.sums import exact_mean

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
        >>> from pyg_recmetrics.sequential import ConfidenceSequence
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
        >>> from pyg_recmetrics.sequential import UserOrder
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
