"""Trains LightGCN with Lightning, and evaluates it in two ways.

    pip install . lightning && python examples/lightning_module.py

The first way is an evaluator in `on_train_epoch_end`. It ranks all users after an epoch, and stops
the training when the metrics no longer improve. The second way is metric classes with `self.log`.
They measure the lists that `validation_step` makes for a mini-batch of users.
"""

import argparse
import logging
import warnings

import lightning.pytorch as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset
from torch_geometric.nn import LightGCN
from torch_geometric.transforms import RandomLinkSplit

from pyg_recmetrics import Evaluator, RankingTask, datasets
from pyg_recmetrics.modules import NDCG, Recall

K = 20  # the cut-off of the metrics, and the length of the lists


class Recommender(pl.LightningModule):
    def __init__(self, evaluator: Evaluator) -> None:
        super().__init__()
        self.evaluator, self.task = evaluator, evaluator.task
        num_nodes = self.task.num_users + self.task.num_items
        self.model = LightGCN(num_nodes, embedding_dim=64, num_layers=3)
        torch.nn.init.normal_(self.model.embedding.weight, std=0.1)
        self.recall, self.ndcg = Recall(k=K), NDCG(k=K)

    def on_fit_start(self) -> None:
        self.task = self.task.to(self.device)

    def training_step(self, batch: list[Tensor]) -> Tensor:
        user, item = batch[0].t()
        other = torch.randint_like(item, self.task.num_items)
        pairs = torch.stack([user.repeat(2), torch.cat([item, other]) + self.task.num_users])
        liked, drawn = self.model(self.task.edge_index, pairs).chunk(2)
        loss: Tensor = self.model.recommendation_loss(liked, drawn, node_id=pairs.unique())
        return loss

    def on_train_epoch_end(self) -> None:
        result = self.evaluator.to(self.device)(self.model)
        self.log_dict(result.to_dict("_"))
        self.trainer.should_stop |= self.evaluator.should_stop

    def on_validation_epoch_start(self) -> None:
        embedding = self.model.get_embedding(self.task.edge_index)
        self.user, self.item = embedding.split([self.task.num_users, self.task.num_items])

    def validation_step(self, batch: list[Tensor]) -> None:
        (users,) = batch
        scores = self.user[users] @ self.item.t()
        row, item = edges_of(users, self.task.seen)
        scores[row, item] = -torch.inf
        lists, truth = scores.topk(K).indices, edges_of(users, self.task.truth)
        self.recall.update(lists, truth)
        self.ndcg.update(lists, truth)
        self.log("val_recall", self.recall, prog_bar=True)
        self.log("val_ndcg", self.ndcg, prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.03)


def edges_of(users: Tensor, edges: Tensor) -> Tensor:
    """Returns the edges of some users, where a user is its row in `users`."""
    row, edge = (users.unsqueeze(1) == edges[0]).nonzero().t()
    return torch.stack([row, edges[1, edge]])


def main() -> tuple[Evaluator, dict[str, Tensor]]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=60, help="the maximum")
    args = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message=".*does not have many workers")
    pl.seed_everything(0, verbose=False)

    data = datasets.synthetic_interactions(num_users=1000, num_items=500)
    split = RandomLinkSplit(
        num_val=0.0, edge_types=("user", "rates", "item"), neg_sampling_ratio=0.0
    )
    _, _, part = split(data)
    task = RankingTask.from_data(part)  # for validation: it decides when to stop

    evaluator = Evaluator(task, [f"ndcg@{K}", f"recall@{K}", "r_precision"], patience=5)
    trainer = pl.Trainer(
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    trainer.fit(
        Recommender(evaluator),
        DataLoader(TensorDataset(task.seen.t()), batch_size=8192, shuffle=True),
        DataLoader(TensorDataset(task.users), batch_size=256),
    )
    print(f"\n{evaluator.history}\n")
    print(evaluator.best)
    return evaluator, trainer.callback_metrics


if __name__ == "__main__":
    main()
