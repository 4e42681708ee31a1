"""What a result says of the users who stand for all."""

import pytest

from pyg_recmetrics.results.counts import USERS, Sampling
from pyg_recmetrics.results.notes import line
from pyg_recmetrics.results.statistics import Interval


def make(**changes):
    margins = {"ndcg@20": 0.01, "recall@20": 0.01}
    fields = {
        "num_users": 30_000,
        "num_ranked": 4000,
        "num_without_truth": 12,
        "num_counted": {"ndcg@20": 30_000, "recall@20": 30_000},
        "margins": margins,
        "bounds": {"ndcg@20": Interval(0.1, 0.12), "recall@20": Interval(0.2, 0.215)},
        "level": 0.95,
        "seed": 3,
        "stopped": "margin",
    }
    return Sampling(**fields | changes)


ALL = {"stopped": "all", "num_ranked": 30_000}


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({}, "4,000 of 30,000 users with ground truth were drawn (seed 3), until every mean is "),
        (
            {"stopped": "max_users"},
            "4,000 of 30,000 users with ground truth were drawn (seed 3), as many as 'max_users', "
            "before every mean is known to ± 0.01",
        ),
        (ALL, "all users were ranked"),
        (
            {"margins": {"ndcg@20": 0.5, "recall@20": 0.1}},
            "until means are known to their margins (ndcg@20 ± 0.5, recall@20 ± 0.1)",
        ),
    ],
)
def test_a_note_says_why_no_more_users_were_ranked(changes, note):
    assert note in line("drawn", make(**changes), USERS)


def test_a_recipe_says_whom_a_mean_is_of_and_the_bounds():
    text = line("sample", make(), USERS)
    assert text.startswith("4,000 of 30,000 users with ground truth were drawn (seed 3), until")
    assert "(ndcg@20 from 0.1000 to 0.1200, recall@20 from 0.2000 to 0.2150)" in text
    assert line("sample", make(**ALL), USERS) == "all 30,000 users with ground truth"


def test_queries_are_not_called_users():
    queries = USERS._replace(users="queries")
    for words in ("drawn", "within", "sample"):
        assert "queries" in line(words, make(), queries)
        assert "users" not in line(words, make(), queries)


def test_it_is_restored_also_from_files_with_what_was_expected_at_each_look():
    one = make()
    for more in ({}, {"forecasts": [[512, 3900]]}):
        assert Sampling.from_dict(one.to_dict() | more) == one
