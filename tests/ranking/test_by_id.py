"""Lists and embeddings by the original ids of a task."""

import random

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate, rank
from tests.support.machines.missing_packages import hide_package

FRAMES = [pd.DataFrame, pl.DataFrame]
TASK = RankingTask(
    [[0, 1, 1, 2], [2, 0, 2, 1]],
    num_users=3,
    num_items=3,
    seen=[[0, 0, 1, 2], [0, 1, 1, 0]],
    user_ids=["ann", "bob", "cleo"],
    item_ids=[100, 250, 999],
)
LISTS = {"ann": [100, 999], "bob": [999, 100], "cleo": [999, 250]}
METRICS = ["recall@2", "mrr@2"]


def rows_of(lists):
    """The rows of lists in random order, with their ranks and scores."""
    rows = [
        {"user_id": user, "item_id": item, "rank": rank, "score": -rank / 7}
        for user, items in lists.items()
        for rank, item in enumerate(items, start=1)
    ]
    random.Random(0).shuffle(rows)
    return pd.DataFrame(rows)


def naive_ranks(lists, task):
    """The rank of every truth edge after the seen items of a list were dropped; `None` if none."""
    seen = set(map(tuple, task.seen.t().tolist()))
    ranks = {}
    for user, item in task.truth.t().tolist():
        numbers = [
            task.item_ids.index(id_) if id_ in task.item_ids else None
            for id_ in lists.get(task.user_ids[user], [])
        ]
        kept = [number for number in numbers if (user, number) not in seen]
        ranks[user, item] = kept.index(item) + 1 if item in kept else None
    return ranks


def found_ranks(recommender, task, k=50):
    ranked = rank(recommender, task, k=k)
    edges = map(tuple, ranked.edge_label_index.t().tolist())
    ranks = (each if each <= k else None for each in ranked.rank.tolist())
    return dict(zip(edges, ranks, strict=True))


