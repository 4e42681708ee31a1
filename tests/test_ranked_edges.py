"""RankedEdges: how edges are grouped, and each edge as a row of its own."""

import math
import re

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import (
    EvaluationResult,
    PairScorer,
    RankedEdges,
    RankingTask,
    evaluate,
    merge,
    metrics,
    rank,
)
from pyg_recmetrics.conventions import Population
from pyg_recmetrics.ranked_edges import Lists
from tests.support.cases.strategies import cases

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def test_moving_and_printing(device):
    ranked = RankedEdges.from_topk(torch.tensor([[1, 2]]), torch.tensor([[0], [2]])).to(device)
    assert {ranked.rank.device.type, ranked.lists.to_matrix().device.type} == {device.type}
    assert repr(ranked) == "RankedEdges(num_users=1, num_edges=1, depth=complete)"


def test_torch_scatter_gives_the_same_numbers(monkeypatch, device):
    pytest.importorskip("torch_scatter")
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(300, 500, generator=generator)
    truth = torch.randint(300, (2, 4000), generator=generator)
    weight = torch.rand(4000, generator=generator)
    task = RankingTask(truth, weight=weight, num_users=300, num_items=500)
    ranked = rank(scores, task, full=True).to(device)
    for name in metrics.names():
        if metrics.definition(name).needs:
            continue  # there are scores, and no lists
        cut_off = {"k": 20} if metrics.definition(name).has_cut_off else {}
        with_scatter = getattr(metrics, name)(ranked, **cut_off)
        with monkeypatch.context() as patch:
            patch.setattr("torch_geometric.typing.WITH_TORCH_SCATTER", False)
            without = getattr(metrics, name)(ranked, **cut_off)
        assert torch.allclose(with_scatter, without, rtol=1e-12, atol=0, equal_nan=True), name


OF_EACH_EDGE = pytest.mark.filterwarnings(
    *("ignore:.*the order of ties", "ignore:.*may be too narrow", "ignore:.*can never be"),
    "ignore:.*holds scores that fall",
)

TIES = ["index", "best", "worst", "mean"]


def rows_of(case):
    """The users and items of all rows, and what is left out of each besides what is seen."""
    task = case.task()
    for user, item in task.truth.T.tolist():
        others = {other for owner, other in task.truth.T.tolist() if owner == user} - {item}
        yield user, item, case.seen_by(user) | others


def task_of_rows(case):
    """A task with a user for every edge, from whom the other truth is hidden."""
    rows = list(rows_of(case))
    hidden = [(row, item) for row, (*_, items) in enumerate(rows) for item in items]
    return RankingTask(
        torch.tensor([[row, item] for row, (_, item, _) in enumerate(rows)]).T,
        num_users=len(rows),
        num_items=case.num_items,
        seen=torch.tensor(hidden, dtype=torch.long).reshape(-1, 2).T,
    ), torch.tensor([user for user, *_ in rows])


@OF_EACH_EDGE
@given(case=cases(), ties=st.sampled_from(TIES))
def test_each_edge_is_ranked_as_in_a_task_of_its_own(case, ties):
    each = rank(case.score_matrix, case.task(), full=True, ties=ties).each_edge()
    task, user = task_of_rows(case)
    alone = rank(case.score_matrix[user], task, full=True, ties=ties)
    for name in ("edge_label_index", "rank", "ptr", "num_candidates", "num_above", "num_tied"):
        assert torch.equal(getattr(each, name), getattr(alone, name)), name
    assert each.depth is each.lists is each.users is None
    assert torch.equal(each.origin.user_of_row, user)
    assert torch.equal(each.origin.person, user)
    assert each.each_edge() is each
    if each.weight is not None:
        edges = zip(user.tolist(), each.edge_label_index[1].tolist(), strict=True)
        assert each.weight.tolist() == [case.truths[user][item] for user, item in edges]


