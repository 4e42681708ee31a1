"""Embeddings, and tables that are too large for the device and pass through it in tiles."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import RankedEdges, RankingTask, evaluate, rank
from pyg_recmetrics.kernels.exact import scores as factors_of_items
from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED
from pyg_recmetrics.kernels.fast import bounded_counting, rounded_items, searching
from pyg_recmetrics.ranking import embeddings as ranked_embeddings
from pyg_recmetrics.ranking.embeddings import EmbeddingRecommender
from tests.support.cases.embeddings import assert_same_ranks
from tests.support.cases.strategies import cases, ranks
from tests.support.references import exact_scores
from tests.support.tools.largest_tensor import LargestTensor


@contextmanager
def in_tiles(size):
    """Makes every table too large to be copied, with tiles of `size` items."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked_embeddings, "MAX_BYTES_OF_ITEMS", 0)
        patch.setattr(ranked_embeddings, "ITEMS_IN_TILE", size)
        patch.setattr(rounded_items, "_MAX_BYTES", 0)
        patch.setattr(factors_of_items, "_MAX_BYTES", 0)
        patch.setattr(rounded_items, "_ITEMS_AT_ONCE", size)
        patch.setattr(searching, "MAX_COLUMNS", searching.width_to_join())
        patch.setattr(bounded_counting, "NUM_SCORES_IN_TILE", 1)
        yield


def ways(full=False, keep_items=False):
    """The algorithms that find ranks of embeddings."""
    return ["dense", *([] if keep_items else ["count"]), *([] if full else ["search"])]


def down_to(k, full):
    """The options that say how deep to rank."""
    return {"full": True} if full else {"k": k}


def factors(case):
    """Embeddings whose inner products are the scores of a case."""
    item = torch.eye(case.num_items)
    return case.score_matrix, item


@pytest.mark.usefixtures("expect_lost_truth")
class TestSameRanks:
    @given(case=cases(), size=st.integers(1, 10), k=st.integers(1, 9), full=st.booleans())
    def test_as_a_naive_ranking(self, case, size, k, full):
        with in_tiles(size):
            options = {"batch_size": 2, "algorithm": "dense", **down_to(k, full)}
            ranked = rank(factors(case), case.task(), **options)
        got = ranks(ranked)
        for user, (ranking, truth) in enumerate(zip(case.rankings, case.truths, strict=True)):
            for item in truth:
                wanted = ranking.index(item) + 1
                if full or wanted <= max(k, len(truth)):
                    assert got[user, item] == wanted

    @given(case=cases(), size=st.integers(1, 10), k=st.integers(1, 9))
    def test_the_lists_are_those_of_a_naive_ranking(self, case, size, k):
        with in_tiles(size):
            ranked = rank(factors(case), case.task(), k=k, keep_items=True, algorithm="dense")
        for ranking, items in zip(case.rankings, ranked.pred_index_mat.tolist(), strict=True):
            kept = ranking[: len(items)]
            assert items == [*kept, *[-1] * (len(items) - len(kept))]

    @given(case=cases(), size=st.integers(1, 10), data=st.data(), own=st.booleans())
    def test_with_candidates(self, case, size, data, own):
        pair = st.tuples(st.integers(0, case.num_users - 1), st.integers(0, case.num_items - 1))
        chosen = [*data.draw(st.lists(pair, max_size=20)), case.truth[0]]
        chosen = torch.tensor(chosen).t()
        try:
            task = case.task(candidates=chosen if own else chosen[1].unique())
        except ValueError:
            return
        for options in ({"full": True}, {"k": 2, "keep_items": True}):
            wanted = rank(factors(case), task, **options)
            with in_tiles(size):
                ranked = rank(factors(case), task, algorithm="dense", **options)
            assert ranked.rank.equal(wanted.rank)
            assert ranked.num_above.equal(wanted.num_above)
            assert ranked.num_tied.equal(wanted.num_tied)

    @given(case=cases(), size=st.integers(1, 10), full=st.booleans(), data=st.data())
    def test_with_biases(self, case, size, full, data):
        bias = st.lists(st.integers(-2, 2), min_size=case.num_items, max_size=case.num_items)
        with_bias = (*factors(case), torch.tensor(data.draw(bias), dtype=torch.float))
        wanted = rank(with_bias, case.task(), **down_to(3, full))
        with in_tiles(size):
            ranked = rank(with_bias, case.task(), algorithm="dense", **down_to(3, full))
        assert ranked.rank.equal(wanted.rank)


