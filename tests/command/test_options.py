"""The options of the command, each of which a test uses."""

import argparse
import re
from pathlib import Path

import pytest

from pyg_recmetrics.command.options import make_parser

HERE = Path(__file__).parent


def subparsers():
    (action,) = (
        each for each in make_parser()._actions if isinstance(each, argparse._SubParsersAction)
    )
    return action.choices


def options():
    for name, parser in subparsers().items():
        for action in parser._actions:
            if action.option_strings and "--help" not in action.option_strings:
                yield name, tuple(action.option_strings)


#: Where lines of each subcommand stand.
TESTED_IN = {
    "evaluate": "test_subcommands_evaluate.py",
    "compare": "test_subcommands_compare.py",
    "report": "test_subcommands_compare.py",
    "gate": "test_subcommands_compare.py",
}

#: What `report` hands on to `compare`, where it is tested.
SHARED = {"--baseline", "--primary", "--deterministic", "--test", "--level", "--seed"}


@pytest.mark.parametrize(("name", "spellings"), list(options()))
def test_every_option_is_run_by_a_test(name, spellings):
    text = (HERE / TESTED_IN[name]).read_text()
    used = re.findall(r"(?<![\w-])--?[a-z-]+", text)
    assert {*spellings} & {*used, *(SHARED if name == "report" else ())}


@pytest.mark.parametrize(("name", "spellings"), list(options()))
def test_every_option_says_what_it_is_for(name, spellings):
    (action,) = (
        each for each in subparsers()[name]._actions if spellings == tuple(each.option_strings)
    )
    assert action.help
    assert not action.help.endswith(".")


def test_options_are_spelled_out():
    with pytest.raises(SystemExit):
        make_parser().parse_args(["evaluate", "--test", "a", "--conv", "b"])


@pytest.mark.parametrize(
    ("text", "value"), [("2%", "2%"), ("0.5%", "0.5%"), ("0.01", 0.01), ("1e-3", 1e-3)]
)
def test_equivalence_is_a_number_or_a_share(text, value):
    line = ["gate", "a", "--baseline", "b", "--metric", "mrr", "--equivalence", text]
    assert make_parser().parse_args(line).equivalence == value
