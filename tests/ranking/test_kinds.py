"""Which products there are on a device, the fastest first."""

import pytest
import torch

from pyg_recmetrics.ranking import kinds

CPU = torch.device("cpu")


def test_a_processor_may_have_fast_products_in_bfloat16():
    assert kinds.dtypes_of_products(CPU, in_bfloat16=False) == [torch.float32]
    found = kinds.dtypes_of_products(CPU, in_bfloat16=True)
    assert found == [torch.bfloat16, torch.float32]


def test_less_than_single_precision_has_no_bound(monkeypatch):
    monkeypatch.setattr(kinds, "has_exact_single_precision", lambda device: False)
    assert kinds.dtypes_of_products(CPU, in_bfloat16=False) == []


@pytest.mark.parametrize(
    ("device", "dtype", "name"),
    [
        ("cpu", torch.float32, "StripSearch"),
        ("cpu", torch.bfloat16, "Search"),
        ("cuda", torch.bfloat16, "Search"),
        ("cuda", torch.float32, "Search"),
    ],
)
def test_a_processor_searches_products_in_single_precision_in_strips(device, dtype, name):
    assert kinds.kind_of_search(torch.device(device), dtype).__name__ == name
