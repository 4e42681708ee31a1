r"""All ranks of few items among many, from scores in single precision and a bound on their error.

A product in single precision takes half the time of one in double precision. The kernel counts
16-bit integers: the scores of a user are shifted and scaled such that those of the relevant items
span the range of these integers. Scores that lie outside are clamped, and fractions are cut off,
which is monotone. Let :math:`\alpha_u` be the bound on the error of the product
(:mod:`~pyg_recmetrics.kernels.fast.rounded_items`), :math:`z = \text{int16}(x)` the integer of the
score of an item, and :math:`c` the exact score of a relevant item. Then

- :math:`z > \text{int16}(c + \alpha_u)` proves that the item ranks above the relevant one,
- :math:`z < \text{int16}(c - \alpha_u)` proves that it ranks below.

About one item in 10,000 lies between. For most of these, the score in single precision decides,
since the bound for the item at hand is tighter. The few others are compared by their exact scores.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import Entries, UserItems, in_parts, nonzero
from pyg_recmetrics.kernels.exact.ranks import Ranks, ranks_among_close
from pyg_recmetrics.kernels.fast.rounded_items import (
    ErrorBound,
    RoundedItems,
    error_in_single,
    matrix_product,
    one_of_few_from,
    rounding_in_single,
)

# Fast counting of comparisons between 16-bit integers.
#
# The result of a comparison is stored as a flag: a zero or a one in an integer of the same size as
# the numbers that were compared. A processor makes such flags faster than booleans, and adds them
# up faster still: four 16-bit flags are read as one 64-bit integer and added at once. The result
# *packs* four counts into one number.

#: A packed count cannot overflow as long as it is over no more flags than this.
MAX_FLAGS = 2**16


def pack_counts(flags: Tensor, out: Tensor | None = None) -> Tensor:
    """Counts the ones along the last dimension.

    Args:
        flags (torch.Tensor): Zeros and ones of shape `[..., num_flags]`, as `torch.int16`. Their
            number is a multiple of four, and at most :obj:`MAX_FLAGS`.
        out (torch.Tensor, optional): The tensor to write the result to. (default: `None`)

    Returns:
        One number for four counts, each over a quarter of the flags, of shape `[...]`.
    """
    return torch.sum(flags.view(torch.int64), dim=-1, out=out)


def unpack_counts(packed: Tensor) -> Tensor:
    """Adds up the four counts in each number."""
    return packed.unsqueeze(-1).view(torch.int16).sum(dim=-1)


# Counting the 16-bit integers above thresholds, and finding those that are next to one.

#: How many integers :class:`ThresholdCount` looks at together, to find those next to a
#: threshold.
STRETCH = 128

#: How many comparisons are done at once, so that their flags stay in the caches.
NUM_COMPARISONS_AT_ONCE = 2**20

#: The largest integer that can be counted, and the lowest is its negative.
LARGEST = 2**15 - 2

#: The largest threshold. What it is compared with is not clamped to the largest integer.
LARGEST_THRESHOLD = 2**15 - 2**10

#: How far a threshold reaches to both sides at most. It then touches few integers.
LARGEST_MARGIN = 1.49

#: Takes the place of integers that must not be counted.
MASKED = -(2**15)


class ThresholdCount:
    """Counts the values above thresholds, from their integer parts as far as these can tell.

    It compares every integer with every threshold of its row, as a processor compares dozens of
    them at once: it counts those above the low and the high end of each threshold, in short
    stretches. It only looks into the stretches in which the two counts differ.

    Args:
        rows (Entries): What has a threshold, sorted by row.
        threshold (torch.Tensor): The thresholds, of shape `[num_thresholds]`.
        margin (torch.Tensor): How far a value has to be from a threshold for its integer part to
            tell on which side it is, of shape `[num_rows]`.
        max_close (torch.Tensor): How many values of a row may be close to its thresholds, of shape
            `[num_rows]`. A row with more is given up.

    Attributes:
        num_above: How many values are above each threshold, of shape `[num_thresholds]`.
        num_close: How many values of each row are close to one, of shape `[num_rows]`.
    """

    def __init__(self, rows: Entries, threshold: Tensor, margin: Tensor, max_close: Tensor) -> None:
        self.rows, self.row = rows, rows.row
        self.threshold, self.max_close = threshold, max_close
        reach = margin[self.row]
        self.low = (threshold - reach).short()
        self.high = (threshold + reach).short()
        self.num_above = torch.zeros_like(self.row)
        self.num_close = torch.zeros_like(max_close)
        # No integer is above the empty slots, or next to them.
        self.lows = rows.side_by_side(self.low, LARGEST + 1)[:, :, None, None]
        self.highs = rows.side_by_side(self.high, LARGEST + 1)[:, :, None, None]

    @property
    def is_given_up(self) -> Tensor:
        """Which rows are given up, of shape `[num_rows]`. Their counts are not valid."""
        return self.num_close > self.max_close

    def add(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Counts values by their integer parts, and finds those that are close to a threshold.

        Args:
            keys (torch.Tensor): Integer parts of shape `[num_rows, num_keys]`, as `torch.int16`.
                Their number is a multiple of :obj:`STRETCH`.

        Returns:
            The thresholds that values are close to, and their columns, of shape `[num_found]` each.
        """
        num_stretches = keys.size(1) // STRETCH
        above, close = self._counts(keys.view(keys.size(0), 1, num_stretches, STRETCH))
        self.num_above += unpack_counts(above.sum(dim=2))[self.row, self.rows.slot]
        self.num_close += unpack_counts(close.sum(dim=2)).sum(dim=1)
        row, slot, stretch = close.nonzero(as_tuple=True)
        found, row, stretch = self.left(self.rows.ptr[row] + slot, row, stretch)
        value = keys.view(-1, STRETCH).index_select(0, row * num_stretches + stretch).numpy()
        low = self.low[found].unsqueeze(1).numpy()
        high = self.high[found].unsqueeze(1).numpy()
        index, column = nonzero((value >= low) & (value <= high))
        return found[index], stretch[index] * STRETCH + column

    def _counts(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Counts in every stretch what is above thresholds, and what is next to them.

        Returns:
            Packed counts, of shape `[num_rows, num_slots, num_stretches]` each.
        """
        num_rows, num_slots, num_stretches = keys.size(0), self.lows.size(1), keys.size(2)
        above = keys.new_empty((num_rows, num_slots, num_stretches), dtype=torch.long)
        at_least = torch.empty_like(above)
        max_rows = max(1, NUM_COMPARISONS_AT_ONCE // (num_slots * num_stretches * STRETCH))
        flags = keys.new_empty((min(num_rows, max_rows), num_slots, num_stretches, STRETCH))
        parts = in_parts(max_rows, keys, self.lows, self.highs, at_least, above)
        for of_rows, low, high, num_at_least, num_above in parts:
            is_beyond = flags[: of_rows.size(0)]
            pack_counts(torch.ge(of_rows, low, out=is_beyond), out=num_at_least)
            pack_counts(torch.gt(of_rows, high, out=is_beyond), out=num_above)
        return above, at_least.sub_(above)

    def decide(self, found: Tensor, value: Tensor, margin: Tensor) -> Tensor:
        """Counts values that are close to a threshold.

        Args:
            found (torch.Tensor): The thresholds that they are close to, of shape `[num_found]`.
            value (torch.Tensor): The values, of shape `[num_found]`.
            margin (torch.Tensor): How far each has to be from a threshold to tell on which side it
                is, of shape `[num_found]`.

        Returns:
            The indices of values that this does not tell.
        """
        difference = value - self.threshold[found]
        self.num_above += torch.bincount(found[difference > margin], minlength=self.row.numel())
        return (difference.abs_() <= margin).nonzero().squeeze(1)

    def left(self, found: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        """Leaves out what was found in rows that are given up, and what belongs to it."""
        is_given_up = self.is_given_up
        if not is_given_up.any():
            return found, *values
        left = (~is_given_up[self.row[found]]).nonzero().squeeze(1)
        return tuple(x[left] for x in (found, *values))


#: How many scores are computed at once, so that they stay in the caches until they are counted, if
#: no user has more than so many relevant items.
NUM_SCORES_IN_TILE, _FEW_RELEVANT = 2**21, 64

#: How many users are taken at once. With more of them, the product gets no faster.
MAX_ROWS = 1024

#: How many items may be undecided for a user, which are compared by their exact scores: so many per
#: relevant item, some more, and one of so many items. A user with more is left unsettled. These
#: numbers decide about time and memory alone, and not about ranks.
_CLOSE_PER_RELEVANT, _SPARE_CLOSE, _ITEMS_PER_CLOSE = 32, 256, 256

#: More than three times 2**-24, which rounding changes a number by in single precision.
_ROUNDING_OF_SHIFT = 2.0**-22

#: How many relevant items are ranked at once, to bound the memory of what is close to them.
NUM_RELEVANT = 2**16


def rows_to_count(depth: int) -> int:
    """Returns how many users are counted at once, if they have up to `depth` relevant items."""
    return max(1, min(MAX_ROWS, NUM_RELEVANT // depth))


def bounded_ranks(
    user: Tensor,
    items: RoundedItems,
    depth: Tensor,
    relevant: UserItems,
    score: Tensor,
    seen: UserItems,
    scratch: Scratch,
) -> tuple[Ranks, Tensor]:
    """Ranks the relevant items of some users, however deep.

    Args:
        user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`.
        items (RoundedItems): The items, in single precision.
        depth (torch.Tensor): How deep each of them is ranked, of shape `[num_rows]`.
        relevant (tuple): The rows and the items to rank, of shape `[num_relevant]` each, sorted by
            row. What is not among the items that are counted has a number outside of theirs.
        score (torch.Tensor): The exact scores of these, of shape `[num_relevant]`.
        seen (tuple): The rows and the items that must not be retrieved.
        scratch (Scratch): The buffers to compute in.

    Returns:
        The ranks of the relevant items, and which users could not be settled, of shape
        `[num_rows]`. The ranks of these users are not valid.
    """
    row, item = relevant
    if row.numel() == 0:
        return Ranks.unknown(item), torch.zeros_like(depth, dtype=torch.bool)
    factors, norm = items.factors, items.norm
    scaled = factors.for_single(user)
    # The exact score and the scaled user are rounded, too.
    bound = ErrorBound(scaled, scaled.float(), rounding_in_single(user.size(1) + 2))
    # The shift is rounded, and then a difference of up to twice its size, or that of a score. A
    # relevant item that is not counted may score far above all that are.
    largest = (bound.norm * norm[0]).scatter_reduce_(0, row, score.double().abs(), "amax")
    error_of_shift = _ROUNDING_OF_SHIFT * largest
    error = bound.of(norm[0], error_in_single(norm[0])) + error_of_shift
    middle, scale = _middle_and_scale(score, row, error)
    threshold = (score - middle[row].double()) * scale[row]
    rows, max_close = Entries(row, item, depth.numel()), _max_close(depth, norm.numel())
    count = ThresholdCount(rows, threshold, error * scale, max_close)
    num_slots = max(_FEW_RELEVANT, count.lows.size(1))
    num_scores = NUM_SCORES_IN_TILE * _FEW_RELEVANT // num_slots
    masked = Entries(seen[0], items.column[seen[1]], depth.numel())
    single = (scaled * scale.unsqueeze(1)).float()
    shift = (middle * scale).float().unsqueeze(1)
    thresholds, columns, values = [], [], []
    for start, scores, keys in _tiles(single, shift, items, masked, num_scores, scratch):
        close, column = count.add(keys)
        thresholds.append(close)
        columns.append(column + start)
        values.append(scores[row[close], column])
    found = torch.cat(thresholds), torch.cat(columns), torch.cat(values)
    close, other, value = count.left(*found)
    at_row = row[close]
    margin = bound.of(norm[other], error_in_single(norm[other]), at_row) + error_of_shift[at_row]
    index = count.decide(close, value, margin * scale[at_row])
    close, other = close[index], items.item[other[index]]
    is_other = (other != item[close]).nonzero().squeeze(1)
    close, other = close[is_other], other[is_other]
    scores = factors.exact_scores(user, row[close], other)
    ranks = ranks_among_close(close, other, item[close], scores, score[close], count.num_above)
    return ranks, count.is_given_up


def _tiles(
    user: Tensor,
    shift: Tensor,
    items: RoundedItems,
    masked: Entries,
    num_scores: int,
    scratch: Scratch,
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Scores one tile of the items after the other.

    Yields:
        The first item, shifted scores of shape `[num_rows, width]`, and 16-bit integers of the same
        shape.
    """
    num_rows, num_items = user.size(0), items.item.numel()
    last = -(-num_items // STRETCH) * STRETCH
    width = min(num_scores // one_of_few_from(num_rows), last, MAX_FLAGS)
    width = max(1, width // STRETCH) * STRETCH
    for start in range(0, num_items, width):
        rounded = items.rounded(start, min(start + width, last))
        scores = matrix_product(user, rounded, scratch, "bounded_count.scores")
        scores.sub_(shift).clamp_(-LARGEST, LARGEST)
        keys = scratch("bounded_count.keys", tuple(scores.shape), torch.int16).copy_(scores)
        keys[:, max(0, num_items - start) :] = MASKED
        masked.fill_(keys, slice(0, num_rows), start, MASKED)
        yield start, scores, keys


def _max_close(depth: Tensor, num_items: int) -> Tensor:
    """Returns how many undecided items a user may have before it is left unsettled."""
    return _CLOSE_PER_RELEVANT * depth + _SPARE_CLOSE + num_items // _ITEMS_PER_CLOSE


def _middle_and_scale(score: Tensor, row: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
    """Returns what to subtract from the scores of each row, and what to multiply them by then.

    The scores of relevant items then span the range of thresholds, unless their error is too large.
    """
    nothing = torch.zeros_like(error, dtype=score.dtype)
    least = nothing.scatter_reduce(0, row, score, "amin", include_self=False)
    most = nothing.scatter_reduce(0, row, score, "amax", include_self=False)
    middle = least / 2 + most / 2
    reach = (most.double() - least) / 2 + 2 * error
    return middle, torch.minimum(LARGEST_THRESHOLD / reach, LARGEST_MARGIN / error)
