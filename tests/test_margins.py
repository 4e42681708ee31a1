"""evaluate(margin=): random users, until every mean is known to a margin."""

import math
import re

import pytest
import torch

from pyg_recmetrics import (
    EvaluationResult,
    Evaluator,
    Margin,
    Population,
    RankingTask,
    Runs,
    compare,
    conventions,
    evaluate,
)
from pyg_recmetrics.results.notes import line
from tests.support.tools.everything import everything

NUM_USERS, NUM_ITEMS = 6000, 40
METRICS = ["ndcg@5", "recall@5"]


def make_task(num_users=NUM_USERS, without_truth=0, **options):
    generator = torch.Generator().manual_seed(0)
    draw = torch.rand(num_users, NUM_ITEMS, generator=generator)
    # Everybody has a relevant item, but for the last ones.
    draw.scatter_(1, draw.argmin(dim=1, keepdim=True), 0.0)
    draw[num_users - without_truth :].clamp_(min=0.5)
    truth = (draw < 0.08).nonzero().t()
    seen = (draw > 0.95).nonzero().t()
    return RankingTask(truth, num_users=num_users, num_items=NUM_ITEMS, seen=seen, **options)


def some(**conditions):
    return conventions.get("standard").with_population(Population(**conditions))


def make_scores(seed=1, num_users=NUM_USERS):
    return torch.randn(num_users, NUM_ITEMS, generator=torch.Generator().manual_seed(seed)).round(
        decimals=3
    )


TASK, SCORES = make_task(), make_scores()
FULL = evaluate(SCORES, TASK, METRICS)


@pytest.fixture(scope="module")
def sampled():
    return evaluate(SCORES, TASK, METRICS, margin=0.02)


def assert_same_values(result, full, users):
    """The values of users are those of all, and everybody else has none."""
    for name, values in full.per_user.items():
        assert torch.equal(result.per_user[name][users], values[users])
        others = torch.ones(values.numel(), dtype=torch.bool)
        others[users] = False
        assert result.per_user[name][others].isnan().all()


class TestMeans:
    def test_some_users_are_ranked_and_have_the_values_of_all(self, sampled):
        sampling = sampled.sampling
        assert 512 < sampling.num_ranked < NUM_USERS / 2
        assert sampling.stopped == "margin"
        assert (sampling.num_users, sampling.num_without_truth) == (NUM_USERS, 0)
        users = sampled.ranked.users
        assert users.numel() == sampling.num_ranked == sampled.user_counts.num_evaluated
        assert_same_values(sampled, FULL, users)
        assert sampled.task is TASK

    def test_every_mean_is_known_to_the_margin(self, sampled):
        for name in METRICS:
            low, high = sampled.bounds(name)
            assert low <= FULL[name] <= high
            assert max(sampled[name] - low, high - sampled[name]) <= 0.02
            assert sampled[name] == pytest.approx(float(sampled.per_user[name].nanmean()))
            interval = sampled.confidence_interval(name)
            assert interval == pytest.approx(
                evaluate(
                    SCORES, TASK.select_users(sampled.ranked.users), METRICS
                ).confidence_interval(name)
            )

    def test_the_same_users_are_drawn_whatever_is_ranked_and_how(self, sampled):
        again = evaluate(SCORES, TASK, METRICS, margin=0.02, batch_size=7)
        assert again == sampled
        assert again.ranked.users.equal(sampled.ranked.users)
        wider = evaluate(make_scores(2), TASK, METRICS, margin=0.04)
        assert torch.isin(wider.ranked.users, sampled.ranked.users).all()
        other = evaluate(SCORES, TASK, METRICS, margin=Margin(0.02, seed=1))
        assert not other.ranked.users.equal(sampled.ranked.users)

    def test_all_are_ranked_if_half_of_them_would_not_do(self):
        result = evaluate(SCORES, TASK, METRICS, margin=0.001)
        assert result.sampling.stopped == "all"
        assert result == FULL
        assert result.bounds("ndcg@5") == (FULL["ndcg@5"], FULL["ndcg@5"])
        assert result.ranked.users is None
        assert "all users were ranked" in str(result)
        note = line("drawn", result.sampling, result.nouns)
        assert str(FULL) in str(result).replace(f"\n{note}", "")

    def test_there_may_be_a_largest_number_of_users(self):
        result = evaluate(SCORES, TASK, METRICS, margin=Margin(0.001, max_users=700))
        assert (result.sampling.stopped, result.sampling.num_ranked) == ("max_users", 700)
        low, high = result.bounds("ndcg@5")
        assert low <= FULL["ndcg@5"] <= high
        assert high - low > 0.01

    def test_a_margin_may_be_one_of_some_metrics(self):
        names = ["ndcg@5", "recall@5", "dcg@5", "mean_rank"]
        result = evaluate(SCORES, TASK, names, margin={"recall@5": 0.02})
        assert list(result.sampling.margins) == ["recall@5"]
        assert math.isfinite(result["mean_rank"])
        with pytest.raises(ValueError, match=r"'metric' needs to have a margin, as \['recall@5'\]"):
            result.bounds("dcg@5")
        assert "±" not in str(result).split("recall")[0].splitlines()[-1]

    def test_samples_without_users_in_common_are_not_compared(self):
        samples = {
            f"seed {seed}": evaluate(
                SCORES, TASK, METRICS, margin=Margin(0.1, max_users=5, seed=seed)
            )
            for seed in (0, 1)
        }
        with pytest.raises(ValueError, match=r"ranked \(got none for seed 0, seed 1; with a 'mar"):
            compare(samples)

    def test_users_for_whom_a_metric_is_undefined_are_none_of_all(self):
        options = {"convention": some(few_candidates="undefined"), "metrics": ["recall@36"]}
        full = evaluate(SCORES, TASK, **options)
        undefined = full.per_user["recall@36"].isnan()
        assert undefined.any()
        result = evaluate(SCORES, TASK, margin=0.01, **options)
        low, high = result.bounds("recall@36")
        assert low <= full["recall@36"] <= high
        assert result.per_user["recall@36"][undefined].isnan().all()
        assert "the mean over all users with a value is within it" in str(result)


