"""Edges that do not say how many users and items there are learn it from the recommender."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankingTask, evaluate, rank

TRUTH = torch.tensor([[0, 1, 2, 2], [3, 1, 0, 3]])
TASK = RankingTask(TRUTH, num_users=3, num_items=4)
NO_EDGES = torch.empty(2, 0, dtype=torch.long)
SCORES = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("recommender", "given"),
    [
        (SCORES, {}),
        (SCORES.numpy(), {}),
        ((SCORES, torch.eye(4)), {}),
        ((SCORES.numpy(), np.eye(4), np.zeros(4)), {}),
        ((torch.nn.Embedding(3, 2), torch.nn.Embedding(4, 2)), {}),
        (LightGCN(7, embedding_dim=2, num_layers=1), {"num_users": 3}),
        (torch.nn.DataParallel(LightGCN(7, embedding_dim=2, num_layers=1)), {"num_users": 3}),
        (torch.rand(4), {"num_users": 3}),
        (SCORES.argsort(), {"num_items": 4}),
        (lambda users: SCORES[users], {"num_users": 3, "num_items": 4}),
    ],
)
def test_counts_come_from_what_knows_them(recommender, given):
    wanted = rank(recommender, TASK, full=True, edge_index=NO_EDGES).rank
    ranked = rank(recommender, TRUTH, full=True, edge_index=NO_EDGES, **given)
    assert torch.equal(ranked.rank, wanted)
    assert (ranked.num_users, ranked.catalogue.num_items) == (3, 4)
    evaluate(recommender, TRUTH, "mrr", edge_index=NO_EDGES, **given)
    for name in given:
        with pytest.raises(ValueError, match=f"'{name}' needs to be given"):
            rank(recommender, TRUTH, edge_index=NO_EDGES, **(given | {name: None}))


def test_what_is_given_counts():
    with pytest.raises(ValueError, match=r"of shape \[3, 5\] \(got \[3, 4\]\)"):
        rank(SCORES, TRUTH, num_items=5)
