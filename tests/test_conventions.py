"""Convention and Population: which metric a name stands for, who is evaluated, and by whom."""

import dataclasses
import json
import math
from dataclasses import replace

import pytest
import torch

from pyg_recmetrics import (
    EvaluationResult,
    RankingTask,
    conventions,
    evaluate,
)
from tests.support.cases.mixed_users import SEEN, TRUTH, task_of_mixed_users


def test_results_are_known_by_the_names_that_were_asked_for():
    score = torch.rand(4, generator=torch.Generator().manual_seed(0))
    result = evaluate(score, task_of_mixed_users(), ["map@2", "mrr@1"], convention="trec_eval")
    assert list(result) == ["map@2", "mrr@1"]
    assert [*map(str, result.definitions.values())] == ["map(normalizer=R)@2", "mrr"]
    assert "convention trec_eval" in str(result)


@pytest.mark.usefixtures("expect_ties")
class TestPopulation:
    scores = torch.tensor(
        [
            [0.1, 0.2, 0.3, 0.4],
            [0.4, 0.3, 0.2, 0.1],
            [1.0, 1.0, 1.0, 1.0],
            [0.1, 0.1, 0.1, 0.2],
            [1.0, 2.0, 3.0, 4.0],
        ]
    )

    def evaluated(self, metric="mrr@2", **rules):
        convention = conventions.Convention(
            "mine", "me", None, population=conventions.Population(**rules)
        )
        result = evaluate(self.scores, task_of_mixed_users(), metric, convention=convention)
        users = (~result.per_user[metric].isnan()).nonzero().flatten().tolist()
        return users, result.user_counts.num_left_out, result.user_counts.num_without_truth

    @pytest.mark.parametrize(
        ("rules", "expected"),
        [
            ({}, ([0, 1, 2, 3], 0, 1)),
            ({"min_pos_test": 2}, ([0], 4, 0)),
            ({"min_items_pool": 2}, ([0, 2, 3], 1, 1)),
            ({"consider_cold_start": False}, ([0, 1], 3, 0)),
            ({"constant_scores": False}, ([0, 3], 2, 1)),  # as that of one candidate always is
        ],
    )
    def test_who_is_evaluated(self, rules, expected):
        assert self.evaluated(**rules) == expected

    @pytest.mark.parametrize(
        ("metric", "users"),
        [
            ("recall@3", [2, 3]),
            ("mrr@3", [0, 2, 3]),
            ("mrr@1", [0, 1, 2, 3]),
        ],
    )
    def test_users_with_few_candidates(self, metric, users):
        assert self.evaluated(metric, few_candidates="undefined")[0] == users

    @pytest.mark.parametrize(
        "rules", [{"min_pos_test": 3}, {"min_items_pool": 5}, {"consider_cold_start": False}]
    )
    def test_a_population_that_leaves_nobody_is_named(self, rules):
        task = RankingTask(TRUTH, num_users=5, num_items=4, seen=SEEN[:, :0])
        population = conventions.Population(**rules)
        convention = conventions.Convention("mine", "me", None, population=population)
        with pytest.raises(ValueError, match="the population needs to leave a user"):
            evaluate(self.scores, task, "mrr@2", convention=convention)

    def test_nobody_with_scores_that_differ_leaves_what_is_undefined(self):
        task = RankingTask([[0, 1], [0, 2]], num_users=2, num_items=3)
        with pytest.warns(UserWarning, match="'constant_scores' of the population leaves no user"):
            result = evaluate(torch.zeros(3), task, "recall@1", convention="recometrics")
        assert "recall" in str(result)
        assert math.isnan(result["recall@1"])
        assert result.per_user["recall@1"].isnan().all()
        assert (result.user_counts.num_evaluated, result.user_counts.num_left_out) == (0, 2)


def mine(**fields):
    """A convention of which no field has its default, but for those that are given."""
    given = {
        "name": "mine",
        "source": "a paper",
        "metrics": {"map": {"normalizer": "k"}, "mrr": {}},
        "without_cut_off": ("mrr",),
        "empty_target_action": "pos",
        "population": conventions.Population(2, 3, False, False, "undefined"),
        "ties": "mean",
        "note": "a note",
    }
    return conventions.Convention(**(given | fields))


@pytest.mark.parametrize("convention", [*conventions.CONVENTIONS.values(), mine()])
def test_it_is_a_value_also_through_json(convention):
    fields = convention.to_dict()
    assert fields.keys() == {field.name for field in dataclasses.fields(convention)}
    read = conventions.Convention.from_dict(json.loads(json.dumps(fields)))
    for same in (replace(convention), conventions.Convention.from_dict(fields), read):
        assert same == convention
        assert hash(same) == hash(convention)
    for field in dataclasses.fields(convention):
        has_default = field.default is not dataclasses.MISSING
        if convention.name == "mine" and has_default and field.compare:
            assert getattr(convention, field.name) != field.default
            assert replace(convention, **{field.name: field.default}) != convention


