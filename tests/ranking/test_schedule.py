"""The order in which users are ranked, and the chunks they are cut into."""

import pytest
import torch

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranking.schedule import Schedule


def test_deep_users_come_first_and_do_not_make_all_chunks_deep(monkeypatch):
    depths = []
    original = Schedule.chunks

    def note(self):
        for chunk in original(self):
            depths.append(chunk.max_depth)
            yield chunk

    monkeypatch.setattr(Schedule, "chunks", note)
    truth = torch.tensor([[0, 1, 1, 1, 1, 1, 2], [0, 0, 1, 2, 3, 4, 0]])
    task = RankingTask(truth, num_users=3, num_items=9)
    rank(torch.arange(9.0), task, k=2, batch_size=1)
    assert depths == [5, 2, 2]


def test_no_chunk_waits_for_the_device(device):
    if device.type != "cuda":
        pytest.skip("needs a CUDA device")
    truth, seen = torch.randint(500, (2, 2000)), torch.randint(500, (2, 2000))
    task = RankingTask(truth, num_users=500, num_items=500, seen=seen).to(device)
    scores = torch.rand(500, 500, device=device)
    original = Schedule.chunks

    def strict(self):
        try:
            for chunk in original(self):
                torch.cuda.set_sync_debug_mode("error")
                yield chunk
        finally:
            torch.cuda.set_sync_debug_mode("default")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Schedule, "chunks", strict)
        # Embeddings wait, to look for scores that need exact sums.
        for recommender in (scores, scores.argsort(dim=1)):
            rank(recommender, task, k=10, batch_size=100)
