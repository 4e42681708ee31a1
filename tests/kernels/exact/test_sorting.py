"""The best columns of every row, against `sorted` in plain Python."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.exact.sorting import top_k
from pyg_recmetrics.kernels.scratch import Scratch

CPU = torch.device("cpu")

#: Few numbers, so that many are equal; two zeros, and the smallest and the largest of all.
numbers = st.sampled_from([-math.inf, -3e38, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, 3e38])


def best_columns(row, k):
    """The `k` best columns by plain Python, and `-1` where no column is left."""
    columns = [column for column, score in enumerate(row) if score > -math.inf]
    best = sorted(columns, key=lambda column: (-row[column], column))[:k]
    return best + [-1] * (k - len(best))


@given(data=st.data(), num_columns=st.integers(1, 9), num_rows=st.integers(0, 4))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_what_sorted_finds(dtype, data, num_columns, num_rows):
    score = numbers | st.floats(width=32, allow_nan=False, allow_infinity=False)
    row = st.lists(score, min_size=num_columns, max_size=num_columns)
    rows = data.draw(st.lists(row, min_size=num_rows, max_size=num_rows))
    k = data.draw(st.integers(1, num_columns))
    scores = torch.tensor(rows, dtype=dtype).view(num_rows, num_columns)
    expected = [best_columns(row, k) for row in scores.tolist()]  # as rounded to `dtype`
    values = scores.clone()
    top = top_k(scores, k, Scratch(CPU))
    assert top.column.tolist() == expected
    # Keys are in the order of the scores, and equal where these are.
    for key, keys, row in zip(top.key.tolist(), top.keys.tolist(), values.tolist(), strict=True):
        for one, one_key in zip(row, keys, strict=True):
            assert [one < other for other in row] == [one_key < other for other in keys]
        best = sorted(keys, reverse=True)[:k]
        assert key == best


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_two_zeros_are_equal(dtype):
    scores = torch.tensor([[-0.0, 0.0, -0.0, 0.0]], dtype=dtype)
    assert top_k(scores, 4, Scratch(CPU)).column.tolist() == [[0, 1, 2, 3]]


def test_minus_infinity_is_no_column_and_the_lowest_number_is():
    lowest = torch.finfo(torch.float32).min
    scores = torch.tensor([[-math.inf, lowest, -math.inf], [-math.inf] * 3])
    assert top_k(scores, 3, Scratch(CPU)).column.tolist() == [[1, -1, -1], [-1, -1, -1]]


def test_buffers_of_an_earlier_call_do_no_harm():
    scratch = Scratch(CPU)
    generator = torch.Generator().manual_seed(0)
    for num_rows, num_columns in ((3, 50), (7, 4), (5, 60)):
        scores = torch.randint(5, (num_rows, num_columns), generator=generator).float()
        expected = [best_columns(row, 4) for row in scores.tolist()]
        assert top_k(scores, 4, scratch).column.tolist() == expected
