"""Groups of items, and gaps between groups, against plain loops over users."""

import math
from itertools import combinations

import pandas as pd
import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate
from tests.support.cases.random_tasks import random_scores, random_task

stats = pytest.importorskip("scipy.stats")

NUM_USERS, NUM_ITEMS, K = 60, 14, 4
METRICS = ["recall@2", "recall@4"]
LABELS = ["small", "large", "large", None, "small", "none"]


@pytest.fixture(scope="module")
def labels():
    return [LABELS[item % 6] for item in range(NUM_ITEMS)]


@pytest.fixture(scope="module")
def task():
    return random_task(NUM_USERS, NUM_ITEMS, truth_share=0.15, seen_share=0.2)


@pytest.fixture(scope="module")
def result(task):
    return evaluate(random_scores(task, 1), task, METRICS, keep_items=K)


def naive_parts(result, label, labels, users):
    """The recall, the exposure and the relevance of a group of items, for some users."""
    truth = [set() for _ in range(NUM_USERS)]
    for user, item in result.task.truth.t().tolist():
        truth[user].add(item)
    recalls, exposures, relevances = [], [0.0, 0.0], [0, 0]
    for user in users:
        items = result.ranked.pred_index_mat[user].tolist()[:K]
        own = {item for item in truth[user] if labels[item] == label}
        if own:
            recalls.append(len(own & set(items)) / len(own))
        for place, item in enumerate(items):
            if item >= 0:
                exposure = 1 / math.log2(place + 2)
                exposures[0] += exposure * (labels[item] == label)
                exposures[1] += exposure
        relevances[0] += len(own)
        relevances[1] += len(truth[user])
    share, deserved = exposures[0] / exposures[1], relevances[0] / relevances[1]
    return {
        f"recall@{K}": sum(recalls) / len(recalls) if recalls else math.nan,
        f"exposure@{K}": share,
        "relevance": deserved,
        f"exposure@{K} / relevance": share / deserved if deserved else math.nan,
    }


class TestByItem:
    def test_they_are_those_of_a_loop(self, result, labels):
        found = result.by_item_group(labels, K)
        assert list(found) == ["large", "none", "small"]
        users = result.ranked.is_evaluated.nonzero().squeeze(1).tolist()
        for label, means in found.items():
            wanted = naive_parts(result, label, labels, users)
            values = {metric: mean.value for metric, mean in means.items()}
            assert values == pytest.approx(wanted, nan_ok=True)

    def test_intervals_are_close_to_those_of_a_jackknife(self, result, labels):
        found = result.by_item_group(labels, K)["large"]
        users = result.ranked.is_evaluated.nonzero().squeeze(1).tolist()
        for metric, mean in found.items():
            without = [
                naive_parts(result, "large", labels, [x for x in users if x != user])[metric]
                for user in users
            ]
            center = sum(without) / len(without)
            n = len(users)
            variance = (n - 1) / n * sum((value - center) ** 2 for value in without)
            quantile = stats.t.ppf(0.975, n - 1)
            if "/" in metric:  # the interval of a ratio is one of its logarithm
                width = math.log(mean.high / mean.low) / 2
                assert width == pytest.approx(quantile * math.sqrt(variance) / mean.value, rel=0.05)
                continue
            margin = quantile * math.sqrt(variance)
            assert (mean.high - mean.low) / 2 == pytest.approx(margin, rel=0.05)

    def test_shares_of_all_groups_add_up(self, result, labels):
        every = [label or "rest" for label in labels]
        means = result.by_item_group(every, K).values()
        for share in (f"exposure@{K}", "relevance"):
            assert sum(mean[share].value for mean in means) == pytest.approx(1)
        (whole,) = result.by_item_group([1] * NUM_ITEMS, K).values()
        assert whole[f"exposure@{K} / relevance"].value == 1
        assert whole[f"recall@{K}"].value == pytest.approx(
            result.contributions(f"recall@{K}").nanmean()
        )

    def test_labels_in_another_order_than_the_items_are_refused(self, result, labels):
        series = pd.Series(labels)
        ours = result.by_item_group(labels, K)
        assert str(result.by_item_group(series, K)) == str(ours)
        with pytest.raises(ValueError, match=r"'groups' .* in their order"):
            result.by_item_group(series.sort_values(), K)

    def test_the_table(self, result, labels):
        head, _, *rows, note = str(result.by_item_group(labels, K, level=0.9)).splitlines()
        assert head.split("  ")[0] == "items"
        assert len(rows) == 3
        assert note == "±: 90% confidence interval of the mean over users"

    def test_persons_are_drawn_with_all_rows(self, task, labels):
        person = torch.arange(NUM_USERS) // 3
        scores = random_scores(task, 1)
        rows = evaluate(scores, task, METRICS, keep_items=K)
        persons = evaluate(scores, task.with_person(person), METRICS, keep_items=K)
        one, other = rows.by_item_group(labels, K), persons.by_item_group(labels, K)
        for label in one:
            for metric, mean in one[label].items():
                assert other[label][metric].value == pytest.approx(mean.value)
                assert other[label][metric].low != mean.low
        assert "for other persons" in str(other)

    def test_it_is_the_same_on_every_device(self, device, task, result, labels):
        scores = random_scores(task, 1).to(device)
        moved = evaluate(scores, task.to(device), METRICS, keep_items=K)
        assert str(moved.by_item_group(labels, K)) == str(result.by_item_group(labels, K))

    def test_what_is_wrong_is_named(self, task, result, labels):
        with pytest.raises(ValueError, match=r"shape \[14\], a label for every item \(got \[3\]"):
            result.by_item_group([0, 1, 2], K)
        with pytest.raises(ValueError, match=f"'k' needs to be at most {K}"):
            result.by_item_group(labels, K + 1)
        without = evaluate(random_scores(task, 1), task, "recall@4")
        with pytest.raises(ValueError, match="keep_items"):
            without.by_item_group(labels, K)
        with pytest.raises(ValueError, match="'level' needs to be"):
            result.by_item_group(labels, K, level=2)


