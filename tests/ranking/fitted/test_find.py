"""Fitted models are known by the module of their class, and no library is imported for that."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankingTask, evaluate
from pyg_recmetrics.ranking.fitted import ADAPTERS, is_fitted

FOLDER = Path(__file__).resolve().parents[3] / "pyg_recmetrics" / "ranking" / "fitted"
TASK = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)


class OfLibrary:
    pass


OfLibrary.__module__ = "cornac.models.recommender"


class OfUser(OfLibrary):
    """A model of one's own on top of a library."""


def test_a_model_is_found_by_its_class_or_by_one_that_it_is_made_of():
    assert is_fitted(OfLibrary())
    assert is_fitted(OfUser())
    for value in (OfLibrary, LightGCN(5, 2, 1), torch.ones(2), (torch.ones(2), OfLibrary()), ()):
        assert not is_fitted(value)


def test_no_library_is_imported():
    code = (
        "import sys, pyg_recmetrics.ranking.fitted\n"
        "print(*sorted({*pyg_recmetrics.ranking.fitted.ADAPTERS} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=FOLDER.parents[2], capture_output=True, check=True
    )
    assert done.stdout.split() == []


def test_each_adapter_is_a_small_module():
    modules = {path.stem for path in FOLDER.glob("*.py")}
    assert modules == {*ADAPTERS, "__init__", "find", "reading"}


def test_an_unknown_model_is_told_what_is_known_and_the_line_for_a_function():
    class Model:
        def predict(self, users):
            return users

    with pytest.raises(TypeError) as raised:
        evaluate(Model(), TASK, ["recall@1"])
    words = " ".join(str(raised.value).lower().split())
    assert all(library in words for library in ADAPTERS)
    assert "evaluate(lambda users: model.predict(users), data)" in words
