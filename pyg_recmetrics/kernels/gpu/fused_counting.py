"""All ranks of few items among many on a GPU, from products that are never stored.

The limits are the scores of relevant items, up to four of a user side by side. A program counts
what is above them, in all blocks without a product that is close to a limit. These few blocks are
computed anew. A product is close if it differs by no more than the bound on its error, which is
tighter for items of a smaller norm. What is close is compared by its exact score.
"""

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import at_once
from pyg_recmetrics.kernels.entries import Entries, Rows, spread
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.fast.blocks import Blocks
from pyg_recmetrics.kernels.fast.rank_counting import RankCount, UserItems
from pyg_recmetrics.kernels.gpu.fused_products import NUM_LIMITS, FusedBlocks, FusedProducts, Margin
from pyg_recmetrics.kernels.scratch import Scratch

#: How many users and how many relevant items are ranked at once.
MAX_ROWS, NUM_RELEVANT = 1024, 2**16

#: How many blocks are counted at once, and how many of them are looked at again.
NUM_COUNTED, NUM_OPEN = 2**22, 2**16

#: How many items are looked at at once.
MAX_COLUMNS = 2**17

#: How many items may be close to those of a user, which are compared by their exact scores: so many
#: per relevant item, some more, and one of so many items. They are more than on a CPU, as products
#: are less precise. These numbers decide about time and memory alone, and not about ranks.
_CLOSE_PER_RELEVANT, _SPARE_CLOSE, _ITEMS_PER_CLOSE = 64, 256, 64


class Limits:
    """What the items of some users are compared with: the values of relevant items, in groups.

    Args:
        products (FusedProducts): The products of the users and all items.
        relevant (Rows): The rows of the relevant items.
        score (torch.Tensor): Their exact scores, of shape `[num_relevant]`.

    Attributes:
        row: The row of each group, of shape `[num_groups]`.
        value: The limits of each group, of shape `[num_groups, NUM_LIMITS]`; `inf` for none.
        place: The group of each relevant item, and where it stands in the group.
    """

    def __init__(self, products: FusedProducts, relevant: Rows, score: Tensor) -> None:
        num_groups = (relevant.ptr.diff() + NUM_LIMITS - 1) // NUM_LIMITS
        first = num_groups.cumsum(0) - num_groups
        self.row, _ = spread(first, num_groups)
        self.place = first[relevant.row] + relevant.slot // NUM_LIMITS, relevant.slot % NUM_LIMITS
        shape = self.row.numel(), NUM_LIMITS
        self.value = torch.full(shape, torch.inf, dtype=torch.float32, device=score.device)
        self.value[self.place] = products.to_value(score.double())
        self.number = torch.empty(shape, dtype=torch.long, device=score.device)
        self.number[self.place] = torch.arange(score.numel(), device=score.device)


