"""How ties are broken, against all orders of what is tied, one by one."""

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import RankedEdges, RankingTask, metrics, rank
from tests.support.references.world import Row, measure

#: Metrics whose value is the better, the earlier relevant items come.
MONOTONE = [
    *("precision@2", "recall@1", "recall@3", "r_precision", "mrr", "map@3", "map", "hit_rate@1"),
    *("ndcg@2", "ndcg(gain=exponential)@4", "dcg@3", "roc_auc", "pr_auc", "partial_auc@2"),
]

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def orders(scores):
    """All orders of items in which no lower score comes before a higher one."""
    groups = [
        [item for item, score in enumerate(scores) if score == level]
        for level in sorted(set(scores), reverse=True)
    ]
    for permutations in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield list(itertools.chain(*permutations))


@st.composite
def users(draw):
    """The scores of one user, and the weights of the relevant items."""
    scores = draw(st.lists(st.integers(0, 2), min_size=2, max_size=6))
    item = st.integers(0, len(scores) - 1)
    weight = st.just(1) if draw(st.booleans()) else st.integers(1, 3)
    return scores, draw(st.dictionaries(item, weight, min_size=1))


def ranked_of(scores, weights, **options):
    truth = torch.tensor([[0] * len(weights), list(weights)])
    weight = torch.tensor(list(weights.values()))
    weight = None if bool((weight == 1).all()) else weight
    task = RankingTask(truth, weight=weight, num_users=1, num_items=len(scores))
    return rank(torch.tensor([scores]).float(), task, full=True, **options)


@given(user=users())
def test_best_and_worst_are_the_limits_over_all_orders(user):
    scores, weights = user
    limits = {ties: ranked_of(scores, weights, ties=ties) for ties in ("best", "worst")}
    for name in MONOTONE:
        metric = metrics.parse(name)
        found = []
        for order in orders(scores):
            found_in_order = [item for item in order if item in weights]
            places = [order.index(item) + 1 for item in found_in_order]
            grades = [weights[item] for item in found_in_order]
            row = Row.of(places, grades, len(scores), len(scores) - len(weights))
            (value,) = measure(metric.name, [row], metric.k, **dict(metric.arguments))
            found.append(math.nan if value is None else value)
        for ties, wanted in (("best", max(found)), ("worst", min(found))):
            value = metric(limits[ties]).item()
            assert value == pytest.approx(wanted, nan_ok=True), (name, ties)


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

    def test_wrong_ways_and_seeds_are_named(self):
        scores, task = torch.zeros(1, 2), RankingTask([[0], [1]], num_users=1, num_items=2)
        with pytest.raises(ValueError, match=r"'ties' needs to be one of \['index', .*'first'"):
            rank(scores, task, ties="first")
        with pytest.raises(ValueError, match="'seed' needs to be"):
            rank(scores, task, ties="random", seed=-1)
