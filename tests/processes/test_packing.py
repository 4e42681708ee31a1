"""Numbers come back from their bytes, and take no more of these than they need."""

import pytest
import torch

from pyg_recmetrics.processes import bytes_of, pack, unpack


@pytest.mark.parametrize("power", [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 62])
def test_numbers_come_back_from_as_few_bytes_as_hold_them(power):
    limit = 2**power
    values = torch.tensor([[0, 1], [limit // 2, limit - 1]])
    content = pack(values, limit)
    assert content.dtype == torch.uint8
    assert content.shape == (2, 2, bytes_of(limit))
    assert torch.equal(unpack(content, limit), values)
    assert bytes_of(limit) == next(size for size in (1, 2, 4, 8) if limit <= 256**size)


@pytest.mark.parametrize("limit", [2, 2**10, 2**40])
def test_there_may_be_none(limit):
    for shape in [(0,), (0, 3)]:
        values = torch.zeros(shape, dtype=torch.long)
        assert torch.equal(unpack(pack(values, limit), limit), values)
