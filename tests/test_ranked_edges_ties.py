"""How ties are broken at random, and what cannot be asked of them; the fuzz compares the others."""

import itertools
from collections import Counter

import pytest
import torch

from pyg_recmetrics import RankedEdges, RankingTask, rank

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def ranked_of(scores, weights, **options):
    truth = torch.tensor([[0] * len(weights), list(weights)])
    weight = torch.tensor(list(weights.values()))
    weight = None if bool((weight == 1).all()) else weight
    task = RankingTask(truth, weight=weight, num_users=1, num_items=len(scores))
    return rank(torch.tensor([scores]).float(), task, full=True, **options)


def test_random_places_are_equally_likely():
    """In 100 rankings of 40 users each."""
    user = torch.arange(40).repeat_interleave(2)
    truth = torch.stack([user, torch.tensor([1, 3] * 40)])
    ranked = rank(torch.zeros(40, 5), truth, full=True)
    drawn = Counter(
        tuple(pair)
        for seed in range(100)
        for pair in ranked.with_ties("random", seed=seed).rank.view(40, 2).tolist()
    )
    pairs = list(itertools.combinations(range(1, 6), 2))
    assert set(drawn) == set(pairs)
    # Chi-squared with 9 degrees of freedom: above 27.9 with a chance of 0.001.
    assert sum((drawn[pair] - 400) ** 2 / 400 for pair in pairs) < 27.9


def test_relevant_items_of_different_weight_are_shuffled_too():
    ranked = ranked_of([0.5] * 3, {0: 1, 1: 2})
    first = Counter(
        ranked.with_ties("random", seed=seed).edge_label_index[1, 0].item() for seed in range(400)
    )
    assert 150 < first[0] < 250


class TestWhatCannotBe:
    lists = RankedEdges.from_topk(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))

    def test_lists_have_no_scores(self):
        assert self.lists.num_tied is None
        assert self.lists.with_ties("index") is self.lists
        with pytest.raises(ValueError, match=r"'ties' needs to be 'index' .* lists \(got 'mean'\)"):
            self.lists.with_ties("mean")
        task = RankingTask(torch.tensor([[0], [0]]), num_users=1, num_items=2)
        with pytest.raises(ValueError, match="'ties' needs to be 'index' where scores are not"):
            rank(torch.tensor([[1]]), task, ties="best")

    def test_there_is_no_way_back_to_the_index(self):
        ranked = ranked_of([1, 1], {0: 1}, ties="worst")
        assert ranked.with_ties("best").rank.tolist() == [1]
        message = "'ties' cannot go back to 'index': this ranking was made with 'worst'; rank again"
        with pytest.raises(ValueError, match=message):
            ranked.with_ties("index")
