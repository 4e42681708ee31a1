"""Inner products that are rounded correctly, and scaling by powers of two that changes nothing."""

import math
from contextlib import contextmanager
from fractions import Fraction

import pytest
import torch
from hypothesis import assume, given, settings, strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact import scores
from pyg_recmetrics.kernels.exact.scores import (
    ItemFactors,
    bounded,
    grains,
    inner_product_matrix,
    inner_products,
    scaled_by_row,
)
from tests.support.cases.embeddings import scaled_by_all
from tests.support.references import exact_scores

CPU = torch.device("cpu")
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

kinds = st.sampled_from(sorted(exact_scores.KINDS))
dtypes = st.sampled_from(DTYPES[1:])


@contextmanager
def at_once(size):
    """Lets everything go through in parts of a few numbers."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MIN_WIDTH", "_NUM_SCORES_IN_TILE", "_NUM_PRODUCTS"):
            patch.setattr(scores, name, size)
        yield


def all_pairs(user, item):
    row, column = torch.cartesian_prod(torch.arange(len(user)), torch.arange(len(item))).t()
    return inner_products(user, row, item, column).view(len(user), len(item))


def matrix(user, item):
    return inner_product_matrix(user, bounded(item), Scratch(CPU)).clone()


@settings(max_examples=80)
@given(
    kind=kinds,
    dtype=dtypes,
    dim=st.sampled_from([1, 2, 7, 64, 300]),
    size=st.sampled_from([1, 3, 8, 40, 2**20]),
    seed=st.integers(0, 2**30),
)
def test_every_score_is_the_exact_inner_product_rounded_once(kind, dtype, dim, size, seed):
    user, item = exact_scores.draw(kind, 5, 4 if dim > 64 else 15, dim, dtype, seed)
    items = ItemFactors(item, None, CPU)
    user, item = scaled_by_row(user), scaled_by_all(item)
    wanted = exact_scores.score_matrix(user, item)
    row, column = torch.ones_like(wanted).nonzero().t()
    with at_once(size):
        assert torch.equal(all_pairs(user, item), wanted)
        assert torch.equal(matrix(user, item), wanted)
        assert torch.equal(items.exact_scores(user, row, column), wanted[row, column])
        assert items.exact_scores(user, row[:0], column[:0]).shape == (0,)


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


@given(kind=kinds, dtype=dtypes, seed=st.integers(0, 2**30))
def test_no_grain_is_too_coarse(kind, dtype, seed):
    _, item = exact_scores.draw(kind, 1, 30, 5, dtype, seed)
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


def test_numbers_far_below_the_largest_count_as_zero():
    rows = [[1.0, 2.0**-450, 2.0**-460], [0.0, 5e-324, -(2.0**-500)]]
    embedding = torch.tensor(rows, dtype=torch.double)
    assert (scaled_by_all(embedding) != 0).tolist() == [[True, True, False], [False] * 3]
    assert (scaled_by_row(embedding) != 0).tolist() == [[True, True, False], [False, False, True]]


INDICES = [slice(None), slice(3, 7), torch.tensor([7, 2, 2, 0]), torch.empty(0, dtype=torch.long)]


def draw(dtype, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    return (scale * torch.randn(9, 4, generator=generator, dtype=torch.double)).to(dtype)


@given(
    dtype=st.sampled_from(DTYPES),
    bias_dtype=st.none() | st.sampled_from(DTYPES),
    index=st.sampled_from(INDICES),
    size=st.sampled_from([1.0, 1e-300, 1e-40, 1e-20, 1e20, 1e38, 1e300]),
)
def test_rows_are_those_of_the_scaled_table(dtype, bias_dtype, index, size):
    table = draw(dtype, size)
    assume(table.isfinite().all())
    bias = None if bias_dtype is None else 100 * draw(bias_dtype)[:, 0]
    items = ItemFactors(table, bias, CPU)
    whole = table.double() if bias is None else torch.cat([table, bias.unsqueeze(1)], 1).double()
    assert (items.num_items, items.dim) == tuple(whole.shape)
    assert torch.equal(items.double(index), scaled_by_all(whole)[index])
    assert torch.equal(items.single(index) * items.scale, scaled_by_all(whole).float()[index])


def test_what_is_asked_for_is_a_copy():
    table = draw(torch.double)
    table[0, 0] = 1.5 * 2.0**54  # so that the scale is one
    before = table.clone()
    items = ItemFactors(table, None, CPU)
    for read in (items.double, items.single):
        read(slice(None)).zero_()
    assert torch.equal(table, before)