class TestUsersWithoutTruth:
    task = make_task(without_truth=2000)

    @pytest.mark.parametrize("action", ["skip", "neg", "pos"])
    def test_they_are_counted_and_not_sampled(self, action):
        options = {"empty_target_action": action, "metrics": METRICS}
        full = evaluate(SCORES, self.task, **options)
        result = evaluate(SCORES, self.task, margin=0.02, **options)
        assert result.sampling.num_users == full.user_counts.num_evaluated == 4000
        assert result.user_counts.num_without_truth == full.user_counts.num_without_truth == 2000
        assert result.sampling.num_ranked < 2000
        for name in METRICS:
            low, high = result.bounds(name)
            assert low <= full[name] <= high
            assert low <= result[name] <= high
            assert high - low <= 0.04

    def test_they_are_ranked_only_for_their_lists(self):
        asked = []

        def scores(users):
            asked.append(users)
            return SCORES[users]

        def asked_without_truth():
            users = torch.cat(asked)
            asked.clear()
            assert users.numel() == users.unique().numel()
            return int((self.task.degree[users] == 0).sum())

        evaluate(scores, self.task, METRICS, margin=0.03)
        assert asked_without_truth() == 0
        result = evaluate(scores, self.task, METRICS, margin=0.03, keep_items=2)
        assert asked_without_truth() == round(result.sampling.num_ranked / 2)

    @pytest.mark.parametrize("action", ["neg", "pos"])
    @pytest.mark.parametrize("max_users", [1, 513, 1000])
    def test_means_are_those_of_users_with_truth_in_their_share(self, action, max_users):
        options = {"empty_target_action": action, "margin": Margin(0.001, max_users=max_users)}
        result = evaluate(SCORES, self.task, METRICS, **options)
        share = 4000 / NUM_USERS
        for name in METRICS:
            mean = float(result.per_user[name].nanmean())
            shift = 1 - share if action == "pos" else 0
            assert result[name] == pytest.approx(share * mean + shift, abs=1e-12)
            low, high = result.bounds(name)
            assert low - 1e-12 <= result[name] <= high + 1e-12

    @pytest.mark.parametrize("action", ["skip", "neg", "pos"])
    def test_a_metric_that_is_undefined_for_everybody_has_no_mean(self, action):
        users = torch.arange(3000)
        truth, seen = torch.stack([users, users % 7]), torch.stack([users, users * 0 + 8])
        task = RankingTask(truth, num_users=3000, num_items=9, seen=seen)
        options = {"empty_target_action": action, "margin": {"mrr": 0.05}}
        options["convention"] = some(few_candidates="undefined")
        result = evaluate(torch.arange(9.0), task, ["mrr", "recall@9"], **options)
        assert result.sampling.num_counted == {"mrr": 3000, "recall@9": 0}
        assert math.isnan(result["recall@9"])


