"""Recommenders of lists, functions and models."""

import torch
from recommender_forms import RecordingModel

from pyg_recmetrics import RankingTask, rank


def test_a_model_is_asked_for_as_many_items_as_can_be_needed():
    truth, seen = torch.tensor([[0, 0, 1], [5, 6, 7]]), torch.tensor([[0, 1, 1], [0, 1, 2]])
    task = RankingTask(truth, num_users=2, num_items=9, seen=seen)
    model = RecordingModel(torch.rand(2, 9), 2)
    rank(model, task, k=1, edge_index=seen, batch_size=1)
    assert [(src.tolist(), k) for src, _, k, *_ in model.calls] == [([0], 3), ([1], 3)]
    few = RankingTask(truth, num_users=2, num_items=9, seen=seen, candidates=torch.arange(5, 8))
    rank(model, few, k=1, edge_index=seen)
    _, dst, k, *_ = model.calls[-1]
    assert (dst.tolist(), k) == ([7, 8, 9], 2)
