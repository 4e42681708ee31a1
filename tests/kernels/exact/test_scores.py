"""Inner products that are rounded correctly, and scaling by powers of two that changes nothing."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact import scores
from pyg_recmetrics.kernels.exact.scores import (
    BoundedFactors,
    ItemFactors,
    grains,
    inner_product_matrix,
    inner_products,
    scaled_by_row,
    with_column,
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


CPU = torch.device("cpu")
DTYPES_OF_FACTORS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

INDICES = [
    slice(None),
    slice(3, 7),
    torch.tensor([7, 2, 2, 0]),
    torch.empty(0, dtype=torch.long),
]


def draw(dtype, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    return (scale * torch.randn(9, 4, generator=generator, dtype=torch.double)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES_OF_FACTORS)
@pytest.mark.parametrize("bias_dtype", [None, *DTYPES_OF_FACTORS])
@pytest.mark.parametrize("index", INDICES)
def test_rows_are_those_of_the_scaled_table(dtype, bias_dtype, index):
    table = draw(dtype)
    bias = None if bias_dtype is None else 100 * draw(bias_dtype)[:, 0]
    items = ItemFactors(table, bias, CPU)
    whole = table.double() if bias is None else torch.cat([table, bias.unsqueeze(1)], 1).double()
    assert (items.num_items, items.dim) == tuple(whole.shape)
    assert torch.equal(items.double(index), scaled_by_all(whole)[index])
    assert torch.equal(items.single(index) * items.scale, scaled_by_all(whole).float()[index])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-300, 1e-40, 1e-20, 1e20, 1e38, 1e300])
def test_tables_of_any_size_are_scaled_to_the_same(dtype, size):
    table = draw(dtype, size)
    if not table.isfinite().all():
        return
    items = ItemFactors(table, None, CPU)
    assert torch.equal(items.double(slice(None)), scaled_by_all(table))
    lost = items.single(slice(None)).double() * items.scale - items.double(slice(None))
    assert (lost.abs() <= 2.0**-24 * items.double(slice(None)).abs() + 2.0**-149).all()


def test_what_is_asked_for_is_a_copy():
    table = draw(torch.double)
    table[0, 0] = 1.5 * 2.0**54  # so that the scale is one
    before = table.clone()
    items = ItemFactors(table, None, CPU)
    for read in (items.double, items.single):
        read(slice(None)).zero_()
    assert torch.equal(table, before)


@pytest.mark.parametrize("kind", exact_scores.KINDS)
@pytest.mark.parametrize("num_numbers", [1, 2**20])
def test_scores_of_pairs_are_exact_inner_products(kind, num_numbers, monkeypatch):
    monkeypatch.setattr(scores, "_NUM_NUMBERS", num_numbers)
    user, item = exact_scores.draw(kind, 3, 12, 6, torch.float32, seed=0)
    user = scaled_by_row(user)
    items = ItemFactors(item, None, CPU)
    wanted = exact_scores.score_matrix(user, scaled_by_all(item))
    row, column = torch.cartesian_prod(torch.arange(3), torch.arange(12)).t()
    assert torch.equal(items.exact_scores(user, row, column), wanted[row, column])
    nothing = torch.empty(0, dtype=torch.long)
    assert items.exact_scores(user, nothing, nothing).shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES_OF_FACTORS)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("num_numbers", "max_bytes"), [(2**20, 2**28), (2**20, 0), (5, 0)])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_scores_in_single_precision(
    monkeypatch, dtype, has_bias, num_numbers, max_bytes, is_transposed
):
    monkeypatch.setattr(scores, "_NUM_NUMBERS", num_numbers)
    monkeypatch.setattr(scores, "_MAX_BYTES", max_bytes)
    table, bias = draw(dtype), draw(dtype, 3.0)[:, 0]
    if is_transposed:
        table = table.t().contiguous().t()
    items = ItemFactors(table, bias if has_bias else None, CPU)
    user = items.for_single(scaled_by_row(torch.randn(3, items.dim, dtype=torch.double)))
    row, item = torch.tensor([0, 0, 0, 2, 2]), torch.tensor([8, 1, 3, 3, 0])
    found = items.single_scores(user.float(), Entries(row, item, 3))
    wanted = (user[row] * items.double(item) / items.scale).sum(dim=1)
    torch.testing.assert_close(
        found.double(), wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max())
    )
    assert found.dtype == torch.float32
    nothing = Entries(row[:0], item[:0], 3)
    assert items.single_scores(user.float(), nothing).shape == (0,)


def test_a_file_that_is_mapped_into_memory(tmp_path):
    table = draw(torch.float32)
    table.numpy().tofile(tmp_path / "items")
    mapped = np.memmap(tmp_path / "items", dtype=np.float32, mode="r+", shape=(9, 4))
    items = ItemFactors(torch.from_numpy(mapped), None, CPU)
    assert torch.equal(items.double(torch.tensor([4, 1])), scaled_by_all(table)[[4, 1]])


@pytest.mark.parametrize("dtype", DTYPES_OF_FACTORS)
@pytest.mark.parametrize("other", DTYPES_OF_FACTORS)
def test_one_more_column_loses_nothing(dtype, other):
    table, column = draw(dtype), draw(other)[:, 1]
    both = with_column(table, column)
    assert torch.equal(both[:, :4].double(), table.double())
    assert torch.equal(both[:, 4].double(), column.double())
