"""Users whose candidates all have the same score, against sets in plain Python."""

import pytest
import torch
from cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from recommender_forms import RecordingModel, forms

from pyg_recmetrics import RankingTask
from pyg_recmetrics.ranking import has_constant_scores

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def makes_lists(recommender):
    is_list = torch.is_tensor(recommender) and not recommender.is_floating_point()
    return is_list or isinstance(recommender, RecordingModel)


@settings(max_examples=200)
@given(case=cases(), data=st.data(), batch_size=st.sampled_from([None, 1, 2]))
def test_they_are_those_with_a_single_score(case, data, batch_size):
    task = case.task()
    users = data.draw(st.sets(st.sampled_from(task.truth[0].tolist()), min_size=1))
    scores_of = [
        {case.scores[user][item] for item in case.rankings[user]} for user in range(case.num_users)
    ]
    expected = [user in users and len(scores) <= 1 for user, scores in enumerate(scores_of)]
    for recommender in forms(case):
        is_constant = has_constant_scores(
            recommender,
            task.select_users(torch.tensor(sorted(users))),
            edge_index=torch.empty(2, 0).long(),
            batch_size=batch_size,
        )
        assert is_constant.dtype == torch.bool
        wanted = [False] * case.num_users if makes_lists(recommender) else expected
        assert is_constant.tolist() == wanted


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (None, [False, False]),
        (torch.tensor([0, 1]), [True, False]),
        (torch.tensor([2]), [True, True]),
        (torch.tensor([[0, 0, 1, 1], [0, 2, 0, 2]]), [False, True]),
    ],
)
def test_only_candidates_count(candidates, expected):
    scores = torch.tensor([[1.0, 1.0, 2.0], [3.0, 1.0, 3.0]])
    truth = torch.tensor([[0, 0, 1, 1], [0, 2, 0, 2]])
    task = RankingTask(truth, num_users=2, num_items=3, candidates=candidates)
    assert has_constant_scores(scores, task).tolist() == expected


class TestAnyScores:
    task = RankingTask(torch.tensor([[0, 1], [1, 0]]), num_users=2, num_items=3)

    def test_the_two_zeros_are_equal(self):
        scores = torch.tensor([[0.0, -0.0, 0.0], [0.0, -0.0, 1e-45]])
        assert has_constant_scores(scores, self.task).tolist() == [True, False]

    def test_wrong_scores_are_named(self):
        with pytest.raises(ValueError, match=r"finite scores \(got 6 NaN or inf"):
            has_constant_scores(lambda users: torch.full((2, 3), torch.nan), self.task)
        with pytest.raises(ValueError, match=r"scores .*\[2, 3\] \(got \[3, 3\]\)"):
            has_constant_scores(torch.rand(3, 3), self.task)
