"""Times small data, which a training evaluates after every epoch, beside PyG's plain loop.

    python benchmarks/small.py [--rounds 100] [--threads 1]

The loop is what people write with PyG: a product, a mask, `topk` and three of PyG's metrics, for
2,048 users at once. An `Evaluator` that was made once measures the same three. Both are called in
turn, with other embeddings in each round, as after an epoch. The data are random, once with few
hits, and once with users near their truth. The output is a table of medians in Markdown. `ratio` is
relative to the loop, and should be at most `goal`.

With one thread, times are those that the process has spent on a processor, so that other programs
do not count, except that caches are shared with them. With several threads they are of the clock on
the wall, as threads that wait spend time on a processor, too: only an idle machine tells them.

Before anything is timed, the means are compared with those of the loop, and all ranks with those of
`algorithm="dense"`. Rows without `bfloat16` run in a process of its own whose libraries are told
that the processor has AVX2 and nothing beyond.
"""

import argparse
import multiprocessing
import os
import statistics
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import torch
from embeddings import Embeddings, random_embeddings
from paths import AVX2, forget_bfloat16
from timing import machine
from torch import Tensor
from torch_geometric.metrics import (
    LinkPredMetricCollection,
    LinkPredNDCG,
    LinkPredPrecision,
    LinkPredRecall,
)

from pyg_recmetrics import Evaluator, RankingTask, rank

# Random embeddings know nothing.
warnings.filterwarnings("ignore", "'recommender' prefers what a user has seen")

#: The cut-off and the metrics, and how many users the loop scores at once.
K = 20
METRICS, USERS_AT_ONCE = (f"precision@{K}", f"recall@{K}", f"ndcg@{K}"), 2048

#: How many embeddings there are, and how far those of an epoch are from others.
NUM_EPOCHS, STEP = 8, 0.05

#: How far means of the loop, which are in single precision, may be from ours.
TOLERANCE = 1e-5


class Size(NamedTuple):
    """The size of some data.

    Attributes:
        name: What it is called in the table.
        num_users: How many users there are.
        num_items: How many items there are.
        num_relevant: How many relevant items are drawn for each user.
        num_seen: How many seen items are.
        goal: What the ratio should be at most.
        share: What part of the rounds is enough.
    """

    name: str
    num_users: int
    num_items: int
    num_relevant: int
    num_seen: int
    goal: float
    share: float


SIZES = (
    Size("100 x 100", 100, 100, 3, 5, 0.9, 2),
    Size("MovieLens-100K", 943, 1_682, 10, 90, 0.95, 0.5),
    Size("LastFM", 1_892, 4_489, 5, 20, 0.7, 0.1),
    Size("MovieLens-1M", 6_040, 3_706, 30, 130, 0.9, 0.1),
)


def loop(user: Tensor, item: Tensor, task: RankingTask) -> dict[str, Tensor]:
    """The loop that people write with PyG: a product, a mask, `topk` and its metrics."""
    starts = torch.arange(0, len(user) + USERS_AT_ONCE, USERS_AT_ONCE)
    of_truth, of_seen = (
        torch.searchsorted(edges[0].contiguous(), starts) for edges in (task.truth, task.seen)
    )
    metrics = LinkPredMetricCollection([LinkPredPrecision(K), LinkPredRecall(K), LinkPredNDCG(K)])
    for number, users in enumerate(user.split(USERS_AT_ONCE)):
        scores, first = users @ item.t(), int(starts[number])
        row, column = task.seen[:, of_seen[number] : of_seen[number + 1]]
        scores[row - first, column] = -torch.inf
        edges = task.truth[:, of_truth[number] : of_truth[number + 1]].clone()
        edges[0] -= first
        metrics.update(scores.topk(K, dim=1).indices, edges)
    computed: dict[str, Tensor] = metrics.compute()
    return computed


def embeddings_of(data: Embeddings, has_many_hits: bool) -> list[tuple[Tensor, Tensor]]:
    """Returns embeddings that change a little from one to the next."""
    generator = torch.Generator().manual_seed(1)
    tables = data.user, data.item
    if not has_many_hits:
        tables = tuple(torch.randn(table.shape, generator=generator) for table in tables)
    return [
        tuple(x + STEP * torch.randn(x.shape, generator=generator) for x in tables)
        for _ in range(NUM_EPOCHS)
    ]


def check(epochs: list[tuple[Tensor, Tensor]], evaluator: Evaluator) -> None:
    """Raises if means are not those of the loop, or ranks are not exact."""
    for tables in epochs:
        result = evaluator(tables)
        of_loop = [float(mean) for mean in loop(*tables, evaluator.task).values()]
        ours = list(result.values())
        if max(abs(x - y) for x, y in zip(ours, of_loop, strict=True)) > TOLERANCE:
            raise RuntimeError(f"the loop has {of_loop} (got {ours})")
        exact = rank(tables, evaluator.task, k=K, algorithm="dense")
        if not torch.equal(result.ranked.rank, exact.rank):
            raise RuntimeError("ranks differ from those of algorithm='dense'")


def measure(size: Size, has_many_hits: bool, num_rounds: int) -> str:
    """Returns a line of the table."""
    data = random_embeddings(*size[1:3], num_relevant=size.num_relevant, num_seen=size.num_seen)
    epochs, evaluator = embeddings_of(data, has_many_hits), Evaluator(data.task, METRICS)
    check(epochs, evaluator)
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    ours, of_loop = [], []
    for number in range(max(5, int(size.share * num_rounds))):
        tables = epochs[number % NUM_EPOCHS]
        times = [clock()]
        evaluator(tables)
        times.append(clock())
        loop(*tables, data.task)
        times.append(clock())
        ours.append(times[1] - times[0])
        of_loop.append(times[2] - times[1])
    one, other = (1e3 * statistics.median(seconds) for seconds in (ours, of_loop))
    is_met = "yes" if one / other <= size.goal else "no"
    hits = "many hits" if has_many_hits else "few hits"
    return (
        f"| {size.name}, {hits} | {one:.2f} ms | {other:.2f} ms | {one / other:.2f} | "
        f"{size.goal:.2f} | {is_met} |"
    )


def measure_all(num_threads: int, num_rounds: int) -> list[str]:
    torch.set_num_threads(num_threads)
    return [measure(size, hits, num_rounds) for size in SIZES for hits in (False, True)]


def measure_without_bfloat16(num_threads: int, num_rounds: int) -> list[str]:
    forget_bfloat16()
    return measure_all(num_threads, num_rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(machine(), flush=True)
    print("\n| with `bfloat16` | ours | PyG's loop | ratio | goal | met |")
    print("|---|---:|---:|---:|---:|---|", flush=True)
    print(*measure_all(args.threads, args.rounds), sep="\n", flush=True)
    os.environ |= AVX2
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        done = process.submit(measure_without_bfloat16, args.threads, args.rounds)
        print("\n| without `bfloat16` | ours | PyG's loop | ratio | goal | met |")
        print("|---|---:|---:|---:|---:|---|")
        print(*done.result(), sep="\n")


if __name__ == "__main__":
    main()
