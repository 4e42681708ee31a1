"""Programs that run on a GPU, in Triton.

Their arguments are pointers to matrices that are stored row by row and to vectors, and sizes.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["num_rows", "num_columns"])
def find_largest(
    user,
    item,
    best,
    num_rows,
    num_columns,
    num_blocks,
    dim: tl.constexpr,
    padded_dim: tl.constexpr,
    block_size: tl.constexpr,
    rows_at_once: tl.constexpr,
    blocks_at_once: tl.constexpr,
):
    """Finds the largest product of each row and each block of items."""
    row = tl.program_id(0).to(tl.int64) * rows_at_once + tl.arange(0, rows_at_once)
    block = tl.program_id(1).to(tl.int64) * blocks_at_once + tl.arange(0, blocks_at_once)
    d = tl.arange(0, padded_dim)
    is_row, is_block = (row < num_rows)[:, None], (block < num_blocks)[None, :]
    users = tl.load(
        user + row[:, None] * dim + d[None, :], mask=is_row & (d < dim)[None, :], other=0.0
    )
    largest = tl.full((rows_at_once, blocks_at_once), float("-inf"), tl.float32)
    for number in range(block_size):
        column = (number * num_blocks + block)[None, :]
        is_column = is_block & (column < num_columns)
        items = tl.load(
            item + column * dim + d[:, None], mask=is_column & (d < dim)[:, None], other=0.0
        )
        score = tl.dot(users, items, out_dtype=tl.float32)
        largest = tl.maximum(largest, tl.where(is_column, score, float("-inf")))
    tl.store(best + row[:, None] * num_blocks + block[None, :], largest, mask=is_row & is_block)


@triton.jit(do_not_specialize=["num_values", "num_columns"])
def compute(
    user,
    item,
    row,
    block,
    values,
    num_values,
    num_columns,
    num_blocks,
    dim: tl.constexpr,
    padded_dim: tl.constexpr,
    block_size: tl.constexpr,
    values_at_once: tl.constexpr,
):
    """Computes all products of some rows and blocks."""
    number = tl.program_id(0).to(tl.int64) * values_at_once + tl.arange(0, values_at_once)
    is_value = number < num_values
    asked = number // block_size
    rows = tl.load(row + asked, mask=is_value, other=0)
    column = number % block_size * num_blocks + tl.load(block + asked, mask=is_value, other=0)
    is_column = is_value & (column < num_columns)
    d = tl.arange(0, padded_dim)
    mask = is_column[:, None] & (d < dim)[None, :]
    users = tl.load(user + rows[:, None] * dim + d[None, :], mask=mask, other=0.0)
    items = tl.load(item + column[:, None] * dim + d[None, :], mask=mask, other=0.0)
    score = tl.sum(users.to(tl.float32) * items.to(tl.float32), axis=1)
    tl.store(values + number, tl.where(is_column, score, float("-inf")), mask=is_value)


@triton.jit(do_not_specialize=["num_rows", "num_columns"])
def count_above(
    user,
    item,
    limit,
    slope,
    least,
    norm,
    num_above,
    is_open,
    num_rows,
    num_columns,
    num_blocks,
    dim: tl.constexpr,
    padded_dim: tl.constexpr,
    block_size: tl.constexpr,
    rows_at_once: tl.constexpr,
    blocks_at_once: tl.constexpr,
    num_limits: tl.constexpr,
):
    """Counts the products above the limits of each row, and marks blocks with one close to a limit.

    Nothing is counted in marked blocks. The counts of a block are packed into one number, 8 bits
    for each limit.
    """
    row = tl.program_id(0).to(tl.int64) * rows_at_once + tl.arange(0, rows_at_once)
    first_block = tl.program_id(1).to(tl.int64) * blocks_at_once
    block = first_block + tl.arange(0, blocks_at_once)
    d = tl.arange(0, padded_dim)
    is_row, is_block = row < num_rows, (block < num_blocks)[None, :]
    users = tl.load(
        user + row[:, None] * dim + d[None, :], mask=is_row[:, None] & (d < dim)[None, :], other=0.0
    )
    row_slope = tl.load(slope + row, mask=is_row, other=0.0)
    row_least = tl.load(least + row, mask=is_row, other=0.0)
    above = tl.zeros((rows_at_once, blocks_at_once), tl.uint32)
    place = row[:, None] * num_blocks + block[None, :]
    clearance = tl.full((rows_at_once, blocks_at_once), float("inf"), tl.float32)
    for number in range(block_size):
        # Items are in the order of their norms, so that the first of them has the largest.
        first = number * num_blocks + first_block
        largest_norm = tl.load(norm + first, mask=first < num_columns, other=0.0)
        margin = row_slope * largest_norm + row_least
        column = (number * num_blocks + block)[None, :]
        is_column = is_block & (column < num_columns)
        items = tl.load(
            item + column * dim + d[:, None], mask=is_column & (d < dim)[:, None], other=0.0
        )
        score = tl.dot(users, items, out_dtype=tl.float32)
        score = tl.where(is_column, score, float("-inf"))
        distance = tl.full((rows_at_once, blocks_at_once), float("inf"), tl.float32)
        for i in tl.static_range(num_limits):
            limits = tl.load(limit + row * num_limits + i, mask=is_row, other=float("inf"))
            difference = limits[:, None] - score
            distance = tl.minimum(distance, tl.abs(difference))
            # To shift the sign takes less time than to compare.
            above += (difference.to(tl.uint32, bitcast=True) >> 31) << (8 * i)
        clearance = tl.minimum(clearance, distance - margin[:, None])
    open_blocks = tl.load(is_open + place, mask=is_row[:, None] & is_block, other=1) > 0
    open_blocks = open_blocks | (clearance <= 0)
    tl.store(is_open + place, open_blocks.to(tl.uint8), mask=is_row[:, None] & is_block)
    above = tl.where(open_blocks, 0, above)
    for i in tl.static_range(num_limits):
        count = tl.sum(((above >> (8 * i)) & 255).to(tl.int32), axis=1)
        tl.atomic_add(num_above + row * num_limits + i, count, mask=is_row & (count > 0))