@OF_EACH_EDGE
@given(case=cases(), k=st.integers(1, 6), ties=st.sampled_from(TIES))
def test_a_ranking_that_ends_somewhere_says_down_to_where_it_is_right(case, k, ties):
    task, user = task_of_rows(case)
    each = rank(case.score_matrix, case.task(), k=k, ties=ties).each_edge()
    alone = rank(case.score_matrix[user], task, full=True, ties=ties)
    depth = case.num_items if each.depth is None else each.depth
    assert depth >= 1
    for cut_off in range(1, depth + 1):
        assert torch.equal(each.is_hit(cut_off), alone.is_hit(cut_off))
    if each.depth is not None:
        with pytest.raises(ValueError, match="the depth of the ranking") as raised:
            metrics.hit_rate(each, k=each.depth + 1)
        needed = int(re.search(r"write rank\(\.\.\., k=(\d+)\)", str(raised.value))[1])
        for short in (0, 1):
            deeper = rank(case.score_matrix, case.task(), k=needed - short, ties=ties).each_edge()
            assert deeper.depth is None or (deeper.depth > each.depth) == (not short)


@OF_EACH_EDGE
@given(case=cases(), k=st.none() | st.integers(1, 4), form=st.integers(0, 2))
def test_items_that_scores_keep_out_were_no_candidates_before(case, k, form):
    masked = case.score_matrix.clone()
    masked[:, 0] = -math.inf
    task, user = task_of_rows(case)
    if any(set(range(1, case.num_items)) <= case.seen_by(user) for user in range(case.num_users)):
        return  # since nothing but item 0 would be left to somebody
    if any(set(range(1, case.num_items)) <= hidden for *_, hidden in rows_of(case)):
        return
    forms = masked, lambda users: masked[users], PairScorer(lambda user, item: masked[user, item])
    alone = rank(masked[user], task, full=True)
    each = rank(forms[form], case.task(), k=k, full=k is None).each_edge()
    if each.depth is None:
        assert torch.equal(each.rank, alone.rank)
        assert torch.equal(each.num_tied, alone.num_tied)
    assert torch.equal(each.num_tied < 0, alone.num_tied < 0)
    assert torch.equal(each.num_candidates, alone.num_candidates)
    torch.testing.assert_close(*(metrics.fall_out(x, k=1) for x in (each, alone)), equal_nan=True)
    few = Population(few_candidates="undefined")
    for metric in map(metrics.parse, ("ndcg@1", "precision@2", "fall_out@1")):
        if each.depth is None or metric.k <= each.depth:
            is_undefined = few.measure(metric, each).isnan()
            assert torch.equal(is_undefined, few.measure(metric, alone).isnan())
    if each.origin.num_masked is not None and alone.origin.num_masked is not None:
        assert torch.equal(each.origin.num_masked, alone.origin.num_masked)


@OF_EACH_EDGE
def test_lists_that_are_too_short_are_named():
    ranked = RankedEdges.from_topk(torch.tensor([[2]]), torch.tensor([[0, 0], [1, 3]]))
    with pytest.raises(ValueError, match=r"'each_edge' .* at least 2 items.* \(got 1\)"):
        ranked.each_edge()


@OF_EACH_EDGE
def test_edges_of_a_user_are_no_independent_draws():
    truth = torch.tensor([[0] * 5 + [1] * 5 + [2] * 5 + [3] * 5, list(range(5)) * 4])
    task = RankingTask(truth, num_users=4, num_items=20)
    scores = torch.zeros(4, 20)
    scores[0, 5:] = scores[1, 5:] = 1
    result = evaluate(scores, task, "hit_rate@5", per="edge", ties="best")
    assert result["hit_rate@5"] == 0.5
    # Four users, of whom two find everything.
    low, high = result.confidence_interval("hit_rate@5")
    by_user = evaluate(scores, task, "recall@5", ties="best").confidence_interval("recall@5")
    assert (low, high) == pytest.approx(by_user)
    assert "for other users (4 behind all rows)" in str(result)


