"""Which recommenders can be ranked, and what is said of those that cannot."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankingTask, rank


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

    asked_by_chunk = Recommend(num_users + num_items, embedding_dim=16, num_layers=2)
    asked_by_chunk.load_state_dict(model.state_dict())
    options = {"k": 10, "edge_index": edge_index, "edge_weight": edge_weight}
    by_embedding = rank(model, task, **options)
    by_recommend = rank(asked_by_chunk, task, **options, batch_size=7)
    assert torch.equal(by_embedding.edge_label_index, by_recommend.edge_label_index)
    assert torch.equal(by_embedding.rank, by_recommend.rank)
    user, item = model.get_embedding(edge_index, edge_weight).detach().split([num_users, num_items])
    assert torch.equal(by_embedding.rank, rank((user, item), task, k=10, batch_size=3).rank)


def test_lightgcn_is_propagated_once(lastfm):
    task = RankingTask.from_data(lastfm)
    model = LightGCN(task.num_users + task.num_items, embedding_dim=8, num_layers=1)
    calls = []
    model.convs[0].register_forward_hook(lambda *_: calls.append(1))
    rank(model, task, batch_size=100)
    assert len(calls) == 1


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
            rank(recommender, task, edge_index=torch.empty(2, 0).long())
        assert (model.training, model.frozen.training, model.dropout.training) == (
            True,
            False,
            True,
        )
        assert torch.is_grad_enabled()


OUTSIDE = r"ids in \[0, 3\) or -1 \(got 2 ids outside\); scores need to be floating-point numbers"
WRONG_ORDER = r"of 2 users, and then of 3 items \(got 3 and 2 rows\); write \(user_embedding, item_"
WRONG_SCORES = r"scores that are finite, or '-inf' for .*\(got NaN or 'inf'\)"


class TestWrongRecommenders:
    task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)

    @pytest.mark.parametrize(
        ("recommender", "error", "message"),
        [
            ("model", TypeError, r"'recommender' needs to be one of these \(got str\):"),
            (torch.rand(3, 3), ValueError, r"scores .*\[2, 3\] \(got \[3, 3\]\)$"),
            (torch.rand(3, 2), ValueError, r"scores .*\[2, 3\] \(got \[3, 2\]\); transpose them"),
            (torch.rand(2), ValueError, r"one score per item of shape \[3\] \(got \[2\]\)"),
            (torch.zeros(3, 3).long(), ValueError, r"item ids of shape \[2, K\] \(got \[3, 3\]\)"),
            (torch.ones(3).long(), ValueError, r"\(got \[3\]\); scores need to be floating-point"),
            (torch.zeros(2, 3).bool(), ValueError, "scores or integer item ids .*bool"),
            (torch.tensor([[0, 1, 2], [3, -2, 0]]), ValueError, OUTSIDE),
            (torch.tensor([[0, 1, torch.nan]] * 2), ValueError, WRONG_SCORES),
            (torch.tensor([0, torch.inf, 1]), ValueError, WRONG_SCORES),
            (lambda users: torch.rand(1, 3), ValueError, r"\[2, 3\] \(got \[1, 3\]\)"),
            (lambda users: torch.rand(2, 3) / 0, ValueError, WRONG_SCORES),
            (lambda users: None, TypeError, "needs to be a tensor, .*got NoneType"),
            (lambda users: torch.zeros(2, 3).long(), ValueError, "floating-point"),
            ((torch.rand(2, 4),), ValueError, "got 1 parts"),
            ([0.1, 0.2, 0.3, 0.4], ValueError, r"got 4 parts\); write torch.tensor\(...\) around"),
            ((torch.rand(3, 4), torch.rand(2, 4)), ValueError, WRONG_ORDER),
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
            (
                (torch.full((2, 4), 1e30), torch.full((3, 4), 1e30), torch.zeros(3)),
                ValueError,
                "range of single",
            ),
            ((torch.rand(2, 4), torch.zeros(3, 4).long()), ValueError, "floating-point"),
            (torch.rand(2, 3, device="meta"), ValueError, r"device of 'task', cpu \(got meta\)"),
        ],
    )
    def test_they_are_named(self, recommender, error, message):
        with pytest.raises(error, match=message):
            rank(recommender, self.task)

    def test_factors_in_columns_are_to_be_transposed(self):
        task = RankingTask([[0, 1], [0, 1]], num_users=6, num_items=9)
        user, item = torch.rand(4, 6), torch.rand(4, 9)
        with pytest.raises(ValueError, match=r"\(got \[4, 6\] and \[4, 9\]\); transpose both"):
            rank((user, item), task)
        square = (torch.eye(6), torch.rand(9, 6))
        assert rank(square, task).num_users == 6

    def test_a_model_needs_edges_to_propagate_over(self):
        with pytest.raises(ValueError, match="'edge_index' needs to be given for LightGCN"):
            rank(LightGCN(5, 4, 1), self.task)

    def test_a_lightgcn_of_another_size_is_named(self):
        message = r"2 users and 3 items \(got 6 nodes\); make it as LightGCN\(5, ...\)"
        with pytest.raises(ValueError, match=message):
            rank(LightGCN(6, 4, 1), self.task, edge_index=self.task.truth)

    def test_edges_beyond_the_nodes_are_named(self):
        with pytest.raises(ValueError, match=r"'edge_index' .*node ids in \[0, 5\) \(got 5\)"):
            rank(LightGCN(5, 4, 1), self.task, edge_index=torch.tensor([[0], [5]]))

    @pytest.mark.parametrize(
        ("weight", "error", "message"),
        [
            (torch.ones(3), ValueError, r"'edge_weight' needs to have shape \[2\].*\(got \[3\]\)"),
            (torch.tensor([1, torch.nan]), ValueError, "'edge_weight' needs to hold finite"),
            ("12", TypeError, r"'edge_weight' needs to be a tensor, .* \(got str\)"),
            (torch.ones(2, device="meta"), ValueError, "'edge_weight' needs to be on the device"),
        ],
    )
    def test_wrong_weights_of_edges_are_named(self, weight, error, message):
        edge_index = torch.tensor([[0, 2], [2, 0]])
        with pytest.raises(error, match=message):
            rank(LightGCN(5, 4, 1), self.task, edge_index=edge_index, edge_weight=weight)

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (torch.tensor([[2, 1], [3, 4]]), "got 1 ids outside"),
            (torch.tensor([[2, 5], [3, -2]]), "got 2 ids outside"),
            (torch.tensor([[2, 3]]), r"shape \[2, k\] with k > 0 \(got \[1, 2\]\)"),
            (torch.rand(2, 2), "integers"),
        ],
    )
    def test_wrong_answers_are_named(self, answer, message):
        class Model(torch.nn.Module):
            def recommend(self, edge_index, edge_weight=None, **options):
                return answer

        with pytest.raises(ValueError, match=message):
            rank(Model(), self.task, edge_index=torch.empty(2, 0).long())

    def test_lists_that_are_too_short_are_warned_about(self):
        with pytest.warns(UserWarning, match="holds lists of 1 items, but 3 are needed"):
            rank(torch.tensor([[0], [2]]), self.task, k=20)
