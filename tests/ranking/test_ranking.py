"""rank(): every form of recommender, exact, in chunks, whatever the mask."""

import math

import naive
import pytest
import torch
from cases import cases, ranks
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankedEdges, RankingTask, rank
from pyg_recmetrics.ranking.schedule import Schedule

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def naive_ranks(case, rankings, depth):
    """The rank of every edge of the truth that is above `depth` or the user's own degree."""
    found = {}
    for user, truth in enumerate(case.truths):
        for item in truth:
            place = rankings[user].index(item) + 1 if item in rankings[user] else math.inf
            found[user, item] = place if place <= max(depth, len(truth)) else math.inf
    return found


class Asked(torch.nn.Module):
    """A model that is only known by its `recommend`, and notes what it was asked."""

    def __init__(self, scores, num_users):
        super().__init__()
        self.scores, self.num_users = scores, num_users
        self.asked = []

    def recommend(self, edge_index, edge_weight=None, src_index=None, dst_index=None, k=1):
        self.asked.append((src_index, dst_index, k, self.training, torch.is_grad_enabled()))
        scores = self.scores[src_index][:, dst_index - self.num_users]
        return dst_index[scores.sort(dim=1, descending=True, stable=True).indices[:, :k]]


def forms(case):
    """The same recommender in every form that gives ties to the lower item."""
    scores = case.score_matrix
    everything = scores.sort(dim=1, descending=True, stable=True).indices
    identity = torch.eye(case.num_items)
    yield scores
    yield scores.double()
    yield scores.half()
    yield lambda users: scores[users]
    yield lambda users: scores[users].double()
    yield (scores, identity)
    yield (scores.double(), identity.double())
    yield (scores, identity, torch.zeros(case.num_items))
    yield (scores - 1, identity, torch.ones(case.num_items))
    yield everything
    yield everything.int()
    yield Asked(scores, case.num_users)


@settings(max_examples=200)
@given(case=cases(), k=st.integers(1, 12), batch_size=st.sampled_from([None, 1, 2, 3]))
def test_all_forms_of_a_recommender_rank_alike(case, k, batch_size):
    task = case.task()
    expected = naive_ranks(case, case.rankings, k)
    for recommender in forms(case):
        ranked = rank(
            recommender, task, k=k, batch_size=batch_size, edge_index=torch.empty(2, 0).long()
        )
        assert ranks(ranked) == expected


