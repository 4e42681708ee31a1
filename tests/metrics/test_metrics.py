"""Laws over the whole registry. The values are compared by the doors of `test_every_door.py`."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pyg_recmetrics import Catalogue, RankingTask, rank
from pyg_recmetrics.metrics import names
from tests.support.tools import laws
from tests.support.tools.laws import (
    metrics_of_lists,
    metrics_of_ranks,
)

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def test_values_are_within_bounds_and_undefined_just_without_truth():
    laws.check_bounds()


def test_renumbering_users_and_items_changes_nothing():
    laws.check_renumbering()


class InSinglePrecision(TorchDispatchMode):
    """Names the operations that return numbers of less than double precision."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.dtype in (torch.float32, torch.float16):
            self.found.append(func)
        return out


def test_metrics_compute_in_double_precision():
    truth, seen = torch.randint(50, (2, 400)), torch.randint(50, (2, 300))
    weight = torch.randint(1, 4, (400,))
    task = RankingTask(truth, num_users=50, num_items=50, seen=seen, weight=weight)
    category = torch.rand(50, 6).round().double()
    items = Catalogue(50, seen=seen, item_category=category, item_embedding=category - 0.3)
    ranked = rank(torch.rand(50, 50), task, full=True, keep_items=True).with_catalogue(items)
    for metric in [each for name in names() for each in laws.with_arguments(name, 20)]:
        with InSinglePrecision() as single:
            metric(ranked)
        assert (str(metric), single.found) == (str(metric), [])


def test_devices_agree(device):
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(50, (2, 400), generator=generator)
    seen = torch.randint(50, (2, 300), generator=generator)
    weight = torch.randint(1, 4, (400,), generator=generator)
    scores = torch.randint(9, (50, 50), generator=generator).float()
    task = RankingTask(truth, num_users=50, num_items=50, seen=seen, weight=weight)
    category = torch.rand(50, 6, generator=generator).round()
    items = Catalogue(50, seen=seen, item_category=category, item_embedding=category - 0.3)
    here = rank(scores, task, k=27, keep_items=True).with_catalogue(items)
    there = rank(scores.to(device), task.to(device), k=27, keep_items=True)
    assert there.rank.device.type == there.catalogue.popularity.device.type == device.type
    there = there.with_catalogue(items.to(device))
    for metric in metrics_of_ranks(20) + metrics_of_lists(10):
        for other in (there, here.to(device)):
            assert torch.allclose(metric(here), metric(other).cpu(), atol=1e-12, equal_nan=True)
