"""Evaluates on a table that no process reads whole: each holds the users of its own row groups.

    torchrun --nproc-per-node 2 examples/sharded.py

The first process writes what stands in for files that are larger than one machine: interactions in
Parquet files, sorted by user, and the table of user embeddings. Each process reads its own part.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.distributed as dist
from torch import Tensor

from pyg_recmetrics import EvaluationResult, RankingTask, datasets, evaluate, transforms

#: How many users a row group has. A user is never in two of them.
USERS_IN_GROUP = 100

DIM = 16


def write(folder: Path, num_users: int, num_items: int) -> None:
    torch.manual_seed(0)
    data = datasets.synthetic_interactions(num_users=num_users, num_items=num_items)
    _, _, test = transforms.PerUserSplit(num_val=0.0, num_test=0.2)(data)
    task = RankingTask.from_data(test)
    for name, (user, item) in {"test": task.truth, "train": task.seen}.items():
        with pq.ParquetWriter(folder / f"{name}.parquet", schema()) as writer:
            for first in range(0, num_users, USERS_IN_GROUP):
                rows = (user >= first) & (user < first + USERS_IN_GROUP)
                columns = {"user": user[rows].numpy(), "item": item[rows].numpy()}
                writer.write_table(pa.table(columns, schema()))
    torch.save(torch.randn(num_users, DIM), folder / "user.pt")
    torch.save(torch.randn(num_items, DIM), folder / "item.pt")


def schema() -> Any:
    return pa.schema({"user": pa.int64(), "item": pa.int64()})


def read(file: Path, index: int, size: int) -> tuple[Tensor, Tensor]:
    """Returns the users and items of every `size`-th row group, and reads no others."""
    parquet = pq.ParquetFile(file)
    table = parquet.read_row_groups(range(index, parquet.num_row_groups, size))
    user, item = (torch.tensor(table[name].to_numpy()) for name in ("user", "item"))
    return user, item


def evaluate_share(folder: Path, index: int, size: int) -> EvaluationResult:
    test_user, test_item = read(folder / "test.parquet", index, size)
    train_user, train_item = read(folder / "train.parquet", index, size)
    # Users are numbered from 0 on in every process; `users` says who they are.
    users, number = torch.cat([test_user, train_user]).unique(return_inverse=True)
    test_number, train_number = number.split([len(test_user), len(train_user)])
    user_table = torch.load(folder / "user.pt", mmap=True)[users]  # only these rows are read
    item_table = torch.load(folder / "item.pt")
    task = RankingTask(
        torch.stack([test_number, test_item]),
        seen=torch.stack([train_number, train_item]),
        num_users=len(users),
        num_items=len(item_table),
        user_ids=users,
        is_share=True,
    )
    held = sum(part.nbytes for part in (task.truth, task.seen, user_table))
    print(f"process {index} of {size}: {task.num_users} users, {held:,} bytes", flush=True)
    return evaluate((user_table, item_table), task, ["recall@20", "ndcg@20", "coverage@20"])


def main() -> EvaluationResult:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--num-users", type=int, default=2000)
    parser.add_argument("--num-items", type=int, default=1000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    try:
        index, size = dist.get_rank(), dist.get_world_size()
        with tempfile.TemporaryDirectory() as own:
            folders = [own]
            dist.broadcast_object_list(folders, src=0)
            folder = Path(str(folders[0]))
            if index == 0:
                write(folder, args.num_users, args.num_items)
            dist.barrier()
            result = evaluate_share(folder, index, size)
            if index == 0:
                print(result)  # the means of all users, which every process knows
            dist.barrier()
        return result
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
