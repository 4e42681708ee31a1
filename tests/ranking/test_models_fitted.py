"""Fitted models are known by the module of their class, and no library is imported for that."""

import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from torch_geometric.nn import LightGCN, MIPSKNNIndex

from pyg_recmetrics import RankingTask, evaluate, rank
from pyg_recmetrics.ranking.models import ADAPTERS, library_of

TASK = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)


class OfLibrary:
    pass


OfLibrary.__module__ = "implicit.cpu.als"


class OfUser(OfLibrary):
    """A model of one's own on top of a library."""


def test_a_model_is_found_by_its_class_or_by_one_that_it_is_made_of():
    assert library_of(OfLibrary())
    assert library_of(OfUser())
    for value in (OfLibrary, LightGCN(5, 2, 1), torch.ones(2), (torch.ones(2), OfLibrary()), ()):
        assert not library_of(value)


def test_an_unknown_model_is_told_what_is_known_and_the_line_for_a_function():
    class Model:
        def predict(self, users):
            return users

    with pytest.raises(TypeError) as raised:
        evaluate(Model(), TASK, ["recall@1"])
    words = " ".join(str(raised.value).lower().split())
    assert all(library in words for library in ADAPTERS)
    assert "evaluate(lambda users: model.predict(users), data)" in words


class IndexFlatIP:
    """A stand-in for the index of faiss."""

    def __init__(self, dim):
        self.d, self.item = dim, np.empty((0, dim), dtype=np.float32)

    ntotal = property(lambda self: len(self.item))

    def train(self, item):
        """An exact index learns nothing."""

    def add(self, item):
        self.item = np.concatenate([self.item, item.numpy()])

    def search(self, user, k):
        scores = user @ self.item.T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, order, axis=1), order


IndexFlatIP.__module__ = "faiss.swigfaiss"


def test_an_index_of_pyg_is_the_index_of_faiss_that_it_holds(monkeypatch):
    for name in ("faiss", "faiss.contrib", "faiss.contrib.torch_utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["faiss"].IndexFlatIP = IndexFlatIP
    user, item = torch.randn(2, 4), torch.randn(3, 4)
    index = MIPSKNNIndex(item)
    found, expected = (rank(each, TASK, k=3) for each in ((user, index), (user, item)))
    assert torch.equal(found.rank, expected.rank)
    words = " ".join(evaluate((user, index), TASK, "recall@1").recipe().split())
    assert "lists of IndexFlatIP of faiss, whose search is exact" in words
    with pytest.raises(TypeError, match=r"pair \(user_embedding, index\)"):
        rank(index, TASK, k=3)
    with pytest.raises(ValueError, match="got a MIPSKNNIndex of PyG without"):
        rank((user, MIPSKNNIndex()), TASK, k=3)
