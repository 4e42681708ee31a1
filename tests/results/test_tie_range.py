"""What is said about ties: how many there are, and how far they can move a mean."""

import warnings

import pytest
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import (
    EvaluationResult,
    Evaluator,
    RankedEdges,
    RankingTask,
    evaluate,
    metrics,
    rank,
)
from pyg_recmetrics.results.tie_range import TieRange
from tests.support.cases.random_tasks import random_task

#: Metrics of which the value of each user is only its own, and others.
METRICS = [
    "recall@3",
    "ndcg@5",
    "recall(average=micro)@3",
    "roc_auc(weight=candidates)",
    "roc_auc(weight=relevant)",
    "adjusted_mean_rank_index",
    "mrr",
    "mrr(hits=all)@9",
    "r_precision(users=hit)",
]


def one_against(num_others, num_users=50):
    """Every user has one relevant item, the first, and sampled candidates."""
    user = torch.arange(num_users).repeat_interleave(num_others + 1)
    item = torch.arange(num_others + 1).repeat(num_users)
    truth = torch.stack([torch.arange(num_users), torch.zeros(num_users, dtype=torch.long)])
    return RankingTask(
        truth,
        num_users=num_users,
        num_items=num_others + 1,
        candidates=torch.stack([user, item]),
    )


@pytest.fixture
def task():
    return random_task(40, 60, truth_share=0.1, seen_share=0.1)


class TestWarning:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_of_a_constant_model(self, task, dtype):
        with pytest.warns(UserWarning, match=r"recall@20 is \.0000 to 1\.0000, .* depending"):
            evaluate(torch.ones(60, dtype=dtype), task)

    def test_of_a_positive_in_front_of_sampled_negatives(self):
        with pytest.warns(UserWarning, match=r"mrr is \.0100 to 1\.0000 depending on the order"):
            result = evaluate(lambda users: torch.zeros(len(users), 100), one_against(99), "mrr")
        assert result["mrr"] == 1  # which is why there is a warning
        assert result.num_tied == 50

    def test_the_line_that_is_blamed_is_the_callers(self):
        evaluator = Evaluator(one_against(9), "mrr")
        for call in (evaluator, lambda scores: evaluate(scores, one_against(9), "mrr")):
            with pytest.warns(UserWarning, match="order of ties") as warned:
                call(torch.ones(10))
            assert warned[0].filename == __file__

    def test_of_scored_pairs(self):
        ranked = RankedEdges.from_pairs(
            torch.zeros(100), torch.arange(100) == 0, torch.zeros(100, dtype=torch.long)
        )
        with pytest.warns(UserWarning, match=r"mrr is \.0100 to 1\.0000"):
            EvaluationResult(ranked, "mrr")

    def test_of_a_flattering_order_that_was_asked_for(self):
        with pytest.warns(UserWarning, match="depending on the order of ties"):
            evaluate(torch.ones(100), one_against(99), "mrr", ties="best")

    @pytest.mark.parametrize("ties", ["mean", "worst", "random"])
    def test_no_word_if_ties_do_not_flatter(self, ties):
        scores = torch.ones(100)
        scores[-1] = 0
        result = evaluate(scores, one_against(99), "mrr", ties=ties)
        assert result.num_tied == 50
        assert result["mrr"] < 0.15

    @pytest.mark.parametrize("ties", ["mean", "worst", "random"])
    def test_of_a_constant_model_however_ties_are_ranked(self, ties):
        with pytest.warns(UserWarning, match=r"mrr is \.0100 to 1\.0000 depending"):
            evaluate(torch.ones(100), one_against(99), "mrr", ties=ties)

    def test_of_a_single_user(self):
        scores = torch.ones(1, 100)
        scores[0, 99] = 2
        task = RankingTask(torch.tensor([[0], [0]]), num_users=1, num_items=100)
        with pytest.warns(UserWarning, match=r"mrr@10 is \.0000 to \.5000 depending"):
            evaluate(scores, task, "mrr@10")

    def test_no_word_of_scores_that_differ(self, task):
        scores = torch.rand(40, 60, generator=torch.Generator().manual_seed(0))
        result = evaluate(scores, task)
        assert result.num_tied == 0
        assert "same score" not in str(result)

    def test_no_word_if_few_ties_move_a_mean_less_than_its_interval(self, task):
        scores = torch.rand(40, 60, generator=torch.Generator().manual_seed(0))
        user, item = task.truth[:, 0].tolist()
        scores[user, (item + 1) % 60] = scores[user, item]
        result = evaluate(scores, task, full_metrics := ["mrr", "roc_auc"])
        assert result.num_tied >= 1
        assert "ground-truth edges have the same score as another candidate" in str(result)
        for name in full_metrics:
            low, high = result.tie_range(name)
            assert low <= result[name] <= high

    def test_no_word_if_no_metric_moves(self):
        evaluate(torch.ones(10), one_against(9), "recall@10")

    def test_no_word_of_a_trained_model(self, lastfm):
        task = RankingTask.from_data(lastfm)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = LightGCN(task.num_users + task.num_items, embedding_dim=16, num_layers=2)
        user, item = task.seen + torch.tensor([[0], [task.num_users]])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for shift in range(1, 6):
            negative = task.num_users + (item + shift) % task.num_items
            pairs = torch.stack([torch.cat([user, user]), torch.cat([item, negative])])
            positive, negative = model(task.edge_index, pairs).chunk(2)
            loss = model.recommendation_loss(positive, negative, node_id=user.unique())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            evaluate(model, task)


