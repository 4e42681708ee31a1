"""Sums over users that depend neither on their order nor on which process has which of them.

A floating-point sum is rounded at every step, so it depends on the order. Here, the digits of all
values are added up as integers, place by place, and the sum is rounded once. Integers of several
processes add up to the same digits as those of one.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_recmetrics import processes

#: What to do about a share that is not enough.
_GATHER = "needs the users of all processes: call 'gather()' on the result in all of them, first"

#: The binary digits of a double, and how many of them have a sum of their own.
_DIGITS, _LOW_DIGITS = 53, 26

#: The exponents of the smallest and the largest double, as `frexp` has them.
_LOWEST, _HIGHEST = -1073, 1024

#: How many exponents there are.
_NUM_PLACES = _HIGHEST - _LOWEST + 1

#: The places that values of metrics have, of about `2^-64` to `2^64`. Others are sent only if there
#: are any.
_USUAL = slice(-64 - _LOWEST, 64 - _LOWEST)

#: What a unit of the last digit at the lowest exponent is worth, as a power of two.
_UNIT = _DIGITS - _LOWEST


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
        numerator (int): The sum of all finite values in units of the smallest double.
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
        """Returns the sum of each tensor over all users."""
        flat = [each.detach().to(self.device).flatten().double() for each in values]
        if len({each.numel() for each in flat}) == 1:
            digits = _digits(torch.stack(flat))
        else:
            digits = torch.cat([_digits(each.unsqueeze(0)) for each in flat])
        if self._is_shared:
            digits = _add_up_places(digits)
        return _carried(digits.cpu())

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


def _digits(values: Tensor) -> Tensor:
    """Returns the sums of the digits of rows of doubles by exponent, and the numbers of others.

    They are integers of shape `[num_rows, 2 * num_places + 4]`.
    """
    mantissa, exponent = values.nan_to_num(0.0, 0.0, 0.0).frexp()
    digits = (mantissa * 2.0**_DIGITS).long()
    place = exponent.long() - _LOWEST
    sums = digits.new_zeros(len(values), 2 * _NUM_PLACES + 4)
    # Each is so small that no sum overflows for fewer than 2^36 users.
    sums.scatter_add_(1, place, digits & (2**_LOW_DIGITS - 1))
    sums.scatter_add_(1, place + _NUM_PLACES, digits >> _LOW_DIGITS)
    sums[:, 2 * _NUM_PLACES] = values.size(1)
    odd = torch.stack([values.isnan(), values.isposinf(), values.isneginf()])
    sums[:, 2 * _NUM_PLACES + 1 :] = odd.sum(dim=2).t()
    return sums


def _add_up_places(digits: Tensor) -> Tensor:
    """Returns the sums over processes, in two kilobytes for each unless values are unusual."""
    is_usual = torch.zeros(digits.size(1), dtype=torch.bool, device=digits.device)
    is_usual[:_NUM_PLACES][_USUAL] = is_usual[_NUM_PLACES:][_USUAL] = True
    is_usual[2 * _NUM_PLACES :] = True
    has_others = (digits[:, ~is_usual] != 0).any()
    sent = torch.cat([digits[:, is_usual].flatten(), has_others.long().view(1)])
    processes.add_up(sent)
    sums = digits.clone()
    sums[:, is_usual] = sent[:-1].view(len(digits), -1)
    if int(sent[-1]):
        others = digits[:, ~is_usual]
        processes.add_up(others)
        sums[:, ~is_usual] = others
    return sums


def _carried(digits: Tensor) -> list[ExactSum]:
    """Returns the sums that digits of all places make up, row by row."""
    numerators = [0] * len(digits)
    row, index = digits[:, : 2 * _NUM_PLACES].nonzero(as_tuple=True)
    found = (values.tolist() for values in (row, index, digits[row, index]))
    for number, at, digit in zip(*found, strict=True):
        half, place = divmod(at, _NUM_PLACES)
        numerators[number] += digit << (place + half * _LOW_DIGITS)
    counts = digits[:, 2 * _NUM_PLACES :].tolist()
    return [ExactSum(total, *of_row) for total, of_row in zip(numerators, counts, strict=True)]
