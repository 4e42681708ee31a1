"""Two results side by side, against plain loops over users and items."""

import math
import re

import pytest
import torch

from pyg_recmetrics import EvaluationResult, RankedEdges, Runs, evaluate, side_by_side
from tests.support.cases.random_tasks import random_scores, random_task

stats = pytest.importorskip("scipy.stats")

K = 5


@pytest.fixture(scope="module")
def task():
    return random_task(50, 12, truth_share=0.2, seen_share=0.4)


def make(task, seed, k=K):
    return evaluate(random_scores(task, seed), task, [f"recall@{k}"], keep_items=k)


@pytest.fixture(scope="module")
def pair(task):
    return {"first": make(task, 1), "second": make(task, 2)}


def named(results):
    return dict(zip(["first", "second"], results, strict=True))


def lists_of(result, k=K):
    return [
        [item for item in row[:k] if item >= 0] for row in result.ranked.lists.to_matrix().tolist()
    ]


def naive_jaccard(first, second):
    union = set(first) | set(second)
    return len(set(first) & set(second)) / len(union) if union else math.nan


def naive_rank_biased_overlap(first, second, p):
    """Equation 32 of Webber et al., written down as it stands there."""
    shorter, longer = sorted([first, second], key=len)
    s, length = len(shorter), len(longer)
    if length == 0:
        return math.nan

    def overlap(depth):
        return len(set(shorter[:depth]) & set(longer[:depth]))

    total = sum(overlap(d) / d * p**d for d in range(1, length + 1))
    total += sum(overlap(s) * (d - s) / (s * d) * p**d for d in range(s + 1, length + 1) if s)
    share = overlap(s) / s if s else 0
    at_end = ((overlap(length) - overlap(s)) / length + share) * p**length
    return (1 - p) / p * total + at_end


class TestOverlap:
    @pytest.mark.parametrize("p", [0.1, 0.9, 0.99])
    @pytest.mark.parametrize("k", [1, 3, K])
    def test_it_is_that_of_a_loop(self, pair, k, p):
        both = side_by_side(pair, k=k, p=p)
        lists = zip(*(lists_of(result, k) for result in pair.values()), strict=True)
        for user, (first, second) in enumerate(lists):
            wanted = naive_jaccard(first, second), naive_rank_biased_overlap(first, second, p)
            found = both.jaccard[user].item(), both.rank_biased_overlap[user].item()
            assert found == pytest.approx(wanted, nan_ok=True)

    def test_lists_may_differ_in_length(self):
        generator = torch.Generator().manual_seed(0)
        truth = torch.stack([torch.arange(40), torch.randint(9, (40,), generator=generator)])
        lists = []
        for _ in range(2):
            items = torch.rand(40, 9, generator=generator).argsort(dim=1)[:, :6]
            length = torch.randint(0, 7, (40, 1), generator=generator)
            lists.append(items.masked_fill(torch.arange(6) >= length, -1))
        results = [
            EvaluationResult(RankedEdges.from_topk(items, truth), "recall@2") for items in lists
        ]
        both = side_by_side(named(results), k=6, p=0.8)
        for user in range(40):
            first, second = ([x for x in items[user].tolist() if x >= 0] for items in lists)
            wanted = naive_jaccard(first, second), naive_rank_biased_overlap(first, second, 0.8)
            found = both.jaccard[user].item(), both.rank_biased_overlap[user].item()
            assert found == pytest.approx(wanted, nan_ok=True)

    def test_places_without_an_item_do_not_count(self):
        truth = torch.tensor([[0, 1], [4, 4]])
        lists = torch.tensor([[-1, -1, -1, 4], [3, -1, 4, 5]])
        without = torch.tensor([[4, -1, -1, -1], [3, 4, 5, -1]])
        results = [
            EvaluationResult(RankedEdges.from_topk(items, truth), "recall@2")
            for items in (lists, without)
        ]
        for other in results:
            both = side_by_side({"a": results[0], "b": other}, k=4)
            assert both.jaccard.tolist() == [1, 1]
            assert both.rank_biased_overlap.tolist() == pytest.approx([1, 1])

    def test_a_published_number(self):
        """Webber et al., table 3: of these lists, the overlap at depth seven is 5."""
        first, second = [0, 1, 2, 3, 4, 5, 6], [25, 2, 0, 21, 1, 3, 4]
        truth = torch.tensor([[0], [0]])
        results = [
            EvaluationResult(RankedEdges.from_topk(torch.tensor([items]), truth), "recall@2")
            for items in (first, second)
        ]
        agreement = [0, 0, 2 / 3, 2 / 4, 3 / 5, 4 / 6, 5 / 7]
        p = 0.9
        wanted = (1 - p) * sum(x * p**d for d, x in enumerate(agreement)) + 5 / 7 * p**7
        both = side_by_side(named(results), k=7, p=p)
        assert both.rank_biased_overlap.item() == pytest.approx(wanted)

    def test_equal_lists_and_lists_with_nothing_in_common(self, pair):
        first = pair["first"]
        same = side_by_side({"a": first, "b": first}, k=K)
        defined = ~same.jaccard.isnan()
        assert same.jaccard[defined].eq(1).all()
        torch.testing.assert_close(
            same.rank_biased_overlap[defined], torch.ones(int(defined.sum()), dtype=torch.double)
        )
        truth = torch.tensor([[0], [0]])
        lists = [torch.tensor([[0, 1]]), torch.tensor([[2, 3]])]
        results = [
            EvaluationResult(RankedEdges.from_topk(items, truth), "recall@1") for items in lists
        ]
        apart = side_by_side(named(results), k=2)
        assert (apart.jaccard.item(), apart.rank_biased_overlap.item()) == (0, 0)

    def test_who_is_not_evaluated_does_not_count(self, task):
        some = task.select_users(torch.arange(10))
        both = side_by_side({"a": make(some, 1), "b": make(some, 2)}, k=K)
        assert both.jaccard[10:].isnan().all()
        assert both.rank_biased_overlap[10:].isnan().all()

    def test_it_is_the_same_on_every_device(self, device, task, pair):
        scores = random_scores(task, 2).to(device)
        moved = evaluate(scores, task.to(device), f"recall@{K}", keep_items=K)
        both = side_by_side({"first": pair["first"], "second": moved}, k=K)
        assert str(both) == str(side_by_side(pair, k=K))

    def test_the_table(self, pair):
        both = side_by_side(pair, k=K)
        text = str(both)
        assert text.splitlines()[0].split() == ["overlap", "first", "and", "second"]
        mean = both.jaccard.nanmean()
        assert re.search(rf"^jaccard@{K} +{mean:.4f} ± \.", text, flags=re.MULTILINE)
        assert f"rank-biased overlap@{K}  " in text
        assert text.endswith("rank-biased overlap with p = 0.9")
        assert repr(both) == "SideBySide('first', 'second', k=5)"


class TestFrames:
    @pytest.fixture(autouse=True)
    def needs_pandas(self):
        pytest.importorskip("pandas")

    def test_users_with_the_largest_differences(self, pair):
        first, second = (x.per_user[f"recall@{K}"].tolist() for x in pair.values())
        frame = side_by_side(pair, k=K).differing_users(f"recall@{K}", num=8)
        assert list(frame.columns) == ["user", "degree", "first", "second", "difference"]
        apart = {
            user: a - b
            for user, (a, b) in enumerate(zip(first, second, strict=True))
            if a == a and b == b and a != b
        }
        largest = sorted(map(abs, apart.values()), reverse=True)[:8]
        assert sorted(frame.difference.abs(), reverse=True) == pytest.approx(largest)
        assert frame.difference.is_monotonic_decreasing
        for row in frame.itertuples():
            assert (row.first, row.second) == (first[row.user], second[row.user])
            assert row.difference == pytest.approx(apart[row.user])

    def test_items_that_one_finds_more_often(self, pair):
        frame = side_by_side(pair, k=K).differing_items(f"recall@{K}", num=100)
        hits = []
        for result in pair.values():
            count = {}
            for user, items in enumerate(lists_of(result)):
                for item in result.task.truth[1, result.task.truth[0] == user].tolist():
                    count[item] = count.get(item, 0) + (item in items)
            hits.append(count)
        wanted = {item: hits[0][item] - hits[1][item] for item in hits[0]}
        found = dict(zip(frame["item"], frame.difference, strict=True))
        assert found == {item: value for item, value in wanted.items() if value}
        assert frame.difference.is_monotonic_decreasing
        assert len(side_by_side(pair, k=K).differing_items(f"recall@{K}", num=2)) == 2

    def test_means_of_overlaps_and_their_intervals(self, pair):
        both = side_by_side(pair, k=K)
        frame = both.to_pandas()
        assert frame["overlap"].tolist() == [f"jaccard@{K}", f"rank-biased overlap@{K}"]
        for row, values in zip(
            frame.itertuples(), (both.jaccard, both.rank_biased_overlap), strict=True
        ):
            values = values[~values.isnan()]
            mean = values.mean().item()
            margin = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
            assert (row.value, row.low, row.high) == pytest.approx(
                (mean, mean - margin, mean + margin), abs=1e-6
            )

    def test_original_ids(self, task):
        ids = [f"user {number}" for number in range(50)]
        items = list("abcdefghijkl")
        renamed = type(task)(**{**task.to_dict(), "user_ids": ids, "item_ids": items})
        both = side_by_side({"a": make(renamed, 1), "b": make(renamed, 2)}, k=K)
        assert set(both.differing_users(f"recall@{K}").user) <= set(ids)
        assert set(both.differing_items(f"recall@{K}")["item"]) <= set(items)

    def test_a_result_never_wins_against_itself(self, pair):
        both = side_by_side({"a": pair["first"], "b": pair["first"]}, k=K)
        assert (
            len(both.differing_users(f"recall@{K}"))
            == len(both.differing_items(f"recall@{K}"))
            == 0
        )


@pytest.mark.filterwarnings("ignore:.*the seed set inside")
def test_what_is_wrong_is_named(task, pair):
    first = pair["first"]
    with pytest.raises(ValueError, match=r"'results' needs to hold two results \(got 3\)"):
        side_by_side({"a": first, "b": first, "c": first})
    with pytest.raises(ValueError, match=r"'results' needs to hold two results \(got 1\)"):
        side_by_side({"a": first})
    message = "got Runs as 'a'; choose one of the runs, such as"
    with pytest.raises(TypeError, match=message):
        side_by_side({"a": Runs([first, first]), "b": first})
    with pytest.raises(TypeError, match=r"as in {'A': a, 'B': b} \(got EvaluationResult\)"):
        side_by_side(first)
    with pytest.raises(ValueError, match=r"other names than .* \(got \['degree'\]\)"):
        side_by_side({"degree": first, "other": first})
    with pytest.raises(TypeError, match="'results' needs to hold 'EvaluationResult'"):
        side_by_side({"a": first, "b": 3})
    with pytest.raises(ValueError, match="which differ in"):
        side_by_side(
            {"a": first, "b": make(random_task(50, 12, truth_share=0.3, seen_share=0.4), 1)}
        )
    with pytest.raises(ValueError, match=f"'k' needs to be at most {K}"):
        side_by_side(pair, k=K + 1)
    with pytest.raises(ValueError, match="'p' needs to be a number"):
        side_by_side(pair, k=K, p=1)
    with pytest.raises(ValueError, match="'num' needs to be a positive integer"):
        side_by_side(pair, k=K).differing_users(f"recall@{K}", num=0)
    with pytest.raises(ValueError, match="'metric' needs to be 'recall@k'"):
        side_by_side(pair, k=K).differing_items(f"ndcg@{K}")
