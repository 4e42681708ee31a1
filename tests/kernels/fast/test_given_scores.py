"""Scores that are given are read as they are, and never written to."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.fast.given_scores import GivenScores

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

numbers = st.sampled_from([-math.inf, -2.0, -0.0, 0.0, 1.0, 2.5, 2.0**15])


@given(
    data=st.data(),
    dtype=st.sampled_from(DTYPES),
    num_columns=st.integers(1, 9),
    rows=st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True),
    layout=st.sampled_from(["rows", "columns", "every other"]),
)
def test_all_that_is_read_is_what_is_given(data, dtype, num_columns, rows, layout):
    row = st.lists(numbers, min_size=num_columns, max_size=num_columns)
    table = data.draw(st.lists(row, min_size=6, max_size=6))
    matrix = laid_out(torch.tensor(table, dtype=dtype), layout)
    before = matrix.clone()
    column = st.lists(st.integers(0, num_columns - 1), min_size=1, unique=True)
    candidates = data.draw(st.none() | column.map(sorted))
    items = candidates or list(range(num_columns))
    given = None if candidates is None else torch.tensor(candidates)
    scores = GivenScores(matrix, torch.tensor(rows), given)
    assert scores.item.tolist() == items
    places = [items.index(item) if item in items else -1 for item in range(num_columns)]
    assert scores.column.tolist() == places

    numbers_of_rows = data.draw(
        st.lists(st.sampled_from(range(len(rows))), min_size=1, unique=True)
    )
    asked = torch.tensor(numbers_of_rows)
    wanted = [[table[rows[number]][item] for item in items] for number in numbers_of_rows]
    middle = data.draw(st.integers(1, len(items)))
    scratch = Scratch(matrix.device)
    first = scores.blocks(asked, 0, middle, scratch).matrix.tolist()
    assert first == [row[:middle] for row in wanted]
    if middle < len(items):
        last = scores.blocks(asked, middle, len(items) + 3, scratch).matrix
        assert last[:, :-3].tolist() == [row[middle:] for row in wanted]
    assert scores.highest.item() == max(0.0, *map(max, wanted))
    num_missing = dict(zip(numbers_of_rows, (row.count(-math.inf) for row in wanted), strict=True))
    assert scores.num_missing.tolist() == [num_missing.get(n, 0) for n in range(len(rows))]

    of_pairs = [score for row in wanted for score in row]
    row, item = torch.cartesian_prod(torch.arange(asked.numel()), torch.tensor(items)).t()
    assert scores.of_items(asked, Entries(row, item, asked.numel())).tolist() == of_pairs
    assert scores.exactly(asked[row], item).tolist() == of_pairs
    within = scores.num_within_reach(torch.zeros(len(rows)))
    assert within.tolist() == [len(items)] * len(rows)
    assert torch.equal(matrix, before)


def laid_out(matrix, layout):
    match layout:
        case "rows":
            return matrix
        case "columns":
            return matrix.t().contiguous().t()
        case "every other":
            return matrix.repeat_interleave(2, dim=1)[:, ::2]


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite_is_the_highest(wrong, dtype):
    matrix = torch.zeros(3, 40, dtype=dtype)
    matrix[1, 30] = wrong
    scores = GivenScores(matrix, torch.arange(3), None)
    scratch = Scratch(matrix.device)
    scores.blocks(torch.arange(3), 0, 20, scratch)
    assert scores.highest.item() == 0
    scores.blocks(torch.arange(3), 20, 40, scratch)
    assert scores.highest.isnan() if math.isnan(wrong) else scores.highest.isposinf()


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_is_lost(dtype):
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(2, 50, generator=generator, dtype=torch.double).to(dtype)
    scores = GivenScores(matrix, torch.arange(2), None)
    assert scores.dtype == (torch.double if dtype == torch.double else torch.float)
    values = scores.blocks(torch.arange(2), 0, 50, Scratch(matrix.device)).matrix
    assert torch.equal(values.double(), matrix.double())
    assert torch.equal(scores.to_score(values), matrix.double())
    assert torch.equal(scores.to_value(matrix.double()), values)
    assert not scores.error.any()
    assert not scores.error_of_items.any()
