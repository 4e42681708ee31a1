"""The n-th largest value of each row, beside sorted lists."""

import math

import pytest
import torch

from pyg_recmetrics.kernels.fast.nth_largest import nth_largest


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16])
@pytest.mark.parametrize("width", [1, 5, 64, 300])
def test_it_is_that_of_a_sorted_list(dtype, width, device):
    generator = torch.Generator().manual_seed(width)
    values = torch.randint(-1000, 1000, (40, width), generator=generator).to(dtype)
    n = torch.randint(1, 80, (40,), generator=generator)
    found = nth_largest(values.to(device), n.to(device), max_n=int(n.max())).cpu()
    for row, place, value in zip(values.tolist(), n.tolist(), found.tolist(), strict=True):
        assert value == sorted(row, reverse=True)[min(place, width) - 1]


def test_what_is_not_finite_is_in_order(device):
    values = torch.tensor([[1.0, -math.inf, 2.0], [math.nan, 3.0, math.inf]]).to(device)
    found = [nth_largest(values, torch.full((2,), n).to(device), max_n=3) for n in (1, 2, 3)]
    first, second = torch.stack(found, dim=1).tolist()
    assert first == [2.0, 1.0, -math.inf]
    assert math.isnan(second[0])
    assert second[1:] == [math.inf, 3.0]


def test_parts_of_a_larger_matrix_are_read_where_they_are(device):
    values = torch.arange(20.0).view(4, 5).to(device)
    n = torch.tensor([1, 2, 3, 4]).to(device)
    assert nth_largest(values[:, 1:4], n, max_n=4).tolist() == [3.0, 7.0, 11.0, 16.0]
    assert values.tolist() == torch.arange(20.0).view(4, 5).tolist()
