"""Anybody who passes what cannot be ranked is told every form that can."""

import re
from pathlib import Path

import pytest
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import PairScorer, RankingTask, rank
from pyg_recmetrics.ranking.forms import FORMS

TASK = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
OWN_MODEL = Path(__file__).resolve().parents[2] / "docs" / "own_model.md"


class TwoTower(torch.nn.Module):
    """A model with embeddings that it does not know how to rank by."""

    def forward(self, x_dict, edge_index_dict):
        return x_dict


def told_about(recommender):
    with pytest.raises(TypeError) as raised:
        rank(recommender, TASK)
    return str(raised.value).splitlines()


@pytest.mark.parametrize(
    ("recommender", "got"),
    [
        (3, "int"),
        ("model", "str"),
        (None, "NoneType"),
        ({1, 2}, "set"),
        (LightGCN, "the class LightGCN"),
        (PairScorer, "the class PairScorer"),
        (TwoTower(), "TwoTower without a method 'recommend'"),
        (torch.nn.Embedding(2, 4), "Embedding without a method 'recommend'"),
    ],
)
def test_each_form_has_a_line_of_its_own(recommender, got):
    first, *rest = told_about(recommender)
    assert first == f"'recommender' needs to be one of these (got {got}):"
    assert rest[: len(FORMS)] == [f"  - {form}" for form in FORMS]


def test_what_to_write_is_told():
    *_, line, last = told_about(TwoTower())
    assert line.endswith("as in evaluate(lambda users: model.predict(users), data)")
    assert last.endswith("write evaluate((user_embedding, item_embedding), data)")
    *_, last = told_about(LightGCN)
    assert last == "Make an object of the class first, as in LightGCN(...)"
    assert len(told_about(3)) == 1 + len(FORMS)


@pytest.mark.parametrize("form", FORMS)
def test_the_documentation_knows_the_same_forms(form):
    signatures = re.findall(r"\w*\([^)]*\)|(?<=\s)\[.*\]", form)
    assert signatures
    page = " ".join(OWN_MODEL.read_text().split())
    for signature in signatures:
        assert signature in " ".join(rank.__doc__.split()) or "PairScorer" in signature
        assert signature in page
