"""Models of `implicit`: lists are those of its own `recommend`."""

import numpy as np
import pytest
import torch
from scipy import sparse

from pyg_recmetrics import evaluate
from tests.support.cases.fitted_models import (
    NUM_ITEMS,
    NUM_USERS,
    edges,
    ranked_lists,
    recipe_of,
    task_of_positions,
)

implicit = pytest.importorskip("implicit")
pytestmark = pytest.mark.filterwarnings("ignore")  # about threads, of the library

K = 7


def matrix():
    user, item = edges()[0]
    shape = (NUM_USERS, NUM_ITEMS)
    return sparse.csr_matrix((np.ones(len(user), dtype=np.float32), (user, item)), shape=shape)


def fitted(kind, **options):
    model = kind(**options)
    model.fit(matrix(), show_progress=False)
    return model


def factor_models():
    options = {"factors": 8, "iterations": 5, "random_state": 1, "num_threads": 1}
    return [
        fitted(implicit.cpu.als.AlternatingLeastSquares, **options),
        fitted(implicit.cpu.bpr.BayesianPersonalizedRanking, **options),
        fitted(implicit.cpu.lmf.LogisticMatrixFactorization, **options),
    ]


def item_models():
    nearest = implicit.nearest_neighbours
    kinds = (nearest.CosineRecommender, nearest.BM25Recommender, nearest.TFIDFRecommender)
    return [fitted(kind, K=5, num_threads=1) for kind in kinds]


def own_lists(model, k):
    """Lists by its own `recommend`, user by user, and whether each item has a score."""
    user_items = matrix()
    return [model.recommend(user, user_items[user], N=k)[0].tolist() for user in range(NUM_USERS)]


@pytest.mark.parametrize("number", range(3))
def test_lists_of_factors_are_its_own(number):
    model = factor_models()[number]
    assert ranked_lists(model, task_of_positions(), K) == own_lists(model, K)


@pytest.mark.parametrize("number", range(3))
def test_lists_of_similarities_are_its_own(number):
    model, user_items = item_models()[number], matrix()
    # Its order of equal scores is that of a heap, so that scores are compared, not items.
    ours = ranked_lists(model, task_of_positions(), NUM_ITEMS)
    for user, items in enumerate(ours):
        ids, scores = model.recommend(user, user_items[user], N=NUM_ITEMS)
        # It fills up lists with what was seen, at a score of zero.
        seen = user_items[user].indices.tolist()
        of = {i: s for i, s in zip(ids.tolist(), scores.tolist(), strict=True) if i not in seen}
        listed = [item for item in items if item >= 0]
        assert {*listed} == {*of}
        assert [of[item] for item in listed] == pytest.approx(sorted(of.values(), reverse=True))


def test_numbers_are_those_of_its_own_evaluation():
    model, test = factor_models()[0], edges()[1]
    ones = np.ones(test.shape[1])
    truth = sparse.csr_matrix((ones, tuple(test)), shape=(NUM_USERS, NUM_ITEMS))
    evaluation = pytest.importorskip("implicit.evaluation")
    theirs = evaluation.ranking_metrics_at_k(
        model, matrix(), truth, K=K, show_progress=False, num_threads=1
    )
    names = ["precision@7", "map@7", "ndcg@7"]
    ours = evaluate(model, task_of_positions(), names, convention="implicit")
    assert [ours[name] for name in names] == pytest.approx(
        [theirs[name] for name in ("precision", "map", "ndcg")], abs=1e-6
    )


def test_an_index_is_asked_for_its_own_lists():
    pytest.importorskip("faiss")
    ann = pytest.importorskip("implicit.ann.faiss")
    inner = implicit.cpu.als.AlternatingLeastSquares(factors=8, random_state=1, num_threads=1)
    model = ann.FaissModel(inner, nlist=2, nprobe=2, use_gpu=False)
    model.fit(matrix(), show_progress=False)
    assert "whose search is approximate" in recipe_of(model, task_of_positions())
    # All parts of the index are searched, so that nothing is lost.
    assert ranked_lists(model, task_of_positions(), K) == ranked_lists(
        (torch.tensor(inner.user_factors), torch.tensor(inner.item_factors)), task_of_positions(), K
    )


@pytest.mark.parametrize(
    "kind",
    [
        implicit.nearest_neighbours.CosineRecommender,
        implicit.cpu.als.AlternatingLeastSquares,
        implicit.cpu.bpr.BayesianPersonalizedRanking,
    ],
)
def test_a_fit_is_needed(kind):
    with pytest.raises(ValueError, match=r"needs to be fitted \(got a \w+ of implicit without"):
        evaluate(kind(), task_of_positions(), ["recall@5"])
