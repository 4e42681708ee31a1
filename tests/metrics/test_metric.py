"""Metric: the value that stands for a metric with its arguments."""

import ast
import dataclasses
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import Evaluator, RankedEdges, RankingTask, evaluate, metrics


def test_it_is_a_value():
    metric = metrics.Metric("HR", 10)
    assert metric == metrics.Metric("hit_rate", k=10) == metrics.parse("hit-rate@10")
    assert len({metric, metrics.parse("hr@10"), metrics.parse("hr@11")}) == 2
    assert pickle.loads(pickle.dumps(metric)) == metric
    with pytest.raises(dataclasses.FrozenInstanceError):
        metric.k = 20


def test_arguments_come_in_any_order_as_pairs_or_by_name():
    by_name = metrics.Metric("ndcg", 5, {"ideal": "retrieved", "gain": "binary"})
    assert by_name == metrics.Metric("ndcg", 5, (("gain", "binary"), ("ideal", "retrieved")))
    assert by_name.arguments == (("gain", "binary"), ("ideal", "retrieved"))


def test_depth_is_what_must_be_ranked():
    depth = {text: metrics.parse(text).depth for text in ("recall@5", "mrr", "r_precision")}
    assert depth == {"recall@5": 5, "mrr": None, "r_precision": 1}
    assert metrics.parse("ndcg(ideal=retrieved,ideal_k=30)@10").depth == 30


def test_a_metric_can_be_called():
    ranked = RankedEdges.from_topk(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))
    assert metrics.parse("mrr@2")(ranked).tolist() == [0.5]
    assert metrics.parse("r_precision")(ranked).tolist() == [0]


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
def test_printing_and_parsing_are_inverses(metric):
    assert metrics.parse(str(metric)) == metric
    assert str(metrics.parse(str(metric))) == str(metric)


def test_arguments_are_printed_in_the_order_of_the_definition():
    spelled = "ndcg( ideal=retrieved, gain = binary, ideal_k=7 ) @ 5"
    assert str(metrics.parse(spelled)) == "ndcg(gain=binary,ideal=retrieved,ideal_k=7)@5"


@pytest.mark.parametrize(
    ("spelling", "ours"),
    [
        ("NDCG@20", "ndcg@20"),
        ("MAP@10", "map@10"),
        ("hr@10", "hit_rate@10"),
        ("hit@10", "hit_rate@10"),
        ("Hit_Rate@10", "hit_rate@10"),
        ("p@5", "precision@5"),
        ("r@20", "recall@20"),
        ("auc", "roc_auc"),
        ("AUROC", "roc_auc"),
        ("R-Precision", "r_precision"),
        ("Rprec", "r_precision"),
        ("r-prec(Users=Hit)", "r_precision(users=hit)"),
        ("recip_rank", "mrr"),
        ("AP(normalizer=r) @ 10", "map(normalizer=R)@10"),
        ("NDCG(gain=Exponential, ideal-k=30)@20", "ndcg(gain=exponential,ideal_k=30)@20"),
        ("Item-Coverage@10", "coverage@10"),
        ("nDCG_at_20", "ndcg@20"),
        ("p_at_4", "precision@4"),
        ("hit_at_4", "hit_rate@4"),
        ("TP@4", "truncated_precision@4"),
        ("TAP@4", "map(normalizer=min)@4"),
        ("tap_at_10", "map(normalizer=min)@10"),
    ],
)
def test_other_spellings_print_as_ours(spelling, ours):
    metric = metrics.parse(spelling)
    assert str(metric) == ours
    assert metric == metrics.parse(ours)
    assert hash(metric) == hash(metrics.parse(ours))


@given(metric=any_metric(), data=st.data())
def test_any_spelling_in_another_case_is_the_same_metric(metric, data):
    def change(text):
        return data.draw(st.sampled_from([text.upper(), text.title(), text.swapcase()]))

    if "." not in str(metric) and "e-" not in str(metric):
        assert metrics.parse(change(str(metric))) == metric
    aliases = metric.definition.aliases
    if aliases:
        alias = data.draw(st.sampled_from(aliases))
        assert metrics.Metric(change(alias), metric.k, metric.arguments) == metric
        assert metrics.parse(str(metric).replace(metric.name, change(alias), 1)) == metric


@pytest.mark.parametrize(
    ("misspelled", "names"),
    [
        ("ndgc@20", ["ndcg"]),
        ("recal@20", ["recall"]),
        ("hitrate@5", ["hit_rate"]),
        ("HitRatio@5", ["hit_rate"]),
        ("precison@3", ["precision"]),
        ("RPrecision", ["r_precision"]),
        ("ndcg20", ["ndcg"]),
        ("rocauc", ["roc_auc"]),
        ("itemcoverage@5", ["coverage"]),
        ("mrrr@5", ["mrr"]),
    ],
)
def test_near_misses_are_told_what_may_be_meant(misspelled, names):
    with pytest.raises(ValueError, match="known metrics, such as") as raised:
        metrics.parse(misspelled)
    told = ast.literal_eval(str(raised.value).partition("such as ")[2].partition(" (got")[0])
    assert told[: len(names)] == names
    assert set(told) <= set(metrics.names())
    assert len(told) <= 3


def test_results_are_known_by_any_spelling():
    task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])
    result = evaluate(scores, task, ["NDCG@2", "hr@1", "HR@1", "ndcg@2"])
    assert list(result) == ["ndcg@2", "hit_rate@1"]
    assert result["nDCG@2"] == result["ndcg@2"]
    assert "HR@1" in result
    assert result.per_user["hit@1"].tolist() == [0, 1]
    assert metrics.curve(result.ranked, "P", max_k=2).tolist() == [[0, 0.5], [1, 0.5]]
    evaluator = Evaluator(task, ["recall@1", "ndcg@2"], monitor="NDCG@2")
    assert str(evaluator.history.monitor) == "ndcg@2"


@given(metric=any_metric())
def test_words_say_every_choice(metric):
    parameters = metrics.definition(metric.name).parameters
    values = {name: parameter.default for name, parameter in parameters.items()}
    values |= dict(metric.arguments)
    for name, parameter in parameters.items():
        words = "" if values[name] is None else parameter.describe(values[name])
        assert words in metric.describe()


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
