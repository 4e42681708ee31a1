"""Counting the 16-bit integers above thresholds, and finding those that are next to one.

There are two ways, with one interface. :class:`Comparison` compares every integer with every
threshold of its row, as a processor compares dozens of them at once. :class:`Histogram` takes as
long as some thirty comparisons, however many thresholds there are.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch, at_once
from pyg_recmetrics.kernels.entries import Rows
from pyg_recmetrics.kernels.fast.packed_counts import pack_counts, unpack_counts

#: How many integers :class:`Comparison` looks at together, to find those next to a threshold.
STRETCH = 128

#: How many comparisons are done at once, so that their flags stay in the caches.
NUM_COMPARISONS_AT_ONCE = 2**21

#: How many integers are put into buckets at once, for the same reason.
NUM_KEYS_AT_ONCE = 2**18

#: The largest integer that can be counted, and the lowest is its negative.
LARGEST = 2**15 - 2

#: The largest threshold. The integers in its bucket are not the largest ones.
LARGEST_THRESHOLD = 2**15 - 2**10

#: How far a threshold reaches to both sides at most. It then touches few integers.
LARGEST_MARGIN = 1.49

#: A bucket holds the integers with the same first bits: so many of them, at least and at most. With
#: fewer than seven, the bucket of the largest threshold would hold the largest integers, which all
#: values beyond are clamped to.
_MIN_BITS, _MAX_BITS = 8, 16

#: The numbers of a row, with their margins, span less than this.
_SPAN_OF_ROW = 2.0**17

#: Takes the place of integers that must not be counted.
MASKED = -(2**15)


class ThresholdCount(ABC):
    """Counts the values above thresholds, from their integer parts as far as these can tell.

    Args:
        row (torch.Tensor): The row of each threshold, of shape `[num_thresholds]`, sorted.
        threshold (torch.Tensor): The thresholds, of shape `[num_thresholds]`.
        margin (torch.Tensor): How far a value has to be from a threshold for its integer part to
            tell on which side it is, of shape `[num_rows]`.
        max_close (torch.Tensor): How many values of a row may be close to its thresholds, of shape
            `[num_rows]`. A row with more is given up.
        num_keys (int): How many values of a row are counted at once.
        scratch (Scratch): The buffers to compute in.

    Attributes:
        num_above: How many values are above each threshold, of shape `[num_thresholds]`.
        num_close: How many values of each row are close to one, of shape `[num_rows]`.
    """

    def __init__(
        self,
        row: Tensor,
        threshold: Tensor,
        margin: Tensor,
        max_close: Tensor,
        num_keys: int,
        scratch: Scratch,
    ) -> None:
        self.row, self.threshold, self.max_close = row, threshold, max_close
        self.scratch = scratch
        self.low = (threshold - margin[row]).short()
        self.high = (threshold + margin[row]).short()
        self.entries = Rows(row, margin.numel())
        self.num_above = torch.zeros_like(row)
        self.num_close = torch.zeros_like(max_close)
        self._prepare(num_keys)

    @abstractmethod
    def _prepare(self, num_keys: int) -> None:
        """Prepares to count so many values at once."""

    @property
    def is_given_up(self) -> Tensor:
        """Which rows are given up, of shape `[num_rows]`. Their counts are not valid."""
        return self.num_close > self.max_close

    @abstractmethod
    def add(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Counts values by their integer parts, and finds those that are close to a threshold.

        Args:
            keys (torch.Tensor): Integer parts of shape `[num_rows, num_keys]`, as `torch.int16`.
                Their number is a multiple of :obj:`STRETCH`.

        Returns:
            What the values are close to, and their columns, of shape `[num_found]` each.
        """

    @abstractmethod
    def rows(self, found: Tensor) -> Tensor:
        """Returns the rows of what values are close to."""

    @abstractmethod
    def decide(self, found: Tensor, value: Tensor, margin: Tensor) -> tuple[Tensor, Tensor]:
        """Counts values that are close to a threshold.

        Args:
            found (torch.Tensor): What they are close to, of shape `[num_found]`.
            value (torch.Tensor): The values, of shape `[num_found]`.
            margin (torch.Tensor): How far each has to be from a threshold to tell on which side it
                is, of shape `[num_found]`.

        Returns:
            Pairs that this does not tell: thresholds, and the indices of values.
        """

    def left(self, found: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        """Leaves out what was found in rows that are given up, and what belongs to it."""
        is_given_up = self.is_given_up
        if not is_given_up.any():
            return found, *values
        left = (~is_given_up[self.rows(found)]).nonzero().squeeze(1)
        return tuple(x[left] for x in (found, *values))


class Comparison(ThresholdCount):
    """Compares every integer with every threshold of its row.

    It counts the integers above the low and the high end of each threshold, in short stretches. It
    only looks into the stretches in which the two counts differ.
    """

    def _prepare(self, num_keys: int) -> None:
        # No integer is above the empty slots, or next to them.
        self.lows, self.highs = (
            self.entries.side_by_side(values, LARGEST + 1)[:, :, None, None]
            for values in (self.low, self.high)
        )

    def add(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        num_stretches = keys.size(1) // STRETCH
        above, close = self._counts(keys.view(keys.size(0), 1, num_stretches, STRETCH))
        self.num_above += unpack_counts(above.sum(dim=2))[self.row, self.entries.slot]
        self.num_close += unpack_counts(close.sum(dim=2)).sum(dim=1)
        row, slot, stretch = close.nonzero(as_tuple=True)
        found, row, stretch = self.left(self.entries.ptr[row] + slot, row, stretch)
        value = keys.view(-1, STRETCH).index_select(0, row * num_stretches + stretch)
        is_close = torch.empty_like(value)
        torch.ge(value, self.low[found].unsqueeze(1), out=is_close)
        is_close &= torch.le(value, self.high[found].unsqueeze(1), out=value)
        index, column = _nonzero(is_close)
        return found[index], stretch[index] * STRETCH + column

    def _counts(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Counts in every stretch what is above thresholds, and what is next to them.

        Returns:
            Packed counts, of shape `[num_rows, num_slots, num_stretches]` each.
        """
        num_rows, num_slots = self.lows.shape[:2]
        shape = (num_rows, num_slots, keys.size(2))
        above = self.scratch("comparison.above", shape, torch.long)
        close = self.scratch("comparison.close", shape, torch.long)
        num_comparisons = at_once(NUM_COMPARISONS_AT_ONCE, keys.device)
        max_rows = max(1, num_comparisons // (num_slots * keys.size(2) * STRETCH))
        rows_at_once = min(num_rows, max_rows)
        flags = self.scratch("comparison.flags", (rows_at_once, *shape[1:], STRETCH), keys.dtype)
        for start in range(0, num_rows, rows_at_once):
            rows = slice(start, start + rows_at_once)
            is_beyond = flags[: keys[rows].size(0)]
            pack_counts(torch.ge(keys[rows], self.lows[rows], out=is_beyond), out=close[rows])
            pack_counts(torch.gt(keys[rows], self.highs[rows], out=is_beyond), out=above[rows])
        close -= above
        return above, close

    def rows(self, found: Tensor) -> Tensor:
        return self.row[found]

    def decide(self, found: Tensor, value: Tensor, margin: Tensor) -> tuple[Tensor, Tensor]:
        difference = value - self.threshold[found]
        self.num_above += torch.bincount(found[difference > margin], minlength=self.row.numel())
        index = (difference.abs_() <= margin).nonzero().squeeze(1)
        return found[index], index


class Histogram(ThresholdCount):
    """Counts integers in buckets, and only looks into those buckets that a threshold touches."""

    def _prepare(self, num_keys: int) -> None:
        # More buckets than integers would gain little.
        self.num_bits = min(_MAX_BITS, max(_MIN_BITS, num_keys.bit_length()))
        row = self.row
        low, self.bucket = (self._buckets(x, torch.empty_like(row)) for x in (self.low, self.high))
        shape = (self.num_close.numel(), 2**self.num_bits)
        self.is_touched = torch.zeros(shape, dtype=torch.bool, device=row.device)
        for step in range(math.ceil(2 * LARGEST_MARGIN) + 1):
            self.is_touched[row, torch.minimum(low + step, self.bucket)] = True

    def add(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        one = torch.ones(1, 1, dtype=torch.int32, device=keys.device)
        count = self.scratch("histogram.count", self.is_touched.shape, one.dtype)
        found = []
        rows_at_once = max(1, at_once(NUM_KEYS_AT_ONCE, keys.device) // keys.size(1))
        for start in range(0, keys.size(0), rows_at_once):
            rows = slice(start, start + rows_at_once)
            shape, is_touched = keys[rows].shape, self.is_touched[rows]
            bucket = self._buckets(keys[rows], self.scratch("histogram.bucket", shape, torch.long))
            count[rows].zero_().scatter_add_(1, bucket, one.expand(shape))
            count[rows].masked_fill_(is_touched, 0).cumsum_(1)
            row, column = _nonzero(is_touched.gather(1, bucket))
            found.append((row + start, column))
        num_apart = count[:, -1].long()
        self.num_above += num_apart[self.row] - count[self.row, self.bucket]
        self.num_close += keys.size(1) - num_apart
        row, column = self.left(*(torch.cat(parts) for parts in zip(*found, strict=True)))
        return row, column

    def _buckets(self, keys: Tensor, out: Tensor) -> Tensor:
        return out.copy_(keys >> (_MAX_BITS - self.num_bits)).add_(2 ** (self.num_bits - 1))

    def rows(self, found: Tensor) -> Tensor:
        return found

    def decide(self, found: Tensor, value: Tensor, margin: Tensor) -> tuple[Tensor, Tensor]:
        # All rows are searched at once: each has a range of numbers of its own.
        threshold, order = (self.threshold + self.row * _SPAN_OF_ROW).sort()
        value = value.double() + found * _SPAN_OF_ROW
        first = torch.searchsorted(threshold, value - margin)
        # In front of the first threshold of a row, there is one more place for a value.
        ptr = self.entries.ptr
        num_places = self.row.numel() + ptr.numel()
        num_up_to = torch.bincount(first + found, minlength=num_places).cumsum(0)
        place = torch.arange(self.row.numel(), device=self.row.device) + self.row
        self.num_above[order] += num_up_to[ptr[1:][self.row] + self.row] - num_up_to[place]
        above = value + margin
        behind = torch.cat([threshold, threshold.new_tensor([torch.inf])])
        index = (behind[first] <= above).nonzero().squeeze(1)
        first = first[index]
        num_close = torch.searchsorted(threshold, above[index], right=True) - first
        self.num_close.scatter_add_(0, found[index], num_close)
        _, index, first, num_close = self.left(found[index], index, first, num_close)
        number = torch.arange(int(num_close.sum()), device=found.device)
        number += (first - num_close.cumsum(0) + num_close).repeat_interleave(num_close)
        return order[number], index.repeat_interleave(num_close)


def _nonzero(flags: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the few flags of a matrix that are set: their rows and columns."""
    # As many flags as 8 bytes hold are looked at together.
    size = 8 // flags.element_size()
    row, group = flags.view(torch.int64).nonzero(as_tuple=True)
    groups = flags.view(flags.size(0), flags.size(1) // size, size)
    found, column = groups[row, group].nonzero(as_tuple=True)
    return row[found], group[found] * size + column
