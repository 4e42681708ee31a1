"""Sums over users that depend neither on their order nor on which process has which of them.

A floating-point sum is rounded at every step, so it depends on the order. Here, values are cut into
digits of 36 bits, place by place. The digits of a place add up without rounding, and the sum of all
places is rounded once. Digits of several processes add up to the same sum as those of one.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics import processes

#: What to do about a share that is not enough.
_GATHER = "needs the users of all processes: call 'gather()' on the result in all of them, first"

#: How many bits a digit has.
_DIGIT = 36

#: A sum is a multiple of this power of two. Every double is one, and it is as many digits away.
_UNIT = 30 * _DIGIT

#: Up to this size, whole numbers count as a digit.
_MAX_WHOLE = 2.0**_DIGIT

#: How many values are cut into digits at once. A double holds the sum of so many digits.
_AT_ONCE = 2**16

#: Processes exchange sums in places of so many bits, and so many of them, which are enough for any
#: sum of fewer than 2^72 doubles.
_PLACE, _NUM_PLACES = 32, 68


def totals_of(values: Tensor) -> "Totals":
    """Returns what adds up values that are all there are."""
    return Totals(values.device)


def check_is_whole(is_share: bool, what: str, why: str = _GATHER) -> None:
    """Raises if something cannot be done with the users of one process out of several."""
    if is_share:
        named = what if "=" in what else f"'{what}'"
        raise ValueError(f"{named} {why} (got the share of one process)")


@dataclass(frozen=True)
class ExactSum:
    """A sum of doubles, without any rounding.

    Attributes:
        numerator (int): The sum of all finite values, in small units.
        num_values (int): How many values there are.
        num_nan (int): How many of them are `NaN`.
        num_above (int): How many of them are `inf`.
        num_below (int): How many of them are `-inf`.
    """

    numerator: int
    num_values: int
    num_nan: int
    num_above: int
    num_below: int

    @property
    def mean(self) -> float:
        """The mean of the values that are not `NaN`, rounded once; `NaN` if there are none."""
        num_counted = self.num_values - self.num_nan
        return self._over(num_counted) if num_counted else math.nan

    def __float__(self) -> float:
        return math.nan if self.num_nan else self._over(1)

    def _over(self, divisor: int) -> float:
        if self.num_above and self.num_below:
            return math.nan
        if self.num_above or self.num_below:
            return math.inf if self.num_above else -math.inf
        try:
            return self.numerator / (divisor << _UNIT)
        except OverflowError:
            return math.inf if self.numerator > 0 else -math.inf


@dataclass(frozen=True, eq=False)
class Totals:
    """Adds up what users have: those of this process, or those of all processes.

    Attributes:
        device (torch.device): Where processes exchange what they have.
        is_share (bool): Whether other processes have other users. All of them then have to ask for
            the same sums in the same order.
    """

    device: torch.device
    is_share: bool = False

    def exact(self, *values: Tensor) -> list[ExactSum]:
        """Returns the sum of each tensor over all users, who are its first dimension."""
        if len({(each.shape, each.dtype, each.device) for each in values}) == 1:
            sums = _sums_of_rows(torch.stack(values))
        else:
            sums = [_sums_of_rows(each.unsqueeze(0))[0] for each in values]
        if self._is_shared:
            places = torch.tensor([_to_places(total) for total in sums], device=self.device)
            processes.add_up(places)
            sums = [_from_places(of_sum) for of_sum in places.tolist()]
        return sums

    def sum(self, values: Tensor) -> float:
        """Returns the sum of values, rounded once."""
        return float(self.exact(values)[0])

    def mean(self, values: Tensor) -> float:
        """Returns the mean of the values that are not `NaN`; `NaN` if there are none."""
        return self.exact(values)[0].mean

    def count(self, is_counted: Tensor) -> int:
        """Returns how many elements of a mask are true."""
        return self.number(int(is_counted.sum()))

    def number(self, own: int) -> int:
        """Returns the sum of a number of each process."""
        return self.numbers(own)[0]

    def numbers(self, *own: int) -> list[int]:
        """Returns the sums of several numbers of each process."""
        return self._exchanged(list(own), processes.add_up)

    def largest(self, own: int) -> int:
        """Returns the largest number of any process."""
        return self._exchanged([own], processes.take_largest)[0]

    def largest_value(self, values: Tensor) -> float:
        """Returns the largest of all values; `-inf` if there are none."""
        own = values.max().double() if values.numel() else values.new_tensor(-torch.inf).double()
        if self._is_shared:
            own = own.to(self.device)
            processes.take_largest(own)
        return float(own)

    def of_each_item(self, own: Tensor) -> Tensor:
        """Returns the sum of a tensor that has the same shape in every process.

        Integers and counts have one sum. Others depend on the order in their last digits.
        """
        if not self._is_shared:
            return own
        total = own.clone()
        processes.add_up(total)
        return total

    def failing_together(self) -> AbstractContextManager[None]:
        """Within it, an error of this process is one of all that have a share.

        No process may ask for sums in there.
        """
        return processes.fail_together(self.device) if self._is_shared else nullcontext()

    def of_each_process(self, own: Any) -> list[Any]:
        """Returns an object of every process."""
        return processes.collect_objects(own, self.device) if self._is_shared else [own]

    @property
    def _is_shared(self) -> bool:
        return self.is_share and processes.num_processes() > 1

    def _exchanged(self, own: list[int], exchange: Callable[[Tensor], None]) -> list[int]:
        if not self._is_shared:
            return own
        numbers = torch.tensor(own, device=self.device)
        exchange(numbers)
        result: list[int] = numbers.tolist()
        return result


def _sums_of_rows(tensor: Tensor) -> list[ExactSum]:
    """Returns the sums of tensors that are stacked."""
    values = tensor.detach().flatten(1)
    num_rows, num_values = values.shape
    numerators, num_odd = [0] * num_rows, np.zeros((num_rows, 3), dtype=np.int64)
    step = max(1, _AT_ONCE // num_rows)
    for start in range(0, num_values, step):
        part = values[:, start : start + step].to("cpu", torch.double).numpy()
        if not (are_small := bool(np.abs(part).max() <= _MAX_WHOLE)):  # as NaN is not
            odd = np.stack([np.isnan(part), np.isposinf(part), np.isneginf(part)], axis=2)
            num_odd += odd.sum(axis=1)
            part = np.where(odd.any(axis=2), 0.0, part)
        sums = _numerators(part, are_small)
        numerators = [x + y for x, y in zip(numerators, sums, strict=True)]
    of_rows = zip(numerators, num_odd.tolist(), strict=True)
    return [ExactSum(total, num_values, *odd) for total, odd in of_rows]


def _numerators(values: np.ndarray, are_small: bool) -> list[int]:
    """Returns the sums of rows of finite doubles, in units."""
    digit = np.trunc(values)
    sums = _added(digit) if are_small else [sum(map(int, row)) for row in digit.tolist()]
    rest, num_bits = values - digit, 0
    while rest.any():
        rest *= 2.0**_DIGIT
        digit = np.trunc(rest)
        rest -= digit
        num_bits += _DIGIT
        sums = [(x << _DIGIT) + y for x, y in zip(sums, _added(digit), strict=True)]
    return [total << (_UNIT - num_bits) for total in sums]


def _added(digits: np.ndarray) -> list[int]:
    return list(map(int, digits.sum(axis=1).tolist()))


def _to_places(total: ExactSum) -> list[int]:
    """Returns a sum as integers that can be added to those of others."""
    size = _PLACE // 8 * _NUM_PLACES
    content = abs(total.numerator).to_bytes(size, "little")
    places = np.frombuffer(content, dtype="<u4").astype(np.int64)
    counts = total.num_values, total.num_nan, total.num_above, total.num_below
    return [*(places if total.numerator >= 0 else -places).tolist(), *counts]


def _from_places(places: list[int]) -> ExactSum:
    numerator = 0
    for place in reversed(places[:_NUM_PLACES]):
        numerator = (numerator << _PLACE) + place
    return ExactSum(numerator, *places[_NUM_PLACES:])
