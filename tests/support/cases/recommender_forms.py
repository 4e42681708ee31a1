"""Models that are asked by `recommend`."""

import torch


class RecordingModel(torch.nn.Module):
    """A model that only has `recommend`, and records the arguments of every call."""

    def __init__(self, scores, num_users):
        super().__init__()
        self.scores, self.num_users = scores, num_users
        self.calls = []

    def recommend(self, edge_index, edge_weight=None, src_index=None, dst_index=None, k=1):
        self.calls.append((src_index, dst_index, k, self.training, torch.is_grad_enabled()))
        scores = self.scores[src_index][:, dst_index - self.num_users]
        return dst_index[scores.sort(dim=1, descending=True, stable=True).indices[:, :k]]


class PlainModel:
    """An object that is no module, and whose `recommend` has no place for weights."""

    def __init__(self, scores, num_users):
        self.model = RecordingModel(scores, num_users)

    def recommend(self, edge_index, src_index, dst_index, k):
        return self.model.recommend(edge_index, None, src_index, dst_index, k)
