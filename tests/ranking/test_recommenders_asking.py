"""A model is asked by its `recommend`, and told what that leaves off."""

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranking import algorithms
from tests.support.cases.recommender_forms import RecordingModel
from tests.support.cases.small_model import EDGES, NO_EDGES, SCORES
from tests.support.cases.strategies import cases
from tests.support.tools.said import warnings_of

#: Models propagate over edges that may be the truth.
pytestmark = pytest.mark.filterwarnings("ignore:.*ground-truth edges leak")

TRUTH = torch.tensor([[0, 0, 1], [0, 3, 4]])
TASK = RankingTask(TRUTH, num_users=2, num_items=5)


class Answering(torch.nn.Module):
    """A model that answers as a function of the users and items it is asked about."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def recommend(self, edge_index, edge_weight=None, *, src_index, dst_index, k):
        return self.answer(src_index, dst_index, k)


def test_a_model_is_asked_for_as_many_items_as_can_be_needed():
    truth, seen = torch.tensor([[0, 0, 1], [5, 6, 7]]), torch.tensor([[0, 1, 1], [0, 1, 2]])
    task = RankingTask(truth, num_users=2, num_items=9, seen=seen)
    model = RecordingModel(torch.rand(2, 9), 2)
    rank(model, task, k=1, edge_index=NO_EDGES, batch_size=1)
    assert [(src.tolist(), k) for src, _, k, *_ in model.calls] == [([0], 3), ([1], 3)]
    few = RankingTask(truth, num_users=2, num_items=9, seen=seen, candidates=torch.arange(5, 8))
    rank(model, few, k=1, edge_index=NO_EDGES)
    _, dst, k, *_ = model.calls[-1]
    assert (dst.tolist(), k) == ([7, 8, 9], 2)


def test_users_who_need_longer_lists_are_asked_about_together():
    seen = torch.stack([torch.tensor([1, 1, 1, 3, 3, 4]), torch.tensor([0, 1, 2, 0, 1, 0])])
    truth = torch.stack([torch.tensor([0, 1, 2, 2, 3, 4]), torch.tensor([5, 5, 5, 6, 5, 5])])
    task = RankingTask(truth, num_users=5, num_items=9, seen=seen)
    model = RecordingModel(torch.rand(5, 9), 5)
    rank(model, task, k=1, edge_index=NO_EDGES, batch_size=2)
    # User 2 has two relevant items. Of the others, user 1 has seen three items, and user 3 two.
    assert [(users.tolist(), k) for users, _, k, *_ in model.calls] == [
        ([1, 2], 4),
        ([3, 4], 3),
        ([0], 1),
    ]


@pytest.mark.parametrize("max_seen", [5, 300])
def test_what_a_model_computes_fits_into_memory(monkeypatch, max_seen):
    num_users, num_items, num_bytes = 500, 400, 2**19
    monkeypatch.setattr(algorithms, "SCRATCH_BYTES", num_bytes)
    users = torch.arange(num_users)
    truth = torch.stack([users, users % 50 + 350])
    seen = torch.stack([torch.zeros(max_seen).long(), torch.arange(max_seen)])
    task = RankingTask(truth, num_users=num_users, num_items=num_items, seen=seen)
    model = RecordingModel(torch.rand(num_users, num_items), num_users)
    rank(model, task, k=10, edge_index=NO_EDGES)
    assert sum(len(users) for users, *_ in model.calls) == num_users
    for users, _, k, *_ in model.calls:
        # Scores take up to 8 bytes, and the best scores, their items and two copies 32.
        assert len(users) * (num_items * 8 + k * 32) <= num_bytes
    assert model.calls[0][2] == 10 + max_seen
    assert model.calls[-1][2] == 10


@pytest.mark.parametrize(
    "recommender", [(SCORES, torch.eye(5)), lambda users: SCORES[users], torch.nn.Linear(1, 1)]
)
def test_what_cannot_be_asked_is_refused(recommender):
    message = "with a method 'recommend' for algorithm='recommend' .got "
    with pytest.raises(ValueError, match=message):
        rank(recommender, TASK, algorithm="recommend", edge_index=EDGES)


class TestShortAnswers:
    """40 items, of which each of 10 users has seen 10."""

    seen = torch.cartesian_prod(torch.arange(10), torch.arange(10)).t()
    truth = torch.stack([torch.arange(10), torch.arange(10, 20)])
    task = RankingTask(truth, num_users=10, num_items=40, seen=seen)

    def said_of(self, answer, k=20, task=None):
        return warnings_of(rank, Answering(answer), task or self.task, k=k, edge_index=NO_EDGES)

    @pytest.mark.parametrize("batch_size", [None, 1, 3])
    def test_fewer_items_than_were_asked_for_are_warned_about_once(self, batch_size):
        with pytest.warns(UserWarning, match="for 10 of 10 users") as warned:
            rank(
                Answering(lambda users, items, k: items[:12].expand(len(users), -1)),
                self.task,
                k=20,
                batch_size=batch_size,
                edge_index=NO_EDGES,
            )
        assert [warning.filename for warning in warned] == [__file__]

    @given(case=cases(), k=st.integers(1, 9), width=st.integers(1, 9))
    @pytest.mark.usefixtures("expect_lost_truth")
    def test_users_who_miss_an_item_that_there_is_are_counted(self, case, k, width):
        with_truth = [user for user, truth in enumerate(case.truths) if truth]
        num_short = 0
        for user in with_truth:
            wanted = min(max(k, len(case.truths[user])), len(case.rankings[user]))
            given = {*range(min(width, case.num_items))} - case.seen_by(user)
            num_short += len(given) < wanted
        task = case.task()
        told = " ".join(
            self.said_of(
                lambda users, items, k: items[:width].expand(len(users), -1), k=k, task=task
            )
        )
        assert (f"for {num_short} of {len(with_truth)} users" in told) == (num_short > 0)
        assert ("users" in told) == (num_short > 0)

    def test_a_model_may_say_that_there_are_no_more(self):
        def answer(users, items, k):
            return torch.where(torch.arange(k) < 12, items[:k], -1).expand(len(users), -1)

        (message,) = self.said_of(answer)
        assert "padded with -1" in message

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (
                lambda u, i, k: torch.empty(len(u), 0).long(),
                r"shape \[10, k\] with k > 0 \(got \[10, 0\]\)",
            ),
            (lambda u, i, k: i[:k], r"\(got \[30\]\)"),
            (lambda u, i, k: i[:k].expand(len(u) - 1, -1), r"\(got \[9, 30\]\)"),
            (lambda u, i, k: i[:k].expand(len(u), -1).to_sparse(), r"dense tensor \(got torch.sp"),
            (lambda u, i, k: i[:k].expand(1, len(u), -1), r"\(got \[1, 10, 30\]\)"),
            (lambda u, i, k: i[:k].expand(len(u), -1).double(), "hold integers .got torch.float64"),
            (lambda u, i, k: i[-1:].expand(len(u), -1) + 1, "got 10 ids outside"),
            (
                lambda u, i, k: i[:k].expand(len(u), -1) - 10,
                r"\[10, 50\), or -1: .* \(got 100 ids outside\)",
            ),
        ],
    )
    def test_wrong_shapes_are_errors(self, answer, message):
        with pytest.raises(ValueError, match=message):
            rank(Answering(answer), self.task, k=20, edge_index=NO_EDGES)
