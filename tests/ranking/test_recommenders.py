"""What all recommenders inherit, and those that only know their scores, against plain Python."""

import math
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics import EvaluationResult, PairScorer, RankedEdges, RankingTask, evaluate, rank
from pyg_recmetrics.kernels.exact import scores as factors_of_items
from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED
from pyg_recmetrics.kernels.fast import bounded_counting, rounded_items, searching
from pyg_recmetrics.ranking import recommenders as ranked_embeddings
from pyg_recmetrics.ranking.recommenders import (
    EmbeddingRecommender,
    GivenScoresRecommender,
    Recommender,
    ScoreMask,
    ScoreRecommender,
)
from pyg_recmetrics.ranking.schedule import Schedule
from tests.support.cases.embeddings import assert_same_ranks
from tests.support.cases.strategies import cases, ranks
from tests.support.references import exact_scores
from tests.support.tools.largest_tensor import LargestTensor


class ScoreTable(GivenScoresRecommender):
    """Knows the scores of everybody, and the users it was asked about."""

    def __init__(self, table, task):
        super().__init__(task)
        self.table = table
        self.asked = []

    def given(self, users):
        self.asked.append(users.tolist())
        return self.table, users


def chunks_of(task, depth, num_rows):
    return Schedule(task, task.users, depth).chunks(lambda depth: num_rows)


@pytest.mark.usefixtures("expect_lost_truth")
class TestGivenScoresRecommender:
    @given(case=cases(), k=st.integers(1, 9), num_rows=st.integers(1, 7))
    def test_lists_are_those_of_a_sorted_list(self, case, k, num_rows):
        task = case.task()
        for chunk in chunks_of(task, 1, num_rows):
            recommender = ScoreTable(case.score_matrix, task)
            length = min(k, case.num_items)
            lists = recommender.best(chunk, length).item
            for user, items in zip(chunk.users.tolist(), lists.tolist(), strict=True):
                assert items == (case.rankings[user] + [-1] * length)[:length]
            assert recommender.asked == [chunk.users.tolist()]

    @given(case=cases(), depth=st.integers(1, 9), num_rows=st.integers(1, 7))
    def test_ranks_are_positions_in_a_sorted_list(self, case, depth, num_rows):
        task = case.task()
        for chunk in chunks_of(task, depth, num_rows):
            ranks = ScoreTable(case.score_matrix, task).ranks(chunk)
            users, items = task.truth[:, chunk.truth.index].tolist()
            for user, item, *rank_ in zip(users, items, *(x.tolist() for x in ranks), strict=True):
                others = [case.scores[user][other] for other in case.rankings[user]]
                own = case.scores[user][item]
                assert rank_ == [
                    case.rankings[user].index(item) + 1,
                    sum(score > own for score in others),
                    others.count(own) - 1,
                ]


@pytest.mark.usefixtures("expect_lost_truth")
@pytest.mark.parametrize("kind", [Recommender, ScoreRecommender, GivenScoresRecommender])
def test_what_is_missing_has_to_be_added(kind):
    with pytest.raises(TypeError, match="abstract"):
        kind()


@pytest.mark.usefixtures("expect_lost_truth")
def test_unless_it_says_otherwise_nothing_is_limited_or_wrong():
    task = RankingTask([[0], [0]], num_users=1, num_items=1)
    recommender = ScoreTable(torch.zeros(1, 1), task)
    assert recommender.items_at_once is None
    assert recommender.max_depth is None
    assert recommender.check() is None


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
        for ranking, items in zip(case.rankings, ranked.lists.to_matrix().tolist(), strict=True):
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
@pytest.mark.parametrize("algorithm", ways())
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


