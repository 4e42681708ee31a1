r"""Knowledge graph embeddings of PyG, which score triples, as recommenders of entities.

A query of a task that :meth:`RankingTask.from_triples` makes is an entity and a relation. It asks
for tails, or for heads if the number of relations is added to the relation. Where the score of a
model is an inner product of a vector of the query and one of each entity, or ranks as one does,
only these vectors are computed, in double precision:

========  ===============  ================  =========  ============================
model     query for tails  query for heads   entities   bias of an entity
========  ===============  ================  =========  ============================
DistMult  :math:`h r`      :math:`t r`       :math:`e`  none
ComplEx   :math:`h r`      :math:`t \bar r`  :math:`e`  none
RotatE    :math:`h r`      :math:`t \bar r`  :math:`e`  :math:`-\frac{1}{2} \|e\|^2`
TransE    :math:`h + r`    :math:`t - r`     :math:`e`  :math:`-\frac{1}{2} \|e\|^2`
========  ===============  ================  =========  ============================

Complex vectors are their real and imaginary parts. The entities of TransE are normalised, and its
norm has to be the Euclidean one: by its norm of absolute values, it ranks by distances. All other
models are asked for the scores of pairs, as are subclasses and models that were changed.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.kge import ComplEx, DistMult, KGEModel, RotatE, TransE

from pyg_recmetrics.checks import check_device, check_finite, check_ids
from pyg_recmetrics.kernels.devices import at_once
from pyg_recmetrics.ranking.models import unwrapped
from pyg_recmetrics.ranking.recommenders import (
    EmbeddingRecommender,
    FunctionRecommender,
    PairRecommender,
    PairScorer,
    Recommender,
)
from pyg_recmetrics.task import RankingTask

#: How many numbers of the embeddings of pairs a model is asked for at once.
_NUM_NUMBERS = 2**20

#: What the classes compute, unless it was replaced.
_FORWARD = {kind: kind.forward for kind in (ComplEx, DistMult, RotatE, TransE)}


class TripleQuery(NamedTuple):
    """Entity and relation of some queries of a knowledge graph.

    Attributes:
        entity: The entity that is known.
        relation: The relation, whichever of its entities is asked for.
        is_head: Whether the head is asked for.
    """

    entity: Tensor
    relation: Tensor
    is_head: Tensor

    @classmethod
    def of(cls, query: Tensor, num_relations: int) -> "TripleQuery":
        """Reads rows of a task."""
        entity, relation = query.unbind(1)
        return cls(entity, relation % num_relations, relation >= num_relations)

    def turned(self, vectors: Tensor) -> Tensor:
        """Returns vectors of shape `[num_queries, dim]` with another sign where heads are asked."""
        return torch.where(self.is_head.unsqueeze(1), -vectors, vectors)


#: Inner products that rank entities as a model does: the vectors of all entities, of shape
#: `[num_entities, dim]`; their biases, if they have any; and a function that computes the vectors
#: of some queries, of shape `[num_queries, dim]`.
InnerProducts: TypeAlias = tuple[Tensor, Tensor | None, Callable[[TripleQuery], Tensor]]


class InnerProductRecommender(EmbeddingRecommender):
    """Scores by inner products with vectors of queries, which it computes for each chunk."""

    def __init__(self, products: InnerProducts, query: Tensor, num_relations: int) -> None:
        entities, bias, self.vectors_of = products
        super().__init__(query, entities, bias, device=query.device)
        self.num_relations = num_relations

    def vectors(self, users: Tensor) -> Tensor:
        return self.vectors_of(TripleQuery.of(self.user[users], self.num_relations))


def from_kge_model(value: object, task: RankingTask) -> Recommender:
    """Converts a model, maybe in a wrapper, to a recommender, and checks that it fits the task.

    Raises:
        ValueError: If the task does not consist of triples, or of other entities or relations, or
            the weights of the model are not finite or on another device.
    """
    model: KGEModel = unwrapped(value)
    query, name = _check_task(model, task), type(model).__name__
    for weight in model.parameters():
        check_device(weight, "recommender", task.device, "task")
        check_finite(weight.detach(), "recommender")
    recommender: Recommender
    kind = _formula_of(model)
    if (products := _inner_products(model, kind)) is not None:
        recommender = InnerProductRecommender(products, query, model.num_relations)
        recommender.in_words = f"the embeddings of {name}"
    elif kind is TransE and model.p_norm == 1:
        recommender = FunctionRecommender(_distances(model, query), task)
        recommender.in_words = f"the distances of {name}"
    else:
        pairs_at_once = at_once(_NUM_NUMBERS, task.device) // max(1, model.hidden_channels)
        scorer = PairScorer(_scores_of_pairs(model, query), max(1, pairs_at_once))
        recommender = PairRecommender(scorer, task)
        recommender.in_words = f"the scores of {name}"
    return recommender


def _check_task(model: KGEModel, task: RankingTask) -> Tensor:
    """Returns the queries of a task if a model can answer them."""
    name = type(model).__name__
    line = (
        f"RankingTask.from_triples(test, [train, valid], num_entities={model.num_nodes}, "
        f"num_relations={model.num_relations})"
    )
    if task.query is None or task.num_relations is None:
        raise ValueError(
            f"'data' needs to be a task of triples for {name}: write {line} "
            f"(got a task of {'users' if task.query is None else 'other queries'})"
        )
    found = (task.num_items, task.num_relations)
    if found != (model.num_nodes, model.num_relations):
        raise ValueError(
            f"'data' needs to have the entities and relations of {name}: write {line} "
            f"(got {found[0]} entities and {found[1]} relations)"
        )
    check_ids(task.query[:, 0], "data", "entity", model.num_nodes)
    return task.query


def _formula_of(model: KGEModel) -> type[KGEModel] | None:
    """Returns the class of PyG whose formula a model computes, from its tables as they are."""
    kind, tables = type(model), dict(model.named_children())
    for module in (model, *tables.values()):
        if "forward" in vars(module) or module._forward_hooks or module._forward_pre_hooks:
            return None
    num_rows = {"node": model.num_nodes, "rel": model.num_relations}
    is_as_written = kind.forward is _FORWARD.get(kind) and all(
        type(table) is torch.nn.Embedding
        and table.max_norm is None
        and table.weight.shape == (num_rows[name.partition("_")[0]], model.hidden_channels)
        for name, table in tables.items()
    )
    return kind if is_as_written else None


def _inner_products(model: KGEModel, kind: type[KGEModel] | None) -> InnerProducts | None:
    """Returns inner products that rank as a model does; `None` if there are none."""
    if kind is None or (kind is TransE and model.p_norm != 2):
        return None
    entities, relations = _table(model.node_emb), _table(model.rel_emb)
    if kind is DistMult:
        return (
            entities,
            None,
            lambda asked: entities[asked.entity].double() * relations[asked.relation],
        )
    if kind is TransE:
        entities = F.normalize(entities.double(), dim=1)
        return (
            entities,
            _bias(entities),
            lambda asked: entities[asked.entity] + asked.turned(relations[asked.relation]),
        )
    # Relations turn complex entities.
    imaginary = _table(model.node_emb_im)
    if kind is ComplEx:
        relations_im = _table(model.rel_emb_im)
    else:
        relations, relations_im = relations.double().cos(), relations.double().sin()

    def vectors(asked: TripleQuery) -> Tensor:
        x, y = entities[asked.entity].double(), imaginary[asked.entity].double()
        # The head is asked for by the conjugate of the relation.
        a, b = relations[asked.relation], asked.turned(relations_im[asked.relation])
        return torch.cat([x * a - y * b, y * a + x * b], dim=1)

    both = torch.cat([entities, imaginary], dim=1)
    return both, _bias(both) if kind is RotatE else None, vectors


def _distances(model: KGEModel, query: Tensor) -> Callable[[Tensor], Tensor]:
    """Returns a function from queries to their distances from all entities, with a minus."""
    dtype = torch.promote_types(model.node_emb.weight.dtype, torch.float32)
    entities = F.normalize(_table(model.node_emb).to(dtype), p=1.0, dim=1)
    relations = _table(model.rel_emb).to(dtype)

    def scores(users: Tensor) -> Tensor:
        asked = TripleQuery.of(query[users], model.num_relations)
        vectors = entities[asked.entity] + asked.turned(relations[asked.relation])
        return torch.cdist(vectors, entities, p=1.0).neg_()

    return scores


def _scores_of_pairs(model: KGEModel, query: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Returns a function from queries and entities to the scores of their triples."""

    def scores(users: Tensor, item: Tensor) -> Tensor:
        asked = TripleQuery.of(query[users], model.num_relations)
        head = torch.where(asked.is_head, item, asked.entity)
        tail = torch.where(asked.is_head, asked.entity, item)
        score: Tensor = model(head, asked.relation, tail)
        return score

    return scores


def _bias(entities: Tensor) -> Tensor:
    """Returns what makes inner products rank as distances do."""
    # The square of |q - e| is that of |q|, which all entities share, plus |e|^2 - 2qe.
    return entities.double().square().sum(dim=1).div_(-2)


def _table(embedding: torch.nn.Embedding) -> Tensor:
    return embedding.weight.detach()
