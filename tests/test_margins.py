"""evaluate(margin=): random users, until every mean is known to a margin."""

import math
import warnings

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
    datasets,
    evaluate,
    report,
)
from pyg_recmetrics.ranked_edges import select_users
from pyg_recmetrics.ranking.models import evaluation_mode
from pyg_recmetrics.ranking.ranking import OpenRanking
from pyg_recmetrics.results.notes import describe_sampling, note_on_sampling

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

    def test_missed_truth_takes_no_irrelevant_candidate_away(self):
        candidates = torch.tensor([[0, 1, 1], [0, 1, 2]])
        truth = torch.tensor([[0, 1], [1, 1]])
        task = RankingTask(truth, num_users=2, num_items=4, candidates=candidates)
        result = evaluate(torch.tensor([0.1, 0.2, 0.3, 0.4]), task, "fall_out@1", margin=0.5)
        assert result.per_user["fall_out@1"].tolist() == [1.0, 1.0]

    def test_all_are_ranked_if_half_of_them_would_not_do(self):
        result = evaluate(SCORES, TASK, METRICS, margin=0.001)
        assert result.sampling.stopped == "all"
        assert result == FULL
        assert result.bounds("ndcg@5") == (FULL["ndcg@5"], FULL["ndcg@5"])
        assert result.ranked.users is None
        assert "all users were ranked" in str(result)
        note = note_on_sampling(result.sampling, result.nouns)
        assert str(FULL) in str(result).replace(f"\n{note}", "")

    def test_few_users_are_ranked_at_once(self):
        result = evaluate(make_scores(num_users=1000), make_task(1000), METRICS, margin=0.2)
        assert result.sampling.stopped == "all"

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

    def test_a_metric_has_one_margin(self):
        with pytest.raises(ValueError, match=r"'margin' needs to name each metric once"):
            evaluate(SCORES, TASK, METRICS, margin={"ndcg@5": 0.02, "NDCG@5": 0.05})

    def test_samples_without_users_in_common_are_not_compared(self):
        samples = {
            f"seed {seed}": evaluate(
                SCORES, TASK, METRICS, margin=Margin(0.1, max_users=5, seed=seed)
            )
            for seed in (0, 1)
        }
        with pytest.raises(ValueError, match=r"ranked \(got none for seed 0, seed 1; with a 'mar"):
            compare(samples)

    def test_more_metrics_take_more_users(self):
        sizes = [
            evaluate(SCORES, TASK, names, margin={"recall@5": 0.02, **more}).sampling.num_ranked
            for names, more in ((METRICS, {}), (METRICS, {"ndcg@5": 1}))
        ]
        assert sizes[0] < sizes[1] < 2 * sizes[0]

    def test_metrics_of_lists_that_need_truth_have_a_margin_too(self):
        full = evaluate(SCORES, TASK, "serendipity@5")
        result = evaluate(SCORES, TASK, "serendipity@5", margin=0.02)
        low, high = result.bounds("serendipity@5")
        assert low <= full["serendipity@5"] <= high
        assert_same_values(result, full, result.ranked.users)

    def test_users_for_whom_a_metric_is_undefined_are_none_of_all(self):
        options = {"convention": some(few_candidates="undefined"), "metrics": ["recall@36"]}
        full = evaluate(SCORES, TASK, **options)
        undefined = full.per_user["recall@36"].isnan()
        assert undefined.any()
        result = evaluate(SCORES, TASK, margin=0.01, **options)
        low, high = result.bounds("recall@36")
        assert low <= full["recall@36"] <= high
        assert result.per_user["recall@36"][undefined].isnan().all()
        assert f"the mean over all {int((~undefined).sum()):,} users is within it" in str(result)

    @pytest.mark.parametrize("ties", ["best", "worst", "mean"])
    def test_ties_are_ranked_as_wanted(self, ties):
        full = evaluate(SCORES, TASK, METRICS, ties=ties)
        result = evaluate(SCORES, TASK, METRICS, ties=ties, margin=0.02)
        assert result.ranked.ties == ties
        assert_same_values(result, full, result.ranked.users)

    def test_lists_are_kept_of_those_who_were_ranked(self):
        full = evaluate(SCORES, TASK, METRICS, keep_items=3)
        result = evaluate(SCORES, TASK, METRICS, keep_items=3, margin=0.02)
        users = result.ranked.users
        lists = result.ranked.lists.to_matrix()
        assert lists[users].equal(full.ranked.lists.to_matrix()[users])
        assert (result.ranked.lists.length(1) > 0).sum() == users.numel()
        everything = evaluate(SCORES, TASK, ["roc_auc"], keep_items=3, margin=0.02)
        both = users[torch.isin(users, everything.ranked.users)]
        assert everything.ranked.lists.to_matrix()[both].equal(lists[both])


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

    def test_few_of_them_do_not_move_a_mean_out_of_its_bounds(self):
        users = torch.arange(3000)
        task = RankingTask(torch.stack([users, users * 0]), num_users=3002, num_items=3)
        scores = torch.tensor([3.0, 2.0, 1.0])
        result = evaluate(scores, task, "recall@1", margin=0.05, empty_target_action="neg")
        assert result.sampling.num_ranked < 3000
        assert result["recall@1"] == pytest.approx(3000 / 3002, abs=1e-12)

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

    def test_words_and_recipes_name_the_users_that_means_are_over(self):
        result = evaluate(SCORES, self.task, METRICS, margin=0.02, empty_target_action="neg")
        assert "the mean over all 6,000 users is within it" in str(result)
        assert "of 4,000 users with ground truth were drawn" in str(result)
        assert "for the mean over all 6,000 users (" in " ".join(result.recipe().split())
        skipping = evaluate(SCORES, self.task, METRICS, margin=0.02)
        assert "the mean over all 4,000 users is within it" in str(skipping)

    def test_they_narrow_the_bounds_if_they_count_as_zero(self):
        sizes = [
            evaluate(
                SCORES, self.task, METRICS, margin=0.02, empty_target_action=action
            ).sampling.num_ranked
            for action in ("skip", "neg")
        ]
        assert sizes[1] < 0.7 * sizes[0]

    def test_they_are_an_error_if_they_are_to_be_one(self):
        with pytest.raises(ValueError, match="needs every user to have ground truth if it is"):
            evaluate(SCORES, self.task, METRICS, margin=0.02, empty_target_action="error")


