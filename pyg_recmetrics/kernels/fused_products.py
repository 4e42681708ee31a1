"""Fast scores of embeddings on a GPU: the largest products of blocks, which are never stored.

A kernel multiplies in half precision, adds up in single precision, and keeps the largest score of
each block. Another one computes the few blocks anew that may matter. Half precision has three bits
more than `bfloat16`, so the bound on the error is eight times tighter; powers of two bring all
numbers into its range.
"""

import torch
import triton
from torch import Tensor

from pyg_recmetrics.kernels.blocks import Blocks, ComputedBlocks
from pyg_recmetrics.kernels.fast_products import FastProducts
from pyg_recmetrics.kernels.programs import compute, find_largest
from pyg_recmetrics.kernels.rounded_items import RoundedItems
from pyg_recmetrics.kernels.scratch import Scratch

#: How many rows and blocks a program looks at, and how many values it computes anew.
NUM_ROWS, NUM_BLOCKS, NUM_VALUES = 128, 64, 64

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

    def blocks(self, rows: Tensor, start: int, end: int, scratch: Scratch) -> Blocks:
        shape = rows.numel(), (end - start) // Blocks.block_size
        best = scratch("fused_products", shape, torch.float32)
        num_columns = min(end, self.item.numel()) - start
        return FusedBlocks(self.rounded[rows], self.items.rounded(start, end), num_columns, best)

    def to_value(self, score: Tensor) -> Tensor:
        return (score * self.scale).float()

    def to_score(self, value: Tensor) -> Tensor:
        return value.double() / self.scale


class FusedBlocks(ComputedBlocks):
    """Products of some users and some items.

    Args:
        user (torch.Tensor): Rounded users of shape `[num_rows, dim]`.
        item (torch.Tensor): Rounded items of shape `[>= num_columns, dim]`.
        num_columns (int): The number of items.
        best (torch.Tensor): Where the largest values go, of shape `[num_rows, num_blocks]`.
    """

    def __init__(self, user: Tensor, item: Tensor, num_columns: int, best: Tensor) -> None:
        super().__init__(best, num_columns)
        self.user, self.item = user.contiguous(), item.contiguous()
        self.sizes = {
            "num_columns": num_columns,
            "num_blocks": best.size(1),
            "dim": user.size(1),
            "padded_dim": max(16, triton.next_power_of_2(user.size(1))),
            "block_size": self.block_size,
            "num_warps": NUM_WARPS,
        }
        grid = triton.cdiv(best.size(0), NUM_ROWS), triton.cdiv(best.size(1), NUM_BLOCKS)
        with torch.cuda.device_of(best):
            find_largest[grid](
                self.user,
                self.item,
                best,
                best.size(0),
                rows_at_once=NUM_ROWS,
                blocks_at_once=NUM_BLOCKS,
                **self.sizes,
            )

    def computed(self, row: Tensor, block: Tensor) -> Tensor:
        values = self.largest.new_empty((row.numel(), self.block_size))
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
