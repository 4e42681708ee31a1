"""What a process holds that is given a share of a task, with 1, 2 and 4 processes on one machine.

    python benchmarks/shares.py

Every process is started anew, evaluates a small task, reads its own part of files that are mapped
into memory, and evaluates. Its memory is the resident memory at the peak, above that before it
reads. It needs Linux, which tells both.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

from pyg_recmetrics import RankingTask, evaluate

DIM, NUM_ITEMS, NUM_TRUE, NUM_SEEN = 16, 2000, 10, 30


def write(folder: Path, num_users: int) -> None:
    generator = torch.Generator().manual_seed(0)
    half = NUM_ITEMS // 2
    for name, num, first in (("truth", NUM_TRUE, 0), ("seen", NUM_SEEN, half)):
        items = first + torch.randint(0, half, (num_users, num), generator=generator)
        torch.save(items.int(), folder / f"{name}.pt")
    torch.save(torch.randn(num_users, DIM, generator=generator), folder / "user.pt")
    torch.save(torch.randn(NUM_ITEMS, DIM, generator=generator), folder / "item.pt")


def edges(folder: Path, name: str, users: slice) -> torch.Tensor:
    items = torch.load(folder / f"{name}.pt", mmap=True)[users].long()
    user = torch.arange(items.size(0)).repeat_interleave(items.size(1))
    return torch.stack([user, items.flatten()])


def work(folder: Path, index: int, size: int, num_users: int) -> None:
    store = f"file://{folder / f'store{size}'}"
    dist.init_process_group("gloo", init_method=store, rank=index, world_size=size)
    small = RankingTask([[0], [0]], num_users=1, num_items=1, user_ids=[index], is_share=True)
    evaluate((torch.ones(1, 1), torch.ones(1, 1)), small, ["recall@20", "ndcg@20"])
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before, start = memory("VmRSS"), time.process_time()
    own = slice(num_users * index // size, num_users * (index + 1) // size)
    user = torch.load(folder / "user.pt", mmap=True)[own].clone()
    task = RankingTask(
        edges(folder, "truth", own),
        seen=edges(folder, "seen", own),
        num_users=len(user),
        num_items=NUM_ITEMS,
        user_ids=range(own.start, own.stop),
        is_share=True,
    )
    item = torch.load(folder / "item.pt")
    result = evaluate((user, item), task, ["recall@20", "ndcg@20"], batch_size=512)
    if index == 0:
        seconds = time.process_time() - start
        print(
            f"| {size} | {task.num_users:,} | {memory('VmHWM') - before:,.0f} | {seconds:.1f} "
            f"| {result['ndcg@20']!r} |",
            flush=True,
        )
    dist.barrier()
    os._exit(0)


def memory(name: str) -> float:
    """The resident memory, now as `VmRSS` or at the peak as `VmHWM`, in MB."""
    (kilobytes,) = re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--num-users", type=int, default=200_000)
    parser.add_argument("--work", nargs=3, metavar=("FOLDER", "INDEX", "SIZE"))
    args = parser.parse_args()
    if args.work:
        folder, index, size = args.work
        work(Path(folder), int(index), int(size), args.num_users)
    print("| processes | users of each | MB of each | CPU seconds of each | ndcg@20 |")
    print("|---:|---:|---:|---:|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), args.num_users)
        for size in (1, 2, 4):
            command = [sys.executable, __file__, "--num-users", str(args.num_users), "--work"]
            group = [
                subprocess.Popen([*command, folder, str(index), str(size)]) for index in range(size)
            ]
            for process in group:
                process.wait()


if __name__ == "__main__":
    main()
