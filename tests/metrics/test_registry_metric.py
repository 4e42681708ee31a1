"""Metric: the value that stands for a metric with its arguments."""

from dataclasses import asdict

import pytest
from hypothesis import given, strategies as st

from pyg_recmetrics import metrics


def values_of(parameter):
    """All values that a parameter takes."""
    if parameter.kind is int:
        return st.integers(1, parameter.allowed[-1])
    if parameter.kind is float:
        return st.floats(0, 1, exclude_min=True, exclude_max=True)
    return st.sampled_from(list(parameter.words))


@st.composite
def any_metric(draw):
    name = draw(st.sampled_from(metrics.names()))
    definition = metrics.definition(name)
    k = draw(st.integers(1, 10**6)) if definition.has_cut_off else None
    if not definition.needs_cut_off and draw(st.booleans()):
        k = None
    arguments = {
        name: draw(values_of(parameter))
        for name, parameter in definition.parameters.items()
        if draw(st.booleans())
    }
    return metrics.Metric(name, k, tuple(arguments.items()))


@given(metric=any_metric())
def test_printing_and_parsing_are_inverses_and_words_say_every_choice(metric):
    assert metrics.parse(str(metric)) == metric
    assert str(metrics.parse(str(metric))) == str(metric)
    for name, value in metric.all_arguments.items():
        words = metric.definition.parameters[name].describe(value) if value is not None else ""
        assert words in metric.describe()


@pytest.mark.parametrize(
    ("spelling", "ours"),
    [
        (
            "NDCG( ideal=retrieved, gain = Binary, ideal-k=7 ) @ 5",
            "ndcg(gain=binary,ideal=retrieved,ideal_k=7)@5",
        ),
        ("r-prec(Users=Hit)", "r_precision(users=hit)"),
        ("RECALL(WEIGHTED=TRUE)@3", "recall(weighted=True)@3"),
        ("AP(normalizer=r) @ 10", "map(normalizer=R)@10"),
        ("Hit Rate@4", "hit_rate@4"),
        ("nDCG_at_20", "ndcg@20"),
        ("tap_at_10", "map(normalizer=min)@10"),
    ],
)
def test_other_spellings_print_as_ours(spelling, ours):
    metric = metrics.parse(spelling)
    assert (str(metric), hash(metric)) == (ours, hash(metrics.parse(ours)))
    assert metrics.parse_all([spelling, ours]) == metrics.parse_all(ours) == (metric,)


def test_its_fields_are_all_that_it_is_made_of():
    metric = metrics.parse("ndcg(ideal_k=30)@10")
    assert asdict(metric) == {"name": "ndcg", "k": 10, "arguments": (("ideal_k", 30),)}
    assert metrics.Metric(**asdict(metric)) == metric
