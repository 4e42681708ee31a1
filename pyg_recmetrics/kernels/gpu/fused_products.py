"""Fast scores of embeddings on a GPU: products that are never stored.

A program multiplies in half precision, adds up in single precision, and keeps the largest score of
each block, or counts what is above some limits. Another one computes the few blocks anew that may
matter. Half precision has three bits more than `bfloat16`, so the bound on the error is eight times
tighter; powers of two bring all numbers into its range.
"""

from typing import NamedTuple

import torch
import triton
from torch import Tensor

from pyg_recmetrics.kernels.fast.blocks import Blocks, ComputedBlocks
from pyg_recmetrics.kernels.fast.fast_products import FastProducts
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.gpu.programs import compute, count_above, find_largest
from pyg_recmetrics.kernels.scratch import Scratch

#: How many rows and blocks a program looks at, and how many values it computes anew.
NUM_ROWS, NUM_BLOCKS, NUM_VALUES = 128, 64, 64

#: How many rows a program looks at if it counts, which takes more registers.
NUM_ROWS_COUNTED = 64

#: With how many limits a program compares each value of a row.
NUM_LIMITS = 4

#: Triton multiplies matrices of at least so many dimensions.
_MIN_DIM = 16

#: Margins are computed in single precision, which changes them by a few parts of `2**-24`.
_SLACK_OF_MARGIN = 1.00001

#: How many warps a program has. With fewer of them, registers would be spilled.
NUM_WARPS = 8


class FusedProducts(FastProducts):
    """Products of embeddings in half precision, of which only the largest are stored.

    Args:
        user (torch.Tensor): The scaled embeddings of the users, of shape `[num_rows, dim]`, in
            double precision.
        items (RoundedItems): The items, in half precision.
    """

    lowest_in_order = torch.finfo(torch.float32).min

    def __init__(self, user: Tensor, items: RoundedItems) -> None:
        super().__init__(user, items)
        self.scale = items.scale * items.scale_of_users

    def blocks(self, rows: Tensor, start: int, end: int, scratch: Scratch) -> "FusedBlocks":
        num_columns = min(end, self.item.numel()) - start
        num_blocks = (end - start) // Blocks.block_size
        item = self.items.rounded(start, end)
        return FusedBlocks(self.rounded[rows], item, num_columns, num_blocks, scratch)

    def to_value(self, score: Tensor) -> Tensor:
        return (score * self.scale).float()

    def to_score(self, value: Tensor) -> Tensor:
        return value.double() / self.scale

    def margin(self) -> "Margin":
        """Returns how far a value can be from that of an exact score, by the norm of its item."""
        relative, absolute = self.items.error_by_norm
        # The bound is a linear function of the norm.
        zero = self.bound.of(absolute, absolute)
        one = self.bound.of(1 + relative + absolute, relative + absolute)
        factor = _SLACK_OF_MARGIN * self.scale
        return Margin((factor * (one - zero)).float(), (factor * zero).float())


class Margin(NamedTuple):
    """How far values of some rows can be from those of exact scores.

    Attributes:
        slope: By how much this grows with the norm of an item, of shape `[num_rows]`.
        least: What it is for an item of norm zero, of shape `[num_rows]`.
    """

    slope: Tensor
    least: Tensor

    def of(self, rows: Tensor | slice) -> "Margin":
        """Returns the margins of some rows."""
        return Margin(self.slope[rows].contiguous(), self.least[rows].contiguous())

    def at(self, norm: Tensor) -> Tensor:
        """Returns the margins for items of some norms, of shape `[num_rows, num_items]`."""
        return self.slope.unsqueeze(1) * norm + self.least.unsqueeze(1)


class FusedBlocks(ComputedBlocks):
    """Products of some users and some items.

    Args:
        user (torch.Tensor): Rounded users of shape `[num_rows, dim]`.
        item (torch.Tensor): Rounded items of shape `[>= num_columns, dim]`.
        num_columns (int): The number of items.
        num_blocks (int): The number of blocks.
        scratch (Scratch): The buffers to compute in.
    """

    def __init__(
        self, user: Tensor, item: Tensor, num_columns: int, num_blocks: int, scratch: Scratch
    ) -> None:
        super().__init__(num_columns, num_blocks, user.device)
        self.user, self.item, self.scratch = user.contiguous(), item.contiguous(), scratch
        self.sizes = {
            "num_columns": num_columns,
            "num_blocks": num_blocks,
            "dim": user.size(1),
            "padded_dim": max(_MIN_DIM, triton.next_power_of_2(user.size(1))),
            "block_size": self.block_size,
            "num_warps": NUM_WARPS,
        }

    def computed_maxima(self) -> Tensor:
        shape = self.user.size(0), self.num_blocks
        maxima = self.scratch("fused_products.maxima", shape, torch.float32)
        with torch.cuda.device_of(maxima):
            find_largest[self._grid(NUM_ROWS)](
                self.user,
                self.item,
                maxima,
                shape[0],
                rows_at_once=NUM_ROWS,
                blocks_at_once=NUM_BLOCKS,
                **self.sizes,
            )
        return maxima

    def count_above(self, limit: Tensor, margin: Margin, norm: Tensor) -> tuple[Tensor, Tensor]:
        """Counts values above limits, in all blocks in which it is clear what is above.

        Args:
            limit (torch.Tensor): The limits of each row, of shape `[num_rows, NUM_LIMITS]`, in
                single precision; `inf` for none.
            margin (Margin): How far a value of a row has to be from a limit for it to be clear.
            norm (torch.Tensor): The norms of the items in single precision, in descending order.

        Returns:
            How many values are above, of shape `[num_rows, NUM_LIMITS]`, and in which blocks it is
            not clear, or something is hidden, of shape `[num_rows, num_blocks]`.
        """
        shape = self.user.size(0), self.num_blocks
        is_open = self.scratch("fused_products.is_open", shape, torch.uint8).zero_()
        is_open.view(-1)[self.hidden_blocks()] = 1
        num_above = torch.zeros_like(limit, dtype=torch.int32)
        with torch.cuda.device_of(limit):
            count_above[self._grid(NUM_ROWS_COUNTED)](
                self.user,
                self.item,
                limit,
                margin.slope,
                margin.least,
                norm,
                num_above,
                is_open,
                shape[0],
                rows_at_once=NUM_ROWS_COUNTED,
                blocks_at_once=NUM_BLOCKS,
                num_limits=NUM_LIMITS,
                **self.sizes,
            )
        return num_above, is_open

    def computed_values(self, row: Tensor, block: Tensor) -> Tensor:
        shape = row.numel(), self.block_size
        values = torch.empty(shape, dtype=torch.float32, device=row.device)
        if values.numel() > 0:
            with torch.cuda.device_of(values):
                compute[(triton.cdiv(values.numel(), NUM_VALUES),)](
                    self.user,
                    self.item,
                    row.contiguous(),
                    block.contiguous(),
                    values,
                    values.numel(),
                    values_at_once=NUM_VALUES,
                    **self.sizes,
                )
        return values

    def _grid(self, num_rows: int) -> tuple[int, int]:
        """Returns how many programs look at all rows, and at all blocks."""
        return triton.cdiv(self.user.size(0), num_rows), triton.cdiv(self.num_blocks, NUM_BLOCKS)
