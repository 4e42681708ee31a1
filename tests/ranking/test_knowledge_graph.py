"""Knowledge graph models of PyG: ranks are those of a loop over triples in double precision."""

import copy
import math
import types

import pytest
import torch
from torch_geometric.nn.kge import ComplEx, DistMult, KGEModel, RotatE, TransE

from pyg_recmetrics import RankingTask, evaluate, rank
from pyg_recmetrics.ranked_edges import positions
from pyg_recmetrics.ranking import knowledge_graph
from pyg_recmetrics.ranking.adapt import as_recommender
from tests.support.tools.largest_tensor import LargestTensor

NUM_ENTITIES, NUM_RELATIONS = 40, 5

#: Every model of PyG, with the recommender that it becomes.
MODELS = {
    "DistMult": (DistMult, {}, "InnerProductRecommender", "the embeddings of DistMult"),
    "ComplEx": (ComplEx, {}, "InnerProductRecommender", "the embeddings of ComplEx"),
    "RotatE": (RotatE, {}, "InnerProductRecommender", "the embeddings of RotatE"),
    "TransE, L2": (TransE, {"p_norm": 2.0}, "InnerProductRecommender", "the embeddings of TransE"),
    "TransE, L1": (TransE, {}, "FunctionRecommender", "the distances of TransE"),
    "TransE, L3": (TransE, {"p_norm": 3.0}, "PairRecommender", "the scores of TransE"),
}
every_model = pytest.mark.parametrize("name", MODELS)


class Damped(DistMult):
    """A model with a score of its own."""

    def forward(self, head_index, rel_type, tail_index):
        return super().forward(head_index, rel_type, tail_index) - 0.01 * tail_index


class Bilinear(KGEModel):
    """A model that is none of PyG's, and drops out while it is trained."""

    def __init__(self):
        super().__init__(NUM_ENTITIES, NUM_RELATIONS, 4)
        self.matrix = torch.nn.Parameter(torch.randn(NUM_RELATIONS, 4, 4))

    def forward(self, head_index, rel_type, tail_index):
        head, tail = self.node_emb(head_index), self.node_emb(tail_index)
        head = torch.nn.functional.dropout(head, training=self.training)
        return torch.einsum("nd,nde,ne->n", head, self.matrix[rel_type], tail)


def make(name, dim=8, seed=1):
    kind, options, *_ = MODELS[name]
    torch.manual_seed(seed)
    return kind(NUM_ENTITIES, NUM_RELATIONS, dim, **options)


def triples(num, seed):
    generator = torch.Generator().manual_seed(seed)
    draw = torch.rand(3, num, generator=generator)
    sizes = torch.tensor([[NUM_ENTITIES], [NUM_RELATIONS], [NUM_ENTITIES]])
    return (draw.square() * sizes).long()


TEST, KNOWN = triples(60, seed=5), triples(200, seed=6)


def make_task(test=TEST, known=KNOWN, **options):
    options = {"num_entities": NUM_ENTITIES, "num_relations": NUM_RELATIONS, **options}
    return RankingTask.from_triples(test, known, **options)


def ranks_of_a_loop(model, task):
    """The filtered rank of every truth edge, from scores in double precision."""
    model = copy.deepcopy(model).double().eval()
    entities, found = torch.arange(NUM_ENTITIES), {}
    known = {*zip(*task.seen.tolist(), strict=True), *zip(*task.truth.tolist(), strict=True)}
    for user, item in task.truth.t().tolist():
        entity, relation = task.query[user]
        given, of_all = (x.expand(NUM_ENTITIES) for x in (entity, relation % NUM_RELATIONS))
        is_head = relation >= NUM_RELATIONS
        with torch.no_grad():
            scores = model(entities, of_all, given) if is_head else model(given, of_all, entities)
        scores = scores.tolist()
        others = [e for e in range(NUM_ENTITIES) if (user, e) not in known]
        above = sum(scores[e] > scores[item] for e in others)
        tied = sum(scores[e] == scores[item] for e in others)
        found[user, item] = 1 + above + tied / 2
    return found