class TestLists:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.filterwarnings("ignore:'recommender' (lists|has no list|holds lists)")
    def test_ranks_are_those_of_a_naive_loop(self, seed):
        random_ = random.Random(seed)
        users, items = [f"u{n}" for n in range(30)], list(range(10, 400, 7))
        pairs = torch.tensor(random_.sample([(u, i) for u in range(30) for i in range(56)], 400))
        task = RankingTask(
            pairs[200:].t(),
            num_users=30,
            num_items=56,
            seen=pairs[:200].t(),
            user_ids=users,
            item_ids=items,
        )
        lists = {
            user: random_.sample(range(10, 400), random_.randrange(60))
            for user in [*random_.sample(users, 25), "unknown"]
        }
        wanted = naive_ranks(lists, task)
        assert None in wanted.values()
        assert len({*wanted.values()}) > 5
        frame = rows_of(lists)
        for recommender in (
            lists,
            {user: np.array(own) for user, own in lists.items()},
            frame.drop(columns="score"),
            pl.DataFrame(frame.drop(columns="rank").to_dict("list")),
        ):
            assert found_ranks(recommender, task) == wanted

    @pytest.mark.parametrize("as_list", [list, tuple, np.array, torch.tensor, pd.Series, pl.Series])
    def test_any_sequence_is_a_list(self, as_list):
        lists = {user: as_list(items) for user, items in LISTS.items()}
        assert evaluate(lists, TASK, METRICS).to_dict() == {"recall@2": 1.0, "mrr@2": 2.5 / 3}

    def test_lists_beside_the_ids_of_users(self):
        lists = dict(zip(TASK.user_ids, LISTS.values(), strict=True))
        assert evaluate(lists, TASK, METRICS)["recall@2"] == 1.0

    @pytest.mark.parametrize("frame", FRAMES)
    def test_equal_scores_rank_the_lower_item_first(self, frame):
        rows = frame({"user_id": ["bob"] * 3, "item_id": [999, 7, 100], "score": [1, 2, 1]})
        with (
            pytest.warns(UserWarning, match="no list for 2 of 3 users"),
            pytest.warns(UserWarning, match=r"lists 1 items that the task does not have \(7\)"),
        ):
            assert found_ranks(rows, TASK, k=3) == {
                (0, 2): None,
                (1, 0): 2,
                (1, 2): 3,
                (2, 1): None,
            }

    def test_users_with_and_without_a_list_are_told_apart(self):
        with pytest.warns(
            UserWarning, match=r"no list for 1 of 3 users with ground truth \('ann'\)"
        ):
            result = evaluate({**LISTS, "ann": []}, TASK, ["recall@2"])
        assert result.per_user["recall@2"].tolist() == [0, 1, 1]

    @pytest.mark.parametrize(
        ("lists", "error", "message"),
        [
            ({1: [999]}, ValueError, "such as the user 'ann' .got no user of the task"),
            ({"ann": ["999"]}, ValueError, "such as the item 100 .got no item of the task"),
            ({"ann": [999, 999]}, ValueError, "every item once for a user .* for 'ann'"),
            ({"ann": [7, 999, 7]}, ValueError, "every item once for a user .* for 'ann'"),
            ({"ann": "999"}, TypeError, "sequence of item ids .*got str for 'ann'"),
            ({"ann": {999}}, TypeError, "sequence of item ids .*got set for 'ann'"),
            ({"ann": 999}, TypeError, "sequence of item ids .*got int for 'ann'"),
            ({"ann": [[999]]}, ValueError, r"item ids .*got \[999\] for 'ann'"),
            ({"ann": [float("nan")]}, ValueError, "item ids .*got nan for 'ann'"),
        ],
    )
    def test_wrong_lists_are_named(self, lists, error, message):
        with pytest.raises(error, match=message):
            rank(lists, TASK)

    @pytest.mark.parametrize("frame", FRAMES)
    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"item_id": [999, 100], "rank": [0, 1]}, "as 1, 2, 3 .*got 2 other ranks"),
            ({"item_id": [999, 100], "rank": [1, 3]}, "as 1, 2, 3 .*got 1 other ranks"),
            ({"item_id": [999, 100], "rank": [1, 1]}, "as 1, 2, 3 .*got 1 other ranks"),
            ({"item_id": [999, 100], "rank": [1, None]}, "every row of the column 'rank'"),
            ({"item_id": [999, 100], "score": [1.0, float("nan")]}, "every row of .*'score'"),
            ({"item_id": [999, None], "score": [1.0, 2.0]}, "every row of .*'item_id'"),
            ({"item_id": [999, 999], "score": [1.0, 2.0]}, "every item once .* for 'ann'"),
            ({"item_id": [999, 100]}, "columns 'user_id', 'item_id', and 'rank' or 'score'"),
            ({"score": [1, 2]}, "columns 'user_id', 'item_id', and 'rank' or 'score'"),
        ],
    )
    def test_wrong_frames_are_named(self, frame, columns, message):
        with pytest.raises(ValueError, match=message):
            rank(frame({"user_id": ["ann", "ann"], **columns}), TASK)

    def test_a_task_without_ids_is_told_how_to_get_them(self):
        task = RankingTask(TASK.truth, num_users=3, num_items=3)
        with pytest.raises(ValueError, match=r"from_frames.*user_ids=.*lists by id, a dict"):
            rank(LISTS, task)

    def test_frames_need_an_extra(self, monkeypatch):
        hide_package(monkeypatch, "narwhals")
        with pytest.raises(ImportError, match=r"pyg-recmetrics\[frames\]"):
            rank(rows_of(LISTS), TASK)


