"""The options of the command."""

import pytest

from pyg_recmetrics.command.options import make_parser


def test_options_are_spelled_out():
    with pytest.raises(SystemExit):
        make_parser().parse_args(["evaluate", "--test", "a", "--conv", "b"])


@pytest.mark.parametrize(
    ("text", "value"), [("2%", "2%"), ("0.5%", "0.5%"), ("0.01", 0.01), ("1e-3", 1e-3)]
)
def test_a_margin_is_a_number_or_a_share(text, value):
    line = ["gate", "a", "--baseline", "b", "--metric", "mrr", "--margin", text]
    assert make_parser().parse_args(line).margin == value
