"""Counts of flags, which are added up four at a time, are plain sums."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.packed_counts import (
    MAX_FLAGS,
    count_flags,
    is_above,
    is_at_least,
    pack_counts,
    unpack_counts,
)


@given(
    shape=st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(1, 50)),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**30),
)
def test_counts_are_sums(shape, share, seed):
    *shape, num_words = shape
    flags = torch.rand(*shape, 4 * num_words, generator=torch.Generator().manual_seed(seed)) < share
    assert torch.equal(count_flags(flags.short()), flags.sum(dim=-1))
    assert torch.equal(unpack_counts(pack_counts(flags.short())), flags.sum(dim=-1))


def test_no_count_is_too_large():
    for num_flags in (MAX_FLAGS, MAX_FLAGS + 4, 5 * MAX_FLAGS):
        flags = torch.ones(2, num_flags, dtype=torch.int16)
        flags[1, ::3] = 0
        assert count_flags(flags).tolist() == [num_flags, int(flags[1].sum())]
    assert unpack_counts(pack_counts(torch.ones(1, MAX_FLAGS, dtype=torch.int16))) == MAX_FLAGS


def test_comparisons_go_by_the_limit_of_the_row():
    value = torch.tensor([[1, 2, 3], [-32768, 0, 32767]], dtype=torch.int16)
    limit = torch.tensor([2, 32767], dtype=torch.int16)
    assert is_above(value, limit).tolist() == [[0, 0, 1], [0, 0, 0]]
    assert is_at_least(value, limit).tolist() == [[0, 1, 1], [0, 0, 1]]