@pytest.mark.parametrize("algorithm", ["count", "search"])
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
    assert torch.equal(rank(exact, truth, full=True).rank, whole.rank)


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
    for ranked in (rank((user, item), few, k=20, algorithm=a) for a in ("search", "dense")):
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
@pytest.mark.parametrize("algorithm", ways())
def test_the_default_dtype_may_be_another(dtype, algorithm):
    pair, task = embeddings(), task_of()
    wanted = rank(pair, task, k=7, algorithm="dense")
    torch.set_default_dtype(dtype)
    try:
        ranked = rank(pair, task, k=7, algorithm=algorithm)
    finally:
        torch.set_default_dtype(torch.float32)
    assert_same_ranks(ranked, wanted)


NUM_USERS, NUM_ITEMS = 12, 40


def draw(seed):
    """Scores with ties, and edges: truth, seen and candidates of each user."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(9, (NUM_USERS, NUM_ITEMS), generator=generator).float()
    masks = (torch.rand(3, NUM_USERS, NUM_ITEMS, generator=generator) < 0.2).unbind()
    truth, seen, own = (mask.nonzero().t() for mask in (masks[0] & ~masks[1], *masks[1:]))
    return scores, truth, seen, torch.cat([own, truth], dim=1)


class Recorder:
    """A scorer that records the pairs and the sizes of the batches that it is asked for."""

    def __init__(self, scores):
        self.scores, self.pairs, self.sizes = scores, [], []

    def __call__(self, user, item):
        self.pairs += zip(user.tolist(), item.tolist(), strict=True)
        self.sizes.append(user.numel())
        score = self.scores[user, item]
        user.fill_(-1)  # what it is given is its own
        return score


@pytest.mark.parametrize("kind", ["all", "shared", "own"])
@pytest.mark.parametrize(
    "options",
    [{}, {"k": 3}, {"full": True}, {"keep_items": 5}, {"full": True, "keep_items": 4}],
)
@pytest.mark.parametrize("batch_size", [1, 7, 2**16])
def test_exactly_the_candidates_are_asked_for_once(kind, options, batch_size):
    scores, truth, seen, own = draw(seed=1)
    candidates = {"all": None, "shared": torch.arange(0, NUM_ITEMS, 3), "own": own}[kind]
    truth = truth[:, truth[1] % 3 == 0] if kind == "shared" else truth
    users = torch.tensor([0, 1, 2, 5, 7, 11])
    task = RankingTask(
        truth,
        num_users=NUM_USERS,
        num_items=NUM_ITEMS,
        seen=seen,
        candidates=candidates,
        users=users,
    )
    recorder = Recorder(scores)
    scorer = PairScorer(recorder, batch_size=batch_size)
    ranked = rank(scorer, task, ties="mean", batch_size=4, **options)
    wanted = rank(scores, task, ties="mean", **options)
    assert torch.equal(ranked.rank, wanted.rank)
    assert torch.equal(ranked.edge_label_index, wanted.edge_label_index)
    assert torch.equal(ranked.num_tied, wanted.num_tied)
    if "keep_items" in options:
        assert torch.equal(ranked.lists.to_matrix(), wanted.lists.to_matrix())
    own_of_user = {user: set(range(NUM_ITEMS)) for user in users.tolist()}
    if kind == "shared":
        own_of_user = {user: set(range(0, NUM_ITEMS, 3)) for user in users.tolist()}
    if kind == "own":
        own_of_user = {
            user: {item for other, item in own.t().tolist() if other == user}
            for user in users.tolist()
        }
    asked = [
        (user, item)
        for user, items in own_of_user.items()
        for item in items
        if [user, item] not in seen.t().tolist()
        and ("keep_items" in options or user in truth[0].tolist())
    ]
    assert sorted(recorder.pairs) == sorted(asked)
    assert max(recorder.sizes) <= batch_size


def test_a_function_may_return_the_same_buffer_every_time():
    scores, truth, *_ = draw(seed=4)
    task = RankingTask(truth, num_users=NUM_USERS, num_items=NUM_ITEMS)
    buffers = torch.empty(7), np.empty(7, dtype=np.float32)
    for buffer in buffers:

        def into_buffer(user, item, buffer=buffer):
            buffer[: len(user)] = scores[user, item]
            return buffer[: len(user)]

        ranked = rank(PairScorer(into_buffer, batch_size=7), task, full=True)
        assert torch.equal(ranked.rank, rank(scores, task, full=True).rank)


@pytest.mark.usefixtures("expect_ties")
def test_all_forms_of_evaluation_take_it():
    scores, truth, seen, _ = draw(seed=2)
    task = RankingTask(truth, num_users=NUM_USERS, num_items=NUM_ITEMS, seen=seen)
    names = ["recall@5", "ndcg@10", "roc_auc", "coverage@5"]
    scorer = PairScorer(lambda user, item: scores[user, item].numpy(), batch_size=torch.tensor(50))
    assert evaluate(scorer, task, names).to_dict() == evaluate(scores, task, names).to_dict()


class Head(torch.nn.Module):
    """An MLP on pairs, as rankers after retrieval have."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(NUM_USERS + NUM_ITEMS, 4)
        self.mlp = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(8, 1))
        self.modes = []

    def forward(self, user, item):
        self.modes.append((self.training, torch.is_grad_enabled()))
        pair = self.embedding(user), self.embedding(item + NUM_USERS)
        return self.mlp(torch.cat(pair, dim=1)).squeeze(1)


