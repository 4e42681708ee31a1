"""Whether a comparison is one of some results."""

import re

import pytest
import torch

from pyg_recmetrics import EvaluationResult, RankingTask, compare, evaluate
from tests.support.cases.random_tasks import random_scores, random_task

pytest.importorskip("scipy")

METRICS = ["ndcg@3", "recall@3", "coverage@3"]


@pytest.fixture(scope="module")
def task():
    return random_task(60, 20, truth_share=0.15, seen_share=0.2)


def run(task, seed, metrics=METRICS, skill=0.0):
    scores = random_scores(task, seed)
    scores[tuple(task.truth)] += skill
    return evaluate(scores, task, metrics)


@pytest.fixture(scope="module")
def results(task):
    return {"a": [run(task, seed) for seed in range(3)], "b": [run(task, 5, skill=0.3)]}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"level": 0.8, "simultaneous": True},
        {"equivalence": "5%"},
        {"baseline": "a", "primary": "ndcg@3", "deterministic": "b"},
        {"metrics": ["mrr@2", "r_precision"]},
    ],
)
def test_equal_results_are_these_results(task, results, options, tmp_path):
    comparison = compare(results, **options)
    comparison.check_results(results)
    comparison.select(name="b").check_results(results)
    again = {"b": [run(task, 5, skill=0.3)], "a": [run(task, seed) for seed in range(3)]}
    comparison.check_results(again)
    results["b"][0].save(tmp_path / "b.npz")
    comparison.check_results({**results, "b": [EvaluationResult.load(tmp_path / "b.npz")]})


@pytest.mark.parametrize("changed", ["a", "b"])
def test_other_results_are_named(task, results, changed):
    other = {**results, changed: [*results[changed][:-1], run(task, 77)]}
    message = (
        r"of these results \(got one of others, in which mean_[ab] of 'a' and 'b' in ndcg@3 is 0"
    )
    with pytest.raises(ValueError, match=message):
        compare(other).check_results(results)


def test_equal_means_of_other_users_are_no_equal_results(task, results):
    """Users swap their scores, truth and seen items, so that means stay and pairs change."""
    flipped = RankingTask(
        torch.stack([task.num_users - 1 - task.truth[0], task.truth[1]]),
        num_users=task.num_users,
        num_items=task.num_items,
        seen=torch.stack([task.num_users - 1 - task.seen[0], task.seen[1]]),
    )
    scores = random_scores(task, 5)
    straight = {"a": [run(task, 0)], "b": [evaluate(scores, task, METRICS)]}
    mixed = {"a": straight["a"], "b": [evaluate(scores.flip(0), flipped, METRICS)]}
    assert mixed["b"][0]["ndcg@3"] == pytest.approx(straight["b"][0]["ndcg@3"])
    with pytest.raises(ValueError, match=r"of these results .* 'a' and 'b' in ndcg@3 is"):
        compare(straight).check_results(mixed)


def test_other_recommenders_and_numbers_of_runs_are_named(task, results):
    comparison = compare({**results, "c": run(task, 9)})
    for given, message in (
        (
            results,
            "['a', 'b'] (got one that differs in 'c', of which it has 1 run and not no runs)",
        ),
        (
            {**results, "c": [run(task, 9)] * 2, "d": [run(task, 8)]},
            "['a', 'b', 'c', 'd'] (got one that differs in 'c', of which it has 1 run and not "
            "2 runs, 'd', of which it has no runs and not 1 run)",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(f"needs to be of the results {message}")):
            comparison.check_results(given)


def test_a_metric_that_these_results_do_not_know_is_named(task, results):
    shallow = {"a": [run(task, seed, "ndcg@1") for seed in range(3)], "b": [run(task, 5, "mrr@1")]}
    message = r"of others, which know ndcg@3: 'k' needs to be at most 1"
    with pytest.raises(ValueError, match=message):
        compare(results).check_results(shallow)