class FusedCount(RankCount):
    """Finds all ranks from products in half precision."""

    def num_rows(self, depth: int) -> int:
        return max(1, at_once(min(MAX_ROWS, NUM_RELEVANT // depth), self.items.factors.device))

    def ranks(
        self,
        user: Tensor,
        depth: Tensor,
        relevant: UserItems,
        score: Tensor,
        seen: UserItems,
        scratch: Scratch,
    ) -> tuple[Ranks, Tensor]:
        row, item = relevant
        products = FusedProducts(user, self.items)
        limits = Limits(products, Rows(row, depth.numel()), score)
        masked = Entries(seen[0], self.items.column[seen[1]], depth.numel())
        count = _Count(limits, products.margin().of(limits.row), self.items.norm, depth)
        num_columns = -(-self.items.item.numel() // Blocks.block_size) * Blocks.block_size
        for start in range(0, num_columns, MAX_COLUMNS):
            end = min(num_columns, start + MAX_COLUMNS)
            here = Entries(*masked.within(slice(0, depth.numel()), start, end), depth.numel())
            # Each group hides what its user has seen.
            num_per_group = max((end - start) // Blocks.block_size, int(here.ptr.diff().max()))
            num_groups = max(1, at_once(NUM_COUNTED, row.device) // num_per_group)
            for first in range(0, limits.row.numel(), num_groups):
                groups = slice(first, min(first + num_groups, limits.row.numel()))
                rows = limits.row[groups]
                blocks = products.blocks(rows, start, end, scratch)
                blocks.hide(here.of(rows), slice(0, rows.numel()), 0)
                count.add(blocks, groups, start)
        number, column = count.close()
        close = number, row[number], self.items.item[column]
        num_above = count.num_above[limits.place]
        return self._ranks_among(close, user, item, score, num_above), count.is_given_up


class _Count:
    """How many values are above limits, and which are close to them.

    Args:
        limits (Limits): The limits.
        margin (Margin): How far a value has to be from the limits of a group.
        norm (torch.Tensor): The norms of all items, in descending order.
        depth (torch.Tensor): How deep each user is ranked, of shape `[num_rows]`.
    """

    def __init__(self, limits: Limits, margin: Margin, norm: Tensor, depth: Tensor) -> None:
        self.limits, self.margin, self.norm = limits, margin, norm.float()
        self.num_above = torch.zeros_like(limits.number)
        self.num_close = torch.zeros_like(depth)
        self.max_close = _max_close(depth, norm.numel())
        self.found: list[tuple[Tensor, Tensor, Tensor]] = [(depth[:0],) * 3]

    @property
    def is_given_up(self) -> Tensor:
        """For which users too many values are close to a limit, of shape `[num_rows]`."""
        return self.num_close > self.max_close

    def add(self, blocks: FusedBlocks, groups: slice, start: int) -> None:
        """Counts the values of some groups in some of the columns."""
        limit, margin = self.limits.value[groups], self.margin.of(groups)
        num_above, is_open = blocks.count_above(limit, margin, self.norm[start:])
        self.num_above[groups] += num_above
        open_blocks = is_open.nonzero(as_tuple=True)
        num_open = at_once(NUM_OPEN, limit.device)
        for group, block in zip(*(x.split(num_open) for x in open_blocks), strict=True):
            value = blocks.values(group, block).unsqueeze(2)
            offset = torch.arange(blocks.block_size, device=group.device) * blocks.num_blocks
            column = start + offset + block.unsqueeze(1)
            norm = self.norm[column.clamp(max=self.norm.numel() - 1)]
            difference = value - limit[group].unsqueeze(1)
            clear = margin.of(group).at(norm).unsqueeze(2)
            num_above = (difference > clear).sum(dim=1)
            self.num_above.index_add_(0, group + groups.start, num_above)
            found, offset, place = (difference.abs() <= clear).nonzero(as_tuple=True)
            self._note(group[found] + groups.start, place, column[found, offset])

    def _note(self, group: Tensor, place: Tensor, column: Tensor) -> None:
        """Notes what is close, unless there is too much of it."""
        row = self.limits.row[group]
        self.num_close += torch.bincount(row, minlength=self.num_close.numel())
        left = (~self.is_given_up[row]).nonzero().squeeze(1)
        number = self.limits.number[group[left], place[left]]
        self.found.append((row[left], number, column[left]))

    def close(self) -> tuple[Tensor, Tensor]:
        """Returns the numbers of relevant items, and the columns that are close to them."""
        row, number, column = (torch.cat(values) for values in zip(*self.found, strict=True))
        left = (~self.is_given_up[row]).nonzero().squeeze(1)
        return number[left], column[left]


def _max_close(depth: Tensor, num_items: int) -> Tensor:
    """Returns how many items may be close to those of a user before it is left unsettled."""
    return _CLOSE_PER_RELEVANT * depth + _SPARE_CLOSE + num_items // _ITEMS_PER_CLOSE