@pytest.mark.parametrize("of", [lambda head: head, lambda head: head.forward])
def test_a_module_is_evaluated_without_dropout_and_gradients(of):
    _, truth, *_ = draw(seed=3)
    task = RankingTask(truth, num_users=NUM_USERS, num_items=NUM_ITEMS)
    head = Head().train()
    first, second = (rank(PairScorer(of(head)), task, k=5) for _ in range(2))
    assert torch.equal(first.rank, second.rank)
    assert set(head.modes) == {(False, False)}
    assert head.training
    assert head.mlp.training


class TestErrors:
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=3)

    @pytest.mark.parametrize(
        ("function", "error", "message"),
        [
            (lambda user, item: torch.rand(2, 3), ValueError, r"\[num_pairs\] of shape \[3\]"),
            (lambda user, item: item, ValueError, "floating-point numbers .*int64"),
            (lambda user, item: None, TypeError, r"needs to be a tensor, .*\(got NoneType\)"),
            (lambda user: user.float(), TypeError, "positional argument"),
        ],
    )
    def test_wrong_scores_are_named(self, function, error, message):
        with pytest.raises(error, match=message) as raised:
            rank(PairScorer(function), self.task)
        told = "".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
        assert "(while 1 users were ranked: 0)" in told

    def test_wrong_arguments_are_named(self):
        with pytest.raises(TypeError, match=r"'function' needs to be a function .*\(got int\)"):
            PairScorer(3)
        with pytest.raises(ValueError, match="'batch_size' needs to be a positive integer"):
            PairScorer(print, batch_size=0)


MASKED = -torch.inf
SCORES = torch.tensor([[0.9, MASKED, 0.5, 0.1], [MASKED, 0.2, MASKED, 0.3]])
TRUTH = torch.tensor([[0, 0, 1, 1], [1, 2, 0, 1]])  # two of these edges are masked
TASK = RankingTask(TRUTH, num_users=2, num_items=4)


def forms(scores):
    yield scores
    yield scores.numpy()
    yield scores.double()
    yield lambda users: scores[users]
    yield PairScorer(lambda user, item: scores[user, item])


