"""How many users a margin will take, and how many of them to rank next."""

import math
from typing import NamedTuple

#: How many users are ranked before anything can be said.
FIRST_BATCH = 512

#: As few users as this are all ranked at once.
FEW_USERS = 2 * FIRST_BATCH

#: A batch has at least this part of the users before it, since each has a cost of its own.
_SMALLEST_BATCH = 1 / 16


class Forecast(NamedTuple):
    """What was expected at one look at the users so far.

    Attributes:
        num_ranked: How many users had been ranked.
        num_needed: How many all margins were expected to take.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> users = torch.arange(20_000)
        >>> task = RankingTask(torch.stack([users, users % 4]), num_users=20_000, num_items=4)
        >>> result = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "recall@1", margin=0.05)
        >>> result.sampling.forecasts[0].num_ranked
        512
    """

    num_ranked: int
    num_needed: int


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


def forecast(num_ranked: int, num_needed: float, num_users: int) -> int:
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
