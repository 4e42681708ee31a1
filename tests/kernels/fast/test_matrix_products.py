"""Products of matrices, by any library."""

import contextlib

import pytest
import torch

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.fast import matrix_products
from pyg_recmetrics.kernels.fast.matrix_products import (
    matrix_product,
    one_of_few_from,
    one_of_few_to,
)

# PyTorch says so of a flag that it restores.
pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")

CPU = torch.device("cpu")


def product(left, right):
    return matrix_product(left, right, Scratch(CPU), "test.product")


def without_onednn():
    return torch.backends.mkldnn.flags(enabled=False)


@pytest.fixture(params=["oneDNN", "BLAS"])
def library(request):
    with without_onednn() if request.param == "BLAS" else contextlib.nullcontext():
        yield


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


def test_onednn_is_asked_where_it_is_there(monkeypatch):
    asked = []

    def linear(left, right, *_):
        asked.append(left)
        return left @ right.t()

    monkeypatch.setattr(matrix_products, "_BY_ONEDNN", linear)
    product(torch.ones(2, 3), torch.ones(4, 3))
    assert len(asked) == 1
    product(torch.ones(2, 3).double(), torch.ones(4, 3).double())
    with without_onednn():
        product(torch.ones(2, 3), torch.ones(4, 3))
    monkeypatch.setattr(matrix_products, "_BY_ONEDNN", None)
    product(torch.ones(2, 3), torch.ones(4, 3))
    assert len(asked) == 1


def test_onednn_is_asked_for_few_numbers_of_rows(monkeypatch):
    asked = set()

    def linear(left, right, *_):
        asked.add(left.size(0))
        return left @ right.t()

    monkeypatch.setattr(matrix_products, "_BY_ONEDNN", linear)
    for num_rows in range(100, 200):
        assert product(torch.ones(num_rows, 2), torch.ones(3, 2)).shape == (num_rows, 3)
    assert asked == {one_of_few_from(num_rows) for num_rows in range(100, 200)}
    assert len(asked) < 12


def test_there_are_few_sizes_near_every_number():
    few = sorted({digits << zeros for digits in range(1, 16) for zeros in range(12)})
    for number in range(1, 2**14):
        above, below = one_of_few_from(number), one_of_few_to(number)
        assert below == max(each for each in few if each <= number)
        assert above == min(each for each in few if each >= number)
        assert number * 7 / 8 <= below <= number <= above <= number * 9 / 8