class TestMaskedItems:
    @pytest.mark.parametrize("form", range(5))
    @pytest.mark.parametrize("options", [{"k": 1}, {"k": 4}, {"full": True}, {"batch_size": 1}])
    def test_they_are_never_retrieved(self, form, options):
        recommender = list(forms(SCORES))[form]
        with pytest.warns(
            UserWarning, match="2 of 4 ground-truth edges have a score of '-inf': th"
        ):
            ranked = rank(recommender, TASK, keep_items=True, **options)
        found = {
            (int(user), int(item)): int(place) if place < 2**62 else None
            for user, item, place in zip(*ranked.edge_label_index, ranked.rank, strict=True)
        }
        assert found == {(0, 1): None, (0, 2): 2, (1, 0): None, (1, 1): 2}
        assert ranked.num_candidates.tolist() == [3, 2]
        width = ranked.lists.to_matrix().size(1)
        assert ranked.lists.to_matrix().tolist() == [[0, 2, 3, -1][:width], [3, 1, -1, -1][:width]]
        assert ranked.degree.tolist() == [2, 2]  # masked truth is missed, and not forgotten

    def test_so_in_pairs_of_others(self):
        user = torch.cartesian_prod(torch.arange(2), torch.arange(4))[:, 0]
        target = torch.zeros(2, 4).index_put_(tuple(TRUTH), torch.ones(4))
        ranked = RankedEdges.from_pairs(SCORES, target, user)
        assert (ranked.rank[[0, 2]] == 2).all()
        assert not ranked.is_hit(None)[[1, 3]].any()
        assert ranked.num_candidates.tolist() == [3, 2]

    def test_masked_truth_is_no_irrelevant_candidate_less(self):
        # User 0 has the candidates 0, 2, 3, of which 2 is relevant; user 1 has 1 (relevant) and 3.
        with pytest.warns(UserWarning, match="count as missed"):
            result = evaluate(SCORES, TASK, ["fall_out@1", "fall_out@2", "fall_out@9"])
        assert result.per_user["fall_out@1"].tolist() == [1 / 2, 1]
        assert result.per_user["fall_out@2"].tolist() == [1 / 2, 1]
        assert result.per_user["fall_out@9"].tolist() == [1, 1]

    def test_users_without_truth_have_no_masked_candidates_in_their_lists(self):
        task = RankingTask(TRUTH[:, 1:2], num_users=2, num_items=4)
        ranked = [rank(SCORES, task, keep_items=keep_items) for keep_items in (False, True)]
        assert [each.num_candidates.tolist() for each in ranked] == [[3, 4], [3, 2]]

    def test_one_score_per_item(self):
        task = RankingTask(torch.tensor([[0, 1], [2, 3]]), num_users=2, num_items=4)
        with pytest.warns(UserWarning, match="1 of 2 ground-truth edges have a score"):
            ranked = rank(torch.tensor([0.1, MASKED, 0.3, MASKED]), task, full=True)
        assert ranked.rank[0] == 1
        assert not ranked.is_hit(None)[1]
        assert ranked.num_candidates.tolist() == [2, 2]

    def test_masked_seen_items_rank_as_if_they_were_excluded(self):
        """What PyG's own example does by hand, and `seen` does for everybody."""
        generator = torch.Generator().manual_seed(0)
        scores = torch.rand(20, 30, generator=generator)
        is_seen = torch.rand(20, 30, generator=generator) < 0.3
        is_true = (torch.rand(20, 30, generator=generator) < 0.2) & ~is_seen
        truth, seen = (mask.nonzero().t() for mask in (is_true, is_seen))
        names = ["recall@5", "ndcg@5", "r_precision", "roc_auc", "precision(normalizer=length)@40"]
        wanted = evaluate(scores, RankingTask(truth, num_users=20, num_items=30, seen=seen), names)
        task = RankingTask(truth, num_users=20, num_items=30)
        for recommender in forms(scores.masked_fill(is_seen, MASKED)):
            result = evaluate(recommender, task, names)
            assert result.to_dict() == pytest.approx(wanted.to_dict(), abs=1e-12)

    def test_users_who_are_not_ranked_may_have_no_score(self):
        task = RankingTask(TRUTH[:, 1:2], num_users=2, num_items=4)
        scores = SCORES.clone()
        scores[1] = MASKED
        assert rank(scores, task, full=True).rank.tolist() == [2]

    @pytest.mark.parametrize("metric", ["recall@2", "coverage@2", "mrr"])
    def test_users_without_truth_may_have_no_score(self, metric):
        scores = torch.tensor([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [-torch.inf] * 3])
        task = RankingTask([[0, 1], [0, 0]], num_users=3, num_items=3)
        for recommender in (scores, lambda users: scores[users]):
            result = evaluate(recommender, task, [metric], keep_items=True)
            assert set(result.ranked.lists.to_matrix()[2].tolist()) <= {-1}
            values = {"recall@2": 0.5, "coverage@2": 1.0, "mrr": 2 / 3}
            assert result[metric] == pytest.approx(values[metric])

    @pytest.mark.parametrize("algorithm", ["search", "dense"])
    def test_a_user_whose_truth_is_no_candidate_counts_as_any_other(self, algorithm):
        scores, candidates = torch.rand(2, 200), torch.arange(199)
        scores[0, 7:9] = MASKED
        task = RankingTask(
            [[0, 1], [199, 3]], num_users=2, num_items=200, candidates=candidates, missing="count"
        )
        for recommender in (scores, lambda users: scores[users]):
            ranked = rank(recommender, task, algorithm=algorithm)
            assert ranked.num_candidates.tolist() == [197, 199]
        scores[0, 7] = torch.inf
        for recommender in (scores, lambda users: scores[users]):
            with pytest.raises(ValueError, match="finite"):
                rank(recommender, task, algorithm=algorithm)

    def test_users_without_candidates_need_no_score(self):
        seen = torch.tensor([[1, 1, 1, 1], [0, 1, 2, 3]])
        task = RankingTask(TRUTH[:, 1:2], num_users=2, num_items=4, seen=seen)
        scores = SCORES.clone()
        scores[1] = MASKED
        for recommender in forms(scores):
            ranked = rank(recommender, task, keep_items=True)
            assert ranked.lists.to_matrix()[1].eq(-1).all()


