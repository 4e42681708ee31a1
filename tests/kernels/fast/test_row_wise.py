"""What is looked for in each row, beside plain lists."""

import math

import pytest
import torch

from pyg_recmetrics.kernels.fast.row_wise import (
    are_among,
    find_at_least,
    largest_values,
    sorted_numbers,
    sorted_rows,
)

DTYPES = [torch.float32, torch.float64, torch.int16]


def random_values(width, dtype):
    generator = torch.Generator().manual_seed(width)
    return torch.randint(-1000, 1000, (40, width), generator=generator).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 5, 64, 300])
@pytest.mark.parametrize("k", [1, 5, 100])
def test_the_largest_values_are_the_first_of_a_sorted_list(dtype, width, k, device):
    values = random_values(width, dtype)
    found = largest_values(values.to(device), k)
    assert found.tolist() == [sorted(row, reverse=True)[:k] for row in values.tolist()]


def test_what_is_not_finite_is_in_order(device):
    values = torch.tensor([[1.0, -math.inf, 2.0], [math.nan, 3.0, math.inf]]).to(device)
    first, second = largest_values(values, k=3).tolist()
    assert first == [2.0, 1.0, -math.inf]
    assert math.isnan(second[0])
    assert second[1:] == [math.inf, 3.0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [0, 1, 5, 300])
def test_values_that_reach_a_threshold_are_found_in_order(dtype, width, device):
    values, threshold = random_values(width, dtype), random_values(1, dtype).squeeze(1)
    found = find_at_least(values.to(device), threshold.to(device))
    assert list(zip(*(places.tolist() for places in found), strict=True)) == [
        (row, column)
        for row, numbers in enumerate(values.tolist())
        for column, number in enumerate(numbers)
        if number >= threshold[row]
    ]


def test_what_is_no_number_or_nothing_reaches_no_threshold(device):
    values = torch.tensor([[math.nan, 1.0], [-math.inf, math.inf]]).to(device)
    threshold = torch.tensor([0.0, -1e30]).to(device)
    row, column = find_at_least(values, threshold)
    assert (row.tolist(), column.tolist()) == ([0, 1], [1, 1])


def test_parts_of_a_larger_matrix_are_read_where_they_are(device):
    values = torch.arange(20.0).view(4, 5).to(device)
    assert largest_values(values[:2, 1:4], k=2).tolist() == [[3.0, 2.0], [8.0, 7.0]]
    row, column = find_at_least(values.t()[1:4], torch.tensor([9.0, 9.0, 9.0]).to(device))
    assert (row.tolist(), column.tolist()) == ([0, 0, 1, 1, 2, 2], [2, 3, 2, 3, 2, 3])
    assert values.tolist() == torch.arange(20.0).view(4, 5).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (40, 1), (40, 300)])
def test_sorted_rows_and_where_their_values_come_from(dtype, shape, device):
    values = torch.randint(-50, 50, shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    values.masked_fill_(values > 40, -math.inf).masked_fill_(values == 7, -0.0)
    ordered, column = sorted_rows(values.to(device))
    assert ordered.tolist() == [sorted(row, reverse=True) for row in values.tolist()]
    assert column.sort(dim=1).values.tolist() == [list(range(shape[1]))] * shape[0]
    assert values.gather(1, column.cpu()).equal(ordered.cpu())


@pytest.mark.parametrize("num", [0, 1, 300])
def test_sorted_numbers_and_what_is_among_them(num, device):
    generator = torch.Generator().manual_seed(num)
    numbers = torch.randint(-200, 200, (num,), generator=generator)
    asked = torch.arange(-250, 250)
    ordered = sorted_numbers(numbers.to(device))
    assert ordered.tolist() == sorted(numbers.tolist())
    known = set(numbers.tolist())
    found = are_among(ordered, asked.to(device))
    assert found.tolist() == [number in known for number in asked.tolist()]
