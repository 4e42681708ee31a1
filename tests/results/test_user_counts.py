"""How many users stand behind a result, against loops over users."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import EvaluationResult, RankedEdges, RankingTask, rank
from pyg_recmetrics.results.user_counts import UserCounts
from tests.support.cases.strategies import cases

LISTS = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
TRUTH = torch.tensor([[0, 0, 1], [1, 2, 2]])


@pytest.fixture
def ranked():
    return RankedEdges.from_topk(LISTS, TRUTH)


class TestResult:
    def test_users_are_counted(self, ranked):
        result = EvaluationResult(ranked, ["recall@1"])
        assert (result.num_evaluated, result.num_without_truth) == (2, 1)
        assert result.num_with_few_candidates is None
        task = RankingTask(TRUTH, num_users=3, num_items=3, users=torch.tensor([0, 1]))
        result = EvaluationResult(ranked, ["recall@1"], task=task)
        assert (result.num_evaluated, result.num_without_truth) == (2, 0)


@pytest.mark.usefixtures("expect_lost_truth")
@given(case=cases(), max_k=st.none() | st.integers(1, 10), data=st.data())
def test_counts_are_those_of_a_loop(case, max_k, data):
    is_evaluated = data.draw(
        st.lists(st.booleans(), min_size=case.num_users, max_size=case.num_users)
    )
    users = [user for user in range(case.num_users) if is_evaluated[user]]
    with_truth = [user for user in users if case.truths[user]]
    ranked = rank(case.score_matrix, case.task(), k=3, keep_items=True)
    ranked = ranked.select_users(torch.tensor(is_evaluated))
    counts = UserCounts.of(ranked, max_k, 7, "skip")
    assert counts.num_evaluated == len(with_truth)
    assert counts.num_without_truth == len(users) - len(with_truth)
    assert counts.num_left_out == 7
    nothing_left = [user for user in users if not case.rankings[user]]
    assert counts.num_without_candidates == len(nothing_left)
    few = [user for user in with_truth if len(case.rankings[user]) < (max_k or 0)]
    assert counts.num_with_few_candidates == len(few)
    assert counts.num_with_list == sum(bool(case.rankings[user]) for user in users)


def test_what_is_not_known_is_not_counted(ranked):
    task = RankingTask(TRUTH, num_users=3, num_items=3)
    counts = UserCounts.of(ranked, 3, 0, "skip")
    assert counts.num_with_few_candidates is counts.num_without_candidates is None
    without_lists = rank(torch.zeros(3), task, k=3)
    assert UserCounts.of(without_lists, 3, 0, "skip").num_with_list is None


def test_users_without_truth_are_an_error_only_if_they_are_evaluated(ranked):
    with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
        UserCounts.of(ranked.select_users(torch.tensor([True, False, True])), 3, 0, "error")
    counts = UserCounts.of(ranked.select_users(torch.tensor([True, True, False])), 3, 1, "error")
    assert (counts.num_evaluated, counts.num_without_truth) == (2, 0)