def test_it_cannot_be_changed_for_everybody():
    rectools, given = conventions.get("rectools"), {"ndcg": {"gain": "binary"}}
    for mapping in (rectools.metrics, rectools.metrics["ndcg"], conventions.CONVENTIONS):
        with pytest.raises(TypeError, match="does not support item assignment"):
            mapping["ndcg"] = {}
    convention = conventions.Convention("mine", "me", given)
    given["ndcg"]["gain"], given["recall"] = "exponential", {}
    assert convention.metrics == {"ndcg": {"gain": "binary"}}


def test_names_may_be_spelled_in_other_ways():
    convention = conventions.Convention(
        "mine",
        "a paper",
        {"NDCG": {"gain": "binary"}, "RR": {}},
        without_cut_off=["rr"],
    )
    assert convention.metrics == {"ndcg": {"gain": "binary"}, "mrr": {}}
    assert str(convention.resolve("Recip-Rank@3")) == "mrr"
    assert str(convention.resolve("ndcg(gain=linear)@3")) == "ndcg(gain=linear)@3"


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"metrics": {"no": {}}}, ValueError, "'metrics' needs to name known metrics"),
        ({"without_cut_off": "mrr"}, TypeError, "a tuple of names"),
        ({"metrics": {"mrr": {}, "rr": {}}}, ValueError, r"once \(got \['mrr', 'rr'\]\)"),
        ({"empty_target_action": "no"}, ValueError, "'empty_target_action' needs to be one of"),
        ({"population": 3}, TypeError, "'population' needs to be a 'Population'"),
        ({"min_pos_test": 0}, ValueError, "'min_pos_test' needs to be a positive integer"),
        ({"few_candidates": "skip"}, ValueError, r"\['count', 'undefined'\] \(got 'skip'\)"),
    ],
)
def test_wrong_fields_are_named(fields, error, message):
    make = conventions.Population if fields.keys() & {"min_pos_test", "few_candidates"} else mine
    with pytest.raises(error, match=message):
        make(**fields)


@pytest.mark.filterwarnings("ignore:.*(gives too few items|holds every item once)")
class TestEvaluate:
    def test_users_without_truth_count_as_the_convention_has_it_or_as_is_said(self):
        score = torch.tensor([0.1, 0.2, 0.3, 0.4])
        for convention, action, factor in (
            ("standard", None, 1),
            ("ranx", None, 4 / 5),
            ("ranx", "skip", 1),
        ):
            options = {"convention": convention, "empty_target_action": action}
            result = evaluate(score, task_of_mixed_users(), "recall@2", **options)
            expected = evaluate(score, task_of_mixed_users(), "recall@2")["recall@2"] * factor
            assert result["recall@2"] == pytest.approx(expected)

    @pytest.mark.parametrize("convention", ["torchmetrics", "ngcf", "recometrics"])
    def test_lists_are_taken_as_they_are(self, convention, tmp_path):
        task = RankingTask(torch.tensor([[0, 0, 1], [0, 2, 3]]), num_users=2, num_items=4)
        lists = torch.tensor([[0, 1, 2, 3], [1, 3, 0, 2]])
        result = evaluate(lists, task, ["roc_auc", "recall@2"], convention=convention)
        assert result["roc_auc"] == pytest.approx((3 / 4 + 2 / 3) / 2)
        assert str(result.definitions["roc_auc"]) == "roc_auc"
        only_recall = EvaluationResult(result.ranked, "recall@2", convention=convention)
        assert only_recall.values_of("roc_auc")[0].tolist() == result.per_user["roc_auc"].tolist()
        result.save(tmp_path / "lists")
        assert EvaluationResult.load(tmp_path / "lists")["roc_auc"] == result["roc_auc"]

    def test_recometrics_ranks_equal_scores_at_random(self):
        task = RankingTask(torch.tensor([[0], [0]]), num_users=1, num_items=40)
        scores = torch.ones(40)
        scores[39] = 0.0
        options = {"metrics": "mrr@40", "convention": "recometrics"}
        results = [evaluate(scores, task, seed=seed, **options) for seed in (1, 2, 1)]
        assert results[0]["mrr@40"] == results[2]["mrr@40"] != results[1]["mrr@40"]
        assert "equal scores rank in random order" in results[0].recipe()
        by_id = evaluate(scores, task, ties="worst", **options)
        assert by_id["mrr@40"] == 1 / 39

    def test_a_metric_that_is_not_offered_is_named(self):
        message = r"metrics of the convention 'implicit', .*got 'recall@5'"
        with pytest.raises(ValueError, match=message):
            evaluate(torch.rand(4), task_of_mixed_users(), "recall@5", convention="implicit")
