"""Rounded items in the order of their norms, against plain Python."""

import math

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.scores import ItemFactors, scaled_by_row
from pyg_recmetrics.kernels.fast import rounded_items
from pyg_recmetrics.kernels.fast.rounded_items import (
    ErrorBound,
    RoundedItems,
    largest_norms,
    matrix_product,
    one_of_few_from,
    one_of_few_to,
)
from tests.support.cases.embeddings import KINDS, scaled_by_all

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")

CPU = torch.device("cpu")
kinds = st.sampled_from(sorted(KINDS))
dtypes = st.sampled_from([torch.bfloat16, torch.float32])


@given(
    kind=kinds,
    dtype=dtypes,
    candidates=st.sampled_from([None, torch.tensor([5]), torch.arange(1, 40, 3)]),
    max_bytes=st.sampled_from([0, 2**29]),
    num_at_once=st.sampled_from([3, 2**20]),
    part=st.tuples(st.integers(0, 44), st.integers(0, 44)).map(sorted),
)
def test_columns_norms_and_errors(kind, dtype, candidates, max_bytes, num_at_once, part):
    factors = ItemFactors(KINDS[kind]((40, 7), torch.Generator().manual_seed(0)), None, CPU)
    exact = factors.double(slice(None)) / factors.scale
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounded_items, "_MAX_BYTES", max_bytes)
        patch.setattr(rounded_items, "_ITEMS_AT_ONCE", num_at_once)
        items = RoundedItems(factors, candidates, dtype)
        rounded, of_part = items.rounded(0, 44), items.rounded(*part)
    wanted = list(range(40)) if candidates is None else candidates.tolist()
    assert sorted(items.item.tolist()) == wanted
    places = {item: place for place, item in enumerate(items.item.tolist())}
    assert items.column.tolist() == [places.get(item, -1) for item in range(40)]
    norms = [math.hypot(*row) for row in exact[items.item].tolist()]
    for bound, norm in zip(items.norm.tolist(), norms, strict=True):
        assert norm <= bound <= norm * (1 + 1e-5) + 1e-15
    assert items.norm.tolist() == sorted(items.norm.tolist(), reverse=True)
    assert rounded.dtype == dtype
    assert torch.equal(of_part, rounded[slice(*part)])
    assert not rounded[len(wanted) :].any()
    rounded = rounded[: len(wanted)].double()
    errors = (rounded - exact[items.item]).tolist()
    for bound, rows in ((items.rounded_norm, rounded.tolist()), (items.error, errors)):
        largest = max(math.hypot(*row) for row in rows)
        assert largest <= bound <= largest * 1.01 + 2.0**-23 * max(norms) + 1e-15


@given(kind=kinds, dtype=dtypes, seed=st.integers(0, 2**30))
def test_no_score_or_norm_is_further_from_the_exact_one_than_its_bound(kind, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    user = scaled_by_row(KINDS[kind]((20, 8), generator))
    item = scaled_by_all(KINDS[kind]((50, 8), generator))
    rounded = item.to(dtype)
    fast = user.to(dtype).float() @ rounded.float().t()
    error = (fast.double() - user @ item.t()).abs()
    rounding_of_sum = 8 * 2.0**-22 if dtype == torch.bfloat16 else 9 * 2.0**-24
    bound = ErrorBound(user, user.to(dtype), rounding_of_sum).of(
        largest_norms(rounded.double()).max(), largest_norms(rounded.double() - item).max()
    )
    assert (error <= bound.unsqueeze(1)).all()
    for row, bound in zip(item.tolist(), largest_norms(item).tolist(), strict=True):
        norm = math.hypot(*row)
        assert norm <= bound <= norm * (1 + 1e-5) + 2.0**-53


def product(left, right):
    return matrix_product(left, right, Scratch(CPU), "test.product")


@pytest.mark.parametrize("shape", [(17, 300, 64), (64, 33, 129), (2, 3, 0), (0, 3, 4)])
def test_a_product_is_within_the_bound_of_single_precision(shape):
    num_rows, num_columns, dim = shape
    generator = torch.Generator().manual_seed(dim)
    left = 1e15 * torch.randn(num_rows, dim, generator=generator)
    right = torch.randn(num_columns, dim, generator=generator)
    exact = left.double() @ right.double().t()
    bound = dim * 2.0**-24 * (left.double().abs() @ right.double().abs().t())
    for by_onednn in (True, False):
        with torch.backends.mkldnn.flags(enabled=by_onednn):
            got = product(left, right)
        assert got.dtype == torch.float32
        assert got.is_contiguous()
        assert ((got.double() - exact).abs() <= 1.001 * bound).all()


@pytest.fixture
def asked(monkeypatch):
    """The numbers of rows that oneDNN is asked for."""
    asked = []

    def linear(left, right, *_):
        asked.append(left.size(0))
        return left @ right.t()

    monkeypatch.setattr(rounded_items, "_BY_ONEDNN", linear)
    return asked


def test_onednn_is_asked_where_it_is_there(monkeypatch, asked):
    product(torch.ones(2, 3), torch.ones(4, 3))
    assert len(asked) == 1
    product(torch.ones(2, 3).double(), torch.ones(4, 3).double())
    with torch.backends.mkldnn.flags(enabled=False):
        product(torch.ones(2, 3), torch.ones(4, 3))
    monkeypatch.setattr(rounded_items, "_BY_ONEDNN", None)
    product(torch.ones(2, 3), torch.ones(4, 3))
    assert len(asked) == 1


def test_onednn_is_asked_for_few_numbers_of_rows(asked):
    for num_rows in range(100, 200):
        assert product(torch.ones(num_rows, 2), torch.ones(3, 2)).shape == (num_rows, 3)
    assert {*asked} == {one_of_few_from(num_rows) for num_rows in range(100, 200)}
    assert len({*asked}) < 12


def test_there_are_few_sizes_near_every_number():
    few = sorted({digits << zeros for digits in range(1, 16) for zeros in range(12)})
    for number in range(1, 2**14):
        above, below = one_of_few_from(number), one_of_few_to(number)
        assert below == max(each for each in few if each <= number)
        assert above == min(each for each in few if each >= number)
        assert number * 7 / 8 <= below <= number <= above <= number * 9 / 8
