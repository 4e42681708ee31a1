"""The slices of a result and of runs, from a task to what they say."""

import math

import numpy as np
import pytest
import torch

from pyg_recmetrics import Catalogue, EvaluationResult, RankedEdges, RankingTask, Runs, evaluate
from tests.support.cases.random_tasks import random_scores, random_task

NUM_USERS, NUM_ITEMS = 1200, 120
METRIC = "ndcg@20"


@pytest.fixture(scope="module")
def task():
    return random_task(NUM_USERS, NUM_ITEMS, truth_share=0.05, seen_share=0.1)


@pytest.fixture(scope="module")
def country():
    return ["NL" if user % 4 == 0 else "DE" for user in range(NUM_USERS)]


def result_of(task, is_bad, seed=1, **options):
    """A result that is worse for some edges of the truth, a mask of shape `[num_edges]`."""
    scores = random_scores(task, seed)
    user, item = task.truth
    scores[user, item] += torch.where(is_bad, 0.05, 0.4)
    return evaluate(scores, task, [METRIC, "recall@20", "mean_rank"], **options)


@pytest.fixture(scope="module")
def result(task):
    """A result that is bad for users of one country."""
    return result_of(task, task.truth[0] % 4 == 0)


@pytest.fixture(scope="module")
def other(task):
    """One that is equally good for all."""
    return result_of(task, task.truth[0] < 0, seed=2)


@pytest.fixture(scope="module")
def task_of_items():
    return random_task(300, 900, truth_share=0.01, seen_share=0.02)


@pytest.fixture(scope="module")
def result_of_items(task_of_items):
    """A result that never finds a third of the items."""
    scores = random_scores(task_of_items, 1)
    user, item = task_of_items.truth
    scores[user, item] += torch.where(item % 3 == 0, -1.0, 0.9)
    return evaluate(scores, task_of_items, ["recall@20", METRIC])


class TestUsers:
    def test_those_who_are_served_badly_are_found(self, result, country):
        found = result.slices(METRIC, {"country": country})
        assert found[0].conditions == "country = NL"
        assert found[0].high < 0
        is_dutch = torch.tensor([each == "NL" for each in country])
        counts = ~result.contributions(METRIC).isnan()
        assert torch.equal(found.mask(0), is_dutch & counts)
        assert found.num_searched + found.num_measured == int(counts.sum())

    def test_ranks_are_bad_if_they_are_high(self, result, country):
        found = result.slices("mean_rank", {"country": country})
        assert found[0].conditions == "country = NL"
        assert found[0].low > 0
        assert "above" not in str(found)

    def test_a_metric_need_not_have_been_evaluated(self, result, country):
        assert result.slices("mrr", {"country": country})[0].conditions == "country = NL"

    def test_what_a_task_knows_is_enough(self, task):
        degree = torch.bincount(task.seen[0], minlength=NUM_USERS)
        few = degree <= degree.median()
        found = result_of(task, few[task.truth[0]]).slices(METRIC, max_depth=1)
        assert found[0].conditions == f"training degree ≤ {int(degree.median())}"

    def test_nothing_is_found_where_nothing_is(self, other, country):
        found = other.slices(METRIC, {"country": country}, max_depth=1)
        assert "country" not in str([row.conditions for row in found])

    def test_a_frame_has_the_ids_of_the_task(self, task, country):
        pd = pytest.importorskip("pandas")
        pytest.importorskip("narwhals")
        names = [f"user {number:04}" for number in range(NUM_USERS)]
        named = RankingTask(
            task.truth,
            num_users=NUM_USERS,
            num_items=NUM_ITEMS,
            seen=task.seen,
            user_ids=names,
            item_ids=range(NUM_ITEMS),
        )
        frame = pd.DataFrame({"user": names, "country": country}).sample(frac=1, random_state=0)
        found = result_of(named, task.truth[0] % 4 == 0).slices(METRIC, frame)
        assert found[0].conditions == "country = NL"

    def test_other_halves_give_other_numbers(self, result, country):
        first, same, other = (
            result.slices(METRIC, {"country": country}, seed=seed) for seed in (0, 0, 1)
        )
        assert list(first) == list(same)
        assert first[0].mean != other[0].mean


