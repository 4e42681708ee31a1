"""Ranks that are searched for in scores in half precision, and a bound on their error."""

import pytest
import torch
from embeddings import rank_by_all_algorithms

from pyg_recmetrics import RankingTask
from pyg_recmetrics.kernels.bounded_searching import BoundedSearch


def test_too_many_close_items_are_left_to_sorting(monkeypatch):
    left = []
    original = BoundedSearch.ranks

    def note(self, *args):
        ranks, unsettled = original(self, *args)
        left.append(unsettled.tolist())
        return ranks, unsettled

    monkeypatch.setattr(BoundedSearch, "ranks", note)
    generator = torch.Generator().manual_seed(0)
    item = torch.cat([torch.ones(3000, 4), torch.rand(3000, 4, generator=generator)])
    # The first user scores half of all items alike, and highest; the second no two.
    user = torch.tensor([[1.0, 1.0, 1.0, 1.0], [-1.0, 0.1, 2.0, 0.3]])
    truth = torch.tensor([[0, 0, 1, 1], [17, 2999, 4000, 5000]])
    task = RankingTask(truth, num_users=2, num_items=6000)
    ranked = rank_by_all_algorithms(user, item, task, k=20)
    assert left == [[True, False]]
    assert ranked.rank[0] == 18


def test_what_the_sieve_settles_is_not_searched_for(monkeypatch):
    searched = []
    original = BoundedSearch._search

    def note(self, start, batch, scratch):
        searched.append(batch.user.size(0))
        return original(self, start, batch, scratch)

    monkeypatch.setattr(BoundedSearch, "_search", note)
    generator = torch.Generator().manual_seed(0)
    item = torch.rand(6000, 8, generator=generator)
    item[1000:1250] += 9  # above all others, and all in the sieve
    item[17], item[1003] = 1.0, 11.0  # the best of the others, and of all
    user = torch.rand(3, 8, generator=generator)
    truth = torch.tensor([[0, 1, 1, 2], [17, 5000, 1003, 3]])
    task = RankingTask(truth, num_users=3, num_items=6000)
    ranked = rank_by_all_algorithms(user, item, task, k=20)
    assert ranked.rank[ranked.edge_index[1] == 1003] == 1
    assert searched == [1]
    seen = torch.stack([torch.zeros(250, dtype=torch.long), torch.arange(1000, 1250)])
    task = RankingTask(truth, num_users=3, num_items=6000, seen=seen)
    ranked = rank_by_all_algorithms(user, item, task, k=20)
    assert ranked.rank[ranked.edge_index[1] == 17] == 1
    assert searched == [1, 2]


def test_users_that_cannot_be_proved_are_ranked_by_sorting():
    # No score is positive, so that no threshold is, and the bits cannot be compared.
    item = torch.rand(500, 8, generator=torch.Generator().manual_seed(0))
    task = RankingTask(torch.tensor([[0, 1], [3, 4]]), num_users=2, num_items=500)
    rank_by_all_algorithms(torch.stack([-torch.ones(8), torch.ones(8)]), item, task, k=499)


@pytest.mark.parametrize("k", [20, 100])
def test_gowalla(gowalla, k, monkeypatch):
    train, test, user, item = gowalla
    task = RankingTask(test, num_users=29858, num_items=40981, seen=train)
    left = []
    original = BoundedSearch.ranks

    def note(self, *args):
        ranks, unsettled = original(self, *args)
        left.append(int(unsettled.sum()))
        return ranks, unsettled

    monkeypatch.setattr(BoundedSearch, "ranks", note)
    rank_by_all_algorithms(user, item, task, k)
    assert sum(left) < 30