class TestErrorsOfScoreMask:
    @pytest.mark.parametrize("wrong", [math.nan, math.inf])
    @pytest.mark.parametrize("form", range(5))
    def test_what_is_neither_finite_nor_masked(self, wrong, form):
        scores = SCORES.clone()
        scores[1, 1] = wrong
        message = r"finite, or '-inf' for items that must not be retrieved \(got NaN or 'inf'\)"
        with pytest.raises(ValueError, match=message):
            rank(list(forms(scores))[form], TASK)

    @pytest.mark.parametrize("wrong", [math.nan, math.inf])
    @pytest.mark.parametrize("form", range(4))
    @pytest.mark.parametrize("item", [1, 5, 99])
    @pytest.mark.parametrize("options", [{}, {"keep_items": True}, {"batch_size": 1}])
    def test_a_search_comes_across_them(self, wrong, form, item, options):
        scores = torch.rand(3, 100, generator=torch.Generator().manual_seed(0))
        scores[1, item] = wrong  # item 1 is all that is relevant
        task = RankingTask(torch.tensor([[0, 1, 2], [0, 1, 2]]), num_users=3, num_items=100)
        with pytest.raises(ValueError, match=r"finite, or '-inf' .*\(got NaN or 'inf'\)"):
            rank(list(forms(scores))[form], task, k=5, algorithm="search", **options)

    @pytest.mark.parametrize("form", range(5))
    def test_a_row_without_a_score(self, form):
        scores = SCORES.clone()
        scores[1] = MASKED
        with pytest.raises(ValueError, match=r"got only '-inf' for 1 users, such as user 1\)"):
            rank(list(forms(scores))[form], TASK)
        with pytest.raises(
            ValueError, match="'preds' needs to hold a finite score for every query"
        ):
            RankedEdges.from_pairs(scores[1], torch.ones(4), torch.zeros(4).long())

    def test_metrics_of_the_whole_ranking_need_a_rank_of_masked_truth(self):
        with (
            pytest.warns(UserWarning, match="count as missed"),
            pytest.raises(ValueError, match="by scores that are finite for relevant items"),
        ):
            evaluate(SCORES, TASK, "roc_auc")


