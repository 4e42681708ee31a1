"""Ranks by ranks, against plain Python."""

import math

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact import ranks as kernel
from pyg_recmetrics.kernels.exact.ranks import count_ranks

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
    width=st.integers(1, 9),
)
def test_ranks_are_those_of_plain_python(matrix, data, dtype, num_comparisons, width):
    entries = finite_entries(matrix)
    ranked = sorted(data.draw(st.lists(st.sampled_from(entries)))) if entries else []
    row, column = torch.tensor(ranked, dtype=torch.long).view(-1, 2).t()
    scores = torch.tensor(matrix, dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "NUM_COMPARISONS", num_comparisons)
        starts = range(0, scores.size(1), width)
        tiles = [(start, scores[:, start : start + width]) for start in starts]
        own = scores[row, column]
        ranks = count_ranks(tiles, (row, column), own, Scratch(CPU))
    others = [(matrix[row][column], [*matrix[row]]) for row, column in ranked]
    assert ranks.rank.tolist() == [rank_of(matrix[row], column) for row, column in ranked]
    assert ranks.num_above.tolist() == [sum(x > own for x in scores) for own, scores in others]
    assert ranks.num_tied.tolist() == [scores.count(own) - 1 for own, scores in others]
    assert torch.equal(scores, torch.tensor(matrix, dtype=dtype))  # which is only read
