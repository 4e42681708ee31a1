"""Evaluates many users over many items, and says how long it took and what memory it needed.

    python benchmarks/large.py --users 100000 --items 100000

Embeddings are random, with norms that fall off as popularity does; each of the ten relevant items
of a user is the one it scores best among a hundred. The time grows with the number of users, and
the memory only by what is kept of the truth.
"""

import argparse
import time

import torch
from timing import extra_memory
from torch import Tensor

from pyg_recmetrics import RankingTask, evaluate


def relevant_items(user: Tensor, item: Tensor, generator: torch.Generator) -> Tensor:
    """Draws ten items for every user, each the best of a hundred."""
    edges = []
    for users in torch.arange(len(user)).repeat_interleave(10).split(1_000):
        drawn = torch.randint(len(item), (len(users), 100), generator=generator)
        best = torch.einsum("ud,ucd->uc", user[users], item[drawn]).argmax(dim=1, keepdim=True)
        edges.append(torch.stack([users, drawn.gather(1, best).squeeze(1)]))
    return torch.cat(edges, dim=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=64)
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    user = torch.randn(args.users, args.dim, generator=generator)
    item = torch.randn(args.items, args.dim, generator=generator)
    item *= torch.arange(1, args.items + 1).pow(-0.2).unsqueeze(1)
    truth = relevant_items(user, item, generator)
    task = RankingTask(truth, num_users=args.users, num_items=args.items)
    start = time.perf_counter()
    result, megabytes = extra_memory(lambda: evaluate((user, item), task, progress=True))
    seconds = time.perf_counter() - start
    print(result)
    print(f"{seconds:.1f} s, {seconds / args.users * 1e6:.0f} s for each 1,000,000 users")
    print(f"peak memory {megabytes:.0f} MB above that of the data")


if __name__ == "__main__":
    main()
