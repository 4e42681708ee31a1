"""The grammar of metrics: printing and parsing are inverses, and errors say what is right."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import RankedEdges, metrics
from pyg_recmetrics.metrics.definitions import Fraction, Integer


def values_of(parameter):
    """All values that a parameter takes."""
    if isinstance(parameter, Integer):
        return st.integers(1, parameter.allowed[-1])
    if isinstance(parameter, Fraction):
        return st.floats(0, 1, exclude_min=True, exclude_max=True)
    return st.sampled_from(parameter.values or [1, 17])


@st.composite
def any_metric(draw):
    name = draw(st.sampled_from(metrics.names()))
    definition = metrics.definition(name)
    k = draw(st.integers(1, 10**6)) if definition.has_cut_off else None
    if not definition.needs_cut_off and draw(st.booleans()):
        k = None
    arguments = tuple(
        (name, draw(values_of(parameter)))
        for name, parameter in definition.parameters.items()
        if draw(st.booleans())
    )
    return metrics.Metric(name, k, arguments)


@given(metric=any_metric())
def test_printing_and_parsing_are_inverses(metric):
    assert metrics.parse(str(metric)) == metric
    assert str(metrics.parse(str(metric))) == str(metric)


def test_arguments_are_printed_in_the_order_of_the_definition():
    spelled = "ndcg( ideal=retrieved, gain = binary, ideal_k=7 ) @ 5"
    assert str(metrics.parse(spelled)) == "ndcg(gain=binary,ideal=retrieved,ideal_k=7)@5"


@given(metric=any_metric())
def test_words_say_every_choice(metric):
    for name, parameter in metrics.definition(metric.name).parameters.items():
        value = dict(metric.arguments).get(name, parameter.default)
        assert value is None or parameter.words(value) in metric.words


def test_depth_is_what_must_be_ranked():
    depth = {text: metrics.parse(text).depth for text in ("recall@5", "mrr", "r_precision")}
    assert depth == {"recall@5": 5, "mrr": None, "r_precision": 1}
    assert metrics.parse("ndcg(ideal=retrieved,ideal_k=30)@10").depth == 30


def test_a_metric_can_be_called():
    ranked = RankedEdges.from_topk(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))
    assert metrics.parse("mrr@2")(ranked).tolist() == [0.5]
    assert metrics.parse("r_precision")(ranked).tolist() == [0]


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("recal@20", r"known metrics, such as \['recall'.*'recal'"),
        ("xyz@20", "known metrics, such as .*'precision'.*'xyz'"),
        ("recall", "'recall' needs a cut-off, as in 'recall@20'"),
        ("r_precision@5", "'r_precision' has no cut-off"),
        ("recall@0", "positive integer k.*'recall@0'"),
        ("recall@-1", "positive integer k"),
        ("recall@x", "positive integer k"),
        ("recall@20@30", "name@k"),
        ("", "name@k"),
        ("ndcg(gain=cubic)@10", "'gain' needs to be one of .*'cubic'"),
        ("ndcg(base=2)@10", r"'ndcg' has the arguments \['gain', .*\(got 'base'\)"),
        ("f1(gain=linear)@10", "'f1' has the arguments none"),
        ("ndcg(exponential)@10", "'name=value'"),
        ("ndcg(ideal_k=0)@10", r"'ideal_k' needs to be a positive integer \(got 0\)"),
        ("ndcg(ideal_k=x)@10", r"'ideal_k' needs to be a positive integer \(got 'x'\)"),
        ("map(normalizer=recall)@10", r"\['min', 'R', 'k', 'hits'\] \(got 'recall'\)"),
    ],
)
def test_wrong_spellings_say_what_is_right(spelling, message):
    with pytest.raises(ValueError, match=message):
        metrics.parse(spelling)


def test_a_spelling_that_is_no_string_is_an_error():
    with pytest.raises(TypeError, match="strings"):
        metrics.parse(20)


def test_several_metrics_are_each_read_once():
    assert metrics.parse_all(["recall@5", "recall@5", "mrr@5"]) == (
        metrics.parse("recall@5"),
        metrics.parse("mrr@5"),
    )
    assert metrics.parse_all("recall@5") == (metrics.parse("recall@5"),)
    with pytest.raises(ValueError, match="at least one metric"):
        metrics.parse_all([])
