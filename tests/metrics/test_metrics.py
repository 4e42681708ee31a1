"""Every metric of the registry against naive loops, and the laws they all obey."""

import math

import laws
import naive
import pytest
import torch
from cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import CUT_OFFS, metrics_of_all_ranks, metrics_of_ranks

from pyg_recmetrics import RankedEdges, RankingTask, metrics, rank

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def expected(case, metric):
    arguments = dict(metric.arguments)
    if metric.k is not None:
        arguments["k"] = metric.k
    return naive.per_user(metric.name, case.rankings, case.truths, **arguments)


@settings(max_examples=1000)
@given(case=cases(), k=st.sampled_from(CUT_OFFS), batch_size=st.sampled_from([None, 1, 2]))
def test_all_metrics_of_a_ranked_score_matrix_equal_naive_loops(case, k, batch_size):
    ranked = rank(case.score_matrix, case.task(), k=k + 7, batch_size=batch_size)
    for metric in metrics_of_ranks(k):
        assert metric(ranked).tolist() == pytest.approx(expected(case, metric), nan_ok=True), metric


@settings(max_examples=300)
@given(case=cases())
def test_metrics_of_all_ranks_equal_naive_loops(case):
    ranked = rank(case.score_matrix, case.task(), full=True)
    assert len(metrics_of_all_ranks()) > 15
    for metric in metrics_of_all_ranks():
        value = metric(ranked)
        assert value.tolist() == pytest.approx(expected(case, metric), nan_ok=True), metric
        low, high = metrics.definition(metric.name).bounds
        assert all(low <= x <= high + 1e-12 for x in value[~value.isnan()].tolist()), metric


def test_all_ranks_have_to_be_known():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=9)
    shallow = rank(torch.arange(9.0), task, k=2)
    lists = rank(torch.tensor([[3, 4]]), task, k=2)
    given = RankedEdges.from_topk(torch.tensor([[3, 1]]), torch.tensor([[0], [1]]))
    for ranked in (shallow, lists, given):
        for name in ("roc_auc", "pr_auc", "mean_rank"):
            with pytest.raises(ValueError, match="'full=True'"):
                getattr(metrics, name)(ranked)
    assert metrics.roc_auc(rank(torch.arange(9.0), task, full=True)).tolist() == [0.125]
    with pytest.raises(ValueError, match="'k' needs to be given"):
        metrics.mrr(shallow)


@settings(max_examples=500)
@given(case=cases(), k=st.sampled_from(CUT_OFFS), width=st.integers(1, 12))
def test_all_metrics_of_given_lists_equal_naive_loops(case, k, width):
    lists = [ranking[:width] for ranking in case.rankings]
    padded = torch.tensor([items + [-1] * (width - len(items)) for items in lists])
    truth = [(u, item) for u, items in enumerate(case.truths) for item in items]
    weight = [items[item] for u, items in enumerate(case.truths) for item in items]
    ranked = RankedEdges.from_topk(padded, torch.tensor(truth).t(), torch.tensor(weight))
    for metric in metrics_of_ranks(k):
        arguments = dict(metric.arguments) | ({} if metric.k is None else {"k": k})
        loop = naive.per_user(metric.name, lists, case.truths, **arguments)
        assert metric(ranked).tolist() == pytest.approx(loop, nan_ok=True), metric


def test_known_values():
    # Hits at ranks 1 and 3 of five relevant; at rank 2 of one; at 5 and 6 of two; no truth.
    lists = torch.arange(10).repeat(4, 1)
    truth = [(0, 0), (0, 2), (0, 5), (0, 7), (0, 8), (1, 1), (2, 4), (2, 5)]
    ranked = RankedEdges.from_topk(lists, torch.tensor(truth).t())
    means = {
        str(m): round(float(m(ranked).nanmean()), 4) for m in metrics_of_ranks(3) if not m.arguments
    }
    assert means["precision@3"] == 0.3333
    assert means["truncated_precision@3"] == 0.5556
    assert means["recall@3"] == 0.4667
    assert means["f1@3"] == 0.3333
    assert means["r_precision"] == 0.1333
    assert means["hit_rate@3"] == 0.6667
    assert means["mrr@3"] == 0.5
    assert means["map@3"] == 0.3519
    assert means["ndcg@3"] == 0.4449


