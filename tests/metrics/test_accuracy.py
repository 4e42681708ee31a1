"""Accuracy metrics of weights of any size, and of what lists do not hold."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pyg_recmetrics import RankedEdges, RankingTask, conventions, evaluate, metrics
from tests.support.references.world import Row, measure


def exact_ndcg(ranks, weights, k, gain, ideal="relevant"):
    """The NDCG of one user in rational arithmetic, in which no gain overflows."""
    worth = {"linear": Fraction, "exponential": lambda weight: Fraction(2) ** weight - 1}[gain]
    gains = [worth(weight) for weight in weights]
    hits = [(gain, rank) for gain, rank in zip(gains, ranks, strict=True) if rank <= k]
    best = sorted(gains if ideal == "relevant" else [gain for gain, _ in hits], reverse=True)[:k]
    if ideal == "k":
        best = [max(gains)] * k
    discounted = [gain * Fraction(1 / math.log2(rank + 1)) for gain, rank in hits]
    ideals = [gain * Fraction(1 / math.log2(rank + 1)) for rank, gain in enumerate(best, start=1)]
    return float(sum(discounted) / sum(ideals)) if hits else 0.0


@settings(max_examples=60)
@given(
    ideal=st.sampled_from(["relevant", "k", "retrieved"]),
    gain=st.sampled_from(["linear", "exponential"]),
    truth=st.dictionaries(
        st.integers(0, 9),
        st.integers(1, 5) | st.integers(1, 3000) | st.sampled_from([1023, 1024, 10**6, 2**53]),
        min_size=1,
    ),
    k=st.integers(1, 6),
)
def test_however_large_weights_are_the_ndcg_is_exact(truth, k, gain, ideal):
    if gain == "exponential" and max(truth.values()) > 10**6:
        truth = {item: min(weight, 10**6) for item, weight in truth.items()}
    lists = torch.arange(7).unsqueeze(0)
    edges = torch.tensor([[0] * len(truth), list(truth)])
    weight = torch.tensor(list(truth.values()), dtype=torch.double)
    ranks = [item + 1 if item < 7 else math.inf for item in truth]
    value = float(metrics.ndcg(RankedEdges.from_topk(lists, edges, weight), k, gain, ideal=ideal))
    expected = exact_ndcg(ranks, list(truth.values()), k, gain, ideal)
    assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e-17, 0.3, 50.0, 1e300, 1.7e308])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_weights_of_any_size_count(weight, gain):
    # The hits are at the ranks 2 and 3, and all three relevant items weigh the same.
    lists, truth = torch.tensor([[7, 0, 1]]), torch.tensor([[0, 0, 0], [0, 1, 2]])
    ranked = RankedEdges.from_topk(lists, truth, torch.full((3,), weight, dtype=torch.double))
    second, third = 1 / math.log2(3), 1 / 2
    expected = (second + third) / (1 + second + third)
    assert float(metrics.ndcg(ranked, 3, gain=gain)) == pytest.approx(expected, rel=1e-15)
    if weight < 1024:  # otherwise the exponential gain is infinite
        worth = math.expm1(weight * math.log(2)) if gain == "exponential" else weight
        value = float(metrics.dcg(ranked, 2, gain=gain))
        assert value == pytest.approx(worth * second, rel=1e-14, abs=5e-324)


def test_a_dcg_that_is_not_finite_is_an_error():
    lists, truth = torch.tensor([[0, 1], [0, 1]]), torch.tensor([[0, 0, 1], [0, 1, 0]])
    plays = RankedEdges.from_topk(lists, truth, torch.tensor([3, 1024, 2]))
    assert metrics.dcg(plays, 1, gain="exponential").tolist() == [7, 3]
    with pytest.raises(ValueError, match=r"'gain' .* 'exponential' with weights of up to 1024\)"):
        metrics.dcg(plays, 2, gain="exponential")
    weight = torch.tensor([1.7e308, 1.7e308, 1.0], dtype=torch.double)
    huge = RankedEdges.from_topk(lists, truth, weight)
    with pytest.raises(ValueError, match=r"\(got 'linear' with weights of up to 1.7e\+308\)"):
        metrics.dcg(huge, 2)
    assert metrics.dcg(huge, 2, gain="binary").isfinite().all()


@pytest.mark.parametrize("factor", [5e-324, 1e-300, 1e300, 4e307])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_the_weights_of_a_recall_may_be_of_any_size(factor, average):
    lists, truth = (
        torch.tensor([[0, 9, 2], [0, 9, 1]]),
        torch.tensor([[0, 0, 0, 1, 1], [0, 2, 5, 1, 5]]),
    )
    weight = torch.tensor([1, 3, 4, 2, 2], dtype=torch.double)
    value, expected = (
        metrics.recall(RankedEdges.from_topk(lists, truth, w), 3, average=average, weighted=True)
        for w in (weight * factor, weight)
    )
    assert value.tolist() == pytest.approx(expected.tolist(), rel=1e-14)


def test_a_weighted_recall_depends_on_the_order_of_what_is_relevant():
    # All candidates of the first user are relevant, so no other recall tells rankings apart.
    task = RankingTask(
        torch.tensor([[0, 0, 1], [0, 1, 0]]),
        num_users=2,
        num_items=2,
        weight=torch.tensor([1.0, 2.0, 1.0]),
    )
    population = conventions.Population(few_candidates="undefined")
    convention = conventions.Convention("mine", "me", None, population=population)
    names = ["recall@1", "recall(weighted=True)@1"]
    result = evaluate(torch.tensor([0.9, 0.1]), task, names, convention=convention)
    assert result.per_user[names[0]].tolist() == pytest.approx([math.nan, 1], nan_ok=True)
    assert result.per_user[names[1]].tolist() == pytest.approx([1 / 3, 1])


def test_the_expected_reciprocal_rank_of_long_rankings_equals_a_loop():
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(3, 2000, generator=generator) < 0.7).nonzero().t()
    weight = torch.rand(truth.size(1), generator=generator).double() / 100
    ranked = RankedEdges.from_topk(torch.arange(2000).repeat(3, 1), truth, weight)
    for user, value in enumerate(metrics.err(ranked).tolist()):
        own = truth[0] == user
        ranks = (truth[1, own] + 1).tolist()
        row = Row.of(ranks, weight[own].tolist(), 2000, 2000 - len(ranks))
        assert [value] == pytest.approx(measure("err", [row]), rel=1e-12)
    assert metrics.err(ranked, max_grade=2000).tolist() == pytest.approx([0] * 3, abs=1e-300)
    nobody = torch.empty(0, 3, dtype=torch.long), torch.empty(2, 0, dtype=torch.long)
    assert metrics.err(RankedEdges.from_topk(*nobody)).tolist() == []
