r"""On how many data sets there is an effect, with confidence.

Of `n` hypotheses, the partial conjunction of `u` says that fewer than `u` are false. If it is
rejected for every number up to `u`, then at least `u` are false, with confidence: the count never
exceeds the true number more often than the level allows.

With p-values sorted as :math:`p_{(1)} \le \ldots \le p_{(n)}`, Bonferroni's p-value of the partial
conjunction is :math:`(n - u + 1) \, p_{(u)}`, which holds however the data sets depend on each
other. The count is then the number of hypotheses that Holm's method rejects. Fisher's p-value
combines :math:`p_{(u)}, \ldots, p_{(n)}`, needs independent data sets, and often counts more.

Sources: Benjamini and Heller, "Screening for partial conjunction hypotheses" (2008); Dror, Baumer,
Bogomolov and Reichart, "Replicability analysis for natural language processing: testing
significance with multiple datasets" (2017).
"""

import math
from collections.abc import Sequence

#: Smaller p-values than this are taken for it, since zero has no logarithm.
_SMALLEST = 5e-324


def count_with_confidence(p_values: Sequence[float], alpha: float, independent: bool) -> int:
    """Returns how many hypotheses are false at least.

    Args:
        p_values (sequence of float): The p-value of each.
        alpha (float): How often the count may be too large.
        independent (bool): Whether p-values are independent, so that Fisher's combination holds.
    """
    return sum(p <= alpha for p in partial_conjunctions(p_values, independent))


def partial_conjunctions(p_values: Sequence[float], independent: bool) -> list[float]:
    """Returns the p-value that fewer than `u` are false, for `u` from one on. They never decrease.

    Example:
        >>> [round(p, 3) for p in partial_conjunctions([0.01, 0.04, 0.03], independent=False)]
        [0.03, 0.06, 0.06]
        >>> [round(p, 3) for p in partial_conjunctions([0.01, 0.04, 0.03], independent=True)]
        [0.001, 0.009, 0.04]
    """
    ordered = sorted(p_values)
    combine = _fisher if independent else _bonferroni
    found: list[float] = []
    for first in range(len(ordered)):
        found.append(max([combine(ordered[first:]), *found[-1:]]))
    return found


def _bonferroni(p_values: Sequence[float]) -> float:
    return min(1.0, len(p_values) * p_values[0])


def _fisher(p_values: Sequence[float]) -> float:
    from scipy import stats

    statistic = -2 * sum(math.log(max(p, _SMALLEST)) for p in p_values)
    return float(stats.chi2.sf(statistic, 2 * len(p_values)))
