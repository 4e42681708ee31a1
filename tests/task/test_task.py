"""RankingTask: what raw tensors become, and what is said of odd ones."""

import copy
import pickle
import warnings

import pandas as pd
import pytest
import torch

from pyg_recmetrics import RankingTask
from tests.support.cases.strategies import pairs

TRUTH = torch.tensor([[0, 0, 1], [2, 3, 0]])
RATED = {"weight": torch.tensor([4, 3, 5])}
QUERY = [[0, 0], [0, 4], [0, 1]]


def task(truth=TRUTH, num_users=3, num_items=4, **options):
    return RankingTask(truth, num_users=num_users, num_items=num_items, **options)


class TestRawTensors:
    def test_a_rating_of_zero_is_not_dropped_in_silence(self):
        with pytest.warns(UserWarning, match=r"^2 edges have .* zero .*'threshold'") as w:
            made = task(weight=torch.tensor([0, -1, 2]))
        assert len(w) == 1
        assert w[0].filename == __file__
        assert pairs(made.truth) == {(1, 0)}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made.select_users(torch.tensor([1]))
            made = task(weight=torch.tensor([0, -1, 2]), threshold=1)
        assert pairs(made.truth) == {(1, 0)}

    @pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.float, torch.double])
    @pytest.mark.parametrize("rating", [0.1, 0.7, 4.1])
    def test_a_rating_reaches_its_own_threshold_in_any_precision(self, dtype, rating):
        weight = torch.tensor([rating, 0.9 * rating, 2 * rating], dtype=dtype)
        made = task(weight=weight, threshold=rating)
        assert pairs(made.truth) == {(0, 2), (1, 0)}
        assert pairs(RankingTask.from_dict(made.to_dict()).truth) == {(0, 2), (1, 0)}

    def test_truth_that_is_seen_is_taken_out_with_one_warning(self):
        seen = torch.tensor([[0, 0, 2], [3, 1, 0]])
        with pytest.warns(UserWarning, match="that are also in 'seen'.*: 1 of 3") as w:
            made = task(seen=seen)
        assert len(w) == 1
        assert pairs(made.truth) == {(0, 2), (1, 0)}
        assert made.degree.tolist() == [1, 1, 0]

    def test_other_users_are_not_looked_at(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = task(users=torch.tensor([1, 1]), seen=torch.tensor([[0], [2]]))
        assert pairs(made.truth) == {(1, 0)}
        assert made.users.tolist() == [1]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]
)
def test_a_task_can_be_copied_and_pickled(copied):
    made = task(seen=torch.tensor([[2], [0]]))
    assert made.catalogue.popularity.tolist() == [1, 0, 0, 0]
    again = copied(made)
    assert repr(again) == repr(made)
    assert torch.equal(again.truth, made.truth)
    assert again.catalogue.popularity.tolist() == [1, 0, 0, 0]
    with pytest.raises(AttributeError, match="seen"):
        again.seen = None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"truth": TRUTH.float()}, ValueError, r"'truth' needs to hold integers .*float32"),
        ({"truth": pd.DataFrame([[0, 1]])}, TypeError, "'truth' .*got a data frame, .*from_frames"),
        ({"truth": TRUTH.t()}, ValueError, r"\[2, num_edges\].*\(got \[3, 2\]\)"),
        ({"truth": TRUTH - 1}, ValueError, r"user ids in \[0, 3\) \(got -1\)"),
        ({"num_users": 1}, ValueError, r"'truth' .* user ids in \[0, 1\) \(got 1\)"),
        ({"num_items": 3}, ValueError, r"'truth' .* item ids in \[0, 3\) \(got 3\)"),
        ({"num_items": 2**52, "num_users": 2**12}, ValueError, r"'truth' .* less than 2\*\*63"),
        ({"num_users": 2.0}, ValueError, r"'num_users' needs to be a positive integer"),
        ({"seen": TRUTH + 4}, ValueError, r"'seen' needs to hold user ids"),
        ({"weight": torch.ones(2)}, ValueError, r"'weight' .* shape \[3\].*\(got \[2\]\)"),
        ({"weight": torch.tensor([1, torch.nan, torch.inf])}, ValueError, "got 2 NaN or inf"),
        ({"candidates": torch.tensor([4])}, ValueError, r"'candidates' .* item ids .*\(got 4\)"),
        ({"users": torch.tensor([3])}, ValueError, r"'users' .* user ids in \[0, 3\) \(got 3\)"),
        ({"exclude_seen": 0}, TypeError, r"'exclude_seen' needs to be a boolean \(got 0\)"),
        ({"users": TRUTH}, ValueError, r"'users' needs to have shape \[num_users\]"),
        ({"users": torch.tensor([2])}, ValueError, r"'users' .*\(got 1 users, none with"),
        ({"truth": TRUTH[:, :0]}, ValueError, r"'truth' needs to hold at least one edge"),
        ({"weight": torch.zeros(3)}, ValueError, r"'weight' needs .*\(got at most 0\)"),
        ({"threshold": 4}, ValueError, r"'threshold' needs a 'weight' .*\(got 4 and no weights\)"),
        ({**RATED, "threshold": 0}, ValueError, r"'threshold' needs to be positive \(got 0\)"),
        ({**RATED, "threshold": "4"}, ValueError, r"'threshold' needs to be a finite number"),
        ({**RATED, "threshold": 6}, ValueError, r"\(got 6, and weights of at most 5\)"),
        ({"seen": TRUTH}, ValueError, "is a leak; .*'exclude_seen=False' .*are also in 'seen'"),
        ({"candidates": [1]}, ValueError, "'candidates' .*that are not among the 'candidates'"),
        ({"seen": TRUTH[:, :2], "candidates": [2, 3]}, ValueError, "not among the 'candidates'"),
        ({"seen": TRUTH.to("meta")[:, :0]}, ValueError, r"'seen' .* device of 'truth', cpu \(got"),
        ({"query": [[0], [1]]}, ValueError, r"'query' .* shape \[3, num_columns\], .*\[2, 1\]"),
        ({"query": torch.rand(3, 2)}, ValueError, r"'query' needs to hold integers \(got torch.fl"),
        ({"num_relations": 2}, ValueError, r"'num_relations' needs a 'query' .*\(got none\)"),
        ({"query": [[0], [1], [2]], "num_relations": 2}, ValueError, r"two columns, .*\[3, 1\]"),
        ({"query": QUERY, "num_relations": 2}, ValueError, r"relation ids in \[0, 4\) \(got 4\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*taken out of the truth")
