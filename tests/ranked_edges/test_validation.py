"""A ranking from outside: what the package makes is accepted, and what is changed is refused."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import Catalogue, RankedEdges, rank
from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.ranked_edges import validation
from tests.support.cases.strategies import cases

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def make_fields():
    """A ranking of three users, in which every field is known."""
    ranked = RankedEdges.from_topk(
        torch.tensor([[2, 0, 1], [1, -1, 3], [0, 1, 2]]),
        torch.tensor([[0, 0, 1, 1, 1], [1, 2, 0, 2, 3]]),
        torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),
    )
    ranked = dataclasses.replace(
        ranked.with_catalogue(Catalogue(4)),
        num_candidates=torch.tensor([4, 3, 4]),
        depth=3,
        user_ids=("ann", "bob", "cy"),
        item_ids=("w", "x", "y", "z"),
    )
    return ranked.to_dict()


def test_the_ranking_is_what_it_says():
    fields = make_fields()
    assert fields["edge_label_index"].tolist() == [[0, 0, 1, 1, 1], [2, 1, 3, 0, 2]]
    assert fields["rank"].tolist() == [1, 3, 3, NOT_RETRIEVED, NOT_RETRIEVED]
    RankedEdges.from_dict(fields)


@pytest.mark.filterwarnings("ignore:'recommender' recommends an item more than once")
@given(case=cases(), k=st.integers(1, 4), keep_items=st.booleans(), full=st.booleans())
def test_what_is_ranked_is_accepted(case, k, keep_items, full):
    depth = {"full": True} if full else {"k": k}
    ranked = rank(case.score_matrix, case.task(), keep_items=keep_items, **depth)
    again = RankedEdges.from_dict(ranked.to_dict())
    assert torch.equal(again.edge_label_index, ranked.edge_label_index)
    # Lists with repeats and gaps, as somebody else makes them.
    lists = torch.tensor(case.scores) % case.num_items
    lists = torch.cat([lists, lists[:, :1]], dim=1)
    RankedEdges.from_dict(rank(lists, case.task(), k=1, keep_items=1).to_dict())


@given(
    lists=st.lists(st.lists(st.integers(-1, 5), min_size=3, max_size=3), min_size=1, max_size=4),
    data=st.data(),
)
def test_lists_and_pairs_are_accepted(lists, data):
    edge = st.tuples(st.integers(0, len(lists) - 1), st.integers(0, 5))
    edges = data.draw(st.lists(edge, max_size=8))
    truth = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    weight = torch.tensor([0.5 + (index % 3) for index in range(len(edges))])
    RankedEdges.from_dict(RankedEdges.from_topk(torch.tensor(lists), truth, weight).to_dict())
    preds = torch.tensor([float(item % 3) for _, item in edges])
    pairs = RankedEdges.from_pairs(preds, truth[1] % 2, truth[0])
    RankedEdges.from_dict(pairs.to_dict())


LARGE = 2**62
CHANGES = {
    "edge_label_index": [
        (
            [[0, 0, 1, 1, 1], [2, 2, 3, 0, 2]],
            r"'edge_label_index' .* once \(fails at user 0\)",
        ),
        (
            [[0, 1, 0, 1, 1], [2, 1, 3, 0, 2]],
            r"'edge_label_index' needs to be sorted by user \(fails at edge 2\)",
        ),
        (
            [[0, 0, 1, 1, 3], [2, 1, 3, 0, 2]],
            r"'edge_label_index' .* user ids in \[0, 3\) \(got 3\)",
        ),
        (
            [[0, 0, 1, 1, 2], [2, 1, 3, 0, 2]],
            r"'ptr' needs to point at the edges of each user \(fails at entry 2\)",
        ),
        ([[0, 0, 1, 1, -1], [2, 1, 3, 0, 2]], r"'edge_label_index' .* above -1 \(got -1\)"),
        ([[0, 0, 1, 1, 1], [2, 1, 3, -7, 2]], r"'edge_label_index' .* above -1 \(got -7\)"),
        ([[0, 0, 1, 1, 1], [2, 1, 4, 0, 2]], "'item_ids' needs to hold all items .* up to 4"),
        ([[0, 0, 1, 1, 1], [2, 1, LARGE, 0, 2]], "'item_ids' needs to hold all items"),
        ([[0, 0, 1, 1], [2, 1, 3, 0]], r"'edge_label_index' .* of shape \[2, 5\] \(got \[2, 4\]\)"),
        ([[0, 0, 1, 1, 1], [2, 1, 3, 2, 0]], "'rank' needs to rise"),
        ([0, 0, 1, 1, 1], r"'edge_label_index' .* of shape \[2, 5\] \(got \[5\]\)"),
    ],
    "rank": [
        ([0, 0, 0, 0, 0], r"'rank' needs to hold numbers above 0 \(got 0\)"),
        ([1, -3, 3, 4, 5], r"'rank' needs to hold numbers above 0 \(got -3\)"),
        ([1, 3, 3, 4], r"of shape \[2, 4\] \(got \[2, 5\]\)"),
        ([3, 1, 3, 4, 5], "'rank' needs to rise"),
        ([2, 2, 3, 4, 5], r"'rank' needs to rise .* of each user \(fails at edge 1\)"),
        ([1.0, 3.0, 3.0, 4.0, 5.0], r"'rank' needs to hold torch.int64 \(got torch.float32\)"),
        ([[1, 3, 3, 4, 5]], r"of shape \[5\] \(got \[1, 5\]\)"),
    ],
    "ptr": [
        ([0, 2, LARGE, 5], "'ptr' needs to point at the edges"),
        ([0, -LARGE, 5, 5], "'ptr' needs to hold numbers above -1"),
        ([0, 5, 2, 5], "'ptr' needs to point at the edges"),
        ([0, 2, 5, 6], "'ptr' needs to point at the edges"),
        ([0, 2, 5], "'num_candidates'"),
        (5, r"'ptr' .* of shape \[1\] \(got \[\]\)"),
    ],
    "weight": [
        ([1.0, 2.0, 3.0, 4.0, 5.0], r"'weight' needs to hold torch.float64 \(got torch.float32\)"),
    ],
    "num_candidates": [
        ([4, 3, 5], "'item_ids' needs to hold all items of the ranking, up to 4"),
        ([0, 3, 4], r"'num_candidates' .* all retrieved items \(fails at user 0\)"),
        ([4, 0, 4], r"'num_candidates' .* all retrieved items \(fails at user 1\)"),
        ([4, -3, 4], "'num_candidates' needs to hold numbers above -1"),
        ([4, 3], r"'num_candidates' .* of shape \[3\] \(got \[2\]\)"),
    ],
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, *change) for name, changes in CHANGES.items() for change in changes],
)
def test_tensors_that_were_changed_are_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        RankedEdges.from_dict(make_fields() | {name: torch.tensor(value)})


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ([1, 0], r"'users' needs to be sorted, and .* every user once \(fails at entry 1\)"),
        ([0, 1, 1], r"'users' needs to be sorted, and .* every user once \(fails at entry 2\)"),
        ([0, 2], r"'edge_label_index' needs to hold edges of 'users' alone \(fails at edge 2\)"),
    ],
)
def test_users_that_were_changed_are_refused(users, message):
    with pytest.raises(ValueError, match=message):
        RankedEdges.from_dict(make_fields() | {"users": torch.tensor(users)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_tied": None}, r"need to come together \(got 'num_above'\)"),
        ({"num_above": None}, r"need to come together \(got 'num_tied'\)"),
        ({"num_above": [0, 0]}, r"'rank' needs to fit 'num_above' and .* \(fails at edge 1\)"),
        ({"num_tied": [1, -1]}, r"'rank' needs to fit 'num_above' and .* \(fails at edge 1\)"),
        ({"num_tied": [1, 1], "rank": [2, 3]}, r"as 'best' ranks ties \(fails at edge 0\)"),
    ],
)
def test_ties_that_were_changed_are_refused(changes, message):
    scores = torch.tensor([[0.9, 0.9, 0.5, 0.1]])
    ranked = RankedEdges.from_scores(scores, torch.tensor([[0, 0], [1, 2]]), ties="best")
    assert (ranked.rank.tolist(), ranked.num_above.tolist()) == ([1, 3], [0, 2])
    tensors = {name: x and torch.tensor(x) for name, x in changes.items()}
    with pytest.raises(ValueError, match=message):
        RankedEdges.from_dict(ranked.to_dict() | tensors)


def test_all_tensors_of_a_ranking_are_looked_at():
    annotated = RankedEdges.__annotations__.items()
    tensors = {name for name, kind in annotated if kind in (torch.Tensor, torch.Tensor | None)}
    assert tensors == {column.name for column in (*validation.RANKING, validation.RANK)}


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 0.0, -1.0])
def test_weights_are_finite_and_positive(wrong):
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, wrong], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"'weight' needs to hold [a-z ]*numbers"):
        RankedEdges.from_dict(make_fields() | {"weight": weight})


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("depth", 0, ValueError, "'depth' needs to be a positive integer"),
        ("depth", 2.5, ValueError, "'depth' needs to be a positive integer"),
        ("user_ids", ["ann", "bob"], ValueError, r"'user_ids' needs to hold 3 ids \(got 2"),
        ("user_ids", ["ann", "bob", "ann"], ValueError, "'user_ids' .* every id once"),
        ("user_ids", ["ann", "bob", []], TypeError, "'user_ids' needs to hold ids that can be"),
        ("user_ids", "abc", TypeError, "'user_ids' needs to be a sequence of ids"),
        ("item_ids", ["w", "x", "y"], ValueError, "'item_ids' needs to hold all items .* up to 3"),
        ("item_ids", {}, TypeError, "'item_ids' needs to be a sequence of ids"),
        ("rank", None, TypeError, "'rank' needs to be a tensor"),
        ("edge_label_index", [[0], [1]], TypeError, "'edge_label_index' needs to be a tensor"),
        ("lists", [], TypeError, "'lists' needs to be a dictionary"),
        ("lists", {}, ValueError, r"'lists' needs to hold \['item', 'ptr'\]"),
        ("catalogue", {"num_items": 3}, ValueError, "'catalogue' needs to hold all items"),
        ("catalogue", {"num_items": 0}, ValueError, "'num_items' needs to be a positive integer"),
        ("catalogue", {"num_items": 4, "color": 1}, TypeError, "color"),
        ("catalogue", 5, TypeError, "int"),
    ],
)
def test_other_fields_that_were_changed_are_refused(name, value, error, message):
    with pytest.raises(error, match=message):
        RankedEdges.from_dict(make_fields() | {name: value})


def test_fields_that_are_missing_or_unknown_are_named():
    fields = make_fields()
    with pytest.raises(ValueError, match=r"'ranked' needs to hold .*'weight'.*\(got "):
        RankedEdges.from_dict({name: fields[name] for name in fields if name != "weight"})
    with pytest.raises(ValueError, match="'ranked' needs to hold"):
        RankedEdges.from_dict(fields | {"color": None})
    with pytest.raises(TypeError, match="'ranked' needs to be a dictionary"):
        RankedEdges.from_dict([])
