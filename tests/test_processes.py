"""Shares, where there is only one process: `test_distributed.py` starts several."""

from copy import deepcopy

import pytest
import torch

from pyg_recmetrics.processes import check_same, digest, num_processes, process_index, share


def test_without_a_process_group_a_process_is_alone():
    assert (num_processes(), process_index()) == (1, 0)
    assert share(torch.arange(3)).tolist() == [0, 1, 2]


def test_a_process_alone_compares_with_nobody():
    check_same(values=torch.tensor([3, 1]))


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
    own, again, of_other = map(digest, (one, deepcopy(one), other))
    assert own == again
    assert own != of_other


def test_strided_and_empty_tensors_are_hashed_by_their_numbers():
    tensor = torch.rand(6, 4, 3)
    whole = digest(tensor)
    for same in (tensor, tensor.transpose(0, 2).contiguous().transpose(0, 2)):
        assert digest(same) == whole
    for number in (torch.tensor(2.0), torch.tensor([], dtype=torch.bfloat16), torch.ones(3).bool()):
        assert digest(number) == digest(number.clone())
    assert digest(tensor.flatten()) != whole


@pytest.mark.parametrize("place", [0, 12_345, -1])
def test_any_number_of_a_large_tensor_counts(place):
    tensor = torch.rand(700, 600)
    changed = tensor.clone()
    changed.view(-1)[place] = torch.nextafter(tensor.view(-1)[place], torch.tensor(2.0))
    digests = [digest(value) for value in (tensor, tensor.clone(), changed)]
    assert digests[0] == digests[1] != digests[2]
