"""Groups of users and buckets of items, against plain loops."""

import itertools
import math
import re
from collections import defaultdict
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    Runs,
    datasets,
    evaluate,
    transforms,
)
from pyg_recmetrics.results.cohorts import means_of_same_degree
from tests.support.cases.random_tasks import random_scores

METRICS = ["recall@3", "ndcg@3", "r_precision"]
NUM_USERS, NUM_ITEMS = 70, 14


def make(**options):
    """The result of a random task, in which the last items are seen by more users."""
    generator = torch.Generator().manual_seed(0)
    kind = torch.rand(NUM_USERS, NUM_ITEMS, generator=generator)
    kind += torch.linspace(0, 0.15, NUM_ITEMS)
    truth, seen = (kind < 0.2).nonzero().t(), (kind > 0.85).nonzero().t()
    users = options.pop("users", None)
    task = RankingTask(truth, seen=seen, num_users=NUM_USERS, num_items=NUM_ITEMS, users=users)
    scores = torch.rand(NUM_USERS, NUM_ITEMS, generator=generator)
    return evaluate(scores, task, METRICS, **options)


@pytest.fixture(scope="module")
def result():
    return make()


def naive_means(result, label_of):
    """`{label: {metric: values}}` by loops over users."""
    values = defaultdict(lambda: defaultdict(list))
    for metric in METRICS:
        for user, value in enumerate(result.values_of(metric)[0].tolist()):
            if label_of(user) is not None and not math.isnan(value):
                values[label_of(user)][metric].append(value)
    return values


def assert_means(cohorts, expected):
    for label, metrics in expected.items():
        for metric, values in metrics.items():
            mean = cohorts[label][metric]
            assert mean.num_users == len(values)
            assert mean.value == pytest.approx(np.mean(values))
            if len(values) > 1:
                margin = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
                low, high = max(np.mean(values) - margin, 0), min(np.mean(values) + margin, 1)
                assert (mean.low, mean.high) == pytest.approx((low, high), abs=1e-6)
            else:
                assert math.isnan(mean.low)
                assert math.isnan(mean.high)


class TestGroups:
    names = ("ann", "bob", None, "cy")

    @pytest.mark.parametrize("action", ["skip", "neg"])
    def test_means_and_intervals_are_those_of_a_loop(self, action):
        result = make(empty_target_action=action, users=torch.arange(2, NUM_USERS))
        labels = [self.names[user % 4] for user in range(NUM_USERS)]
        by_name = result.by(labels)
        assert list(by_name) == ["ann", "bob", "cy"]
        assert_means(by_name, naive_means(result, lambda user: labels[user]))

    def test_level_of_the_interval(self, result):
        (everybody,) = result.by(["all"] * NUM_USERS, level=0.5).values()
        assert everybody["ndcg@3"][1:3] == result.confidence_interval("ndcg@3", 0.5)

    def test_labels_in_another_order_than_the_users_are_refused(self):
        task = RankingTask([[0, 1, 2], [0, 1, 2]], num_users=3, num_items=3, user_ids=[*"abc"])
        result = evaluate(torch.tensor([0.1, 0.2, 0.3]), task, ["mrr"])
        group = pd.Series({"c": "new", "a": "old", "b": "new"})
        means = {label: group["mrr"].value for label, group in result.by(group[[*"abc"]]).items()}
        assert means == {"old": pytest.approx(1 / 3), "new": pytest.approx(3 / 4)}
        with pytest.raises(ValueError, match=r"original ids .* \(got labels that start with"):
            result.by(group)


