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
    processes.check_same(values.device, values=values)
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
        ((torch.tensor([1, 10, 50]),), (torch.tensor([6, 7, 50]),)),
        ((A_TENSOR[None],), (A_TENSOR,)),
        (({"a": A_TENSOR},), ({"b": A_TENSOR},)),
    ],
)
def test_other_values_have_another_digest(one, other):
    digest, again, of_other = map(processes._digest, (one, deepcopy(one), other))
    assert torch.equal(digest, again)
    assert not torch.equal(digest, of_other)


def test_large_and_strided_tensors_are_hashed_in_parts(monkeypatch):
    tensor = torch.rand(6, 4, 3)
    whole = processes._digest(tensor)
    monkeypatch.setattr(processes, "_BYTES_AT_ONCE", 64)
    for same in (tensor, tensor.transpose(0, 2).contiguous().transpose(0, 2)):
        assert torch.equal(processes._digest(same), whole)
    for number in (torch.tensor(2.0), torch.tensor([], dtype=torch.bfloat16), torch.ones(3).bool()):
        assert torch.equal(processes._digest(number), processes._digest(number.clone()))
    assert not torch.equal(processes._digest(tensor.flatten()), whole)


@pytest.mark.parametrize("place", [0, 12_345, -1])
def test_any_number_of_a_large_tensor_counts(place):
    tensor = torch.rand(700, 600)
    changed = tensor.clone()
    changed.view(-1)[place] = torch.nextafter(tensor.view(-1)[place], torch.tensor(2.0))
    digests = [processes._digest(value) for value in (tensor, tensor.clone(), changed)]
    assert torch.equal(digests[0], digests[1])
    assert not torch.equal(digests[0], digests[2])


def test_errors_that_cannot_be_read_are_told_by_their_type():
    class Silent(Exception):  # noqa: N818 (it is no error of anything)
        def __str__(self):
            raise RuntimeError("no")

    assert processes._describe(Silent()).startswith("Silent: ")
    assert processes._describe(ValueError("\ud800")) == "ValueError: \ud800"
