"""Counts what a call asks of torch, how often the host waits, and which lines it executes."""

import sys
from pathlib import Path

from torch.utils._python_dispatch import TorchDispatchMode

import pyg_recmetrics

#: Where the lines are that count.
PACKAGE = str(Path(pyg_recmetrics.__file__).parent) + "/"


class _Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.num_operations = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.num_operations += 1
        return function(*args, **(kwargs or {}))


def num_operations(function):
    """Returns how many operations of torch a call makes, views among them."""
    with _Count() as count:
        function()
    return count.num_operations


def executed_lines(function):
    """Returns the lines of the package that a call executes: pairs of a file and a number."""
    lines = set()

    def of_function(frame, event, argument):
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return of_function

    def of_call(frame, event, argument):
        return of_function if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(of_call)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines
