"""Data frames of users, lists and items, against loops over sets, and what they have in common."""

import datetime
import math
from dataclasses import replace

import pytest
import torch

from pyg_recmetrics import EvaluationResult, RankedEdges, evaluate
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.machines.missing_packages import hide_package

pd = pytest.importorskip("pandas", reason="needs pandas")

METRICS = ["recall@3", "ndcg@5", "r_precision", "coverage@5"]
LISTS = torch.tensor([[2, 0, 1], [1, -1, 2], [0, 0, 2], [-1, -1, -1]])
TRUTH = torch.tensor([[0, 0, 1, 2, 3], [1, 2, 2, 2, 0]])


@pytest.fixture
def task():
    """Some users have no truth, some have seen nearly everything, and some are not evaluated."""
    task = random_task(60, 12, truth_share=0.15, seen_share=0.6)
    users = torch.arange(0, 60, 3)
    return random_task(60, 12, truth_share=0.15, seen_share=0.6, users=users, seen=task.seen)


@pytest.fixture
def scores(task):
    return random_scores(task, 1)


@pytest.fixture
def result(task, scores):
    return evaluate(scores, task, METRICS, keep_items=True)


@pytest.fixture
def ranked():
    return RankedEdges.from_topk(LISTS, TRUTH)


def rankings(task, scores):
    """The candidates of every evaluated user, best first, and the set of those that are true."""
    seen, truth = (
        {tuple(edge) for edge in edges.t().tolist()} for edges in (task.seen, task.truth)
    )
    found = {}
    for user in task.users.tolist():
        items = [item for item in range(task.num_items) if (user, item) not in seen]
        items.sort(key=lambda item: -scores[user, item].item())
        found[user] = items, {item for item in items if (user, item) in truth}
    return found


class TestUsers:
    def test_there_is_a_row_for_everybody_who_is_evaluated(self, task, scores, result):
        frame = result.to_pandas(per_user=True)
        assert list(frame) == ["user", "degree", "recall@3", "ndcg@5", "r_precision"]
        assert frame["user"].tolist() == task.users.tolist()
        rows = frame.set_index("user")
        for user, (items, relevant) in rankings(task, scores).items():
            assert rows["degree"][user] == len(relevant)
            found = len(relevant & set(items[:3]))
            recall = found / len(relevant) if relevant else math.nan
            assert rows["recall@3"][user] == pytest.approx(recall, nan_ok=True)
        assert frame["recall@3"].isna().any()

    def test_the_mean_of_a_column_is_the_metric(self, result):
        frame = result.to_pandas(per_user=True)
        for metric in result.per_user:
            assert frame[metric].mean() == pytest.approx(result[metric], rel=1e-12)

    def test_users_have_their_original_ids(self, ranked):
        named = replace(ranked, user_ids=("ann", "bob", "eve", "joe"))
        frame = EvaluationResult(named, "recall@2").to_pandas(per_user=True)
        assert frame["user"].tolist() == ["ann", "bob", "eve", "joe"]
        assert frame["recall@2"].tolist() == [0.5, 0.0, 0.0, 0.0]

    def test_a_result_without_values_per_user(self, task, scores):
        frame = evaluate(scores, task, "coverage@5").to_pandas(per_user=True)
        assert list(frame) == ["user", "degree"]
        assert len(frame) == task.users.numel()

    def test_the_means_are_asked_for_by_default(self, result):
        assert list(result.to_pandas()) == ["metric", "k", "value"]
        with pytest.raises(TypeError, match=r"'per_user' needs to be a boolean \(got 1\)"):
            result.to_pandas(per_user=1)


class TestLists:
    @pytest.mark.parametrize("k", [1, 2, 5])
    def test_they_are_the_best_candidates(self, task, scores, result, k):
        wanted = [
            (user, rank, item, item in relevant)
            for user, (items, relevant) in rankings(task, scores).items()
            for rank, item in enumerate(items[:k], start=1)
        ]
        frame = result.top_k(k)
        assert list(frame) == ["user", "rank", "item", "is_relevant"]
        assert list(frame.itertuples(index=False, name=None)) == wanted
        assert frame["is_relevant"].any()

    def test_they_say_what_recall_says(self, result):
        users = result.to_pandas(per_user=True).set_index("user")
        hits = result.top_k(3).groupby("user")["is_relevant"].sum()
        recall = (hits.reindex(users.index, fill_value=0) / users["degree"]).dropna()
        assert recall.tolist() == pytest.approx(users["recall@3"].dropna().tolist())

    def test_padding_and_repeated_items_keep_their_rank(self, ranked):
        frame = EvaluationResult(ranked, "recall@3").top_k(3)
        assert list(frame.itertuples(index=False, name=None)) == [
            (0, 1, 2, True),
            (0, 2, 0, False),
            (0, 3, 1, True),
            (1, 1, 1, False),
            (1, 3, 2, True),
            (2, 1, 0, False),
            (2, 3, 2, True),
        ]

    @pytest.mark.parametrize(
        "ids",
        [
            ("ann", "bob", "eve", "joe"),
            (30, 10, 20, 40),
            (("a", 1), ("a", 2), ("b", 1), ("b", 2)),
            (7, "seven", 7.5, ("7",)),
            tuple(datetime.datetime(2020, 1, day) for day in (3, 1, 2, 4)),
        ],
        ids=["words", "numbers", "pairs", "mixed", "times"],
    )
    def test_ids_may_be_of_any_type(self, ranked, ids):
        named = replace(ranked, user_ids=ids, item_ids=ids[::-1])
        result = EvaluationResult(named, "recall@3")
        frame = result.top_k(1, users=[ids[2], ids[0]])
        assert frame["user"].tolist() == [ids[2], ids[0]]
        assert frame["item"].tolist() == [ids[3], ids[1]]
        assert result.per_item("recall@3")["item"].tolist() == [ids[3], ids[2], ids[1]]

    @pytest.mark.parametrize("form", [list, tuple, torch.tensor, pd.Series, pd.Index, iter])
    def test_users_come_in_the_order_in_which_they_are_asked_for(self, result, form):
        everybody = result.top_k(2)
        frame = result.top_k(2, users=form([9, 3]))
        wanted = pd.concat([everybody[everybody["user"] == user] for user in (9, 3)])
        assert list(frame.itertuples(index=False)) == list(wanted.itertuples(index=False))
        assert result.top_k(2, users=form([])).empty

    def test_lists_that_were_given_are_all_there_is(self, ranked):
        result = EvaluationResult(ranked, "recall@3")
        assert result.top_k(9).equals(result.top_k(3))

    def test_lists_of_different_length(self, tmp_path):
        (tmp_path / "run").write_text(
            "a Q0 x 1 3 me\na Q0 y 2 2 me\na Q0 z 3 1 me\nb Q0 y 1 1 me\n"
        )
        (tmp_path / "qrels").write_text("a 0 y 1\nb 0 x 1\nc 0 x 1\n")
        ranked = RankedEdges.from_trec(tmp_path / "run", tmp_path / "qrels")
        frame = EvaluationResult(ranked, "recall@2").top_k(2)
        assert list(frame.itertuples(index=False, name=None)) == [
            ("a", 1, "x", False),
            ("a", 2, "y", True),
            ("b", 1, "y", False),
        ]

    def test_wrong_users_are_named(self, task, result):
        with pytest.raises(ValueError, match=r"ids of evaluated users \(got 60, 'a'\)"):
            result.top_k(2, users=[60, 3, "a"])
        with pytest.raises(ValueError, match=r"evaluated users \(got 1, 2, 4, 5, 7 and 1 more\)"):
            result.top_k(2, users=[1, 2, 4, 5, 7, 8])
        for users in (3, "ann", torch.tensor(3)):
            with pytest.raises(TypeError, match="'users' needs to be a sequence of user ids"):
                result.top_k(2, users=users)
        with pytest.raises(TypeError, match=r"'users' needs to hold user ids \(got an unhashable"):
            result.top_k(2, users=[[3, 6]])

    def test_what_was_not_kept_is_asked_for(self, task, scores, result):
        with pytest.raises(ValueError, match=r"at most 5, .* unless .* 'keep_items=6' \(got 6\)"):
            result.top_k(6)
        with pytest.raises(ValueError, match="'keep_items=True'"):
            evaluate(scores, task, "recall@3").top_k(2)
        with pytest.raises(ValueError, match="'k' needs to be a positive integer"):
            result.top_k(0)


class TestItems:
    @pytest.mark.parametrize("metric", ["recall@3", "hit_rate@3", "r_precision"])
    def test_which_relevant_items_are_found(self, task, scores, result, metric):
        degree, hits = [0] * task.num_items, [0] * task.num_items
        for items, relevant in rankings(task, scores).values():
            k = len(relevant) if metric == "r_precision" else 3
            for item in relevant:
                degree[item] += 1
                hits[item] += item in items[:k]
        seen = task.seen[1].tolist()
        frame = result.per_item(metric)
        assert list(frame) == ["item", "degree", "hits", metric, "popularity"]
        assert list(frame.itertuples(index=False, name=None)) == [
            (item, degree[item], hits[item], hits[item] / degree[item], seen.count(item))
            for item in range(task.num_items)
            if degree[item]
        ]
        assert 0 < frame["hits"].sum() < frame["degree"].sum()

    def test_only_users_who_count(self, task, scores):
        metric = "r_precision(users=hit)"
        result = evaluate(scores, task, metric)
        counted = [
            (len(relevant & set(items[: len(relevant)])), len(relevant))
            for items, relevant in rankings(task, scores).values()
        ]
        assert any(degree and not hits for hits, degree in counted)
        frame = result.per_item(metric)
        assert frame["degree"].sum() == sum(degree for hits, degree in counted if hits)
        assert frame["hits"].sum() == sum(hits for hits, _ in counted)

    def test_popularity_is_there_if_it_is_known(self, ranked):
        frame = EvaluationResult(ranked, "recall@2").per_item("recall@1")
        assert list(frame.itertuples(index=False, name=None)) == [
            (0, 1, 0, 0.0),
            (1, 1, 0, 0.0),
            (2, 3, 1, 1 / 3),
        ]

    def test_metrics_that_do_not_say_where_to_find_an_item(self, result):
        for metric in ("ndcg@5", "precision@5", "mrr@3", "coverage@5"):
            with pytest.raises(ValueError, match=f"'metric' needs to be 'recall@k', .*{metric}"):
                result.per_item(metric)
        with pytest.raises(ValueError, match="'k' needs to be at most 5, the depth"):
            result.per_item("recall@6")


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("to_pandas", lambda result: result.to_pandas(per_user=True)),
        ("top_k", lambda result: result.top_k(2)),
        ("per_item", lambda result: result.per_item("recall@2")),
    ],
)
def test_pandas_is_asked_for_by_name(ranked, monkeypatch, name, ask):
    result = EvaluationResult(ranked, "recall@2")
    hide_package(monkeypatch, "pandas")
    with pytest.raises(ImportError, match=rf"'{name}' needs pandas: pip install '.*\[frames\]'"):
        ask(result)


def test_frames_of_a_result_on_any_device(task, scores, device):
    result = evaluate(scores.to(device), task.to(device), METRICS, keep_items=True)
    wanted = evaluate(scores, task, METRICS, keep_items=True)
    assert result.to_pandas(per_user=True).equals(wanted.to_pandas(per_user=True))
    assert result.top_k(4, users=[6, 0]).equals(wanted.top_k(4, users=[6, 0]))
    assert result.per_item("recall@4").equals(wanted.per_item("recall@4"))
