"""Quantiles of Student's t-distribution, which printed intervals need and torch does not have.

SciPy is an extra, and what every result prints works without it.
"""

import math
from functools import lru_cache
from statistics import NormalDist

#: From here on, the expansion for many degrees of freedom is exact to 12 digits.
_MANY = 1000

#: How many points the integral is a sum of.
_NUM_POINTS = 64

#: How often the interval that holds the quantile is halved.
_NUM_HALVINGS = 60


@lru_cache(maxsize=4096)
def t_quantile(level: float, freedom: int) -> float:
    r"""Returns how far from zero the middle share `level` of a t-distribution reaches.

    With :math:`t = \sqrt{f} \tan \alpha`, the share is the integral of
    :math:`c \cos^{f - 1} \alpha`, which is smooth.

    Args:
        level (float): The share, in :math:`(0, 1)`.
        freedom (int): The degrees of freedom `f`, at least one.

    Source: Abramowitz and Stegun, "Handbook of mathematical functions", 26.7 (1964).
    """
    if freedom >= _MANY:
        return _expansion(NormalDist().inv_cdf((1 + level) / 2), freedom)
    import numpy as np

    points, weights = np.polynomial.legendre.leggauss(_NUM_POINTS)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    low, high = 0.0, math.pi / 2
    for _ in range(_NUM_HALVINGS):
        angle = (low + high) / 2
        density = np.cos(angle * (points + 1) / 2) ** (freedom - 1)
        share = scale / math.sqrt(math.pi) * angle * float((weights * density).sum())
        low, high = (angle, high) if share < level else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _expansion(x: float, freedom: int) -> float:
    """Returns the quantile that follows from the quantile `x` of the normal distribution."""
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
    )
    return x + sum(term / math.pow(freedom, power) for power, term in enumerate(terms, start=1))