def task_of(num_users=40, num_items=300):
    draw = torch.rand(num_users, num_items, generator=torch.Generator().manual_seed(0))
    return RankingTask(
        (draw > 0.95).nonzero().t().contiguous(),
        seen=(draw < 0.1).nonzero().t().contiguous(),
        num_users=num_users,
        num_items=num_items,
    )


def embeddings(dtype=torch.float32, scale=1.0, num_users=40, num_items=300):
    generator = torch.Generator().manual_seed(1)
    user = torch.randn(num_users, 16, generator=generator)
    item = torch.randn(num_items, 16, generator=generator)
    return user.to(dtype) * scale, item.to(dtype) * scale


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_any_precision(size, dtype, full):
    wanted = rank(embeddings(dtype), task_of(), algorithm="dense", **down_to(7, full)).rank
    for algorithm in ways(full):
        with in_tiles(size):
            ranked = rank(embeddings(dtype), task_of(), algorithm=algorithm, **down_to(7, full))
        assert ranked.rank.equal(wanted)


@pytest.mark.parametrize("scale", [2.0**-500, 2.0**500])
@pytest.mark.parametrize("algorithm", [*ways(), "direct"])
def test_any_range(scale, algorithm):
    wanted = rank(embeddings(torch.float64), task_of(), k=7).rank
    with in_tiles(7):
        ranked = rank(embeddings(torch.float64, scale), task_of(), k=7, algorithm=algorithm)
    assert ranked.rank.equal(wanted)


@pytest.mark.parametrize("metrics", [["ndcg@10"], ["ndcg@10", "coverage@5"], ["roc_auc"]])
def test_a_file_that_is_mapped_into_memory(tmp_path, metrics):
    user, item = embeddings()
    wanted = evaluate((user, item), task_of(), metrics)
    item.numpy().tofile(tmp_path / "items")
    from_torch = torch.from_file(str(tmp_path / "items"), size=item.numel()).view_as(item)
    mapped = np.memmap(tmp_path / "items", dtype=np.float32, mode="r+", shape=tuple(item.shape))
    for table in (from_torch, torch.from_numpy(mapped)):
        with in_tiles(7):
            assert evaluate((user, table), task_of(), metrics) == wanted


def test_embeddings_on_the_host_for_a_task_on_a_device(device):
    user, item = embeddings()
    wanted = rank((user, item), task_of(), full=True).rank
    task = task_of().to(device)
    for pair in ((user, item), (user.to(device), item), (user, item.to(device))):
        assert rank(pair, task, full=True).rank.cpu().equal(wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "algorithm"),
    [
        (options, algorithm)
        for options in ({"k": 5}, {"full": True}, {"k": 5, "keep_items": True})
        for algorithm in ways("full" in options, "keep_items" in options)
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("has_bias", [False, True])
def test_there_is_never_a_copy_of_a_large_table(options, algorithm, dtype, has_bias):
    user, item = (x.to(dtype) for x in embeddings(num_users=30, num_items=5000))
    task = RankingTask(torch.arange(30).repeat(2, 1), num_users=30, num_items=5000)
    given = (user, item, item[:, 0]) if has_bias else (user, item)
    with in_tiles(50), LargestTensor() as largest:
        rank(given, task, batch_size=10, algorithm=algorithm, **options)
    assert 0 < largest.numel <= 15_000 < item.numel() // 5


def test_small_tables_go_through_at_once():
    parts = (*embeddings(), None, torch.device("cpu"))
    assert EmbeddingRecommender(*parts).items_at_once == 300
    with in_tiles(7):
        assert EmbeddingRecommender(*parts).items_at_once == 7


@pytest.mark.parametrize("size", [1000, 3])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e15])
@pytest.mark.parametrize("algorithm", ways(full=True))
def test_biases_are_added_whatever_their_size(size, scale, algorithm):
    generator = torch.Generator().manual_seed(0)
    user, item = (torch.randn(n, 4, generator=generator, dtype=torch.double) for n in (5, 40))
    bias = scale * torch.randn(40, generator=generator, dtype=torch.double)
    truth = torch.stack([torch.arange(5).repeat(8), torch.arange(40)])
    task = RankingTask(truth, num_users=5, num_items=40)
    scores = user @ item.T + bias
    with in_tiles(size):
        ranked = rank((user, item, bias), task, full=True, algorithm=algorithm)
    for (u, i), found in zip(ranked.edge_label_index.T.tolist(), ranked.rank.tolist(), strict=True):
        tolerance = 2.0**-22 * scores[u].abs().max()
        highest = 1 + int((scores[u] > scores[u, i] + tolerance).sum())
        lowest = int((scores[u] >= scores[u, i] - tolerance).sum())
        assert highest <= found <= lowest