class TestDegree:
    @pytest.mark.parametrize("bins", [1, 2, 5, 100])
    def test_groups_are_ranges_of_the_training_degree(self, result, bins):
        degree = torch.bincount(result.task.seen[0], minlength=NUM_USERS).tolist()
        by_degree = result.by_degree(bins)
        assert 1 <= len(by_degree) <= bins
        ranges = [tuple(map(int, (label.split("-") * 2)[:2])) for label in by_degree]
        assert all(lower[1] < upper[0] for lower, upper in itertools.pairwise(ranges))
        labels = dict.fromkeys(range(NUM_USERS))
        for label, (low, high) in zip(by_degree, ranges, strict=True):
            labels |= {user: label for user in labels if low <= degree[user] <= high}
        expected = naive_means(result, labels.get)
        assert set(expected) == set(by_degree)
        assert_means(by_degree, expected)

    def test_it_needs_a_task(self):
        ranked = RankedEdges.from_topk(torch.tensor([[0, 1]]), torch.tensor([[0], [1]]))
        result = EvaluationResult(ranked, ["recall@1"])
        with pytest.raises(ValueError, match="'by_degree' needs the seen edges of a task"):
            result.by_degree()
        with pytest.raises(ValueError, match="'bins' needs to be a positive integer"):
            make().by_degree(0)


@pytest.mark.parametrize(
    "metric", ["recall(average=micro)@3", "adjusted_mean_rank_index", "roc_auc(average=relevant)"]
)
def test_a_ratio_of_sums_is_that_of_the_group(metric):
    generator = torch.Generator().manual_seed(0)
    seen = (torch.rand(30, 12, generator=generator) < 0.1).float()
    seen[15:, 3:] = 1  # so that these users have few candidates
    truth = (torch.rand(30, 12, generator=generator) < 0.3) & (seen == 0)
    scores = torch.rand(30, 12, generator=generator)
    task = RankingTask(truth.nonzero().T, num_users=30, num_items=12, seen=seen.nonzero().T)
    groups = torch.arange(30) // 15
    result = evaluate(scores, task, metric)
    runs = Runs([result, evaluate(scores.flip(0), task, metric)])
    for label in (0, 1):
        of_group = task.select_users((groups == label).nonzero().squeeze(1))
        alone = evaluate(scores, of_group, metric)[metric]
        assert result.by(groups)[label][metric].value == pytest.approx(alone)
        other = evaluate(scores.flip(0), of_group, metric)[metric]
        of_both = runs.by(groups)[label][metric].value
        assert of_both == pytest.approx((alone + other) / 2)


def test_gaps_are_those_of_users_in_groups_of_their_own(result):
    groups = [user % 3 for user in range(NUM_USERS)]
    found = result.by(groups)
    gaps = [gap for gap in found.gaps().itertuples() if gap.metric == "recall@3"]
    assert [(gap.a, gap.b) for gap in gaps] == list(combinations(range(3), 2))
    values = result.values_of("recall@3")[0]
    for gap in gaps:
        parts = [values[torch.tensor(groups) == label] for label in (gap.a, gap.b)]
        parts = [part[~part.isnan()] for part in parts]
        means = [float(part.mean()) for part in parts]
        errors = [float(part.var()) / len(part) for part in parts]
        assert gap.difference == pytest.approx(means[0] - means[1])
        of_gap = stats.t(min(map(len, parts)) - 1, gap.difference, math.sqrt(sum(errors)))
        assert gap.high == pytest.approx(of_gap.ppf(0.975))
        assert gap.p_value == pytest.approx(2 * min(of_gap.cdf(0), of_gap.sf(0)))


@pytest.fixture(scope="module")
def split():
    data = datasets.synthetic_interactions(num_users=3000, num_items=1000)
    return RankingTask.from_data(transforms.PerUserSplit(num_test=0.2)(data)[2])


