"""Metrics of the whole ranking: values worked out by hand, and the ranks they need."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import EvaluationResult, RankedEdges, metrics, rank


def ranked_by_scores(scores, relevant):
    """A full ranking of few scores, which knows what is above and what is tied with each edge."""
    edges, rank, num_above, num_tied = [], [], [], []
    for user, (row, items) in enumerate(zip(scores, relevant, strict=True)):
        order = sorted(range(len(row)), key=lambda item: (-row[item], item))
        for place, item in enumerate(order, start=1):
            if item in items:
                edges.append((user, item))
                rank.append(place)
                num_above.append(sum(score > row[item] for score in row))
                num_tied.append(row.count(row[item]) - 1)
    degree = torch.tensor([len(items) for items in relevant])
    return RankedEdges(
        torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t(),
        torch.tensor(rank, dtype=torch.long),
        ptr=torch.cat([torch.zeros(1, dtype=torch.long), degree.cumsum(0)]),
        num_candidates=torch.tensor([len(row) for row in scores]),
        num_above=torch.tensor(num_above, dtype=torch.long),
        num_tied=torch.tensor(num_tied, dtype=torch.long),
    )


@st.composite
def tied_scores(draw):
    """Scores of some users, of whom many tie, and the relevant items of each."""
    scores, relevant = [], []
    for _ in range(draw(st.integers(1, 4))):
        row = draw(st.lists(st.integers(0, 3), min_size=1, max_size=9))
        scores.append(row)
        relevant.append(draw(st.sets(st.integers(0, len(row) - 1))))
    return scores, relevant


def auc_with_half_credit(row, relevant):
    """The area under the ROC curve over all pairs, where ties count one half."""
    pairs = [
        (row[good] > row[bad]) + (row[good] == row[bad]) / 2
        for good in relevant
        for bad in range(len(row))
        if bad not in relevant
    ]
    return sum(pairs) / len(pairs) if pairs else math.nan


@given(case=tied_scores())
def test_ties_that_count_one_half_equal_a_loop_over_all_pairs(case):
    scores, relevant = case
    expected = [auc_with_half_credit(*user) for user in zip(scores, relevant, strict=True)]
    value = metrics.roc_auc(ranked_by_scores(scores, relevant), ties="half").tolist()
    assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


def mean_of(name, ranked):
    return float(metrics.parse(name)(ranked).nanmean())


class TestGroupAuc:
    @given(case=tied_scores())
    def test_the_mean_is_weighted_by_the_numbers_of_each_user(self, case):
        scores, relevant = case
        ranked = ranked_by_scores(scores, relevant)
        for weight in ("candidates", "relevant"):
            total, sum_of_weights = 0.0, 0
            for row, items in zip(scores, relevant, strict=True):
                if 0 < len(items) < len(row):
                    own = {"candidates": len(row), "relevant": len(items)}[weight]
                    total += own * auc_with_half_credit(row, items)
                    sum_of_weights += own
            mean = mean_of(f"roc_auc(ties=half,average={weight})", ranked)
            expected = total / sum_of_weights if sum_of_weights else math.nan
            assert mean == pytest.approx(expected, abs=1e-12, nan_ok=True)

    def test_users_of_one_class_have_neither_a_value_nor_a_weight(self):
        # The second user has no truth, and all of the third's many candidates are relevant.
        scores = [[4, 3], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3]]
        ranked = ranked_by_scores(scores, [{0}, (), {0, 1, 2, 3}, {0}])
        value = metrics.roc_auc(ranked, average="candidates").tolist()
        assert value == pytest.approx([2 / 2.5, math.nan, math.nan, 0], nan_ok=True)
        name = "roc_auc(average=candidates)"
        assert EvaluationResult(ranked, name)[name] == pytest.approx(2 / 5)


@st.composite
def ranks_among(draw):
    """The ranks of the relevant items of some users among their candidates."""
    users = []
    for _ in range(draw(st.integers(1, 5))):
        num_candidates = draw(st.integers(1, 12))
        users.append((draw(st.sets(st.integers(1, num_candidates))), num_candidates))
    return users


def ranked_of(users):
    """The same as `RankedEdges`."""
    scores = [list(range(num_candidates, 0, -1)) for _, num_candidates in users]
    return ranked_by_scores(scores, [{rank - 1 for rank in ranks} for ranks, _ in users])


class TestAdjustedRanks:
    @given(users=ranks_among())
    def test_the_means_are_those_of_the_paper(self, users):
        ranks = [rank for own, _ in users for rank in sorted(own)]
        chances = [(num_candidates + 1) / 2 for own, num_candidates in users for _ in own]
        ranked = ranked_of(users)
        ratio, index = math.nan, math.nan
        if ranks:
            mean, expected = sum(ranks) / len(ranks), sum(chances) / len(chances)
            ratio = mean / expected
            if expected > 1:
                index = 1 - (mean - 1) / (expected - 1)
        assert mean_of("adjusted_mean_rank", ranked) == pytest.approx(ratio, nan_ok=True)
        found = mean_of("adjusted_mean_rank_index", ranked)
        assert found == pytest.approx(index, abs=1e-12, nan_ok=True)

    def test_a_constant_model_scores_chance_whatever_the_candidates(self):
        scores = torch.zeros(3, 9)
        scores[0, 5:] = scores[1, 3:] = -torch.inf
        truth = torch.tensor([[0, 0, 1, 2, 2, 2], [0, 3, 1, 0, 5, 8]])
        ranked = rank(scores, truth, full=True, ties="mean")
        for average in ("macro", "micro"):
            ratio = metrics.adjusted_mean_rank(ranked, average=average)
            index = metrics.adjusted_mean_rank_index(ranked, average=average)
            assert float(ratio.mean()) == pytest.approx(1, rel=1e-15)
            assert index.tolist() == [0, 0, 0]