@pytest.mark.parametrize("algorithm", ["count", "search", "direct"])
def test_biased_ranks_are_proved_as_those_of_sorting(algorithm):
    generator = torch.Generator().manual_seed(1)
    user, item = (torch.randn(n, 8, generator=generator) for n in (30, 500))
    bias = torch.randn(500, generator=generator)
    truth = torch.stack([torch.arange(30).repeat(6), torch.arange(180)])
    task = RankingTask(truth, num_users=30, num_items=500)
    proved, sorted_ = (
        rank((user, item, bias), task, k=20, algorithm=a) for a in (algorithm, "dense")
    )
    assert torch.equal(proved.rank, sorted_.rank)
    assert not torch.equal(proved.rank, rank((user, item), task, k=20).rank)


def test_biases_beyond_single_precision_are_refused():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=3)
    bias = torch.tensor([0.0, 1.0, torch.finfo(torch.float64).min], dtype=torch.double)
    with pytest.raises(ValueError, match="scores in the range of single precision"):
        rank((torch.ones(1, 2), torch.ones(3, 2), bias), task)


def test_a_chunk_without_truth_is_counted():
    task = RankingTask(torch.tensor([[0], [3]]), num_users=40, num_items=50)
    parts = (torch.randn(40, 8), torch.randn(50, 8))
    ranked = rank(parts, task, full=True, keep_items=5, batch_size=1)
    assert torch.equal(ranked.rank, rank(parts, task, full=True, algorithm="dense").rank)


def test_inner_products_do_not_depend_on_the_chunk():
    # Matrix products of different shapes round differently; with these items it would show.
    generator = torch.Generator().manual_seed(0)
    item = torch.randn(1, 64, generator=generator).repeat(50, 1)
    item *= 1 + 1e-7 * torch.randint(-1, 2, (50, 64), generator=generator)
    user = torch.randn(40, 64, generator=generator)
    truth = torch.randint(40, (2, 200), generator=generator)
    task = RankingTask(truth, num_users=40, num_items=50)
    whole = rank((user, item), task, full=True)
    for batch_size in (1, 2, 3, 17):
        assert torch.equal(
            rank((user, item), task, full=True, batch_size=batch_size).rank, whole.rank
        )
    exact = (user.double() @ item.double().t()).float()
    assert torch.equal(RankedEdges.from_scores(exact, truth).rank, whole.rank)


def task_of_all_pairs(num_users, num_items):
    edges = torch.cartesian_prod(torch.arange(num_users), torch.arange(num_items)).t()
    return RankingTask(edges, num_users=num_users, num_items=num_items)


