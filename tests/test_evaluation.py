"""evaluate() and Evaluator."""

import pytest
import scipy.sparse
import torch

from pyg_recmetrics import (
    Catalogue,
    Evaluator,
    RankingTask,
    compare,
    evaluate,
    metrics,
)
from tests.support.cases.random_tasks import random_scores
from tests.support.cases.small_task import GOOD_SCORES, TASK


def test_lists_need_to_be_as_long_as_the_metrics_look(recwarn):
    # One user has six relevant items, which only R-precision looks for in six places.
    truth = torch.tensor([[0, 0, 0, 0, 0, 0, 1], [0, 1, 2, 3, 4, 5, 0]])
    ids = {"user_ids": range(2), "item_ids": range(9)}
    task = RankingTask(truth, num_users=2, num_items=9, **ids)
    lists = torch.tensor([[0, 7, 1], [8, 0, 1]])

    class Model:
        def recommend(self, users, k):
            return lists[users]

    for recommender in (lists, dict(enumerate(lists)), Model()):
        enough = ["precision@3", "recall@3", "map@2", "ndcg@3", "mrr@3", "hit_rate@1"]
        result = evaluate(recommender, task, enough)
        assert not recwarn.list
        assert result.per_user["precision@3"].tolist() == pytest.approx([2 / 3, 1 / 3])
        for too_deep in ("precision@4", "r_precision"):
            with pytest.warns(UserWarning, match="gives too few items"):
                evaluate(recommender, task, ["precision@3", too_deep])


class TestEvaluator:
    def test_the_first_metric_is_monitored_or_another_one_of_them(self):
        assert Evaluator(TASK, ["recall@2", "mrr@4"]).history.monitor == metrics.parse("recall@2")
        with pytest.raises(ValueError, match=r"one of \[recall@2\] \(got recall@3\)"):
            Evaluator(TASK, ["recall@2"], monitor="recall@3")

    def test_on_another_device_it_adds_to_the_same_history(self, device):
        items = Catalogue(TASK.num_items, item_category=[0] * TASK.num_items)
        matrix = scipy.sparse.eye_array(TASK.num_users + TASK.num_items) * 2.0
        evaluator = Evaluator(TASK, ["recall@2", "diversity@2"], edge_index=matrix, catalogue=items)
        moved = evaluator.to(device)
        moved(GOOD_SCORES.to(device))
        assert moved.task.device.type == device.type
        assert moved.task.edge_weight.device.type == device.type
        assert len(evaluator.history) == 1
        assert evaluator.task.device.type == "cpu"

    @pytest.mark.parametrize("name", ["task", "metrics", "best", "should_stop", "history", "ties"])
    def test_what_was_prepared_cannot_be_replaced(self, name):
        evaluator = Evaluator(TASK, ["recall@2"])
        message = f"'Evaluator.{name}' cannot be set: make another one with other options"
        with pytest.raises(AttributeError, match=message):
            setattr(evaluator, name, None)
        with pytest.raises(AttributeError, match=f"'Evaluator.{name}' cannot be deleted"):
            delattr(evaluator, name)
        assert evaluator(GOOD_SCORES) == evaluate(GOOD_SCORES, TASK, ["recall@2"])


def test_triples_are_ranked_one_by_one_unless_told_otherwise():
    triples = torch.tensor([[0, 0, 3, 1], [1, 1, 0, 1], [2, 3, 1, 2]])
    task = RankingTask.from_triples(triples, triples[:, :1], num_entities=4)
    scores = random_scores(task, 0)
    names = ["mrr", "hit_rate@1"]
    result = evaluate(scores, task, ["mrr", "hits@1"])
    assert result.per_user["mrr"].numel() == task.truth.size(1)
    assert result == evaluate(scores, task, names, per="edge")
    assert evaluate(scores, task, names, per="user").per_user["mrr"].numel() == task.num_users
    assert result["hits@1"] == result["hit_rate@1"] == result.values_of("hits@1").mean()
    assert result.per_user["Hits@1"].equal(result.per_user["hit_rate@1"])
    with pytest.warns(UserWarning, match="few queries"):
        tests = compare({"a": result, "b": result}, metrics=["hits@1"])
    assert {row.metric for row in tests} == {"hit_rate@1"}
    assert str(Evaluator(task, names, monitor="hits@1").history.monitor) == "hit_rate@1"
    for spelling in ("hits@1", ["mrr", "Hits @1"], "hits_at_1"):
        with pytest.raises(ValueError, match=r"'hit_rate' .* or 'recall'"):
            evaluate(GOOD_SCORES, TASK, spelling)
    with pytest.raises(ValueError, match="per='user'"):
        evaluate(scores, task, "mrr", margin=0.1)
