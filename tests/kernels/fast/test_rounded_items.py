"""Rounded items in the order of their norms, against plain Python."""

import math

import pytest
import torch

from pyg_recmetrics.kernels.exact.factors import ItemFactors
from pyg_recmetrics.kernels.fast import rounded_items
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from tests.support.cases.embeddings import KINDS

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