class TestRange:
    @pytest.mark.usefixtures("expect_ties")
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("action", ["skip", "neg"])
    def test_it_is_that_of_the_best_and_the_worst_order(self, task, metric, action):
        generator = torch.Generator().manual_seed(1)
        scores = torch.randint(0, 12, (40, 60), generator=generator).float()
        scores[::3] = torch.rand(14, 60, generator=generator)  # these users have no ties
        options = {"empty_target_action": action}
        result = evaluate(scores, task, metric, **options)
        worst, best = (
            evaluate(scores, task, metric, ties=ties, **options)[metric]
            for ties in ("worst", "best")
        )
        assert worst < best
        assert result.tie_range(metric) == pytest.approx((worst, best), rel=1e-12)

    def test_it_is_the_mean_where_nothing_ties(self, task):
        scores = torch.rand(40, 60, generator=torch.Generator().manual_seed(0))
        result = evaluate(scores, task, ["recall@3", "novelty@3"], keep_items=True)
        for metric, mean in result.items():
            assert result.tie_range(metric) == pytest.approx((mean, mean))
        lists = evaluate(scores.argsort(descending=True), task, "recall@3")
        assert lists.num_tied is None
        assert lists.tie_range("recall@3") == pytest.approx((lists["recall@3"],) * 2)

    def test_a_metric_of_all_ranks_needs_a_whole_ranking_for_its_range(self):
        task = RankingTask(torch.tensor([[0], [0]]), num_users=1, num_items=4)
        result = EvaluationResult(rank(torch.zeros(4), task, k=2), ["roc_auc"])
        assert result["roc_auc"] == 1
        with pytest.raises(ValueError, match="rank of every"):
            result.tie_range("roc_auc")

    def test_it_prints_as_the_table_does(self):
        assert str(TieRange(0.0, 1.0)) == ".0000 to 1.0000"


@pytest.mark.usefixtures("expect_ties")
class TestOptions:
    def test_evaluate_and_evaluator_rank_ties_as_asked(self):
        task = one_against(9)
        for ties, place in (("index", 1), ("best", 1), ("worst", 10), ("mean", 5.5)):
            result = evaluate(torch.ones(10), task, "mean_rank", ties=ties)
            assert result["mean_rank"] == place
            assert Evaluator(task, "mean_rank", ties=ties)(torch.ones(10))["mean_rank"] == place
            assert result.ranked.ties == ties
        one, other = (
            evaluate(torch.ones(10), task, "mean_rank", ties="random", seed=seed)["mean_rank"]
            for seed in (0, 1)
        )
        assert 4 < one < 7
        assert one != other

    def test_a_convention_may_say_how(self):
        from dataclasses import replace

        from pyg_recmetrics import conventions

        fair = replace(conventions.get("standard"), name="fair", ties="mean")
        task = one_against(9)
        assert evaluate(torch.ones(10), task, "mean_rank", convention=fair)["mean_rank"] == 5.5
        lists = torch.arange(10).repeat(50, 1)
        assert evaluate(lists, task, "mrr@10", convention=fair)["mrr@10"] == 1
        asked = evaluate(torch.ones(10), task, "mean_rank", convention=fair, ties="worst")
        assert asked["mean_rank"] == 10

    def test_wrong_ways_are_named_before_anything_is_ranked(self):
        with pytest.raises(ValueError, match="'ties' needs to be one of"):
            Evaluator(one_against(9), "mrr", ties="first")

    def test_the_recipe_of_lists_says_nothing_of_scores(self):
        lists = torch.arange(10).repeat(50, 1)
        assert "equal scores" not in evaluate(lists, one_against(9), "mrr@10").recipe()

    @pytest.mark.parametrize("ties", ["index", "mean"])
    def test_the_recipe_says_how(self, ties):
        recipe = evaluate(torch.ones(10), one_against(9), "mrr", ties=ties).recipe()
        words = {"index": "rank the lower item id first", "mean": "the mean of their best and"}
        assert words[ties] in " ".join(recipe.split())

    def test_they_survive_a_file(self, tmp_path):
        result = evaluate(torch.ones(10), one_against(9), "mrr", ties="mean")
        result.save(tmp_path / "result.npz")
        again = EvaluationResult.load(tmp_path / "result.npz")
        assert again.ranked.rank.tolist() == result.ranked.rank.tolist() == [5.5] * 50
        assert (again.num_tied, again["mrr"]) == (50, result["mrr"])
        assert again.tie_range("mrr") == result.tie_range("mrr") == pytest.approx((0.1, 1.0))
        assert metrics.mrr(again.ranked).tolist() == [1 / 5.5] * 50
