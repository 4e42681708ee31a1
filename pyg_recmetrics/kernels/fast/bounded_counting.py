r"""All ranks of few items among many, from scores in single precision and a bound on their error.

A product in single precision takes half the time of one in double precision. The kernel counts
16-bit integers: the scores of a user are shifted and scaled such that those of the relevant items
span the range of these integers. Scores that lie outside are clamped, and fractions are cut off,
which is monotone. Let :math:`\alpha_u` be the bound on the error of the product
(:mod:`~pyg_recmetrics.kernels.fast.bounds`), :math:`z = \text{int16}(x)` the integer of the score
of an item, and :math:`c` the exact score of a relevant item. Then

- :math:`z > \text{int16}(c + \alpha_u)` proves that the item ranks above the relevant one,
- :math:`z < \text{int16}(c - \alpha_u)` proves that it ranks below.

About one item in 10,000 lies between. For most of these, the score in single precision decides,
since the bound for the item at hand is tighter. The few others are compared by their exact scores.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import at_once
from pyg_recmetrics.kernels.entries import Entries, UserItems
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.fast.bounds import ErrorBound, error_in_single, rounding_in_single
from pyg_recmetrics.kernels.fast.matrix_products import matrix_product, one_of_few_from
from pyg_recmetrics.kernels.fast.packed_counts import MAX_FLAGS
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.fast.threshold_counting import (
    LARGEST,
    LARGEST_MARGIN,
    LARGEST_THRESHOLD,
    MASKED,
    STRETCH,
    Comparison,
    Histogram,
    ThresholdCount,
)
from pyg_recmetrics.kernels.scratch import Scratch

#: If a user has more relevant items than this, histograms are faster than comparisons.
MAX_COMPARISONS = 64

#: How many scores are computed at once, so that they stay in the caches until they are counted.
NUM_SCORES_IN_TILE = 2**21

#: How many users are taken at once. With more of them, the product gets no faster.
MAX_ROWS = 1024

#: The same where histograms are made. Each of them has to be over many items.
NUM_SCORES_IN_HISTOGRAMS = 2**22
MAX_ROWS_OF_HISTOGRAMS = 64

#: How many items may be undecided for a user, which are compared by their exact scores: so many per
#: relevant item, some more, and one of so many items. A user with more is left unsettled. These
#: numbers decide about time and memory alone, and not about ranks.
_CLOSE_PER_RELEVANT, _SPARE_CLOSE, _ITEMS_PER_CLOSE = 32, 256, 256

#: More than three times 2**-24, which rounding changes a number by in single precision.
_ROUNDING_OF_SHIFT = 2.0**-22

#: How many relevant items are ranked at once, to bound the memory of what is close to them.
NUM_RELEVANT = 2**16


class BoundedCount:
    """Finds all ranks, however deep, from scores in single precision.

    Args:
        items (RoundedItems): The items, in single precision.
    """

    def __init__(self, items: RoundedItems) -> None:
        self.items = items

    def num_rows(self, depth: int) -> int:
        """Returns how many users are ranked at once, if they are ranked down to `depth`."""
        max_rows = MAX_ROWS if depth <= MAX_COMPARISONS else MAX_ROWS_OF_HISTOGRAMS
        return max(1, at_once(min(max_rows, NUM_RELEVANT // depth), self.items.factors.device))

    def ranks(
        self,
        user: Tensor,
        depth: Tensor,
        relevant: UserItems,
        score: Tensor,
        seen: UserItems,
        scratch: Scratch,
    ) -> tuple[Ranks, Tensor]:
        """Ranks the relevant items of some users.

        Args:
            user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`.
            depth (torch.Tensor): How deep each of them is ranked, of shape `[num_rows]`.
            relevant (tuple): The rows and the items to rank, of shape `[num_relevant]` each, sorted
                by row. What is not among the items of the count has a number outside of theirs.
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
        factors, norm = self.items.factors, self.items.norm
        scaled = factors.for_single(user)
        # The exact score and the scaled user are rounded, too.
        bound = ErrorBound(scaled, scaled.float(), rounding_in_single(user.size(1) + 2))
        # The shift is rounded, and then a difference of up to twice its size, or that of a score. A
        # relevant item that is not counted may score far above all that are.
        largest = (bound.norm * norm[0]).scatter_reduce_(0, row, score.double().abs(), "amax")
        error_of_shift = _ROUNDING_OF_SHIFT * largest
        error = bound.of(norm[0], error_in_single(norm[0])) + error_of_shift
        middle, scale = _middle_and_scale(score, row, error)
        is_many = int(torch.bincount(row).max()) > MAX_COMPARISONS
        max_scores = NUM_SCORES_IN_HISTOGRAMS if is_many else NUM_SCORES_IN_TILE
        max_scores = at_once(max_scores, row.device)
        num_columns = -(-norm.numel() // STRETCH) * STRETCH
        max_width = min(max_scores // one_of_few_from(depth.numel()), num_columns, MAX_FLAGS)
        width = max(1, max_width // STRETCH) * STRETCH
        own = (score - middle[row].double()) * scale[row]
        count = (Histogram if is_many else Comparison)(
            row, own, error * scale, _max_close(depth, norm.numel()), width, scratch
        )
        tiles = self._tiles(scaled, middle, scale, seen, width, scratch)
        close, other, value = _count(count, tiles)
        at_row = count.rows(close)
        margin = bound.of(norm[other], error_in_single(norm[other]), at_row)
        margin += error_of_shift[at_row]
        ranked, index = count.decide(close, value, margin * scale[at_row])
        pairs = ranked, row[ranked], self.items.item[other[index]]
        return self._ranks_among(pairs, user, item, score, count.num_above), count.is_given_up

    def _tiles(
        self,
        user: Tensor,
        middle: Tensor,
        scale: Tensor,
        seen: UserItems,
        width: int,
        scratch: Scratch,
    ) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Scores one tile of the items after the other.

        Yields:
            The first item, shifted and scaled scores of shape `[num_rows, width]`, and 16-bit
            integers of the same shape.
        """
        user = (user * scale.unsqueeze(1)).float()
        shift = (middle * scale).float().unsqueeze(1)
        masked = Entries(seen[0], self.items.column[seen[1]], user.size(0))
        num_columns = self.items.item.numel()
        for start in range(0, num_columns, width):
            end = min(start + width, -(-num_columns // STRETCH) * STRETCH)
            items = self.items.rounded(start, end)
            scores = matrix_product(user, items, scratch, "bounded_count.scores")
            scores.sub_(shift).clamp_(-LARGEST, LARGEST)
            keys = scratch("bounded_count.keys", scores.shape, torch.int16).copy_(scores)
            keys[:, max(0, num_columns - start) :] = MASKED
            masked.fill_(keys, slice(0, user.size(0)), start, MASKED)
            yield start, scores, keys

    def _ranks_among(
        self,
        close: tuple[Tensor, Tensor, Tensor],
        user: Tensor,
        item: Tensor,
        score: Tensor,
        num_above: Tensor,
    ) -> Ranks:
        """Ranks items of known score, by comparing them with the exact scores of close ones.

        Args:
            close (tuple): What is not proved to rank above or below: the number of an item to
                rank, the row of its user, and the other item.
            user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`.
            item (torch.Tensor): The items to rank, of shape `[num_ranked]`.
            score (torch.Tensor): Their exact scores, of shape `[num_ranked]`.
            num_above (torch.Tensor): How many items are proved to score higher than each.
        """
        ranked, row, other = close
        is_other = (other != item[ranked]).nonzero().squeeze(1)
        ranked, row, other = (values[is_other] for values in close)
        others_score, own = self.items.factors.exact_scores(user, row, other), score[ranked]
        is_tied = others_score == own
        is_before = is_tied & (other < item[ranked])
        above, tied, before = (
            torch.bincount(ranked[flags], minlength=item.numel())
            for flags in (others_score > own, is_tied, is_before)
        )
        num_above = num_above + above
        return Ranks(1 + num_above + before, num_above, tied)


def _count(
    count: ThresholdCount, tiles: Iterator[tuple[int, Tensor, Tensor]]
) -> tuple[Tensor, ...]:
    """Counts tile by tile.

    Returns:
        What some values are close to, their columns, and the values, of shape `[num_found]` each.
    """
    found = []
    for first, scores, keys in tiles:
        close, column = count.add(keys)
        found.append((close, column + first, scores[count.rows(close), column]))
    return count.left(*map(torch.cat, zip(*found, strict=True)))


def _max_close(depth: Tensor, num_items: int) -> Tensor:
    """Returns how many undecided items a user may have before it is left unsettled."""
    return _CLOSE_PER_RELEVANT * depth + _SPARE_CLOSE + num_items // _ITEMS_PER_CLOSE


def _middle_and_scale(score: Tensor, row: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
    """Returns what to subtract from the scores of each row, and what to multiply them by then.

    The scores of relevant items then span the range of thresholds, unless their error is too large.
    """
    least, most = (
        torch.zeros_like(error, dtype=score.dtype).scatter_reduce_(
            0, row, score, reduce, include_self=False
        )
        for reduce in ("amin", "amax")
    )
    middle = least / 2 + most / 2
    reach = (most.double() - least) / 2 + 2 * error
    return middle, torch.minimum(LARGEST_THRESHOLD / reach, LARGEST_MARGIN / error)
