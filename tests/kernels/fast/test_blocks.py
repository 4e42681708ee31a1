"""Values in blocks, some of which are hidden."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.fast.blocks import Blocks


@given(
    block_size=st.sampled_from([1, 2, 8]),
    num_blocks=st.integers(1, 5),
    num_rows=st.integers(1, 4),
    num_hidden=st.integers(0, 2),
    data=st.data(),
    seed=st.integers(0, 2**30),
)
def test_maxima_and_values_are_those_of_plain_python(
    block_size, num_blocks, num_rows, num_hidden, data, seed
):
    generator = torch.Generator().manual_seed(seed)
    width = block_size * num_blocks
    num_columns = data.draw(st.integers(1, width))
    values = torch.randint(-9, 10, (num_rows, width), generator=generator).float()
    # The part starts at row 1 and column 2 of a larger matrix.
    hidden = [
        torch.rand(num_rows + 2, width + 4, generator=generator) < 0.3 for _ in range(num_hidden)
    ]
    wanted = [
        [
            -math.inf if c >= num_columns or any(h[r + 1, c + 2] for h in hidden) else value
            for c, value in enumerate(row)
        ]
        for r, row in enumerate(values.tolist())
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Blocks, "block_size", block_size)
        blocks = Blocks(values.clone(), num_columns)
        for flags in [*hidden, torch.zeros(num_rows + 2, width + 4, dtype=torch.bool)]:
            entries = Entries(*flags.nonzero().t(), num_rows=num_rows + 2)
            blocks.hide(entries, slice(1, num_rows + 1), 2)
        maxima = blocks.maxima()
        every = torch.cartesian_prod(torch.arange(num_rows), torch.arange(num_blocks)).t()
        is_asked = torch.rand(every.size(1), generator=generator) < 0.5
        row, block = every[:, is_asked]
        found = blocks.values(row, block)
    # A block has every so many-th value.
    assert maxima.tolist() == [
        [max(own[b::num_blocks]) for b in range(num_blocks)] for own in wanted
    ]
    places = zip(row.tolist(), block.tolist(), strict=True)
    assert found.tolist() == [wanted[r][b::num_blocks] for r, b in places]