def test_runs_say_whose_mean_they_are(sampled):
    other = evaluate(make_scores(2), TASK, METRICS, margin=Margin(0.02, seed=7))
    shared = (~sampled.per_user["ndcg@5"].isnan() & ~other.per_user["ndcg@5"].isnan()).sum()
    runs = Runs([sampled, other])
    assert (~runs.values_of("ndcg@5").isnan().any(dim=0)).sum() == shared
    numbers = sampled.sampling.num_ranked, other.sampling.num_ranked
    said = (
        f"of 6,000 users, a 'margin' drew {numbers[0]:,} for run 1, {numbers[1]:,} for "
        f"run 2; only users ranked in every result count"
    )
    assert said in runs.table().notes
    assert "margin" not in str(Runs([FULL, evaluate(make_scores(3), TASK, METRICS)]))


def test_the_same_users_are_ranked_on_any_device(device, sampled):
    task, scores = TASK.to(device), SCORES.to(device)
    result = evaluate(scores, task, METRICS, margin=0.02)
    assert result.ranked.users.device.type == device.type
    assert result.ranked.users.cpu().equal(sampled.ranked.users)
    assert result == pytest.approx(dict(sampled))


def test_a_file_keeps_it(sampled, tmp_path):
    sampled.save(tmp_path / "result.npz")
    loaded = EvaluationResult.load(tmp_path / "result.npz")
    assert loaded.sampling == sampled.sampling
    assert everything(loaded) == everything(sampled)


class TestRefusals:
    @pytest.mark.parametrize(
        "metric", ["coverage@5", "recall(average=micro)@5", "tail_share@5", "dcg@5"]
    )
    def test_metrics_that_a_sample_does_not_bound(self, metric):
        wanted = rf"a margin needs means of bounded values .* \(got '{re.escape(metric)}'\)"
        for margin in (0.01, {"ndcg@5": 0.01}) if metric != "dcg@5" else (0.01,):
            with pytest.raises(ValueError, match=wanted):
                Evaluator(TASK, ["ndcg@5", metric], margin=margin)

    def test_persons_and_what_is_decided_after_ranking(self):
        with pytest.raises(ValueError, match="a margin needs users who are drawn one by one"):
            Evaluator(TASK.with_person(torch.arange(NUM_USERS) // 2), METRICS, margin=0.01)
        with pytest.raises(ValueError, match="a margin needs to know before the ranking who"):
            Evaluator(TASK, METRICS, margin=0.01, convention=some(constant_scores=False))

    @pytest.mark.filterwarnings("ignore:.*a score of '-inf'")
    def test_scores_that_are_masked(self):
        scores = SCORES.clone()
        scores[:, 5:] = -math.inf  # five candidates at most are left
        masked = evaluate(scores, TASK, METRICS, margin=0.02)
        assert_same_values(masked, evaluate(scores, TASK, METRICS), masked.ranked.users)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"size": 0}, r"'margin' needs to be a positive number \(got 0\)"),
            ({"size": math.inf}, r"'margin' needs to be a finite number \(got inf\)"),
            ({"size": {"mrr": 0.1}}, r"'margin' needs to name metrics .* \(got \['mrr'\]\)"),
            ({"size": {}}, r"'margin' needs to name each metric once"),
            ({"size": {"ndcg@5": 0.02, "NDCG@5": 0.05}}, "'margin' needs to name each metric once"),
            ({"size": "small"}, "'margin' needs to be a number or a mapping"),
            ({"size": {"ndcg@5": None}}, "'margin' needs to be a number or a mapping"),
            ({"size": 0.1, "level": 1}, "'level' needs to be a number between 0 and 1"),
            ({"size": 0.1, "max_users": 0}, "'max_users' needs to be a positive integer"),
            ({"size": 0.1, "seed": -1}, "'seed' needs to be a non-negative integer"),
        ],
    )
    def test_odd_arguments(self, options, message):
        with pytest.raises((TypeError, ValueError), match=message):
            Evaluator(TASK, METRICS, margin=Margin(**options))


@pytest.mark.parametrize("metrics", [METRICS, ["roc_auc"]])
@pytest.mark.parametrize("ties", ["index", "random"])
@pytest.mark.parametrize("form", ["scores", "embeddings", "function"])
def test_values_and_lists_of_any_form_are_those_of_all_users(form, ties, metrics):
    scores = SCORES if ties == "index" else SCORES.round()
    forms = {
        "scores": scores,
        "embeddings": (scores, torch.eye(NUM_ITEMS)),
        "function": lambda users: scores[users],
    }
    options = {"metrics": metrics, "keep_items": 3, "ties": ties, "seed": 3}
    full = evaluate(scores, TASK, **options)
    result = evaluate(forms[form], TASK, margin=0.03, **options)
    users, lists = result.ranked.users, result.ranked.lists
    assert_same_values(result, full, users)
    assert lists.to_matrix()[users].equal(full.ranked.lists.to_matrix()[users])
    assert (lists.length(1) > 0).sum() == users.numel() < NUM_USERS
