"""What all recommenders inherit, and those that only know their scores, against plain Python."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import RankingTask
from pyg_recmetrics.ranking.base import Recommender, ScoreRecommender
from pyg_recmetrics.ranking.schedule import Schedule
from pyg_recmetrics.ranking.scores_and_lists import GivenScoresRecommender
from tests.support.cases.strategies import cases

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


class ScoreTable(GivenScoresRecommender):
    """Knows the scores of everybody, and the users it was asked about."""

    def __init__(self, table, task):
        super().__init__(task)
        self.table = table
        self.asked = []

    def given(self, users):
        self.asked.append(users.tolist())
        return self.table, users


def chunks_of(task, depth, num_rows):
    return Schedule(task, task.users, depth).chunks(lambda depth: num_rows)


class TestGivenScoresRecommender:
    @given(case=cases(), k=st.integers(1, 9), num_rows=st.integers(1, 7))
    def test_lists_are_those_of_a_sorted_list(self, case, k, num_rows):
        task = case.task()
        for chunk in chunks_of(task, 1, num_rows):
            recommender = ScoreTable(case.score_matrix, task)
            length = min(k, case.num_items)
            lists = recommender.top_k(chunk, length)
            for user, items in zip(chunk.users.tolist(), lists.tolist(), strict=True):
                assert items == (case.rankings[user] + [-1] * length)[:length]
            assert recommender.asked == [chunk.users.tolist()]

    @given(case=cases(), depth=st.integers(1, 9), num_rows=st.integers(1, 7))
    def test_ranks_are_positions_in_a_sorted_list(self, case, depth, num_rows):
        task = case.task()
        for chunk in chunks_of(task, depth, num_rows):
            ranks = ScoreTable(case.score_matrix, task).ranks(chunk)
            users, items = task.truth[:, chunk.truth.index].tolist()
            for user, item, *rank in zip(users, items, *(x.tolist() for x in ranks), strict=True):
                others = [case.scores[user][other] for other in case.rankings[user]]
                own = case.scores[user][item]
                assert rank == [
                    case.rankings[user].index(item) + 1,
                    sum(score > own for score in others),
                    others.count(own) - 1,
                ]


@pytest.mark.parametrize("kind", [Recommender, ScoreRecommender, GivenScoresRecommender])
def test_what_is_missing_has_to_be_added(kind):
    with pytest.raises(TypeError, match="abstract"):
        kind()


def test_unless_it_says_otherwise_nothing_is_limited_or_wrong():
    task = RankingTask([[0], [0]], num_users=1, num_items=1)
    recommender = ScoreTable(torch.zeros(1, 1), task)
    assert recommender.items_at_once is None
    assert recommender.max_depth is None
    assert recommender.check() is None
