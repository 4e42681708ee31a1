"""What a process alone exchanges: nothing. `test_distributed.py` starts several."""

import torch

from pyg_recmetrics.processes import take_largest, take_smallest


def test_a_process_alone_keeps_what_it_has():
    values = torch.tensor([3, 1])
    take_largest(values)
    take_smallest(values)
    assert values.tolist() == [3, 1]