@pytest.mark.parametrize("kind", exact_scores.KINDS)
@pytest.mark.parametrize(
    ("dtype", "dim"), [(torch.float32, 9), (torch.float64, 5), (torch.bfloat16, 40)]
)
def test_ranks_are_those_of_exact_scores_by_every_way_to_find_them(kind, dtype, dim):
    user, item = exact_scores.draw(kind, 3, 30, dim, dtype, seed=1)
    task = task_of_all_pairs(3, 30)
    found = [
        rank((user, item), task, full=True, algorithm=algorithm, batch_size=size)
        for algorithm in ("dense", "count")
        for size in (None, 1, 2)
    ]
    for size in (4, 1000):
        with in_tiles(size):
            found += [rank((user, item), task, full=True, algorithm=a) for a in ways(full=True)]
    found.append(rank((user, item), task, full=True, keep_items=30))
    for ranked in found:
        assert ranked.rank.tolist() == exact_scores.exact_ranks(user, item, ranked.edge_label_index)
    few = RankingTask(torch.tensor([[0, 0, 1, 2], [0, 7, 3, 20]]), num_users=3, num_items=30)
    for ranked in (
        rank((user, item), few, k=20, algorithm=a) for a in ("search", "direct", "dense")
    ):
        wanted = exact_scores.exact_ranks(user, item, ranked.edge_label_index)
        assert ranked.rank.tolist() == [place if place <= 20 else NOT_RETRIEVED for place in wanted]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 1e8, 1e-8])
@pytest.mark.parametrize("algorithm", ["dense", "count"])
def test_items_of_very_different_size_are_told_apart(dtype, scale, algorithm):
    item = scale * torch.tensor([[1e30], [1e-20], [2e-20], [-1e30], [-1e-20], [-2e-20]]).to(dtype)
    user = torch.ones(1, 1, dtype=dtype)
    for bias in ((), (torch.zeros(6, dtype=dtype),)):
        ranked = rank((user, item, *bias), task_of_all_pairs(1, 6), full=True, algorithm=algorithm)
        assert ranked.edge_label_index[1, ranked.rank.argsort()].tolist() == [0, 2, 1, 4, 5, 3]


def test_what_single_precision_cannot_tell_apart_is_equal():
    item = torch.tensor([[1e-300], [2e-300], [1e300], [0.0]], dtype=torch.double)
    user = torch.ones(1, 1, dtype=torch.double)
    for algorithm in ("dense", "count"):
        ranked = rank((user, item), task_of_all_pairs(1, 4), full=True, algorithm=algorithm)
        assert ranked.edge_label_index[1, ranked.rank.argsort()].tolist() == [2, 0, 1, 3]


def test_memory_is_bounded_where_every_score_needs_a_second_look():
    user = torch.ones(50, 64)
    item = torch.randn(3000, 64, generator=torch.Generator().manual_seed(0))
    item[:, 1::2] = -item[:, ::2]
    item[:, 0] *= 1 + 2.0**-23
    with LargestTensor() as largest:
        rank((user, item), task_of(50, 3000), full=True, algorithm="dense")
    assert largest.numel <= 2**20


@pytest.mark.parametrize("full", [False, True])
def test_the_default_device_may_be_another(full):
    pair, task = embeddings(), task_of()
    wanted = rank(pair, task, algorithm="dense", **down_to(7, full)).rank
    with torch.device("meta"):
        assert rank(pair, task, algorithm="dense", **down_to(7, full)).rank.equal(wanted)
        for algorithm in ways(full):
            with in_tiles(7):
                ranked = rank(pair, task, algorithm=algorithm, **down_to(7, full))
            assert ranked.rank.equal(wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
@pytest.mark.parametrize("algorithm", [*ways(), "direct"])
def test_the_default_dtype_may_be_another(dtype, algorithm):
    pair, task = embeddings(), task_of()
    wanted = rank(pair, task, k=7, algorithm="dense")
    torch.set_default_dtype(dtype)
    try:
        ranked = rank(pair, task, k=7, algorithm=algorithm)
    finally:
        torch.set_default_dtype(torch.float32)
    assert_same_ranks(ranked, wanted)
