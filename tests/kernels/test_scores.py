"""Inner products that are rounded correctly, and scaling by powers of two that changes nothing."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels import scores
from pyg_recmetrics.kernels.scores import inner_products, scaled_by_all, scaled_by_row

numbers = st.floats(-1, 1, width=16)


@given(data=st.data(), dim=st.integers(1, 5))
def test_inner_products_are_rounded_once(data, dim):
    vectors = st.lists(st.lists(numbers, min_size=dim, max_size=dim), min_size=1, max_size=4)
    user, item = data.draw(vectors), data.draw(vectors)
    pair = st.tuples(st.integers(0, len(user) - 1), st.integers(0, len(item) - 1))
    pairs = data.draw(st.lists(pair, min_size=1))
    expected = [math.fsum(a * b for a, b in zip(user[u], item[i], strict=True)) for u, i in pairs]
    row, column = torch.tensor(pairs).t()
    embeddings = torch.tensor(user).double(), torch.tensor(item).double()
    found = inner_products(embeddings[0], row, embeddings[1], column)
    assert found.dtype == torch.float32
    assert torch.equal(found, torch.tensor(expected, dtype=torch.double).float())


def test_pairs_go_through_in_parts_which_changes_nothing(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    user, item = (torch.randn(9, 4, generator=generator, dtype=torch.double) for _ in range(2))
    row, column = torch.arange(9), torch.arange(9).flip(0)
    whole = inner_products(user, row, item, column)
    monkeypatch.setattr(scores, "_NUM_PRODUCTS", 8)
    assert torch.equal(inner_products(user, row, item, column), whole)


@given(exponent=st.integers(-1000, 1000), seed=st.integers(0, 1000))
def test_scaling_is_exact_and_brings_the_largest_number_near_a_power_of_two(exponent, seed):
    generator = torch.Generator().manual_seed(seed)
    embedding = torch.randn(5, 3, generator=generator, dtype=torch.double)
    large = embedding * 2.0**exponent
    assert torch.equal(scaled_by_all(large), scaled_by_all(embedding))
    assert torch.equal(scaled_by_row(large), scaled_by_row(embedding))
    assert 0.5 <= float(scaled_by_all(large).abs().max()) / 2.0**55 <= 1
    assert ((largest := scaled_by_row(large).abs().amax(dim=1) / 2.0**55) >= 0.5).all()
    assert (largest <= 1).all()
    # One power of two for everything: all ratios stay what they are.
    ratio = scaled_by_all(large) / embedding
    assert ratio.unique().numel() == 1


def test_what_is_zero_stays_zero():
    zero = torch.zeros(2, 3)
    assert torch.equal(scaled_by_all(zero), zero.double())
    assert torch.equal(scaled_by_row(zero), zero.double())
