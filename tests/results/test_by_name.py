"""Results by name: what every function takes that shows or compares several, and its errors."""

import pytest
import torch

from pyg_recmetrics import (
    Evaluator,
    RankingTask,
    Runs,
    compare,
    evaluate,
    plot,
    report,
    side_by_side,
)
from pyg_recmetrics.results.by_name import results_or_runs_by_name

TASK = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
RESULT = evaluate(torch.tensor([0.1, 0.3, 0.2]), TASK, "recall@2", keep_items=True)

SEVERAL = {"compare": compare, "side_by_side": side_by_side}
ONE_OR_SEVERAL = {
    "metric_at_k": plot.metric_at_k,
    "precision_recall_curve": plot.precision_recall_curve,
    "distribution": lambda results: plot.distribution(results, "recall@2"),
    "metric_by_degree": lambda results: plot.metric_by_degree(results, "recall@2"),
    "long_tail": plot.long_tail,
    "report": lambda results: report(results, "nowhere/report.html"),
}


@pytest.fixture(autouse=True)
def needs_extras():
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")


@pytest.mark.parametrize("call", [pytest.param(x[1], id=x[0]) for x in SEVERAL.items()])
@pytest.mark.parametrize("results", [RESULT, [RESULT, RESULT], 0.5, None])
def test_several_have_names(call, results):
    kind = type(results).__name__
    message = rf"'results' needs to be results by name, as in {{'A': a, 'B': b}} \(got {kind}\)"
    with pytest.raises(TypeError, match=message):
        call(results)


@pytest.mark.parametrize(
    "call", [pytest.param(x[1], id=x[0]) for x in (SEVERAL | ONE_OR_SEVERAL).items()]
)
@pytest.mark.parametrize(
    ("results", "error", "message"),
    [
        ({}, ValueError, "'results' needs to hold at least one 'EvaluationResult'.* \\(got none"),
        ({None: RESULT}, TypeError, "needs strings or numbers as names \\(got None\\)"),
        ({3: RESULT, "3": RESULT}, ValueError, "a name of its own for each \\(got \\[3, '3'\\]\\)"),
        ({"a": RESULT, "b": "abc"}, TypeError, "\\(got str as 'b'\\)"),
        ({"a": RESULT, "b": 0.5}, TypeError, "'results' needs to hold .* \\(got float as 'b'\\)"),
        (0.5, TypeError, "'results' needs to be .*results by name, as in .* \\(got float\\)"),
    ],
)
def test_errors_are_the_same_everywhere(call, results, error, message):
    with pytest.raises(error, match=message):
        call(results)


def test_histories_are_called_so():
    history = Evaluator(TASK, "recall@1").history
    assert plot.history({"a": history})
    with pytest.raises(TypeError, match="needs to be one 'History', or histories by name"):
        plot.history([history])


def test_numbers_of_a_sweep_are_names():
    differences = compare({64: RESULT, 0.5: RESULT})
    assert (differences[0].a, differences[0].b) == ("64", "0.5")


def test_options_are_no_names():
    named = compare({"level": RESULT, "test": RESULT})
    assert (named[0].a, named[0].b) == ("level", "test")


def test_a_recommender_has_one_run_or_several():
    found = results_or_runs_by_name({"one": RESULT, "list": [RESULT], "two": [RESULT, RESULT]})
    assert found["one"] is found["list"] is RESULT
    assert isinstance(found["two"], Runs)
    assert results_or_runs_by_name(found["two"]) == {"": found["two"]}
    assert results_or_runs_by_name(RESULT) == {"": RESULT}
