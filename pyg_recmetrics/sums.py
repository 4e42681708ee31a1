"""Sums over users that depend neither on their order nor on how they were cut into parts.

A floating-point sum is rounded at every step, so it depends on the order. :func:`math.fsum` adds up
without rounding, and rounds once at the end.
"""

import math

from torch import Tensor

#: Sums of values that are smaller by this factor do not overflow.
_SCALE = 2.0**64


def exact_sum(values: Tensor) -> float:
    """Returns the sum of values `[num_values]`, rounded once; `NaN` if one of them is."""
    try:
        return math.fsum(values.tolist())
    except OverflowError:  # on the way, whatever the sum is
        return math.fsum((values / _SCALE).tolist()) * _SCALE
    except ValueError:  # inf and -inf
        return math.nan


def exact_mean(values: Tensor) -> float:
    """Returns the mean of the values that are not `NaN`; `NaN` if there are none."""
    counted = values[~values.isnan()]
    return exact_sum(counted) / counted.numel() if counted.numel() else math.nan