class TestAgainst:
    def test_it_is_found_for_whom_one_is_better(self, result, other, country):
        found = other.slices(METRIC, {"country": country}, against=result)
        assert found[0].conditions == "country = NL"
        assert found[0].low > 0
        values = other.contributions(METRIC) - result.contributions(METRIC)
        assert found[0].mean == pytest.approx(float(values[found.mask(0)].nanmean()), abs=0.05)
        assert f"{METRIC}, a - b" in str(found)
        assert "the difference of all users" in str(found)
        backward = result.slices(METRIC, {"country": country}, against=other)
        assert backward[0].difference == pytest.approx(-found[0].difference)

    def test_runs_may_stand_on_either_side(self, task, result, country):
        runs = Runs([result_of(task, task.truth[0] < 0, seed=seed) for seed in (3, 4)])
        features = {"country": country}
        for found in (
            runs.slices(METRIC, features, against=result),
            result.slices(METRIC, features, against=runs),
            runs.slices(METRIC, features, against=[result, result]),
        ):
            assert found[0].conditions == "country = NL"
        assert result.slices(METRIC, features, against=result).num_tested == 0

    def test_other_tasks_are_refused(self, result):
        other = random_task(NUM_USERS, NUM_ITEMS, truth_share=0.05, seen_share=0.1, seed=9)
        with pytest.raises(ValueError, match=r"the same task \(got 'this' and 'another', which"):
            result.slices(METRIC, against=result_of(other, other.truth[0] < 0))
        for wrong in ("result", [], [1], 3):
            with pytest.raises(TypeError, match="'against' needs to be an 'EvaluationResult'"):
                result.slices(METRIC, against=wrong)


class TestRuns:
    def test_they_are_the_mean_over_runs(self, task, country):
        pytest.importorskip("scipy")
        runs = Runs([result_of(task, task.truth[0] % 4 == 0, seed=seed) for seed in (1, 2, 3)])
        (first, *_) = found = runs.slices(METRIC, {"country": country})
        assert first.conditions == "country = NL"
        single = runs[0].slices(METRIC, {"country": country})
        assert torch.equal(found.mask(0), single.mask(0))
        assert first.mean == pytest.approx(single[0].mean, abs=0.05)
        assert runs.item_slices("recall@20") is not None


