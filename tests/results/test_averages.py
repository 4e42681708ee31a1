"""Means over persons, against a loop over persons."""

import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import EvaluationResult, RankedEdges, RankingTask, compare, evaluate
from tests.support.cases.strategies import cases

pytestmark = [
    pytest.mark.usefixtures("expect_lost_truth"),
    pytest.mark.filterwarnings("ignore:.*the order of ties", "ignore:.*may be too narrow"),
]

METRICS = ["recall@2", "ndcg@3"]


def means_by_loop(values, persons):
    rows = {}
    for value, person in zip(values, persons, strict=True):
        if not math.isnan(value):
            rows.setdefault(person, []).append(value)
    return [statistics.fmean(rows[person]) for person in sorted(rows)]


@given(case=cases(), data=st.data())
def test_the_mean_is_that_of_the_means_of_persons(case, data):
    person = data.draw(
        st.lists(st.integers(0, 2), min_size=case.num_users, max_size=case.num_users)
    )
    task = case.task(person=torch.tensor(person))
    over_rows = evaluate(case.score_matrix, task, METRICS)
    result = evaluate(case.score_matrix, task, METRICS, average_over="person")
    for metric in METRICS:
        wanted = means_by_loop(over_rows.per_user[metric].tolist(), person)
        assert result[metric] == pytest.approx(statistics.fmean(wanted))
        contributed = result.contributions(metric)
        assert contributed[~contributed.isnan()].tolist() == pytest.approx(wanted)
        assert torch.equal(
            result.per_user[metric].nan_to_num(-1), over_rows.per_user[metric].nan_to_num(-1)
        )
        low, high = result.tie_range(metric)
        assert low - 1e-12 <= result[metric] <= high + 1e-12


def made(scores=None, **options):
    generator = torch.Generator().manual_seed(0)
    truth = torch.stack([torch.arange(60), torch.randint(8, (60,), generator=generator)])
    person = torch.randint(12, (60,), generator=generator)
    task = RankingTask(truth, num_users=60, num_items=8, person=person)
    if scores is None:
        scores = torch.rand(60, 8, generator=generator)
    return evaluate(scores, task, "recall@2", **options)


def test_intervals_draw_persons():
    result = made(average_over="person")
    values = result.contributions("recall@2")
    margin = 2.200985 * statistics.stdev(values.tolist()) / math.sqrt(12)
    low, high = result.confidence_interval("recall@2")
    assert (high - low) / 2 == pytest.approx(margin, rel=1e-6)
    assert "interval of the mean over persons" in str(result)
    assert "60 users evaluated" in str(result)
    assert "persons" in result.recipe()


def test_groups_are_of_persons():
    result = made(average_over="person")
    cohorts = result.by([number % 2 for number in range(12)])
    values = result.contributions("recall@2")
    assert cohorts[0]["recall@2"].value == pytest.approx(float(values[::2].mean()))
    with pytest.raises(ValueError, match=r"'groups' .* every person"):
        result.by([0] * 60)


def test_pairs_are_persons():
    first, second = made(average_over="person"), made(torch.rand(60, 8), average_over="person")
    (pair,) = compare({"a": first, "b": second})
    difference = first.contributions("recall@2") - second.contributions("recall@2")
    assert pair.difference == pytest.approx(float(difference.mean()))
    with pytest.raises(ValueError, match="differ in average_over"):
        compare({"a": first, "b": made()})


def test_it_is_saved(tmp_path):
    result = made(average_over="person")
    result.save(tmp_path / "result.npz")
    assert str(EvaluationResult.load(tmp_path / "result.npz")) == str(result)


def test_rankings_without_a_task_know_their_persons():
    ranked = RankedEdges.from_negatives(torch.tensor([0.9, 0.2, 0.4]), torch.tensor([0.5, 0.3]))
    ranked = ranked.with_person(["ann", "ann", "bob"])
    result = EvaluationResult(ranked, "hit_rate@1", average_over="person")
    assert result["hit_rate@1"] == (1 / 2 + 0) / 2
    assert EvaluationResult(ranked, "hit_rate@1").person.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match=r"'person' .* a label for every user"):
        ranked.with_person([0, 1])


def test_what_has_no_mean_over_persons_is_named():
    with pytest.raises(ValueError, match=r"'average_over' needs to be 'user' where persons"):
        evaluate(
            torch.rand(4),
            RankingTask([[0], [1]], num_users=1, num_items=4),
            "mrr",
            average_over="person",
        )
    result = made()
    with pytest.raises(ValueError, match=r"for 'recall\(average=micro\)@2'"):
        EvaluationResult(
            result.ranked, "recall(average=micro)@2", task=result.task, average_over="person"
        )
    with pytest.raises(ValueError, match="'by_degree' needs means over rows"):
        made(average_over="person").by_degree()
    with pytest.raises(ValueError, match="'average_over' needs to be one of"):
        made(average_over="query")
