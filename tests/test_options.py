"""The options of `evaluate` and of `Evaluator`, which have one definition."""

import inspect

import pytest

from pyg_recmetrics import (
    Catalogue,
    Evaluator,
    RankingTask,
    evaluate,
)
from tests.support.cases.small_task import GOOD_SCORES, TASK


def options_of(function):
    """The parameters of a function after the recommender and the task."""
    parameters = inspect.signature(function).parameters
    return {
        name: (parameter.kind, parameter.default)
        for name, parameter in parameters.items()
        if name not in ("recommender", "data")
    }


class TestOptions:
    def test_an_evaluator_takes_the_options_of_evaluate_and_two_more(self):
        options = options_of(evaluate)
        of_evaluator = options_of(Evaluator)
        assert set(of_evaluator) - set(options) == {"monitor", "patience"}
        assert {name: of_evaluator[name] for name in options} == options
        assert [name for name in of_evaluator if name in options] == list(options)
        assert of_evaluator["monitor"][1] is of_evaluator["patience"][1] is None

    @pytest.mark.parametrize("function", [evaluate, Evaluator])
    def test_options_are_given_by_name_and_metrics_also_by_position(self, function):
        (metrics_kind, _), *others = options_of(function).values()
        assert metrics_kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert {kind for kind, _ in others} == {inspect.Parameter.KEYWORD_ONLY}


def test_seen_edges_of_a_catalogue_count_and_those_of_the_task_otherwise():
    task = RankingTask(TASK.truth, num_users=3, num_items=4, seen=[[0, 1, 2], [3, 0, 0]])

    def count(catalogue):
        result = evaluate(GOOD_SCORES, task, "novelty@2", catalogue=catalogue)
        return result.ranked.catalogue.popularity.tolist()

    assert count(Catalogue(4)) == count(None) == [2, 0, 0, 1]
    assert count(Catalogue(4, seen=[[0, 1, 5], [1, 1, 2]])) == [0, 2, 1, 0]