@OF_EACH_EDGE
def test_lists_have_no_edges():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=4)
    with pytest.raises(ValueError, match=r"'metrics' .* per='edge'.* \(got 'coverage@2'\)"):
        evaluate(torch.rand(4), task, ["mrr", "coverage@2"], per="edge")


@OF_EACH_EDGE
@pytest.mark.filterwarnings("ignore:.*gives too few items")
def test_lists_need_to_go_as_deep_as_edges_can_be_moved_up():
    truth, lists = torch.tensor([[0, 0, 0], [0, 1, 2]]), torch.tensor([[0, 1, 3, 2]])
    task = RankingTask(truth, num_users=1, num_items=6)
    deep_enough = evaluate(lists, task, "hit_rate@2", per="edge")
    assert deep_enough.per_user["hit_rate@2"].tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"of at least 4 items with per='edge'.* \(got 3\)"):
        evaluate(lists[:, :3], task, "hit_rate@2", per="edge")
    few = RankingTask(truth, num_users=1, num_items=6, candidates=torch.arange(4))
    evaluate(lists, few, ["hit_rate@2", "mrr"], per="edge")


@pytest.mark.filterwarnings("ignore:.*more than once", "ignore:.*gives too few items")
def test_a_list_does_not_go_on_where_only_repeats_follow():
    task = RankingTask(torch.tensor([[0, 0], [0, 1]]), num_users=1, num_items=9)
    metric = "precision(normalizer=length)@3"
    for lists, value in (([1, 0, 0, 1], 1), ([1, 0, -1, 0], 1), ([1, 0, 0, 2], 2 / 3)):
        for metrics_ in ([metric], [metric, "mrr"]):
            assert evaluate(torch.tensor([lists]), task, metrics_)[metric] == value


@pytest.mark.filterwarnings("ignore:.*gives too few items")
def test_the_list_of_an_edge_is_as_long_as_without_other_truth():
    truth = torch.tensor([[0, 0, 1], [2, 5, 1]])
    task = RankingTask(truth, num_users=2, num_items=9)
    lists = torch.tensor([[2, 7, 5, -1], [1, -1, -1, -1]])
    metric = "precision(normalizer=length)@3"
    result = evaluate(lists, task, metric, per="edge")
    assert result.per_user[metric].tolist() == [1 / 2, 1 / 2, 1]
    parts = [evaluate(lists, task.part(index, 2), metric, per="edge") for index in range(2)]
    assert merge(parts).per_user[metric].tolist() == [1 / 2, 1 / 2, 1]


@OF_EACH_EDGE
def test_edges_of_users_who_are_left_out_keep_their_rows(tmp_path):
    task = RankingTask(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 3]]), num_users=3, num_items=4)
    scores = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.5] * 4, [0.1, 0.2, 0.3, 0.4]])
    result = evaluate(scores, task, "mrr", per="edge", convention="recometrics")
    values = result.per_user["mrr"]
    assert values[[0, 3]].tolist() == [0.5, 1]
    assert values[[1, 2]].isnan().all()
    assert torch.equal(result.ranked.origin.user_of_row, task.truth[0])
    assert result["mrr"] == 0.75
    assert "2 edges evaluated, 1 user left out of the population" in str(result)
    assert result.by(["odd", "odd", "odd", "even"])["odd"]["mrr"].value == 0.5
    assert result.to_pandas(per_user=True)["item"].tolist() == [1, 3]
    result.save(tmp_path / "result.npz")
    assert str(EvaluationResult.load(tmp_path / "result.npz")) == str(result)


@pytest.mark.parametrize("shape", [(3, 2), (3, 0), (0, 4), (0, 0)])
def test_a_matrix_is_held_without_a_copy(shape):
    matrix = torch.arange(shape[0] * shape[1]).view(shape)
    again = Lists.from_matrix(matrix).to_matrix()
    assert again.tolist() == matrix.tolist()
    assert again.data_ptr() == matrix.data_ptr()