@settings(max_examples=300)
@given(
    case=cases(),
    num_comparisons=st.sampled_from([1, 5, 17, 2**19]),
    batch_size=st.sampled_from([None, 1, 2]),
)
def test_full_rankings_are_those_of_a_sorted_list(case, num_comparisons, batch_size):
    expected = naive_ranks(case, case.rankings, case.num_items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyg_recmetrics.kernels.counting.NUM_COMPARISONS", num_comparisons)
        for recommender in forms(case):
            ranked = rank(
                recommender,
                case.task(),
                full=True,
                batch_size=batch_size,
                edge_index=torch.empty(2, 0).long(),
            )
            assert ranks(ranked) == expected


@settings(max_examples=200)
@given(case=cases(), k=st.integers(1, 12))
def test_one_score_per_item_is_the_same_for_everybody(case, k):
    case.scores = [case.scores[0]] * case.num_users
    scores = torch.tensor(case.scores[0], dtype=torch.float)
    for one in (scores, scores.double(), scores.bfloat16()):
        ranked = rank(one, case.task(), k=k)
        assert ranks(ranked) == naive_ranks(case, case.rankings, k)


@settings(max_examples=200)
@given(case=cases(), data=st.data(), shared=st.booleans(), batch_size=st.sampled_from([None, 2]))
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
        own = [[i for u, i in pairs if u == one] for one in range(case.num_users)]
    rankings = [
        naive.ranking(case.scores[u], case.seen_by(u), own[u]) for u in range(case.num_users)
    ]
    can_be_retrieved = [(u, i) for u, truth in enumerate(case.truths) for i in truth if i in own[u]]
    if not can_be_retrieved:
        with pytest.raises(ValueError, match="no user has one"):
            case.task(candidates=candidates)
        return
    task = case.task(candidates=candidates)
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


@settings(max_examples=100)
@given(case=cases(), k=st.integers(1, 12))
def test_lists_are_kept_if_wanted(case, k):
    ranked = rank(case.score_matrix, case.task(), k=k, keep_items=True, batch_size=2)
    width = min(k, case.num_items)
    assert ranked.items.tolist() == [(ranking + [-1] * width)[:width] for ranking in case.rankings]
    assert rank(case.score_matrix, case.task(), k=k).items is None


@given(case=cases())
def test_depth(case):
    task = case.task()
    most = max(len(truth) for truth in case.truths)
    candidates = max(len(ranking) for ranking in case.rankings)
    assert rank(case.score_matrix, task).depth == (None if most >= candidates else most)
    assert rank(case.score_matrix, task, full=True).depth is None
    full = rank(case.score_matrix, task, full=True)
    scores = RankedEdges.from_scores(case.score_matrix, task.truth, seen=task.seen)
    assert torch.equal(full.rank, scores.rank)


@settings(max_examples=50)
@given(
    num_users=st.integers(1, 60),
    num_items=st.integers(1, 80),
    seed=st.integers(0, 1000),
    weighted=st.booleans(),
)
def test_lightgcn_is_the_same_through_recommend_and_through_its_embeddings(
    num_users, num_items, seed, weighted
):
    generator = torch.Generator().manual_seed(seed)
    users = torch.randint(num_users, (200,), generator=generator)
    items = torch.randint(num_items, (200,), generator=generator)
    edges = torch.stack([users, items])
    seen, truth = edges[:, :100], edges[:, 100:]
    truth = truth[
        :,
        [e not in set(zip(*seen.tolist(), strict=True)) for e in zip(*truth.tolist(), strict=True)],
    ]
    if truth.size(1) == 0:
        return
    shifted = seen + torch.tensor([[0], [num_users]])
    edge_index = torch.cat([shifted, shifted.flip([0])], dim=1)
    edge_weight = torch.rand(200, generator=generator) if weighted else None
    task = RankingTask(truth, num_users=num_users, num_items=num_items, seen=seen)
    model = LightGCN(num_users + num_items, embedding_dim=16, num_layers=2)
    torch.nn.init.normal_(model.embedding.weight, generator=generator)

    class Recommend(LightGCN):
        def recommend(self, *args, **kwargs):
            return super().recommend(*args, **kwargs)

    other = Recommend(num_users + num_items, embedding_dim=16, num_layers=2)
    other.load_state_dict(model.state_dict())
    options = {"k": 10, "edge_index": edge_index, "edge_weight": edge_weight}
    one, two = rank(model, task, **options), rank(other, task, **options, batch_size=7)
    assert torch.equal(one.edge_index, two.edge_index)
    assert torch.equal(one.rank, two.rank)
    user, item = model.get_embedding(edge_index, edge_weight).detach().split([num_users, num_items])
    assert torch.equal(one.rank, rank((user, item), task, k=10, batch_size=3).rank)


def test_lightgcn_is_propagated_once(lastfm):
    task = RankingTask.from_data(lastfm)
    model = LightGCN(task.num_users + task.num_items, embedding_dim=8, num_layers=1)
    calls = []
    model.convs[0].register_forward_hook(lambda *_: calls.append(1))
    rank(model, task, batch_size=100)
    assert len(calls) == 1


def test_inner_products_do_not_depend_on_the_chunk():
    # Matrix products of different shapes round differently; with these items it would show.
    generator = torch.Generator().manual_seed(0)
    item = torch.randn(1, 64, generator=generator).repeat(50, 1)
    item *= 1 + 1e-7 * torch.randint(-1, 2, (50, 64), generator=generator)
    user = torch.randn(40, 64, generator=generator)
    truth = torch.randint(40, (2, 200), generator=generator)
    task = RankingTask(truth, num_users=40, num_items=50)
    whole = rank((user, item), task, full=True)
    for batch_size in (1, 2, 3, 17):
        assert torch.equal(
            rank((user, item), task, full=True, batch_size=batch_size).rank, whole.rank
        )
    exact = (user.double() @ item.double().t()).float()
    assert torch.equal(RankedEdges.from_scores(exact, truth).rank, whole.rank)


def test_a_model_is_asked_for_as_many_items_as_can_be_needed():
    truth, seen = torch.tensor([[0, 0, 1], [5, 6, 7]]), torch.tensor([[0, 1, 1], [0, 1, 2]])
    task = RankingTask(truth, num_users=2, num_items=9, seen=seen)
    model = Asked(torch.rand(2, 9), 2)
    rank(model, task, k=1, edge_index=seen, batch_size=1)
    assert [(src.tolist(), k) for src, _, k, *_ in model.asked] == [([0], 3), ([1], 3)]
    few = RankingTask(truth, num_users=2, num_items=9, seen=seen, candidates=torch.arange(5, 8))
    rank(model, few, k=1, edge_index=seen)
    _, dst, k, *_ = model.asked[-1]
    assert (dst.tolist(), k) == ([7, 8, 9], 2)


def test_a_model_is_left_as_it_was_found_also_when_it_raises():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.frozen, self.dropout = torch.nn.Dropout(), torch.nn.Dropout()
            self.train()
            self.frozen.eval()

        def recommend(self, *args, **kwargs):
            assert not torch.is_grad_enabled()
            assert not any(module.training for module in self.modules())
            raise KeyError("broken")

        def score(self, users):
            self.recommend()

    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=2)
    model = Model()
    for recommender in (model, model.score):
        with pytest.raises(KeyError, match="broken"):
            rank(recommender, task, edge_index=task.truth)
        assert (model.training, model.frozen.training, model.dropout.training) == (
            True,
            False,
            True,
        )
        assert torch.is_grad_enabled()


