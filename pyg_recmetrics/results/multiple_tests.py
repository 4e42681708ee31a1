"""Corrections for several tests, so that the chance of any false star is that of a single one."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_recmetrics.results.estimates import sums_of_persons

#: How many random signs are held at once: 32 MB.
_NUM_SIGNS = 2**22


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
        below = torch.searchsorted(self._smallest, p, right=True)
        adjusted = (1.0 + below.double()) / (1 + self._smallest.numel())
        return torch.where(p.isnan(), torch.nan, adjusted).tolist()

    def level_of_each(self, level: float) -> float:
        """Returns the level of single intervals all of which hold together at `level`."""
        num_allowed = math.floor((1 - level) * (1 + self._smallest.numel()) * (1 + 1e-12)) - 1
        if num_allowed < 0:
            return 1.0
        return 1.0 - float(self._smallest[num_allowed])

    def _smallest_p(self, sign: Tensor) -> Tensor:
        """Returns the smallest p-value for each assignment of signs, `[num_assignments]`."""
        from scipy import special

        total, count = self._total, self._count
        num_rows, num_drawn = count.sum(dim=0), (count > 0).sum(dim=0)
        mean = sign @ total / num_rows
        squares = total.square().sum(dim=0) - 2 * mean * (sign @ (total * count))
        squares += mean.square() * count.square().sum(dim=0)
        freedom = num_drawn - 1
        variance = squares.clamp(min=0.0) / num_rows.square() * num_drawn / freedom
        t = mean.abs() / variance.sqrt()
        # Users who all agree have no variance, and no difference at all is none in any order.
        t = torch.where(mean == 0, 0.0, t)
        p = 2 * special.stdtr(freedom.double().numpy(), -t.numpy())
        return torch.from_numpy(p).amin(dim=1)
