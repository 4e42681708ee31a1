"""Measures how long an evaluation takes that stops when it is sure.

    python -m benchmarks.margins FOLDER               # Gowalla, see benchmarks/evaluation.py
    python -m benchmarks.margins --users 10000000     # synthetic users, made chunk by chunk

It prints a table of seconds against margins, with how many users it took. The time of all synthetic
users is that of some, times how many more there are.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate

METRIC = "ndcg@20"
NUM_ITEMS, DIM, NUM_RELEVANT = 100_000, 64, 2

#: How many synthetic users are ranked to know how long all of them would take.
NUM_TIMED = 4096


def gowalla(folder: Path) -> tuple[tuple[Tensor, Tensor], RankingTask]:
    """Returns the embeddings and the task."""
    graph, model = np.load(folder / "graph.npz"), np.load(folder / "lightgcn.npz")
    seen, truth = (torch.from_numpy(graph[name]).long() for name in ("train", "test"))
    user, item = (torch.from_numpy(model[name]).float() for name in ("user", "item"))
    return (user, item), RankingTask(truth, seen=seen, num_users=len(user), num_items=len(item))


class SyntheticUsers:
    """Scores of users whose embeddings are made when they are asked for, and are never stored."""

    def __init__(self, num_users: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.frequency = torch.rand(DIM, generator=generator, dtype=torch.double)
        self.item = torch.randn(NUM_ITEMS, DIM, generator=generator) / DIM**0.5
        popularity = torch.arange(1, NUM_ITEMS + 1).pow(-0.8)
        self.bias = 1.5 * popularity.log()
        drawn = popularity.multinomial(NUM_RELEVANT * num_users, replacement=True)
        users = torch.arange(num_users).repeat_interleave(NUM_RELEVANT)
        self.truth = torch.stack([users, drawn])

    def __call__(self, users: Tensor) -> Tensor:
        embedding = (users.unsqueeze(1) * self.frequency).mul(2 * torch.pi).cos().float()
        return torch.addmm(self.bias, embedding, self.item.t())


def timed(function: Callable[[], EvaluationResult]) -> tuple[float, EvaluationResult]:
    """Returns how many seconds an evaluation takes, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def row(margin: float, seconds: float, result: EvaluationResult) -> str:
    """Returns a row of the table."""
    sampling = result.sampling
    if sampling is None:
        raise ValueError("'result' needs a margin")
    low, high = result.bounds(METRIC)
    cells = [f"± {margin:g}", f"{seconds:.1f} s", f"{sampling.num_ranked:,}"]
    return f"| {' | '.join([*cells, f'{low:.4f} to {high:.4f}'])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--users", type=int, default=10_000_000)
    args = parser.parse_args()
    print("| margin | seconds | users | bounds |\n|---|--:|--:|---|")
    if args.folder is not None:
        recommender, task = gowalla(args.folder)
        evaluate(recommender, task.select_users(torch.arange(512)), METRIC)  # to warm up
        seconds, result = timed(lambda: evaluate(recommender, task, METRIC))
        print(f"| all users | {seconds:.1f} s | {task.num_users:,} | {result[METRIC]:.4f} |")
        margins = (0.02, 0.01, 0.005, 0.003)
    else:
        recommender = SyntheticUsers(args.users)
        task = RankingTask(recommender.truth, num_users=args.users, num_items=NUM_ITEMS)
        some = task.select_users(torch.arange(NUM_TIMED))
        seconds, _ = timed(lambda: evaluate(recommender, some, METRIC))
        hours = seconds / NUM_TIMED * args.users / 3600
        print(f"| all users, extrapolated | {hours:.2f} h | {args.users:,} | |")
        margins = (0.01, 0.005, 0.002)
    for margin in margins:
        print(row(margin, *timed(partial(evaluate, recommender, task, METRIC, margin=margin))))


if __name__ == "__main__":
    main()
