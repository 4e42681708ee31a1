"""An axis of one process, and what it tells others when it fails: `test_sharded.py` has several."""

import pytest
import torch

from pyg_recmetrics.processes import Axis, axes
from pyg_recmetrics.processes.watch import Stopped


def test_a_process_alone_computes_for_itself():
    axis = Axis.of_all()
    own = torch.tensor([3, 1])
    assert (axis.size, axis.index) == (1, 0)
    assert axis.largest(lambda: own, own) is own
    assert axis.total(lambda: own, own) is own
    assert axis.gathered(lambda: own, own) is own


class Done:
    """What is done at once."""

    def is_completed(self):
        return True

    def wait(self):
        return True


class Recorded:
    """Collectives of two processes, of which the other one has zeros, or fails."""

    def __init__(self, has_failed):
        self.has_failed, self.sent = has_failed, []

    def all_reduce(self, values, operation, *, group, async_op):
        self.sent.append(values.clone())
        values[-1] = max(int(values[-1]), int(self.has_failed))
        return Done()

    def all_gather(self, of_each, values, *, group, async_op):
        self.sent.append(values.clone())
        of_each[0].copy_(values)
        of_each[1].fill_(-1 if self.has_failed else 0)
        return Done()


@pytest.fixture(params=[False, True])
def others(request, monkeypatch):
    recorded = Recorded(request.param)
    monkeypatch.setattr(axes.dist, "get_backend", lambda group: "gloo")
    for name in ("all_reduce", "all_gather"):
        monkeypatch.setattr(axes.dist, name, getattr(recorded, name))
    return recorded


def fail():
    raise KeyError("mine")


def test_numbers_travel_with_a_flag(others):
    axis, own = Axis(2, 0), torch.tensor([[1.5, -2.0]])
    if others.has_failed:
        with pytest.raises(Stopped):
            axis.total(lambda: own, own)
    else:
        assert torch.equal(axis.total(lambda: own, own), own)
    assert others.sent[0].tolist() == [1.5, -2.0, 0.0]


@pytest.mark.parametrize("name", ["largest", "total", "gathered"])
def test_a_process_that_fails_sends_as_much_and_raises_its_own_error(others, name):
    like = torch.zeros(3, 2, dtype=torch.int32)
    with pytest.raises(KeyError, match="mine"):
        getattr(Axis(2, 0), name)(fail, like)
    (sent,) = others.sent
    assert sent.tolist() == ([-1] if name == "gathered" else [0] * 6 + [1])


def test_rows_of_others_may_be_fewer(others):
    axis, own = Axis(2, 0), torch.tensor([[1, 2], [3, 4]])
    if others.has_failed:
        with pytest.raises(Stopped):
            axis.gathered(lambda: own, own[:0])
    else:
        assert axis.gathered(lambda: own, own[:0]).tolist() == own.tolist()
        assert axis.gathered(lambda: own[:0], own).shape == (0, 2)
