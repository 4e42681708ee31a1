"""Evaluates with several processes. Each ranks its part of the users, and all get the result.

    torchrun --nproc-per-node 2 examples/distributed.py

With GPUs, each process uses its own GPU and the backend is nccl. Without GPUs, it is gloo.
The model is a truncated singular value decomposition of the matrix of seen items.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor
from torch_geometric.transforms import RandomLinkSplit

from pyg_recmetrics import EvaluationResult, RankingTask, datasets, distributed, evaluate


def make_task(num_users: int, num_items: int) -> RankingTask:
    torch.manual_seed(0)  # without it, each process would make another split
    data = datasets.synthetic_interactions(num_users=num_users, num_items=num_items)
    split = RandomLinkSplit(
        num_val=0.0, edge_types=("user", "rates", "item"), neg_sampling_ratio=0.0
    )
    _, _, test = split(data)
    return RankingTask.from_data(test)


def decompose(task: RankingTask, dim: int = 32) -> tuple[Tensor, Tensor]:
    seen = torch.zeros(task.num_users, task.num_items)
    seen[task.seen[0], task.seen[1]] = 1
    user, scale, item = torch.svd_lowrank(seen, q=dim)
    return user * scale, item


def main() -> EvaluationResult:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--num-users", type=int, default=2000)
    parser.add_argument("--num-items", type=int, default=1000)
    args = parser.parse_args()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        task = make_task(args.num_users, args.num_items).to(device)
        user, item = (table.to(device).contiguous() for table in decompose(task.to("cpu")))
        for table in (user, item):
            dist.broadcast(table, src=0)  # all processes need the same model, as after training

        metrics = ["r_precision", "recall@20", "ndcg@20"]
        result = distributed.evaluate((user, item), task, metrics)
        if dist.get_rank() == 0:
            print(result)
            is_same = dict(evaluate((user, item), task, metrics)) == dict(result)
            same = "the same numbers" if is_same else "OTHER NUMBERS"
            print(f"{dist.get_world_size()} processes give {same} as a single one")
        dist.barrier()
        return result
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
