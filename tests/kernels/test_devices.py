"""What devices differ in, as far as it can be told without them."""

from types import SimpleNamespace

import pytest
import torch

from pyg_recmetrics import RankedEdges, RankingTask, checks, rank
from pyg_recmetrics.kernels import devices
from pyg_recmetrics.kernels.devices import (
    Scratch,
    at_once,
    has_exact_single_precision,
)
from pyg_recmetrics.ranking import algorithms

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(("gigabytes", "factor"), [(0.5, 1), (8, 2), (24, 6), (139, 32)])
def test_a_device_with_more_memory_does_more_at_once(monkeypatch, gigabytes, factor):
    properties = SimpleNamespace(total_memory=int(gigabytes * 2**30))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    assert at_once(100, CUDA) == 100 * factor
    assert at_once(100, CPU) == 100


def test_single_precision_is_looked_up_for_the_device(monkeypatch):
    monkeypatch.setattr(torch, "get_float32_matmul_precision", _raise)
    for name, device in (("cuda", CUDA), ("mkldnn", CPU)):
        for precision, is_exact in (("ieee", True), ("tf32", False)):
            matmul = SimpleNamespace(fp32_precision=precision)
            with monkeypatch.context() as patch:
                patch.setattr(getattr(torch.backends, name), "matmul", matmul, raising=False)
                assert has_exact_single_precision(device) == is_exact


@pytest.mark.parametrize("name", ["ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"])
def test_onednn_may_be_told_to_leave_bits_out(monkeypatch, name):
    assert has_exact_single_precision(CPU)
    monkeypatch.setenv(name, "STRICT")
    assert has_exact_single_precision(CPU)
    monkeypatch.setenv(name, "BF16")
    assert not has_exact_single_precision(CPU)
    assert has_exact_single_precision(CUDA)


def _raise():
    raise RuntimeError("the precision was set for each backend")


def test_a_device_without_double_precision_is_named(monkeypatch):
    truth = torch.tensor([[0], [1]])
    task = RankingTask(truth, num_users=1, num_items=2)
    scores, lists = torch.rand(1, 2), torch.tensor([[1, 0]])
    ranked = rank(scores, task)
    monkeypatch.setattr(checks, "holds_double_precision", lambda device: False)
    calls = {
        "task": lambda: rank(scores, task),
        "pred_index_mat": lambda: RankedEdges.from_topk(lists, truth),
        "preds": lambda: RankedEdges.from_pairs(scores, torch.tensor([[0, 1]])),
        "weight": lambda: RankingTask(truth, num_users=1, num_items=2, weight=torch.ones(1)),
        "device": lambda: ranked.to("cpu"),
    }
    error = r"needs to be on a device with double precision, such as the CPU \(got cpu\)"
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"'{name}' {error}"):
            call()


@pytest.mark.parametrize("options", [{"k": 20}, {"k": 20, "keep_items": True}, {"full": True}])
def test_a_device_that_does_more_at_once_waits_less(monkeypatch, device, waits, options):
    if device.type != "emulated":
        pytest.skip("needs a device whose memory can be chosen")
    monkeypatch.setattr(algorithms, "SCRATCH_BYTES", 2**17)
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(1000, (500, 5), generator=generator)
    users = torch.arange(500).repeat_interleave(5)
    task = RankingTask(torch.stack([users, truth.view(-1)]), num_users=500, num_items=1000)
    task = task.to(device)
    tables = [torch.rand(size, 16, generator=generator).to(device) for size in (500, 1000)]
    num_waits = []
    for factor in (64, 1):
        monkeypatch.setattr(devices, "_FACTOR", factor)
        num_waits.append(waits(lambda: rank(tables, task, **options)))
    assert 0 < 4 * num_waits[0] < num_waits[1]


def test_each_name_has_memory_of_its_own_that_grows():
    scratch = Scratch(CPU)
    keys, scores = (scratch(name, (3, 4), torch.float32) for name in ("keys", "scores"))
    keys.fill_(1)
    scores.fill_(2)
    assert (keys.unique().tolist(), scores.unique().tolist()) == ([1], [2])
    smaller = scratch("keys", (2, 5), torch.float32)
    assert smaller.data_ptr() == keys.data_ptr()
    assert (smaller.shape, smaller.is_contiguous()) == ((2, 5), True)
    larger = scratch("keys", (100,), torch.float32)
    assert larger.shape == (100,)
    assert scratch("keys", (0, 5), torch.float32).shape == (0, 5)
    assert scratch("keys", (4,), torch.int64).dtype == torch.int64