def test_results_say_so_and_survive_a_file(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate(SCORES, TASK, ["recall@2", "r_precision"], keep_items=True)
    assert result["recall@2"] == 0.5
    assert "except 3 pairs of a user and an item with a score of -inf" in " ".join(
        result.recipe().split()
    )
    result.save(tmp_path / "result.npz")
    loaded = EvaluationResult.load(tmp_path / "result.npz")
    assert loaded.to_dict() == result.to_dict()
    assert loaded.recipe() == result.recipe()
    unmasked = evaluate(torch.rand(2, 4), TASK, "recall@2")
    assert "-inf" not in unmasked.recipe()


def test_a_fitted_model_may_leave_a_user_without_a_candidate():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=3)
    mask = ScoreMask(task)
    mask.num_candidates.zero_()
    with pytest.raises(ValueError, match="every user a candidate with a finite score"):
        mask.check()
    mask.allows_empty = True
    mask.check()


TRUTH_OF_SCORES_AND_LISTS = torch.tensor([[0, 0, 1], [2, 1, 0]])
TASK_OF_SCORES_AND_LISTS = RankingTask(TRUTH_OF_SCORES_AND_LISTS, num_users=2, num_items=3)


def test_a_function_may_overwrite_the_users_that_it_is_given():
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])

    def overwriting(users):
        result = scores[users]
        users.zero_()
        return result

    for batch_size in (None, 1):
        ranked = rank(overwriting, TASK_OF_SCORES_AND_LISTS, batch_size=batch_size, keep_items=True)
        wanted = rank(scores, TASK_OF_SCORES_AND_LISTS, keep_items=True)
        assert torch.equal(ranked.rank, wanted.rank)
        assert torch.equal(ranked.lists.to_matrix(), wanted.lists.to_matrix())


DTYPES = [torch.half, torch.bfloat16, torch.float, torch.double]


@settings(max_examples=100)
@given(
    data=st.data(),
    seed=st.integers(0, 2**30),
    num_items=st.integers(20, 600),
    num_levels=st.sampled_from([1, 5, 10**6]),
    dtype=st.sampled_from(DTYPES),
    form=st.sampled_from(["matrix", "function", "one score per item"]),
)
@pytest.mark.filterwarnings("ignore:.*have a score of '-inf'")
@pytest.mark.filterwarnings("ignore:.*taken out of the truth")
def test_a_search_of_given_scores_finds_what_sorting_does(
    data, seed, num_items, num_levels, dtype, form
):
    generator = torch.Generator().manual_seed(seed)
    shape = (5, num_items)
    scores = (torch.randint(-num_levels, num_levels, shape, generator=generator) / 64).to(dtype)
    share_masked = data.draw(st.sampled_from([0, 0.1, 0.9]))
    is_masked = torch.rand(shape, generator=generator) < share_masked
    is_masked[:, 0] = False
    scores.masked_fill_(is_masked, -torch.inf)
    recommender = {
        "matrix": scores,
        "function": lambda users: scores[users],
        "one score per item": scores[0],
    }[form]
    candidates = torch.arange(0, num_items, data.draw(st.sampled_from([1, 2, 7])))
    pairs = [torch.randint(n, (30,), generator=generator) for n in shape]
    task = RankingTask(
        torch.tensor([[0, 0, 1, 3], [0, 14, 0, 7]]),  # users 2 and 4 have no truth
        num_users=5,
        num_items=num_items,
        seen=torch.stack([pairs[0], pairs[1].clamp(min=1)]),
        candidates=data.draw(st.sampled_from([None, candidates])),
    )
    k = data.draw(st.integers(1, 10) | st.integers(1, num_items - 1))
    options = {"k": k, "keep_items": data.draw(st.booleans())}
    dense = rank(recommender, task, algorithm="dense", **options)
    batch_size = data.draw(st.sampled_from([None, 1, 2]))
    ranked = rank(recommender, task, algorithm="search", batch_size=batch_size, **options)
    assert_same_ranks(ranked, dense)
    assert torch.equal(ranked.num_candidates, dense.num_candidates)
    if options["keep_items"]:
        assert torch.equal(ranked.lists.to_matrix(), dense.lists.to_matrix())


