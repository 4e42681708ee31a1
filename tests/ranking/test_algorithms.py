"""Which algorithm ranks what, and what is said of one that cannot."""

import re

import pytest
import torch

from pyg_recmetrics import PairScorer, RankingTask, rank
from pyg_recmetrics.ranking import algorithms
from pyg_recmetrics.ranking.algorithms import (
    CountByBound,
    RankByLargest,
    RankExactly,
    SearchGivenScores,
    SearchProducts,
)
from pyg_recmetrics.ranking.recommenders import PairRecommender


@pytest.fixture
def used(monkeypatch):
    """The algorithms that rank something, one after the other."""
    used = []

    def note(name, rank):
        def noting(self, chunk):
            of_pairs = isinstance(self.recommender, PairRecommender)
            noted = "PairRecommender" if of_pairs else name
            if used[-1:] != [noted]:
                used.append(noted)
            return rank(self, chunk)

        return noting

    for kind in (RankExactly, SearchGivenScores, CountByBound):
        monkeypatch.setattr(kind, "rank", note(kind.__name__, kind.rank))

    def search(self, chunk):
        used.append(f"SearchProducts in {str(self.dtype).removeprefix('torch.')}")
        return rank_by_search(self, chunk)

    rank_by_search = SearchProducts.rank
    monkeypatch.setattr(SearchProducts, "rank", search)
    monkeypatch.setattr(algorithms, "_MAX_ITEMS_STORED", 0)  # what is chosen if there are more
    return used


@pytest.fixture
def stored(monkeypatch, used):
    """The same, and scores of few items are stored."""

    def store(self, chunk, scores, *others):
        used.append(f"RankByLargest in {str(scores.dtype).removeprefix('torch.')}")
        return find(self, chunk, scores, *others)

    find = RankByLargest.find
    monkeypatch.setattr(RankByLargest, "find", store)
    monkeypatch.setattr(algorithms, "_MAX_ITEMS_STORED", 100)
    return used


TASK = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=100)
EMBEDDINGS = (torch.rand(1, 4), torch.rand(100, 4))
BIASED = (*EMBEDDINGS, torch.rand(100))
GIVEN = {
    "one score per item": torch.rand(100),
    "a matrix": torch.rand(1, 100),
    "a function": lambda users: torch.rand(users.numel(), 100),
}

#: Scores of two users, some of them equal, and one `-inf`.
MATRIX = torch.tensor([[1.0, -torch.inf, 2, 2], [0, 0, 0, 3]]).repeat(1, 25)
SMALL_SCORES = {"a matrix": MATRIX, "one score per item": MATRIX[0]}
EMBEDDINGS_OF_TWO = (torch.rand(2, 4), torch.rand(100, 4))

COUNT, DENSE = "CountByBound", "RankExactly"
HALF, SINGLE = "SearchProducts in bfloat16", "SearchProducts in float32"


def processor(monkeypatch, fast, precision):
    monkeypatch.setattr(algorithms, "has_fast_bfloat16", lambda: fast)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: precision)


@pytest.mark.parametrize("embeddings", [EMBEDDINGS, BIASED])
@pytest.mark.parametrize(
    ("fast", "precision", "options", "expected"),
    [
        (True, "highest", {"k": 1}, HALF),
        (True, "highest", {"k": 2}, COUNT),
        (True, "highest", {"k": 3, "keep_items": True}, HALF),
        (True, "highest", {"k": 4, "keep_items": True}, DENSE),
        (True, "highest", {"k": 3, "algorithm": "count"}, COUNT),
        (False, "highest", {"k": 1}, SINGLE),
        (False, "highest", {"k": 99, "algorithm": "search"}, HALF),
        (False, "medium", {"k": 3}, DENSE),
        (True, "medium", {"k": 3}, HALF),
        (True, "medium", {"k": 100}, DENSE),
        (True, "highest", {"full": True}, COUNT),
        (True, "highest", {"k": 3, "algorithm": "dense"}, DENSE),
    ],
)
def test_the_choice_is_made_by_what_applies(
    monkeypatch, used, embeddings, fast, precision, options, expected
):
    processor(monkeypatch, fast, precision)
    rank(embeddings, TASK, **options)
    assert used == [expected]


LARGEST = "RankByLargest in double", "RankByLargest in float32"


@pytest.mark.parametrize("embeddings", [EMBEDDINGS, BIASED])
@pytest.mark.parametrize("options", [{"k": 1}, {"k": 3, "keep_items": True}, {"full": True}])
@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_scores_of_few_items_are_stored(monkeypatch, stored, embeddings, options, precision):
    processor(monkeypatch, True, precision)
    rank(embeddings, TASK, **options)
    monkeypatch.setattr(algorithms, "_NUM_IN_DOUBLE", 99)
    rank(embeddings, TASK, **options)
    in_double, in_single = (name.replace("double", "float64") for name in LARGEST)
    assert stored[:2] == [in_double, in_single if precision == "highest" else in_double]


