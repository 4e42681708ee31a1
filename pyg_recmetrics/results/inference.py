"""Inference over users: confidence intervals of a mean, and paired tests of a difference.

Every function takes one value per user. None of them knows about rankings.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_choice,
    check_level,
    check_natural_number,
    check_positive_integer,
)
from pyg_recmetrics.extras import requires_extra

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


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


def interval_of_mean(
    values: Tensor,
    level: float = 0.95,
    method: IntervalMethod = "bootstrap",
    *,
    num_samples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Returns the confidence interval of a mean, see :meth:`EvaluationResult.confidence_interval`.

    Args:
        values (torch.Tensor): A value per user, of shape `[num_users]`.
        level (float, optional): The level of confidence, in :math:`(0, 1)`. (default: `0.95`)
        method (str, optional): `"bootstrap"` or `"normal"`. (default: `"bootstrap"`)
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
    if values.numel() < 2:
        return Interval(math.nan, math.nan)
    if method == "normal":
        mean, margin = float(values.mean()), normal_margin(values, level)
        return Interval(mean - margin, mean + margin)
    means = bootstrap_means(values, num_samples, seed)
    tail = (1 - level) / 2
    low, high = torch.quantile(means, means.new_tensor([tail, 1 - tail])).tolist()
    return Interval(low, high)


def normal_margin(values: Tensor, level: float) -> float:
    """Returns half the width of the normal interval; `NaN` for fewer than two values."""
    if values.numel() < 2:
        return math.nan
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    return quantile * float(values.std()) / math.sqrt(values.numel())


def bootstrap_means(values: Tensor, num_samples: int, seed: int) -> Tensor:
    """Returns the means of samples of users with replacement, of shape `[num_samples]`."""
    num_users = values.numel()
    # The CPU draws the samples, so that they are the same for every device.
    generator = torch.Generator().manual_seed(seed)
    num_rows = max(1, _NUM_DRAWS // num_users)
    means = []
    for start in range(0, num_samples, num_rows):
        shape = (min(num_rows, num_samples - start), num_users)
        drawn = torch.randint(
            num_users, shape, generator=generator, dtype=torch.int32, device="cpu"
        )
        means.append(values[drawn.to(values.device)].mean(dim=1))
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


def t_interval(difference: Tensor, level: float) -> Interval:
    """Returns the confidence interval of the mean difference that the paired t-test implies."""
    from scipy import stats

    num_users = difference.numel()
    quantile = float(stats.t.ppf((1 + level) / 2, num_users - 1))
    mean, margin = float(difference.mean()), quantile * float(difference.std()) / num_users**0.5
    return Interval(mean - margin, mean + margin)


def p_value(
    difference: Tensor, test: PairedTest = "t-test", *, num_samples: int = 9999, seed: int = 0
) -> float:
    """Returns the two-sided p-value of the hypothesis that there is no difference.

    Args:
        difference (torch.Tensor): The difference of every user, of shape `[num_users]`, for at
            least two users.
        test (str, optional): `"t-test"`, `"wilcoxon"` or `"randomization"`.
            (default: `"t-test"`)
        num_samples (int, optional): How many random assignments of signs a randomisation test
            draws. It tries all of them if there are fewer. (default: `9999`)
        seed (int, optional): The seed of these draws. (default: `0`)
    """
    if bool((difference == 0).all()):
        return 1.0
    return _TESTS[test](difference.cpu().numpy(), num_samples, seed)


def _t_test(difference: Differences, num_samples: int, seed: int) -> float:
    from scipy import stats

    if (difference == difference[0]).all():
        return 0.0  # the limit, which scipy also returns, but with a warning
    return float(stats.ttest_1samp(difference, 0.0).pvalue)


def _wilcoxon(difference: Differences, num_samples: int, seed: int) -> float:
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


_TESTS: dict[PairedTest, Callable[[Differences, int, int], float]] = {
    "t-test": _t_test,
    "wilcoxon": _wilcoxon,
    "randomization": _randomization_test,
}


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