class TestSameDegree:
    """Users beside those who have as many relevant items, so that these numbers do not matter."""

    metrics = ("ndcg@20", "r_precision")

    def test_groups_differ_by_those_with_as_many(self):
        user, item = torch.ones(200, 30).nonzero().t()
        task = RankingTask(
            torch.stack([user, item])[:, item <= user % 3], num_users=200, num_items=30
        )
        runs = Runs([evaluate(random_scores(task, seed), task, METRICS) for seed in (1, 2)])
        labels = torch.arange(200) % 7 // 4
        for result in (runs, runs[0]):
            found = result.by(labels, same_degree=True)
            for metric in METRICS:
                values = result.values_of(metric).double().mean(dim=0)
                frame = pd.DataFrame({"R": task.degree, "value": values, "label": labels})
                cells = (
                    frame.dropna().groupby(["R", "label"])["value"].agg(["mean", "size"]).unstack()
                )
                weight = 1 / (1 / cells["size"]).sum(axis=1)
                wanted = np.average(cells["mean"][1] - cells["mean"][0], weights=weight)
                first, second = (found[label][metric].value for label in (0, 1))
                assert second - first == pytest.approx(wanted)
                share = frame.dropna()["label"].mean()
                assert (1 - share) * first + share * second == pytest.approx(frame["value"].mean())
                (gap,) = (gap for gap in found.gaps().itertuples() if gap.metric == metric)
                assert gap.difference == pytest.approx(-wanted)

    def test_what_groups_differ_by_at_every_number_is_found(self):
        """Where groups and numbers are related, and each has another mean."""
        rng, held = np.random.default_rng(0), 0
        for _ in range(400):
            degree = np.minimum(rng.zipf(1.6, 800), 60)
            group = (rng.random(800) < 1 / (1 + np.exp(-3 * (np.log(degree) - 0.7)))).astype(int)
            values = 0.15 + 0.1 * np.log(degree) / np.log(60) + 0.05 * group
            values = (values + rng.normal(0, 0.15, 800))[:, None]
            first, second = means_of_same_degree(values, group, degree, None)
            low, high = second.minus(first).interval(0.95)
            held += low <= 0.05 <= high
        assert 0.92 <= held / 400 <= 0.98

    def test_a_group_of_other_numbers_has_no_mean(self):
        values, degree = np.arange(6.0)[:, None], np.array([1, 1, 2, 2, 9, 9])
        group = np.array([0, 1, 0, 1, 2, 2])
        first, second, other = means_of_same_degree(values, group, degree, None)
        assert first.minus(second).value == pytest.approx(-1)
        assert math.isnan(other.value)

    def test_who_is_served_alike_differs_by_the_number_of_relevant_items_alone(self, split):
        num_cells = num_outside = 0
        for seed in range(8):
            scores = torch.randn(3000, 1000, generator=torch.Generator().manual_seed(seed))
            scores[tuple(split.truth)] += 2.0
            result = evaluate(scores, split, self.metrics)
            plain, same = (result.by_degree(4, same_degree=flag) for flag in (False, True))
            first, *_, last = plain.values()
            for metric in self.metrics:
                assert first[metric].high < last[metric].low
                gaps = [gap for gap in same.gaps().itertuples() if gap.metric == metric]
                num_outside += sum(not gap.low <= 0 <= gap.high for gap in gaps)
                num_cells += len(gaps)
            assert re.search(r"2\.\d to 7\.\d relevant items a user, on which", plain.remarks[0])
            assert "most metrics depend" in str(plain)
            assert "on which" not in str(same)
        assert num_outside / num_cells <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / num_cells)

    def test_what_does_not_depend_on_it_has_no_remark(self, split):
        result = evaluate(torch.rand(3000, 1000), split, ["roc_auc", "mean_rank"])
        assert "same_degree" not in "".join(result.by_degree(4).remarks)
        of_edges = evaluate(torch.rand(3000, 1000), split, "mrr", per="edge")
        assert "same_degree" not in "".join(of_edges.by_degree(4).remarks)

    def test_what_is_wrong_is_named(self, split):
        task = split.with_person(torch.arange(3000) // 2)
        scores = torch.rand(1000)
        with pytest.raises(ValueError, match=r"'same_degree' needs means over rows"):
            evaluate(scores, task, "mrr", per="person").by([0] * 1500, same_degree=True)
        pooled = evaluate(scores, split, ["mrr", "recall(average=micro)@5"])
        with pytest.raises(ValueError, match=r"means over rows \(got recall\(average=mic"):
            pooled.by_degree(same_degree=True)
        with pytest.raises(TypeError, match="'same_degree' needs to be a boolean"):
            pooled.by_degree(same_degree=1)
