"""Inference over users: confidence intervals of a mean, and paired tests of a difference.

Every function takes values of users. None of them knows about rankings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

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
    Interval,
    normal_margin,
    ratio_of_sums,
    sums_of_persons,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: How to get from values to an interval of their mean.
IntervalMethod: TypeAlias = Literal["bootstrap", "normal"]

#: How to test whether the mean of paired differences is zero.
PairedTest: TypeAlias = Literal["t-test", "wilcoxon", "randomization"]

Differences: TypeAlias = "npt.NDArray[np.float64]"

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
    def num_drawn(self) -> int:
        """How many users or persons were drawn."""
        if self.person is None:
            return self.values.numel()
        return int(self.person.max()) + 1 if self.person.numel() else 0

    @cached_property
    def mean(self) -> float:
        """The mean of all rows."""
        return float(self.values.mean())

    @property
    def variance(self) -> float:
        """The variance of the mean; `NaN` if fewer than two were drawn."""
        return ratio_of_sums(self.values, torch.ones_like(self.values), self.person).variance

    def by_person(self, values: Tensor) -> Tensor:
        """Adds up the values of each of the drawn, of shape `[num_drawn]`."""
        return values if self.person is None else sums_of_persons(values, self.person)


def interval_of_mean(
    sample: Sample,
    level: float = 0.95,
    method: IntervalMethod = "normal",
    *,
    num_samples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Returns the confidence interval of a mean, see :meth:`EvaluationResult.confidence_interval`.

    Args:
        sample (Sample): The values of users.
        level (float, optional): The level of confidence, in :math:`(0, 1)`. (default: `0.95`)
        method (str, optional): `"normal"` or `"bootstrap"`. (default: `"normal"`)
        num_samples (int, optional): The number of bootstrap samples. (default: `2000`)
        seed (int, optional): The seed of the bootstrap samples. (default: `0`)

    Raises:
        ValueError: If `level` is not between 0 and 1, `method` is neither `"bootstrap"` nor
            `"normal"`, `num_samples` is not a positive integer, or `seed` is not a non-negative
            integer.
    """
    level = check_level(level)
    check_choice(method, "method", get_args(IntervalMethod))
    num_samples = check_positive_integer(num_samples, "num_samples")
    seed = check_natural_number(seed, "seed")
    if sample.num_drawn < 2:
        return Interval(math.nan, math.nan)
    if method == "normal":
        margin = normal_margin(sample.variance, level)
        return Interval(sample.mean - margin, sample.mean + margin)
    means = bootstrap_means(sample, num_samples, seed)
    tail = (1 - level) / 2
    low, high = torch.quantile(means, means.new_tensor([tail, 1 - tail])).tolist()
    return Interval(low, high)


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


def effect_size(difference: Tensor) -> float:
    """Returns Cohen's d of paired differences: their mean over their standard deviation."""
    if bool((difference == 0).all()):
        return 0.0
    return float(difference.mean() / difference.std())


def p_value(
    difference: Sample,
    test: Literal["wilcoxon", "randomization"] = "wilcoxon",
    *,
    num_samples: int = 9999,
    seed: int = 0,
) -> float:
    """Returns the two-sided p-value of the hypothesis that there is no difference.

    The paired t-test follows from the variance of the difference (:class:`Uncertainty`).

    Args:
        difference (Sample): The difference of every user, at least two of which were drawn.
        test (str, optional): `"wilcoxon"`, of the mean difference of each person, or
            `"randomization"`, which swaps all rows of a person together.
            (default: `"wilcoxon"`)
        num_samples (int, optional): How many random assignments of signs a randomisation test
            draws. It tries all of them if there are fewer. (default: `9999`)
        seed (int, optional): The seed of these draws. (default: `0`)
    """
    total = difference.by_person(difference.values)
    if bool((total == 0).all()):
        return 1.0
    if test == "randomization":
        return _randomization_test(total.cpu().numpy(), num_samples, seed)
    mean = total / difference.by_person(torch.ones_like(difference.values))
    return _wilcoxon(mean.cpu().numpy())


def _wilcoxon(difference: Differences) -> float:
    from scipy import stats

    return float(stats.wilcoxon(difference).pvalue)


def _randomization_test(difference: Differences, num_samples: int, seed: int) -> float:
    from scipy import stats

    # Swapping the two values of a user changes the sign of the difference. A tie stays a tie.
    difference = difference[difference != 0]
    result = stats.permutation_test(
        (difference,),
        lambda sample, axis: sample.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=num_samples,
        batch=max(1, _NUM_SIGNS // difference.size),
        rng=seed,
    )
    return float(result.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Corrects p-values for having tested several hypotheses, by Holm's step-down method.

    The smallest of `m` p-values is multiplied by `m`, the next by `m - 1`, and so on. Corrected
    p-values never decrease in this order, and never exceed one. If all hypotheses with a corrected
    p-value of at most :math:`\alpha` are rejected, the chance that a true one is among them is at
    most :math:`\alpha`. A p-value of `NaN` stands for a hypothesis that was not tested, and does
    not count.

    Source: Holm, "A simple sequentially rejective multiple test procedure" (1979).

    Example:
        >>> [round(p, 2) for p in holm([0.01, 0.04, 0.03, 0.005])]
        [0.03, 0.06, 0.06, 0.02]
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    least = 0.0
    for num_done, (p, index) in enumerate(tested):
        least = max(least, min(1.0, p * (len(tested) - num_done)))
        adjusted[index] = least
    return adjusted


def check_scipy(needed_by: str) -> None:
    """Raises if scipy is not installed; the error says how to install it."""
    with requires_extra("scipy", "statistics", needed_by):
        import scipy  # noqa: F401 (only whether it is there)
