"""The best columns of every row, against `sorted` in plain Python."""

import math

import torch
from hypothesis import given, strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.ranks import top_k

#: What is left in its buffers by one example does no harm in the next.
SCRATCH = Scratch(torch.device("cpu"))

#: Few numbers, so that many are equal; two zeros, and the smallest and the largest of all.
numbers = st.sampled_from([-math.inf, -3e38, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, 3e38])


def best_columns(row, k):
    """The `k` best columns by plain Python, and `-1` where no column is left."""
    columns = [column for column, score in enumerate(row) if score > -math.inf]
    best = sorted(columns, key=lambda column: (-row[column], column))[:k]
    return best + [-1] * (k - len(best))


@given(
    data=st.data(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    num_columns=st.integers(1, 9),
    num_rows=st.integers(0, 4),
)
def test_it_is_what_sorted_finds(data, dtype, num_columns, num_rows):
    score = numbers | st.floats(width=32, allow_nan=False, allow_infinity=False)
    row = st.lists(score, min_size=num_columns, max_size=num_columns)
    rows = data.draw(st.lists(row, min_size=num_rows, max_size=num_rows))
    k = data.draw(st.integers(1, num_columns))
    scores = torch.tensor(rows, dtype=dtype).view(num_rows, num_columns)
    values = scores.tolist()  # as rounded to `dtype`
    expected = [best_columns(row, k) for row in values]
    top = top_k(scores, k, SCRATCH)
    assert top.column.tolist() == expected
    # Keys are in the order of the scores, and equal where these are.
    best = [
        row[column] if column >= 0 else -math.inf
        for row, columns in zip(values, expected, strict=True)
        for column in columns
    ]
    keys = top.key.flatten().tolist()
    assert [[x < y for y in keys] for x in keys] == [[x < y for y in best] for x in best]
