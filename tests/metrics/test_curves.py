"""Metrics at every k at once, and what is read off them."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pyg_recmetrics.metrics.curves
from pyg_recmetrics import RankedEdges, RankingTask, metrics, rank
from tests.support.cases.strategies import cases, scored_pairs

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


@given(case=cases(), max_k=st.integers(1, 12))
def test_a_curve_is_the_metric_at_every_k(case, max_k):
    ranked = rank(case.score_matrix, case.task(), k=max_k)
    for name in ("recall", "ndcg(gain=exponential)", "map(normalizer=hits)"):
        curve = metrics.curve(ranked, name, max_k)
        assert curve.shape == (case.num_users, max_k)
        for k in range(1, max_k + 1):
            assert torch.equal(
                curve[:, k - 1].nan_to_num(-1), metrics.parse(f"{name}@{k}")(ranked).nan_to_num(-1)
            )


@given(case=cases(max_users=15), max_k=st.none() | st.integers(1, 12), adaptive_k=st.booleans())
def test_the_size_of_blocks_of_cut_offs_changes_nothing(case, max_k, adaptive_k):
    ranked = RankedEdges.from_pairs(*scored_pairs(case))
    whole = metrics.precision_recall_curve(ranked, max_k, adaptive_k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyg_recmetrics.metrics.curves, "_NUM_VALUES_AT_ONCE", 1)
        in_blocks = metrics.precision_recall_curve(ranked, max_k, adaptive_k)
    assert all(map(torch.equal, whole, in_blocks))


def naive_recall_at_fixed_precision(case, min_precision, max_k, adaptive_k, action):
    """The largest recall and its largest cut-off, in exact fractions."""
    users = [user for user, ranking in enumerate(case.rankings) if ranking]
    best = (Fraction(0), None)
    for k in range(1, max_k + 1):
        precisions, recalls = [], []
        for user in users:
            ranking, truth = case.rankings[user], case.truths[user]
            if truth:
                hits = sum(item in truth for item in ranking[:k])
                precisions.append(Fraction(hits, min(k, len(ranking)) if adaptive_k else k))
                recalls.append(Fraction(hits, len(truth)))
            elif action != "skip":
                precisions.append(Fraction(action == "pos"))
                recalls.append(Fraction(action == "pos"))
        precision, recall = (
            sum(values, Fraction(0)) / max(len(values), 1) for values in (precisions, recalls)
        )
        if precision >= min_precision and recall > 0 and recall >= best[0]:
            best = (recall, k)
    return best if best[1] else (Fraction(0), max_k)


@settings(max_examples=100)
@given(
    case=cases(max_users=15),
    max_k=st.none() | st.integers(1, 12),
    adaptive_k=st.booleans(),
    action=st.sampled_from(["neg", "pos", "skip"]),
    min_precision=st.sampled_from(
        ["0", "1/10", "1/5", "1/4", "3/10", "1/3", "1/2", "2/3", "4/5", "1"]
    )
    | st.fractions(0, 1, max_denominator=100),
)
def test_recall_at_a_fixed_precision_equals_a_naive_loop(
    case, max_k, adaptive_k, action, min_precision
):
    min_precision = Fraction(min_precision)
    ranked = RankedEdges.from_pairs(*scored_pairs(case))
    recall, k = metrics.recall_at_fixed_precision(
        ranked, float(min_precision), max_k, adaptive_k, empty_target_action=action
    )
    max_k = max_k or max(map(len, case.rankings))
    wanted = naive_recall_at_fixed_precision(case, min_precision, max_k, adaptive_k, action)
    assert float(recall) == pytest.approx(float(wanted[0]), abs=1e-12)
    assert k == wanted[1]


class TestRecallAtFixedPrecision:
    #: Precisions 1, 1/2, 2/3, 1/2 and recalls 1/2, 1/2, 1, 1.
    ranked = RankedEdges.from_topk(torch.tensor([[0, 1, 2, 3]]), torch.tensor([[0, 0], [0, 2]]))

    @pytest.mark.parametrize(
        ("min_precision", "recall", "k"),
        [(0, 1, 4), (0.5, 1, 4), (2 / 3, 1, 3), (0.667, 0.5, 1), (1, 0.5, 1)],
    )
    def test_the_largest_cut_off_of_the_largest_recall(self, min_precision, recall, k):
        found = metrics.recall_at_fixed_precision(self.ranked, min_precision, max_k=4)
        assert [float(value) for value in found] == [recall, k]

    def test_no_cut_off_has_the_precision(self):
        late = RankedEdges.from_topk(torch.tensor([[1, 2, 0]]), torch.tensor([[0], [0]]))
        found = metrics.recall_at_fixed_precision(late, 0.5, max_k=3)
        assert [float(value) for value in found] == [0, 3]

    def test_there_is_no_hit(self):
        missed = RankedEdges.from_topk(torch.tensor([[1, 2, 3]]), torch.tensor([[0], [0]]))
        found = metrics.recall_at_fixed_precision(missed, 0.0, max_k=3)
        assert [float(value) for value in found] == [0, 3]

    def test_a_recall_that_is_not_defined_is_not_the_largest(self):
        def mean_below_one(values, dim):
            mean = values.mean(dim=dim)
            return mean.masked_fill(mean == 1, math.nan)

        found = metrics.recall_at_fixed_precision(
            self.ranked, 0.0, max_k=4, aggregation=mean_below_one
        )
        assert [float(value) for value in found] == [0.5, 2]

    @pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, True, "0.5", None])
    def test_a_precision_that_cannot_be_is_named(self, wrong):
        with pytest.raises(ValueError, match="'min_precision' needs to be"):
            metrics.recall_at_fixed_precision(self.ranked, wrong, max_k=4)


@pytest.mark.filterwarnings("ignore:.*(gives too few items|holds every item once)")
class TestWhoCounts:
    truth = torch.tensor([[0, 1, 1, 2], [0, 1, 2, 0]])
    lists = torch.tensor([[0, 1, 2], [0, 1, 2], [2, 1, 0], [0, 1, 2]])

    @pytest.mark.parametrize("action", ["neg", "pos", "skip"])
    def test_only_users_who_are_evaluated(self, action):
        users = torch.tensor([1, 3])
        task = RankingTask(self.truth, num_users=4, num_items=3, users=users)
        options = {"empty_target_action": action}
        ranked = rank(self.lists, task, k=3)
        found = metrics.precision_recall_curve(ranked, 3, **options)
        by_hand = {"neg": [0, 0.25, 0.5], "pos": [0.5, 0.75, 1], "skip": [0, 0.5, 1]}
        assert found[1].tolist() == by_hand[action]
        alone = RankedEdges.from_topk(self.lists[users], torch.tensor([[0, 0], [1, 2]]))
        for one, other in zip(
            found, metrics.precision_recall_curve(alone, 3, **options), strict=True
        ):
            assert torch.equal(one, other)

    def test_others_without_truth_are_no_error(self):
        task = RankingTask(self.truth, num_users=4, num_items=3, users=torch.tensor([0, 1]))
        ranked = rank(self.lists, task, k=3)
        metrics.precision_recall_curve(ranked, 3, empty_target_action="error")
        everybody = RankingTask(self.truth, num_users=4, num_items=3)
        with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
            metrics.precision_recall_curve(
                rank(self.lists, everybody, k=3), 3, empty_target_action="error"
            )


class TestOptions:
    ranked = rank(
        torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), torch.tensor([[0, 0], [0, 2]]), full=True
    )

    def test_a_function_can_aggregate(self):
        _, recalls, top_k = metrics.precision_recall_curve(
            self.ranked, aggregation=lambda values, dim: values.sum(dim=dim)
        )
        assert recalls.tolist() == [0.5, 0.5, 1.0]
        assert top_k.tolist() == [1, 2, 3]

    def test_all_users_skipped(self):
        empty = RankedEdges.from_topk(torch.tensor([[1]]), torch.empty(2, 0, dtype=torch.long))
        found = metrics.precision_recall_curve(empty, 2, empty_target_action="skip")
        assert [values.tolist() for values in found] == [[0, 0], [0, 0], [1, 2]]

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"max_k": 0}, ValueError, "'max_k' needs to be a positive integer"),
            ({"adaptive_k": 1}, TypeError, r"'adaptive_k' needs to be a boolean \(got 1\)"),
            ({"aggregation": "sum"}, ValueError, r"'aggregation' .*'max'\] or a function"),
            ({"empty_target_action": "error"}, ValueError, r"'error' \(got 1 without\)"),
            ({"empty_target_action": "no"}, ValueError, r"'neg', 'pos', .*\(got 'no'\)"),
        ],
    )
    def test_wrong_ones_are_named(self, options, error, message):
        with pytest.raises(error, match=message):
            metrics.precision_recall_curve(self.ranked, **options)

    def test_lists_do_not_say_how_many_candidates_there_are(self):
        lists = RankedEdges.from_topk(torch.tensor([[1]]), torch.tensor([[0], [1]]))
        with pytest.raises(ValueError, match="number of candidates"):
            metrics.precision_recall_curve(lists)
        assert metrics.precision_recall_curve(lists, 2)[0].tolist() == [1, 0.5]

    def test_nobody_says_how_many_candidates_there_are(self):
        nobody = RankedEdges.from_pairs(torch.empty(0), *torch.empty(2, 0, dtype=torch.long))
        with pytest.raises(ValueError, match="'max_k' needs to be given if there are no users"):
            metrics.precision_recall_curve(nobody)
        assert metrics.precision_recall_curve(nobody, 2)[0].tolist() == [0, 0]

    def test_not_deeper_than_was_ranked(self):
        task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=9)
        with pytest.raises(ValueError, match=r"'max_k' needs to be at most 2, .*\(got 3\)"):
            metrics.precision_recall_curve(rank(torch.arange(9.0), task, k=2), 3)
        with pytest.raises(ValueError, match="'max_k' needs to be a positive integer"):
            metrics.curve(self.ranked, "r_precision", 0)
        with pytest.raises(ValueError, match="'r_precision' has no cut-off"):
            metrics.curve(self.ranked, "r_precision", 3)


@pytest.mark.parametrize(
    "function", [metrics.precision_recall_curve, metrics.recall_at_fixed_precision]
)
def test_the_call_of_torchmetrics_says_how_to_rank_pairs(function):
    preds, target = torch.tensor([0.2, 0.3]), torch.tensor([1, 0])
    with pytest.raises(TypeError, match=r"'ranked' .*got Tensor.*RankedEdges\.from_pairs\(preds"):
        function(preds, target)
