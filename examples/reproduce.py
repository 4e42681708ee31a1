"""Trains LightGCN with the settings of its authors, and prints our numbers beside theirs.

    python examples/reproduce.py --data FOLDER                          # trains for 1000 epochs
    python examples/reproduce.py --data FOLDER --embeddings FILE.npz    # with arrays `user`, `item`

FOLDER holds train.txt and test.txt, or graph.npz with the edges `train` and `test`. Its size says
what is published for it: in the paper (He et al., "LightGCN", SIGIR 2020, Table 3), and with the
code of the authors (https://github.com/gusye1234/LightGCN-PyTorch). The settings are those of the
code. Its metrics are those of our standard convention.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import LightGCN
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor, to_undirected
from tqdm import tqdm

from pyg_recmetrics import EvaluationResult, RankingTask, datasets, evaluate

METRICS = ["precision@20", "recall@20", "ndcg@20"]
BATCH_SIZE = 2048
DECAY = 1e-4

#: What is published for three layers, by the number of users, of items, and of all edges.
PUBLISHED = {
    (29_858, 40_981, 1_027_370): {  # Gowalla
        "paper": {"recall@20": 0.1823, "ndcg@20": 0.1555},
        "code": {"precision@20": 0.05589, "recall@20": 0.1824, "ndcg@20": 0.1547},
    },
    (31_668, 38_048, 1_561_406): {  # Yelp2018
        "paper": {"recall@20": 0.0639, "ndcg@20": 0.0525},
        "code": {"precision@20": 0.0285, "recall@20": 0.06347, "ndcg@20": 0.05238},
    },
    (52_643, 91_599, 2_984_108): {  # Amazon-Book
        "paper": {"recall@20": 0.0410, "ndcg@20": 0.0318},
    },
}


def load(folder: Path) -> RankingTask:
    if not (folder / "graph.npz").exists():
        return RankingTask.from_data(datasets.read_lightgcn(folder))
    with np.load(folder / "graph.npz") as file:
        train, test = (torch.from_numpy(file[name]).long() for name in ("train", "test"))
    num_users, num_items = (torch.cat([train, test], dim=1).max(dim=1).values + 1).tolist()
    return RankingTask(test, num_users=num_users, num_items=num_items, seen=train)


def read_embeddings(path: Path) -> tuple[Tensor, Tensor]:
    with np.load(path) as file:
        users, items = (torch.from_numpy(file[name]).float() for name in ("user", "item"))
    return users, items


def normalised_adjacency(task: RankingTask) -> Tensor:
    """Returns the adjacency matrix of users and then items, divided by the roots of the degrees."""
    num_nodes = task.num_users + task.num_items
    edges = to_undirected(torch.stack([task.seen[0], task.seen[1] + task.num_users]))
    edges, weight = gcn_norm(edges, num_nodes=num_nodes, add_self_loops=False)
    with torch.sparse.check_sparse_tensor_invariants():
        matrix: Tensor = to_torch_csr_tensor(edges, weight, size=(num_nodes, num_nodes))
    return matrix


def draw(task: RankingTask, size: int) -> Tensor:
    """Draws nodes `[3, size]`: random users, a random item of each, and one that it does not have.

    Users who have no items, or all of them, are not drawn.
    """
    seen_users, seen_items = task.seen  # sorted by user
    degree = torch.bincount(seen_users, minlength=task.num_users)
    start = degree.cumsum(dim=0) - degree
    users = ((degree > 0) & (degree < task.num_items)).nonzero().flatten()
    user = users[torch.randint(users.numel(), (size,), device=task.device)]
    nth = (torch.rand(size, dtype=torch.double, device=task.device) * degree[user]).long()
    liked = seen_items[start[user] + nth]
    other = torch.randint_like(user, task.num_items)
    edge_id = seen_users * task.num_items + seen_items
    while (is_seen := torch.isin(user * task.num_items + other, edge_id)).any():
        other[is_seen] = torch.randint_like(other[is_seen], task.num_items)
    return torch.stack([user, liked + task.num_users, other + task.num_users])


def bpr_loss(model: LightGCN, adjacency: Tensor, nodes: Tensor) -> Tensor:
    """Returns the BPR loss of drawn nodes, and the decay of their embeddings before propagation.

    The decay is half the sum of squares over the size of the batch. A node counts as often as it
    was drawn.
    """
    user, liked, other = nodes
    pairs = torch.stack([user.repeat(2), torch.cat([liked, other])])
    scores = model(adjacency, pairs).chunk(2)
    loss: Tensor = model.recommendation_loss(*scores, node_id=nodes.flatten(), lambda_reg=DECAY / 2)
    return loss


def train(task: RankingTask, epochs: int) -> tuple[Tensor, Tensor]:
    """Returns the final embeddings of users and items."""
    sizes = [task.num_users, task.num_items]
    model = LightGCN(sum(sizes), embedding_dim=64, num_layers=3, normalize=False).to(task.device)
    torch.nn.init.normal_(model.embedding.weight, std=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    adjacency = normalised_adjacency(task)  # once, not in every layer
    with tqdm(range(epochs), desc="Training", unit=" epochs") as bar:
        for _ in bar:
            losses = []
            for nodes in draw(task, task.seen.size(1)).split(BATCH_SIZE, dim=1):
                loss = bpr_loss(model, adjacency, nodes)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            bar.set_postfix(loss=f"{torch.stack(losses).mean():.4f}")
    with torch.no_grad():
        users, items = model.get_embedding(adjacency).split(sizes)
    return users, items


def print_side_by_side(result: EvaluationResult, published: dict[str, dict[str, float]]) -> None:
    print("source  metric                   ours   theirs  difference  in our interval")
    print("-" * 75)
    inside = []
    for source, values in published.items():
        for metric, theirs in values.items():
            ours = result[metric]
            low, high = result.confidence_interval(metric)
            inside.append(low <= theirs <= high)
            print(
                f"{source:8}{metric:14}{ours:.4f} ± {high - ours:.4f}{theirs:9.4f}"
                f"{ours - theirs:+12.4f}  {'yes' if inside[-1] else 'no':>15}"
            )
    print("±: 95% confidence interval of the mean over users")
    print(f"{sum(inside)} of {len(inside)} published numbers lie in our intervals")


def main() -> EvaluationResult:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--embeddings", type=Path, metavar="FILE", help="trained elsewhere")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=2020, help="the default is that of the authors")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    task = load(args.data).to(args.device)
    if args.embeddings is None:
        users, items = train(task, args.epochs)
        origin = f"trained here for {args.epochs} epochs with seed {args.seed}"
    else:
        users, items = read_embeddings(args.embeddings)
        origin = f"read from {args.embeddings.name}, NOT trained here"
    result = evaluate((users.to(args.device), items.to(args.device)), task, METRICS)

    size = (task.num_users, task.num_items, task.seen.size(1) + task.truth.size(1))
    print("\n{:,} users, {:,} items and {:,} edges".format(*size))
    print(f"The embeddings were {origin}.\n")
    if size in PUBLISHED:
        print_side_by_side(result, PUBLISHED[size])
    else:
        print(f"{result}\nNo number is published for data of this size.")
    print(f"\n{result.recipe()}")
    return result


if __name__ == "__main__":
    main()
