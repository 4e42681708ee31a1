"""A model is found behind whatever is passed, with each of the forms that `recommend` may have."""

import functools

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import LightGCN

from pyg_recmetrics import RankingTask, evaluate, rank
from pyg_recmetrics.ranking.found_model import find_model

NO_EDGES = torch.empty(2, 0, dtype=torch.long)
SCORES = torch.tensor([[4.0, 3.0, 2.0, 1.0, 0.0], [0.0, 3.0, 1.0, 2.0, 4.0]])
TASK = RankingTask(torch.tensor([[0, 0, 1], [0, 3, 4]]), num_users=2, num_items=5)
EDGES = torch.tensor([[0, 1, 2, 3], [2, 3, 0, 1]])
WEIGHT = torch.tensor([0.5, 2.0, 0.5, 2.0])

#: What every model is asked by name.
ASKED = ("src_index", "dst_index", "k")


def best(src_index, dst_index, k):
    order = SCORES[src_index][:, dst_index - 2].argsort(dim=1, descending=True)
    return dst_index[order[:, :k]]


class TestFound:
    def test_a_lightgcn(self):
        model = LightGCN(7, embedding_dim=4, num_layers=1)
        for value in (model, model.recommend, torch.nn.DataParallel(model)):
            found = find_model(value)
            assert found.recommend == model.recommend
            assert found.bound_object is found.lightgcn is model
            assert str(found.form) == "recommend(edge_index, src_index, dst_index, k)"
            assert (found.form.takes_weight, found.form.needs_weight) == (True, False)
            assert found.name == "LightGCN"

    def test_a_lightgcn_whose_recommend_was_replaced(self):
        class Replaced(LightGCN):
            def recommend(self, *, edge_index, edge_weight, src_index, dst_index, k):
                return dst_index

        found = find_model(Replaced(7, embedding_dim=4, num_layers=1))
        assert found.lightgcn is None
        assert (found.takes_edges, found.form.takes_weight, found.form.needs_weight) == (True,) * 3

    def test_a_function(self):
        def recommend(src_index, dst_index, k):
            return dst_index

        found = find_model(functools.partial(recommend, k=3))
        assert found.bound_object is recommend
        assert (found.name, found.takes_edges, found.lightgcn) == ("recommend", False, None)

    @pytest.mark.parametrize("value", [SCORES, (SCORES, SCORES), LightGCN, print, "model", None])
    def test_nothing_else(self, value):
        assert find_model(value) is None

    def test_without_a_signature_it_is_asked_as_that_of_pyg(self):
        class Compiled:
            __signature__ = "hidden"

            def __call__(self, edge_index, src_index, dst_index, k):
                assert torch.equal(edge_index, EDGES)
                return best(src_index, dst_index, k)

        ranked = rank(Passing(Compiled()), TASK, k=2, edge_index=EDGES)
        assert torch.equal(ranked.rank, rank(SCORES, TASK, k=2).rank)


class TestForms:
    """Whatever `recommend` looks like, it is given the same, and its ranks are those of scores."""

    def given_to(self, make, edge_weight=None):
        """What a `recommend` got besides users and items, and whether its ranks are right."""
        got = []

        def record(src_index, dst_index, k, *edges):
            got.append(edges)
            return best(src_index, dst_index, k)

        options = {"edge_index": EDGES, "edge_weight": edge_weight}
        ranked = rank(make(record), TASK, k=2, batch_size=2, **options)
        assert torch.equal(ranked.rank, rank(SCORES, TASK, k=2).rank)
        (edges,) = got
        return edges

    def test_as_pyg_does(self):
        def make(record):
            def recommend(edge_index, edge_weight=None, src_index=None, dst_index=None, k=1):
                return record(src_index, dst_index, k, edge_index, edge_weight)

            return recommend

        edges, weight = self.given_to(make)
        assert torch.equal(edges, EDGES)
        assert weight is None
        assert self.given_to(make, WEIGHT)[1] is WEIGHT

    def test_without_a_place_for_weights(self):
        def make(record):
            def recommend(edge_index, src_index=None, dst_index=None, k=20):
                return record(src_index, dst_index, k, edge_index)

            return recommend

        assert torch.equal(self.given_to(make)[0], EDGES)
        message = (
            r"'recommender.recommend\(\)' needs to take 'edge_weight', as the edges have weights "
            r"\(got recommend\(edge_index, src_index, dst_index, k\)\)"
        )
        with pytest.raises(ValueError, match=message):
            self.given_to(make, WEIGHT)

    def test_weights_of_data_are_not_left_out_either(self):
        data = Data(edge_index=EDGES, edge_weight=WEIGHT, num_nodes=4)
        data.edge_label_index = torch.tensor([[0, 1], [3, 2]])

        def recommend(edge_index, src_index, dst_index, k):
            return dst_index[:k].expand(len(src_index), -1)

        with pytest.raises(ValueError, match="needs to take 'edge_weight'"):
            evaluate(recommend, data, ["recall@1"], num_users=2)
        evaluate(recommend, data, ["recall@1"], num_users=2, edge_index=EDGES)

    def test_with_weights_that_have_no_default(self):
        def make(record):
            def recommend(edge_index, edge_weight, src_index, dst_index, k):
                return record(src_index, dst_index, k, edge_index, edge_weight)

            return recommend

        assert self.given_to(make)[1] is None
        assert self.given_to(make, WEIGHT)[1] is WEIGHT

    def test_with_edges_of_another_name(self):
        def make(record):
            def recommend(adj_t, /, *, src_index, dst_index, k, edge_weight=None, sorted=True):
                return record(src_index, dst_index, k, adj_t, edge_weight)

            return recommend

        assert torch.equal(self.given_to(make)[0], EDGES)
        assert self.given_to(make, WEIGHT)[1] is WEIGHT

    def test_with_edges_by_name_only(self):
        def make(record):
            def recommend(*, src_index, dst_index, k, edge_index):
                return record(src_index, dst_index, k, edge_index)

            return recommend

        assert torch.equal(self.given_to(make)[0], EDGES)

    def test_with_arguments_that_are_passed_on(self):
        def make(record):
            def recommend(*args, **options):
                weight = options.pop("edge_weight", None)
                return record(*(options[name] for name in ASKED), *args, weight)

            return Passing(recommend)

        edges, weight = self.given_to(make)
        assert torch.equal(edges, EDGES)
        assert weight is None
        assert self.given_to(make, WEIGHT)[1] is WEIGHT

    def test_with_named_arguments_that_are_passed_on(self):
        def make(record):
            def recommend(edge_index, **options):
                weight = options.pop("edge_weight", None)
                return record(*(options[name] for name in ASKED), edge_index, weight)

            return recommend

        assert self.given_to(make)[1] is None
        assert self.given_to(make, WEIGHT)[1] is WEIGHT

    def test_without_edges(self):
        def recommend(src_index, dst_index, k):
            return best(src_index, dst_index, k)

        for options in ({}, {"edge_index": EDGES, "edge_weight": WEIGHT}):
            ranked = rank(recommend, TASK, k=2, **options)
            assert torch.equal(ranked.rank, rank(SCORES, TASK, k=2).rank)

    def test_with_edges_that_were_given_before(self):
        def recommend(edge_index, src_index, dst_index, k):
            assert edge_index == "mine"
            return best(src_index, dst_index, k)

        for mine in (
            functools.partial(recommend, "mine"),
            functools.partial(recommend, edge_index="mine"),
        ):
            ranked = rank(mine, TASK, k=2, edge_index=EDGES)
            assert torch.equal(ranked.rank, rank(SCORES, TASK, k=2).rank)


