"""Recommenders of functions and lists."""

import pytest
import torch

from pyg_recmetrics import RankingTask, rank

TRUTH = torch.tensor([[0, 0, 1], [2, 1, 0]])
TASK = RankingTask(TRUTH, num_users=2, num_items=3)


def test_a_function_may_overwrite_the_users_that_it_is_given():
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])

    def overwriting(users):
        result = scores[users]
        users.zero_()
        return result

    for batch_size in (None, 1):
        ranked = rank(overwriting, TASK, batch_size=batch_size, keep_items=True)
        wanted = rank(scores, TASK, keep_items=True)
        assert torch.equal(ranked.rank, wanted.rank)
        assert torch.equal(ranked.items, wanted.items)


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.float, torch.double])
def test_all_precisions_are_taken(dtype):
    scores = torch.tensor([[0, 2, 1], [2, 0, 1]], dtype=dtype)
    for recommender in (scores, lambda users: scores[users], (scores, torch.eye(3, dtype=dtype))):
        assert rank(recommender, TASK).rank.tolist() == [1, 2, 1]


WRONG_SCORES = [
    (torch.rand(2, 3).to_sparse(), r"dense tensor \(got torch.sparse_coo\)"),
    (torch.rand(2, 3).to(torch.float8_e4m3fn), r"16 to 64 bits \(got torch.float8_e4m3fn\)"),
    (torch.rand(2, 3).to(torch.float8_e5m2), r"16 to 64 bits \(got torch.float8_e5m2\)"),
    (torch.rand(2, 3, dtype=torch.complex64), "torch.complex64"),
    (torch.rand(2, 3) > 0.5, "torch.bool"),
    (torch.tensor(0.5), r"shape \[2, 3\] \(got \[\]\)"),
    (torch.empty(0, 0), r"shape \[2, 3\] \(got \[0, 0\]\)"),
    (torch.rand(2, 3, 1), r"shape \[2, 3\] \(got \[2, 3, 1\]\)"),
]


@pytest.mark.parametrize(("scores", "message"), WRONG_SCORES)
def test_wrong_scores_are_named(scores, message):
    for recommender in (scores, lambda users: scores):
        with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
            rank(recommender, TASK)


@pytest.mark.parametrize(("part", "message"), WRONG_SCORES[:5])
def test_wrong_embeddings_are_named(part, message):
    for recommender in ((part, torch.rand(3, 3)), (torch.rand(2, 2), part.transpose(0, 1))):
        with pytest.raises(ValueError, match="'recommender' needs to "):
            rank(recommender, TASK)
    with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
        rank((part, torch.rand(3, 3)), TASK)


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        ((torch.empty(2, 0), torch.empty(3, 0)), r"one dimension or more \(got 0\)"),
        ((torch.empty(2, 0), torch.empty(3, 0), torch.rand(3)), r"one dimension or more"),
        ((torch.rand(()), torch.rand(3, 3)), r"user embeddings of shape"),
        (torch.empty(2, 0).long(), r"item ids of shape \[2, K\] \(got \[2, 0\]\)"),
        (torch.tensor(3), r"item ids of shape \[2, K\] \(got \[\]\)"),
        (torch.empty(0), r"one score per item of shape \[3\] \(got \[0\]\)"),
        (torch.zeros(2, 3).long().to_sparse(), r"dense tensor \(got torch.sparse_coo\)"),
    ],
)
def test_what_is_empty_is_named(recommender, message):
    with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
        rank(recommender, TASK)
