"""Errors, where there is only one process: `test_distributed.py` starts several."""

import pytest
import torch

from pyg_recmetrics.processes import errors, fail_together


def test_an_error_of_a_process_alone_stays_what_it_is():
    with pytest.raises(KeyError, match="mine"), fail_together(torch.device("cpu")):
        raise KeyError("mine")


def test_errors_that_cannot_be_read_are_told_by_their_type():
    class Silent(Exception):  # noqa: N818 (it is no error of anything)
        def __str__(self):
            raise RuntimeError("no")

    assert errors._describe(Silent()).startswith("Silent: ")
    assert errors._describe(ValueError("\ud800")) == r"ValueError: \ud800"
