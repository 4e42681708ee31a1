"""Trains LightGCN until it stops improving, and restores the best model.

    python examples/early_stopping.py

The evaluator keeps the history and says when to stop. The training loop is plain PyTorch.
"""

import argparse
import copy

import torch
from torch_geometric.nn import LightGCN
from torch_geometric.transforms import RandomLinkSplit
from tqdm import tqdm

from pyg_recmetrics import EvaluationResult, Evaluator, RankingTask, datasets, evaluate

BATCH_SIZE = 8192  # edges
EVALUATE_EVERY = 3  # epochs


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


def main() -> tuple[Evaluator, EvaluationResult]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=200, help="the maximum")
    parser.add_argument("--patience", type=int, default=5, help="evaluations without improvement")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.manual_seed(0)

    data = datasets.synthetic_interactions(num_users=1000, num_items=500)
    split = RandomLinkSplit(edge_types=("user", "rates", "item"), neg_sampling_ratio=0.0)
    _, validation, test = (part.to(args.device) for part in split(data))
    task = RankingTask.from_data(validation)

    model = LightGCN(task.num_users + task.num_items, embedding_dim=64, num_layers=3)
    torch.nn.init.normal_(model.embedding.weight, std=0.1)
    model = model.to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)

    evaluator = Evaluator(
        task,
        ["recall@20", "ndcg@20", "r_precision"],
        monitor="ndcg@20",
        patience=args.patience,
    )
    best = copy.deepcopy(model.state_dict())
    for epoch in tqdm(range(1, args.epochs + 1), desc="Training", unit=" epochs"):
        train(model, optimizer, task)
        if epoch % EVALUATE_EVERY:
            continue
        evaluator(model)
        if evaluator.history.is_best:
            best = copy.deepcopy(model.state_dict())
        if evaluator.should_stop:
            break

    print(f"\n{evaluator.history}\n")
    model.load_state_dict(best)
    result = evaluate(model, test, evaluator.metrics)
    print(f"Test, with the model of evaluation {evaluator.history.best_index}\n{result}")
    return evaluator, result


if __name__ == "__main__":
    main()
