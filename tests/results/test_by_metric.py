"""Values by metric: any spelling finds them, and an error says why nothing is found."""

from collections.abc import Mapping

import pytest
import torch

from pyg_recmetrics import EvaluationResult, RankedEdges, evaluate, metrics
from pyg_recmetrics.results.by_metric import ByMetric, PerUser
from tests.support.cases.random_tasks import random_scores, random_task

VALUES = {"recall@3": 0.5, "mrr": 0.25}


@pytest.mark.parametrize("kind", [ByMetric, PerUser])
class TestMapping:
    def test_it_is_a_mapping_in_the_order_that_was_given(self, kind):
        values = kind(VALUES)
        assert isinstance(values, Mapping)
        assert list(values.items()) == [("recall@3", 0.5), ("mrr", 0.25)]
        assert len(values) == 2
        assert values == VALUES
        assert not kind({})

    def test_what_it_is_made_of_is_copied(self, kind):
        given = dict(VALUES)
        values = kind(given)
        given["recall@3"] = 0.75
        assert values["recall@3"] == 0.5

    def test_printing(self, kind):
        assert repr(kind(VALUES)) == f"{kind.__name__}({{'recall@3': 0.5, 'mrr': 0.25}})"


class TestResult:
    @pytest.fixture
    def ranked(self):
        lists = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
        return RankedEdges.from_topk(lists, torch.tensor([[0, 0, 1], [1, 2, 2]]))

    @pytest.fixture
    def result(self, ranked):
        return EvaluationResult(ranked, ["recall@1", "recall@3", "r_precision", "mrr@3"])

    def test_a_metric_can_be_spelled_in_other_ways(self, ranked):
        result = EvaluationResult(ranked, ["ndcg(gain=linear)@3"])
        assert result["ndcg(gain=linear)@3"] == result["ndcg( gain=linear ) @3"]

    def test_a_metric_that_was_not_evaluated_is_a_key_error(self, result):
        with pytest.raises(KeyError, match=r"recall@2 was not evaluated, only recall@1, "):
            result["recall@2"]
        with pytest.raises(KeyError, match="known metrics, such as"):
            result["recal@1"]
        assert "recall@2" not in result
        assert "recal@1" not in result
        assert "recall@1" in result


class TestLookingUp:
    """Means, values per user and definitions are looked up by the same names."""

    @pytest.fixture
    def result(self):
        task = random_task(30, 9, truth_share=0.25, seen_share=0.25, seed=3)
        names = ["recall@3", "ndcg(gain=exponential)@3", "r_precision", "coverage@3"]
        return evaluate(random_scores(task, 1), task, names, convention="standard")

    @pytest.mark.parametrize("spelled", ["recall@3", "recall @ 3", " recall@3 "])
    def test_any_spelling_will_do(self, result, spelled):
        for values in (result, result.per_user, result.definitions):
            assert spelled in values
            assert values[spelled] is values["recall@3"]
            assert values.get(spelled) is values["recall@3"]

    def test_so_will_a_metric(self, result):
        for spelled in ("recall@3", "ndcg( gain = exponential )@3", "r_precision"):
            metric = metrics.parse(spelled)
            for values in (result, result.per_user, result.definitions):
                assert metric in values
                assert values[metric] is values[str(metric)]
        assert result.definitions[metrics.parse("recall@3")] == metrics.parse("recall@3")

    def test_what_cannot_be_a_metric_is_not_in_it(self, result):
        for values in (result, result.per_user, result.definitions):
            for key in (5, None, 0.5, ("recall", 3), "recal@3", "recall", "recall@0", ""):
                assert key not in values
                assert values.get(key) is None
            assert "recall@4" not in values
            assert metrics.parse("recall@4") not in values

    def test_an_error_says_why(self, result):
        for values in (result, result.definitions):
            with pytest.raises(KeyError, match=r"recall@4 was not evaluated, only recall@3, ndcg"):
                values["recall@4"]
            with pytest.raises(KeyError, match=r"recall@4 was not evaluated, only"):
                values[metrics.parse("recall@4")]
        for values in (result, result.per_user, result.definitions):
            with pytest.raises(KeyError, match=r"known metrics, such as \['recall'.*'recal'"):
                values["recal@3"]
            with pytest.raises(KeyError, match="'recall' needs a cut-off"):
                values["recall"]
            with pytest.raises(
                KeyError, match=r"needs to be a string or a list of strings \(got int\)"
            ):
                values[5]
        with pytest.raises(KeyError, match="recall@4 was not evaluated per user, only recall@3, "):
            result.per_user[metrics.parse("recall@4")]
        with pytest.raises(KeyError, match="coverage@3 has one value for all users together"):
            result.per_user[metrics.parse("coverage@3")]
        assert metrics.parse("coverage@3") in result
        assert metrics.parse("coverage@3") not in result.per_user

    def test_names_are_spelled_alike_everywhere(self, result):
        assert list(result) == list(result.definitions) == list(result.to_dict())
        assert list(result) == [*result.per_user, "coverage@3"]

    def test_none_of_them_can_be_changed(self, result):
        for values in (result, result.per_user, result.definitions):
            with pytest.raises(TypeError, match="does not support item assignment"):
                values["recall@3"] = 0
