"""What the kernel says of processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pyg_recmetrics.processes.machine import is_stopped, machine, start_of

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
    assert start is not None
    assert start == start_of(process.pid) != start_of(os.getpid())
    process.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(process.pid))
    assert start_of(process.pid) == start
    process.kill()
    until(lambda: start_of(process.pid) is None)  # although nobody has asked for it yet
    process.wait()
    assert start_of(process.pid) is None
    assert not is_stopped(process.pid)
