"""The section on whom and what a recommender fails."""

import pytest
import torch

from pyg_recmetrics import Benchmark, RankingTask, evaluate
from pyg_recmetrics.metrics import parse
from pyg_recmetrics.reporting.benchmark_contents import BenchmarkContents
from pyg_recmetrics.reporting.benchmark_sections import BENCHMARK_SECTIONS
from pyg_recmetrics.reporting.parts import Drawing, Grid, Missing, Remarks
from tests.support.cases.random_tasks import random_scores, random_task

METRICS = ["r_precision", "ndcg@10", "coverage@10"]


@pytest.fixture(scope="module")
def task():
    return random_task(800, 400, truth_share=0.015, seen_share=0.05)


@pytest.fixture(scope="module")
def is_new(task):
    """The users with few training edges."""
    degree = torch.bincount(task.seen[0], minlength=800)
    return degree <= degree.median()


def result_of(task, skill, seed=5):
    scores = random_scores(task, seed)
    user, item = task.truth
    scores[user, item] += skill[user]
    # Nobody finds what few have seen.
    popularity = torch.bincount(task.seen[1], minlength=400)
    scores[:, popularity <= popularity.median()] -= 2
    return evaluate(scores, task, METRICS, keep_items=True)


@pytest.fixture(scope="module")
def results(task, is_new):
    return {
        "Good": result_of(task, torch.where(is_new, 0.2, 0.9)),
        "Fair": result_of(task, torch.where(is_new, 0.15, 0.3), seed=6),
    }


def test_it_says_who_is_served_badly(parts, results):
    remarks, *shown = parts("Weak spots", results)
    assert isinstance(remarks, Remarks)
    users, items, lead = remarks.texts
    assert users.startswith("ndcg@10 of Good is below its mean for users with training degree ≤ ")
    (slices,) = [results["Good"].slices("ndcg@10")]
    assert f"({100 * slices[0].share:.0f}%): {slices[0].mean:.3f}" in users
    assert users.endswith(f"where all users have {slices.mean:.3f}.")
    assert items.startswith("recall@10 of Good is below its mean for items with ")
    assert "% are never found: " in items
    assert lead.startswith("Good - Fair in ndcg@10 is +")
    assert "for users with training degree" in lead
    assert [type(part) for part in shown] == [Drawing] * 3 + [Grid] * 3
    assert str(shown[3].table) == str(slices)
    assert all(part.fold for part in shown[3:])


def test_a_benchmark_says_it_of_each_data_set(results):
    benchmark = Benchmark({"A": results, "B": {"Good": results["Good"]}})
    contents = BenchmarkContents(benchmark, None, parse("ndcg@10"))
    found = list(BENCHMARK_SECTIONS["Weak spots"](contents))
    assert [type(part) for part in found] == [Remarks, Grid, Grid, Grid, Remarks, Grid, Grid]
    slices = results["Good"].slices("ndcg@10")
    for remarks, data_set in ((found[0], "A"), (found[4], "B")):
        start = f"ndcg@10 of Good on {data_set} is below its mean for users with "
        assert remarks.texts[0].startswith(f"{start}{slices[0].conditions} ")
    assert found[0].texts[2].startswith("Good - Fair in ndcg@10 on A is +")
    assert str(found[1].table) == str(slices)
    assert all(part.fold for part in found if isinstance(part, Grid))


def test_the_metric_is_that_of_the_page_of_a_benchmark(results):
    contents = BenchmarkContents(Benchmark({"A": results, "B": results}), None, parse("ndcg@5"))
    first, *_ = BENCHMARK_SECTIONS["Weak spots"](contents)
    assert first.texts[0].startswith("ndcg@5 of Good on A is ")


def test_a_single_recommender_has_no_name(parts, results):
    users, items = parts("Weak spots", results["Good"])[0].texts
    assert users.startswith("ndcg@10 is below its mean for users")
    assert items.startswith("recall@10 is below its mean for items")


def test_where_nothing_is_found_it_says_so_in_a_sentence(parts, task):
    # Each user has one relevant item, and no score knows which.
    item = torch.randint(400, (800,), generator=torch.Generator().manual_seed(1))
    task = RankingTask(
        torch.stack([torch.arange(800), item]),
        num_users=800,
        num_items=400,
        seen=task.seen,
        exclude_seen=False,
    )
    results = {name: evaluate(random_scores(task, i), task, METRICS) for i, name in enumerate("ab")}
    remarks, *shown = parts("Weak spots", results)
    assert all(" was found that " in text for text in remarks.texts)
    assert [part for part in shown if not isinstance(part, Missing)] == []


def test_what_keeps_it_from_looking_is_said_at_the_end(parts, results):
    small = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
    made = parts("Weak spots", evaluate(torch.rand(3), small, "recall@2"))
    assert [type(part) for part in made] == [Missing, Missing]
    assert made[0].reason.startswith("no group of users that is known has 50 of them")
    assert parts("Weak spots", evaluate(torch.rand(3), small, "coverage@2", keep_items=True)) == [
        Missing("Weak spots", "they need a metric of single users that all results have")
    ]
    owned = small.with_person([0, 0])
    result = evaluate(torch.rand(3), owned, "recall@2", average_over="person")
    assert "needs means over rows" in parts("Weak spots", result)[0].reason


def test_ranks_above_the_mean_are_bad(parts, task, results):
    scores = random_scores(task, 5)
    user, item = task.truth
    degree = torch.bincount(task.seen[0], minlength=800)
    scores[user, item] += torch.where(degree <= degree.median(), 0.2, 0.9)[user]
    (text, *_) = parts("Weak spots", evaluate(scores, task, "mean_rank"))[0].texts
    assert text.startswith("mean_rank is above its mean for users with training degree ≤ ")
