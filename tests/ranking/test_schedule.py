"""The order in which users are ranked, and the chunks they are cut into."""

import warnings
from functools import partial

import pytest
import torch

from pyg_recmetrics import PairScorer, RankingTask, rank
from pyg_recmetrics.ranking.schedule import Schedule
from tests.support.cases.recommender_forms import RecordingModel

#: Models propagate over edges that may be the truth.
pytestmark = pytest.mark.filterwarnings("ignore:.*ground-truth edges leak")


def test_deep_users_come_first_and_do_not_make_all_chunks_deep(monkeypatch):
    depths = []
    original = Schedule.chunks

    def note(self, num_rows):
        for chunk in original(self, num_rows):
            depths.append(chunk.max_depth)
            yield chunk

    monkeypatch.setattr(Schedule, "chunks", note)
    truth = torch.tensor([[0, 1, 1, 1, 1, 1, 2], [0, 0, 1, 2, 3, 4, 0]])
    task = RankingTask(truth, num_users=3, num_items=9)
    rank(torch.arange(9.0), task, k=2, batch_size=1)
    assert depths == [5, 2, 2]


def test_no_chunk_waits_for_the_device(device, waits):
    if device.type == "cpu":
        pytest.skip("a CPU waits for nothing")
    seen, truth = torch.randint(500, (2, 4000)).unique(dim=1).split(2000, dim=1)
    task = RankingTask(truth, num_users=500, num_items=500, seen=seen).to(device)
    scores = torch.rand(500, 500).to(device)
    # A search waits to know how much it has found, and embeddings for scores that need exact sums.
    for recommender in (scores, scores.argsort(dim=1)[:, :400]):
        calls = [
            partial(rank, recommender, task, k=10, batch_size=size, algorithm="dense")
            for size in (500, 100)
        ]
        for call in calls:
            call()  # as a task keeps some of what it says
        of_one_chunk, of_five = map(waits, calls)
        assert of_one_chunk == of_five > 0


def chunks_of_models(scores, num_users):
    """Functions of all kinds, and the users of each call that they have had."""
    asked = []

    def note(users, answer):
        asked.append(users.unique_consecutive().tolist())
        return answer

    lists = scores.argsort(dim=1, descending=True, stable=True)
    yield asked, lambda users: note(users, scores[users])
    yield asked, PairScorer(lambda user, item: note(user, scores[user, item]))
    model = RecordingModel(scores, num_users)

    def recommend(edge_index, src_index, dst_index, k):
        return note(src_index, model.recommend(edge_index, None, src_index, dst_index, k))

    yield asked, recommend

    def recommend(users, k):
        return note(users, lists[users, :k])

    yield asked, recommend


@pytest.mark.parametrize("batch_size", [1, 3, None])
@pytest.mark.parametrize("number", range(4))
def test_users_reach_a_recommender_in_ascending_order(number, batch_size):
    scores = torch.rand(20, 40, generator=torch.Generator().manual_seed(0))
    degree = torch.arange(20).flip(0) // 2 + 1  # the deepest first would be the other way round
    item = torch.cat([torch.arange(int(num)) for num in degree])
    truth = torch.stack([torch.arange(20).repeat_interleave(degree), item])
    edges = torch.stack([torch.arange(20), torch.arange(20, 40)])
    task = RankingTask(truth.flip(1), num_users=20, num_items=40)
    asked, recommender = [*chunks_of_models(scores, 20)][number]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*looks odd")
        found = rank(recommender, task, edge_index=edges, k=3, batch_size=batch_size)
        found = rank(recommender, task, edge_index=edges, k=3, batch_size=batch_size)
    assert all(users == sorted(users) for users in asked)
    torch.testing.assert_close(found.rank, rank(scores, task, k=3).rank)
