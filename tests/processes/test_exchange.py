"""What a process alone exchanges: nothing. `test_distributed.py` starts several."""

import torch

from pyg_recmetrics.processes import add_up, collect, deal, take_largest, take_smallest


def test_a_process_alone_keeps_what_it_has():
    values = torch.tensor([3, 1])
    take_largest(values)
    take_smallest(values)
    add_up(values)
    assert values.tolist() == [3, 1]


def test_a_process_alone_collects_what_it_has():
    values = torch.tensor([[3, 1]])
    (collected,) = collect(values)
    received, sender = deal(values, torch.tensor([0]))
    assert collected.tolist() == received.tolist() == [[3, 1]]
    assert sender.tolist() == [0]
