"""What a result says of the users who stand for all."""

import pytest

from pyg_recmetrics.results.estimates import Interval
from pyg_recmetrics.results.nouns import USERS
from pyg_recmetrics.results.sampling import Sampling
from pyg_recmetrics.sequential import Forecast


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
        "forecasts": (Forecast(512, 3900),),
    }
    return Sampling(**fields | changes)


def test_it_says_what_its_bounds_are_about_and_why_it_stopped():
    assert make().note_on_bounds() == (
        "±: the mean over all 30,000 users is within it, with 95% confidence for all metrics "
        "together"
    )
    assert make().note() == (
        "4,000 of all 30,000 users were ranked in random order (seed 3), until every mean is known "
        "to ± 0.01"
    )
    assert make(stopped="max_users").note() == (
        "4,000 of all 30,000 users were ranked in random order (seed 3), until there were as many "
        "as 'max_users'; it takes about 3,900 until every mean is known to ± 0.01"
    )
    assert make(stopped="all", num_ranked=30_000).note() == (
        "all users were ranked, as it takes about 3,900 until every mean is known to ± 0.01"
    )
    assert make().describe().startswith("4,000 of 30,000 users with ground truth, in random order")
    assert "(ndcg@20 from 0.1000 to 0.1200, recall@20 from 0.2000 to 0.2150)" in make().describe()
    assert make(num_ranked=30_000).describe() == "all 30,000 users with ground truth"


def test_it_does_not_say_what_it_would_have_taken_where_nobody_asked():
    everybody = make(stopped="all", num_ranked=30_000, forecasts=())
    assert everybody.note() == "all users were ranked, as in an earlier call"
    few = make(stopped="all", num_users=1024, num_ranked=1024, forecasts=())
    assert few.note() == "all users were ranked, as there are few"


def test_queries_are_not_called_users():
    queries = USERS._replace(users="queries")
    for text in (make().note(queries), make().note_on_bounds(queries), make().describe(queries)):
        assert "queries" in text
        assert "users" not in text


@pytest.mark.parametrize(
    ("margins", "words"),
    [
        ({"mrr": 0.002}, "until the mean of mrr is known to ± 0.002"),
        ({"mrr": 0.5, "map": 0.5}, "until every mean is known to ± 0.5"),
        ({"mrr": 0.5, "map": 0.1}, "every mean is known to its margin (mrr ± 0.5, map ± 0.1)"),
    ],
)
def test_it_names_the_margins(margins, words):
    assert words in make(margins=margins).note()


def test_it_is_restored():
    one = make()
    assert Sampling.from_dict(one.to_dict()) == one
