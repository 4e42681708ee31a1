"""Trains PyG's ComplEx on a knowledge graph, and evaluates it in the filtered setting.

    python examples/knowledge_graph.py

Each triple is ranked for its tail and for its head, without the other answers that are known.
"""

import argparse
from typing import cast

import torch
from torch import Tensor
from torch_geometric.nn import ComplEx
from tqdm import tqdm

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate

NUM_ENTITIES, NUM_RELATIONS, NUM_KINDS = 500, 8, 20
METRICS = ("mrr", "hit_rate@1", "hit_rate@10", "amri")


def draw_triples(num_triples: int = 12_000) -> Tensor:
    """Draws triples `(head, relation, tail)` of shape `[3, num_triples]`, each of them once.

    Every entity is of a kind. A relation leads from each kind to one kind. Half of the relations
    lead everywhere at times. Some entities have more triples than others.
    """
    kind = torch.randint(NUM_KINDS, (NUM_ENTITIES,))
    leads_to = torch.stack([torch.randperm(NUM_KINDS) for _ in range(NUM_RELATIONS)])
    frequency = torch.rand(NUM_ENTITIES) ** 2 + 0.05
    head = frequency.multinomial(2 * num_triples, replacement=True)
    relation = torch.randint(NUM_RELATIONS, head.shape)
    is_of_kind = kind == leads_to[relation, kind[head]].unsqueeze(1)
    anywhere = (torch.rand(head.shape) < 0.2) & (relation >= NUM_RELATIONS // 2)
    tail = ((is_of_kind | anywhere.unsqueeze(1)) * frequency + 1e-9).multinomial(1).squeeze(1)
    triples: Tensor = torch.stack([head, relation, tail]).unique(dim=1)
    return triples[:, torch.randperm(triples.size(1))[:num_triples]]


def train(model: ComplEx, triples: Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = model.loader(*triples, batch_size=1000, shuffle=True)
    for _ in tqdm(range(epochs), desc="Training", unit=" epochs"):
        for head, relation, tail in loader:
            optimizer.zero_grad()
            model.loss(head, relation, tail).backward()
            optimizer.step()


def main() -> tuple[ComplEx, tuple[Tensor, ...], EvaluationResult]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    triples = draw_triples()
    parts = triples.split([10_000, 1000, triples.size(1) - 11_000], dim=1)
    training, validation, test = parts
    model = ComplEx(NUM_ENTITIES, NUM_RELATIONS, hidden_channels=32)
    train(model, training, args.epochs)

    task = RankingTask.from_triples(
        test,
        known=[training, validation],
        num_entities=NUM_ENTITIES,
        num_relations=NUM_RELATIONS,
    )
    result = evaluate(model, task, METRICS, convention="pykeen")
    print(f"\n{result}")
    # The query of each row: an entity, and a relation to which their number is added for heads.
    query = cast(Tensor, task.query)
    relation = query[task.truth[0], 1]
    asked_for = ["tail" if r < NUM_RELATIONS else "head" for r in relation.tolist()]
    print(f"\nBy relation\n{result.by(relation % NUM_RELATIONS)}")
    print(f"\nBy what is asked for\n{result.by(asked_for)}")
    return model, parts, result


if __name__ == "__main__":
    main()
