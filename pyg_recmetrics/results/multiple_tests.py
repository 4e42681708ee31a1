"""Corrections for several tests, so that the chance of any false star is that of a single one."""

import math
from collections.abc import Sequence
from decimal import Decimal

import torch
from torch import Tensor

from pyg_recmetrics.results.estimates import ROUNDING_OF_VARIANCE, sums_of_persons

#: P-values that differ by no more than this share of them are the same, but for rounding.
_ROUNDING = 1e-9

#: Squares that are left over from a difference of so much larger ones have lost their last digits.
_CANCELLED = 1e-3

#: How many random signs are held at once: 32 MB.
_NUM_SIGNS = 2**22


def alpha_of(level: float) -> float:
    """Returns the largest p-value that is significant at a level of confidence.

    It is a hair larger than what the level leaves, so that a p-value that is equal to that is below
    it however it was rounded. An interval of this alpha leaves zero out for the same p-values.

    Example:
        >>> 0.1 <= 1 - 0.9, 0.1 <= alpha_of(0.9)
        (False, True)
    """
    # In binary, what is left of 1 depends on how the level is rounded.
    return float(1 - Decimal(repr(level))) * (1 + _ROUNDING)


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


class LargestOfAll:
    r"""How large the largest of several test statistics is if there are no differences at all.

    The differences of a user may have either sign then. The signs of users are drawn anew many
    times, and the same sign goes to all differences of a user, so that tests stay as correlated as
    they are. Each time, the largest t-statistic is kept, as the smallest p-value. Unlike Holm's
    method, this knows how much tests have in common, and it has intervals that agree with it.

    Args:
        differences (torch.Tensor): The difference of each user in each test, of shape
            `[num_users, num_tests]`; `NaN` for users who do not count.
        person (torch.Tensor or None): The number of the person to whom each row belongs, of shape
            `[num_users]`. Rows of a person keep the same sign.
        num_samples (int): How many times signs are drawn.
        seed (int): The seed of the signs.

    Sources: Westfall and Young, "Resampling-based multiple testing" (1993); Romano and Wolf, "Exact
    and approximate stepdown methods for multiple hypothesis testing" (2005), whose first step this
    is.
    """

    def __init__(
        self, differences: Tensor, person: Tensor | None, num_samples: int, seed: int
    ) -> None:
        # The CPU draws the signs, so that they are the same for every device.
        differences = differences.cpu().double()
        total, count = differences.nan_to_num(0.0), (~differences.isnan()).double()
        if person is not None:
            total, count = (
                torch.stack([sums_of_persons(x, person.cpu()) for x in each.T], dim=1)
                for each in (total, count)
            )
        self._total, self._count = total, count
        generator = torch.Generator().manual_seed(seed)
        num_drawn = len(total)
        num_at_once = max(1, _NUM_SIGNS // max(1, num_drawn))
        smallest = []
        for start in range(0, num_samples, num_at_once):
            shape = (min(num_at_once, num_samples - start), num_drawn)
            sign = torch.randint(2, shape, generator=generator, dtype=torch.int8, device="cpu")
            smallest.append(self._smallest_p(2.0 * sign.double() - 1.0))
        self._smallest = torch.cat(smallest).sort().values

    def adjust(self, p_values: Sequence[float]) -> list[float]:
        """Returns p-values of the tests as those of all of them together."""
        p = torch.tensor(p_values, dtype=torch.double, device="cpu")
        below = torch.searchsorted(self._smallest, p * (1 + _ROUNDING), right=True)
        adjusted = (1.0 + below.double()) / (1 + self._smallest.numel())
        return torch.where(p.isnan(), torch.nan, adjusted).tolist()

    def alpha_of_each(self, level: float) -> float:
        """Returns the alpha of single intervals all of which hold together at `level`.

        An interval leaves zero out if and only if its adjusted p-value is significant. No interval
        does if the alpha is zero.
        """
        num_allowed = math.floor(alpha_of(level) * (1 + self._smallest.numel())) - 1
        return float(self._smallest[num_allowed]) / (1 + _ROUNDING) if num_allowed >= 0 else 0.0

    def _smallest_p(self, sign: Tensor) -> Tensor:
        """Returns the smallest p-value for each assignment of signs, `[num_assignments]`."""
        from scipy import special

        total, count = self._total, self._count
        num_rows, num_drawn = count.sum(dim=0), (count > 0).sum(dim=0)
        mean = sign @ total / num_rows
        of_all = total.square().sum(dim=0)
        squares = of_all - 2 * mean * (sign @ (total * count))
        squares += mean.square() * count.square().sum(dim=0)
        drawn, test = ((squares <= _CANCELLED * of_all) & (of_all > 0)).nonzero(as_tuple=True)
        rest = sign[drawn] * total.T[test] - mean[drawn, test, None] * count.T[test]
        squares[drawn, test] = rest.square().sum(dim=1)
        freedom = num_drawn - 1
        variance = squares / num_rows.square() * num_drawn / freedom
        variance[variance <= ROUNDING_OF_VARIANCE * mean.square()] = 0.0
        t = mean.abs() / variance.sqrt()
        # Users who all agree have no variance, and no difference at all is none in any order.
        t = torch.where(mean == 0, 0.0, t)
        p = 2 * special.stdtr(freedom.double().numpy(), -t.numpy())
        return torch.from_numpy(p).amin(dim=1)
