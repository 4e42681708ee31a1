"""What each of several processes ranks if it holds a shard of the items, in `test_sharded.py`.

python -m tests.support.machines.shards FOLDER FIRST LAST 1 2 3  # seeds, and numbers of processes
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from datetime import timedelta
from functools import cache
from pathlib import Path
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from pyg_recmetrics import RankingTask, distributed, evaluate, rank
from pyg_recmetrics.ranking import sharded
from tests.support.machines.processes import outcome
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

try:
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
except ImportError:  # before torch 2.5
    from torch.distributed._tensor import DTensor, Partial, Replicate, Shard

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


NUM_USERS, NUM_ITEMS, DIM = 90, 4000, 16


def plain_task(**options):
    """A task whose users have ten relevant items each, hardly any of which rank high."""
    generator = torch.Generator().manual_seed(0)
    item = torch.rand(NUM_USERS, NUM_ITEMS, generator=generator).topk(30, dim=1).indices
    user = torch.arange(NUM_USERS).repeat_interleave(10)
    truth = torch.stack([user, item[:, :10].flatten()])
    seen = torch.stack([user, item[:, 10:20].flatten()])
    return RankingTask(truth, seen=seen, num_users=NUM_USERS, num_items=NUM_ITEMS, **options)


def plain_tables():
    generator = torch.Generator().manual_seed(1)
    sizes = (NUM_USERS, DIM), (NUM_ITEMS, DIM), (NUM_ITEMS,)
    return [torch.randn(size, generator=generator) for size in sizes]


def own_part(table):
    """The rows of a table that this process holds, if all hold as many, and the first of them."""
    size, process = dist.get_world_size(), dist.get_rank()
    first, last = len(table) * process // size, len(table) * (process + 1) // size
    return table[first:last], first


def evaluations():
    """What evaluations say, by all items in one process or by those of this process."""
    tables, options = plain_tables(), {}
    if dist.is_initialized():
        parts = [own_part(table) for table in tables[1:]]
        tables, options = [tables[0], *(part for part, _ in parts)], {"item_offset": parts[0][1]}
    person = torch.arange(NUM_USERS) // 3
    found = {
        "default": (plain_task(), {}),
        "all ranks and lists": (plain_task(), {"metrics": ["roc_auc", "coverage@5", "mrr"]}),
        "persons": (plain_task().with_person(person), {"average_over": "person"}),
        "edges": (plain_task(), {"metrics": ["mrr", "hit_rate@10"], "per": "edge"}),
        "margin": (plain_task(), {"metrics": ["roc_auc"], "margin": 0.05}),
        "some users": (plain_task(users=torch.tensor([3, 8, 77])), {}),
    }
    results = {
        name: evaluate(tuple(tables), task, **options, **others)
        for name, (task, others) in found.items()
    }
    return {
        name: (str(result), result.to_dict(), dict(result.per_user), result.recipe())
        for name, result in results.items()
    }


#: What is ranked while the bytes are counted.
COUNTED = {
    "all ranks": {"full": True},
    "to a depth": {"k": 20},
    "lists": {"k": 20, "keep_items": True},
}


def sent():
    """The bytes that this process sends, call by call, for some ways to rank."""
    user, item, _ = plain_tables()
    part, first = own_part(item)
    found = {}
    for name, options in COUNTED.items():
        calls = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(patch.object(sharded, "MAX_ROWS", 40))
            for function in ("all_reduce", "all_gather", "broadcast", "all_to_all_single"):
                noted = _noting(getattr(dist, function), function, calls)
                stack.enter_context(patch.object(dist, function, noted))
            stack.enter_context(patch.object(sharded.ShardRanking, "find", _marking(calls)))
            rank((user, part), plain_task(), item_offset=first, **options)
        found[name] = calls
    return found


def _noting(function, name, calls):
    """A collective that notes how much each process sends if they form a ring."""

    def noted(*args, **kwargs):
        size = dist.get_world_size()
        values = args[1] if name == "all_gather" else args[0]
        num_bytes = values.numel() * values.element_size()
        share = {"all_reduce": 2 * (size - 1) / size, "all_gather": size - 1, "broadcast": 1}[name]
        calls.append((name, str(values.dtype), values.numel(), share * num_bytes))
        return function(*args, **kwargs)

    return noted


def _marking(calls):
    """A ranking that notes where a chunk starts and ends."""
    find = sharded.ShardRanking.find

    def marked(self, chunk):
        calls.append(("start", chunk.truth.row.numel(), chunk.users.numel()))
        found = find(self, chunk)
        calls.append(("end",))
        return found

    return marked


#: What each process computes for a chunk, between what all of them tell each other.
STEPS = ("own_scores", "reaches", "counts", "reaches_of_lists", "listed")


class Spoilt:
    """What goes wrong in one process, while it ranks."""

    def __init__(self, name, process):
        self.name, self.process = name, process

    def __enter__(self):
        self.before = getattr(sharded._LookAtChunk, self.name)

        def spoilt(look, *args):
            if dist.get_rank() == self.process:
                raise MemoryError("no room for a shard")
            return self.before(look, *args)

        setattr(sharded._LookAtChunk, self.name, spoilt)

    def __exit__(self, *error):
        setattr(sharded._LookAtChunk, self.name, self.before)


def failures(folder):
    """What becomes of parts that do not belong together, and of errors in one process."""
    me, size = dist.get_rank(), dist.get_world_size()
    user, item, bias = plain_tables()
    part, first = own_part(item)
    own_bias, _ = own_part(bias)
    row, task = _row(), plain_task()
    whole, rows = [Replicate()], [Shard(0)]
    some, pair = DeviceMesh("cpu", list(range(size - 1))), init_device_mesh("cpu", (1, size))
    changed = user.clone()
    changed[3, 4] += me

    def given(*tables, **options):
        return lambda: rank(tables, task, k=5, **options)

    def on_row(part, kinds=rows, mesh=row):
        return DTensor.from_local(part, mesh, kinds, run_check=False)

    found = {
        "overlap": given(user, part, item_offset=max(0, first - 1)),
        "gap": given(user, part[1:], item_offset=first + 1),
        "too few": given(user, part[: len(part) - (me == size - 1)], item_offset=first),
        "too few rows": given(user, on_row(part[: len(part) - (me == 1)])),
        "offset of a DTensor": given(user, on_row(part), item_offset=first),
        "offset of scores": lambda: rank(bias, task, item_offset=0),
        "other offsets": given(user, part, item_offset=first if me else -1),
        "columns": given(user, on_row(item, [Shard(1)])),
        "partial": given(user, on_row(item, [Partial()])),
        "users along the same axis": given(on_row(own_part(user)[0]), on_row(part)),
        "whole bias": given(user, on_row(part), bias),
        "replicated bias": given(user, on_row(part), on_row(bias, whole)),
        "bias of one": given(user, part, *([own_bias] if me else []), item_offset=first),
        "long bias": given(user, part, bias, item_offset=first),
        "other users": given(changed, part, item_offset=first),
        "other dimension": given(user[:, me:], part[:, me:], item_offset=first),
        "other type": given(user, part.double() if me else part, item_offset=first),
        "NaN": given(user, part * (torch.nan if me == 1 else 1), item_offset=first),
        "large bias": given(user * 1e19, part * 1e19, own_bias, item_offset=first),
        "dense": given(user, part, item_offset=first, algorithm="dense"),
        "recommend": given(user, part, item_offset=first, algorithm="recommend"),
        "chunks": given(user, part, item_offset=first, batch_size=1 + me),
        "other mesh": given(user, on_row(part, mesh=some)),
        "two meshes": given(DTensor.from_local(user, pair, [Replicate()] * 2), on_row(part)),
        "one offset": given(user, part if me else item, **({"item_offset": first} if me else {})),
    }
    found = {name: outcome(function) for name, function in found.items()}
    with distributed.alone():
        found["alone"] = outcome(given(user, on_row(part)))
        found["alone with a part"] = outcome(given(user, part, item_offset=first))
    for name in STEPS:
        with Spoilt(name, 1):
            found[name] = outcome(given(user, part, item_offset=first, keep_items=True))
    kept = {"resume": folder / "kept", "keep_items": True}
    found["resumed"] = [fields_of(given(user, part, item_offset=first, **kept)()) for _ in "12"]
    start, end = first + (me > 0), first + len(part) + (me < size - 1)
    found["other parts"] = outcome(given(user, item[start:end], item_offset=start, **kept))
    found["afterwards"] = rank((user, part), task, k=5, item_offset=first).rank
    return found


def failure_on_a_mesh():
    """What becomes of an error in one of four processes, where two of them share the users."""
    user, item, _ = plain_tables()
    mesh = _mesh(4, ("users", "items"))
    half = item[: len(item) // 2] if mesh.get_local_rank("items") == 0 else item[len(item) // 2 :]
    part = _on_mesh(half, mesh, [Replicate(), Shard(0)])
    with Spoilt("counts", 1):
        error = outcome(lambda: rank((user, part), plain_task(), k=5, batch_size=4))
    return error, rank((user, part), plain_task(), k=5).rank


def killed():
    """The last process is killed while it looks at its shard."""
    user, item, _ = plain_tables()
    part, first = own_part(item)

    def dying(look, *args):
        if dist.get_rank() == dist.get_world_size() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return counts(look, *args)

    counts = sharded._LookAtChunk.counts
    with patch.object(sharded._LookAtChunk, "counts", dying):
        return outcome(lambda: rank((user, part), plain_task(), k=5, item_offset=first))


def work(process, size, folder, seeds):
    """Ranks random cases, and writes what it finds into the folder."""
    join(process, size, folder)
    found = {seed: fields_of(ShardCase(seed).rank_shard()) for seed in seeds}
    if size in (2, 3):
        found |= {"evaluations": evaluations(), "sent": sent(), "failures": failures(folder)}
    if size == 4:
        found["mesh"] = failure_on_a_mesh()
    torch.save(found, folder / f"{process}.pt")
    dist.barrier()
    if size == 2:
        torch.save(killed(), folder / f"{process}.killed.pt")
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
