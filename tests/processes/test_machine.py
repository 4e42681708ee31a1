"""What the kernel says of processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pyg_recmetrics.processes.machine import has_ended, is_stopped, machine, start_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_machine_is_the_same_for_all_of_its_processes():
    code = "from pyg_recmetrics.processes.machine import machine; print(machine())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(done.stdout) == machine() > 0
    assert machine() < 2**63


def test_a_process_is_known_until_it_has_ended():
    process = subprocess.Popen(["sleep", "1000"])
    start = start_of(process.pid)
    assert start > start_of(1)
    assert not has_ended(process.pid, start)
    assert has_ended(process.pid, start - 1)  # another process, which had the same number
    process.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(process.pid))
    assert not has_ended(process.pid, start)
    process.kill()
    until(lambda: has_ended(process.pid, start))  # although nobody has asked for it yet
    process.wait()
    assert has_ended(process.pid, start)
    assert start_of(process.pid) == 0
    assert not is_stopped(process.pid)


def test_a_process_that_is_hidden_has_not_ended(monkeypatch, tmp_path):
    monkeypatch.setattr("pyg_recmetrics.processes.machine._PROC", tmp_path)
    assert not has_ended(os.getpid(), 1)
    assert machine() == 0
