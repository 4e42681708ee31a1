"""The order in which users are ranked, and the chunks they are cut into."""

import gc
import weakref
from functools import partial

import pytest
import torch

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranking import schedule
from pyg_recmetrics.ranking.schedule import Schedule
from tests.support.cases.embeddings import assert_same_ranks


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
        rank(recommender, task, k=10, algorithm="dense")  # as what a task says of users is kept
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


@pytest.fixture
def made(monkeypatch):
    """The depths of the schedules that are made."""
    depths = []
    original = Schedule.__init__

    def note(self, task, users, depth):
        depths.append(depth)
        original(self, task, users, depth)

    monkeypatch.setattr(Schedule, "__init__", note)
    return depths


def small_task():
    return RankingTask(torch.tensor([[0, 1, 2], [3, 5, 0]]), num_users=3, num_items=200)


def test_a_schedule_is_made_once_for_each_depth(made):
    task, generator = small_task(), torch.Generator().manual_seed(0)
    for scores in torch.rand(3, 3, 200, generator=generator):
        for k in (1, 2):
            again, new = (rank(scores, one, k=k, batch_size=2) for one in (task, small_task()))
            assert_same_ranks(again, new)
    assert made.count(1) == made.count(2) == 4  # one of them for the task, and three for new ones


def test_other_users_have_another_schedule(made):
    task, ranked = small_task(), []
    for users in ([0, 1], [0, 2], [0, 2]):
        prepared = Schedule.prepared(task, torch.tensor(users), 1, 1)
        ranked.append([int(chunk.users) for chunk in prepared.chunks(lambda depth: 1)])
    assert made == [1, 1]
    assert list(map(sorted, ranked)) == [[0, 1], [0, 2], [0, 2]]


def test_a_schedule_of_many_edges_is_not_kept(monkeypatch, made):
    monkeypatch.setattr(schedule, "MAX_PREPARED_EDGES", 2)
    task = small_task()
    for _ in range(2):
        rank(torch.rand(3, 200), task, k=1)
    assert made == [1, 1]


def test_there_are_only_a_few_schedules_of_a_task():
    task = small_task()
    for k in range(1, 20):
        rank(torch.rand(3, 200), task, k=k)
    assert 0 < len(schedule._prepared[task]) <= schedule._MAX_PREPARED


def test_a_schedule_goes_with_its_task():
    task = small_task()
    rank(torch.rand(3, 200), task, k=1)
    is_alive = weakref.ref(task)
    del task
    gc.collect()
    assert is_alive() is None


def test_rankings_at_the_same_time_have_buffers_of_their_own():
    task = small_task()
    prepared = [Schedule.prepared(task, task.users, 1, 3) for _ in range(2)]
    first, second = (next(each.chunks(lambda depth: 3)).scratch for each in prepared)
    assert first is not second
    (chunk,) = prepared[0].chunks(lambda depth: 3)
    chunk.scratch("test", (4,), torch.float)
    (again,) = prepared[1].chunks(lambda depth: 3)
    assert again.scratch is chunk.scratch


def test_large_buffers_are_not_kept(monkeypatch):
    monkeypatch.setattr(schedule, "MAX_IDLE_BYTES", 15)
    task = small_task()
    prepared = Schedule.prepared(task, task.users, 1, 3)
    for chunk in prepared.chunks(lambda depth: 3):
        chunk.scratch("test", (4,), torch.float)
        assert chunk.scratch.num_bytes == 16
    (again,) = prepared.chunks(lambda depth: 3)
    assert again.scratch is not chunk.scratch
