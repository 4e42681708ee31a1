"""Tasks from data frames and matrices."""

import datetime
import re
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankingTask, evaluate

#: What `tests/task/test_ambiguities.py` looks at.
pytestmark = [
    pytest.mark.filterwarnings("ignore:'test' comes alone"),
    pytest.mark.filterwarnings("ignore:all .* ratings count as relevant"),
]

FRAMES = [pd.DataFrame, pl.DataFrame]
TRAIN = {"user_id": ["bob", "ann", "bob"], "item_id": ["jam", "tea", "egg"], "stars": [5, 1, 2]}
TEST = {"user_id": ["ann", "bob", "ann"], "item_id": ["egg", "tea", "jam"], "stars": [4, 2, 5]}


def by_id(task, edges):
    """Edges by the original ids, sorted."""
    return sorted((task.user_ids[user], task.item_ids[item]) for user, item in edges.t().tolist())


@pytest.mark.parametrize("frame", FRAMES)
class TestFromFrames:
    def test_ids_that_only_occur_in_test_are_named(self, frame):
        test = {"user_id": ["ann", "cy"], "item_id": ["egg", "egg"]}
        with pytest.warns(
            UserWarning, match=r"'test' has 1 user \('cy'\) that .* learned about them$"
        ):
            RankingTask.from_frames(train=frame(TRAIN), test=frame(test))
        many = {"user_id": ["ann"] * 7, "item_id": list("abcdefg")}
        with pytest.warns(
            UserWarning, match=r"has 7 items \('a', 'b', .*, 'e' and 2 more\) .* way"
        ):
            RankingTask.from_frames(train=frame(TRAIN), test=frame(many))
        RankingTask.from_frames(test=frame(test))  # nothing to compare with

    def test_a_model_propagates_over_the_training_frame(self, frame):
        task = RankingTask.from_frames(train=frame(TRAIN), test=frame(TEST))
        assert sorted(task.edge_index.t().tolist()) == [
            [0, 4], [1, 2], [1, 3], [2, 1], [3, 1], [4, 0]
        ]  # fmt: skip
        model = LightGCN(num_nodes=5, embedding_dim=4, num_layers=1)
        assert evaluate(model, task, "recall@3")["recall@3"] == 1
        assert evaluate(model, task, "recall@3").ranked.item_ids == ("egg", "jam", "tea")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"user": "who"}, "'user' needs to be a column of 'test', one of ['user_id', 'item_id"),
            ({"rating": "score"}, "'rating' needs to be a column of 'test'"),
            ({"rating": "user_id"}, "'rating' needs to hold numbers"),
            (
                {"threshold": 3},
                "'threshold' needs a column of ratings, which 'rating' names (got 3)",
            ),
            ({"rating": "stars", "threshold": 6}, "'threshold' needs to be reached"),
        ],
    )
    def test_wrong_options_are_named(self, frame, options, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            RankingTask.from_frames(train=frame(TRAIN), test=frame(TEST), **options)

    def test_missing_values_are_counted(self, frame):
        for column, owner in (("user_id", "train"), ("item_id", "test"), ("stars", "test")):
            frames = {"test": dict(TEST), "train": dict(TRAIN)}
            frames[owner][column] = [*frames[owner][column][:2], None]
            message = f"'{owner}' needs a value in every row of the column '{column}' (got 1 with"
            with pytest.raises(ValueError, match=re.escape(message)):
                RankingTask.from_frames(
                    train=frame(frames["train"]), test=frame(frames["test"]), rating="stars"
                )


#: Three ids each, some of which are nearly equal.
IDS = {
    "integers": [2**40, -7, 30],
    "numbers": [0.5 + 2**-53, 0.25, 0.5],
    "dates": [datetime.date(2020, 1, day) for day in (3, 1, 2)],
    "moments": [datetime.datetime(2020, 1, 1, 0, 0, 0, 1 + tick) for tick in (2, 0, 1)],
    "nanoseconds": pd.to_datetime([3, 1, 2]),
    "spans of nanoseconds": pd.to_timedelta([3, 1, 2]),
    "texts": ["ä", "", "b"],
    "UUIDs": [uuid.UUID(int=x) for x in (3, 1, 2)],
    "decimals": [Decimal(x) for x in (3, 1, 2)],
}


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("kind", IDS)
def test_ids_of_any_type_are_numbered_in_their_order(kind, table):
    users = IDS[kind] if isinstance(IDS[kind], list) else pl.Series(IDS[kind])
    users = users if isinstance(users, list) or table is pl.DataFrame else IDS[kind]
    task = RankingTask.from_frames(
        test=table({"user_id": users, "item_id": [5, 6, 7]}),
        train=table({"user_id": users[::-1], "item_id": [5, 6, 7]}),
        exclude_seen=False,
    )
    assert len(task.user_ids) == 3
    assert task.truth.tolist() == [[0, 1, 2], [1, 2, 0]]
    if isinstance(users, list):
        assert task.user_ids == tuple(sorted(users))
    assert len(evaluate(torch.rand(3, 3), task, "mrr").to_pandas(per_user=True)) == 3


def test_ids_of_mixed_types():
    frame = pd.DataFrame({"user_id": [True, False], "item_id": [("a", 1), ("a", 0)]})
    task = RankingTask.from_frames(test=frame)
    assert (task.user_ids, task.item_ids) == ((False, True), (("a", 0), ("a", 1)))
    mixed = pd.DataFrame({"user_id": [3, "x", 1], "item_id": [1, 1, 1]})
    assert RankingTask.from_frames(test=mixed).user_ids == (1, 3, "x")
    assert RankingTask.from_frames(test=mixed[::-1]).user_ids == (1, 3, "x")


@pytest.mark.parametrize("ids", [["a", "b", "c"], [1, 2, 3]])
def test_categories_are_what_they_stand_for(ids):
    first, second, third = ids
    test = pd.DataFrame({"user_id": [second, first], "item_id": ["x", "y"]})
    train = pd.DataFrame({"user_id": [third, first, second], "item_id": ["x", "x", "y"]})
    test["user_id"] = pd.Categorical(test["user_id"], categories=[third, second, first])
    train["user_id"] = pd.Categorical(train["user_id"])
    task = RankingTask.from_frames(train=train, test=test)
    assert task.user_ids == tuple(ids)
    assert by_id(task, task.truth) == [(first, "y"), (second, "x")]
    enum = pl.Enum(["c", "b", "a"])
    test = pl.DataFrame(
        {"user_id": ["b", "a"], "item_id": [1, 2]}, schema_overrides={"user_id": enum}
    )
    assert RankingTask.from_frames(test=test).user_ids == ("a", "b")


def test_columns_may_be_numbers():
    frame = pd.DataFrame([["bob", 3, 5], ["ann", 2, 4]])
    task = RankingTask.from_frames(test=frame, user=0, item=1, rating=2)
    assert (task.user_ids, task.item_ids) == (("ann", "bob"), (2, 3))
    assert task.weight.tolist() == [4, 5]


@pytest.mark.parametrize(
    ("test_ids", "train_ids"),
    [
        (pl.Series([1, 2], dtype=pl.Int8), pl.Series([1000, 2, 1])),
        (pl.Series([1, 2], dtype=pl.UInt64), pl.Series([2**62, 2, 1])),
        (pl.Series([0.1, 2.0], dtype=pl.Float32), pl.Series([2.0, 0.1, 5.0], dtype=pl.Float32)),
        (pl.Series([1, 2]), pl.Series([2.0, 1.0, 7.5])),
        (pl.Series([True, False]), pl.Series([False, True, True])),
    ],
)
def test_types_that_differ_between_frames(test_ids, train_ids):
    test = pl.DataFrame({"user_id": test_ids, "item_id": ["x", "y"]})
    train = pl.DataFrame({"user_id": train_ids, "item_id": ["y", "x", "z"]})
    task = RankingTask.from_frames(train=train, test=test, exclude_seen=False)
    wanted = sorted(zip(test_ids.to_list(), ["x", "y"], strict=True))
    assert by_id(task, task.truth) == wanted
    assert task.user_ids == tuple(sorted({*test_ids.to_list(), *train_ids.to_list()}))


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ({"test": pl.DataFrame({"user_id": [[1]], "item_id": [1]})}, "single ids .*unhashable"),
        ({"test": pd.DataFrame({"user_id": [[1]], "item_id": [1]})}, "single ids .*unhashable"),
        (
            {"test": pd.DataFrame([[1, 2, 3]], columns=["user_id", "item_id", "user_id"])},
            "'test' needs to have columns of different names",
        ),
        ({"test": pd.DataFrame({"who": [1], "item": [2]})}, "a column of users with a usual name"),
        (
            {
                "test": pd.DataFrame(
                    {"user_id": [1, 2], "item_id": pd.Series([7, "7"], dtype=object)}
                )
            },
            "in which ids are texts, or none is .got '7' as a text and as another type.",
        ),
        ({"test": TEST}, r"'test' needs to be a data frame .* \(got dict\)"),
        (
            {"train": np.zeros((2, 2)), "test": pd.DataFrame(TEST)},
            r"'train' needs to be a data frame .* \(got ndarray\)",
        ),
    ],
)
def test_odd_frames_are_named(frames, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RankingTask.from_frames(**frames)


class TestFromMatrix:
    test = torch.tensor([[0, 0, 5], [4, 0, 0]])
    train = torch.tensor([[3, 0, 0], [0, 0, 2]])

    def test_ones_are_no_weights(self):
        task = RankingTask.from_matrix(test=np.eye(3, dtype=bool))
        assert (task.weight, task.edge_index) == (None, None)
        assert task.truth.tolist() == [[0, 1, 2], [0, 1, 2]]

    def test_labels_are_the_ids_in_their_order(self):
        frame = pd.DataFrame(self.test.numpy(), index=["b", "a"], columns=[7, 8, 9])
        ids = {"user_ids": ["b", "a"], "item_ids": [7, 8, 9]}
        RankingTask.from_matrix(train=frame * 0 + 1, test=frame, exclude_seen=False, **ids)
        message = "'{}' needs to be labelled by the original ids of the task in their order"
        with pytest.raises(ValueError, match=message.format("test")):
            RankingTask.from_matrix(test=frame)
        with pytest.raises(ValueError, match=message.format("train")):
            RankingTask.from_matrix(train=frame[::-1], test=frame, **ids)

    def test_wrong_matrices_are_named(self):
        with pytest.raises(
            ValueError, match=r"'train' needs to have the shape of 'test', \[2, 3\]"
        ):
            RankingTask.from_matrix(train=self.train.t(), test=self.test)
        with pytest.raises(ValueError, match=r"'test' needs to be a matrix \(got shape \[3\]\)"):
            RankingTask.from_matrix(test=self.test[0])
        with pytest.raises(ValueError, match="'test' needs to hold finite numbers"):
            RankingTask.from_matrix(test=np.array([[1.0, np.nan]]))
        with pytest.raises(ValueError, match=r"'item_ids' needs to hold 3 ids \(got 2\)"):
            RankingTask.from_matrix(test=self.test, item_ids=["a", "b"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_may_be_empty(library):
    frames = pytest.importorskip(library)
    full = frames.DataFrame({"user_id": ["a", "b"], "item_id": [3, 4]})
    for empty in (full[:0], frames.DataFrame({"user_id": [], "item_id": []})):
        with pytest.warns(UserWarning, match="'test' has 2 users"):
            task = RankingTask.from_frames(train=empty, test=full)
        assert torch.equal(task.truth, RankingTask.from_frames(test=full).truth)
        assert task.seen.size(1) == 0
        for train in (None, full, empty):
            with pytest.raises(ValueError, match=r"'test' needs to hold at least one row \(got no"):
                RankingTask.from_frames(train=train, test=empty)


@pytest.mark.parametrize("items", [["egg", "jam", "jam"], pl.Series(["jam", "egg"])])
def test_candidates_may_be_ids_that_all_users_share(items):
    task = RankingTask.from_frames(pd.DataFrame(TEST), candidates=items, missing="count")
    assert [task.item_ids[item] for item in task.candidates] == ["egg", "jam"]
    assert task.truth.size(1) == len(TEST["item_id"])
    with pytest.raises(ValueError, match="'candidates' needs a value in every row"):
        RankingTask.from_frames(pd.DataFrame(TEST), candidates=["egg", None])


@pytest.mark.filterwarnings("ignore:.*that 'train' does not have")
@pytest.mark.parametrize("make", FRAMES)
def test_candidates_are_those_of_each_user_by_their_ids(make):
    test = make({"user_id": ["b", "a", "c"], "item_id": [30, 10, 20]})
    train = make({"user_id": ["a", "b"], "item_id": [20, 10]})
    wanted = [("a", 30), ("a", 10), ("b", 30), ("c", 40), ("c", 10)]
    users, items = zip(*wanted, strict=True)
    candidates = make({"user_id": [*users], "item_id": [*items]})
    task = RankingTask.from_frames(test=test, train=train, candidates=candidates)
    found = [(task.user_ids[u], task.item_ids[i]) for u, i in task.candidates.t().tolist()]
    assert sorted(found) == sorted(wanted)
    assert (task.item_ids, task.missing) == ((10, 20, 30, 40), "count")
    scores = torch.tensor([[1.0, 9, 0, 9], [9, 9, 1, 9], [9, 9, 9, 9]])
    assert evaluate(scores, task, "recall@1").per_user["recall@1"].tolist() == [1, 1, 0]
    dropped = RankingTask.from_frames(
        test=test, train=train, candidates=candidates, exclude_seen=False
    )
    assert dropped.truth.size(1) == 3
