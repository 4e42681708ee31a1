r"""A search in strips of columns, where a product takes longer than a look at its results.

Products in single precision take most of the time of a search
(:mod:`~pyg_recmetrics.kernels.fast.searching`). So this one looks at no column twice, unless too
much is found in it, and learns what is within reach before it looks further. It keeps what it finds
in the sieve. From the scores of what was found, and of what is relevant, follows the reach of each
user: as many items as the user is ranked deep have the score of the last of them, within its bound.
Then the search looks at three times as many columns as before, and learns again.

It looks at a strip of columns at once, for many users. Libraries copy items for every product,
which takes less time if more users share a copy, and what is looked at has to stay in the caches.
Nothing is masked in a strip. Masked items that were found are dropped afterwards.

The first columns mislead if they have low scores, as items that everybody dislikes have. Users for
whom too much is found are searched again as the other search does.
"""

from functools import cached_property

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import Scratch, at_once
from pyg_recmetrics.kernels.entries import Entries, max_id
from pyg_recmetrics.kernels.fast.fast_scores import FastScores
from pyg_recmetrics.kernels.fast.matrix_products import one_of_few_to
from pyg_recmetrics.kernels.fast.row_wise import are_among, largest_values, sorted_numbers
from pyg_recmetrics.kernels.fast.searching import Search, rounded_up_to_join, width_to_join

#: How many values are looked at at once: fewer than by the other search, as all of them are looked
#: at while they are in the caches.
NUM_VALUES_OF_STRIP = 2**21

#: How many columns a strip has, if there are many users.
NUM_COLUMNS_OF_STRIP = 2**11

#: After each round, so many times as many columns have been looked at as before it.
_GROWTH = 4


