"""Recommenders of scores: what they ask for, copy and refuse, and what scores of `-inf` mean.

The fuzz and the contract of kernels compare their ranks with the oracle.
"""

import math
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.sparse import csr_matrix

from pyg_recmetrics import PairScorer, RankedEdges, RankingTask, evaluate, rank
from pyg_recmetrics.kernels.fast import bounded_counting, rounded_items, searching
from pyg_recmetrics.ranking import recommenders as ranked_embeddings
from tests.support.cases.embeddings import assert_same_ranks
from tests.support.cases.random_tasks import random_task
from tests.support.cases.strategies import cases
from tests.support.tools.largest_tensor import LargestTensor
from tests.support.tools.said import warnings_of


@contextmanager
def in_tiles(size):
    """Makes every table too large to be copied, with tiles of `size` items."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked_embeddings, "MAX_BYTES_OF_ITEMS", 0)
        patch.setattr(ranked_embeddings, "ITEMS_IN_TILE", size)
        patch.setattr(rounded_items, "_MAX_BYTES", 0)
        patch.setattr(rounded_items, "_ITEMS_AT_ONCE", size)
        patch.setattr(searching, "MAX_COLUMNS", searching.BLOCK_SIZE)
        patch.setattr(bounded_counting, "NUM_SCORES_IN_TILE", 1)
        yield


def ways(full=False, keep_items=False):
    """The algorithms that find ranks of embeddings."""
    return ["dense", *([] if keep_items else ["count"]), *([] if full else ["search"])]


def task_of(num_users=40, num_items=300):
    return random_task(num_users, num_items, truth_share=0.05, seen_share=0.1)


def embeddings(num_users=40, num_items=300):
    generator = torch.Generator().manual_seed(1)
    user = torch.randn(num_users, 16, generator=generator)
    item = torch.randn(num_items, 16, generator=generator)
    return user, item


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
@pytest.mark.parametrize(
    ("dtype", "has_bias"), [(torch.float16, True), (torch.float32, False), (torch.float64, True)]
)
def test_there_is_never_a_copy_of_a_large_table(options, algorithm, dtype, has_bias):
    user, item = (x.to(dtype) for x in embeddings(num_users=30, num_items=5000))
    task = RankingTask(torch.arange(30).repeat(2, 1), num_users=30, num_items=5000)
    tables = (user, item, item[:, 0]) if has_bias else (user, item)
    rounded_items._keep_memory()  # which makes a large tensor once in a process
    with in_tiles(50), LargestTensor() as largest:
        rank(tables, task, batch_size=10, algorithm=algorithm, **options)
    assert 0 < largest.numel <= 15_000 < item.numel() // 5


def test_memory_is_bounded_where_every_score_needs_a_second_look():
    user = torch.ones(50, 64)
    item = torch.randn(3000, 64, generator=torch.Generator().manual_seed(0))
    item[:, 1::2] = -item[:, ::2]
    item[:, 0] *= 1 + 2.0**-23
    with LargestTensor() as largest:
        rank((user, item), task_of(50, 3000), full=True, algorithm="dense")
    assert largest.numel <= 2**20


@pytest.mark.parametrize("options", [{"k": 7}, {"full": True}])
def test_the_default_device_and_dtype_may_be_others(options):
    pair, task = embeddings(), task_of()
    wanted = rank(pair, task, algorithm="dense", **options)
    for algorithm in ways("full" in options):
        with torch.device("meta"), in_tiles(7):
            assert_same_ranks(rank(pair, task, algorithm=algorithm, **options), wanted)
        torch.set_default_dtype(torch.float16)
        try:
            assert_same_ranks(rank(pair, task, algorithm=algorithm, **options), wanted)
        finally:
            torch.set_default_dtype(torch.float32)


TASK_OF_SCORES_AND_LISTS = RankingTask([[0, 0, 1], [2, 1, 0]], num_users=2, num_items=3)


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


@given(case=cases(), batch_size=st.integers(1, 9), keep_items=st.booleans())
@pytest.mark.usefixtures("expect_lost_truth")
def test_exactly_the_candidates_are_asked_for_once(case, batch_size, keep_items):
    recorder = Recorder(case.score_matrix)
    scorer = PairScorer(recorder, batch_size=batch_size)
    rank(scorer, case.task(), batch_size=2, keep_items=keep_items)
    assert sorted(recorder.pairs) == [
        (user, item)
        for user, items in enumerate(case.rankings)
        for item in sorted(items)
        if keep_items or case.truths[user]
    ]
    assert max(recorder.sizes) <= batch_size


def test_a_function_may_return_the_same_buffer_every_time():
    scores = torch.randn(2, 3)
    task = TASK_OF_SCORES_AND_LISTS
    buffers = torch.empty(7), np.empty(7, dtype=np.float32)
    for buffer in buffers:

        def into_buffer(user, item, buffer=buffer):
            buffer[: len(user)] = scores[user, item]
            return buffer[: len(user)]

        ranked = rank(PairScorer(into_buffer, batch_size=2), task, full=True)
        assert torch.equal(ranked.rank, rank(scores, task, full=True).rank)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda user, item: torch.rand(2, 3), ValueError, r"\[num_pairs\] of shape \[6\]"),
        (lambda user, item: item, ValueError, "floating-point numbers .*int64"),
        (lambda user, item: None, TypeError, r"needs to be a tensor, .*\(got NoneType\)"),
    ],
)
def test_wrong_scores_are_named(function, error, message):
    with pytest.raises(error, match=message):
        rank(PairScorer(function), TASK_OF_SCORES_AND_LISTS)


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
    def test_masked_truth_is_no_irrelevant_candidate_less(self):
        # User 0 has the candidates 0, 2, 3, of which 2 is relevant; user 1 has 1 (relevant) and 3.
        with pytest.warns(UserWarning, match="2 of 4 ground-truth edges have a score of '-inf'"):
            result = evaluate(SCORES, TASK, ["fall_out@1", "fall_out@2", "fall_out@9"])
        assert result.per_user["fall_out@1"].tolist() == [1 / 2, 1]
        assert result.per_user["fall_out@2"].tolist() == [1 / 2, 1]
        assert result.per_user["fall_out@9"].tolist() == [1, 1]

    def test_users_without_truth_may_have_no_score(self):
        scores = torch.tensor([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [-torch.inf] * 3])
        task = RankingTask([[0, 1], [0, 0]], num_users=3, num_items=3)
        for recommender in (scores, scores.double(), lambda users: scores[users]):
            result = evaluate(recommender, task, ["recall@2", "coverage@2", "mrr"], keep_items=True)
            assert set(result.ranked.lists.to_matrix()[2].tolist()) <= {-1}
            assert [*result.to_dict().values()] == pytest.approx([0.5, 1.0, 2 / 3])

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


class TestErrorsOfScoreMask:
    @pytest.mark.parametrize("wrong", [math.nan, math.inf])
    @pytest.mark.parametrize("form", range(5))
    def test_what_is_neither_finite_nor_masked(self, wrong, form):
        scores = SCORES.clone()
        scores[1, 1] = wrong
        message = r"finite, or '-inf' for items that must not be retrieved \(got NaN or 'inf'\)"
        with pytest.raises(ValueError, match=message):
            rank(list(forms(scores))[form], TASK)

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
            pytest.warns(UserWarning, match="counts as missed"),
            pytest.raises(ValueError, match="a score that is finite"),
        ):
            evaluate(SCORES, TASK, "roc_auc")


def test_a_fitted_model_may_leave_a_user_without_a_candidate():
    class Fitted:
        """A model of implicit to which no item is like another."""

        __module__ = "implicit.nearest_neighbours"
        similarity = csr_matrix((3, 3))

    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=3)
    with pytest.raises(ValueError, match="every user a candidate with a finite score"):
        rank(torch.full((1, 3), MASKED), task)
    with pytest.warns(UserWarning, match="counts as missed"):
        assert rank(Fitted(), task).num_candidates.tolist() == [0]


def overwriting_function(scores):
    def overwriting(users):
        result = scores[users]
        users.zero_()
        return result

    return overwriting


def overwriting_model(scores):
    def recommend(edge_index, src_index, dst_index, k):
        answer = dst_index[scores[src_index].argsort(dim=1, descending=True)[:, :k]]
        src_index.zero_()
        dst_index.zero_()
        return answer

    return recommend


@pytest.mark.parametrize("batch_size", [None, 1])
@pytest.mark.parametrize("make", [overwriting_function, overwriting_model])
def test_what_a_recommender_is_given_may_be_overwritten(make, batch_size):
    scores, no_edges = torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]]), torch.empty(2, 0).long()
    options = {"batch_size": batch_size, "keep_items": True, "edge_index": no_edges}
    ranked = rank(make(scores), TASK_OF_SCORES_AND_LISTS, **options)
    wanted = rank(scores, TASK_OF_SCORES_AND_LISTS, keep_items=True)
    assert torch.equal(ranked.rank, wanted.rank)
    assert torch.equal(ranked.lists.to_matrix(), wanted.lists.to_matrix())


def test_a_given_matrix_is_not_copied(monkeypatch):
    monkeypatch.setattr(searching, "NUM_VALUES", 2048)
    scores = torch.rand(50, 2000, generator=torch.Generator().manual_seed(0))
    task = RankingTask(torch.arange(50).repeat(2, 1), num_users=50, num_items=2000)
    for options in ({}, {"keep_items": True}):
        with LargestTensor() as largest:
            rank(scores, task, k=5, algorithm="search", **options)
        assert 0 < largest.numel < scores.numel() // 10


class TestIntegers:
    task = RankingTask([[0, 0, 1], [2, 3, 0]], num_users=2, num_items=4)

    def test_one_user_of_many_tells_that_they_are_scores(self):
        scores = torch.rand(700_000, 7).argsort()
        task = RankingTask([[0], [1]], num_users=700_000, num_items=7)
        with pytest.warns(UserWarning, match="holds every item once for every user"):
            rank(scores, task)
        scores[650_000, 0] = scores[650_000, 1]
        with pytest.raises(ValueError, match="some repeat in a row"):
            rank(scores, task)

    @pytest.mark.filterwarnings("ignore:.*gives too few items")
    def test_items_that_come_twice_are_warned_about(self):
        lists = torch.tensor([[2, 2, 3], [0, -1, -1]])
        with pytest.warns(UserWarning, match="recommends an item more than once to a user"):
            ranked = rank(lists, self.task, k=3)
        assert ranked.rank.tolist() == [1, 3, 1]


def draw_seen(num_users=150, num_items=90, num_kinds=6):
    """Who has seen what: users like items of their kind, and everybody likes popular ones."""
    rng = np.random.default_rng(0)
    of_user, of_item = (rng.integers(num_kinds, size=size) for size in (num_users, num_items))
    is_of_kind = of_user[:, None] == of_item
    popularity = 0.1 + 0.9 * rng.random(num_items)
    seen = rng.random((num_users, num_items)) < (0.08 + 0.6 * is_of_kind) * popularity
    return seen.astype(np.float32)


SEEN = draw_seen()


def factors(seen):
    """Eight dimensions of what was seen."""
    left, size, right = np.linalg.svd(seen, full_matrices=False)
    return left[:, :8] * size[:8], right[:8].T


def neighbours(seen):
    """Scores of items that are like those that were seen."""
    similar = seen.T @ seen / np.sqrt(np.outer(seen.sum(0), seen.sum(0)))
    return seen @ (similar - np.diag(np.diag(similar)))


def autoencoder(seen):
    """Scores of a linear autoencoder."""
    inverse = np.linalg.inv(seen.T @ seen + 50 * np.eye(len(seen.T)))
    return (seen @ (np.eye(len(inverse)) - inverse / np.diag(inverse))).astype(np.float32)


#: What is fitted on what was seen, and becomes a recommender.
FITTED = {
    "embeddings": factors,
    "embeddings of two bytes": lambda seen: [torch.tensor(x).bfloat16() for x in factors(seen)],
    "biases": lambda seen: (*factors(seen), np.log(seen.sum(0)) / 5),
    "neighbours": neighbours,
    "an autoencoder": autoencoder,
}


def is_asked(recommender, task):
    """Whether it is asked about the order of rows."""
    said = warnings_of(evaluate, recommender, task, "recall@5")
    return sum("in the order of the task" in text for text in said)


def task_of_seen(device="cpu"):
    truth, seen = (torch.tensor(np.stack(x.nonzero())).to(device) for x in (SEEN == 0, SEEN))
    return RankingTask(truth[:, ::9], num_users=150, num_items=90, seen=seen)


@pytest.mark.parametrize("name", FITTED)
def test_rows_in_another_order_are_asked_about(device, name):
    def place(x):
        return torch.as_tensor(x).to(device)

    rng = np.random.default_rng(1)
    for axes in ((), (0,), (1,), (0, 1)):
        # A model of other rows is that of the same edges, numbered in another way.
        seen = SEEN
        for axis in axes:
            seen = np.take(seen, rng.permutation(seen.shape[axis]), axis)
        model = FITTED[name](seen)
        model = place(model) if isinstance(model, np.ndarray) else tuple(map(place, model))
        assert is_asked(model, task_of_seen(device)) == bool(axes), (name, axes)


@pytest.mark.parametrize("scale", [0.3, 1, 1e6])
def test_what_knows_the_truth_alone_is_not_asked_about_unless_its_rows_are_in_another_order(scale):
    rng = np.random.default_rng(0)
    is_truth = SEEN * (rng.random(SEEN.shape) < 0.2)  # held out, so that popular items have more
    sides = (torch.tensor(np.stack(x.nonzero())) for x in (is_truth, SEEN - is_truth))
    task = RankingTask(next(sides), num_users=150, num_items=90, seen=next(sides))
    scores = rng.random(SEEN.shape) + scale * is_truth
    for form in (scores, (scores, np.eye(90))):
        assert not is_asked(form, task)
    assert is_asked(rng.permutation(scores), task)
    assert is_asked((rng.permutation(factors(SEEN - is_truth)[0]), factors(SEEN)[1]), task)
    # A single relevant item tells nothing.
    assert is_asked(scores, RankingTask([[0], [1]], num_users=150, num_items=90, seen=task.seen))


def test_scores_that_tell_nobody_apart_or_avoid_what_was_seen_are_not_asked_about():
    popular = SEEN.sum(0)
    scale = np.random.default_rng(0).random((150, 1)) + 0.1
    masked = np.where(SEEN, -np.inf, autoencoder(SEEN))
    for model in (popular, popular * scale, (scale, popular[:, None]), masked, -autoencoder(SEEN)):
        assert not is_asked(model, task_of_seen())


def test_each_recommender_is_looked_at_and_each_form_is_told_once_in_a_run():
    task, rng = task_of_seen(), np.random.default_rng(0)
    user, item = factors(SEEN)
    assert not is_asked((user, item), task)
    assert not is_asked(autoencoder(SEEN), task)
    assert is_asked((user[::-1].copy(), item), task)
    assert sum(is_asked(rng.random((150, 90)), task) for _ in range(100)) == 1


def test_what_has_no_table_or_has_seen_little_is_not_asked_about():
    scores = torch.rand(150, 90, generator=torch.Generator().manual_seed(0))
    task = task_of_seen()
    for model in (lambda users: scores[users], PairScorer(lambda u, i: scores[u, i])):
        assert not is_asked(model, task_of_seen())
    few = RankingTask(task.truth, num_users=150, num_items=90, seen=task.seen[:, ::4])
    assert not is_asked(scores, few)
