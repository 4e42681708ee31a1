"""The plain way asks a model by its `recommend`, and it is told what that leaves off."""

import copy
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import LightGCN
from torch_geometric.utils import to_undirected

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranking import algorithms
from tests.support.cases.recommender_forms import PlainModel, RecordingModel, models
from tests.support.cases.small_model import EDGES, NO_EDGES, SCORES, best
from tests.support.cases.strategies import cases, ranks

TRUTH = torch.tensor([[0, 0, 1], [0, 3, 4]])
TASK = RankingTask(TRUTH, num_users=2, num_items=5)


class Answering(torch.nn.Module):
    """A model that answers as a function of the users and items it is asked about."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def recommend(self, edge_index, edge_weight=None, *, src_index, dst_index, k):
        return self.answer(src_index, dst_index, k)


def test_a_model_is_asked_for_as_many_items_as_can_be_needed():
    truth, seen = torch.tensor([[0, 0, 1], [5, 6, 7]]), torch.tensor([[0, 1, 1], [0, 1, 2]])
    task = RankingTask(truth, num_users=2, num_items=9, seen=seen)
    model = RecordingModel(torch.rand(2, 9), 2)
    rank(model, task, k=1, edge_index=NO_EDGES, batch_size=1)
    assert [(src.tolist(), k) for src, _, k, *_ in model.calls] == [([0], 3), ([1], 3)]
    few = RankingTask(truth, num_users=2, num_items=9, seen=seen, candidates=torch.arange(5, 8))
    rank(model, few, k=1, edge_index=NO_EDGES)
    _, dst, k, *_ = model.calls[-1]
    assert (dst.tolist(), k) == ([7, 8, 9], 2)


def test_users_who_need_longer_lists_are_asked_about_together():
    seen = torch.stack([torch.tensor([1, 1, 1, 3, 3, 4]), torch.tensor([0, 1, 2, 0, 1, 0])])
    truth = torch.stack([torch.tensor([0, 1, 2, 2, 3, 4]), torch.tensor([5, 5, 5, 6, 5, 5])])
    task = RankingTask(truth, num_users=5, num_items=9, seen=seen)
    model = RecordingModel(torch.rand(5, 9), 5)
    rank(model, task, k=1, edge_index=NO_EDGES, batch_size=2)
    # User 2 has two relevant items. Of the others, user 1 has seen three items, and user 3 two.
    assert [(users.tolist(), k) for users, _, k, *_ in model.calls] == [
        ([2, 1], 4),
        ([3, 4], 3),
        ([0], 1),
    ]


@pytest.mark.parametrize("max_seen", [5, 300])
def test_what_a_model_computes_fits_into_memory(monkeypatch, max_seen):
    num_users, num_items, num_bytes = 500, 400, 2**19
    monkeypatch.setattr(algorithms, "SCRATCH_BYTES", num_bytes)
    users = torch.arange(num_users)
    truth = torch.stack([users, users % 50 + 350])
    seen = torch.stack([torch.zeros(max_seen).long(), torch.arange(max_seen)])
    task = RankingTask(truth, num_users=num_users, num_items=num_items, seen=seen)
    model = RecordingModel(torch.rand(num_users, num_items), num_users)
    rank(model, task, k=10, edge_index=NO_EDGES)
    assert sum(len(users) for users, *_ in model.calls) == num_users
    for users, _, k, *_ in model.calls:
        # Scores take up to 8 bytes, and the best scores, their items and two copies 32.
        assert len(users) * (num_items * 8 + k * 32) <= num_bytes
    assert model.calls[0][2] == 10 + max_seen
    assert model.calls[-1][2] == 10


class TestAlgorithmRecommend:
    @settings(max_examples=60)
    @given(case=cases(), k=st.integers(1, 12), batch_size=st.sampled_from([None, 1, 2]))
    @pytest.mark.usefixtures("expect_lost_truth")
    def test_models_are_asked_as_always(self, case, k, batch_size):
        options = {"k": k, "batch_size": batch_size, "edge_index": NO_EDGES}
        wanted = rank(case.score_matrix, case.task(), k=k, keep_items=True)
        for model in models(case.score_matrix, case.num_users):
            for algorithm in ("auto", "recommend"):
                ranked = rank(model, case.task(), keep_items=True, algorithm=algorithm, **options)
                assert ranks(ranked) == ranks(wanted)
                assert torch.equal(ranked.lists.to_matrix(), wanted.lists.to_matrix())

    @settings(max_examples=60)
    @given(
        case=cases(),
        k=st.integers(1, 12),
        batch_size=st.sampled_from([None, 1, 2]),
        num_layers=st.integers(0, 3),
        shared=st.booleans(),
    )
    @pytest.mark.usefixtures("expect_lost_truth")
    def test_a_lightgcn_is_asked_as_by_hand(self, case, k, batch_size, num_layers, shared):
        """Its scores are integers, so that no rounding can decide; and no two of them are equal."""
        task = case.task(candidates=torch.arange(case.num_items) if shared else None)
        num_users, num_items = case.num_users, case.num_items
        model = LightGCN(num_users + num_items, num_items, num_layers, alpha=1.0, normalize=False)
        with torch.no_grad():
            model.embedding.weight.zero_()
            model.embedding.weight[num_users:] = torch.eye(num_items)
            distinct = torch.tensor(case.without_ties().scores, dtype=torch.float)
            model.embedding.weight[:num_users] = distinct
        calls = []
        asked = copy.copy(model)
        own_recommend = model.recommend

        def recommend(*args, **options):
            calls.append(options["k"])
            return own_recommend(*args, **options)

        # Without edges, only the first layer is left, whose products are the scores.
        options = {"k": k, "batch_size": batch_size, "edge_index": NO_EDGES}
        by_embedding = rank(asked, task, keep_items=True, **options)
        model.recommend = recommend
        by_recommend = rank(model, task, keep_items=True, algorithm="recommend", **options)
        assert calls
        assert torch.equal(by_embedding.rank, by_recommend.rank)
        assert torch.equal(by_embedding.lists.to_matrix(), by_recommend.lists.to_matrix())

    def test_a_trained_graph_gives_the_same_ranks(self):
        generator = torch.Generator().manual_seed(0)
        users = torch.randint(50, (400,), generator=generator)
        edges = torch.stack([users, torch.randint(80, (400,), generator=generator)])
        edges = edges.unique(dim=1)
        is_seen = torch.rand(edges.size(1), generator=generator) < 0.7
        seen, truth = edges[:, is_seen], edges[:, ~is_seen]
        task = RankingTask(truth, num_users=50, num_items=80, seen=seen)
        model = LightGCN(130, embedding_dim=16, num_layers=2).double()
        torch.nn.init.normal_(model.embedding.weight, generator=generator)
        options = {"edge_index": to_undirected(seen + torch.tensor([[0], [50]]))}
        propagated = []
        model.convs[0].register_forward_hook(lambda *_: propagated.append(1))
        by_embedding = rank(model, task, k=20, **options)
        assert len(propagated) == 1
        by_recommend = rank(model, task, k=20, algorithm="recommend", batch_size=10, **options)
        assert len(propagated) > 2
        assert torch.equal(by_embedding.rank, by_recommend.rank)

    @pytest.mark.parametrize(
        "recommender",
        [
            SCORES,
            (SCORES, torch.eye(5)),
            SCORES.argsort(descending=True),
            lambda users: SCORES[users],
            torch.nn.Linear(1, 1),
            LightGCN,
            "model",
        ],
    )
    def test_what_cannot_be_asked_is_refused(self, recommender):
        message = "with a method 'recommend' for algorithm='recommend' .got "
        with pytest.raises(ValueError, match=message):
            rank(recommender, TASK, algorithm="recommend", edge_index=EDGES)


class TestShortAnswers:
    """40 items, of which each of 10 users has seen 10."""

    seen = torch.cartesian_prod(torch.arange(10), torch.arange(10)).t()
    truth = torch.stack([torch.arange(10), torch.arange(10, 20)])
    task = RankingTask(truth, num_users=10, num_items=40, seen=seen)

    def warnings_of(self, answer, k=20, task=None, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            options = {"edge_index": NO_EDGES, "k": k, **options}
            rank(Answering(answer), task or self.task, **options)
        return [str(warning.message) for warning in caught]

    @pytest.mark.parametrize("batch_size", [None, 1, 3])
    @pytest.mark.parametrize("keep_items", [True, False])
    def test_fewer_items_than_were_asked_for_are_warned_about_once(self, batch_size, keep_items):
        (message,) = self.warnings_of(
            lambda users, items, k: items[:12].expand(len(users), -1),
            batch_size=batch_size,
            keep_items=keep_items,
        )
        assert "fewer than 20 items, or than are relevant for 10 of 10 users, as 100 of" in message

    def test_the_warning_points_to_the_caller(self):
        with pytest.warns(UserWarning, match="fewer items than .* for 1 of 2 users") as warned:
            rank(Answering(lambda u, i, k: i[:1].expand(len(u), 1)), TASK, edge_index=NO_EDGES)
        assert warned[0].filename == __file__

    def test_all_that_there_are_are_enough(self):
        assert not self.warnings_of(lambda users, items, k: items.expand(len(users), -1), k=1000)
        some = RankingTask(
            self.truth, num_users=10, num_items=40, seen=self.seen, candidates=torch.arange(25)
        )
        assert not self.warnings_of(
            lambda users, items, k: items.expand(len(users), -1), k=1000, task=some
        )

    def test_a_model_that_leaves_out_seen_items_by_itself_is_not_warned_about(self):
        assert not self.warnings_of(lambda users, items, k: items[10:30].expand(len(users), -1))
        assert self.warnings_of(lambda users, items, k: items[10:29].expand(len(users), -1))

    def test_users_who_have_seen_all_else_need_no_more(self):
        seen = torch.stack([torch.zeros(37, dtype=torch.long), torch.arange(37)])
        truth = torch.tensor([[0, 1, 1], [38, 0, 1]])
        task = RankingTask(truth, num_users=2, num_items=40, seen=seen)

        def answer(users, items, k):
            return items[-20:].expand(len(users), -1)

        assert not self.warnings_of(answer, task=task)
        assert self.warnings_of(answer, task=task, k=21)

    def test_users_with_much_truth_need_more(self):
        truth = torch.cat(
            [self.truth, torch.stack([torch.zeros(15).long(), torch.arange(25, 40)])], 1
        )
        task = RankingTask(truth, num_users=10, num_items=40)
        for width, is_short in ((16, False), (15, True)):
            warned = self.warnings_of(
                lambda users, items, k, width=width: items[:width].expand(len(users), -1),
                k=2,
                task=task,
            )
            assert bool(warned) == is_short

    def test_candidates_of_each_user(self):
        candidates = torch.stack([torch.arange(10).repeat(2), torch.arange(10, 30)])
        task = RankingTask(self.truth, num_users=10, num_items=40, candidates=candidates)
        # Both candidates of everybody are among these, though 40 were asked for.
        assert not self.warnings_of(
            lambda users, items, k: items[10:30].expand(len(users), -1), task=task
        )
        assert self.warnings_of(
            lambda users, items, k: items[10:29].expand(len(users), -1), task=task
        )

    def test_a_model_may_say_that_there_are_no_more(self):
        def answer(users, items, k):
            return torch.where(torch.arange(k) < 12, items[:k], -1).expand(len(users), -1)

        (message,) = self.warnings_of(answer)
        assert "90.0% of all places hold no item" in message

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (
                lambda u, i, k: torch.empty(len(u), 0).long(),
                r"shape \[10, k\] with k > 0 \(got \[10, 0\]\)",
            ),
            (lambda u, i, k: i[:k], r"\(got \[30\]\)"),
            (lambda u, i, k: i[:k].expand(len(u) - 1, -1), r"\(got \[9, 30\]\)"),
            (lambda u, i, k: i[:k].expand(len(u), -1).to_sparse(), r"dense tensor \(got torch.sp"),
            (lambda u, i, k: i[:k].expand(1, len(u), -1), r"\(got \[1, 10, 30\]\)"),
            (lambda u, i, k: i[:k].expand(len(u), -1).double(), "hold integers .got torch.float64"),
            (
                lambda u, i, k: i[:k].expand(len(u), -1) - 10,
                r"\[10, 50\), .* or -1 \(got 100 ids outside\)",
            ),
        ],
    )
    def test_wrong_shapes_are_errors(self, answer, message):
        with pytest.raises(ValueError, match=message):
            rank(Answering(answer), self.task, k=20, edge_index=NO_EDGES)


@pytest.mark.parametrize("batch_size", [None, 1])
def test_a_model_may_overwrite_what_it_is_given(batch_size):
    def overwriting(users, items, k):
        answer = best(users, items, k)
        users.zero_()
        items.zero_()
        return answer

    options = {"k": 2, "batch_size": batch_size, "keep_items": True}
    ranked = rank(Answering(overwriting), TASK, edge_index=NO_EDGES, **options)
    wanted = rank(PlainModel(SCORES, 2), TASK, edge_index=NO_EDGES, **options)
    assert torch.equal(ranked.rank, wanted.rank)
    assert torch.equal(ranked.lists.to_matrix(), wanted.lists.to_matrix())
