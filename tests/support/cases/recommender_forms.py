"""The same scores in every form of a recommender."""

import torch

from pyg_recmetrics import PairScorer


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


def forms(case):
    """Yields the scores of a case in every form that ranks the lower of two tied items first."""
    scores = case.score_matrix
    everything = scores.sort(dim=1, descending=True, stable=True).indices
    identity = torch.eye(case.num_items)
    yield scores
    yield scores.double()
    yield scores.half()
    yield lambda users: scores[users]
    yield lambda users: scores[users].double()
    yield scores.numpy()
    yield lambda users: scores[users].numpy()
    yield PairScorer(lambda user, item: scores[user, item])
    yield PairScorer(lambda user, item: scores[user, item].double(), batch_size=7)
    yield (scores, identity)
    yield (scores.double(), identity.double())
    yield (scores, identity, torch.zeros(case.num_items))
    yield (scores - 1, identity, torch.ones(case.num_items))
    # With one more place, they are not taken for ranks.
    yield torch.nn.functional.pad(everything, (0, 1), value=-1)
    yield torch.nn.functional.pad(everything.int(), (0, 1), value=-1)
    yield from models(scores, case.num_users)


def models(scores, num_users):
    """Yields scores in every form that is asked by `recommend`."""
    yield RecordingModel(scores, num_users)
    yield RecordingModel(scores, num_users).recommend
    yield PlainModel(scores, num_users)
