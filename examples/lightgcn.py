"""Trains LightGCN with the BPR loss, and compares it with two simple baselines.

    python examples/lightgcn.py                           # synthetic data, no download
    python examples/lightgcn.py --data FOLDER             # train.txt and test.txt in FOLDER
    python examples/lightgcn.py --dataset MovieLens100K   # downloaded by PyG

The baselines recommend random items and the most popular items. The data has no validation part,
so the number shown during training is that of the test. It decides nothing.
"""

import argparse

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.datasets import AmazonBook, MovieLens100K
from torch_geometric.nn import LightGCN
from torch_geometric.transforms import RandomLinkSplit
from tqdm import tqdm

from pyg_recmetrics import Benchmark, EvaluationResult, Evaluator, RankingTask, compare, datasets

METRICS = ["r_precision", "recall@20", "ndcg@20"]
BASELINES = ["Most popular", "Random"]
BATCH_SIZE = 8192  # edges


def load(args: argparse.Namespace) -> HeteroData:
    """Returns data with the training edges as `edge_index` and the test as `edge_label_index`."""
    if args.data is not None:
        return datasets.read_lightgcn(args.data)
    if args.dataset == "MovieLens100K":
        return MovieLens100K("data/MovieLens100K")[0]
    if args.dataset == "AmazonBook":
        return AmazonBook("data/AmazonBook")[0]
    data = datasets.synthetic_interactions(num_users=1000, num_items=500, seed=args.seed)
    split = RandomLinkSplit(
        num_val=0.0,
        num_test=0.2,
        edge_types=("user", "rates", "item"),
        neg_sampling_ratio=0.0,
    )
    _, _, test = split(data)
    return test


def train(model: LightGCN, optimizer: torch.optim.Optimizer, task: RankingTask) -> None:
    """Trains for one epoch. Each training edge competes with an item drawn at random."""
    for edges in task.seen[:, torch.randperm(task.seen.size(1))].split(BATCH_SIZE, dim=1):
        user, item = edges
        other = torch.randint_like(item, task.num_items)
        pairs = torch.stack([user.repeat(2), torch.cat([item, other]) + task.num_users])
        liked, drawn = model(task.edge_index, pairs).chunk(2)
        loss = model.recommendation_loss(liked, drawn, node_id=pairs.unique())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def most_popular(task: RankingTask) -> Tensor:
    return torch.bincount(task.seen[1], minlength=task.num_items).float()


def at_random(task: RankingTask) -> tuple[Tensor, Tensor]:
    user = torch.randn(task.num_users, 64, device=task.device)
    return user, torch.randn(task.num_items, 64, device=task.device)


def main() -> dict[str, EvaluationResult]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", metavar="FOLDER", help="holds train.txt and test.txt")
    source.add_argument("--dataset", choices=["MovieLens100K", "AmazonBook"])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    task = RankingTask.from_data(load(args)).to(args.device)
    evaluator = Evaluator(task, METRICS)
    model = LightGCN(task.num_users + task.num_items, embedding_dim=64, num_layers=3)
    torch.nn.init.normal_(model.embedding.weight, std=0.1)
    model = model.to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    with tqdm(range(1, args.epochs + 1), desc="Training", unit=" epochs") as bar:
        for epoch in bar:
            train(model, optimizer, task)
            # These data sets have no validation part. Nothing is chosen by what the bar shows.
            if epoch % 5 == 0 or epoch == args.epochs:
                bar.set_postfix({"test recall@20": f"{evaluator(model)['recall@20']:.4f}"})

    recommenders = {
        "LightGCN": model,
        "Most popular": most_popular(task),
        "Random": at_random(task),
    }
    results = {name: evaluator(recommender) for name, recommender in recommenders.items()}
    print(f"\n{args.data or args.dataset or 'Synthetic data'}: {task.num_items:,} items")
    print(Benchmark(results, proposed="LightGCN", deterministic=BASELINES))
    print("\n".join(compare(results, "ndcg@20", deterministic=BASELINES).claims()))
    return results


if __name__ == "__main__":
    main()
