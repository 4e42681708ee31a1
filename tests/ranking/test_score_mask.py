"""Scores of `-inf`: items that are never retrieved."""

import math
import warnings

import pytest
import torch

from pyg_recmetrics import EvaluationResult, PairScorer, RankedEdges, RankingTask, evaluate, rank
from pyg_recmetrics.ranking.score_mask import ScoreMask

MASKED = -torch.inf
SCORES = torch.tensor([[0.9, MASKED, 0.5, 0.1], [MASKED, 0.2, MASKED, 0.3]])
TRUTH = torch.tensor([[0, 0, 1, 1], [1, 2, 0, 1]])  # two of these edges are masked
TASK = RankingTask(TRUTH, num_users=2, num_items=4)


def forms(scores):
    yield scores
    yield scores.numpy()
    yield scores.double()
    yield lambda users: scores[users]
    yield PairScorer(lambda user, item: scores[user, item])


class TestMaskedItems:
    @pytest.mark.parametrize("form", range(5))
    @pytest.mark.parametrize("options", [{"k": 1}, {"k": 4}, {"full": True}, {"batch_size": 1}])
    def test_they_are_never_retrieved(self, form, options):
        recommender = list(forms(SCORES))[form]
        with pytest.warns(
            UserWarning, match="2 of 4 ground-truth edges have a score of '-inf': th"
        ):
            ranked = rank(recommender, TASK, keep_items=True, **options)
        found = {
            (int(user), int(item)): int(place) if place < 2**62 else None
            for user, item, place in zip(*ranked.edge_label_index, ranked.rank, strict=True)
        }
        assert found == {(0, 1): None, (0, 2): 2, (1, 0): None, (1, 1): 2}
        assert ranked.num_candidates.tolist() == [3, 2]
        width = ranked.pred_index_mat.size(1)
        assert ranked.pred_index_mat.tolist() == [[0, 2, 3, -1][:width], [3, 1, -1, -1][:width]]
        assert ranked.degree.tolist() == [2, 2]  # masked truth is missed, and not forgotten

    def test_so_in_scores_and_pairs_of_others(self):
        from_scores = RankedEdges.from_scores(SCORES, TRUTH)
        user = torch.cartesian_prod(torch.arange(2), torch.arange(4))[:, 0]
        target = torch.zeros(2, 4).index_put_(tuple(TRUTH), torch.ones(4))
        from_pairs = RankedEdges.from_pairs(SCORES, target, user)
        for ranked in (from_scores, from_pairs):
            assert (ranked.rank[[0, 2]] == 2).all()
            assert not ranked.is_hit(None)[[1, 3]].any()
            assert ranked.num_candidates.tolist() == [3, 2]

    def test_masked_truth_is_no_irrelevant_candidate_less(self):
        # User 0 has the candidates 0, 2, 3, of which 2 is relevant; user 1 has 1 (relevant) and 3.
        with pytest.warns(UserWarning, match="count as missed"):
            result = evaluate(SCORES, TASK, ["fall_out@1", "fall_out@2", "fall_out@9"])
        assert result.per_user["fall_out@1"].tolist() == [1 / 2, 1]
        assert result.per_user["fall_out@2"].tolist() == [1 / 2, 1]
        assert result.per_user["fall_out@9"].tolist() == [1, 1]

    def test_users_without_truth_are_the_same_with_and_without_lists(self):
        task = RankingTask(TRUTH[:, 1:2], num_users=2, num_items=4)
        ranked = [rank(SCORES, task, keep_items=keep_items) for keep_items in (False, True)]
        assert ranked[0].num_candidates.tolist() == ranked[1].num_candidates.tolist() == [3, 4]

    def test_one_score_per_item(self):
        task = RankingTask(torch.tensor([[0, 1], [2, 3]]), num_users=2, num_items=4)
        with pytest.warns(UserWarning, match="1 of 2 ground-truth edges have a score"):
            ranked = rank(torch.tensor([0.1, MASKED, 0.3, MASKED]), task, full=True)
        assert ranked.rank[0] == 1
        assert not ranked.is_hit(None)[1]
        assert ranked.num_candidates.tolist() == [2, 2]

    def test_masked_seen_items_rank_as_if_they_were_excluded(self):
        """What PyG's own example does by hand, and `seen` does for everybody."""
        generator = torch.Generator().manual_seed(0)
        scores = torch.rand(20, 30, generator=generator)
        is_seen = torch.rand(20, 30, generator=generator) < 0.3
        is_true = (torch.rand(20, 30, generator=generator) < 0.2) & ~is_seen
        truth, seen = (mask.nonzero().t() for mask in (is_true, is_seen))
        names = ["recall@5", "ndcg@5", "r_precision", "roc_auc", "precision(normalizer=length)@40"]
        wanted = evaluate(scores, RankingTask(truth, num_users=20, num_items=30, seen=seen), names)
        task = RankingTask(truth, num_users=20, num_items=30)
        for recommender in forms(scores.masked_fill(is_seen, MASKED)):
            result = evaluate(recommender, task, names)
            assert result.to_dict() == pytest.approx(wanted.to_dict(), abs=1e-12)

    def test_users_who_are_not_ranked_may_have_no_score(self):
        task = RankingTask(TRUTH[:, 1:2], num_users=2, num_items=4)
        scores = SCORES.clone()
        scores[1] = MASKED
        assert rank(scores, task, full=True).rank.tolist() == [2]

    @pytest.mark.parametrize("metric", ["recall@2", "coverage@2", "mrr"])
    def test_users_without_truth_may_have_no_score(self, metric):
        scores = torch.tensor([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [-torch.inf] * 3])
        task = RankingTask([[0, 1], [0, 0]], num_users=3, num_items=3)
        for recommender in (scores, lambda users: scores[users]):
            result = evaluate(recommender, task, [metric], keep_items=True)
            assert set(result.ranked.pred_index_mat[2].tolist()) <= {-1}
            values = {"recall@2": 0.5, "coverage@2": 1.0, "mrr": 2 / 3}
            assert result[metric] == pytest.approx(values[metric])

    @pytest.mark.parametrize("algorithm", ["search", "dense"])
    def test_a_user_whose_truth_is_no_candidate_counts_as_any_other(self, algorithm):
        scores, candidates = torch.rand(2, 200), torch.arange(199)
        scores[0, 7:9] = MASKED
        task = RankingTask(
            [[0, 1], [199, 3]], num_users=2, num_items=200, candidates=candidates, missing="count"
        )
        for recommender in (scores, lambda users: scores[users]):
            ranked = rank(recommender, task, algorithm=algorithm)
            assert ranked.num_candidates.tolist() == [197, 199]
        scores[0, 7] = torch.inf
        for recommender in (scores, lambda users: scores[users]):
            with pytest.raises(ValueError, match="finite"):
                rank(recommender, task, algorithm=algorithm)

    def test_users_without_candidates_need_no_score(self):
        seen = torch.tensor([[1, 1, 1, 1], [0, 1, 2, 3]])
        task = RankingTask(TRUTH[:, 1:2], num_users=2, num_items=4, seen=seen)
        scores = SCORES.clone()
        scores[1] = MASKED
        for recommender in forms(scores):
            ranked = rank(recommender, task, keep_items=True)
            assert ranked.pred_index_mat[1].eq(-1).all()


