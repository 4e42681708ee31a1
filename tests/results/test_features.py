"""What users and items differ in, against plain loops over users."""

import datetime
import math
from collections import Counter

import numpy as np
import pytest
import torch

from pyg_recmetrics import Catalogue, RankedEdges
from pyg_recmetrics.results.features import (
    columns_of_items,
    columns_of_users,
    make_feature,
    read_columns,
)
from tests.support.cases.random_tasks import random_scores, random_task


def conditions(column, name="x"):
    """Which rows meet each condition, by what it says."""
    feature = make_feature(name, np.asarray(column))
    return {
        label: feature.is_met(number).nonzero().squeeze(1).tolist()
        for number, label in enumerate(feature.labels)
    }


class TestConditions:
    def test_of_numbers_are_ranges(self):
        found = conditions([3, 1, 2, 1])
        assert found == {
            "x = 1": [1, 3],
            "x ≤ 2": [1, 2, 3],
            "x = 2": [2],
            "x ≥ 2": [0, 2],
            "x = 3": [0],
        }

    @pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64, np.uint8, object])
    def test_hold_for_the_rows_that_they_describe(self, dtype):
        generator = np.random.default_rng(0)
        column = generator.permutation(np.arange(100) // 2).astype(dtype)
        found = conditions(column)
        assert len(found) == 8 * 9 / 2 - 1
        for label, rows in found.items():
            sign, *ends = label.removeprefix("x ").replace(" to", "").split()
            if sign in "≤≥=":
                wanted = {
                    "≤": column <= int(ends[0]),
                    "≥": column >= int(ends[0]),
                    "=": column == int(ends[0]),
                }[sign]
            else:
                wanted = (column >= int(sign)) & (column <= int(ends[0]))
            assert rows == wanted.nonzero()[0].tolist()
            assert len(rows) >= 10

    def test_of_names_and_booleans_are_single_labels(self):
        assert conditions(["b", "a", "b"]) == {"x = a": [1], "x = b": [0, 2]}
        assert conditions([True, False]) == {"x = False": [1], "x = True": [0]}
        assert conditions(np.array([True, 2, "a"], dtype=object)) == {
            "x = True": [0],
            "x = 2": [1],
            "x = a": [2],
        }

    def test_of_many_names_are_the_most_frequent(self):
        names = [f"{number:03}" for number in range(60) for _ in range(1 + (number >= 10))]
        assert list(conditions(names)) == [f"x = {number:03}" for number in range(10, 60)]

    def test_of_dates_are_ranges(self):
        days = [datetime.date(2024, 1, day) for day in (3, 1, 2)]
        for column in (days, np.array(days, dtype="M8[D]"), np.array(days, dtype="M8[ns]")):
            assert conditions(column)["x ≤ 2024-01-02"] == [1, 2]

    def test_name_numbers_in_few_digits(self):
        labels = list(conditions([0.123456, 1234.5678]))
        assert labels == ["x = 0.123", "x = 1235"]

    @pytest.mark.parametrize(
        "column",
        [
            [1.0, math.nan, 2.0],
            np.array([1, None, 2], dtype=object),
            np.array(["1970-01-02", "NaT", "1970-01-03"], dtype="M8[D]"),
            np.array(["a", None, "b"], dtype=object),
            np.array(["a", math.nan, "b"], dtype=object),
        ],
    )
    def test_a_missing_value_is_one_too(self, column):
        found = conditions(column)
        assert list(found.values()) == [[0], [2], [1]]
        assert list(found)[2] == "x missing"

    def test_there_are_none_where_all_are_equal_or_missing(self):
        assert conditions([5, 5]) == {}
        assert conditions([math.nan, math.nan]) == {"x missing": [0, 1]}
        assert conditions(np.empty(0)) == {}


class TestOfUsers:
    @pytest.fixture
    def task(self, device):
        return random_task(40, 15, truth_share=0.2, seen_share=0.3).to(device)

    def ranked(self, task, **facts):
        ranked = RankedEdges.from_scores(random_scores(task, 1).to(task.device), task.truth)
        return ranked.with_catalogue(Catalogue(15, seen=task.seen, **facts))

    def histories(self, task):
        found = [[] for _ in range(task.num_users)]
        for user, item in task.seen.t().tolist():
            found[user].append(item)
        return found

    @pytest.mark.parametrize("of_several", [False, True])
    def test_they_are_those_of_a_loop(self, task, of_several):
        generator = torch.Generator().manual_seed(0)
        flags = torch.rand(15, 4, generator=generator) < 0.4
        category = flags if of_several else torch.randint(4, (15,), generator=generator)
        columns = columns_of_users(self.ranked(task, item_category=category.to(task.device)), task)
        popularity = Counter(task.seen[1].tolist())
        for user, items in enumerate(self.histories(task)):
            own = {name: column[user] for name, column in columns.items()}
            assert own["training degree"] == len(items)
            assert own["relevant items"] == int((task.truth[0] == user).sum())
            labels = Counter(
                label
                for item in items
                for label in (flags[item].nonzero().flatten() if of_several else [category[item]])
                for label in [int(label)]
            )
            if items:
                mean = sum(popularity[item] for item in items) / len(items)
                assert own["popularity of the history"] == pytest.approx(mean)
            else:
                assert math.isnan(own["popularity of the history"])
            if labels:
                most = max(labels.values())
                assert own["main category"] == str(min(x for x in labels if labels[x] == most))
                shares = [count / sum(labels.values()) for count in labels.values()]
                effective = math.exp(-sum(share * math.log(share) for share in shares))
                assert own["categories of the history"] == pytest.approx(effective)
            else:
                assert own["main category"] is None
                assert math.isnan(own["categories of the history"])

    def test_each_edge_has_its_user_and_its_item(self, task):
        ranked = self.ranked(task)
        of_users, of_edges = (columns_of_users(x, task) for x in (ranked, ranked.each_edge()))
        user, item = task.truth.cpu()
        popularity = torch.bincount(task.seen[1].cpu(), minlength=15)
        assert of_edges.pop("popularity of the item").tolist() == popularity[item].tolist()
        for name, column in of_users.items():
            assert np.array_equal(of_edges[name], column[user], equal_nan=True), name

    def test_without_seen_edges_there_is_no_history(self):
        task = random_task(40, 15, truth_share=0.2, seen_share=0)
        ranked = RankedEdges.from_scores(random_scores(task, 1), task.truth)
        for known in (task, None):
            assert list(columns_of_users(ranked, known)) == ["relevant items"]

    def test_without_a_task_histories_are_those_of_the_catalogue(self):
        truth, seen = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 5, 6], [0, 0, 1]])
        ranked = RankedEdges.from_topk(torch.tensor([[0, 1], [1, 0]]), truth)
        columns = columns_of_users(ranked.with_catalogue(Catalogue(2, seen=seen)), None)
        assert columns["training degree"].tolist() == [1, 0]
        # The popularity counts users who are not ranked.
        assert columns["popularity of the history"][0] == 2