@given(case=cases())
def test_a_perfect_ranking_scores_one_at_the_number_of_relevant_items(case):
    weight = torch.full((case.num_users, case.num_items), -1.0)
    for user, truth in enumerate(case.truths):
        for item in truth:
            weight[user, item] = truth[item]
    ranked = rank(weight, case.task(), full=True)
    for k in set(ranked.degree[ranked.degree > 0].tolist()):
        for metric in metrics_of_ranks(k):
            micro = dict(metric.arguments).get("average") == "micro"
            if metrics.definition(metric.name).bounds == (0, 1) and not micro:
                if "ideal=k" in str(metric) and "gain=binary" not in str(metric):
                    continue  # k items of the largest gain are more than a user may have
                assert metric(ranked)[ranked.degree == k].tolist() == pytest.approx(
                    [1.0] * int((ranked.degree == k).sum())
                ), metric


@given(case=cases(), batch_size=st.integers(1, 7))
def test_the_size_of_chunks_changes_nothing(case, batch_size):
    whole = rank(case.score_matrix, case.task(), k=3)
    in_chunks = rank(case.score_matrix, case.task(), k=3, batch_size=batch_size)
    assert torch.equal(whole.edge_index, in_chunks.edge_index)
    assert torch.equal(whole.rank, in_chunks.rank)


def test_values_are_within_bounds_and_undefined_just_without_truth():
    laws.check_bounds()


def test_renumbering_users_and_items_changes_nothing():
    laws.check_renumbering()


def test_the_order_and_repetition_of_edges_changes_nothing():
    laws.check_order_and_repetition()


def test_both_halves_of_the_users_make_the_whole():
    laws.check_halves()


def test_devices_agree(device):
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(50, (2, 400), generator=generator)
    seen = torch.randint(50, (2, 300), generator=generator)
    weight = torch.randint(1, 4, (400,), generator=generator)
    scores = torch.randint(9, (50, 50), generator=generator).float()
    task = RankingTask(truth, num_users=50, num_items=50, seen=seen, weight=weight)
    here, there = rank(scores, task, k=27), rank(scores.to(device), task.to(device), k=27)
    assert there.rank.device.type == device.type
    for metric in metrics_of_ranks(20):
        assert torch.allclose(metric(here), metric(there).cpu(), atol=1e-12, equal_nan=True)


def test_weights_are_graded_by_gain():
    lists, truth = torch.tensor([[0, 1, 2]]), torch.tensor([[0, 0], [0, 2]])
    ranked = RankedEdges.from_topk(lists, truth, torch.tensor([1.0, 3.0]))
    second, third = 1 / math.log2(3), 1 / math.log2(4)
    ideal = {"linear": 3 + second, "exponential": 7 + second, "binary": 1 + second}
    got = {"linear": 1 + 3 * third, "exponential": 1 + 7 * third, "binary": 1 + third}
    for gain in ideal:
        value = float(metrics.ndcg(ranked, 3, gain=gain))
        assert value == pytest.approx(got[gain] / ideal[gain])


def test_a_cut_off_below_what_was_ranked_is_an_error():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=9)
    ranked = rank(torch.zeros(9), task, k=4)
    assert metrics.recall(ranked, k=4).tolist() == [1]
    with pytest.raises(ValueError, match=r"'k' needs to be at most 4, .*\(got 5\)"):
        metrics.recall(ranked, k=5)


@pytest.mark.parametrize("k", [0, -3, 1.5, True, "3"])
def test_a_cut_off_that_is_no_positive_integer_is_an_error(k):
    ranked = RankedEdges.from_topk(torch.tensor([[0]]), torch.tensor([[0], [0]]))
    with pytest.raises(ValueError, match="'k' needs to be a positive integer"):
        metrics.recall(ranked, k=k)


def test_other_arguments_are_checked():
    ranked = RankedEdges.from_topk(torch.tensor([[0]]), torch.tensor([[0], [0]]))
    with pytest.raises(TypeError, match="'ranked' needs to be 'RankedEdges'"):
        metrics.recall(torch.tensor([[0]]), k=1)
    with pytest.raises(ValueError, match=r"'gain' needs to be one of .*'exponential'.*'cubic'"):
        metrics.ndcg(ranked, 1, gain="cubic")
