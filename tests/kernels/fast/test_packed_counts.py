"""Counts of flags, which are added up four at a time, are plain sums."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.fast.packed_counts import MAX_FLAGS, pack_counts, unpack_counts


@given(
    shape=st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(1, 50)),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**30),
)
def test_counts_are_sums(shape, share, seed):
    *shape, num_words = shape
    flags = torch.rand(*shape, 4 * num_words, generator=torch.Generator().manual_seed(seed)) < share
    assert torch.equal(unpack_counts(pack_counts(flags.short())), flags.sum(dim=-1))


def test_no_count_is_too_large():
    assert unpack_counts(pack_counts(torch.ones(1, MAX_FLAGS, dtype=torch.int16))) == MAX_FLAGS
