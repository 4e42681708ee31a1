"""Predicts links of a temporal graph: one positive against some negatives, and against all.

    python examples/temporal_links.py

The first is what TGB does. Links repeat, so the second leaves out none of the destinations.
"""

import argparse
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import softplus
from torch_geometric.data import TemporalData
from torch_geometric.loader import TemporalDataLoader
from tqdm import tqdm

from pyg_recmetrics import EvaluationResult, RankedEdges, RankingTask, evaluate

NUM_SOURCES, NUM_DESTINATIONS = 300, 200
METRICS = ("mrr", "hit_rate@10")


def draw_events(num_events: int = 12_000) -> TemporalData:
    """Draws who is linked to what, and when. Sources have tastes, and destinations popularity."""
    tastes, kinds = torch.randn(NUM_SOURCES, 4), torch.randn(NUM_DESTINATIONS, 4)
    popularity = -0.5 * torch.arange(1, NUM_DESTINATIONS + 1).log()
    src = torch.randint(NUM_SOURCES, (num_events,))
    dst = (tastes[src] @ kinds.t() + popularity).softmax(dim=1).multinomial(1).squeeze(1)
    t = torch.randint(1_000_000, (num_events,)).sort().values
    return TemporalData(src=src, dst=dst + NUM_SOURCES, t=t)


def train(embedding: torch.nn.Embedding, data: TemporalData, epochs: int) -> None:
    """Trains for links to score higher than negatives that PyG's loader draws."""
    optimizer = torch.optim.Adam(embedding.parameters(), lr=0.01)
    loader = TemporalDataLoader(data, batch_size=1000, neg_sampling_ratio=4.0)
    for _ in tqdm(range(epochs), desc="Training", unit=" epochs"):
        for batch in loader:
            source = embedding(batch.src).unsqueeze(1)
            linked = (source * embedding(batch.dst).unsqueeze(1)).sum(dim=2)
            drawn = (source * embedding(batch.neg_dst.view(-1, 4))).sum(dim=2)
            optimizer.zero_grad()
            softplus(drawn - linked).mean().backward()
            optimizer.step()


@torch.no_grad()
def against_negatives(embedding: torch.nn.Embedding, data: TemporalData) -> EvaluationResult:
    """Ranks each link among 99 negatives. A model with a memory would follow each batch."""
    positive, negative = [], []
    for batch in TemporalDataLoader(data, batch_size=200, neg_sampling_ratio=99.0):
        source, drawn = embedding(batch.src).unsqueeze(2), batch.neg_dst.view(-1, 99)
        positive.append((embedding(batch.dst).unsqueeze(1) @ source).flatten())
        score = (embedding(drawn) @ source).squeeze(2)
        # The link itself may be drawn, too. A score of `-inf` takes it out.
        negative.append(score.masked_fill(drawn == batch.dst.unsqueeze(1), -torch.inf))
    ranked = RankedEdges.from_negatives(torch.cat(positive), torch.cat(negative))
    return EvaluationResult(ranked.with_person(data.src), METRICS, convention="tgb")


@torch.no_grad()
def against_all(embedding: torch.nn.Embedding, data: TemporalData, start: int) -> EvaluationResult:
    """Ranks each link from a moment on among all destinations."""
    task = RankingTask.from_events(
        data.src,
        data.dst,
        data.t,
        data.t >= start,
        num_items=NUM_SOURCES + NUM_DESTINATIONS,
        candidates=data.dst.unique(),
        exclude_seen=False,  # as links repeat
    )
    source = cast(Tensor, task.query)[:, 0]
    weight = embedding.weight
    return evaluate((weight[source], weight), task, METRICS, per="edge", convention="tgb")


def main() -> tuple[torch.nn.Embedding, TemporalData, EvaluationResult, EvaluationResult]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = draw_events()
    training, _, test = data.train_val_test_split(val_ratio=0.1, test_ratio=0.1)
    embedding = torch.nn.Embedding(NUM_SOURCES + NUM_DESTINATIONS, 16)
    torch.nn.init.normal_(embedding.weight, std=0.1)
    train(embedding, training, args.epochs)

    some = against_negatives(embedding, test)
    print(f"\nAgainst 99 negatives\n{some}")
    every = against_all(embedding, data, start=int(test.t[0]))
    print(f"\nAgainst all destinations\n{every}")
    return embedding, data, some, every


if __name__ == "__main__":
    main()