class StripSearch(Search):
    """Searches products in single precision for the items that may matter, strip by strip.

    The arguments are those of the class it derives from. All values are in the order of their
    scores, and may be looked at in any order.
    """

    def __init__(
        self,
        scores: FastScores,
        depth: Tensor,
        relevant: tuple[Tensor, Tensor],
        masked: tuple[Tensor, Tensor],
        makes_lists: bool,
        scratch: Scratch,
    ) -> None:
        super().__init__(scores, depth, relevant, masked, makes_lists, scratch)
        row = depth[:0]
        #: Rows and columns that were found since the last look at their scores, and how many.
        self._new, self._num_new = [(row, row)], torch.zeros_like(depth)
        #: Rows, items and scores that were found before.
        self._found: list[tuple[Tensor, Tensor, Tensor]] = []
        #: The highest known scores, best first, of shape `[num_rows, ?]`.
        is_candidate = self.relevant.side_by_side(self.relevant.column, -1) >= 0
        self._top = self.relevant_scores.masked_fill(~is_candidate, -torch.inf)
        #: How much more may be found for a user, since it is dropped again.
        self._num_spare = torch.zeros_like(depth)
        self._end_of_sieve = 0

    def _find(self, is_sieved: bool) -> tuple[Tensor, Entries]:
        if self._end_of_sieve == 0:
            return super()._find(is_sieved)
        self._learn_from_new()
        end = rounded_up_to_join(self.scores.item.numel())
        start = self._end_of_sieve
        while start < end:
            start = self._look_at_strips(start, min(_GROWTH * start, end))
            self._learn_from_new()
        self._look_at_crowded()
        return self._all_found()

    def _sieve_part(self, rows: Tensor, part: slice, width: int) -> None:
        places = self._places_in_part(rows, self.relevant, self.masked, part, 0, width)
        self._note(rows, *places)
        self._end_of_sieve = width

    def _look_at_strips(self, start: int, end: int) -> int:
        """Looks at some columns, each row as far as an item may be within its reach.

        Returns:
            The end of the last strip, which may lie behind the given one.
        """
        threshold = self._threshold(slice(None))
        width = self.scores.num_within_reach(threshold).masked_fill_(threshold == torch.inf, 0)
        width, rows = width.sort(descending=True, stable=True)
        num_wide, widest = int((width > start).sum()), max_id(width)
        if num_wide == 0:
            return end
        value = self._value_of_threshold(rows)
        num_values = at_once(NUM_VALUES_OF_STRIP, rows.device)
        # A strip has more columns if there are few users.
        num_columns = max(NUM_COLUMNS_OF_STRIP, num_values // num_wide)
        num_columns = min(num_columns, rounded_up_to_join(min(end, widest) - start))
        num_columns = max(1, one_of_few_to(num_columns // width_to_join())) * width_to_join()
        num_rows = max(1, one_of_few_to(num_values // num_columns))
        starts = torch.arange(start, min(end, widest), num_columns, device=rows.device)
        nums_left = (width > starts.unsqueeze(1)).sum(dim=1)
        self._num_spare = self.masked.ptr.diff() + self.relevant.ptr.diff()
        for first, num_left in zip(starts.tolist(), nums_left.tolist(), strict=True):
            last = min(first + num_columns, rounded_up_to_join(self.scores.item.numel()))
            for number in range(0, num_left, num_rows):
                part = slice(number, min(number + num_rows, num_left))
                self._look_at_strip(rows[part], value[part], first, last)
        self._num_spare.zero_()
        return max(end, start + starts.numel() * num_columns)

    def _look_at_strip(self, rows: Tensor, value: Tensor, start: int, end: int) -> None:
        """Finds the values of some rows and columns that are not below that of the threshold."""
        blocks = self.scores.blocks(rows, start, end, self.scratch)
        row, column = self._find_places(rows, blocks, blocks.maxima(), value)
        self._note(rows, row, column + start)

    def _note(self, rows: Tensor, row: Tensor, column: Tensor) -> None:
        """Notes what was found for some rows."""
        num_new = self._num_new.index_select(0, rows)
        num_new += torch.bincount(row, minlength=rows.numel())
        self._num_new.index_copy_(0, rows, num_new)
        # One user with many items would make the rows of all others as long.
        row, column = self._drop_crowded(rows, num_new, row, column)
        self._new.append((rows.index_select(0, row), column))

    def _max_found(self, rows: Tensor | slice) -> Tensor:
        most: Tensor = super()._max_found(rows) + self._num_spare[rows]
        return most

    def _learn_from_new(self) -> None:
        """Learns from the scores of what was found since the last call what is within reach."""
        row, column = (torch.cat(parts) for parts in zip(*self._new, strict=True))
        self._new, self._num_new = [(row[:0], row[:0])], torch.zeros_like(self.depth)
        num_columns = self.scores.item.numel()
        place = sorted_numbers(row * num_columns + column)
        place = place[~are_among(self._hidden, place)]
        row = place.div(num_columns, rounding_mode="floor")
        row, place = self._drop_crowded_of_all(row, place)
        item = self.scores.item.index_select(0, place - row * num_columns)
        items = Entries(row, item, self.depth.numel())
        rows = torch.arange(self.depth.numel(), device=row.device)
        score = self.scores.of_items(rows, items)
        scores = torch.cat([self._top, items.side_by_side(score, -torch.inf)], 1)
        self._top = largest_values(scores, self.max_depth)
        last = (self.depth - 1).clamp(max=self._top.size(1) - 1).unsqueeze(1)
        reach = self._top.gather(1, last).squeeze(1).double().sub_(self.scores.error_of_items)
        reach.masked_fill_(self.depth > self._top.size(1), -torch.inf)
        self.reach = self.reach.maximum(reach)
        self._found.append((row, items.column, score))

    @cached_property
    def _hidden(self) -> Tensor:
        """Where what is masked or relevant is, row by row, in ascending order."""
        places = []
        for entries in (self.masked, self.relevant):
            has_column = (entries.column >= 0).nonzero().squeeze(1)
            row, column = entries.row[has_column], entries.column[has_column]
            places.append(row * self.scores.item.numel() + column)
        return sorted_numbers(torch.cat(places))

    def _look_at_crowded(self) -> None:
        """Looks again, as the other search does, at rows in which too much was found."""
        is_crowded = self.is_unsettled
        if not bool(is_crowded.any()):
            return
        self._found = [
            (row[left], item[left], score[left])
            for row, item, score in self._found
            for left in [~is_crowded[row]]
        ]
        # An unsettled row is not looked at. For this one look, these are all others.
        self.is_unsettled = ~is_crowded
        rows, items = super()._find(is_sieved=True)
        self.is_unsettled &= is_crowded
        # Whatever its score is, it was found to matter.
        score = torch.full(items.row.shape, torch.inf, dtype=self._top.dtype, device=rows.device)
        self._found.append((rows[items.row], items.column, score))

    def _all_found(self) -> tuple[Tensor, Entries]:
        """Returns the rows for which anything may matter, and what may matter to each."""
        row, item, score = (torch.cat(parts) for parts in zip(*self._found, strict=True))
        num_rows, num_items = self.depth.numel(), self.scores.column.numel()
        lowest = self._threshold(slice(None)) - self.scores.error_of_items
        left = (score >= lowest.index_select(0, row)).nonzero().squeeze(1)
        row, item = (values.index_select(0, left) for values in (row, item))
        row, item = self._drop_crowded_of_all(row, item)
        place = sorted_numbers(row * num_items + item)
        row = place.div(num_items, rounding_mode="floor")
        rows = (self._threshold(slice(None)) < torch.inf).nonzero().squeeze(1)
        return rows, Entries(row, place - row * num_items, num_rows).of(rows)

    def _drop_crowded_of_all(self, row: Tensor, found: Tensor) -> tuple[Tensor, Tensor]:
        num_found = torch.bincount(row, minlength=self.depth.numel())
        return self._drop_crowded(slice(None), num_found, row, found)
