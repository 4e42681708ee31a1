"""Sums over users that depend neither on their order nor on how they were cut into parts.

A floating-point sum is rounded at every step, so it depends on the order. :func:`math.fsum` adds up
without rounding, and rounds once at the end.
"""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

#: Values in memory that the host reads.
Numbers: TypeAlias = np.ndarray[Any, Any]

#: Sums of values that are smaller by this factor do not overflow.
_SCALE = 2.0**64


def on_host(parts: Sequence[Tensor]) -> list[Numbers]:
    """Copies vectors or numbers to the host, all of them at once, in the widest precision."""
    numbers = torch.cat([part if part.dim() else part.view(1) for part in parts]).cpu().numpy()
    return np.split(numbers, np.cumsum([part.numel() for part in parts])[:-1])


def exact_sum(values: Tensor | Numbers) -> float:
    """Returns the sum of values `[num_values]`, rounded once; `NaN` if one of them is."""
    try:
        return math.fsum(values.tolist())
    except OverflowError:  # on the way, whatever the sum is
        return math.fsum((values / _SCALE).tolist()) * _SCALE
    except ValueError:  # inf and -inf
        return math.nan


def exact_mean(values: Tensor | Numbers) -> float:
    """Returns the mean of the values that are not `NaN`; `NaN` if there are none."""
    counted = values[values == values]  # which `NaN` is not
    return exact_sum(counted) / len(counted) if len(counted) else math.nan
