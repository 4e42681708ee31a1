"""Which recommenders can be ranked, and what is said of those that cannot."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankingTask, evaluate, rank


def test_lightgcn_is_propagated_once(lastfm):
    task = RankingTask.from_data(lastfm)
    model = LightGCN(task.num_users + task.num_items, embedding_dim=8, num_layers=1)
    calls = []
    model.convs[0].register_forward_hook(lambda *_: calls.append(1))
    rank(model, task, batch_size=100)
    assert len(calls) == 1


OUTSIDE = r"ids in \[0, 3\), or -1 .*\(got -2 to 3\); .*; scores need to be floating-point"
WRONG_ORDER = r"\[2, dim\] and item embeddings of shape \[3, dim\], in this order"


class TestWrongRecommenders:
    task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)

    @pytest.mark.parametrize(
        ("recommender", "error", "message"),
        [
            ("model", TypeError, r"'recommender' needs to be one of these \(got str\):"),
            (torch.rand(3, 3), ValueError, r"scores .*\[2, 3\] \(got \[3, 3\]\); pass"),
            (torch.rand(2), ValueError, r"one score per item of shape \[3\] \(got \[2\]\)"),
            (torch.zeros(3, 3).long(), ValueError, r"item ids of shape \[2, K\] \(got \[3, 3\]\)"),
            (torch.zeros(2, 3).bool(), ValueError, "scores or integer item ids .*bool"),
            (torch.empty(2, 0).long(), ValueError, r"shape \[2, K\] \(got \[2, 0\]\)"),
            ((torch.empty(2, 0), torch.empty(3, 0)), ValueError, r"got \[2, 0\]"),
            (torch.tensor([[0, 1, 2], [3, -2, 0]]), ValueError, OUTSIDE),
            (lambda users: torch.rand(1, 3), ValueError, r"\[2, 3\] \(got \[1, 3\]\)"),
            (lambda users: None, TypeError, "needs to be a tensor, .*got NoneType"),
            (lambda users: torch.zeros(2, 3).long(), ValueError, "floating-point"),
            ((torch.rand(2, 4),), ValueError, "got 1 parts"),
            ([0.1, 0.2, 0.3, 0.4], ValueError, r"got 4 parts\); write torch.tensor\(...\) around"),
            ((torch.rand(3, 4), torch.rand(2, 4)), ValueError, WRONG_ORDER),
            ((torch.rand(2, 4), torch.rand(3, 5)), ValueError, r"item embeddings .*\[3, 5\]"),
            ((torch.rand(3, 4), torch.rand(3, 4)), ValueError, r"user embeddings .*\[3, 4\]"),
            (
                (torch.rand(2, 4), torch.rand(3, 4), torch.rand(4)),
                ValueError,
                r"item biases of shape \[3\]",
            ),
            (
                (torch.rand(2, 4), torch.rand(3, 4) * torch.nan),
                ValueError,
                "got 12 NaN or infinite",
            ),
            (
                (torch.full((2, 4), 1e30), torch.full((3, 4), 1e30), torch.zeros(3)),
                ValueError,
                "range of single",
            ),
            ((torch.rand(2, 4), torch.zeros(3, 4).long()), ValueError, "floating-point"),
            (torch.rand(2, 3, device="meta"), ValueError, r"device of 'task', cpu \(got meta\)"),
        ],
    )
    def test_they_are_named(self, recommender, error, message):
        with pytest.raises(error, match=message):
            rank(recommender, self.task)

    def test_factors_in_columns_are_to_be_transposed(self):
        task = RankingTask([[0, 1], [0, 1]], num_users=6, num_items=9)
        user, item = torch.rand(4, 6), torch.rand(4, 9)
        with pytest.raises(ValueError, match=r"\(got \[4, 6\] and \[4, 9\]\); write \.T"):
            rank((user, item), task)
        square = (torch.eye(6), torch.rand(9, 6))
        assert rank(square, task).num_users == 6

    def test_a_model_needs_edges_to_propagate_over(self):
        with pytest.raises(ValueError, match="'edge_index' needs to be given for LightGCN"):
            rank(LightGCN(5, 4, 1), self.task)

    def test_a_lightgcn_of_another_size_is_named(self):
        message = r"2 users and 3 items \(got 6 nodes\); make it as LightGCN\(5, ...\)"
        with pytest.raises(ValueError, match=message):
            rank(LightGCN(6, 4, 1), self.task, edge_index=self.task.truth)

    def test_edges_beyond_the_nodes_are_named(self):
        with pytest.raises(ValueError, match=r"'edge_index' .*node ids in \[0, 5\) \(got 5\)"):
            rank(LightGCN(5, 4, 1), self.task, edge_index=torch.tensor([[0], [5]]))

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (torch.ones(3), r"'edge_weight' needs .* of shape \[2\] \(got \[3\]\)"),
            (torch.tensor([1, torch.nan]), "'edge_weight' needs to hold finite"),
        ],
    )
    def test_wrong_weights_of_edges_are_named(self, weight, message):
        data = Data(edge_index=torch.tensor([[0, 2], [2, 0]]), edge_weight=weight, num_nodes=5)
        data.edge_label_index = torch.tensor([[0], [3]])
        with pytest.raises(ValueError, match=message):
            rank(LightGCN(5, 4, 1), data, num_users=2)


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


def found_ranks(recommender, task, k=50):
    ranked = rank(recommender, task, k=k)
    edges = map(tuple, ranked.edge_label_index.t().tolist())
    ranks = (each if each <= k else None for each in ranked.rank.tolist())
    return dict(zip(edges, ranks, strict=True))


class TestLists:
    @pytest.mark.parametrize("as_list", [list, tuple, np.array, torch.tensor, pd.Series, pl.Series])
    def test_any_sequence_is_a_list(self, as_list):
        lists = {user: as_list(items) for user, items in LISTS.items()}
        assert evaluate(lists, TASK, METRICS).to_dict() == {"recall@2": 1.0, "mrr@2": 2.5 / 3}

    @pytest.mark.parametrize(
        "dtype", [bool, "int8", "uint16", "int32", "uint32", "int64", "float32"]
    )
    def test_the_lowest_score_of_any_type_is_the_last(self, dtype):
        is_integer = np.issubdtype(dtype, np.integer)
        least = np.iinfo(dtype).min if is_integer else -np.inf if dtype == "float32" else 0
        score = np.array([least, 1, least, 1, least, 1], dtype=dtype)
        users = ["ann", "bob", "cleo"]
        rows = {"user_id": np.repeat(users, 2), "item_id": [999, 100] * 3, "score": score}
        lists = {user: [100, 999] for user in users}
        found = evaluate(pd.DataFrame(rows), TASK, "recall@1").per_user["recall@1"]
        assert torch.equal(found, evaluate(lists, TASK, "recall@1").per_user["recall@1"])

    @pytest.mark.parametrize("frame", FRAMES)
    def test_equal_scores_rank_the_lower_item_first(self, frame):
        rows = frame({"user_id": ["bob"] * 3, "item_id": [999, 7, 100], "score": [1, 2, 1]})
        with (
            pytest.warns(UserWarning, match=r"2 of 3 users \(.ann., .cleo.\)"),
            pytest.warns(UserWarning, match=r"Items of 'recommender' .*: 1 \(7\)"),
        ):
            assert found_ranks(rows, TASK, k=3) == {
                (0, 2): None,
                (1, 0): 2,
                (1, 2): 3,
                (2, 1): None,
            }

    def test_users_with_and_without_a_list_are_told_apart(self):
        with pytest.warns(UserWarning, match=r"fewer than .* for 1 of 3 users \('ann'\)"):
            result = evaluate({**LISTS, "ann": []}, TASK, ["recall@2"])
        assert result.per_user["recall@2"].tolist() == [0, 1, 1]

    @pytest.mark.parametrize(
        ("lists", "error", "message"),
        [
            ({1: [999]}, ValueError, "such as the user 'ann' .got 1"),
            ({"ann": ["999"]}, ValueError, "such as the item 100 .got '999'"),
            ({"ann": [7, 999, 7]}, ValueError, "every item once for a user .* for 'ann'"),
            ({"ann": "999"}, TypeError, r"'recommender\['ann'\]' .*sequence of item ids.*got str"),
            ({"ann": [[999]]}, TypeError, r"\['ann'\]' .*item ids.*got \[999\]"),
            ({"ann": [float("nan")]}, ValueError, r"\['ann'\]' .*item ids .got nan"),
        ],
    )
    def test_wrong_lists_are_named(self, lists, error, message):
        with pytest.raises(error, match=message):
            rank(lists, TASK)

    @pytest.mark.parametrize("frame", FRAMES)
    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"item_id": [999, 100], "rank": [1, 3]}, "as 1, 2, 3 .*got 1 other.*1, 3 of 'ann'"),
            ({"item_id": [999, 100], "rank": [1, 1]}, "as 1, 2, 3 .*got 1 other.*1, 1 of 'ann'"),
            ({"item_id": [999, 999], "rank": [1, 1]}, "every item once .* for 'ann'.*drop_dup"),
            ({"item_id": [999, 100], "rank": ["1", "2"]}, r"recommender\['rank'\]"),
            ({"item_id": [999, 100], "rank": [1, None]}, "every row of the column 'rank'"),
            ({"item_id": [999, 100], "score": [1.0, float("nan")]}, "every row of .*'score'"),
            ({"item_id": [999, None], "score": [1.0, 2.0]}, "every row of .*'item_id'"),
            ({"item_id": [999, 999], "score": [1.0, 2.0]}, "every item once .* for 'ann'"),
            ({"item_id": [999, 100]}, "columns of users and items, and 'rank' or 'score'"),
            ({"score": [1, 2]}, "a column of items with a usual name"),
        ],
    )
    def test_wrong_frames_are_named(self, frame, columns, message):
        with pytest.raises(ValueError, match=message):
            rank(frame({"user_id": ["ann", "ann"], **columns}), TASK)

    @pytest.mark.parametrize("frame", FRAMES)
    @pytest.mark.parametrize("rows", [[["ann", 999, 1]], [[1, 2, 3]] * 4, [["ann", 999, 0.5]] * 3])
    def test_a_frame_without_a_header_is_named(self, frame, rows):
        table = pd.DataFrame(rows)
        for labels in (["0", "1", "2"], map(str, rows[0]), ["a", "b", "c"]):
            with pytest.raises(ValueError, match=r"'user_id', 'item_id' and 'rank'.* names=\["):
                rank(frame(table.set_axis([*labels], axis=1)), TASK)

    def test_a_task_without_ids_is_told_how_to_get_them(self):
        task = RankingTask(TASK.truth, num_users=3, num_items=3)
        with pytest.raises(ValueError, match=r"from_frames.*user_ids=.*lists by id, a dict"):
            rank(LISTS, task)


class TestPositions:
    task = RankingTask([[0, 1], [1, 2]], num_users=2, num_items=4, item_ids=[1, 2, 3, 4])

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.long])
    def test_integers_that_may_be_ids_are_warned_about(self, dtype):
        ids = range(0, 100, 2)  # which half of all positions are, too
        task = RankingTask([[0, 1], [1, 2]], num_users=2, num_items=50, item_ids=[*ids])
        lists = torch.arange(0, 50, 2, dtype=dtype).repeat(2, 1)
        with pytest.warns(UserWarning, match=r"If they are ids, pass dict\(zip\(task.user_ids"):
            rank(lists, task)

    def test_one_that_nobody_is_recommended_is_chance(self):
        task = RankingTask([[0, 1], [1, 2]], num_users=2, num_items=50, item_ids=[*range(1, 51)])
        rank(torch.arange(1, 31).repeat(2, 1), task)

    @pytest.mark.parametrize(
        ("lists", "ids"),
        [
            ([[2, 0], [3, 1]], [1, 2, 3, 4]),  # there is no id 0
            ([[2, 1], [3, 1]], [0, 1, 2, 3]),
            ([[2, 1], [3, 1]], None),
            ([[2, 1], [3, 1]], ["1", "2", "3", "4"]),
        ],
    )
    def test_others_are_not(self, lists, ids):
        task = RankingTask(self.task.truth, num_users=2, num_items=4, item_ids=ids)
        rank(torch.tensor(lists), task)

    def test_ids_out_of_range_are_told_what_to_write(self):
        with pytest.raises(ValueError, match=r"got 1 to 4.*dict\(zip\(task.user_ids"):
            rank(torch.tensor([[4, 1], [3, 1]]), self.task)


@pytest.mark.filterwarnings("ignore:Items of 'recommender' are no candidates")
class TestEmbeddings:
    user = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    item = torch.rand(3, 4, generator=torch.Generator().manual_seed(1))
    ranks = rank((user, item), TASK, full=True).rank.tolist()

    @pytest.mark.parametrize("frame", FRAMES)
    @pytest.mark.parametrize("column", ["id", "item_id"])
    def test_frames_of_vectors_are_told_to_be_dicts(self, frame, column):
        wide = {column: TASK.item_ids, "x": [0.0, 1.0, 0.5], "y": [1.0, 0.0, 0.5]}
        narrow = {column: TASK.item_ids, "features": [[0.0], [1.0], [0.5]]}
        for items in (frame(narrow), frame(wide)):
            with pytest.raises(ValueError, match=rf"as in dict\(zip\(frame\['{column}'\], vectors"):
                rank((self.user, items), TASK)

    @pytest.mark.parametrize(
        ("items", "message"),
        [
            ({100: [1.0], 999: [2.0]}, r"embedding of every item .*got none of 1: 250"),
            ({100: [1.0], 999: [2.0], 250: [1.0, 2.0]}, "rows of one length"),
        ],
    )
    def test_wrong_ones_are_named(self, items, message):
        with pytest.raises(ValueError, match=message):
            rank((self.user, items), TASK)


TRUTH = torch.tensor([[0, 1, 2, 2], [3, 1, 0, 3]])
TASK_OF_COUNTS = RankingTask(TRUTH, num_users=3, num_items=4)
NO_EDGES = torch.empty(2, 0, dtype=torch.long)
SCORES = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("recommender", "given"),
    [
        (SCORES, {}),
        (SCORES.numpy(), {}),
        ((SCORES, torch.eye(4)), {}),
        ((SCORES.numpy(), np.eye(4), np.zeros(4)), {}),
        ((torch.nn.Embedding(3, 2), torch.nn.Embedding(4, 2)), {}),
        (LightGCN(7, embedding_dim=2, num_layers=1), {"num_users": 3}),
        (torch.nn.DataParallel(LightGCN(7, embedding_dim=2, num_layers=1)), {"num_users": 3}),
        (torch.rand(4), {"num_users": 3}),
        (torch.nn.functional.pad(SCORES.argsort(), (0, 1), value=-1), {"num_items": 4}),
        (lambda users: SCORES[users], {"num_users": 3, "num_items": 4}),
    ],
)
def test_counts_come_from_what_knows_them(recommender, given):
    wanted = rank(recommender, TASK_OF_COUNTS, full=True, edge_index=NO_EDGES).rank
    ranked = rank(recommender, TRUTH, full=True, edge_index=NO_EDGES, **given)
    assert torch.equal(ranked.rank, wanted)
    assert (ranked.num_users, ranked.catalogue.num_items) == (3, 4)
    evaluate(recommender, TRUTH, "mrr", edge_index=NO_EDGES, **given)
    for name in given:
        with pytest.raises(ValueError, match=f"'{name}' needs to be given"):
            rank(recommender, TRUTH, edge_index=NO_EDGES, **(given | {name: None}))


def test_what_is_given_counts():
    with pytest.raises(ValueError, match=r"of shape \[3, 5\] \(got \[3, 4\]\)"):
        rank(SCORES, TRUTH, num_items=5)
