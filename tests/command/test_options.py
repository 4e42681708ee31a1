"""The options of the command."""

import pytest

from pyg_recmetrics.command.options import make_parser


def test_options_are_spelled_out():
    with pytest.raises(SystemExit):
        make_parser().parse_args(["evaluate", "--test", "a", "--conv", "b"])
