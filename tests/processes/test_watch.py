"""One process of a group fails, ends, stops or stays away, and the others say who it was.

`tests/support/machines/faults.py` has the cases. Each has three processes of its own, and all cases
run at the same time.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from pyg_recmetrics.processes import watch
from tests.support.machines import faults

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available() and sys.platform == "linux"),
    reason="needs torch.distributed's gloo, and processes that can be forked",
)

ENDED = "ended while others ranked, without an error: it was killed"
NEVER_JOINED = "ended, or did not join the others"
LATE = f"the others within {faults.LIMIT:.0f} s, which 'pyg_recmetrics.distributed.timeout()' sets"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with what each process has seen, but for those that could not tell it."""
    folder = tmp_path_factory.mktemp("faults")
    command = [sys.executable, "-m", faults.__name__, folder]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return folder


def read(folder, case, missing=None):
    """What the processes have seen, all but one."""
    files = [folder / f"{case}.{index}.json" for index in range(faults.SIZES[case])]
    assert [file.exists() for file in files] == [index != missing for index in range(len(files))]
    return [json.loads(file.read_text()) for file in files if file.exists()]


@pytest.mark.parametrize(
    ("case", "process", "wanted"),
    [
        ("killed before", 1, NEVER_JOINED),
        ("killed in", 1, ENDED),
        ("killed with the store", 0, ENDED),
        ("killed while it waits", 2, ENDED),
        ("stopped", 1, f"has given no sign of life for {faults.LIMIT:.0f} s: it was stopped"),
        ("stopped with the store", 0, "was stopped while others ranked"),
        ("never joining", 1, f"did not join {LATE}"),
        ("stuck", 1, f"neither ranked a chunk nor joined {LATE}"),
    ],
)
def test_the_others_name_who_has_gone(folder, case, process, wanted):
    for seen in read(folder, case, missing=process):
        name = rf"RuntimeError: process {process} of {faults.NUM_PROCESSES}( on \S+)? "
        assert re.match(name + re.escape(wanted), seen["outcome"][0])


@pytest.mark.parametrize(
    "case",
    [
        "killed in",
        "killed with the store",
        "stopped",
        "stopped with the store",
        "raising",
    ],
)
def test_they_stop_after_a_chunk_instead_of_their_share(folder, case):
    missing = None if "raising" in case else 0 if "store" in case else 1
    for seen in read(folder, case, missing):
        _, num_chunks = seen["outcome"]
        assert num_chunks < faults.NUM_CHUNKS


def test_a_process_that_was_killed_after_a_ranking_is_missed_in_the_next(folder):
    for seen in read(folder, "killed after", missing=1):
        first, (second, num_chunks) = seen["outcome"]
        assert first == ["ranked", faults.NUM_CHUNKS]
        assert re.match(rf"RuntimeError: process 1 of 3( on \S+)? {NEVER_JOINED}", second)
        assert num_chunks == 0


def test_whoever_gave_up_does_not_wait_again(folder):
    for index, seen in enumerate(read(folder, "late")):
        (first, _), (second, _) = seen["outcome"]
        assert first.startswith("RuntimeError: process ")
        if index != 1:
            since = r"RuntimeError: the process group is out of step, since process 1 of 3"
            assert re.match(since, second)


@pytest.mark.parametrize(
    ("case", "own", "told"),
    [
        ("raising", "ValueError: no such user", "could not rank: ValueError: no such user"),
        ("raising elsewhere", "ZeroDivisionError: ", "left the others: ZeroDivisionError: "),
    ],
)
def test_the_others_say_what_was_raised(folder, case, own, told):
    for index, seen in enumerate(read(folder, case)):
        pattern = (
            own if index == 1 else rf"RuntimeError: process 1 of {faults.SIZES[case]} on \S+ {told}"
        )
        assert re.match(pattern, seen["outcome"][0])


def test_a_process_that_gets_on_may_take_longer_than_the_limit(folder):
    for seen in read(folder, "slow"):
        assert seen["outcome"] == ["ranked", faults.NUM_CHUNKS]
        assert seen["seconds"] > faults.LIMIT


def test_a_library_may_hold_the_lock_of_python(folder):
    for seen in read(folder, "lock held"):
        assert seen["outcome"] == ["ranked", faults.NUM_CHUNKS]
        assert seen["seconds"] > 3 * faults.LIMIT


@pytest.mark.parametrize("case", [case for case in faults.CASES if case != "slow"])
def test_nobody_waits_for_long(folder, case):
    for file in folder.glob(f"{case}.*.json"):
        assert json.loads(file.read_text())["seconds"] < 30


@pytest.fixture
def clock(monkeypatch):
    """A function that stops everybody for some seconds."""
    seconds, original = [0.0], time.monotonic
    monkeypatch.setattr(watch.time, "monotonic", lambda: original() + seconds[0])

    def stop(duration):
        seconds[0] += duration

    return stop


def test_nobody_is_missed_after_all_were_stopped_for_a_while(clock):
    """As a queue does that suspends a job, or who stops it by its keys and lets it go on."""
    store, facts = dist.HashStore(), [watch.Facts(0, 1, 1, 1)] * 2
    watches = [watch.Watch(store, index, 2, limit=60.0) for index in range(2)]
    try:
        for each in watches:
            each.join(facts)
        time.sleep(0.7)
        clock(50.0)
        for each in watches:
            each.look()
        time.sleep(1.2)
        for each in watches:
            each.look()
            assert each.gone is None
    finally:
        for each in watches:
            each.leave(None)