class TestErrors:
    @pytest.mark.parametrize("wrong", [math.nan, math.inf])
    @pytest.mark.parametrize("form", range(5))
    def test_what_is_neither_finite_nor_masked(self, wrong, form):
        scores = SCORES.clone()
        scores[1, 1] = wrong
        message = r"finite, or '-inf' for items that must not be retrieved \(got NaN or 'inf'\)"
        with pytest.raises(ValueError, match=message):
            rank(list(forms(scores))[form], TASK)
        with pytest.raises(ValueError, match=r"'scores' needs to hold finite .*\(got 1 NaN or"):
            RankedEdges.from_scores(scores, TRUTH)

    @pytest.mark.parametrize("wrong", [math.nan, math.inf])
    @pytest.mark.parametrize("form", range(4))
    @pytest.mark.parametrize("item", [1, 5, 99])
    @pytest.mark.parametrize("options", [{}, {"keep_items": True}, {"batch_size": 1}])
    def test_a_search_comes_across_them(self, wrong, form, item, options):
        scores = torch.rand(3, 100, generator=torch.Generator().manual_seed(0))
        scores[1, item] = wrong  # item 1 is all that is relevant
        task = RankingTask(torch.tensor([[0, 1, 2], [0, 1, 2]]), num_users=3, num_items=100)
        with pytest.raises(ValueError, match=r"finite, or '-inf' .*\(got NaN or 'inf'\)"):
            rank(list(forms(scores))[form], task, k=5, algorithm="search", **options)

    @pytest.mark.parametrize("form", range(5))
    def test_a_row_without_a_score(self, form):
        scores = SCORES.clone()
        scores[1] = MASKED
        with pytest.raises(ValueError, match=r"got only '-inf' for 1 users, such as user 1\)"):
            rank(list(forms(scores))[form], TASK)
        with pytest.raises(ValueError, match=r"'scores' .*finite score for every user .*number 1"):
            RankedEdges.from_scores(scores, TRUTH)
        with pytest.raises(
            ValueError, match="'preds' needs to hold a finite score for every query"
        ):
            RankedEdges.from_pairs(scores[1], torch.ones(4), torch.zeros(4).long())

    def test_metrics_of_the_whole_ranking_need_a_rank_of_masked_truth(self):
        with (
            pytest.warns(UserWarning, match="count as missed"),
            pytest.raises(ValueError, match="by scores that are finite for relevant items"),
        ):
            evaluate(SCORES, TASK, "roc_auc")


def test_results_say_so_and_survive_a_file(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate(SCORES, TASK, ["recall@2", "r_precision"], keep_items=True)
    assert result["recall@2"] == 0.5
    assert "except 3 pairs of a user and an item with a score of -inf" in " ".join(
        result.recipe().split()
    )
    result.save(tmp_path / "result.npz")
    loaded = EvaluationResult.load(tmp_path / "result.npz")
    assert loaded.to_dict() == result.to_dict()
    assert loaded.recipe() == result.recipe()
    unmasked = evaluate(torch.rand(2, 4), TASK, "recall@2")
    assert "-inf" not in unmasked.recipe()


def test_a_fitted_model_may_leave_a_user_without_a_candidate():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=3)
    mask = ScoreMask(task)
    mask.num_candidates.zero_()
    with pytest.raises(ValueError, match="every user a candidate with a finite score"):
        mask.check()
    mask.allows_empty = True
    mask.check()