def test_wrong_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        task(**options)


def test_names_and_numbers_of_persons_say_the_same():
    names, numbers = ["eve", "fay", "eve"], torch.tensor([7, 9, 7])
    for person in (names, numbers, numbers.numpy(), tuple(names)):
        assert task(person=person).person.tolist() == [0, 1, 0]
        assert task().with_person(person).person.tolist() == [0, 1, 0]
    assert task().person is None
    assert "person=[3]" in repr(task(person=names))


@pytest.mark.parametrize("form", [list, tuple, torch.tensor])
@pytest.mark.parametrize("items", [[5], [2, 5], [2, 5, 6]])
def test_candidates_are_a_list_of_items_however_many(form, items):
    made = RankingTask(
        torch.tensor([[0, 1], [5, 0]]),
        num_users=2,
        num_items=9,
        candidates=form(items),
        missing="count",
    )
    assert made.candidates.tolist() == items


@pytest.mark.parametrize("shift", [0, 1, 20])
@pytest.mark.parametrize("seen", [None, [[0], [19]], [[0], [20]]])
def test_items_that_are_numbered_behind_the_users_are_doubted(shift, seen):
    user, item = torch.randint(20, (2, 100), generator=torch.Generator().manual_seed(0))
    is_doubted = shift == 20 and (seen is None or seen[1][0] >= 20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        RankingTask(
            torch.stack([user, item + shift]),
            num_users=20,
            num_items=60,
            seen=seen and torch.tensor(seen),
        )
    said = [warning for warning in caught if "number of users" in str(warning.message)]
    assert len(said) == is_doubted
    assert all(warning.filename == __file__ for warning in said)
