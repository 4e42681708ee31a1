"""Writes a report on LightGCN, matrix factorisation and the most popular items.

    python examples/report.py                    # synthetic data, no download
    python examples/report.py --data FOLDER      # train.txt and test.txt in FOLDER

Both models are trained with the BPR loss and three seeds. A tenth of each user's training edges
says when to stop. The test decides nothing. On LastFM, all of it takes minutes on two cores.
"""

import argparse
import copy
from collections.abc import Callable
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch_geometric.data import HeteroData
from torch_geometric.nn import LightGCN
from tqdm import tqdm

from pyg_recmetrics import (
    Comparison,
    EvaluationResult,
    Evaluator,
    RankingTask,
    Runs,
    compare,
    datasets,
    plot,
    report,
    transforms,
)

LEARNING_RATE = 0.03
PENALTY = 0.02  # of the squares of the embeddings
EVALUATE_EVERY = 5  # epochs


def load(folder: Path | None) -> HeteroData:
    """Returns data with the training edges as `edge_index` and the test as `edge_label_index`."""
    if folder is not None:
        return datasets.read_lightgcn(folder)
    data = datasets.synthetic_interactions(num_users=1000, num_items=500)
    return transforms.PerUserSplit(num_test=0.2)(data)[2]


def loss(users: Tensor, liked: Tensor, drawn: Tensor) -> Tensor:
    """Returns the BPR loss of the embeddings of users, and of an item of each and another one."""
    difference = (users * (liked - drawn)).sum(dim=1)
    squares = sum(x.pow(2).sum(dim=1).mean() for x in (users, liked, drawn))
    return -logsigmoid(difference).mean() + PENALTY * squares


def train(
    name: str,
    embed: Callable[[], tuple[Tensor, Tensor]],
    weights: list[torch.nn.Parameter],
    task: RankingTask,
    max_epochs: int,
) -> None:
    """Trains embeddings on the seen edges of a task, and keeps the weights that are best for it."""
    optimizer = torch.optim.Adam(weights, lr=LEARNING_RATE)
    evaluator = Evaluator(task, "ndcg@20", patience=3)
    best = copy.deepcopy(weights)
    user, item = task.seen
    bar = tqdm(range(1, max_epochs + 1), desc=name, unit=" epochs")
    for epoch in bar:
        users, items = embed()
        drawn = torch.randint_like(item, task.num_items)
        optimizer.zero_grad()
        loss(users[user], items[item], items[drawn]).backward()
        optimizer.step()
        if epoch % EVALUATE_EVERY:
            continue
        with torch.no_grad():
            bar.set_postfix({"ndcg@20": f"{evaluator(embed())['ndcg@20']:.4f}"})
        if evaluator.history.is_best:
            best = copy.deepcopy(weights)
        if evaluator.should_stop:
            break
    for weight, best_weight in zip(weights, best, strict=True):
        weight.data = best_weight.data


def lightgcn(
    validation: RankingTask, test: RankingTask, seed: int, max_epochs: int
) -> tuple[Tensor, Tensor]:
    """Returns the embeddings of users and items that LightGCN propagates over all known edges."""
    torch.manual_seed(seed)
    sizes = [test.num_users, test.num_items]
    model = LightGCN(sum(sizes), embedding_dim=64, num_layers=3)
    torch.nn.init.normal_(model.embedding.weight, std=0.1)

    def embed(task: RankingTask = validation) -> tuple[Tensor, Tensor]:
        users, items = model.get_embedding(task.edge_index).split(sizes)
        return users, items

    train(f"LightGCN, seed {seed}", embed, list(model.parameters()), validation, max_epochs)
    with torch.no_grad():
        return embed(test)


def matrix_factorisation(
    validation: RankingTask, seed: int, max_epochs: int
) -> tuple[Tensor, Tensor]:
    """Returns embeddings of users and items, each of which is a weight."""
    torch.manual_seed(seed)
    users, items = (
        torch.nn.Parameter(0.1 * torch.randn(size, 64))
        for size in (validation.num_users, validation.num_items)
    )
    name = f"Matrix factorisation, seed {seed}"
    train(name, lambda: (users, items), [users, items], validation, max_epochs)
    return users.detach(), items.detach()


def draw(results: dict[str, EvaluationResult | Runs], comparison: Comparison, path: Path) -> None:
    """Saves a picture of all means, and of LightGCN minus each of the others."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    ((left, right),) = figure.subfigures(1, 2, squeeze=False)
    plot.means(results, figure=left)
    plot.differences(comparison.select(name="LightGCN"), figure=right)
    figure.savefig(path, dpi=150)


def main() -> Comparison:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="holds train.txt and test.txt")
    parser.add_argument("--report", type=Path, metavar="FILE", default="report.html")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where to save a picture")
    parser.add_argument("--epochs", type=int, default=150, help="the maximum")
    args = parser.parse_args()

    data = load(args.data)
    train_data, _, validation_data = transforms.PerUserSplit(num_test=0.1)(data)
    validation, test = RankingTask.from_data(validation_data), RankingTask.from_data(data)

    evaluator = Evaluator(test, ["ndcg@20", "recall@20", "r_precision"], keep_items=True)
    results: dict[str, EvaluationResult | Runs] = {
        "LightGCN": Runs(
            evaluator(lightgcn(validation, test, seed, args.epochs)) for seed in range(3)
        ),
        "Matrix factorisation": Runs(
            evaluator(matrix_factorisation(validation, seed, args.epochs)) for seed in range(3)
        ),
        "Most popular": evaluator(torch.bincount(test.seen[1], minlength=test.num_items).float()),
    }
    # A difference of less than two per cent is too small to matter here.
    comparison = compare(results, equivalence="2%", deterministic=["Most popular"])
    print(f"\n{results['LightGCN']}\n\n{comparison}\n")
    path = report(
        results,
        args.report,
        split=(train_data, validation_data, data),
        comparison=comparison,
        title="LightGCN, matrix factorisation and the most popular items",
    )
    print(f"The report is in {path.resolve()}")
    if args.picture is not None:
        draw(results, comparison, args.picture)
    return comparison


if __name__ == "__main__":
    main()
