"""rank(): what it shows, and what is left to the next algorithm. All doors compare its numbers."""

import torch

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.kernels.fast import searching


def test_a_progress_bar_counts_users(capsys):
    task = RankingTask(torch.tensor([[0, 2], [1, 1]]), num_users=3, num_items=2)
    rank(torch.rand(2), task, progress=True)
    assert "2/2" in capsys.readouterr().err
    rank(torch.rand(2), task)
    assert capsys.readouterr().err == ""


def test_a_first_stage_that_found_nothing_for_anybody_has_missed_all():
    truth = torch.tensor([[0, 1], [2, 0]])
    nothing = torch.empty(2, 0, dtype=torch.long)
    task = RankingTask(truth, num_users=2, num_items=3, candidates=nothing, missing="count")
    scores = torch.tensor([[0.1, 0.3, 0.2], [0.2, 0.1, 0.3]])
    for recommender in (scores, (scores, torch.eye(3)), lambda users: scores[users]):
        assert rank(recommender, task, k=2).hits(2).tolist() == [0, 0]


def test_zeros_of_both_signs_are_equal():
    task = RankingTask([[0], [1]], num_users=1, num_items=3)
    ranked = rank(torch.tensor([[-0.0, 0.0, -0.0]]), task, k=3, keep_items=True)
    assert ranked.lists.to_matrix().tolist() == [[0, 1, 2]]


def test_users_that_a_search_leaves_keep_their_own_ranks(monkeypatch):
    monkeypatch.setattr(searching, "NUM_FOUND", 1)  # one user after the other
    # So many scores are equal that it settles no user, and the last one comes first.
    truth, seen = torch.tensor([[0, 1, 2], [7, 3, 6]]), torch.tensor([[2], [8]])
    task = RankingTask(truth, num_users=3, num_items=500, seen=seen)
    scores = torch.zeros(3, 500)
    scores[0, :4] = scores[2, 1:6] = -1
    search, dense = (rank(scores, task, k=5, algorithm=name).rank for name in ("search", "dense"))
    assert torch.equal(search, dense)
