"""Compares three recommenders on one task, with intervals, tests, cohorts and pictures.

    python examples/report.py                    # synthetic data, no download
    python examples/report.py --data FOLDER      # train.txt and test.txt in FOLDER

None of the recommenders is trained. A graph filter scores items by paths of three edges in the
normalised graph of training edges. The other two recommend the most popular items and random items.
"""

import argparse
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch_geometric.transforms import RandomLinkSplit

from pyg_recmetrics import Comparison, Evaluator, RankingTask, compare, datasets, plot


def load(folder: Path | None) -> RankingTask:
    if folder is not None:
        return RankingTask.from_data(datasets.read_lightgcn(folder))
    data = datasets.synthetic_interactions(num_users=1000, num_items=500)
    split = RandomLinkSplit(
        num_val=0.0, num_test=0.2, edge_types=("user", "rates", "item"), neg_sampling_ratio=0.0
    )
    return RankingTask.from_data(split(data)[2])


def graph_filter(task: RankingTask) -> tuple[Tensor, Tensor]:
    """Returns embeddings whose inner products sum the weights of all paths of three edges."""
    adjacency = torch.zeros(task.num_users, task.num_items)
    adjacency[tuple(task.seen)] = 1.0
    user_degree, item_degree = (adjacency.sum(dim, keepdim=True).clamp(min=1) for dim in (1, 0))
    adjacency /= (user_degree * item_degree).sqrt()
    return adjacency, adjacency.t() @ adjacency


def main() -> Comparison:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="holds train.txt and test.txt")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where to save the picture")
    args = parser.parse_args()
    torch.manual_seed(0)

    task = load(args.data)
    evaluator = Evaluator(task, ["r_precision", "recall@20", "ndcg@20"], keep_items=True)
    recommenders: dict[str, Tensor | tuple[Tensor, Tensor]] = {
        "Graph filter": graph_filter(task),
        "Most popular": torch.bincount(task.seen[1], minlength=task.num_items).float(),
        "Random": (torch.randn(task.num_users, 64), torch.randn(task.num_items, 64)),
    }
    results = {name: evaluator(recommender) for name, recommender in recommenders.items()}
    comparison = compare(results, baseline="Most popular")
    best = results["Graph filter"]
    for table in (best, comparison, best.by_degree(), best.recall_by_popularity()):
        print(f"{table}\n")

    if args.picture is not None:
        figure = Figure(figsize=(12, 3.4), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        plot.metric_at_k(results, "ndcg", ax=left)
        plot.metric_by_degree(results, "recall@20", ax=middle)
        plot.long_tail(results, ax=right)
        figure.savefig(args.picture, dpi=150)
    return comparison


if __name__ == "__main__":
    main()
