"""What is larger than one call: a job of many parts that is killed again and again."""

import multiprocessing
import random
import signal
import time

import pytest
import torch

from pyg_recmetrics import evaluate, merge
from tests.support.machines.jobs import METRICS, NUM_PARTS, job, part_file, problem

NUM_KILLS = 20


@pytest.fixture(scope="module")
def processes():
    """Makes processes that have imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.machines.jobs"])
    return context


def files(folder):
    return [file for index in range(NUM_PARTS) if (file := part_file(folder, index)).exists()]


def start(processes, folder):
    started = processes.Event()
    process = processes.Process(target=job, args=(folder, started))
    process.start()
    assert started.wait(120)
    return process


def seconds_of_a_part(processes, folder):
    """How long a part takes on this machine, as the job that nothing disturbs says."""
    process = start(processes, folder)
    while not files(folder):
        time.sleep(0.001)
    first = time.monotonic()
    process.join()
    assert process.exitcode == 0
    return (time.monotonic() - first) / (NUM_PARTS - 1)


def kill(process, folder, num_more, seconds):
    """Kills a process some time after it has written some more files."""
    before = len(files(folder))
    while len(files(folder)) < before + num_more and process.is_alive():
        time.sleep(0.001)
    time.sleep(seconds)
    process.kill()
    process.join()


@pytest.mark.slow
def test_a_job_that_is_killed_twenty_times_gives_what_one_call_gives(processes, tmp_path):
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    undisturbed.mkdir()
    folder.mkdir()
    seconds, draw = seconds_of_a_part(processes, undisturbed), random.Random(0)
    for _ in range(NUM_KILLS):
        process = start(processes, folder)
        kill(process, folder, draw.choice([0, 0, 1]), draw.uniform(0, 0.8) * seconds)
        assert process.exitcode == -signal.SIGKILL
    assert 0 < len(files(folder)) < NUM_PARTS
    process = start(processes, folder)
    process.join()
    assert process.exitcode == 0

    merged, one = merge(files(folder)), evaluate(*problem(), METRICS)
    assert dict(merged) == dict(one)
    assert str(merged) == str(one)
    assert merged.recipe() == one.recipe()
    for name, values in one.per_user.items():
        torch.testing.assert_close(merged.per_user[name], values, rtol=0, atol=0, equal_nan=True)