class TestGaps:
    def test_of_users_in_groups_of_their_own(self, result):
        groups = [user % 3 for user in range(NUM_USERS)]
        found = result.by(groups)
        gaps = [gap for gap in found.gaps() if gap.metric == "recall@2"]
        assert [(gap.a, gap.b) for gap in gaps] == list(combinations(range(3), 2))
        values = result.contributions("recall@2")
        for gap in gaps:
            parts = [values[torch.tensor(groups) == label] for label in (gap.a, gap.b)]
            parts = [part[~part.isnan()] for part in parts]
            means = [float(part.mean()) for part in parts]
            errors = [float(part.var()) / len(part) for part in parts]
            assert gap.difference == pytest.approx(means[0] - means[1])
            quantile = stats.t.ppf(0.975, min(map(len, parts)) - 1)
            margin = quantile * math.sqrt(sum(errors))
            assert gap.high - gap.difference == pytest.approx(margin)
            assert gap.ratio == pytest.approx(means[0] / means[1])
            relative = math.sqrt(errors[0] / means[0] ** 2 + errors[1] / means[1] ** 2)
            factor = math.exp(quantile * relative)
            assert gap.ratio / gap.ratio_low == pytest.approx(factor)
            assert gap.ratio_high / gap.ratio == pytest.approx(factor)

    def test_of_items_that_share_their_users(self, result, labels):
        found = result.by_item_group(labels, K)
        by_pair = {(gap.metric, gap.a): gap for gap in found.gaps("small")}
        gap = by_pair[f"exposure@{K}", "large"]
        large, small = (found[label][f"exposure@{K}"] for label in ("large", "small"))
        assert gap.difference == pytest.approx(large.value - small.value)
        # More for one group is less for the other, so that errors add up.
        apart = math.hypot(large.high - large.value, small.high - small.value)
        assert gap.high - gap.difference > apart

    def test_a_group_with_itself(self, result, labels):
        found = result.by_item_group([1, 2] * (NUM_ITEMS // 2), K)
        assert next(iter(found.gaps(1))).a == 2
        assert len(result.by([0] * NUM_USERS).gaps()) == 0

    def test_popularity_and_degree_have_gaps(self, result):
        pd = pytest.importorskip("pandas")
        for found in (result.by_degree(2), result.recall_by_popularity(2, 2)):
            frame = found.gaps().to_pandas()
            assert isinstance(frame, pd.DataFrame)
            assert frame.metric.is_unique
            assert frame.low[0] < frame.difference[0] < frame.high[0]

    def test_the_table_and_the_sequence(self, result):
        gaps = result.by([user % 3 for user in range(NUM_USERS)]).gaps()
        assert repr(gaps) == "Gaps(6 gaps)"
        assert gaps[0] is gaps[:1][0]
        assert str(gaps).splitlines()[-1] == "difference: a - b; ratio: a / b"

    def test_another_reference_is_named(self, result):
        with pytest.raises(ValueError, match=r"'reference' needs to be one of \[0, 1\] \(got 2\)"):
            result.by([user % 2 for user in range(NUM_USERS)]).gaps(2)

    def test_there_is_no_ratio_to_zero(self):
        truth = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])
        task = RankingTask(truth, num_users=4, num_items=2)
        result = evaluate(torch.tensor([1.0, 0.0]), task, "recall@1")
        (gap,) = result.by([0, 0, 1, 1]).gaps()
        assert gap.difference == 1
        assert math.isnan(gap.ratio)
