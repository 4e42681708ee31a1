"""The sections of a report, each by itself."""

import pytest
import torch

from pyg_recmetrics import RankingTask, Runs, evaluate
from pyg_recmetrics.reporting.parts import Drawing, Grid, Missing, Prose
from tests.support.machines.missing_packages import hide_package


def test_how_much_runs_vary(parts, runs):
    means, of_runs = parts("Means", {"Random": runs})
    assert "Random: mean over several runs" in str(means.table)
    assert of_runs.caption.startswith("How much 3 runs of Random vary")
    assert str(of_runs.table) == str(Runs(runs))


def test_without_lists_there_is_no_long_tail(parts, task):
    result = evaluate(torch.rand(task.num_items), task, ["ndcg@10", "recall@10"])
    for part in parts("Long tail", result):
        assert isinstance(part, Missing)
        assert "keep_items=True" in part.reason
    assert [type(part) for part in parts("Users", result)] == [Drawing, Drawing, Grid]


def test_without_seen_edges_there_are_no_groups(parts):
    task = RankingTask(torch.tensor([[0, 1, 2], [2, 0, 1]]), num_users=3, num_items=4)
    result = evaluate(torch.rand(3, 4), task, "recall@2", keep_items=True)
    for section, number in (("Users", 1), ("Items", 1), ("Long tail", 2)):
        missing = [part for part in parts(section, result) if isinstance(part, Missing)]
        assert len(missing) == number
        for part in missing:
            assert "give 'seen' edges to the 'RankingTask'" in part.reason


def test_metrics_of_the_whole_ranking_have_no_curves(parts, task):
    (part,) = parts("Curves", evaluate(torch.rand(120, 60), task, "roc_auc"))
    assert part == Missing("Curves", "they need a metric with a cut-off, such as 'ndcg@20'")


def test_metrics_of_lists_alone(parts, task):
    result = evaluate(torch.rand(120, 60), task, "coverage@5", keep_items=True)
    for section in ("Curves", "Users"):
        (part,) = parts(section, result)
        assert isinstance(part, Missing)
    for section in ("Means", "Ties", "Long tail"):
        assert not any(isinstance(part, Missing) for part in parts(section, result))


def test_without_scipy_there_is_no_comparison(parts, popular, runs, monkeypatch):
    hide_package(monkeypatch, "scipy")
    (part,) = parts("Comparison", {"a": popular, "b": runs[0]})
    assert "pip install 'pyg-recmetrics[statistics]'" in part.reason


@pytest.mark.usefixtures("expect_ties")
def test_ties_are_counted(parts, task):
    result = evaluate(torch.zeros(60), task, "recall@10")
    (part,) = parts("Ties", {"zeros": result})
    ((name, num_tied, span),) = part.table.rows
    low, high = result.tie_range("recall@10")
    assert (name, num_tied) == ("zeros", f"{result.num_tied:,}")
    assert list(map(float, span.split(" to "))) == pytest.approx([low, high], abs=5e-5)
    assert low < high


@pytest.mark.usefixtures("expect_ties")
def test_only_metrics_that_ties_can_move_have_a_range(parts, task):
    result = evaluate(torch.zeros(60), task, ["recall@10", "novelty@10"], keep_items=True)
    (part,) = parts("Ties", result)
    assert part.table.head == ("recommender", "tied edges", "recall@10")


def test_no_ties_are_a_sentence(parts, runs):
    (part,) = parts("Ties", runs[0])
    assert part == Prose("No relevant item has the same score as another candidate.")