class TestOfItems:
    def test_they_are_what_the_catalogue_knows(self):
        seen = torch.tensor([[0, 1, 1], [0, 0, 2]])
        ranked = RankedEdges.from_topk(torch.tensor([[0, 1]]), torch.tensor([[0], [1]]))
        degree = torch.tensor([0, 1, 0])

        def columns(**facts):
            catalogue = Catalogue(3, seen=seen, **facts)
            found = columns_of_items(ranked.with_catalogue(catalogue), degree)
            return {name: column.tolist() for name, column in found.items()}

        known = {"ground-truth degree": [0, 1, 0], "training degree": [2, 0, 1]}
        assert columns() == known
        assert columns(item_category=[7, 7, 9]) == known | {"category": ["0", "0", "1"]}
        flags = torch.tensor([[1, 0], [1, 1], [0, 0]])
        assert columns(item_category=flags) == known | {
            "category 0": [True, True, False],
            "category 1": [False, True, False],
        }
        assert list(columns_of_items(ranked, degree)) == ["ground-truth degree"]


class TestGiven:
    def test_arrays_are_in_the_order_of_rows(self):
        given = {"a": [1, 2], "b": torch.tensor([True, False]), 3: np.array(["x", "y"])}
        found = read_columns(given, ["u", "v"], 2, "user")
        assert {name: column.tolist() for name, column in found.items()} == {
            "a": [1, 2],
            "b": [True, False],
            "3": ["x", "y"],
        }
        assert read_columns(None, None, 2, "user") == {}

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_are_in_the_order_of_ids(self, library):
        frames = pytest.importorskip(library)
        pytest.importorskip("narwhals")
        columns = {
            "user": ["w", "u", "x"],
            "age": [30, 10, 99],
            "score": [0.5, 0.25, 1.0],
            "country": ["NL", "DE", "FR"],
            "paid": [True, False, True],
            "since": np.array(["2024-01-03", "2024-01-01", "2024-01-09"], dtype="M8[us]"),
        }
        found = read_columns(frames.DataFrame(columns), ["u", "v", "w"], 3, "user")
        wanted = {
            "age": {"age = 10": [0], "age = 30": [2], "age missing": [1]},
            "score": {"score = 0.25": [0], "score = 0.5": [2], "score missing": [1]},
            "country": {"country = DE": [0], "country = NL": [2], "country missing": [1]},
            "paid": {"paid = False": [0], "paid = True": [2], "paid missing": [1]},
            "since": {
                "since = 2024-01-01": [0],
                "since = 2024-01-03": [2],
                "since missing": [1],
            },
        }
        assert {name: conditions(column, name) for name, column in found.items()} == wanted

    @pytest.mark.parametrize("name", ["user", "user_id", "id"])
    def test_the_index_of_a_frame_may_hold_the_ids(self, name):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"age": [30, 10]}, index=pd.Index([1, 0], name=name))
        assert read_columns(frame, None, 2, "user")["age"].tolist() == [10, 30]
        assert read_columns(frame.reset_index(), None, 2, "user")["age"].tolist() == [10, 30]

    def test_missing_values_of_pandas_stay_missing(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(
            {
                "id": [0, 1, 2],
                "a": pd.array([1, None, 3], dtype="Int64"),
                "b": pd.array(["x", None, "y"], dtype="string"),
                "c": pd.Categorical(["x", None, "y"]),
                "d": pd.array([True, None, False], dtype="boolean"),
            }
        )
        for name, column in read_columns(frame, None, 3, "user").items():
            assert conditions(column, name)[f"{name} missing"] == [1]

    def test_what_does_not_fit_is_named(self):
        with pytest.raises(ValueError, match=r"of shape \[3\] \(got \[2\] for 'age'\)"):
            read_columns({"age": [1, 2]}, None, 3, "user")
        with pytest.raises(TypeError, match="'features' needs to be a data frame of pandas"):
            read_columns([1, 2], None, 2, "user")

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"age": [1]}, "an index of ids that is called 'user', 'user_id' or 'id'"),
            ({"id": [0, 0], "age": [1, 2]}, r"one row for every user \(got 2 rows of 1\)"),
            ({"id": ["a"], "age": [1]}, r"got ids such as 'a', where 0 is needed"),
        ],
    )
    def test_frames_that_do_not_fit_are_named(self, columns, message):
        pd = pytest.importorskip("pandas")
        with pytest.raises(ValueError, match=message):
            read_columns(pd.DataFrame(columns), None, 2, "user")
