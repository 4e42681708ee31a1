"""Rankings whose processes are killed at any moment, and which go on from their folder.

python -m tests.support.machines.kills FOLDER  # prints how processes ended and how many they ranked
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import warnings
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
import torch.distributed as dist

from pyg_recmetrics import evaluate, rank
from pyg_recmetrics.ranking import finished, resume_folder
from pyg_recmetrics.ranking.schedule import Schedule
from tests.support.cases.random_tasks import random_scores, random_task

NUM_USERS, NUM_ITEMS = 60, 30

#: How many processes rank in the attempts at a ranking, until it is done.
SIZES = (1, 2, 3, 1)


class RepeatingModel(torch.nn.Module):
    """Recommends too few items to everybody, and one of them twice to a few."""

    def __init__(self, scores):
        super().__init__()
        self.register_buffer("scores", scores)

    def recommend(self, users, k):
        lists = self.scores[users].argsort(dim=1, descending=True)[:, : min(k, 4)]
        lists[users < 3, 1] = lists[users < 3, 0]
        return lists


def rankings():
    """What is ranked, by name: functions of a folder and the number of users in a chunk."""
    task = random_task(NUM_USERS, NUM_ITEMS, truth_share=0.1, seen_share=0.2, seed=1)
    scores = random_scores(task, 2)
    is_masked = random_scores(task, 3) < 0.3
    is_masked[:, 0] = False
    masked, ties = scores.masked_fill(is_masked, -torch.inf), (10 * scores).floor()
    large = random_task(2000, NUM_ITEMS, truth_share=0.05, seen_share=0, seed=4)
    tables = (random_scores(large, 5), torch.eye(NUM_ITEMS))
    return {
        "counts": partial(rank, lambda users: masked[users], task, full=True, algorithm="dense"),
        "counts and lists": partial(rank, masked, task, full=True, keep_items=6),
        "ties": partial(rank, ties, task, k=3, keep_items=True, ties="mean", algorithm="dense"),
        "warnings": partial(rank, RepeatingModel(scores), task, k=6, keep_items=True),
        "margin": partial(evaluate, tables, large, ["ndcg@5"], margin=0.015),
    }


def seen(ranking, **options):
    """What a ranking returns and warns of, as files can hold it."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = ranking(**options)
    if hasattr(found, "sampling"):
        values = {"values": found.per_user["ndcg@5"], "sampling": repr(found.sampling)}
    else:
        values = found.to_dict()
    return values | {"warnings": [str(warning.message) for warning in warned]}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def dying(function, number, when):
    """A function that dies at the call of a number: before it, after it, or never."""
    calls = iter(range(number))

    def call(*args, **options):
        is_last = next(calls, None) is None
        if is_last and when == "before":
            die()
        result = function(*args, **options)
        if is_last and when == "after":
            die()
        return result

    return call


def half_written(save, number):
    calls = iter(range(number))

    def write(file, **arrays):
        if next(calls, None) is None:
            file.write(b"PK\3\4 and no more")
            file.flush()
            die()
        save(file, **arrays)

    return write


def arrange_death(stack, draw):
    """Lets this process be killed at some moment."""
    number = draw.randrange(4)
    match draw.choice(["chunk", "write", "fsync", "rename", "renamed", "time"]):
        case "chunk":
            chunk = dying(Schedule._chunk, 2 * number, "before")
            stack.enter_context(patch.object(Schedule, "_chunk", lambda *given: chunk(*given)))
        case "write":
            save = half_written(resume_folder.np.savez, number)
            stack.enter_context(patch.object(resume_folder.np, "savez", save))
        case "fsync":
            stack.enter_context(patch.object(os, "fsync", dying(os.fsync, number, "before")))
        case "rename" | "renamed" as moment:
            when = "before" if moment == "rename" else "after"
            replace = dying(Path.replace, number, when)
            stack.enter_context(patch.object(Path, "replace", lambda *given: replace(*given)))
        case "time":
            timer = threading.Timer(draw.uniform(0, 0.02), die)
            timer.daemon = True
            timer.start()


def work(process, size, folder, name, seed, num_ranked):
    """What one process does; the last one is killed, unless the seed is `None`."""
    draw = random.Random(seed)
    if size > 1:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder / f'store of {seed}'}",
            rank=process,
            world_size=size,
            timeout=timedelta(seconds=30),
        )
    every = Schedule.chunks

    def counted(schedule, num_rows):
        for chunk in every(schedule, num_rows):
            yield chunk
            with num_ranked.get_lock():
                num_ranked.value += chunk.users.numel()

    with ExitStack() as stack:
        stack.enter_context(patch.object(finished, "SECONDS_BETWEEN", 0))
        stack.enter_context(patch.object(Schedule, "chunks", counted))
        batch_size = draw.choice([2, 3, 5]) * (40 if name == "margin" else 1)
        if seed is not None and process == size - 1:
            arrange_death(stack, draw)
        values = seen(rankings()[name], resume=folder / "resume", batch_size=batch_size)
    if process == 0:
        torch.save(values, folder / "new.pt")
        (folder / "new.pt").rename(folder / "result.pt")
    # As the interpreter ends, gloo's threads may abort a process whose peer was killed.
    os._exit(0)


def attempt(size, *arguments):
    """Lets processes rank, and returns how they end."""
    fork = multiprocessing.get_context("fork")
    group = [fork.Process(target=work, args=(process, size, *arguments)) for process in range(size)]
    for process in group:
        process.start()
    for process in group:
        process.join()
    return [process.exitcode for process in group]


def main():
    torch.set_num_threads(1)
    for number, name in enumerate(rankings()):
        folder = Path(sys.argv[1]) / name
        folder.mkdir()
        num_ranked = multiprocessing.get_context("fork").Value("i", 0)
        codes = []
        for turn, size in enumerate(SIZES):
            codes.append(attempt(size, folder, name, 100 * number + turn, num_ranked))
        codes.append(attempt(1, folder, name, None, num_ranked))
        print(json.dumps([name, codes, num_ranked.value]), flush=True)


if __name__ == "__main__":
    main()
