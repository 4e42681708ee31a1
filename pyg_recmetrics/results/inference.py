"""Inference over users: confidence intervals of a mean, and paired tests of a difference.

Every function takes values of users. None of them knows about rankings.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_choice,
    check_level,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.results.estimates import (
    Estimate,
    Interval,
    ratio_of_sums,
    sums_of_persons,
    t_margin,
)
from pyg_recmetrics.sums import exact_mean, exact_sums

#: How to get from values to an interval of their mean.
IntervalMethod: TypeAlias = Literal["t", "bootstrap"]

#: How to test whether the mean of paired differences is zero.
PairedTest: TypeAlias = Literal["t-test", "randomization"]

#: How many draws of the bootstrap are held at once: 16 MB of indices and 32 MB of values.
_NUM_DRAWS = 2**22

#: How many signs of the randomisation test are held at once: scipy takes some 50 bytes for each.
_NUM_SIGNS = 2**21


@dataclass(frozen=True, eq=False)
class Sample:
    """One value for each of some users, who are a sample of all possible users.

    If a person has several rows, such as sessions, their values depend on each other. The sample
    is then one of persons, who are drawn with all of their rows.

    Attributes:
        values (torch.Tensor): The values, of shape `[num_users]`, in double precision.
        person (torch.Tensor or None): The number of the person to whom each row belongs, of shape
            `[num_users]`, with no number left out; `None` if every row is a person.
    """

    values: Tensor
    person: Tensor | None = None

    @classmethod
    def of(cls, values: Tensor, person: Tensor | None) -> "Sample":
        """Takes the values that are not `NaN`, and the persons to whom they belong."""
        is_counted = ~values.isnan()
        if person is not None:
            person = person.to(values.device)[is_counted].unique(return_inverse=True)[1]
        return cls(values[is_counted], person)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.values.numel()

    @cached_property
    def num_drawn(self) -> int:
        """How many users or persons were drawn."""
        if self.person is None:
            return self.num_rows
        return int(self.person.max()) + 1 if self.person.numel() else 0

    @cached_property
    def num_hits(self) -> int:
        """How many rows have another value than zero."""
        return int((self.values != 0).sum())

    @cached_property
    def num_effective(self) -> float:
        """How many persons with as many rows as each other would tell as much as those drawn."""
        num_rows = self.by_person(torch.ones_like(self.values))
        total, squares = map(float, exact_sums(num_rows, num_rows.square()))
        return total**2 / squares if squares else 0.0

    @cached_property
    def mean(self) -> float:
        """The mean of all rows."""
        return exact_mean(self.values)

    @property
    def estimate(self) -> Estimate:
        """The mean, and what each of the drawn adds to its error."""
        ones = torch.ones_like(self.values)
        return ratio_of_sums(self.values, ones, self.person)

    @cached_property
    def variance(self) -> float:
        """The variance of the mean; `NaN` if fewer than two were drawn."""
        return self.estimate.variance

    def margin(self, level: float) -> float:
        """Returns half the width of the t-interval of the mean; `NaN` if fewer than two."""
        return t_margin(self.variance, self.num_drawn, level)

    def by_person(self, values: Tensor) -> Tensor:
        """Adds up the values of each of the drawn, of shape `[num_drawn]`."""
        return values if self.person is None else sums_of_persons(values, self.person)


def interval_of_mean(
    sample: Sample,
    level: float = 0.95,
    method: IntervalMethod = "t",
    *,
    num_samples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Returns the confidence interval of a mean, see :meth:`EvaluationResult.confidence_interval`.

    Args:
        sample (Sample): The values of users.
        level (float, optional): The level of confidence, in :math:`(0, 1)`. (default: `0.95`)
        method (str, optional): `"t"` or `"bootstrap"`. (default: `"t"`)
        num_samples (int, optional): The number of bootstrap samples. (default: `2000`)
        seed (int, optional): The seed of the bootstrap samples. (default: `0`)

    Raises:
        ValueError: If `level` is not between 0 and 1, `method` is neither `"t"` nor `"bootstrap"`,
            `num_samples` is not a positive integer, or `seed` is not a non-negative integer.
    """
    level = check_level(level)
    check_choice(method, "method", get_args(IntervalMethod))
    num_samples = check_positive_integer(num_samples, "num_samples")
    seed = check_natural_number(seed, "seed")
    if sample.num_drawn < 2:
        return Interval(math.nan, math.nan)
    if method == "t":
        margin = sample.margin(level)
        return Interval(sample.mean - margin, sample.mean + margin)
    means = bootstrap_means(sample, num_samples, seed)
    low, high = torch.quantile(means, means.new_tensor(_bca_shares(sample, means, level))).tolist()
    return Interval(low, high)


