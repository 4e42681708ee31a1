"""Metric: the value that stands for a metric with its arguments."""

import dataclasses
import pickle

import pytest
import torch

from pyg_recmetrics import RankedEdges, metrics


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


def test_words_in_braces_stand_for_the_value_of_another_parameter():
    words = metrics.parse("recall(propensity=popularity,gamma=1.5)@5").describe()
    assert words == (
        "recall@5 (divided by R, averaged over users, an estimate of the mean over all relevant "
        "items, observed or not, from those observed, self-normalised by the inverse of "
        "propensities proportional to (n + 1)^((gamma + 1) / 2) with gamma 1.5 for an item that n "
        "users have seen, and one for the most popular item)"
    )
    # What nothing is computed with goes unsaid.
    assert metrics.parse("recall(gamma=1.5)@5").describe() == metrics.parse("recall@5").describe()


def test_a_number_that_need_not_be_given_is_said_where_it_is():
    given = metrics.parse("dcg(propensity=given)")
    clipped = metrics.parse("dcg(propensity=given,clip=0.05)")
    assert clipped.variant == f"{given.variant}, propensities below 0.05 raised to 0.05"
    assert (given.all_arguments["clip"], clipped.all_arguments["clip"]) == (None, 0.05)


def test_depth_is_what_must_be_ranked():
    depth = {text: metrics.parse(text).depth for text in ("recall@5", "mrr", "r_precision")}
    assert depth == {"recall@5": 5, "mrr": None, "r_precision": 1}
    assert metrics.parse("ndcg(ideal=retrieved,ideal_k=30)@10").depth == 30


def test_a_metric_can_be_called():
    ranked = RankedEdges.from_topk(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))
    assert metrics.parse("mrr@2")(ranked).tolist() == [0.5]
    assert metrics.parse("r_precision")(ranked).tolist() == [0]
