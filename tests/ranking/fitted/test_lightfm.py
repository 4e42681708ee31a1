"""Models of LightFM: scores are those of its own `predict`."""

import numpy as np
import pytest

from pyg_recmetrics import RankingTask, evaluate
from tests.support.cases.fitted_models import (
    NUM_ITEMS,
    NUM_USERS,
    edges,
    lists_of_scores,
    ranked_lists,
    recipe_of,
    task_of_positions,
)

USERS, ITEMS = np.arange(NUM_USERS), np.arange(NUM_ITEMS)


class LightFM:
    """What is read of the class of this name, which does not build everywhere."""

    def __init__(self):
        generator = np.random.default_rng(1)
        self.user = generator.normal(size=(NUM_USERS, 4)), generator.normal(size=NUM_USERS)
        self.item = generator.normal(size=(NUM_ITEMS, 4)), generator.normal(size=NUM_ITEMS)

    def get_user_representations(self):
        return self.user[::-1]

    def get_item_representations(self):
        return self.item[::-1]

    def predict(self, user, items):
        (embedding, bias), (of_items, item_bias) = self.user, self.item
        return of_items[items] @ embedding[user] + item_bias[items] + bias[user]


LightFM.__module__ = "lightfm.lightfm"


def real_model():
    lightfm = pytest.importorskip("lightfm")
    sparse = pytest.importorskip("scipy.sparse")
    user, item = edges()[0]
    matrix = sparse.coo_matrix((np.ones(len(user)), (user, item)), shape=(NUM_USERS, NUM_ITEMS))
    return lightfm.LightFM(no_components=8, loss="bpr", random_state=1).fit(matrix, epochs=5)


@pytest.mark.parametrize("make", [LightFM, real_model])
def test_lists_are_those_of_its_own_scores(make):
    model, task = make(), task_of_positions()
    scores = np.stack([model.predict(int(user), ITEMS) for user in USERS])
    assert ranked_lists(model, task, 7) == lists_of_scores(scores, task, 7)
    recipe = recipe_of(model, task)
    assert "the embeddings and item biases of LightFM" in recipe


def test_numbers_are_those_of_its_own_evaluation():
    model = real_model()
    from lightfm.evaluation import precision_at_k, recall_at_k
    from scipy import sparse

    shape = (NUM_USERS, NUM_ITEMS)
    train, test = (
        sparse.csr_matrix((np.ones(found.shape[1]), tuple(found)), shape=shape) for found in edges()
    )
    ours = evaluate(model, task_of_positions(), ["precision@5", "recall@5"])
    for name, theirs in (("precision@5", precision_at_k), ("recall@5", recall_at_k)):
        assert ours[name] == pytest.approx(theirs(model, test, train, k=5).mean(), abs=1e-6)


def test_a_model_with_features_is_told_the_lines():
    task = RankingTask(edges()[1], num_users=NUM_USERS + 1, num_items=NUM_ITEMS)
    with pytest.raises(ValueError, match=r"got 30 and 40 rows\).*features") as raised:
        evaluate(LightFM(), task, ["recall@5"])
    assert "evaluate((user, item, item_bias), data)" in str(raised.value)
