"""Packages that some tests need, and the marks of these tests."""

import pytest
from torch_geometric import metrics as pyg

try:
    import torchmetrics
except ImportError:
    torchmetrics = None

needs_torchmetrics = pytest.mark.skipif(torchmetrics is None, reason="needs torchmetrics")
needs_collection = pytest.mark.skipif(
    not hasattr(pyg, "LinkPredMetricCollection"), reason="needs PyG 2.7"
)
