"""Runs of equal neighbours, against plain Python."""

from itertools import groupby

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.exact.runs import find_runs


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.5])), max_size=9))
def test_runs_are_those_of_itertools(pairs):
    starts, sizes = [], []
    for _, group in groupby(pairs):
        size = len(list(group))
        starts += [len(starts)] * size
        sizes += [size] * size
    user = torch.tensor([user for user, _ in pairs], dtype=torch.long)
    score = torch.tensor([score for _, score in pairs], dtype=torch.double)
    first, size = find_runs(user, score)
    assert first.tolist() == starts
    assert size.tolist() == sizes