def _bca_shares(sample: Sample, means: Tensor, level: float) -> list[float]:
    """Returns at which shares of the bootstrap means the interval ends.

    They allow for the bias and the skewness of the means. Without both, they are the two tails.

    Source: Efron, "Better bootstrap confidence intervals" (1987).
    """
    normal = NormalDist()
    below = float(
        (means < sample.mean).double().mean() + (means == sample.mean).double().mean() / 2
    )
    if below in (0.0, 1.0):
        return [(1 - level) / 2, (1 + level) / 2]
    bias = normal.inv_cdf(below)
    influence = sample.estimate.influence
    total = float(influence.square().sum()) ** 1.5
    skewness = float(influence.pow(3).sum()) / (6 * total) if total else 0.0

    def share(tail: float) -> float:
        shifted = bias + normal.inv_cdf(tail)
        return normal.cdf(bias + shifted / (1 - skewness * shifted))

    return [share((1 - level) / 2), share((1 + level) / 2)]


def bootstrap_means(sample: Sample, num_samples: int, seed: int) -> Tensor:
    """Returns the means of samples of users or persons with replacement: `[num_samples]`."""
    num_drawn = sample.num_drawn
    total = sample.by_person(sample.values)
    num_rows = sample.by_person(torch.ones_like(sample.values))
    # The CPU draws the samples, so that they are the same for every device.
    generator = torch.Generator().manual_seed(seed)
    num_at_once = max(1, _NUM_DRAWS // num_drawn)
    means = []
    for start in range(0, num_samples, num_at_once):
        shape = (min(num_at_once, num_samples - start), num_drawn)
        drawn = torch.randint(
            num_drawn, shape, generator=generator, dtype=torch.int32, device="cpu"
        ).to(total.device)
        means.append(total[drawn].sum(dim=1) / num_rows[drawn].sum(dim=1))
    return torch.cat(means)


def paired_difference(a: Tensor, b: Tensor) -> Tensor:
    """Returns the difference of each user, `[num_users]`; zero where it is only due to rounding."""
    difference = a - b
    is_rounding = difference.abs() <= 1e-12 * torch.maximum(a.abs(), b.abs())
    return difference.masked_fill(is_rounding, 0.0)


def randomization_test(difference: Sample, num_samples: int = 9999, seed: int = 0) -> float:
    """Returns the two-sided p-value of the hypothesis that the two of a pair may be swapped.

    Args:
        difference (Sample): The difference of every user, at least two of which were drawn. All
            rows of a person are swapped together.
        num_samples (int, optional): How many random assignments of signs are drawn. All of them
            are tried if there are fewer. (default: `9999`)
        seed (int, optional): The seed of these draws. (default: `0`)
    """
    from scipy import stats

    total = difference.by_person(difference.values).cpu().numpy()
    # Swapping the two values of a user changes the sign of the difference. A tie stays a tie.
    untied = total[total != 0]
    if untied.size < 2:
        return 1.0  # Both signs of a single difference are as far from zero.
    result = stats.permutation_test(
        (untied,),
        lambda sample, axis: sample.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=num_samples,
        batch=max(1, _NUM_SIGNS // untied.size),
        rng=seed,
    )
    return float(result.pvalue)


def check_scipy(needed_by: str) -> None:
    """Raises if scipy is not installed; the error says how to install it."""
    with requires_extra("scipy", "statistics", needed_by):
        import scipy  # noqa: F401 (only whether it is there)