def test_the_global_random_state_is_not_touched():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=2)
    state = torch.get_rng_state()
    rank(torch.rand(1, 2, generator=torch.Generator().manual_seed(0)), task)
    assert torch.equal(torch.get_rng_state(), state)


def test_deep_users_come_first_and_do_not_make_all_chunks_deep(monkeypatch):
    depths = []
    original = Schedule.chunks

    def note(self):
        for chunk in original(self):
            depths.append(chunk.max_depth)
            yield chunk

    monkeypatch.setattr(Schedule, "chunks", note)
    truth = torch.tensor([[0, 1, 1, 1, 1, 1, 2], [0, 0, 1, 2, 3, 4, 0]])
    task = RankingTask(truth, num_users=3, num_items=9)
    rank(torch.zeros(9), task, k=2, batch_size=1)
    assert depths == [5, 2, 2]


def test_a_progress_bar_counts_users(capsys):
    task = RankingTask(torch.tensor([[0, 2], [1, 1]]), num_users=3, num_items=2)
    rank(torch.rand(2), task, progress=True)
    assert "2/2" in capsys.readouterr().err
    rank(torch.rand(2), task)
    assert capsys.readouterr().err == ""


def test_no_chunk_waits_for_the_device(device):
    if device.type != "cuda":
        pytest.skip("needs a CUDA device")
    truth, seen = torch.randint(500, (2, 2000)), torch.randint(500, (2, 2000))
    task = RankingTask(truth, num_users=500, num_items=500, seen=seen).to(device)
    scores = torch.rand(500, 500, device=device)
    embeddings = (torch.rand(500, 8, device=device), torch.rand(500, 8, device=device))
    original = Schedule.chunks

    def strict(self):
        try:
            for chunk in original(self):
                torch.cuda.set_sync_debug_mode("error")
                yield chunk
        finally:
            torch.cuda.set_sync_debug_mode("default")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Schedule, "chunks", strict)
        for recommender in (scores, embeddings, scores.argsort(dim=1)):
            rank(recommender, task, k=10, batch_size=100)


