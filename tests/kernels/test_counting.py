"""Ranks by counting, against plain Python."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels import counting
from pyg_recmetrics.kernels.counting import count_above_and_tied, count_ranks, count_ties_before
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
    strip=st.sampled_from([1, 2, 256]),
    strips_at_once=st.sampled_from([1, 3]),
)
def test_ranks_are_those_of_plain_python(
    matrix, data, dtype, num_comparisons, strip, strips_at_once
):
    entries = finite_entries(matrix)
    ranked = data.draw(st.lists(st.sampled_from(entries))) if entries else []
    row, column = torch.tensor(ranked, dtype=torch.long).view(-1, 2).t()
    scores = torch.tensor(matrix, dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "NUM_COMPARISONS", num_comparisons)
        patch.setattr(counting, "STRIP", strip)
        patch.setattr(counting, "STRIPS_AT_ONCE", strips_at_once)
        ranks = count_ranks(scores, row, column, Scratch(CPU))
        # A GPU does not put the thresholds of a row side by side.
        apart = [
            counts.sum(dim=2).squeeze(1)
            for counts in counting._count_in_strips(
                scores, row, scores[row, column].unsqueeze(1), Scratch(CPU)
            )
        ]
    others = [(matrix[row][column], [*matrix[row]]) for row, column in ranked]
    assert ranks.rank.tolist() == [rank_of(matrix[row], column) for row, column in ranked]
    assert ranks.num_above.tolist() == [sum(x > own for x in scores) for own, scores in others]
    assert ranks.num_tied.tolist() == [scores.count(own) - 1 for own, scores in others]
    assert torch.equal(apart[0], ranks.num_above)
    assert torch.equal(apart[1], ranks.num_tied + 1)
    assert torch.equal(scores, torch.tensor(matrix, dtype=dtype))  # which is only read


@given(matrix=matrices(), data=st.data(), num_comparisons=st.sampled_from([1, 5, 2**19]))
def test_what_is_above_a_threshold_or_equal_to_it_is_counted(matrix, data, num_comparisons):
    row = st.integers(0, len(matrix) - 1)
    limits = data.draw(st.lists(st.tuples(row, numbers), min_size=1))
    rows, thresholds = zip(*limits, strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "NUM_COMPARISONS", num_comparisons)
        above, tied = count_above_and_tied(
            torch.tensor(matrix), torch.tensor(rows), torch.tensor(thresholds), Scratch(CPU)
        )
    assert above.tolist() == [
        sum(score > threshold for score in matrix[row]) for row, threshold in limits
    ]
    assert tied.tolist() == [matrix[row].count(threshold) for row, threshold in limits]


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