@pytest.mark.parametrize("size", [100, 400])
def test_ties_of_stored_scores_are_left_to_others(stored, monkeypatch, size):
    monkeypatch.setattr(algorithms, "_MAX_ITEMS_STORED", size)
    scores = torch.zeros(1, size)
    scores[0, 1:4] = 1
    task = RankingTask(torch.tensor([[0, 0], [2, 4]]), num_users=1, num_items=size)
    ranked = rank(scores, task, k=5)
    # A search leaves it to others if too many tie.
    others = [DENSE] if size == 100 else ["SearchGivenScores", DENSE]
    assert stored == ["RankByLargest in float32", *others]
    assert (ranked.rank.tolist(), ranked.num_tied.tolist()) == ([2, 5], [2, size - 4])


@pytest.mark.parametrize("form", GIVEN)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"k": 3}, "SearchGivenScores"),
        ({"k": 3, "keep_items": True}, "SearchGivenScores"),
        ({"k": 4}, DENSE),
        ({"k": 99, "algorithm": "search"}, "SearchGivenScores"),
        ({"k": 3, "algorithm": "dense"}, DENSE),
        ({"full": True}, DENSE),
    ],
)
def test_given_scores_are_searched(used, form, options, expected):
    rank(GIVEN[form], TASK, **options)
    assert used == [expected]


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (torch.arange(0, 100, 3), (HALF, COUNT, "SearchGivenScores")),
        (torch.stack([torch.zeros(50).long(), torch.arange(50)]), (DENSE,)),
    ],
)
def test_the_choice_depends_on_whether_candidates_are_shared(
    monkeypatch, used, candidates, expected
):
    processor(monkeypatch, fast=True, precision="highest")
    task = RankingTask(torch.tensor([[0], [3]]), num_users=1, num_items=100, candidates=candidates)
    rank(EMBEDDINGS, task, k=1)
    rank(EMBEDDINGS, task, full=True)
    rank(GIVEN["a matrix"], task, k=3)
    assert tuple(used) == expected


def task_with_own_candidates(num_candidates):
    """A task of two users, of whom each has so many candidates among 100 items."""
    candidates = torch.cartesian_prod(torch.arange(2), torch.arange(num_candidates)).t()
    truth = torch.tensor([[0, 1, 1], [3, 0, 2]])
    return RankingTask(truth, num_users=2, num_items=100, candidates=candidates)


@pytest.mark.parametrize("options", [{"k": 2}, {"k": 2, "keep_items": True}, {"full": True}])
@pytest.mark.parametrize("scores", [*SMALL_SCORES, "embeddings"])
@pytest.mark.filterwarnings("ignore:.*a score of '-inf'")
def test_few_candidates_of_each_user_are_scored_alone(used, scores, options):
    rank(SMALL_SCORES.get(scores, EMBEDDINGS_OF_TWO), task_with_own_candidates(6), **options)
    assert used == ["PairRecommender"]


def test_many_candidates_of_each_user_are_not(used):
    rank(EMBEDDINGS_OF_TWO, task_with_own_candidates(7), k=2)
    rank(MATRIX, task_with_own_candidates(7), k=2)
    rank(lambda users: MATRIX[users], task_with_own_candidates(6), k=2)
    assert "PairRecommender" not in used


def test_full_rankings_with_lists_count_ranks_and_search_for_lists(monkeypatch, used):
    processor(monkeypatch, fast=True, precision="highest")
    rank(EMBEDDINGS, TASK, full=True, keep_items=3)
    rank(EMBEDDINGS, TASK, full=True, keep_items=3, algorithm="count")
    assert used == [HALF, COUNT, DENSE, COUNT]


@pytest.mark.parametrize("options", [{}, {"keep_items": True}])
def test_whom_one_way_leaves_unsettled_is_ranked_by_the_next(used, options):
    # More items tie than a search settles, and more than there are in a list.
    task = RankingTask(torch.tensor([[0], [1500]]), num_users=1, num_items=2000)
    embeddings = (torch.ones(1, 4), torch.ones(2000, 4))
    ranked = rank(embeddings, task, k=2, algorithm="search", **options)
    assert used == [HALF, SINGLE, DENSE]
    assert ranked.num_above.tolist() == [0]
    assert ranked.num_tied.tolist() == [1999]


def expect_obstacle(algorithm):
    message = f"'algorithm' needs to be 'auto' or 'dense' here (got '{algorithm}')"
    return pytest.raises(ValueError, match=re.escape(message))


@pytest.mark.parametrize(
    ("recommender", "algorithm", "options"),
    [
        *((scores, "count", {}) for scores in GIVEN.values()),
        *((scores, "search", {"full": True}) for scores in (*GIVEN.values(), BIASED)),
        (EMBEDDINGS, "count", {"keep_items": True}),
        (EMBEDDINGS, "search", {"k": 100}),
        (PairScorer(lambda user, item: item.float()), "search", {}),
        (torch.zeros(1, 3).long(), "count", {}),
    ],
)
def test_a_forced_choice_that_does_not_apply_is_an_error(recommender, algorithm, options):
    with expect_obstacle(algorithm):
        rank(recommender, TASK, algorithm=algorithm, **options)


def test_neither_applies_to_candidates_of_each_user():
    candidates = torch.tensor([[0, 0], [1, 2]])
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=100, candidates=candidates)
    for algorithm in ("search", "count"):
        with expect_obstacle(algorithm):
            rank(EMBEDDINGS, task, algorithm=algorithm)


def test_a_count_needs_products_in_single_precision(monkeypatch):
    processor(monkeypatch, fast=True, precision="medium")
    with expect_obstacle("count"):
        rank(EMBEDDINGS, TASK, algorithm="count")
