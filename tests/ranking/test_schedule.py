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
        rank(recommender, task, k=10, algorithm="dense")  # as a task keeps some of what it says
        of_one_chunk, of_five = (
            waits(partial(rank, recommender, task, k=10, batch_size=size, algorithm="dense"))
            for size in (500, 100)
        )
        assert of_one_chunk == of_five > 0


@pytest.mark.parametrize("kind", ["everything", "shared candidates", "candidates of each user"])
@pytest.mark.parametrize("exclude_seen", [True, False])
def test_excluded_items_are_found_in_lists(kind, exclude_seen):
    num_users, num_items = 9, 150
    generator = torch.Generator().manual_seed(0)
    seen, pairs = torch.rand(2, num_users, num_items, generator=generator) < 0.3
    candidates, may_be_retrieved = None, torch.ones(num_users, num_items, dtype=torch.bool)
    if kind == "shared candidates":
        candidates = pairs[0].nonzero().view(-1)
        may_be_retrieved = pairs[:1].expand(num_users, -1)
    elif kind == "candidates of each user":
        candidates, may_be_retrieved = pairs.nonzero().t(), pairs
    task = RankingTask(
        (may_be_retrieved & ~seen).nonzero().t()[:, ::7],
        num_users=num_users,
        num_items=num_items,
        seen=seen.nonzero().t(),
        candidates=candidates,
        exclude_seen=exclude_seen,
    )
    chunks = Schedule(task, torch.arange(num_users), depth=5).chunks(lambda depth: 4)
    for chunk in chunks:
        lists = torch.randint(-1, num_items, (chunk.users.numel(), 200), generator=generator)
        assert chunk.must_not_retrieve(lists).tolist() == [
            [
                item >= 0
                and bool(not may_be_retrieved[user, item] or (exclude_seen and seen[user, item]))
                for item in items
            ]
            for user, items in zip(chunk.users.tolist(), lists.tolist(), strict=True)
        ]


def small_task():
    return RankingTask(torch.tensor([[0, 1, 2], [3, 5, 0]]), num_users=3, num_items=200)
