"""Embeddings that are scaled, converted and copied only where they are asked for."""

import numpy as np
import pytest
import torch

from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact import factors
from pyg_recmetrics.kernels.exact.factors import ItemFactors, with_column
from pyg_recmetrics.kernels.exact.scores import scaled_by_row
from tests.support.cases.embeddings import scaled_by_all
from tests.support.references import exact_scores

CPU = torch.device("cpu")
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

INDICES = [
    slice(None),
    slice(3, 7),
    torch.tensor([7, 2, 2, 0]),
    torch.empty(0, dtype=torch.long),
]


def draw(dtype, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    return (scale * torch.randn(9, 4, generator=generator, dtype=torch.double)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias_dtype", [None, *DTYPES])
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
    monkeypatch.setattr(factors, "_NUM_NUMBERS", num_numbers)
    user, item = exact_scores.draw(kind, 3, 12, 6, torch.float32, seed=0)
    user = scaled_by_row(user)
    items = ItemFactors(item, None, CPU)
    wanted = exact_scores.score_matrix(user, scaled_by_all(item))
    row, column = torch.cartesian_prod(torch.arange(3), torch.arange(12)).t()
    assert torch.equal(items.exact_scores(user, row, column), wanted[row, column])
    nothing = torch.empty(0, dtype=torch.long)
    assert items.exact_scores(user, nothing, nothing).shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("num_numbers", "max_bytes"), [(2**20, 2**28), (2**20, 0), (5, 0)])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_scores_in_single_precision(
    monkeypatch, dtype, has_bias, num_numbers, max_bytes, is_transposed
):
    monkeypatch.setattr(factors, "_NUM_NUMBERS", num_numbers)
    monkeypatch.setattr(factors, "_MAX_BYTES", max_bytes)
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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_one_more_column_loses_nothing(dtype, other):
    table, column = draw(dtype), draw(other)[:, 1]
    both = with_column(table, column)
    assert torch.equal(both[:, :4].double(), table.double())
    assert torch.equal(both[:, 4].double(), column.double())
