"""A `recommend` is asked whatever people call its arguments, and refused if they are in doubt."""

import inspect
import re
from pathlib import Path

import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate, rank
from pyg_recmetrics.ranking.recommend_forms import RECOMMEND_FORMS, read_form

SCORES = torch.tensor([[4.0, 3.0, 2.0, 1.0, 0.0], [0.0, 3.0, 1.0, 2.0, 4.0]])
TASK = RankingTask(torch.tensor([[0, 0, 1], [0, 3, 4]]), num_users=2, num_items=5)
SEEN_TASK = RankingTask(
    torch.tensor([[0, 0, 1], [1, 3, 4]]),
    num_users=2,
    num_items=5,
    seen=torch.tensor([[0, 1], [0, 3]]),
    candidates=torch.tensor([0, 1, 3, 4]),
)
USERS, ITEMS = torch.arange(2), torch.arange(2, 7)
NO_EDGES = torch.empty(2, 0, dtype=torch.long)
EDGES = torch.tensor([[0, 1, 2, 3], [2, 3, 0, 1]])


class Passing:
    """An object whose `recommend` is a function of its own."""

    def __init__(self, recommend):
        self.recommend = recommend


def best(src_index, dst_index, k):
    order = SCORES[src_index][:, dst_index - 2].argsort(dim=1, descending=True)
    return dst_index[order[:, :k]]


@pytest.mark.parametrize(
    "make",
    [
        lambda answer: lambda edge_index, users, items, k: answer(users, items, k),
        lambda answer: lambda adj, users, items, top_k=1: answer(users, items, top_k),
        lambda answer: lambda graph, sources, targets, n: answer(sources, targets, n),
        lambda answer: lambda edge_index, edge_weight, u, i, k, /: answer(u, i, k),
        lambda answer: lambda users, items, k, heat=1: answer(users, items, k),
        lambda answer: lambda k, items, users: answer(users, items, k),
        lambda answer: lambda users, k=10, items=None, **other: answer(users, items, k),
        lambda answer: lambda edge_index, users, k: answer(users, ITEMS, k) - 2,
        lambda answer: lambda graph, users, k: answer(users, ITEMS, k) - 2,
        lambda answer: lambda users, k: answer(users, ITEMS, k) - 2,
        lambda answer: lambda user_ids, topk=10: answer(user_ids, ITEMS, topk) - 2,
        lambda answer: lambda edge_index, k: answer(USERS, ITEMS, k) - 2,
        lambda answer: lambda k: answer(USERS, ITEMS, k) - 2,
    ],
)
@pytest.mark.parametrize("batch_size", [None, 1])
def test_as_people_write_it(make, batch_size):
    for task in (TASK, SEEN_TASK):
        ranked = rank(Passing(make(best)), task, edge_index=EDGES, batch_size=batch_size)
        assert torch.equal(ranked.rank, rank(SCORES, task).rank)


@pytest.mark.parametrize(
    "recommend",
    [
        lambda edge_index, src_index, dst_index: src_index,
        lambda e, src_index, dst_index, k, heat: heat,
        lambda users, not_these, k: users,
        lambda users, *, heat, k: users,
        lambda first, k: first,
        lambda one, two: one,
        lambda user: user,
        lambda: None,
    ],
)
def test_other_forms_are_refused(recommend):
    with pytest.raises(TypeError, match=r"'recommender.recommend\(\)' needs to have one") as told:
        rank(Passing(recommend), TASK, edge_index=NO_EDGES)
    _, *lines = str(told.value).splitlines()
    assert lines == [f"  - recommend({', '.join(form)})" for form in RECOMMEND_FORMS]


def test_factors_are_pointed_to():
    class Factors:
        user_factors, item_factors = SCORES, torch.eye(5)

        def recommend(self, userid, user_items, N=10):  # noqa: N803 (as `implicit` calls it)
            return user_items

    with pytest.raises(TypeError, match=r"\(model.user_factors, model.item_factors\)$"):
        rank(Factors(), TASK)


def test_items_without_their_place_are_numbered_from_zero():
    task = RankingTask(torch.tensor([[0, 1], [2, 2]]), num_users=2, num_items=5)
    with pytest.raises(ValueError, match=r"in \[0, 5\), since a model that is not given items"):
        rank(Passing(lambda users, k: best(users, ITEMS, k)), TASK)
    shifted = Passing(lambda k: torch.tensor([[2, 3, 4]] * 2))
    with pytest.warns(UserWarning, match="no item below 2, the number of users"):
        rank(shifted, task, k=3)


@pytest.mark.parametrize("arguments", RECOMMEND_FORMS)
def test_the_recipe_says_which_form_was_found(arguments):
    given = {}
    exec(f"def recommend({', '.join(arguments)}): pass", given)
    form = read_form(given["recommend"])
    assert form.arguments == arguments
    lists = torch.tensor([[0, 3, 1, 2, 4]] * 2)

    def recommend(*positions, **names):
        users = dict(zip(arguments, positions, strict=False), **names).get("src_index", USERS)
        return lists[users] + (2 if "dst_index" in arguments else 0)

    recommend.__signature__ = inspect.signature(given["recommend"])
    recipe = evaluate(Passing(recommend), TASK, "recall@3", edge_index=EDGES).recipe()
    assert f"all 5 items, by {form} of recommend. " in " ".join(recipe.split())


def test_the_documentation_has_the_same_table():
    page = Path(__file__).resolve().parents[2] / "docs" / "own_model.md"
    rows = re.findall(r"^\| `recommend\((.*)\)`.* \|.* from (\S+) on \|$", page.read_text(), re.M)
    assert [tuple(arguments.split(", ")) for arguments, _ in rows] == [*RECOMMEND_FORMS]
    assert [first == "`num_users`" for _, first in rows] == [
        "dst_index" in arguments for arguments in RECOMMEND_FORMS
    ]
