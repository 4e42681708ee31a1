"""Evaluates Gowalla in one, two and four processes, each of which ranks a share of the users.

    python -m benchmarks.user_shares FOLDER  # with the data of benchmarks/evaluation.py

Each process says how much CPU time it took, and what it sent. All means have to be the same
whatever the number of processes.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist

from benchmarks.margins import gowalla
from pyg_recmetrics import evaluate

SIZES = (1, 2, 4)

#: What is evaluated: ranks down to a depth, lists, and all ranks.
WAYS = {
    "recall@20, ndcg@20": ["recall@20", "ndcg@20"],
    "ndcg@20, coverage@20 (lists)": ["ndcg@20", "coverage@20"],
    "roc_auc (all ranks)": ["roc_auc"],
}


@contextmanager
def counted_bytes() -> Iterator[list[float]]:
    """The bytes that this process sends in each call, if processes form a ring."""
    sent: list[float] = []
    size = dist.get_world_size()

    def counting(function: Callable[..., Any], share: float, place: int) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            sent.append(share * args[place].nbytes)
            return function(*args, **kwargs)

        return counted

    with (
        patch.object(dist, "all_reduce", counting(dist.all_reduce, 2 * (size - 1) / size, 0)),
        patch.object(dist, "all_gather", counting(dist.all_gather, size - 1, 1)),
    ):
        yield sent


def work(process: int, size: int, folder: Path, results: Path) -> None:
    """Evaluates in one process, and writes what it took."""
    torch.set_num_threads(1)
    store = f"file://{results / f'store{size}'}"
    dist.init_process_group("gloo", init_method=store, rank=process, world_size=size)
    embeddings, task = gowalla(folder)
    found = {}
    for name, metrics in WAYS.items():
        dist.barrier()
        with counted_bytes() as sent:
            start = time.process_time()
            result = evaluate(embeddings, task, metrics)
            seconds = time.process_time() - start
        found[name] = {
            "seconds": seconds,
            "bytes": sum(sent),
            "edges": task.truth.size(1),
            "means": result.to_dict(),
        }
    torch.save(found, results / f"{size}.{process}.pt")
    dist.barrier()
    os._exit(0)


def run(size: int, folder: Path, results: Path) -> list[dict[str, Any]]:
    """Returns what each of so many processes found."""
    fork = multiprocessing.get_context("fork")
    group = [fork.Process(target=work, args=(i, size, folder, results)) for i in range(size)]
    for process in group:
        process.start()
    for process in group:
        process.join()
    return [torch.load(results / f"{size}.{process}.pt") for process in range(size)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as results:
        found = {size: run(size, folder, Path(results)) for size in SIZES}
    print("| what | processes | CPU s each | sent each, kB | bytes an edge |")
    print("|---|--:|--:|--:|--:|")
    for name in WAYS:
        for size in SIZES:
            of_group = [process[name] for process in found[size]]
            if any(each["means"] != found[1][0][name]["means"] for each in of_group):
                raise RuntimeError(f"{name}: {size} processes found other means than one")
            seconds = sum(each["seconds"] for each in of_group) / size
            num_bytes = sum(each["bytes"] for each in of_group) / size
            print(
                f"| {name} | {size} | {seconds:.2f} | {num_bytes / 1000:,.0f} "
                f"| {num_bytes / of_group[0]['edges']:.1f} |"
            )


if __name__ == "__main__":
    main()
