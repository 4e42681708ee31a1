"""Search and count by bounds find the ranks that sorting finds. These tests try to break them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pyg_recmetrics.ranking.algorithms
from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.kernels import bounded_counting
from pyg_recmetrics.kernels.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.bounded_searching import BoundedSearch

KINDS = {
    "random": lambda shape, g: torch.randn(shape, generator=g),
    "positive": lambda shape, g: torch.rand(shape, generator=g),
    "negative": lambda shape, g: -torch.rand(shape, generator=g),
    "whole numbers, so that many scores are equal": lambda shape, g: torch.randint(
        -2, 3, shape, generator=g
    ).float(),
    "near-ties below the precision of bfloat16": lambda shape, g: (
        torch.ones(shape) + 2.0**-9 * torch.randn(shape, generator=g)
    ),
    "near-ties below single precision": lambda shape, g: (
        torch.ones(shape, dtype=torch.double)
        + 2.0**-26 * torch.randn(shape, generator=g, dtype=torch.double)
    ),
    "rows of very different norms": lambda shape, g: (
        torch.randn(shape, generator=g)
        * torch.randint(-40, 40, (shape[0], 1), generator=g).float().exp2()
    ),
    "numbers of very different size": lambda shape, g: (
        torch.randn(shape, generator=g) * torch.randint(-60, 20, shape, generator=g).float().exp2()
    ),
    "huge": lambda shape, g: 1e38 * torch.rand(shape, generator=g),
    "tiny": lambda shape, g: 1e-38 * torch.rand(shape, generator=g),
    "denormal": lambda shape, g: 1e-43 * torch.rand(shape, generator=g),
    "zero": lambda shape, g: torch.zeros(shape),
    "repeated": lambda shape, g: torch.randn((1, shape[1]), generator=g).repeat(shape[0], 1),
    "halfway between two numbers of bfloat16": lambda shape, g: (
        1 + 2.0**-8 * torch.randint(0, 2, shape, generator=g)
    ),
}


def same_ranks(user, item, task, k, batch_size=None):
    """Ranks in all ways, which have to agree."""
    found = {
        algorithm: rank((user, item), task, k=k, algorithm=algorithm, batch_size=batch_size)
        for algorithm in ("dense", "count", "search")
    }
    full = rank((user, item), task, full=True, algorithm="count", batch_size=batch_size)
    dense = rank((user, item), task, full=True, algorithm="dense", batch_size=batch_size)
    assert torch.equal(full.edge_index, dense.edge_index)
    assert torch.equal(full.rank, dense.rank)
    for other in found.values():
        assert torch.equal(found["dense"].edge_index, other.edge_index)
        assert torch.equal(found["dense"].rank, other.rank)
    return found["dense"]


@settings(max_examples=300)
@given(
    users=st.sampled_from(sorted(KINDS)),
    items=st.sampled_from(sorted(KINDS)),
    num_items=st.integers(2, 400),
    dim=st.sampled_from([1, 2, 7, 64]),
    k=st.integers(1, 30),
    batch_size=st.sampled_from([None, 1, 3]),
    seed=st.integers(0, 2**30),
)
def test_ranks_are_those_of_sorting_all_exact_scores(
    users, items, num_items, dim, k, batch_size, seed
):
    generator = torch.Generator().manual_seed(seed)
    user = KINDS[users]((12, dim), generator)
    item = KINDS[items]((num_items, dim), generator)
    truth = torch.stack(
        [
            torch.randint(12, (40,), generator=generator),
            torch.randint(num_items, (40,), generator=generator),
        ]
    )
    seen = torch.stack([truth[0].roll(1), (truth[1] * 7 + 1) % num_items])
    keys = {tuple(edge) for edge in seen.t().tolist()}
    truth = truth[:, [tuple(edge) not in keys for edge in truth.t().tolist()]]
    if truth.size(1) == 0 or k >= num_items:
        return
    task = RankingTask(truth, num_users=12, num_items=num_items, seen=seen)
    same_ranks(user, item, task, k, batch_size)


@pytest.mark.parametrize("users", sorted(KINDS))
@pytest.mark.parametrize("items", sorted(KINDS))
def test_counts_over_many_tiles_of_items(monkeypatch, users, items):
    monkeypatch.setattr(bounded_counting, "STRETCH", 8)
    monkeypatch.setattr(BoundedCount, "group_size", 8)
    monkeypatch.setattr(bounded_counting, "NUM_SCORES_IN_TILE", 12 * 8 * 3)
    monkeypatch.setattr(bounded_counting, "NUM_COMPARISONS_AT_ONCE", 100)
    generator = torch.Generator().manual_seed(len(users) * len(items))
    user, item = KINDS[users]((12, 7), generator), KINDS[items]((203, 7), generator)
    truth = torch.stack([torch.arange(60) % 12, torch.randint(203, (60,), generator=generator)])
    seen = torch.stack([torch.arange(60) % 12, (truth[1] + 1 + torch.arange(60)) % 203])
    is_seen = (truth[0] * 203 + truth[1]).unsqueeze(1) == seen[0] * 203 + seen[1]
    truth = truth[:, ~is_seen.any(dim=1)]
    task = RankingTask(truth, num_users=12, num_items=203, seen=seen)
    same_ranks(user, item, task, k=20)


@pytest.mark.parametrize("size", [1e-300, 1e-43, 1e-20, 1.0, 1e20, 1e38, 1e300])
@pytest.mark.parametrize("algorithm", ["dense", "count", "search"])
def test_the_size_of_embeddings_does_not_matter(size, algorithm):
    dtype = torch.double if not 1e-40 < size < 1e39 else torch.float
    item = (torch.arange(50, 0, -1, dtype=torch.double) * size / 64).to(dtype).unsqueeze(1)
    truth = torch.stack([torch.zeros(50, dtype=torch.long), torch.arange(50)])
    task = RankingTask(truth, num_users=1, num_items=50)
    ranked = rank((item[:1], item), task, k=40, algorithm=algorithm)
    assert ranked.rank.tolist() == list(range(1, 51))


def test_items_that_are_equal_rank_by_their_id():
    item = torch.ones(1000, 8)
    truth = torch.tensor([[0, 0, 1], [17, 999, 3]])
    task = RankingTask(truth, num_users=2, num_items=1000)
    ranked = same_ranks(torch.ones(2, 8), item, task, k=900)
    assert ranked.rank[:1].tolist() == [18]


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
    ranked = same_ranks(user, item, task, k=20)
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
    ranked = same_ranks(user, item, task, k=20)
    assert ranked.rank[ranked.edge_index[1] == 1003] == 1
    assert searched == [1]
    seen = torch.stack([torch.zeros(250, dtype=torch.long), torch.arange(1000, 1250)])
    task = RankingTask(truth, num_users=3, num_items=6000, seen=seen)
    ranked = same_ranks(user, item, task, k=20)
    assert ranked.rank[ranked.edge_index[1] == 17] == 1
    assert searched == [1, 2]


def test_users_that_cannot_be_proved_are_ranked_by_sorting():
    # No score is positive, so that no threshold is, and the bits cannot be compared.
    item = torch.rand(500, 8, generator=torch.Generator().manual_seed(0))
    task = RankingTask(torch.tensor([[0, 1], [3, 4]]), num_users=2, num_items=500)
    same_ranks(torch.stack([-torch.ones(8), torch.ones(8)]), item, task, k=499)


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
    same_ranks(user, item, task, k)
    assert sum(left) < 30


@pytest.mark.parametrize(
    ("fast", "precision", "k", "expected"),
    [
        (True, "highest", 5, "BoundedSearch"),
        (True, "highest", 50, "BoundedCount"),
        (True, "highest", 100, "BoundedCount"),
        (False, "highest", 5, "BoundedCount"),
        (False, "medium", 5, None),
        (True, "medium", 100, None),
    ],
)
def test_the_choice_is_made_by_what_applies(monkeypatch, fast, precision, k, expected):
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=100)
    embeddings = (torch.rand(1, 4), torch.rand(100, 4))
    used = []
    for search in (BoundedSearch, BoundedCount):
        original = search.ranks

        def note(self, *args, original=original):
            used.append(type(self).__name__)
            return original(self, *args)

        monkeypatch.setattr(search, "ranks", note)
    monkeypatch.setattr(pyg_recmetrics.ranking.algorithms, "has_fast_bfloat16", lambda: fast)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: precision)
    rank(embeddings, task, k=k)
    assert used == [expected] * (expected is not None)
    used.clear()
    rank(torch.rand(100), task, k=5)
    rank(embeddings, task, k=5, algorithm="dense")
    rank(embeddings, task, k=5, keep_items=True)
    assert not used


def test_a_forced_choice_that_does_not_apply_is_an_error():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=100)
    embeddings = (torch.rand(1, 4), torch.rand(100, 4))
    for algorithm in ("search", "count"):
        for recommender, options in (
            (torch.rand(100), {}),
            (embeddings, {"keep_items": True}),
        ):
            with pytest.raises(ValueError, match="'algorithm' can be 'search' or 'count' for"):
                rank(recommender, task, algorithm=algorithm, **options)
    with pytest.raises(ValueError, match="'search' only for a part of the ranking"):
        rank(embeddings, task, full=True, algorithm="search")
    with pytest.raises(ValueError, match=r"\['auto', 'dense', 'count', 'search'\] \(got 'fast'\)"):
        rank(embeddings, task, algorithm="fast")
