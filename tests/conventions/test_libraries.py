"""The conventions of other libraries, as `evaluate` applies them."""

import math

import pytest
import torch

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    RankedEdges,
    RankingTask,
    conventions,
    evaluate,
    metrics,
)
from tests.support.cases.mixed_users import task_of_mixed_users


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

    @pytest.mark.parametrize(
        ("convention", "metric", "message"),
        [
            ("trec", "recall@5", r"one of \['standard', .*\] \(got 'trec'\)"),
            ("implicit", "recall@5", r"metrics of the convention 'implicit', .*got 'recall@5'"),
        ],
    )
    def test_what_is_not_offered_is_named(self, convention, metric, message):
        with pytest.raises(ValueError, match=message):
            evaluate(torch.rand(4), task_of_mixed_users(), metric, convention=convention)

    @pytest.mark.usefixtures("expect_ties")
    @pytest.mark.filterwarnings("ignore:.*score for everybody")
    def test_a_constant_model_has_the_numbers_of_chance(self):
        task = RankingTask.from_triples(
            torch.tensor([[0, 0, 3, 5], [1, 1, 0, 1], [2, 3, 1, 2]]),
            known=torch.tensor([[0, 2, 5], [1, 0, 1], [1, 3, 4]]),
            num_entities=30,
        )
        names = ["mean_rank", "amr", "amri"]
        result = evaluate(torch.zeros(30), task, names, per="edge", convention="pykeen")
        # Of 30 entities, other answers that are known or tested are no candidates.
        chance = sum((n + 1) / 2 for n in (28, 28, 30, 29, 29, 30, 30, 29)) / 8
        assert tuple(result.values()) == pytest.approx((chance, 1, 0))
        negatives = RankedEdges.from_negatives(torch.zeros(5), torch.zeros(5, 99))
        for convention in ("ogb", "tgb"):
            result = EvaluationResult(negatives, ["mrr", "hit_rate@50"], convention=convention)
            assert result.to_dict() == {"mrr": 1 / 50.5, "hit_rate@50": 0}
        task = RankingTask(torch.tensor([[0], [3]]), num_users=1, num_items=100)
        result = evaluate(torch.zeros(100), task, ["hit_rate@99", "ndcg@100"], convention="ncf")
        assert tuple(result.values()) == pytest.approx((0, 1 / math.log2(101)))

    def test_every_convention_evaluates_what_it_offers(self):
        score = torch.rand(4, generator=torch.Generator().manual_seed(0))
        for convention in conventions.CONVENTIONS.values():
            names = convention.metrics or metrics.names()
            asked = [
                f"{name}@2" if metrics.definition(name).has_cut_off else name for name in names
            ]
            items = Catalogue(4, item_category=torch.arange(4), item_embedding=torch.eye(4))
            result = evaluate(
                score,
                task_of_mixed_users(),
                asked,
                convention=convention,
                catalogue=items,
            )
            assert len(result) == len(asked)
            assert convention.name in result.recipe()
            assert convention.source
