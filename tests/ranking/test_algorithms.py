"""All algorithms find the same ranks, and the one that applies is chosen."""

import pytest
import torch
from embeddings import KINDS, rank_by_all_algorithms
from hypothesis import given, settings
from hypothesis import strategies as st

import pyg_recmetrics.ranking.algorithms
from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.kernels.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.bounded_searching import BoundedSearch


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
    rank_by_all_algorithms(user, item, task, k, batch_size)


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
    ranked = rank_by_all_algorithms(torch.ones(2, 8), item, task, k=900)
    assert ranked.rank[:1].tolist() == [18]


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
    with pytest.raises(ValueError, match=r"\['auto', .*'recommend'\] \(got 'fast'\)"):
        rank(embeddings, task, algorithm="fast")
