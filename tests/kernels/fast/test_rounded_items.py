"""Rounded items in the order of their norms, against plain Python."""

import contextlib
import math

import pytest
import torch

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

CPU = torch.device("cpu")
DTYPES = [torch.bfloat16, torch.float32]


def draw(kind, candidates=None, dtype=torch.bfloat16):
    item = KINDS[kind]((40, 7), torch.Generator().manual_seed(0))
    factors = ItemFactors(item, None, CPU)
    return RoundedItems(factors, candidates, dtype), factors.double(slice(None)) / factors.scale


@pytest.fixture(params=["one table", "rounded anew", "a few at once"])
def memory(request, monkeypatch):
    """Whether all items are rounded at once, and stay."""
    if request.param != "one table":
        monkeypatch.setattr(rounded_items, "_MAX_BYTES", 0)
    if request.param == "a few at once":
        monkeypatch.setattr(rounded_items, "_ITEMS_AT_ONCE", 3)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("candidates", [None, torch.tensor([5]), torch.arange(1, 40, 3)])
def test_columns_norms_and_errors(kind, dtype, candidates):
    items, exact = draw(kind, candidates, dtype)
    wanted = list(range(40)) if candidates is None else candidates.tolist()
    assert sorted(items.item.tolist()) == wanted
    places = {item: place for place, item in enumerate(items.item.tolist())}
    assert items.column.tolist() == [places.get(item, -1) for item in range(40)]
    norms = [math.hypot(*row) for row in exact[items.item].tolist()]
    for bound, norm in zip(items.norm.tolist(), norms, strict=True):
        assert norm <= bound <= norm * (1 + 1e-5) + 1e-15
    assert items.norm.tolist() == sorted(items.norm.tolist(), reverse=True)
    rounded = items.rounded(0, len(wanted) + 5)
    assert rounded.dtype == dtype
    assert not rounded[len(wanted) :].any()
    rounded = rounded[: len(wanted)].double()
    errors = (rounded - exact[items.item]).tolist()
    for bound, rows in ((items.rounded_norm, rounded.tolist()), (items.error, errors)):
        largest = max(math.hypot(*row) for row in rows)
        assert largest <= bound <= largest * 1.01 + 2.0**-23 * max(norms) + 1e-15


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("start", "end"), [(0, 40), (3, 9), (30, 48), (39, 41), (40, 44)])
def test_columns_are_the_same_however_many_are_asked_for(dtype, start, end):
    items, exact = draw("random", dtype=dtype)
    wanted = torch.zeros(48, 7, dtype=dtype)
    wanted[:40] = exact[items.item].to(dtype)
    assert torch.equal(items.rounded(start, end), wanted[start:end])


def draw_of_bounds(kind):
    generator = torch.Generator().manual_seed(0)
    user, item = KINDS[kind]((20, 8), generator), KINDS[kind]((50, 8), generator)
    return scaled_by_row(user), scaled_by_all(item)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    ("dtype", "rounding_of_sum"), [(torch.bfloat16, 8 * 2.0**-22), (torch.float32, 9 * 2.0**-24)]
)
def test_no_score_is_further_from_the_exact_one(kind, dtype, rounding_of_sum):
    user, item = draw_of_bounds(kind)
    rounded = item.to(dtype)
    fast = user.to(dtype).float() @ rounded.float().t()
    error = (fast.double() - user @ item.t()).abs()
    bound = ErrorBound(user, user.to(dtype), rounding_of_sum).of(
        largest_norms(rounded.double()).max(), largest_norms(rounded.double() - item).max()
    )
    assert (error <= bound.unsqueeze(1)).all()


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_norm_is_larger_than_its_bound_and_none_much_smaller(kind, dtype):
    rows = draw_of_bounds(kind)[1].to(dtype)
    for row, bound in zip(rows.tolist(), largest_norms(rows).tolist(), strict=True):
        norm = math.hypot(*row)
        assert norm <= bound <= norm * (1 + 1e-5) + 2.0**-53


def product(left, right):
    return matrix_product(left, right, Scratch(CPU), "test.product")


def without_onednn():
    return torch.backends.mkldnn.flags(enabled=False)


@pytest.fixture(params=["oneDNN", "BLAS"])
def library(request):
    with without_onednn() if request.param == "BLAS" else contextlib.nullcontext():
        yield


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.usefixtures("library")
class TestMatrixProduct:
    @pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (17, 300, 64), (64, 33, 129)])
    @pytest.mark.parametrize("scale", [1.0, 1e-15, 1e15])
    def test_it_is_within_the_bound_of_single_precision(self, shape, scale):
        num_rows, num_columns, dim = shape
        generator = torch.Generator().manual_seed(dim)
        left = scale * torch.randn(num_rows, dim, generator=generator)
        right = torch.randn(num_columns, dim, generator=generator)
        exact = left.double() @ right.double().t()
        bound = dim * 2.0**-24 * (left.double().abs() @ right.double().abs().t())
        got = product(left, right)
        assert got.dtype == torch.float32
        assert got.is_contiguous()
        assert ((got.double() - exact).abs() <= 1.001 * bound).all()

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_sums_of_small_integers_are_exact(self, dtype):
        generator = torch.Generator().manual_seed(0)
        left, right = (torch.randint(-9, 10, (n, 50), generator=generator) for n in (40, 90))
        got = product(left.to(dtype), right.to(dtype))
        assert got.dtype == dtype
        assert torch.equal(got.long(), left @ right.t())

    def test_rows_that_lie_apart(self):
        table = torch.arange(48.0).view(4, 12)
        got = product(table[:, ::2], table.t()[::2].t())
        assert torch.equal(got, table[:, ::2].contiguous() @ table[:, ::2].t().contiguous())

    @pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3, 4), (2, 0, 4)])
    def test_nothing(self, shape):
        got = product(torch.ones(shape[0], shape[2]), torch.ones(shape[1], shape[2]))
        assert torch.equal(got, torch.zeros(shape[:2]))


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_onednn_is_asked_where_it_is_there(monkeypatch):
    asked = []

    def linear(left, right, *_):
        asked.append(left)
        return left @ right.t()

    monkeypatch.setattr(rounded_items, "_BY_ONEDNN", linear)
    product(torch.ones(2, 3), torch.ones(4, 3))
    assert len(asked) == 1
    product(torch.ones(2, 3).double(), torch.ones(4, 3).double())
    with without_onednn():
        product(torch.ones(2, 3), torch.ones(4, 3))
    monkeypatch.setattr(rounded_items, "_BY_ONEDNN", None)
    product(torch.ones(2, 3), torch.ones(4, 3))
    assert len(asked) == 1


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_onednn_is_asked_for_few_numbers_of_rows(monkeypatch):
    asked = set()

    def linear(left, right, *_):
        asked.add(left.size(0))
        return left @ right.t()

    monkeypatch.setattr(rounded_items, "_BY_ONEDNN", linear)
    for num_rows in range(100, 200):
        assert product(torch.ones(num_rows, 2), torch.ones(3, 2)).shape == (num_rows, 3)
    assert asked == {one_of_few_from(num_rows) for num_rows in range(100, 200)}
    assert len(asked) < 12


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_there_are_few_sizes_near_every_number():
    few = sorted({digits << zeros for digits in range(1, 16) for zeros in range(12)})
    for number in range(1, 2**14):
        above, below = one_of_few_from(number), one_of_few_to(number)
        assert below == max(each for each in few if each <= number)
        assert above == min(each for each in few if each >= number)
        assert number * 7 / 8 <= below <= number <= above <= number * 9 / 8
