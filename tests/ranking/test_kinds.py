"""Which kernels there are on a device, the fastest first."""

import pytest
import torch

from pyg_recmetrics.kernels.fast.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.fast.fast_products import StoredProducts
from pyg_recmetrics.ranking import kinds

CPU = torch.device("cpu")


def test_a_processor_may_have_fast_products_in_bfloat16():
    single = (StoredProducts, torch.float32)
    assert kinds.kinds_of_products(CPU, 8, in_bfloat16=False) == [single]
    found = kinds.kinds_of_products(CPU, 8, in_bfloat16=True)
    assert found == [(StoredProducts, torch.bfloat16), single]
    assert kinds.kinds_of_counts(CPU, 8) == [(BoundedCount, torch.float32)]


def test_less_than_single_precision_has_no_bound(monkeypatch):
    monkeypatch.setattr(kinds, "has_exact_single_precision", lambda device: False)
    assert kinds.kinds_of_products(CPU, 8, in_bfloat16=False) == []
    assert kinds.kinds_of_counts(CPU, 8) == []


@pytest.mark.parametrize(
    ("device", "dtype", "name"),
    [
        ("cpu", torch.float32, "StripSearch"),
        ("cpu", torch.bfloat16, "Search"),
        ("cuda", torch.float16, "Search"),
        ("cuda", torch.float32, "Search"),
    ],
)
def test_a_processor_searches_products_in_single_precision_in_strips(device, dtype, name):
    assert kinds.kind_of_search(torch.device(device), dtype).__name__ == name


def test_a_gpu_fuses(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setattr(kinds, "can_fuse", lambda device, dim: dim == 8)
    names = [kind.__name__ for kind, _ in kinds.kinds_of_products(CPU, 8, in_bfloat16=True)]
    assert names == ["FusedProducts", "StoredProducts"]
    assert [kind.__name__ for kind, _ in kinds.kinds_of_counts(CPU, 8)] == [
        "FusedCount",
        "BoundedCount",
    ]
    assert len(kinds.kinds_of_counts(CPU, 9)) == 1
