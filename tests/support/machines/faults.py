"""What becomes of processes that rank together when one of them fails, ends, stops or stays away.

python -m tests.support.machines.faults FOLDER  # all cases at once, each with processes of its own
"""

import ctypes
import json
import multiprocessing
import os
import signal
import socket
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from pyg_recmetrics import RankingTask, distributed, rank
from pyg_recmetrics.processes import watch
from pyg_recmetrics.ranking.ranking import OpenRanking

NUM_USERS, NUM_ITEMS, NUM_PROCESSES = 60, 10, 3

#: How many seconds processes wait in cases in which one does not get on.
LIMIT = 2.0

#: How many chunks a process ranks, and how many seconds each takes at least.
NUM_CHUNKS, SECONDS = NUM_USERS // NUM_PROCESSES, 0.5


def ranked(at_chunk=None, seconds=SECONDS, num_users=NUM_USERS):
    """Ranks a user at a time, and calls a function before a chunk of this process.

    Returns what became of it and how many chunks were ranked.
    """
    truth = torch.stack([torch.arange(num_users), torch.arange(num_users) % NUM_ITEMS])
    task = RankingTask(truth, num_users=num_users, num_items=NUM_ITEMS)
    is_ranking, chunks = [False], []

    def scores(users):
        if is_ranking[0]:
            chunks.append(users)
            if at_chunk is not None:
                at_chunk(len(chunks))
            time.sleep(seconds)
        return torch.arange(float(NUM_ITEMS)).expand(len(users), -1)

    # Before anything is ranked, processes ask for the scores of a few users.
    original = OpenRanking.rank
    OpenRanking.rank = lambda *arguments: (is_ranking.__setitem__(0, True), original(*arguments))
    try:
        rank(scores, task, batch_size=1)
    except BaseException as error:
        return f"{type(error).__name__}: {error}", len(chunks)
    finally:
        OpenRanking.rank = original
    return "ranked", len(chunks)


def send(number):
    os.kill(os.getpid(), number)


def on(process, act):
    """Returns what to do before a chunk: something in the third chunk of one process."""
    return lambda number: act() if number == 3 and dist.get_rank() == process else None


def killed_before():
    if dist.get_rank() == 1:
        send(signal.SIGKILL)
    return ranked()


def killed_in(process=1):
    return ranked(on(process, partial(send, signal.SIGKILL)))


def killed_while_it_waits():
    """The last process has nothing to rank, and is killed while it waits for the others."""
    if dist.get_rank() == 2:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 2)
    return ranked(num_users=2, seconds=5)


def killed_after():
    first = ranked(seconds=0)
    if dist.get_rank() == 1:
        send(signal.SIGKILL)
    return first, ranked()


def raising():
    def fail():
        raise ValueError("no such user")

    return ranked(on(1, fail))


def raising_elsewhere():
    """An error where no process looks out for one, and after which the others still exchange."""
    if dist.get_rank() == 1:
        OpenRanking.rank = lambda *arguments: 1 / 0
    return ranked(seconds=0)


def stopped(process=1):
    with distributed.timeout(LIMIT):
        return ranked(on(process, partial(send, signal.SIGSTOP)))


def never_joining():
    if dist.get_rank() == 1:
        time.sleep(1000)
    with distributed.timeout(LIMIT):
        return ranked()


def late():
    """One process comes after the others have given it up, and have tried to rank again."""
    if dist.get_rank() == 1:
        time.sleep(2 * LIMIT)
    with distributed.timeout(LIMIT):
        return ranked(seconds=0), ranked(seconds=0)


def stuck():
    with distributed.timeout(LIMIT):
        return ranked(on(1, lambda: time.sleep(1000)), seconds=0)


def slow():
    """One process takes longer than the limit, but gets on."""
    with distributed.timeout(LIMIT):
        return ranked(seconds=LIMIT / 8 if dist.get_rank() == 1 else 0)


def lock_held():
    """One process calls a library that holds the lock of Python."""
    watch._SILENCE = LIMIT
    return ranked(on(1, lambda: ctypes.PyDLL(None).sleep(3 * int(LIMIT))), seconds=0.1)


#: The cases by name.
CASES = {
    "killed before": killed_before,
    "killed in": killed_in,
    "killed with the store": partial(killed_in, 0),
    "killed while it waits": killed_while_it_waits,
    "killed after": killed_after,
    "raising": raising,
    "raising elsewhere": raising_elsewhere,
    "stopped": stopped,
    "stopped with the store": partial(stopped, 0),
    "never joining": never_joining,
    "late": late,
    "stuck": stuck,
    "slow": slow,
    "lock held": lock_held,
}

#: How many processes each case has.
SIZES = dict.fromkeys(CASES, NUM_PROCESSES)

#: The processes that never end.
STUCK = {"stopped": 1, "stopped with the store": 0, "never joining": 1, "stuck": 1}


def work(process, case, init_method, file):
    """What one process does, and writes into a file."""
    dist.init_process_group(
        "gloo",
        init_method=init_method,
        rank=process,
        world_size=SIZES[case],
        timeout=timedelta(seconds=60),
    )
    dist.barrier()
    start = time.monotonic()
    outcome = CASES[case]()
    result = {"outcome": outcome, "seconds": time.monotonic() - start}
    file.with_suffix(".part").write_text(json.dumps(result))
    file.with_suffix(".part").rename(file)
    # As the interpreter ends, gloo's threads may abort a process whose peer was killed.
    os._exit(0)


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def main():
    """Forks the processes of all cases, and kills those that never end once others have."""
    torch.set_num_threads(1)
    folder, fork = Path(sys.argv[1]), multiprocessing.get_context("fork")
    left = {}
    for number, case in enumerate(CASES):
        init = f"tcp://127.0.0.1:{free_port()}" if "store" in case else f"file://{folder}/{number}"
        for process in range(SIZES[case]):
            file = folder / f"{case}.{process}.json"
            left[case, process] = fork.Process(target=work, args=(process, case, init, file))
            left[case, process].start()
    end = time.monotonic() + 100
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = {key: process for key, process in left.items() if process.is_alive()}
        for case, index in STUCK.items():
            if [key for key in left if key[0] == case] == [(case, index)]:
                left[case, index].kill()
    for process in left.values():
        process.kill()


if __name__ == "__main__":
    main()
