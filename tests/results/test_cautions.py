"""What makes intervals too narrow."""

import warnings

import pytest
import torch

from pyg_recmetrics import RankingTask, compare, evaluate
from pyg_recmetrics.results.cautions import (
    Basis,
    caution,
    caution_on_differences,
    caution_on_persons,
)
from pyg_recmetrics.results.inference import Sample


def sample(num_users, num_hits=None, person=None):
    values = torch.zeros(num_users, dtype=torch.double)
    values[: num_users if num_hits is None else num_hits] = 1.0
    values[0] = 0.5
    return Sample(values, person)


def test_many_users_and_hits_need_none():
    assert caution({"recall@5": sample(100), "mrr@5": sample(5000, 20)}) is None
    assert caution({}) is None


def test_few_users():
    assert caution({"recall@5": sample(99)}) == (
        "intervals may be too narrow: there are few users (99)"
    )
    # A single user has no interval.
    assert caution({"recall@5": sample(1)}) is None


def test_rare_hits_are_named_by_metric():
    samples = {"recall@5": sample(500, 19), "recall@20": sample(500, 20), "mrr": sample(500, 3)}
    assert caution(samples) == (
        "intervals may be too narrow: few users have more than zero in recall@5, mrr"
    )


def test_persons_count_by_how_many_of_one_size_they_are():
    """One person with 200 rows and 100 with one are worth little more than one."""
    person = torch.cat([torch.zeros(200, dtype=torch.long), torch.arange(1, 101)])
    uneven = sample(300, person=person)
    assert uneven.num_effective == pytest.approx(300**2 / (200**2 + 100))
    assert caution_on_persons(uneven) == (
        "intervals may be too narrow: there are few persons (101, worth 2 of one size)"
    )
    even = sample(300, person=torch.arange(300) // 6)
    assert even.num_effective == 50
    assert caution_on_persons(even) is None
    assert caution_on_persons(sample(10)) is None


def basis(num_users, num_hits, metric="recall@5"):
    return Basis.of(metric, sample(num_users, num_hits))


def test_differences_of_few_users_or_of_few_who_differ():
    assert caution_on_differences([]) is None
    assert caution_on_differences([basis(100, 20), basis(5000, 30)]) is None
    assert caution_on_differences([basis(500, 100), basis(99, 50)]) == (
        "intervals may be too narrow: there are few users (99)"
    )
    assert caution_on_differences([basis(1, 1)]) is None
    two = [basis(500, 19), basis(500, 19), basis(500, 7, "mrr"), basis(500, 100, "ndcg@5")]
    assert caution_on_differences(two) == (
        "intervals may be too narrow: few users differ in recall@5, mrr"
    )
    # What is the same does not differ for few.
    assert caution_on_differences([Basis("mrr", 500, None, 0)]) is None


def test_a_comparison_says_so_as_a_result_does():
    pytest.importorskip("scipy")
    generator = torch.Generator().manual_seed(0)
    for num_users in (40, 150):
        truth = torch.stack([torch.arange(num_users), torch.arange(num_users) % 5])
        task = RankingTask(truth, num_users=num_users, num_items=5)
        a, b = (
            evaluate(torch.rand(num_users, 5, generator=generator), task, "recall@2")
            for _ in range(2)
        )
        with warnings.catch_warnings(action="error"):
            comparison = compare({"a": a, "b": b})
        said = "intervals may be too narrow: there are few users (40)"
        for shown in (a, comparison, comparison.select("recall@2")):
            assert (said in str(shown)) == (num_users == 40)


def test_few_persons_warn():
    truth = torch.stack([torch.arange(40), torch.arange(40) % 5])
    task = RankingTask(truth, num_users=40, num_items=5).with_person(torch.arange(40) // 4)
    generator = torch.Generator().manual_seed(0)
    a, b = (evaluate(torch.rand(40, 5, generator=generator), task, "recall@2") for _ in range(2))
    assert "there are few persons (10, worth 10 of one size)" in str(a)
    with pytest.warns(UserWarning, match="there are few persons"):
        a.confidence_interval("recall@2")
    pytest.importorskip("scipy")
    with pytest.warns(UserWarning, match="there are few persons"):
        comparison = compare({"a": a, "b": b})
    assert "there are few persons" in str(comparison)


def test_values_that_are_all_the_same_have_no_margin():
    task = RankingTask(torch.stack([torch.arange(30)] * 2), num_users=30, num_items=30)
    text = str(evaluate(torch.eye(30), task, "recall@1"))
    assert "recall  1.0000\n" in text
    assert "± ." not in text
