"""Which processes share this machine, and whether they have ended, as its kernel says."""

import hashlib
import os
import sys
from pathlib import Path

_PROC = Path("/proc")

#: Where the state and the start of a process stand in `/proc/PID/stat`, behind its name.
_STATE, _START = 0, 19


def machine() -> int:
    """Returns a positive number for this machine and its table of processes; zero if unknown.

    Containers of one machine number their processes separately, so they count as several machines.
    """
    if sys.platform != "linux":
        return 0
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text()
        table = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return 0
    return int.from_bytes(hashlib.sha256((boot + table).encode()).digest()[:7], "little") | 1


def start_of(pid: int) -> str | None:
    """Returns when a process of this machine was started; `None` if it has ended, or is hidden."""
    fields = _fields(pid)
    # A process that was killed stays in the table until its parent has asked for it.
    return None if fields is None or fields[_STATE] in "ZX" else fields[_START]


def is_stopped(pid: int) -> bool:
    """Returns whether a process of this machine is stopped, by a signal or a debugger."""
    fields = _fields(pid)
    return fields is not None and fields[_STATE] in "Tt"


def _fields(pid: int) -> list[str] | None:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
