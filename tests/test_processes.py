"""What processes tell each other, where there is only one: `test_distributed.py` starts several."""

from copy import deepcopy

import pytest
import torch

from pyg_recmetrics import processes


def test_without_a_process_group_a_process_is_alone():
    assert (processes.num_processes(), processes.process_index()) == (1, 0)
    assert processes.share(torch.arange(3)).tolist() == [0, 1, 2]


def test_a_process_alone_exchanges_nothing():
    values = torch.tensor([3, 1])
    processes.check_same(values)
    processes.take_largest(values)
    processes.take_smallest(values)
    assert values.tolist() == [3, 1]
    with pytest.raises(KeyError, match="mine"), processes.fail_together(values.device):
        raise KeyError("mine")


A_TENSOR = torch.tensor([1.0, 2.0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((A_TENSOR,), (A_TENSOR.flip(0),)),
        ((A_TENSOR,), (A_TENSOR.double().nextafter(torch.tensor(9.0)),)),
        ((A_TENSOR, None), (A_TENSOR, 0)),
        ((A_TENSOR, True), (A_TENSOR, 1)),
        ((A_TENSOR, "best"), (A_TENSOR, "worst")),
        ((A_TENSOR, 1, 2), (A_TENSOR, 2, 1)),
        ((A_TENSOR, A_TENSOR[:0]), (A_TENSOR,)),
    ],
)
def test_other_values_have_another_fingerprint(one, other):
    assert processes._fingerprint(one) != processes._fingerprint(other)
    assert processes._fingerprint(one) == processes._fingerprint(deepcopy(one))
