"""Trains LightGCN with the BPR loss, and compares it with two simple baselines.

    python examples/lightgcn.py                           # synthetic data, no download
    python examples/lightgcn.py --data FOLDER             # train.txt and test.txt in FOLDER
    python examples/lightgcn.py --dataset MovieLens100K   # downloaded by PyG

The baselines are the most popular items, and a filter of the graph that nothing trains. The data
has no validation part, so the number shown during training is that of the test. It decides nothing.
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.datasets import AmazonBook, MovieLens100K
from torch_geometric.nn import LightGCN
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import degree
from tqdm import tqdm

from pyg_recmetrics import Benchmark, EvaluationResult, Evaluator, RankingTask, datasets

METRICS = ["r_precision", "recall@20", "ndcg@20"]
BASELINES = ["Most popular", "Linear filter"]
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


def linear_filter(task: RankingTask) -> Callable[[Tensor], Tensor]:
    """Scores items by the paths of three edges that lead to them, each divided by degrees.

    Source: Shen et al., "How powerful is graph convolution for recommendation?" (2021).
    """
    user, item = task.seen
    product = degree(user, task.num_users)[user] * degree(item, task.num_items)[item]
    size = (task.num_users, task.num_items)
    graph = torch.sparse_coo_tensor(task.seen, product.rsqrt(), size, check_invariants=True)

    def scores(users: Tensor) -> Tensor:
        has_seen = graph.index_select(0, users).to_dense().sign()
        return (graph.t() @ (graph @ has_seen.t())).t()

    return scores


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
        "Linear filter": linear_filter(task),
    }
    results = {name: evaluator(recommender) for name, recommender in recommenders.items()}
    print(f"\n{args.data or args.dataset or 'Synthetic data'}: {task.num_items:,} items")
    print(Benchmark(results, proposed="LightGCN", deterministic=BASELINES))
    return results


if __name__ == "__main__":
    main()