class TestRows:
    def test_edges_have_slices_of_users_and_of_items(self, task, country):
        is_bad = task.truth[1] < 60
        popular = torch.cat([task.seen[1], torch.arange(60, NUM_ITEMS).repeat(40)])
        users = torch.arange(NUM_USERS).repeat(2)[: 60 * 40]
        more = torch.stack([users, popular[-60 * 40 :]])
        task = RankingTask(
            task.truth,
            num_users=NUM_USERS,
            num_items=NUM_ITEMS,
            seen=torch.cat([task.seen, more], dim=1),
            exclude_seen=False,
        )
        result = result_of(task, is_bad, per="edge")
        found = result.slices("mrr", {"country": country})
        assert found[0].conditions.startswith("popularity of the item ≤")
        assert "edges" in str(found).splitlines()[0].split()
        assert len(found.mask(0)) == task.truth.size(1)
        by_country = result_of(task, task.truth[0] % 4 == 0, per="edge")
        assert by_country.slices("mrr", {"country": country})[0].conditions == "country = NL"

    def test_rows_of_a_person_stay_together(self, task, country):
        person = torch.arange(NUM_USERS) // 8 * 2 + torch.arange(NUM_USERS) % 4 // 3
        result = result_of(task.with_person(person), task.truth[0] % 4 == 0)
        plain = result_of(task, task.truth[0] % 4 == 0)
        found, alone = (x.slices(METRIC, {"country": country}) for x in (result, plain))
        assert found[0].conditions == alone[0].conditions == "country = NL"
        assert found[0].num_rows == alone[0].num_rows

    def test_averages_over_persons_are_refused(self, task):
        result = result_of(
            task.with_person(torch.arange(NUM_USERS) // 2),
            task.truth[0] < 0,
            average_over="person",
        )
        for method in (result.slices, result.item_slices):
            with pytest.raises(ValueError, match=f"'{method.__name__}' needs means over rows"):
                method("recall@20")

    def test_queries_are_not_called_users(self, task):
        queries = RankingTask.from_queries((task.truth[0],), task.truth[1], num_items=NUM_ITEMS)
        result = evaluate(random_scores(queries, 0), queries, METRIC)
        assert "no group of queries" in str(result.slices(METRIC, min_users=500))

    def test_of_a_sample_only_those_who_were_ranked_count(self):
        truth = torch.stack([torch.arange(9000), torch.arange(9000) % 7])
        task = RankingTask(truth, num_users=9000, num_items=7)
        result = evaluate(torch.arange(7.0), task, "recall@2", margin=0.05)
        found = result.slices("recall@2", {"odd": truth[0] % 2 == 1})
        assert found.num_searched + found.num_measured == result.sampling.num_ranked
        assert "were ranked in random order" in str(found)

    def test_users_without_truth_count_as_the_action_says(self, task):
        kept = task.truth[:, task.truth[0] % 4 != 1]
        part = RankingTask(kept, num_users=NUM_USERS, num_items=NUM_ITEMS, seen=task.seen)
        num_without = NUM_USERS - len(kept[0].unique())
        for action, number in (("skip", 0), ("neg", num_without)):
            result = result_of(part, kept[0] < 0, empty_target_action=action)
            found = result.slices(METRIC, max_depth=1)
            rows = [row.num_rows for row in found if row.conditions == "relevant items = 0"]
            assert sum(rows) == number


class TestItems:
    def test_those_that_are_never_found_are_found(self, result_of_items):
        found = result_of_items.item_slices("recall@20", {"age": np.arange(900) % 3})
        assert found[0].conditions == "age = 0"
        assert (found[0].mean, found[0].zeros) == (0, 1)
        assert str(found).splitlines()[0].endswith("never found")
        frame = pytest.importorskip("pandas") and result_of_items.per_item("recall@20")
        relevant = set(frame.item[frame.item % 3 == 0])
        assert set(found.mask(0).nonzero().flatten().tolist()) == relevant

    def test_values_are_those_of_items(self, result_of_items):
        pytest.importorskip("pandas")
        frame = result_of_items.per_item("recall@20").set_index("item")["recall@20"]
        found = result_of_items.item_slices("recall@20", {"age": np.arange(900) % 3}, max_depth=1)
        assert found.num_searched + found.num_measured == len(frame)
        assert found.mean == pytest.approx(frame.mean(), abs=0.1)

    def test_a_frame_and_another_recommender(self, task_of_items, result_of_items):
        pd = pytest.importorskip("pandas")
        pytest.importorskip("narwhals")
        frame = pd.DataFrame({"item_id": range(900), "age": np.arange(900) % 3})
        good = random_scores(task_of_items, 2)
        good[tuple(task_of_items.truth)] += 0.9
        other = evaluate(good, task_of_items, "recall@20")
        found = result_of_items.item_slices("recall@20", frame, against=other)
        assert found[0].conditions == "age = 0"
        assert found[0].mean < 0
        assert "never found" not in str(found)

    def test_categories_of_items_are_conditions(self, task_of_items, result_of_items):
        catalogue = Catalogue(900, item_category=torch.arange(900) % 3)
        ranked = result_of_items.ranked.with_catalogue(catalogue)
        again = EvaluationResult(ranked, "recall@20", task=task_of_items)
        assert again.item_slices("recall@20")[0].conditions == "category = 0"

    def test_only_some_metrics_say_where_an_item_has_to_be_found(self, result_of_items):
        with pytest.raises(ValueError, match="'metric' needs to be 'recall@k', 'hit_rate@k' or"):
            result_of_items.item_slices(METRIC)


class TestArguments:
    def test_metrics_that_are_no_mean_over_users_are_refused(self, task):
        result = result_of(task, task.truth[0] < 0, keep_items=True)
        with pytest.raises(ValueError, match="needs to be a mean over users"):
            result.slices("recall(average=micro)@20")
        with pytest.raises(ValueError, match="one for all users together"):
            result.slices("coverage@20")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"max_depth": 3}, r"'max_depth' needs to be 1 or 2 \(got 3\)"),
            ({"max_depth": 0}, "'max_depth' needs to be 1 or 2"),
            ({"min_users": 0}, "'min_users' needs to be a positive integer"),
            ({"level": 1}, "'level' needs to be"),
            ({"seed": -1}, "'seed' needs to be"),
            ({"features": {"age": [1]}}, "a value for every user"),
        ],
    )
    def test_numbers_that_are_out_of_range_are_refused(self, result, options, message):
        with pytest.raises(ValueError, match=message):
            result.slices(METRIC, **options)

    def test_larger_slices_are_fewer(self, result, country):
        numbers = [
            result.slices(METRIC, {"country": country}, min_users=number).num_candidates
            for number in (20, 50, 200, 400)
        ]
        assert numbers == sorted(numbers, reverse=True)
        assert numbers[-1] == 0

    def test_intervals_are_wider_at_a_higher_level(self, result, country):
        margins = []
        for level in (0.5, 0.95, 0.999):
            (first, *_) = result.slices(METRIC, {"country": country}, level=level)
            margins.append(first.high - first.difference)
        assert margins == sorted(margins)


def test_of_any_device(device):
    task = random_task(400, 40, truth_share=0.1, seen_share=0.1).to(device)
    scores = torch.rand(400, 40, device=device)
    result = evaluate(scores, task, METRIC)
    found = result.slices(METRIC, {"odd": torch.arange(400, device=device) % 2})
    num_counted = int((~result.contributions(METRIC).isnan()).sum())
    assert found.num_searched + found.num_measured == num_counted
    assert not math.isnan(found.mean)
    assert result.item_slices("recall@20", min_items=5).num_candidates >= 0


def test_lists_without_a_task_have_slices():
    truth = torch.stack([torch.arange(600), torch.arange(600) % 5])
    lists = torch.where(torch.arange(600)[:, None] % 3 == 0, 9, truth[1][:, None])
    result = EvaluationResult(RankedEdges.from_topk(lists, truth), "recall@1")
    found = result.slices("recall@1", {"third": torch.arange(600) % 3})
    assert [row.conditions for row in found] == ["third = 0"]