class TestWhoIsMeant:
    def test_runs_say_whose_mean_they_are(self, sampled):
        other = evaluate(make_scores(2), TASK, METRICS, margin=Margin(0.02, seed=7))
        shared = (~sampled.per_user["ndcg@5"].isnan() & ~other.per_user["ndcg@5"].isnan()).sum()
        runs = Runs([sampled, other])
        assert (~runs.values_of("ndcg@5").isnan().any(dim=0)).sum() == shared
        numbers = sampled.sampling.num_ranked, other.sampling.num_ranked
        assert runs.table().notes[-1] == (
            f"of 6,000 users, a 'margin' drew {numbers[0]:,} for run 1, {numbers[1]:,} for "
            f"run 2; only users ranked in every result count"
        )
        assert "margin" not in str(Runs([FULL, evaluate(make_scores(3), TASK, METRICS)]))

    def test_groups_say_that_users_stand_for_all(self, sampled):
        group, number = torch.arange(NUM_USERS) % 3, f"{sampled.sampling.num_ranked:,}"
        for of in ("by", "by_degree", "recall_by_popularity"):
            options = {"groups": group} if of == "by" else {}
            options |= {"k": 5} if of == "recall_by_popularity" else {}
            assert f"{number} of 6,000 users with ground truth were" in " ".join(
                str(getattr(sampled, of)(**options)).split()
            )
            assert "ranked" not in str(getattr(FULL, of)(**options))
        other = evaluate(make_scores(2), TASK, METRICS, margin=Margin(0.02, seed=7))
        runs = Runs([sampled, other]).by(group)
        assert f"a 'margin' drew {number} for run 1, {other.sampling.num_ranked:,} for" in str(runs)

    def test_queries_are_queries(self):
        query = TASK.truth[0]
        task = RankingTask.from_queries((query // 2, query % 2), TASK.truth[1], num_items=NUM_ITEMS)
        result = evaluate(SCORES, task, "ndcg@5", margin=0.03)
        assert result.sampling.stopped == "margin"
        assert "users" not in str(result)
        assert "queries with ground truth were drawn" in " ".join(result.recipe().split())


class TestEpochs:
    def test_the_same_users_are_ranked_in_every_epoch(self):
        evaluator = Evaluator(TASK, METRICS, margin=0.02)
        results = [evaluator(make_scores(seed)) for seed in (1, 2, 1)]
        sizes = [result.sampling.num_ranked for result in results]
        assert sizes == sorted(sizes)
        first = results[0].ranked.users
        assert all(torch.isin(first, result.ranked.users).all() for result in results)
        assert len(evaluator.history) == 3
        assert evaluator.to("cpu")(make_scores(3)).sampling.num_ranked >= sizes[-1]

    def test_differences_between_epochs_are_paired(self):
        pytest.importorskip("scipy")
        evaluator = Evaluator(TASK, METRICS, margin=0.02)
        a, b = evaluator(SCORES), evaluator(SCORES + 0.1 * make_scores(5))
        comparison = compare({"a": a, "b": b})
        row = next(iter(comparison))
        both = (a.per_user["ndcg@5"] - b.per_user["ndcg@5"]).nanmean()
        assert row.difference == pytest.approx(float(both))
        assert row.wins + row.ties + row.losses == a.sampling.num_ranked


class TestDevices:
    def test_the_same_users_are_ranked_on_any_device(self, device, sampled):
        task, scores = TASK.to(device), SCORES.to(device)
        result = evaluate(scores, task, METRICS, margin=0.02)
        assert result.ranked.users.device.type == device.type
        assert result.ranked.users.cpu().equal(sampled.ranked.users)
        assert result == pytest.approx(dict(sampled))


class TestWords:
    def test_a_table_and_a_recipe_say_that_users_stand_for_all(self, sampled):
        number = f"{sampled.sampling.num_ranked:,}"
        others = ("same score", "training edges")
        lines = str(sampled).splitlines()
        assert [line for line in lines if not any(other in line for other in others)][-3:] == [
            "±: the mean over all 6,000 users is within it, with 95% confidence for all metrics "
            "together",
            f"{number} users evaluated",
            f"{number} of 6,000 users with ground truth were drawn (seed 0), until every mean is "
            f"known to ± 0.02",
        ]
        reach = max(
            sampled["ndcg@5"] - sampled.bounds("ndcg@5").low,
            sampled.bounds("ndcg@5").high - sampled["ndcg@5"],
        )
        assert f"± {reach:.4f}".replace(" 0.", " .") in str(sampled)
        recipe = " ".join(sampled.recipe().split())
        assert f"Population: {describe_sampling(sampled.sampling, sampled.nouns)}" in recipe

    def test_a_comparison_says_it(self, sampled):
        pytest.importorskip("scipy")
        other = evaluate(make_scores(2), TASK, METRICS)
        text = " ".join(str(compare({"A": sampled, "B": other})).split())
        number = f"{sampled.sampling.num_ranked:,}"
        assert f"of 6,000 users, a 'margin' drew {number} for A; only users ranked" in text
        assert "'margin'" not in str(compare({"A": FULL, "B": other}))
        assert Runs([sampled, other]).mean("ndcg@5").low < sampled["ndcg@5"]

    def test_a_report_says_it(self, sampled, tmp_path):
        pytest.importorskip("matplotlib")
        pytest.importorskip("scipy")
        report({"A": sampled, "B": FULL}, tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text()
        assert f"A: {note_on_sampling(sampled.sampling, sampled.nouns)}" in text

    def test_a_file_keeps_it(self, sampled, tmp_path):
        sampled.save(tmp_path / "result.npz")
        loaded = EvaluationResult.load(tmp_path / "result.npz")
        assert loaded.sampling == sampled.sampling
        assert (loaded, str(loaded)) == (sampled, str(sampled))
        assert loaded.recipe() == sampled.recipe()


class TestRefusals:
    @pytest.mark.parametrize(
        ("metric", "reason"),
        [
            ("coverage@5", "which has one value for all users together"),
            ("gini@5", "which has one value for all users together"),
            ("recall(average=micro)@5", "which is a ratio of two sums over users"),
            ("tail_share@5", "which is a mean over those who turn out to have a list"),
            ("r_precision(users=hit)", "which is a mean over those who turn out to have a hit"),
            ("dcg@5", "whose values have no upper bound"),
            ("mean_rank", "whose values have no upper bound"),
        ],
    )
    def test_metrics_that_a_sample_does_not_bound(self, metric, reason):
        with pytest.raises(ValueError, match=r"a margin needs means of bounded values") as error:
            Evaluator(TASK, [metric], margin=0.01)
        assert str(error.value) == (
            f"a margin needs means of bounded values (got '{metric}', {reason}"
            f"{', with or without truth' if 'list' in reason else ''})"
        )

    @pytest.mark.parametrize("metric", ["coverage@5", "recall(average=micro)@5"])
    def test_also_those_without_a_margin_if_a_sample_does_not_estimate_them(self, metric):
        with pytest.raises(ValueError, match="a margin needs means of bounded values"):
            Evaluator(TASK, ["ndcg@5", metric], margin={"ndcg@5": 0.01})

    def test_persons_and_what_is_decided_after_ranking(self):
        with pytest.raises(ValueError, match="a margin needs users who are drawn one by one"):
            Evaluator(TASK.with_person(torch.arange(NUM_USERS) // 2), METRICS, margin=0.01)
        with pytest.raises(ValueError, match="a margin needs to know before the ranking who"):
            Evaluator(TASK, METRICS, margin=0.01, convention=some(constant_scores=False))

    @pytest.mark.filterwarnings("ignore:.*have a score of '-inf'")
    def test_scores_that_decide_for_whom_a_metric_is_defined(self):
        scores = SCORES.clone()
        scores[:, 5:] = -math.inf  # five candidates at most are left
        with pytest.raises(ValueError, match=r"for whom 'recall@20' is defined .* for user \d+"):
            evaluate(
                scores,
                TASK,
                "recall@20",
                margin=0.1,
                convention=some(few_candidates="undefined"),
            )
        masked = evaluate(scores, TASK, METRICS, margin=0.02)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            full = evaluate(scores, TASK, METRICS)
        assert_same_values(masked, full, masked.ranked.users)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"margin": 0}, r"'margin' needs to be a positive number \(got 0\)"),
            ({"margin": -0.1}, r"'margin' needs to be a positive number \(got -0.1\)"),
            ({"margin": math.inf}, r"'margin' needs to be a finite number \(got inf\)"),
            ({"margin": {"mrr": 0.1}}, r"'margin' needs to name metrics .* \(got \['mrr'\]\)"),
            ({"margin": {}}, r"'margin' needs to name each metric once \(got \[\]\)"),
        ],
    )
    def test_odd_arguments(self, options, message):
        with pytest.raises(ValueError, match=message):
            Evaluator(TASK, METRICS, **options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"level": 1}, "'level' needs to be a number between 0 and 1"),
            ({"max_users": 0}, "'max_users' needs to be a positive integer"),
            ({"seed": -1}, "'seed' needs to be a non-negative integer"),
        ],
    )
    def test_odd_margins(self, options, message):
        with pytest.raises(ValueError, match=message):
            Margin(0.1, **options)

    @pytest.mark.parametrize("size", [[0.1], "small", True, {"mrr": None}])
    def test_no_number(self, size):
        with pytest.raises(TypeError, match="'margin' needs to be a number or a mapping"):
            Margin(size)