class TestPositions:
    task = RankingTask([[0, 1], [1, 2]], num_users=2, num_items=4, item_ids=[1, 2, 3, 4])

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.long])
    def test_integers_that_may_be_ids_are_warned_about(self, dtype):
        lists = torch.tensor([[2, 1], [3, 1]], dtype=dtype)
        with pytest.warns(UserWarning, match=r"If they are ids, pass dict\(zip\(task.user_ids"):
            rank(lists, self.task)

    @pytest.mark.parametrize(
        ("lists", "ids"),
        [
            ([[2, 0], [3, 1]], [1, 2, 3, 4]),  # there is no id 0
            ([[2, 1], [3, 1]], [0, 1, 2, 3]),
            ([[2, 1], [3, 1]], None),
            ([[2, 1], [3, 1]], ["1", "2", "3", "4"]),
            ([[-1, -1], [-1, -1]], [1, 2, 3, 4]),
        ],
    )
    def test_others_are_not(self, lists, ids):
        task = RankingTask(self.task.truth, num_users=2, num_items=4, item_ids=ids)
        rank(torch.tensor(lists), task)

    def test_ids_out_of_range_are_told_what_to_write(self):
        with pytest.raises(ValueError, match=r"got 1 ids outside.*dict\(zip\(task.user_ids"):
            rank(torch.tensor([[4, 1], [3, 1]]), self.task)


class TestEmbeddings:
    user = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    item = torch.rand(3, 4, generator=torch.Generator().manual_seed(1))
    ranks = rank((user, item), TASK, full=True).rank.tolist()

    def by_id(self, ids, vectors, as_vector):
        labelled = [*zip(ids, map(as_vector, vectors), strict=True)]
        return dict([*labelled[::-1], ("other", labelled[0][1])])

    @pytest.mark.parametrize("as_vector", [torch.Tensor, torch.Tensor.numpy, torch.Tensor.tolist])
    def test_dicts_are_put_in_the_order_of_the_task(self, as_vector):
        users = self.by_id(TASK.user_ids, self.user, as_vector)
        items = self.by_id(TASK.item_ids, self.item, as_vector)
        assert rank((users, items), TASK, full=True).rank.tolist() == self.ranks
        assert rank((self.user, items), TASK, full=True).rank.tolist() == self.ranks
        bias = dict.fromkeys(items, 0.0)
        assert rank((users, items, bias), TASK, full=True).rank.tolist() == self.ranks

    @pytest.mark.parametrize("frame", FRAMES)
    @pytest.mark.parametrize("column", ["id", "item_id"])
    def test_frames_of_vectors(self, frame, column):
        ids, vectors = [*TASK.item_ids, 7][::-1], [*self.item.tolist(), [0.0] * 4][::-1]
        users = self.by_id(TASK.user_ids, self.user, torch.Tensor.tolist)
        narrow = frame({column: ids, "features": vectors})
        wide = frame(
            {column: ids, **{f"f{n}": [vector[n] for vector in vectors] for n in range(4)}}
        )
        for items in (narrow, wide):
            assert rank((users, items), TASK, full=True).rank.tolist() == self.ranks

    def test_labelled_columns_of_vectors(self):
        items = pd.Series(self.item.tolist(), index=TASK.item_ids)[::-1]
        assert rank((self.user, items), TASK, full=True).rank.tolist() == self.ranks
        assert rank((self.user, items.to_frame()), TASK, full=True).rank.tolist() == self.ranks

    @pytest.mark.parametrize(
        ("items", "message"),
        [
            ({100: [1.0], 999: [2.0]}, r"embedding of every item .*got none of 1: 250"),
            (pd.DataFrame({"id": [100, 100], "v": [[1.0], [2.0]]}), "one embedding for every id"),
            (pd.Series([[1.0], [2.0]], index=[100, 100]), "one embedding for every id"),
            ({100: [1.0], 999: [2.0], 250: [1.0, 2.0]}, "rows of one length"),
        ],
    )
    def test_wrong_ones_are_named(self, items, message):
        with pytest.raises(ValueError, match=message):
            rank((self.user, items), TASK)

    def test_a_task_without_ids_is_told_how_to_get_them(self):
        task = RankingTask(TASK.truth, num_users=3, num_items=3)
        with pytest.raises(ValueError, match=r"from_frames.*embeddings by id"):
            rank((self.user, {100: [1.0]}), task)
