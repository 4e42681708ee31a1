"""Buffers that are reused."""

import torch

from pyg_recmetrics.kernels.scratch import Scratch


def make_scratch():
    return Scratch(torch.device("cpu"))


def test_the_same_name_has_the_same_memory():
    scratch = make_scratch()
    buffer = scratch("owner.keys", (3, 4), torch.int64)
    assert (buffer.shape, buffer.dtype, buffer.device.type) == ((3, 4), torch.int64, "cpu")
    smaller = scratch("owner.keys", (2, 5), torch.int64)
    assert smaller.data_ptr() == buffer.data_ptr()
    assert smaller.shape == (2, 5)
    assert smaller.is_contiguous()


def test_different_names_have_memory_of_their_own():
    scratch = make_scratch()
    keys = scratch("owner.keys", (4,), torch.float32).fill_(1)
    scores = scratch("owner.scores", (4,), torch.float32).fill_(2)
    assert (keys.tolist(), scores.tolist()) == ([1] * 4, [2] * 4)


def test_a_larger_buffer_replaces_a_smaller_one():
    scratch = make_scratch()
    scratch("owner.keys", (2,), torch.float32)
    larger = scratch("owner.keys", (100,), torch.float32)
    assert larger.shape == (100,)
    assert scratch("owner.keys", (2,), torch.float32).data_ptr() == larger.data_ptr()


def test_another_dtype_is_another_buffer():
    scratch = make_scratch()
    scratch("owner.keys", (4,), torch.int16)
    assert scratch("owner.keys", (4,), torch.int64).dtype == torch.int64


def test_a_buffer_may_be_empty():
    assert make_scratch()("owner.keys", (0, 5), torch.float32).shape == (0, 5)
