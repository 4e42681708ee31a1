"""The order in which users are ranked, and the chunks they are cut into."""

from functools import partial

import pytest
import torch

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranking.schedule import Schedule


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