@pytest.mark.parametrize("algorithm", ["dense", "search"])
@pytest.mark.parametrize("options", [{}, {"keep_items": True}, {"batch_size": 2}])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_given_scores_are_never_written_to(algorithm, options, dtype, tmp_path):
    generator = torch.Generator().manual_seed(0)
    truth, seen = (torch.randint(30, (2, 60), generator=generator) for _ in range(2))
    task = RankingTask(
        truth[:, truth[1] < 10], num_users=30, num_items=400, seen=seen[:, seen[1] >= 10]
    )
    table = torch.randn(30, 400, generator=generator).numpy().astype(dtype)
    before = table.copy()
    whole = torch.from_numpy(table)
    for recommender in (table, whole, whole[0]):
        rank(recommender, task, k=7, algorithm=algorithm, **options)
    options = options | {"batch_size": 1}
    rank(lambda users: whole[users[0] :][:1], task, k=7, algorithm=algorithm, **options)
    assert np.array_equal(table, before)
    # To write to a file that is mapped for reading would end the process.
    table.tofile(tmp_path / "scores")
    mapped = np.memmap(tmp_path / "scores", dtype=dtype, mode="r", shape=table.shape)
    ranked = rank(mapped, task, k=7, algorithm=algorithm, **options)
    assert_same_ranks(ranked, rank(table, task, k=7, algorithm="dense"))


def test_a_given_matrix_is_not_copied(monkeypatch):
    monkeypatch.setattr(searching, "NUM_VALUES", 2048)
    scores = torch.rand(50, 2000, generator=torch.Generator().manual_seed(0))
    task = RankingTask(torch.arange(50).repeat(2, 1), num_users=50, num_items=2000)
    for options in ({}, {"keep_items": True}):
        with LargestTensor() as largest:
            rank(scores, task, k=5, algorithm="search", **options)
        assert 0 < largest.numel < scores.numel() // 10


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_precisions_are_taken(dtype):
    scores = torch.tensor([[0, 2, 1], [2, 0, 1]], dtype=dtype)
    for recommender in (scores, lambda users: scores[users], (scores, torch.eye(3, dtype=dtype))):
        assert rank(recommender, TASK_OF_SCORES_AND_LISTS).rank.tolist() == [1, 2, 1]


WRONG_SCORES = [
    (torch.rand(2, 3).to_sparse(), r"dense tensor \(got torch.sparse_coo\)"),
    (torch.rand(2, 3).to(torch.float8_e4m3fn), r"16 to 64 bits \(got torch.float8_e4m3fn\)"),
    (torch.rand(2, 3).to(torch.float8_e5m2), r"16 to 64 bits \(got torch.float8_e5m2\)"),
    (torch.rand(2, 3, dtype=torch.complex64), "torch.complex64"),
    (torch.rand(2, 3) > 0.5, "torch.bool"),
    (torch.tensor(0.5), r"shape \[2, 3\] \(got \[\]\)"),
    (torch.empty(0, 0), r"shape \[2, 3\] \(got \[0, 0\]\)"),
    (torch.rand(2, 3, 1), r"shape \[2, 3\] \(got \[2, 3, 1\]\)"),
]


