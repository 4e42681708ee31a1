"""What each of several processes ranks if it holds a shard of the items, in `test_sharded.py`.

python -m tests.support.machines.shards FOLDER FIRST LAST 1 2 3  # seeds, and numbers of processes
"""

import contextlib
import multiprocessing
import os
import sys
import warnings
from datetime import timedelta
from functools import cache
from pathlib import Path
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.ranking import sharded
from tests.support.tools.fuzz import EXPECTED_WARNINGS
from tests.support.tools.fuzz_cases import (
    Draw,
    draw_depth,
    draw_embeddings,
    draw_patches,
    draw_task,
    draw_width,
    task_tensors,
)

#: How the tables are divided among processes.
FORMS = ("offset", "rows", "users and items", "items and users")


class ShardCase:
    """A random ranking of embeddings, and how to divide them. The seed decides all of it."""

    def __init__(self, seed):
        draw = Draw(seed)
        task = draw_task(draw)
        while not task.has_retrievable_truth:
            task = draw_task(draw)
        self.tensors, task = task_tensors(draw, task)
        words, user, item, bias = draw_embeddings(draw, task)
        if draw.chance(0.2):  # the same items again and again, in other shards
            item = item[torch.arange(len(item)) % max(1, len(item) // 4)]
        self.tables = tuple(table for table in (user, item, bias) if table is not None)
        self.options = {
            "ties": draw.choice(["index", "index", "best", "mean"]),
            "batch_size": draw.choice([None, None, 1, 2, 5]),
            **draw.pick({"k": 14, "full": 5, "default": 2}, draw_depth(draw, task)),
            **draw.pick({"none": 6, "all": 2, "some": 2}, draw_width(draw)),
        }
        has_fast_bfloat16 = draw.choice([True, False])
        self.patches = [
            *draw_patches(draw, task),
            (sharded, "has_fast_bfloat16", lambda device: has_fast_bfloat16),
            (sharded, "MAX_ROWS", draw.choice([2, 7, 2**13])),
        ]
        self.draw, self.form = draw, draw.choice(FORMS)
        self.words = f"{seed}: {self.form} of {words}, {self.options}, {task.own is not None}"

    def rank(self):
        """The ranking by this process alone."""
        return self._rank(self.tables)

    def rank_shard(self):
        """The ranking by all processes."""
        user, item, *bias = self.tables
        size, form = dist.get_world_size(), self.form
        if form in ("offset", "rows") or size % 2:
            first, last = self._blocks(item, size)[dist.get_rank()]
            parts = [table[first:last] for table in (item, *bias)]
            if form == "offset":
                return self._rank((user, *parts), item_offset=first)
            return self._rank((user, *(_by_rows(part) for part in parts)))
        axes = ("users", "items") if form == "users and items" else ("items", "users")
        mesh = _mesh(size, axes)
        share, shard = (mesh.get_local_rank(axis) for axis in ("users", "items"))
        first, last = self._blocks(item, size // 2 if axes[0] == "users" else 2)[shard]
        kinds = [Shard(0) if axis == "items" else Replicate() for axis in axes]
        items = [_on_mesh(table[first:last], mesh, kinds) for table in (item, *bias)]
        users = self._blocks(user, 2 if axes[0] == "users" else size // 2)
        if self.draw.chance(0.6):
            start, end = users[share]
            kinds = [Shard(0) if axis == "users" else Replicate() for axis in axes]
            user = _on_mesh(user[start:end], mesh, kinds)
        return self._rank((user, *items))

    def _blocks(self, table, num_blocks):
        """The first and the last row of each block, of which some may be empty."""
        cuts = sorted(self.draw.randint(0, len(table)) for _ in range(num_blocks - 1))
        return list(zip([0, *cuts], [*cuts, len(table)], strict=True))

    def _rank(self, tables, **options):
        with contextlib.ExitStack() as stack:
            for owner, name, value in self.patches:
                stack.enter_context(patch.object(owner, name, value))
            stack.enter_context(warnings.catch_warnings())
            for message in EXPECTED_WARNINGS:
                warnings.filterwarnings("ignore", message=message)
            return rank(tables, RankingTask(**self.tensors), **self.options, **options)


@cache
def _mesh(size, axes):
    """A mesh of two rows."""
    return init_device_mesh("cpu", (2, size // 2), mesh_dim_names=axes)


@cache
def _row():
    return init_device_mesh("cpu", (dist.get_world_size(),))


def _by_rows(part):
    return _on_mesh(part, _row(), [Shard(0)])


def _on_mesh(part, mesh, kinds):
    # What it says of its shape is wrong if parts are uneven.
    return DTensor.from_local(part, mesh, kinds, run_check=False)


def join(process, size, folder):
    """Makes a process one of a group."""
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=process,
        world_size=size,
        timeout=timedelta(seconds=30),
    )


def fields_of(ranked):
    """All that a ranking says."""
    return {name: value for name, value in ranked.to_dict().items() if name != "catalogue"}


def work(process, size, folder, seeds):
    """Ranks random cases, and writes what it finds into the folder."""
    join(process, size, folder)
    found = {seed: fields_of(ShardCase(seed).rank_shard()) for seed in seeds}
    torch.save(found, folder / f"{process}.pt")
    dist.barrier()
    os._exit(0)


def start(target, size, *arguments):
    """Forks processes, which need not import torch again, and returns how they end."""
    fork = multiprocessing.get_context("fork")
    group = [fork.Process(target=target, args=(each, size, *arguments)) for each in range(size)]
    for process in group:
        process.start()
    for process in group:
        process.join()
    return [process.exitcode for process in group]


def main():
    torch.set_num_threads(1)
    first, last, *sizes = map(int, sys.argv[2:])
    for size in sizes:
        folder = Path(sys.argv[1]) / str(size)
        folder.mkdir()
        print(*start(work, size, folder, range(first, last)))


if __name__ == "__main__":
    main()
