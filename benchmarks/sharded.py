"""Ranks Gowalla in one, two and four processes that hold a part of the items each.

    python benchmarks/sharded.py FOLDER  # measures processes of this machine
    python benchmarks/sharded.py --random  # does so with a million random items
    python benchmarks/sharded.py --cards  # extends it to many cards, by the rates that it states

`FOLDER` holds the data of `benchmarks/evaluation.py`. Items are dealt out at random, as by a hash.
Each process says how much CPU time it took, what it sent and what memory it needed. All ranks and
lists have to be the same whatever the number of processes.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from embeddings import random_embeddings, trained_embeddings
from timing import extra_memory, machine
from torch import Tensor

from pyg_recmetrics import RankedEdges, RankingTask, rank

#: What is ranked, and how many users.
WAYS: dict[str, tuple[int, dict[str, Any]]] = {
    "ranks to 20": (29858, {"k": 20}),
    "lists of 20 and ranks": (29858, {"k": 20, "keep_items": True}),
    "all ranks": (6000, {"full": True}),
}

#: How many random items there are, and how many times fewer users are ranked among them.
NUM_RANDOM_ITEMS, NUM_TIMES_LESS = 1_000_000, 15

#: Numbers of processes. Zero is one that holds all items, and does not know of shards.
SIZES = (0, 1, 2, 4)


def dealt_out(folder: Path | None, num_users: int) -> tuple[Tensor, Tensor, RankingTask]:
    """Gowalla, or a million random items, in random order, and some of the users to rank."""
    generator = torch.Generator().manual_seed(0)
    if folder is None:
        num_users //= NUM_TIMES_LESS
        data = random_embeddings(num_users, NUM_RANDOM_ITEMS)
    else:
        data = trained_embeddings(folder)
    order = torch.randperm(data.item.size(0), generator=generator)
    place = order.argsort()
    users = torch.randperm(data.user.size(0), generator=generator)[:num_users].sort().values
    truth, seen = (
        torch.stack([user, place[item]]) for user, item in (data.task.truth, data.task.seen)
    )
    size = {"num_users": data.user.size(0), "num_items": data.item.size(0)}
    return data.user, data.item[order], RankingTask(truth, seen=seen, users=users, **size)


@contextmanager
def counted_bytes() -> Iterator[list[float]]:
    """The bytes that this process sends in each call, if processes form a ring."""
    sent: list[float] = []

    def counting(function: Callable[..., Any], share: float, place: int) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            sent.append(share * args[place].numel() * args[place].element_size())
            return function(*args, **kwargs)

        return counted

    size = dist.get_world_size()
    with (
        patch.object(dist, "all_reduce", counting(dist.all_reduce, 2 * (size - 1) / size, 0)),
        patch.object(dist, "all_gather", counting(dist.all_gather, size - 1, 1)),
    ):
        yield sent


def checksum(ranked: RankedEdges) -> int:
    """What tells all ranks and lists from others."""
    parts = [ranked.rank, ranked.num_above, ranked.num_tied]
    if ranked.pred_index_mat is not None:
        parts.append(ranked.pred_index_mat)
    return zlib.crc32(b"".join(part.contiguous().numpy().tobytes() for part in parts))


def work(process: int, size: int, folder: Path | None, results: Path) -> None:
    """Ranks the shard of one process in all ways, and writes what it took."""
    torch.set_num_threads(1)
    store, is_whole, num_shards = results / f"store{size}", size == 0, max(1, size)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=process, world_size=num_shards
    )
    found = {}
    for name, (num_users, options) in WAYS.items():
        user, item, task = dealt_out(folder, num_users)
        first, last = (item.size(0) * place // num_shards for place in (process, process + 1))
        shard = item[first:last].clone()
        del item
        of_shard = {} if is_whole else {"item_offset": first}
        ranking = partial(rank, (user, shard), task, **of_shard, **options)
        dist.barrier()
        with counted_bytes() as sent:
            start = time.process_time()
            ranked, megabytes = extra_memory(ranking)
            seconds = time.process_time() - start
        found[name] = {
            "seconds": seconds,
            "bytes": sum(sent),
            "calls": len(sent),
            "edges": task.truth.size(1),
            "shard": shard.numel() * shard.element_size() / 2**20,
            "megabytes": megabytes,
            "checksum": checksum(ranked),
        }
    torch.save(found, results / f"{size}.{process}.pt")
    dist.barrier()
    os._exit(0)


def run(size: int, folder: Path | None, results: Path) -> list[dict[str, dict[str, float]]]:
    """Returns what each of so many processes found."""
    fork, places = multiprocessing.get_context("fork"), range(max(1, size))
    group = [fork.Process(target=work, args=(place, size, folder, results)) for place in places]
    for process in group:
        process.start()
    for process in group:
        process.join()
    return [torch.load(results / f"{size}.{place}.pt") for place in places]


def measure(folder: Path | None) -> None:
    with tempfile.TemporaryDirectory() as results:
        found = {size: run(size, folder, Path(results)) for size in SIZES}
    print(machine())
    print(
        "| what | processes | CPU s each | speed-up | sent each, kB | bytes an edge | calls "
        "| shard MB | extra MB |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, size in product(WAYS, SIZES):
        of_group, (alone,) = [process[name] for process in found[size]], found[0]
        if any(each["checksum"] != alone[name]["checksum"] for each in of_group):
            raise RuntimeError(f"{name}: {size} processes found other ranks than one")
        mean = {key: sum(each[key] for each in of_group) / len(of_group) for key in of_group[0]}
        speed_up = alone[name]["seconds"] / mean["seconds"]
        print(
            f"| {name} | {size or 'one, undivided'} | {mean['seconds']:.2f} | {speed_up:.1f} "
            f"| {mean['bytes'] / 1000:,.0f} | {mean['bytes'] / mean['edges']:.1f} "
            f"| {mean['calls']:.0f} | {mean['shard']:.1f} | {mean['megabytes']:.0f} |"
        )


#: The users, the items, the relevant items of each user, and how many of them are within reach.
NUM_USERS, NUM_ITEMS, NUM_RELEVANT, SHARE_WITHIN_REACH = 10**8, 10**8, 10, 0.2

#: Products in half precision a second, by dimension: well below the 989e12 that an H100 can do.
PRODUCTS = {64: 400e12, 256: 600e12}

#: What maxima, a second look and exact scores take besides the products.
ALL_ELSE = 1.3

#: Bytes a second inside a machine of eight cards (NVLink) and between machines (400 Gb/s).
INSIDE, BETWEEN, CARDS_IN_MACHINE = 300e9, 40e9, 8

#: Seconds of a call inside a machine, and how they grow with the number of cards beyond one.
LATENCY, GROWTH_OF_LATENCY = 30e-6, 16e-6

#: How many users a chunk has, how many calls it takes, and how many bytes a number takes: a copy in
#: half precision beside one in single precision.
ROWS, CALLS, BYTES = 2**13, 3, 6

#: The memory of a card that tables may take, in GB.
MEMORY = 60


def show_cards() -> None:
    """Prints what the rates above say of many cards."""
    print(
        "| cards | of them share the items | dim | products s | network s | latency s "
        "| items GB a card |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for dim, cards in product(PRODUCTS, (8, 64, 256, 1024)):
        for shards in sorted({1, CARDS_IN_MACHINE, cards}):
            users = NUM_USERS * shards / cards
            seconds = 2 * dim * NUM_USERS * NUM_ITEMS / cards / PRODUCTS[dim] * ALL_ELSE
            per_user = 4 * NUM_RELEVANT + 8 + 12 * NUM_RELEVANT * SHARE_WITHIN_REACH
            is_inside = shards <= CARDS_IN_MACHINE
            speed = INSIDE if is_inside else BETWEEN
            network = 2 * (shards - 1) / shards * per_user * users / speed
            call = LATENCY + (0 if is_inside else GROWTH_OF_LATENCY * shards**0.5)
            latency = 0 if shards == 1 else users / ROWS * CALLS * call
            size = NUM_ITEMS / shards * dim * BYTES / 1e9
            fits = "" if size < MEMORY else " (too many)"
            print(
                f"| {cards} | {shards} | {dim} | {seconds:,.1f} | {network:.2f} | {latency:.2f} "
                f"| {size:.1f}{fits} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--cards", action="store_true")
    args = parser.parse_args()
    if args.cards:
        show_cards()
    elif args.folder is None and not args.random:
        parser.error("the folder of the data is needed, or --random, or --cards")
    else:
        measure(None if args.random else args.folder)


if __name__ == "__main__":
    main()
