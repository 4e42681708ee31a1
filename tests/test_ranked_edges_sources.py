"""Ranks from lists, score matrices and scored pairs."""

import math
from contextlib import nullcontext
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import RankedEdges, metrics, rank, ranked_edges
from tests.support.cases.strategies import ranks

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


class TestFromTopk:
    def test_repeated_edges_are_one_edge(self):
        ranked = RankedEdges.from_topk(
            torch.tensor([[5, 2]]), torch.tensor([[0, 0, 0], [5, 5, 9]]), torch.tensor([1, 4, 2])
        )
        assert ranks(ranked) == {(0, 5): 1, (0, 9): math.inf}
        assert ranked.weight.tolist() == [4, 2]

    def test_nothing_at_all(self):
        ranked = RankedEdges.from_topk(
            torch.empty(2, 0, dtype=torch.long), torch.empty(2, 0, dtype=torch.long)
        )
        assert ranked.num_users == 2
        assert metrics.recall(ranked, k=3).isnan().all()


class TestFromPairs:
    @pytest.mark.parametrize("order", ["sorted", "by item", "any"])
    @pytest.mark.parametrize("factor", [1, 10**13])
    @pytest.mark.parametrize("share", [0.003, 0.1])
    @pytest.mark.filterwarnings("ignore:.*can never be retrieved")
    def test_many_pairs_are_ranked_as_a_matrix_is(self, order, factor, share):
        generator = torch.Generator().manual_seed(0)
        scores = torch.randint(0, 60, (150, 200), generator=generator).float()
        scores[scores == 7] = -torch.inf
        truth = torch.rand(150, 200, generator=generator) < share
        query, item = torch.ones_like(truth).nonzero().t()
        if order == "by item":
            query, item = torch.ones_like(truth).t().nonzero().t().flip(0)
        if order == "any":
            pair = torch.randperm(query.numel(), generator=generator)
            query, item = query[pair], item[pair]
        pairs = scores[query, item], truth[query, item], (query - 70) * factor
        edges = truth.nonzero().t()
        for ties in ("best", "worst", "mean"):
            ours = RankedEdges.from_pairs(*pairs, ties=ties)
            wanted = rank(scores, edges, full=True, ties=ties)
            assert torch.equal(ours.ptr, wanted.ptr)
            assert torch.equal(ours.rank, wanted.rank)
            # Scores of users without truth are not looked at.
            has_truth = ours.degree > 0
            assert torch.equal(ours.num_candidates[has_truth], wanted.num_candidates[has_truth])
            masked = ours.origin.num_masked, wanted.origin.num_masked
            assert torch.equal(*(number[has_truth] for number in masked))
        if order == "sorted":  # the lower item comes first
            ours, wanted = RankedEdges.from_pairs(*pairs), rank(scores, edges, full=True)
            for name in ("rank", "num_above", "num_tied"):
                assert torch.equal(getattr(ours, name), getattr(wanted, name))

    @pytest.mark.parametrize("dtype", [torch.int8, torch.long, torch.float])
    def test_ignored_pairs_are_as_if_they_had_not_been_given(self, dtype):
        score = torch.tensor([0.9, torch.nan, 0.7, 0.6, torch.inf, 0.4])
        target = torch.tensor([0, -100, 1, 1, -100, -100], dtype=dtype)
        index = torch.tensor([0, 0, 0, 7, 7, 9])  # of query 9, nothing is left
        ranked = RankedEdges.from_pairs(score, target, index, ignore_index=-100)
        assert ranked.num_users == 2
        assert ranked.rank.tolist() == [2, 1]
        assert ranked.num_candidates.tolist() == [2, 1]

    def test_small_integers_do_not_wrap_around(self):
        score, target = torch.tensor([0.9, 0.8]), torch.tensor([156, 0], dtype=torch.uint8)
        ranked = RankedEdges.from_pairs(score, target, ignore_index=-100)
        assert ranked.rank.tolist() == [1]


SCORES = st.integers(-2, 2).map(float) | st.just(-math.inf)


@st.composite
def positives_and_negatives(draw):
    num = draw(st.integers(1, 5))
    width = draw(st.integers(1, 6))
    row = st.lists(SCORES, min_size=width, max_size=width)
    positive = draw(st.lists(SCORES, min_size=num, max_size=num))
    if draw(st.booleans()):
        return positive, draw(row)
    return positive, draw(st.lists(row, min_size=num, max_size=num))


class TestFromNegatives:
    @given(
        scores=positives_and_negatives(),
        ties=st.sampled_from(["best", "worst", "mean"]),
        num_scores=st.integers(1, 30),
    )
    def test_a_positive_stands_behind_what_scores_higher(self, scores, ties, num_scores):
        positive, negative = scores
        is_shared = not isinstance(negative[0], list)
        rows = [negative] * len(positive) if is_shared else negative
        arguments = torch.tensor(positive), torch.tensor(negative)
        if is_shared and len(negative) % len(positive) == 0:  # which could be those of each
            arguments = arguments[0], arguments[1].expand(len(positive), -1)
        is_finite = [
            [own, *row] != [-math.inf] * (len(row) + 1)
            for own, row in zip(positive, rows, strict=True)
        ]
        if not all(is_finite):
            with pytest.raises(ValueError, match="finite score for every positive"):
                RankedEdges.from_negatives(*arguments)
            return
        with patch.object(ranked_edges, "_NUM_SCORES", num_scores):
            ranked = RankedEdges.from_negatives(*arguments, ties=ties)
        for own, row, found, num in zip(
            positive, rows, ranked.rank.tolist(), ranked.num_candidates.tolist(), strict=True
        ):
            candidates = [score for score in row if score > -math.inf]
            above = sum(score > own for score in candidates)
            tied = sum(score == own for score in candidates)
            if own == -math.inf:
                assert (found > 10**6, num) == (True, len(candidates))
                continue
            assert found == 1 + above + {"best": 0, "worst": tied, "mean": tied / 2}[ties]
            assert num == len(candidates) + 1
        assert ranked.degree.tolist() == [1] * len(positive)


def test_positives_that_share_their_negatives_are_no_query():
    preds, target = torch.rand(500), torch.arange(500) < 100
    with pytest.warns(UserWarning, match="100 relevant pairs as one query.*from_negatives"):
        RankedEdges.from_pairs(preds, target)
    RankedEdges.from_pairs(preds, torch.arange(500) < 99)
    RankedEdges.from_pairs(preds, target, torch.arange(500) % 2)


@pytest.mark.parametrize(("num", "times"), [(1, 1), (1, 3), (2, 1), (5, 1), (2, 3), (5, 2)])
def test_a_multiple_of_the_positives_could_be_of_each_or_of_all(num, times):
    positive, negative = torch.rand(num), torch.rand(num * times)
    line = rf"negative.view\({num}, -1\).*negative.expand\({num}, -1\)"
    with pytest.raises(ValueError, match=line) if num > 1 else nullcontext():
        RankedEdges.from_negatives(positive, negative)
    of_each = negative.view(num, -1)
    own = RankedEdges.from_negatives(positive, of_each)
    shared = RankedEdges.from_negatives(positive, negative.expand(num, -1))
    assert own.num_candidates.tolist() == [times + 1] * num
    assert shared.num_candidates.tolist() == [num * times + 1] * num
    assert own.rank.tolist() == (1 + (of_each > positive[:, None]).sum(1)).tolist()
    assert shared.rank.tolist() == (1 + (negative > positive[:, None]).sum(1)).tolist()
