"""Indexes of faiss: lists are those of its own search."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import MIPSKNNIndex

from pyg_recmetrics import RankingTask, evaluate
from tests.support.cases.fitted_models import (
    NUM_ITEMS,
    NUM_USERS,
    edges,
    lists_of_scores,
    ranked_lists,
    recipe_of,
    task_of_ids,
    task_of_positions,
)

faiss = pytest.importorskip("faiss")

GENERATOR = np.random.default_rng(1)
USER = GENERATOR.normal(size=(NUM_USERS, 6)).astype(np.float32)
ITEM = GENERATOR.normal(size=(NUM_ITEMS, 6)).astype(np.float32)


def index(kind):
    if kind == "MIPSKNNIndex":
        return MIPSKNNIndex(torch.tensor(ITEM))
    if kind == "IVF2,Flat":
        made = faiss.index_factory(6, kind, faiss.METRIC_INNER_PRODUCT)
        made.train(ITEM)
    else:
        made = getattr(faiss, kind)(6)
    made.add(ITEM)
    return made


@pytest.mark.parametrize(
    ("kind", "scores"),
    [
        ("IndexFlatIP", USER @ ITEM.T),
        ("MIPSKNNIndex", USER @ ITEM.T),
        ("IndexFlatL2", -np.square(USER[:, None] - ITEM).sum(axis=-1)),
    ],
)
def test_lists_of_an_exact_index_are_those_of_a_loop(kind, scores):
    task = task_of_positions()
    recommender = (torch.tensor(USER), index(kind))
    assert ranked_lists(recommender, task, 7) == lists_of_scores(scores, task, 7)
    assert "whose search is exact" in recipe_of(recommender, task)


@pytest.mark.filterwarnings("ignore:.*returned")
def test_lists_of_an_approximate_index_are_those_of_its_search():
    made = index("IVF2,Flat")
    task = RankingTask(torch.tensor(edges()[1]), num_users=NUM_USERS, num_items=NUM_ITEMS)
    _, found = made.search(USER, 7)
    assert ranked_lists((USER, made), task, 7) == found.tolist()
    words = recipe_of((USER, made), task)
    assert "lists of IndexIVFFlat of faiss, whose search is approximate" in words


def test_ids_of_an_index_are_those_of_the_task():
    ids = np.arange(NUM_ITEMS)[::-1] * 3
    made = faiss.IndexIDMap(faiss.IndexFlatIP(6))
    made.add_with_ids(ITEM, ids)
    task = task_of_ids([*range(NUM_USERS)], ids.tolist())
    assert ranked_lists((USER, made), task, 7) == lists_of_scores(USER @ ITEM.T, task, 7)


def test_an_index_needs_user_embeddings():
    task = task_of_positions()
    with pytest.raises(TypeError, match=r"pair \(user_embedding, index\)"):
        evaluate(index("IndexFlatIP"), task, ["recall@5"])
    with pytest.raises(ValueError, match=r"shape \[30, 6\] \(got \[29, 6\]\)"):
        evaluate((USER[1:], index("IndexFlatIP")), task, ["recall@5"])
