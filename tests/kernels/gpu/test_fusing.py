"""Which devices can run programs of Triton."""

import pytest
import torch

pytest.importorskip("triton", reason="needs Triton, which comes with torch for NVIDIA's GPUs")

from pyg_recmetrics.kernels.gpu import fused_products, fusing

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def test_a_device_is_tried_once_and_a_warning_says_what_is_wrong(monkeypatch):
    fusing.runs_on.cache_clear()
    assert fusing.runs_on(DEVICE, 33)
    for program in ("find_largest", "compute", "count_above"):
        fusing.runs_on.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(fused_products, program, None)
            with pytest.warns(UserWarning, match=f"Triton does not work on {DEVICE}"):
                assert not fusing.runs_on(DEVICE, 33)
            assert not fusing.runs_on(DEVICE, 33)
    fusing.runs_on.cache_clear()


@pytest.mark.parametrize(
    ("device", "capability", "cuda", "dim", "wanted"),
    [
        ("cuda", (8, 0), "13.0", 128, True),
        ("cuda", (8, 0), "13.0", 129, False),
        ("cuda", (7, 5), "13.0", 64, False),
        ("cuda", (9, 4), None, 64, False),  # a GPU of another maker
        ("cpu", (9, 0), "13.0", 64, False),
    ],
)
def test_only_some_devices_are_tried(monkeypatch, device, capability, cuda, dim, wanted):
    monkeypatch.setattr(fusing, "runs_on", lambda device, dim: True)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert fusing.can_fuse(torch.device(device), dim) == wanted
