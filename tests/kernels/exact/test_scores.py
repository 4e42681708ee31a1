"""Inner products that are rounded correctly, and scaling by powers of two that changes nothing."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact import scores
from pyg_recmetrics.kernels.exact.scores import (
    BoundedFactors,
    grains,
    inner_product_matrix,
    inner_products,
    scaled_by_row,
)
from tests.support.cases.embeddings import scaled_by_all
from tests.support.references import exact_scores

DTYPES = [torch.float32, torch.float64, torch.bfloat16]

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


def all_pairs(user, item):
    row, column = torch.cartesian_prod(torch.arange(len(user)), torch.arange(len(item))).t()
    return inner_products(user, row, item, column).view(len(user), len(item))


def matrix(user, item):
    return inner_product_matrix(user, BoundedFactors(item), Scratch(torch.device("cpu"))).clone()


@pytest.mark.parametrize("kind", exact_scores.KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("dim", "num_items"), [(1, 40), (2, 40), (7, 40), (64, 15), (300, 4)])
def test_every_score_is_the_exact_inner_product_rounded_once(kind, dtype, dim, num_items):
    user, item = exact_scores.draw(kind, 5, num_items, dim, dtype, seed=dim)
    user, item = scaled_by_row(user), scaled_by_all(item)
    wanted = exact_scores.score_matrix(user, item)
    assert torch.equal(all_pairs(user, item), wanted)
    assert torch.equal(matrix(user, item), wanted)


@pytest.mark.parametrize("exponent", [-60, -250, -399])
@pytest.mark.parametrize("sign", [1, 0, -1])
def test_however_little_lies_between_a_sum_and_a_midpoint(exponent, sign):
    # The terms of 2**90 cancel, and what is left of the sum is a half of the last bit.
    midpoint = [2.0**45, 1.0, 2.0**-24, sign * 2.0**exponent, -(2.0**45)]
    rows = [[2.0**45, 1.0, 1.0, 1.0, 2.0**45], midpoint]
    user, item = torch.tensor(rows, dtype=torch.double).split(1)
    wanted = 1 + 2.0**-23 if sign > 0 else 1.0
    assert all_pairs(user, item).item() == matrix(user, item).item() == wanted


@pytest.mark.parametrize("number", [1.0, 1 + 2.0**-23])
def test_a_midpoint_goes_to_the_even_neighbour_though_errors_are_left(number):
    # The two tiny terms are never added to each other, and both are less than the last bit.
    midpoint = torch.tensor([[number, 2.0**-24, 2.0**-90, -(2.0**-90)]], dtype=torch.double)
    user = torch.ones(1, 4, dtype=torch.double)
    wanted = 1.0 if number == 1.0 else 1 + 2.0**-22
    assert all_pairs(user, midpoint).item() == matrix(user, midpoint).item() == wanted


@pytest.mark.parametrize("kind", ["ordinary", "midpoints", "whole numbers", "huge and tiny"])
def test_a_matrix_goes_through_in_tiles_which_changes_nothing(kind, monkeypatch):
    user, item = exact_scores.draw(kind, 9, 20, 6, torch.float32, seed=0)
    user, item = scaled_by_row(user), scaled_by_all(item)
    whole = matrix(user, item)
    for size in (1, 8, 40):
        monkeypatch.setattr(scores, "_MIN_WIDTH", 3)
        monkeypatch.setattr(scores, "_NUM_SCORES_IN_TILE", size)
        monkeypatch.setattr(scores, "_NUM_UNDECIDED", size)
        monkeypatch.setattr(scores, "_NUM_PRODUCTS", size)
        assert torch.equal(matrix(user, item), whole)


def test_the_default_precision_changes_nothing():
    user, item = exact_scores.draw("huge and tiny", 5, 40, 9, torch.float64, seed=0)
    user, item = scaled_by_row(user), scaled_by_all(item)
    wanted = exact_scores.score_matrix(user, item)
    try:
        torch.set_default_dtype(torch.float16)
        assert torch.equal(all_pairs(user, item), wanted)
        assert torch.equal(matrix(user, item), wanted)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", exact_scores.KINDS)
def test_no_grain_is_too_coarse(kind, dtype):
    _, item = exact_scores.draw(kind, 1, 30, 5, dtype, seed=3)
    for row, grain in zip(item.double().tolist(), grains(item.double()).tolist(), strict=True):
        lowest = [
            Fraction(x.numerator & -x.numerator, x.denominator) for x in map(Fraction, row) if x
        ]
        if lowest:
            assert min(lowest) / 2 <= Fraction(grain) <= min(lowest)
        else:
            assert grain == math.inf


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


def test_numbers_far_below_the_largest_count_as_zero():
    rows = [[1.0, 2.0**-450, 2.0**-460], [0.0, 5e-324, -(2.0**-500)]]
    embedding = torch.tensor(rows, dtype=torch.double)
    assert (scaled_by_all(embedding) != 0).tolist() == [[True, True, False], [False] * 3]
    assert (scaled_by_row(embedding) != 0).tolist() == [[True, True, False], [False, False, True]]