def ranks(ranked):
    """The filtered rank of every truth edge: without the other truth of its query."""
    edges = zip(*ranked.edge_label_index.tolist(), strict=True)
    return dict(zip(edges, (ranked.rank - positions(ranked) + 1).tolist(), strict=True))


class TestRanks:
    @every_model
    @pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.float, torch.double])
    def test_those_of_a_loop_in_double_precision(self, name, dtype):
        if name == "TransE, L3" and dtype.itemsize == 2:
            pytest.skip("is asked for its own scores, which it rounds to few bits")
        model, task = make(name).to(dtype), make_task()
        ranked = rank(model, task, full=True, ties="mean", batch_size=7)
        assert ranks(ranked) == ranks_of_a_loop(model, task)
        assert ranked.origin.ranked_by == MODELS[name][3]
        assert type(as_recommender(model, task)).__name__ == MODELS[name][2]

    @every_model
    def test_embeddings_that_tie(self, name):
        model, task = make(name, dim=2), make_task()
        if name == "RotatE":
            model.rel_emb.weight.data.zero_()
        for parameter in model.parameters():
            parameter.data = parameter.sign()
        ranked = rank(model, task, full=True, ties="mean")
        if name in ("DistMult", "ComplEx"):  # the others have roots, which a loop rounds
            assert ranks(ranked) == ranks_of_a_loop(model, task)
        entities = model.node_emb.weight, getattr(model, "node_emb_im", model.node_emb).weight
        _, kind = torch.cat(entities, dim=1).unique(dim=0, return_inverse=True)
        allowed = torch.ones(task.num_users, NUM_ENTITIES, dtype=torch.bool)
        allowed[tuple(task.seen)] = False
        user, item = ranked.edge_label_index
        same = (allowed[user] & (kind == kind[item][:, None])).sum(dim=1) - 1
        assert bool((ranked.num_tied >= same).all())
        assert int(same.sum()) > 0

    @every_model
    def test_any_device(self, name, device):
        model, task = make(name), make_task()
        expected = rank(model, task, full=True, ties="mean").rank
        moved = torch.optim.swa_utils.AveragedModel(model).to(device)
        ranked = rank(moved, task.to(device), full=True, ties="mean")
        assert ranked.rank.device.type == device.type
        assert ranked.rank.tolist() == expected.tolist()


class TestOthers:
    def test_a_score_of_its_own(self):
        task = make_task()
        for model in (Damped(NUM_ENTITIES, NUM_RELATIONS, 8), Bilinear()):
            ranked = rank(model.train(), task, full=True, ties="mean")
            assert ranks(ranked) == ranks_of_a_loop(model, task)
            assert ranked.origin.ranked_by == f"the scores of {type(model).__name__}"
            assert model.training

    def test_a_model_with_recommend_is_asked_by_it(self):
        class Recommends(DistMult):
            def recommend(self, users, k):
                return torch.arange(k).expand(len(users), -1)

        ranked = rank(Recommends(NUM_ENTITIES, NUM_RELATIONS, 8), make_task(), full=True)
        assert ranked.origin.ranked_by == "recommend(users, k) of Recommends"

    @staticmethod
    def other_forward_of_a_table(model):
        def forward(self, index):
            return self.weight[self.num_embeddings - 1 - index]

        model.node_emb.forward = types.MethodType(forward, model.node_emb)

    @staticmethod
    def hook(model):
        model.register_forward_hook(lambda module, given, score: -score)

    @staticmethod
    def max_norm(model):
        table = torch.nn.Embedding(NUM_ENTITIES, 8, max_norm=0.1)
        table.weight.data.copy_(model.node_emb.weight.detach())
        model.node_emb = table

    @staticmethod
    def other_table(model):
        model.rel_emb = torch.nn.Sequential(model.rel_emb, torch.nn.Tanh())

    @pytest.mark.parametrize(
        "change", ["other_forward_of_a_table", "hook", "max_norm", "other_table"]
    )
    @every_model
    def test_a_model_that_was_changed_is_asked_for_its_scores(self, name, change):
        model, task = make(name), make_task()
        getattr(self, change)(model)
        model.double()  # as a score of few bits may tie where the loop has none
        ranked = rank(model, task, full=True, ties="mean")
        assert ranked.origin.ranked_by == f"the scores of {type(model).__name__}"
        assert ranks(ranked) == ranks_of_a_loop(model, task)

    def test_a_parametrization_is_what_it_computes(self):
        model, task = make("DistMult"), make_task()
        torch.nn.utils.parametrize.register_parametrization(model.rel_emb, "weight", Doubled())
        assert ranks(rank(model, task, full=True)) == ranks_of_a_loop(model, task)