class Passing:
    """An object whose `recommend` is a function of its own."""

    def __init__(self, recommend):
        self.recommend = recommend


class TestWhoIsAsked:
    def test_an_instance_may_have_a_recommend_of_its_own(self):
        model = LightGCN(7, embedding_dim=4, num_layers=1)
        model.recommend = lambda edge_index, src_index, dst_index, k: best(src_index, dst_index, k)
        ranked = rank(model, TASK, k=2, edge_index=EDGES)
        assert torch.equal(ranked.rank, rank(SCORES, TASK, k=2).rank)

    def test_the_recommend_of_another_lightgcn_is_that_of_the_other(self):
        model, other = (LightGCN(7, embedding_dim=4, num_layers=1) for _ in range(2))
        model.recommend = other.recommend
        ranked = rank(model, TASK, full=True, edge_index=EDGES)
        assert torch.equal(ranked.rank, rank(other, TASK, full=True, edge_index=EDGES).rank)
        assert not torch.equal(
            ranked.rank, rank((-SCORES, torch.eye(5)), TASK, full=True, edge_index=EDGES).rank
        )

    @pytest.mark.parametrize("algorithm", ["auto", "recommend"])
    def test_a_method_is_asked_like_its_model(self, algorithm):
        model = LightGCN(7, embedding_dim=4, num_layers=1).train()
        wanted = rank(model, TASK, full=True, edge_index=EDGES)
        for method in (model.recommend, functools.partial(model.recommend, sorted=True)):
            ranked = rank(method, TASK, full=True, edge_index=EDGES, algorithm=algorithm)
            assert torch.equal(ranked.rank, wanted.rank)
        assert model.training

    def test_other_methods_are_functions_of_users(self):
        class Model(torch.nn.Module):
            def scores(self, users):
                assert not self.training
                return SCORES[users]

            def recommend(self, users):
                return SCORES[users]

        model = Model()
        wanted = rank(SCORES, TASK, k=2).rank
        for function in (model.scores, model.recommend):
            assert torch.equal(rank(function, TASK, k=2).rank, wanted)

    def test_wrappers_of_pytorch_are_looked_through(self):
        model = LightGCN(7, embedding_dim=4, num_layers=1)
        wanted = rank(model, TASK, full=True, edge_index=EDGES).rank
        compiled = torch.compile(model)
        for wrapped in (
            compiled,
            torch.compile(torch.nn.DataParallel(model)),
            torch.nn.DataParallel(compiled),
            torch.optim.swa_utils.AveragedModel(model),
        ):
            wrapped.train()
            for algorithm in ("auto", "recommend"):
                options = {"full": True, "edge_index": EDGES, "algorithm": algorithm}
                assert torch.equal(rank(wrapped, TASK, **options).rank, wanted)
            assert all(module.training for module in wrapped.modules())

    def test_a_class_is_no_model(self):
        with pytest.raises(TypeError, match=r"\(got the class LightGCN\)"):
            rank(LightGCN, TASK, edge_index=EDGES)

    def test_a_model_without_recommend_inside_of_a_wrapper_is_named(self):
        with pytest.raises(TypeError, match="got DataParallel without a method 'recommend'"):
            rank(torch.nn.DataParallel(torch.nn.Linear(1, 1)), TASK, edge_index=EDGES)

    @pytest.mark.parametrize("embedding", [torch.rand(6, 4), torch.rand(7), torch.rand(7, 4) / 0])
    def test_a_lightgcn_with_other_embeddings_is_named(self, embedding):
        class Other(LightGCN):
            def get_embedding(self, edge_index, edge_weight=None):
                return embedding

        with pytest.raises(ValueError, match="'recommender"):
            rank(Other(7, 4, 1), TASK, edge_index=EDGES)
