"""Ranks by counting, against plain Python."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels import counting
from pyg_recmetrics.kernels.counting import count_above, count_ranks, count_ties_before
from pyg_recmetrics.kernels.scratch import Scratch

CPU = torch.device("cpu")

numbers = st.sampled_from([-math.inf, -3e38, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, 3e38])


@st.composite
def matrices(draw):
    num_rows, num_columns = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    row = st.lists(numbers, min_size=num_columns, max_size=num_columns)
    return draw(st.lists(row, min_size=num_rows, max_size=num_rows))


def finite_entries(matrix):
    return [
        (row, column)
        for row, scores in enumerate(matrix)
        for column, score in enumerate(scores)
        if score > -math.inf
    ]


def rank_of(scores, column):
    own = scores[column]
    return 1 + sum(
        score > own or (score == own and other < column) for other, score in enumerate(scores)
    )


@given(
    matrix=matrices(),
    data=st.data(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    num_comparisons=st.sampled_from([1, 5, 17, 2**19]),
)
def test_ranks_are_those_of_plain_python(matrix, data, dtype, num_comparisons):
    entries = finite_entries(matrix)
    ranked = data.draw(st.lists(st.sampled_from(entries))) if entries else []
    row, column = torch.tensor(ranked, dtype=torch.long).view(-1, 2).t()
    scores = torch.tensor(matrix, dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "NUM_COMPARISONS", num_comparisons)
        ranks = count_ranks(scores, row, column, Scratch(CPU))
    assert ranks.tolist() == [rank_of(matrix[row], column) for row, column in ranked]
    assert torch.equal(scores, torch.tensor(matrix, dtype=dtype))  # which is only read


@given(matrix=matrices(), data=st.data(), num_comparisons=st.sampled_from([1, 5, 2**19]))
def test_what_is_above_a_threshold_is_counted(matrix, data, num_comparisons):
    row = st.integers(0, len(matrix) - 1)
    limits = data.draw(st.lists(st.tuples(row, numbers), min_size=1))
    rows, thresholds = zip(*limits, strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "NUM_COMPARISONS", num_comparisons)
        counts = count_above(
            torch.tensor(matrix), torch.tensor(rows), torch.tensor(thresholds), Scratch(CPU)
        )
    assert counts.tolist() == [
        sum(score > threshold for score in matrix[row]) for row, threshold in limits
    ]


@given(matrix=matrices(), num_comparisons=st.sampled_from([1, 5, 2**19]))
def test_ties_in_front_are_counted(matrix, num_comparisons):
    entries = finite_entries(matrix)
    row, column = torch.tensor(entries, dtype=torch.long).view(-1, 2).t()
    scores = torch.tensor(matrix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "NUM_COMPARISONS", num_comparisons)
        counts = count_ties_before(scores, row, column, scores[row, column])
    assert counts.tolist() == [
        matrix[row][:column].count(matrix[row][column]) for row, column in entries
    ]


def test_a_column_that_rounding_puts_above_itself_is_not_counted():
    # The matrix holds 1.0000001 where the exact score of the column is 1.
    scores = torch.tensor([[1.0, torch.tensor(1.0).nextafter(torch.tensor(2.0)), 0.5]])
    row, column, own = torch.tensor([0]), torch.tensor([1]), torch.tensor([1.0])
    num_above = count_above(scores, row, own, Scratch(CPU))
    num_ties = count_ties_before(scores, row, column, own)
    assert (num_above.tolist(), num_ties.tolist()) == ([1], [0])
    scores[0, 0] = 0.0
    assert count_ties_before(scores, row, column, own).tolist() == [-1]