def test_random_ties_of_a_sample_are_those_of_all():
    options = {"metrics": METRICS, "ties": "random", "seed": 3}
    tied = SCORES.round()
    whole, sampled = evaluate(tied, TASK, **options), evaluate(tied, TASK, margin=0.03, **options)
    users = sampled.ranked.users
    assert users.numel() < NUM_USERS
    for name in METRICS:
        assert sampled.per_user[name][users].equal(whole.per_user[name][users])


@pytest.mark.parametrize("options", [{"k": 5, "full": False}, {"k": None, "full": True}])
@pytest.mark.parametrize("keep_items", [False, 3])
@pytest.mark.parametrize("form", ["scores", "embeddings", "function"])
def test_users_are_ranked_batch_by_batch_as_all_at_once(options, keep_items, form):
    task = make_task(300)
    user, item = (
        torch.randn(size, 6, generator=torch.Generator().manual_seed(size))
        for size in (300, NUM_ITEMS)
    )
    recommender = {
        "scores": user @ item.t(),
        "embeddings": (user, item),
        "function": lambda users: user[users] @ item.t(),
    }[form]
    with evaluation_mode(recommender):
        whole, parts = (
            OpenRanking(
                recommender,
                task,
                batch_size=None,
                keep_items=keep_items,
                progress=False,
                needs_degree=True,
                **options,
            )
            for _ in range(2)
        )
        whole.rank(task.users)
        order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
        for users in order.split(70):
            parts.rank(users.sort().values)
    wanted, found = whole.to_ranked_edges(), parts.to_ranked_edges()
    for name in ("edge_label_index", "rank", "num_above", "num_tied"):
        assert getattr(wanted, name).equal(getattr(found, name)), name
    some = order[:50].sort().values
    part = parts.to_ranked_edges(some)
    selected = select_users(wanted, torch.isin(torch.arange(300), some))
    assert part.rank.equal(selected.rank)
    assert part.users.equal(selected.users)
    if keep_items:
        assert wanted.lists.to_matrix().equal(found.lists.to_matrix())
        assert part.lists.to_matrix()[some].equal(wanted.lists.to_matrix()[some])


@pytest.mark.slow
def test_bounds_hold_from_beginning_to_end():
    """With real rankings, in 150 orders; 7.5 may be wrong, and 3 standard errors."""
    data = datasets.synthetic_interactions(num_users=5000, num_items=200, seed=0)
    truth = data["user", "rates", "item"].edge_index
    task = RankingTask(truth, num_users=5000, num_items=200)
    scores = torch.bincount(truth[1], minlength=200).float()
    full = evaluate(scores, task, METRICS)
    num_wrong = 0
    for seed in range(150):
        result = evaluate(scores, task, METRICS, margin=Margin(0.014, seed=seed))
        bounds = [result.bounds(name) for name in METRICS]
        num_wrong += any(
            not low <= full[name] <= high for name, (low, high) in zip(METRICS, bounds, strict=True)
        )
        assert result.sampling.num_ranked < 2500
    assert num_wrong <= 15
