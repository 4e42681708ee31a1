"""What is known about every metric: the values of its parameters, and what its docstring says."""

import json

import numpy as np
import pytest

from pyg_recmetrics import metrics
from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.metrics.definitions import Choice, CutOff, Flag, Integer, Real


@pytest.mark.parametrize("name", metrics.names())
def test_docstrings_say_what_a_reader_needs(name):
    text = getattr(metrics, name).__doc__
    for section in (".. math::", "Args:", "Returns:", "NaN", "Source:", "Example:"):
        assert section in text, f"{name} lacks {section}"


KINDS = {
    "choice": Choice("x", "a", FrozenDict({"a": "first", "Two-b": "second"})),
    "cut_off": CutOff("x", 3),
    "optional": CutOff("x", None),
    "integer": Integer("x", 3, "{} in all"),
    "percentage": Integer("x", 80, "{} percent", range(1, 101)),
    "fraction": Real("x", 0.8, "as likely as {}"),
    "real": Real("x", 2.0, "to the power of {}", (-1, 10)),
    "flag": Flag("x", False, "it holds"),
}


@pytest.mark.parametrize(
    ("kind", "text", "value", "words"),
    [
        ("choice", "a", "a", "first"),
        ("choice", "A", "a", "first"),
        ("choice", "two_B", "Two-b", "second"),
        ("cut_off", "17", 17, "x 17"),
        ("integer", "17", 17, "17 in all"),
        ("percentage", "100", 100, "100 percent"),
        ("fraction", "0.80", 0.8, "as likely as 0.8"),
        ("fraction", "1e-5", 1e-05, "as likely as 1e-05"),
        ("real", "-0.5", -0.5, "to the power of -0.5"),
        ("flag", "TRUE", True, "it holds"),
        ("flag", "False", False, ""),
    ],
)
def test_values_are_read_and_said(kind, text, value, words):
    parameter = KINDS[kind]
    read = parameter.check(parameter.read(text))
    assert (type(read), read) == (type(value), value)
    assert parameter.read(str(read)) == read
    assert parameter.describe(read) == words
    assert parameter.check(json.loads(json.dumps(read))) is read or read == value


@pytest.mark.parametrize(
    ("kind", "value", "error", "message"),
    [
        ("choice", "c", ValueError, r"'x' needs to be one of \['a', 'Two-b'\] \(got 'c'\)"),
        ("choice", "A", ValueError, "got 'A'"),  # only a spelling may be in upper case
        ("choice", None, ValueError, "got None"),
        ("cut_off", 0, ValueError, "'x' needs to be a positive integer"),
        ("cut_off", "many", ValueError, "got 'many'"),
        ("cut_off", None, ValueError, "got None"),
        ("cut_off", True, ValueError, "got True"),
        ("integer", 1.5, ValueError, "'x' needs to be a positive integer"),
        ("integer", None, ValueError, "got None"),
        ("percentage", 101, ValueError, r"'x' needs to be an integer from 1 to 100 \(got 101\)"),
        ("fraction", 0.0, ValueError, r"'x' needs to be in \(0, 1\) \(got 0.0\)"),
        ("fraction", 1, ValueError, r"needs to be in \(0, 1\)"),
        ("fraction", float("nan"), ValueError, "'x' needs to be a finite number"),
        ("fraction", "half", ValueError, "got 'half'"),
        ("real", 10, ValueError, r"'x' needs to be in \(-1, 10\) \(got 10\)"),
        ("real", "two", ValueError, "got 'two'"),
        ("flag", 1, TypeError, r"'x' needs to be a boolean \(got 1\)"),
        ("flag", "yes", TypeError, "got 'yes'"),
        ("flag", None, TypeError, "got None"),
    ],
)
def test_other_values_are_named(kind, value, error, message):
    with pytest.raises(error, match=message):
        KINDS[kind].check(value)


def test_only_an_optional_cut_off_can_be_left_open():
    assert KINDS["optional"].check(None) is None
    assert KINDS["optional"].check(5) == 5


def test_a_number_is_passed_on_as_pythons_own():
    assert type(KINDS["fraction"].check(np.float64(0.5))) is float


def test_all_values_are_known_where_they_are_few():
    assert KINDS["choice"].values == ("a", "Two-b")
    assert KINDS["flag"].values == (False, True)
    assert Flag("x", True, "it holds").values == (True, False)
    assert not any(KINDS[kind].values for kind in ("cut_off", "integer", "percentage", "real"))


def test_some_words_of_a_choice_need_more():
    choice = Choice("x", "a", FrozenDict({"a": "", "b": "more"}), FrozenDict({"b": "seen"}))
    assert (choice.needs("a"), choice.needs("b")) == ((), ("seen",))
    assert KINDS["choice"].needs("a") == KINDS["real"].needs(0.5) == ()
