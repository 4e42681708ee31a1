"""Algorithms of Surprise: scores are its own predictions, before they are clipped."""

import numpy as np
import pandas as pd
import pytest

from pyg_recmetrics import evaluate
from tests.support.cases.fitted_models import (
    NUM_ITEMS,
    NUM_USERS,
    edges,
    lists_of_scores,
    ranked_lists,
    recipe_of,
    task_of_ids,
)

surprise = pytest.importorskip("surprise")

USER_IDS = [f"u{100 - user}" for user in range(NUM_USERS)]
ITEM_IDS = [5 * item for item in range(NUM_ITEMS)]

MODELS = {
    "SVD": lambda: surprise.SVD(n_factors=6, n_epochs=5, random_state=1),
    "SVD without biases": lambda: surprise.SVD(
        n_factors=6, n_epochs=5, biased=False, random_state=1
    ),
    "NMF": lambda: surprise.NMF(n_factors=6, n_epochs=5, random_state=1),
    "SVDpp": lambda: surprise.SVDpp(n_factors=6, n_epochs=3, random_state=1),
    "SlopeOne": surprise.SlopeOne,
    "KNNBaseline": lambda: surprise.KNNBaseline(k=5, verbose=False),
}


def fitted(name):
    generator = np.random.default_rng(2)
    train = edges()[0].T[generator.permutation(edges()[0].shape[1])]
    frame = pd.DataFrame(
        [(USER_IDS[user], ITEM_IDS[item], generator.integers(1, 6)) for user, item in train]
    )
    data = surprise.Dataset.load_from_df(frame, surprise.Reader(rating_scale=(1, 5)))
    return MODELS[name]().fit(data.build_full_trainset())


@pytest.mark.parametrize("name", MODELS)
def test_lists_are_those_of_its_own_predictions(name):
    model, task = fitted(name), task_of_ids(USER_IDS, ITEM_IDS)
    scores = [[model.predict(u, i, clip=False).est for i in ITEM_IDS] for u in USER_IDS]
    assert ranked_lists(model, task, 7) == lists_of_scores(scores, task, 7)
    words = recipe_of(model, task)
    assert f"of {type(model).__name__} of Surprise, not clipped" in words


@pytest.mark.parametrize("name", ["SVD", "SlopeOne"])
def test_what_it_does_not_know_is_never_retrieved_and_said(name):
    model = fitted(name)
    known = ranked_lists(model, task_of_ids(USER_IDS, ITEM_IDS), 40)
    with pytest.warns(UserWarning, match=r"does not know 1 of 31 users \('new'\)"):
        lists = ranked_lists(model, task_of_ids([*USER_IDS, "new"], ITEM_IDS), 40)
    assert lists == [*known, [-1] * 40]
    with pytest.warns(UserWarning, match=r"does not know 1 of 41 items \(7\)"):
        lists = ranked_lists(model, task_of_ids(USER_IDS, [*ITEM_IDS, 7]), 40)
    assert lists == known


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_is_needed(name):
    with pytest.raises(ValueError, match=r"needs to be fitted \(got a \w+ of Surprise without"):
        evaluate(MODELS[name](), task_of_ids(USER_IDS, ITEM_IDS), ["recall@5"])