class TestWrongRecommenders:
    task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)

    @pytest.mark.parametrize(
        ("recommender", "error", "message"),
        [
            ("model", TypeError, r"'recommender' needs to be a module .*\(got str\)"),
            (torch.nn.Linear(1, 1), TypeError, r"method 'recommend' \(got Linear without\)"),
            (torch.rand(3, 3), ValueError, r"scores .*\[2, 3\] \(got \[3, 3\]\)"),
            (torch.rand(2), ValueError, r"one score per item of shape \[3\] \(got \[2\]\)"),
            (torch.zeros(3, 3).long(), ValueError, r"item ids of shape \[2, K\] \(got \[3, 3\]\)"),
            (torch.zeros(2, 3).bool(), ValueError, "scores or item ids .*bool"),
            (torch.tensor([[0, 1, 2], [3, -2, 0]]), ValueError, r"\[0, 3\) or -1 \(got 2 others\)"),
            (torch.tensor([[0, 1, torch.nan]] * 2), ValueError, "got 2 NaN or infinite"),
            (torch.tensor([0, torch.inf, 1]), ValueError, "got 1 NaN or infinite"),
            (lambda users: torch.rand(1, 3), ValueError, r"\[2, 3\] \(got \[1, 3\]\)"),
            (lambda users: torch.rand(2, 3) / 0, ValueError, "finite scores .got 6 NaN or inf"),
            (lambda users: None, TypeError, "needs to be a tensor .got NoneType"),
            (lambda users: torch.zeros(2, 3).long(), ValueError, "floating-point"),
            ((torch.rand(2, 4),), ValueError, "got 1 parts"),
            ((torch.rand(2, 4), torch.rand(3, 5)), ValueError, r"item embeddings .*\[3, 4\]"),
            ((torch.rand(3, 4), torch.rand(3, 4)), ValueError, r"user embeddings .*\[2, 4\]"),
            (
                (torch.rand(2, 4), torch.rand(3, 4), torch.rand(4)),
                ValueError,
                r"item biases of shape \[3\]",
            ),
            (
                (torch.rand(2, 4), torch.rand(3, 4) * torch.nan),
                ValueError,
                "got 12 NaN or infinite",
            ),
            ((torch.rand(2, 4), torch.zeros(3, 4).long()), ValueError, "floating-point"),
            (torch.rand(2, 3, device="meta"), ValueError, r"device of 'task', cpu \(got meta\)"),
        ],
    )
    def test_they_are_named(self, recommender, error, message):
        with pytest.raises(error, match=message):
            rank(recommender, self.task)

    def test_a_model_needs_edges_to_propagate_over(self):
        with pytest.raises(ValueError, match="'edge_index' needs to be given for LightGCN"):
            rank(LightGCN(5, 4, 1), self.task)

    def test_a_lightgcn_of_another_size_is_named(self):
        with pytest.raises(ValueError, match=r"2 users and 3 items \(got 6 nodes\)"):
            rank(LightGCN(6, 4, 1), self.task, edge_index=self.task.truth)

    def test_edges_beyond_the_nodes_are_named(self):
        with pytest.raises(ValueError, match=r"'edge_index' .*node ids in \[0, 5\) \(got 5\)"):
            rank(LightGCN(5, 4, 1), self.task, edge_index=torch.tensor([[0], [5]]))

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (torch.tensor([[2, 1], [3, 4]]), "got 1 others"),
            (torch.tensor([[2, 5], [3, -2]]), "got 2 others"),
            (torch.tensor([[2, 3]]), r"shape \[2, k\] \(got \[1, 2\]\)"),
            (torch.rand(2, 2), "integers"),
        ],
    )
    def test_wrong_answers_are_named(self, answer, message):
        class Model(torch.nn.Module):
            def recommend(self, edge_index, edge_weight=None, **options):
                return answer

        with pytest.raises(ValueError, match=message):
            rank(Model(), self.task, edge_index=self.task.truth)

    @pytest.mark.parametrize("name", ["k", "batch_size"])
    @pytest.mark.parametrize("value", [0, -1, 2.0])
    def test_sizes_are_positive_integers(self, name, value):
        with pytest.raises(ValueError, match=f"'{name}' needs to be a positive integer"):
            rank(torch.rand(3), self.task, **{name: value})

    def test_a_task_is_a_task(self):
        with pytest.raises(TypeError, match=r"'task' needs to be a 'RankingTask' \(got Tensor\)"):
            rank(torch.rand(3), torch.rand(3))

    def test_lists_that_are_too_short_are_warned_about(self):
        with pytest.warns(UserWarning, match="holds lists of 1 items, but 3 are needed"):
            rank(torch.tensor([[0], [2]]), self.task, k=20)
