"""Trains a heterogeneous GNN with a decoder of pairs on a `RandomLinkSplit`, and evaluates it.

    python examples/hetero_link_split.py --epochs 200

The encoder makes an embedding of every node, once for an evaluation. The decoder scores pairs of a
user and an item. If it were an inner product, the embeddings alone would be enough.
"""

import argparse

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch_geometric.data import HeteroData
from torch_geometric.nn import MLP, SAGEConv, to_hetero
from torch_geometric.transforms import RandomLinkSplit, ToUndirected
from tqdm import tqdm

from pyg_recmetrics import EvaluationResult, Evaluator, PairScorer, datasets

USER_ITEM = ("user", "rates", "item")


class Encoder(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = SAGEConv(channels, channels)
        self.conv2 = SAGEConv(channels, channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        update: Tensor = self.conv2(self.conv1(x, edge_index).relu(), edge_index)
        return x + update


class Model(torch.nn.Module):
    """An embedding for every node, a GNN that combines neighbours, and a decoder of pairs."""

    def __init__(self, data: HeteroData, channels: int = 32) -> None:
        super().__init__()
        self.x = torch.nn.ParameterDict(
            {name: 0.1 * torch.randn(data[name].num_nodes, channels) for name in data.node_types}
        )
        self.encoder = to_hetero(Encoder(channels), data.metadata())
        self.decoder = MLP([channels, channels, 1], norm=None)

    def encode(self, data: HeteroData) -> dict[str, Tensor]:
        z: dict[str, Tensor] = self.encoder(dict(self.x.items()), data.edge_index_dict)
        return z

    def decode(self, z: dict[str, Tensor], user: Tensor, item: Tensor) -> Tensor:
        score: Tensor = self.decoder(z["user"][user] * z["item"][item])
        return score.squeeze(1)


def train(model: Model, optimizer: torch.optim.Optimizer, data: HeteroData) -> None:
    model.train()
    z = model.encode(data)
    user, liked = data[USER_ITEM].edge_label_index
    drawn = torch.randint_like(liked, z["item"].size(0))
    difference = model.decode(z, user, liked) - model.decode(z, user, drawn)
    loss = -logsigmoid(difference).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def test(model: Model, data: HeteroData, evaluator: Evaluator) -> EvaluationResult:
    model.eval()
    z = model.encode(data)  # its edges, and never those that are to be found
    return evaluator(PairScorer(lambda user, item: model.decode(z, user, item)))


def main() -> tuple[Model, HeteroData, EvaluationResult]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    data = ToUndirected()(datasets.synthetic_interactions(seed=args.seed))
    split = RandomLinkSplit(
        num_val=0.1,
        num_test=0.2,
        edge_types=USER_ITEM,
        rev_edge_types=("item", "rev_rates", "user"),
        neg_sampling_ratio=0.0,
    )
    train_data, val_data, test_data = split(data)
    evaluate_val = Evaluator(val_data, ["recall@20"])
    evaluate_test = Evaluator(test_data, ["r_precision", "recall@20", "ndcg@20", "map@20"])

    model = Model(data)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    with tqdm(range(args.epochs), desc="Training", unit=" epochs") as bar:
        for epoch in bar:
            train(model, optimizer, train_data)
            if epoch % 10 == 9:
                val = test(model, val_data, evaluate_val)
                bar.set_postfix({"val recall@20": f"{val['recall@20']:.4f}"})

    result = test(model, test_data, evaluate_test)
    item = test_data[USER_ITEM].edge_index[1]
    popularity = item.bincount(minlength=test_data["item"].num_nodes).float()
    popular = evaluate_test(popularity)["recall@20"]
    print(f"\nTest\n{result}\nrecall@20 of the most popular items: {popular:.4f}")
    return model, test_data, result


if __name__ == "__main__":
    main()