@pytest.mark.parametrize(("scores", "message"), WRONG_SCORES)
def test_wrong_scores_are_named(scores, message):
    with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
        rank(scores, TASK_OF_SCORES_AND_LISTS)
    with pytest.raises(ValueError, match=rf"'recommender\(\)' needs to .*{message}"):
        rank(lambda users: scores, TASK_OF_SCORES_AND_LISTS)


@pytest.mark.parametrize(("part", "message"), WRONG_SCORES[:5])
def test_wrong_embeddings_are_named(part, message):
    for recommender in ((part, torch.rand(3, 3)), (torch.rand(2, 2), part.transpose(0, 1))):
        with pytest.raises(ValueError, match="'recommender' needs to "):
            rank(recommender, TASK_OF_SCORES_AND_LISTS)
    with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
        rank((part, torch.rand(3, 3)), TASK_OF_SCORES_AND_LISTS)


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        ((torch.empty(2, 0), torch.empty(3, 0)), r"one dimension or more \(got 0\)"),
        ((torch.empty(2, 0), torch.empty(3, 0), torch.rand(3)), r"one dimension or more"),
        ((torch.rand(()), torch.rand(3, 3)), r"user embeddings of shape"),
        (torch.empty(2, 0).long(), r"item ids of shape \[2, K\] \(got \[2, 0\]\)"),
        (torch.tensor(3), r"item ids of shape \[2, K\] \(got \[\]\)"),
        (torch.empty(0), r"one score per item of shape \[3\] \(got \[0\]\)"),
        (torch.zeros(2, 3).long().to_sparse(), r"dense tensor \(got torch.sparse_coo\)"),
    ],
)
def test_what_is_empty_is_named(recommender, message):
    with pytest.raises(ValueError, match=f"'recommender' needs to .*{message}"):
        rank(recommender, TASK_OF_SCORES_AND_LISTS)


class TestIntegers:
    task = RankingTask([[0, 0, 1], [2, 3, 0]], num_users=2, num_items=4)

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.long])
    @pytest.mark.parametrize("as_array", [torch.Tensor.clone, torch.Tensor.numpy])
    def test_scores_are_no_lists(self, dtype, as_array):
        counts = torch.tensor([[3, 2, 1, 0], [0, 1, 0, 3]], dtype=dtype)
        with pytest.raises(ValueError, match=r"write evaluate\(recommender.float\(\).*\[:, :20\]"):
            rank(as_array(counts), self.task)
        assert rank(counts.float(), self.task).rank.tolist()

    def test_one_user_of_many_tells_that_they_are_scores(self):
        scores = torch.rand(700_000, 7).argsort()
        task = RankingTask([[0], [1]], num_users=700_000, num_items=7)
        with pytest.warns(UserWarning, match="holds every item once for every user"):
            rank(scores, task)
        scores[650_000, 0] = scores[650_000, 1]
        with pytest.raises(ValueError, match="some repeat in a row"):
            rank(scores, task)

    @pytest.mark.parametrize(
        "lists",
        [
            torch.rand(2, 4).argsort(),
            torch.tensor([[2, 1, 0, 3], [0, -1, -1, -1]]),
            torch.tensor([[-1, -1, -1, -1], [0, -1, 2, -1]]),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*(gives too few items|holds every item once)")
    def test_full_lists_stay_lists(self, lists):
        found = rank(lists, self.task, keep_items=True, full=True)
        assert torch.equal(found.lists.to_matrix(), lists)

    @pytest.mark.filterwarnings("ignore:.*gives too few items")
    def test_items_that_come_twice_are_warned_about(self):
        lists = torch.tensor([[2, 2, 3], [0, -1, -1]])
        with pytest.warns(UserWarning, match="recommends an item more than once to a user"):
            ranked = rank(lists, self.task, k=3)
        assert ranked.rank.tolist() == [1, 3, 1]
