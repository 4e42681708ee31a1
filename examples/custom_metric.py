"""Adds a metric, and uses it like the ones that come with the package.

python examples/custom_metric.py
"""

import torch
from torch import Tensor

from pyg_recmetrics import RankedEdges, RankingTask, evaluate, metrics, modules


@metrics.register()
def all_found(ranked: RankedEdges, k: int) -> Tensor:
    r"""Whether all relevant items are in the top `k`.

    .. math:: \text{all-found@}k = [h_k = R]
    """
    return (ranked.hits(k) == ranked.degree).double()


def main() -> modules.RankingMetric:
    truth = torch.tensor([[0, 0, 1, 1], [0, 3, 1, 4]])
    task = RankingTask(truth, num_users=2, num_items=5)
    scores = torch.tensor([[0.9, 0.1, 0.5, 0.8, 0.2], [0.9, 0.8, 0.7, 0.2, 0.1]])
    print(evaluate(scores, task, ["all_found@2", "all_found@5", "recall@2"]))

    metric: modules.RankingMetric = modules.AllFound(k=5)
    metric.update(scores.argsort(dim=1, descending=True), truth)
    print(f"all_found@5 over mini-batches: {metric.compute():.4f}")
    return metric


if __name__ == "__main__":
    main()
