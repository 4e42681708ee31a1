"""rank(): every form of recommender, with seen items and candidates, in chunks of any size."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranked_edges import count_irrelevant
from tests.support.cases.recommender_forms import forms
from tests.support.cases.strategies import cases, ranks
from tests.support.references import naive

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def naive_ranks(case, rankings, depth):
    """The rank of every truth edge, infinite below `depth` and the degree of its user."""
    found = {}
    for user, truth in enumerate(case.truths):
        for item in truth:
            ranking = rankings[user]
            item_rank = ranking.index(item) + 1 if item in ranking else math.inf
            found[user, item] = item_rank if item_rank <= max(depth, len(truth)) else math.inf
    return found


@given(case=cases(), k=st.integers(1, 12), batch_size=st.sampled_from([None, 1, 2, 3]))
def test_all_forms_of_a_recommender_rank_alike(case, k, batch_size):
    task = case.task()
    expected = naive_ranks(case, case.rankings, k)
    for recommender in forms(case):
        ranked = rank(
            recommender, task, k=k, batch_size=batch_size, edge_index=torch.empty(2, 0).long()
        )
        assert ranks(ranked) == expected


@settings(max_examples=50)
@given(
    case=cases(max_users=10),
    num_comparisons=st.sampled_from([1, 5, 17, 2**19]),
    batch_size=st.sampled_from([None, 1, 4]),
)
def test_full_rankings_are_those_of_a_sorted_list(case, num_comparisons, batch_size):
    expected = naive_ranks(case, case.rankings, case.num_items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyg_recmetrics.kernels.exact.counting.NUM_COMPARISONS", num_comparisons)
        for recommender in forms(case):
            ranked = rank(
                recommender,
                case.task(),
                full=True,
                batch_size=batch_size,
                edge_index=torch.empty(2, 0).long(),
            )
            assert ranks(ranked) == expected


@given(case=cases(), k=st.integers(1, 12))
def test_one_score_per_item_is_the_same_for_everybody(case, k):
    case.scores = [case.scores[0]] * case.num_users
    scores = torch.tensor(case.scores[0], dtype=torch.float)
    for item_scores in (scores, scores.double(), scores.bfloat16()):
        ranked = rank(item_scores, case.task(), k=k)
        assert ranks(ranked) == naive_ranks(case, case.rankings, k)


@settings(max_examples=50)
@given(
    case=cases(max_users=10),
    data=st.data(),
    shared=st.booleans(),
    batch_size=st.sampled_from([None, 4]),
)
def test_candidates_are_all_that_is_ranked(case, data, shared, batch_size):
    item = st.integers(0, case.num_items - 1)
    user = st.integers(0, case.num_users - 1)
    if shared:
        chosen = data.draw(st.lists(item, min_size=1))
        candidates = torch.tensor(chosen)
        own = [chosen] * case.num_users
    else:
        pairs = data.draw(st.lists(st.tuples(user, item), min_size=1))
        candidates = torch.tensor(pairs).t()
        own = [[item for other, item in pairs if other == u] for u in range(case.num_users)]
    rankings = [
        naive.ranking(case.scores[u], case.seen_by(u), own[u]) for u in range(case.num_users)
    ]
    can_be_retrieved = [(u, i) for u, truth in enumerate(case.truths) for i in truth if i in own[u]]
    if not can_be_retrieved:
        with pytest.raises(ValueError, match="an edge that can be retrieved"):
            case.task(candidates=candidates, missing="drop")
        return
    task = case.task(candidates=candidates, missing="drop")
    assert task.num_candidates.tolist() == [len(ranking) for ranking in rankings]
    expected = {(u, i): rankings[u].index(i) + 1 for u, i in can_be_retrieved}
    for recommender in forms(case):
        ranked = rank(
            recommender,
            task,
            full=True,
            batch_size=batch_size,
            edge_index=torch.empty(2, 0).long(),
        )
        assert ranks(ranked) == expected


@given(case=cases(), k=st.integers(1, 12))
def test_lists_are_kept_if_wanted(case, k):
    ranked = rank(case.score_matrix, case.task(), k=k, keep_items=True, batch_size=2)
    width = min(k, case.num_items)
    assert ranked.lists.to_matrix().tolist() == [
        (ranking + [-1] * width)[:width] for ranking in case.rankings
    ]
    assert rank(case.score_matrix, case.task(), k=k).lists is None


@given(case=cases())
def test_depth(case):
    task = case.task()
    max_degree = max(len(truth) for truth in case.truths)
    max_candidates = max(len(ranking) for ranking in case.rankings)
    assert rank(case.score_matrix, task).depth == (
        None if max_degree >= max_candidates else max_degree
    )
    assert rank(case.score_matrix, task, full=True).depth is None


@given(case=cases(), batch_size=st.integers(1, 7))
def test_the_size_of_chunks_changes_nothing(case, batch_size):
    whole = rank(case.score_matrix, case.task(), k=3)
    in_chunks = rank(case.score_matrix, case.task(), k=3, batch_size=batch_size)
    assert torch.equal(whole.edge_label_index, in_chunks.edge_label_index)
    assert torch.equal(whole.rank, in_chunks.rank)


def test_the_global_random_state_is_not_touched():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=2)
    state = torch.get_rng_state()
    rank(torch.rand(1, 2, generator=torch.Generator().manual_seed(0)), task)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_progress_bar_counts_users(capsys):
    task = RankingTask(torch.tensor([[0, 2], [1, 1]]), num_users=3, num_items=2)
    rank(torch.rand(2), task, progress=True)
    assert "2/2" in capsys.readouterr().err
    rank(torch.rand(2), task)
    assert capsys.readouterr().err == ""


class TestWrongArguments:
    task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)

    @pytest.mark.parametrize("name", ["k", "batch_size"])
    @pytest.mark.parametrize("value", [0, -1, 2.0])
    def test_sizes_are_positive_integers(self, name, value):
        with pytest.raises(ValueError, match=f"'{name}' needs to be a positive integer"):
            rank(torch.rand(3), self.task, **{name: value})

    def test_a_task_is_a_task(self):
        with pytest.raises(TypeError, match=r"'data' needs to be a 'RankingTask', .* \(got dict\)"):
            rank(torch.rand(3), {"user": torch.rand(3)})


class TestData:
    """One part of a split, which is ranked as the task that it holds."""

    edges = torch.tensor([[0, 1, 2, 2], [0, 1, 2, 3]])
    truth = torch.tensor([[0, 0, 1, 2], [2, 3, 0, 1]])

    def homogeneous(self):
        shift = torch.tensor([[0], [3]])
        forward = self.edges + shift
        both = torch.cat([forward, forward.flip([0])], dim=1)
        return Data(num_nodes=7, num_users=3, edge_index=both, edge_label_index=self.truth + shift)

    def heterogeneous(self):
        data = HeteroData()
        data["user"].num_nodes, data["item"].num_nodes = 3, 4
        data["user", "rates", "item"].edge_index = self.edges
        data["user", "rates", "item"].edge_label_index = self.truth
        return data

    @pytest.mark.parametrize("form", ["homogeneous", "heterogeneous"])
    def test_it_is_ranked_as_the_task_that_it_holds(self, form):
        torch.manual_seed(0)
        model = LightGCN(num_nodes=7, embedding_dim=8, num_layers=2)
        data = getattr(self, form)()
        of_data = rank(model, data, k=2, keep_items=True)
        of_task = rank(model, RankingTask.from_data(data), k=2, keep_items=True)
        for name in ("edge_label_index", "rank", "num_candidates"):
            assert torch.equal(getattr(of_data, name), getattr(of_task, name)), name
        assert torch.equal(of_data.lists.item, of_task.lists.item)

    def test_both_forms_are_one_task(self):
        scores = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
        first, second = rank(scores, self.homogeneous()), rank(scores, self.heterogeneous())
        assert ranks(first) == ranks(second)


@pytest.mark.usefixtures("expect_lost_truth")
@given(case=cases(), data=st.data())
def test_truth_that_is_no_candidate_is_never_retrieved_and_stays_truth(case, data):
    every = [(user, item) for user in range(case.num_users) for item in range(case.num_items)]
    chosen = data.draw(st.lists(st.sampled_from(every), unique=True, min_size=1))
    candidates = torch.tensor(chosen).T
    try:
        task = case.task(candidates=candidates)
    except ValueError:
        return
    wanted, of_user = {}, {user: set() for user in range(case.num_users)}
    for user, item in chosen:
        of_user[user].add(item)
    for user, item in task.truth.T.tolist():
        ranking = naive.ranking(case.scores[user], case.seen_by(user), of_user[user])
        wanted[user, item] = 1 + ranking.index(item) if item in ranking else math.inf
    for recommender in forms(case):
        ranked = rank(recommender, task, full=True, edge_index=torch.empty(2, 0).long())
        assert ranks(ranked) == wanted
        assert torch.equal(ranked.degree, task.degree)
        is_found = torch.tensor([math.isfinite(wanted[pair]) for pair in edges_of(ranked)])
        if ranked.is_candidate is None:
            assert bool(is_found.all())
        else:
            assert torch.equal(ranked.is_candidate, is_found)
        left = {user: len(of_user[user] - case.seen_by(user)) for user in of_user}
        relevant = {
            user: sum(math.isfinite(wanted[pair]) for pair in wanted if pair[0] == user)
            for user in of_user
        }
        assert count_irrelevant(ranked).tolist() == [
            left[user] - relevant[user] for user in of_user
        ]


def edges_of(ranked):
    return [tuple(pair) for pair in ranked.edge_label_index.T.tolist()]
