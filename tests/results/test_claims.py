"""Sentences of a comparison."""

import pytest

from pyg_recmetrics.results.claims import claims
from pyg_recmetrics.results.paired import PairedDifference


def row(metric, verdict, difference=0.01, lift=5.0, p=0.01, a="A", b="B"):
    return PairedDifference(
        metric, a, b, difference, p_value=p, p_adjusted=p, verdict=verdict, lift=lift, mean_b=0.2
    )


def say(*rows, uncovered=(), bound=None):
    return claims(rows, uncovered, lambda row: bound)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([row("x@1", "better")], "A is better than B in x@1 (+0.0100, +5.0%)."),
        (
            [row("x@1", "worse", -0.02, -10.0)],
            "A is worse than B in x@1 (-0.0200, -10.0%).",
        ),
        (
            [row("x@1", "better"), row("y", "better", 0.5, 250.0), row("z", "inconclusive", p=0.2)],
            "A is better than B in x@1 (+0.0100, +5.0%) and y (+0.5000, +250.0%); "
            "z (+0.0100, +5.0%, p = 0.2000) is undecided.",
        ),
        (
            [row("x@1", "inconclusive", p=0.3), row("y", "inconclusive", lift=float("nan"), p=1.0)],
            "x@1 (+0.0100, +5.0%, p = 0.3000) and y (+0.0100, p = 1.0000) are undecided between A "
            "and B.",
        ),
        ([row("x@1", None)], None),
    ],
)
def test_one_sentence_says_all_of_a_pair(rows, sentence):
    assert say(*rows) == (() if sentence is None else (sentence,))


def test_what_is_equivalent():
    assert say(row("x@1", "equivalent"), row("y", "equivalent"), bound=0.005) == (
        "A is as good as B in x@1 (within ± 0.005) and y (within ± 0.005).",
    )


def test_single_models_are_named():
    rows = row("x@1", "better"), row("x@1", "better", a="A", b="C")
    assert say(*rows, uncovered=["C"]) == (
        "A is better than B in x@1 (+0.0100, +5.0%).",
        "As trained here, A is better than C in x@1 (+0.0100, +5.0%).",
    )
