"""rank(): every form of recommender, with seen items and candidates, in chunks of any size."""

import math

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.kernels.fast import searching
from tests.support.cases.recommender_forms import forms
from tests.support.cases.small_model import NO_EDGES
from tests.support.cases.strategies import cases, ranks

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def some_forms(case):
    return st.lists(st.sampled_from([*forms(case)]), min_size=5, max_size=5)


@given(
    case=cases(),
    options=st.sampled_from([{"k": 1}, {"k": 4}, {"full": True}]),
    batch_size=st.sampled_from([None, 1, 3]),
    data=st.data(),
)
def test_all_forms_of_a_recommender_rank_alike(case, options, batch_size, data):
    expected = {}
    for user, truth in enumerate(case.truths):
        for item in truth:
            ranking = case.rankings[user]
            place = ranking.index(item) + 1 if item in ranking else math.inf
            depth = max(options.get("k", case.num_items), len(truth))
            expected[user, item] = place if place <= depth else math.inf
    for recommender in data.draw(some_forms(case)):
        ranked = rank(
            recommender, case.task(), batch_size=batch_size, edge_index=NO_EDGES, **options
        )
        assert ranks(ranked) == expected


def test_a_progress_bar_counts_users(capsys):
    task = RankingTask(torch.tensor([[0, 2], [1, 1]]), num_users=3, num_items=2)
    rank(torch.rand(2), task, progress=True)
    assert "2/2" in capsys.readouterr().err
    rank(torch.rand(2), task)
    assert capsys.readouterr().err == ""


class TestWrongArguments:
    task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)

    def test_a_task_is_a_task(self):
        with pytest.raises(TypeError, match=r"'data' needs to be one part .* \(got dict\)"):
            rank(torch.rand(3), {"user": torch.rand(3)})


def test_a_first_stage_that_found_nothing_for_anybody_has_missed_all():
    truth = torch.tensor([[0, 1], [2, 0]])
    nothing = torch.empty(2, 0, dtype=torch.long)
    task = RankingTask(truth, num_users=2, num_items=3, candidates=nothing, missing="count")
    scores = torch.tensor([[0.1, 0.3, 0.2], [0.2, 0.1, 0.3]])
    for recommender in (scores, (scores, torch.eye(3)), lambda users: scores[users]):
        assert rank(recommender, task, k=2).hits(2).tolist() == [0, 0]


def test_users_that_a_search_leaves_keep_their_own_ranks(monkeypatch):
    monkeypatch.setattr(searching, "NUM_FOUND", 1)  # one user after the other
    # So many scores are equal that it settles no user, and the last one comes first.
    truth, seen = torch.tensor([[0, 1, 2], [7, 3, 6]]), torch.tensor([[2], [8]])
    task = RankingTask(truth, num_users=3, num_items=500, seen=seen)
    scores = torch.zeros(3, 500)
    scores[0, :4] = scores[2, 1:6] = -1
    search, dense = (rank(scores, task, k=5, algorithm=name).rank for name in ("search", "dense"))
    assert torch.equal(search, dense)
