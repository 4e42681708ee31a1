"""Models of RecBole: scores are its own, without padding."""

import numpy as np
import pytest
import torch

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

pytest.importorskip("recbole")
pytest.importorskip("sklearn")  # which its models import


@pytest.fixture(autouse=True)
def numpy_of_recbole(monkeypatch):
    """Gives numpy the name that RecBole 1.2.1 needs, and that it has dropped."""
    monkeypatch.setattr(np, "float", float, raising=False)


CONFIG = {
    "USER_ID_FIELD": "user_id",
    "ITEM_ID_FIELD": "item_id",
    "NEG_PREFIX": "neg_",
    "LIST_SUFFIX": "_list",
    "ITEM_LIST_LENGTH_FIELD": "item_length",
    "MAX_ITEM_LIST_LENGTH": 5,
    "device": "cpu",
    "embedding_size": 6,
}


class Counts:
    """What a model asks its data set for: how many users and items there are, with padding."""

    def num(self, field):
        return {"user_id": NUM_USERS, "item_id": NUM_ITEMS}[field] + 1


def make():
    from recbole.model.general_recommender import BPR

    torch.manual_seed(1)
    return BPR(CONFIG, Counts())


def test_lists_are_those_of_its_own_scores():
    from recbole.data.interaction import Interaction

    model, task = make(), task_of_positions()
    users = torch.arange(NUM_USERS) + 1
    pairs = {"user_id": users.repeat_interleave(NUM_ITEMS)}
    pairs["item_id"] = (torch.arange(NUM_ITEMS) + 1).repeat(NUM_USERS)
    scores = model.predict(Interaction(pairs)).view(NUM_USERS, NUM_ITEMS).tolist()
    assert ranked_lists(model, task, 7) == lists_of_scores(scores, task, 7)
    assert model.training  # as it was found
    words = recipe_of(model, task)
    assert "the scores of BPR of RecBole, without padding" in words


def test_what_does_not_fit_is_refused():
    task = RankingTask(torch.tensor(edges()[1]), num_users=NUM_USERS + 1, num_items=NUM_ITEMS)
    with pytest.raises(ValueError, match=r"besides padding \(got 30 and 40\)"):
        evaluate(make(), task, ["recall@5"])
    from recbole.model.abstract_recommender import SequentialRecommender

    with pytest.raises(TypeError, match=r"without a sequence .*\(got SequentialRecommender"):
        evaluate(SequentialRecommender(CONFIG, Counts()), task, ["recall@5"])
