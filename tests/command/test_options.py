"""The options of the command."""

import pytest

from pyg_recmetrics.command.options import make_parser
from pyg_recmetrics.metrics import parse


def test_options_are_spelled_out():
    with pytest.raises(SystemExit):
        make_parser().parse_args(["evaluate", "--test", "a", "--conv", "b"])


def test_a_result_has_one_form(capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["compare", "a.npz", "b.npz", "--json", "--latex"])
    assert "--latex: not allowed with argument --json" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1_0", "0_1", "\u0661", "1_0.5"])
@pytest.mark.parametrize("option", ["--seed", "--batch-size", "--threshold", "--margin"])
def test_only_digits_are_numbers(text, option, capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["evaluate", "--test", "a", option, text])
    assert option in capsys.readouterr().err
    for spelled in (f"mrr@{text}", f"rbp(p={text})@5", f"ndcg(ideal_k={text})@1"):
        with pytest.raises(ValueError, match=f"got .*{text}"):
            parse(spelled)