class Doubled(torch.nn.Module):
    def forward(self, weight):
        return torch.cat([weight[1:], 2 * weight[:1]])


class TestMemory:
    def test_vectors_of_queries_are_made_chunk_by_chunk(self):
        model, task = make("ComplEx", dim=50), make_task(triples(200, seed=5))
        with LargestTensor() as largest:
            rank(model, task, full=True, batch_size=1, algorithm="dense")
        assert largest.numel < task.num_users * 100 / 2

    def test_other_models_are_asked_for_a_few_pairs_at_once(self, monkeypatch):
        monkeypatch.setattr(knowledge_graph, "_NUM_NUMBERS", 400)
        sizes = []

        class Recorded(Damped):
            def forward(self, head_index, rel_type, tail_index):
                sizes.append(head_index.numel())
                return super().forward(head_index, rel_type, tail_index)

        model, task = Recorded(NUM_ENTITIES, NUM_RELATIONS, 8), make_task()
        found = ranks(rank(model, task, full=True, ties="mean"))
        assert max(sizes) == 50
        assert sum(sizes) == int(task.num_candidates.sum())
        assert found == ranks_of_a_loop(model, task)


class TestWrong:
    @pytest.mark.parametrize(
        ("task", "message"),
        [
            (RankingTask([[0], [1]], num_users=1, num_items=NUM_ENTITIES), r"a task of users\)"),
            (
                RankingTask.from_queries(torch.tensor([[0, 1]]), [2], num_items=NUM_ENTITIES),
                r"a task of other queries\)",
            ),
            (make_task(num_entities=NUM_ENTITIES + 1), r"\(got 41 entities and 5 relations\)"),
            (make_task(num_relations=NUM_RELATIONS + 1), r"\(got 40 entities and 6 relations\)"),
        ],
    )
    @pytest.mark.parametrize("model", [make("DistMult"), Bilinear()])
    def test_the_line_to_write_is_told(self, model, task, message):
        line = (
            r"'data' needs .* write RankingTask.from_triples\(test, \[train, valid\], "
            r"num_entities=40, num_relations=5\)"
        )
        with pytest.raises(ValueError, match=line) as caught:
            evaluate(model, task)
        assert caught.match(message)

    def test_entities_outside(self):
        task = make_task()._with(query=make_task().query + NUM_ENTITIES)
        with pytest.raises(ValueError, match=r"'data' needs to hold entity ids in \[0, 40\)"):
            rank(make("DistMult"), task)

    @every_model
    def test_weights_that_are_no_numbers(self, name):
        model = make(name)
        model.rel_emb.weight.data[0, 0] = math.nan
        with pytest.raises(ValueError, match=r"'recommender' needs to hold finite numbers"):
            rank(model, make_task())

    def test_a_model_on_another_device(self):
        with pytest.raises(ValueError, match=r"'recommender' .* device of 'task', cpu \(got meta"):
            rank(make("DistMult").to("meta"), make_task())

    def test_what_has_no_embeddings_cannot_be_counted(self):
        with pytest.raises(ValueError, match="'algorithm' needs to be 'auto' or 'dense'"):
            rank(Bilinear(), make_task(), algorithm="count", full=True)
