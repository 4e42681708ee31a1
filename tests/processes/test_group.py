"""Shares, where there is only one process: `test_distributed.py` starts several."""

import torch

from pyg_recmetrics.processes import num_processes, process_index, share


def test_without_a_process_group_a_process_is_alone():
    assert (num_processes(), process_index()) == (1, 0)
    assert share(torch.arange(3)).tolist() == [0, 1, 2]
