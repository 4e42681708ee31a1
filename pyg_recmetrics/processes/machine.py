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


def start_of(pid: int) -> int:
    """Returns when a process of this machine was started; zero if that is unknown."""
    fields = _fields(pid)
    return 0 if fields is None else int(fields[_START])


def has_ended(pid: int, start: int) -> bool:
    """Returns whether a process of this machine that was started at a given time has ended."""
    fields = _fields(pid)
    if fields is None:
        return not _exists(pid)
    # A process that was killed stays in the table until its parent has asked for it.
    return fields[_STATE] in "ZX" or int(fields[_START]) != start


def is_stopped(pid: int) -> bool:
    """Returns whether a process of this machine is stopped, by a signal or a debugger."""
    fields = _fields(pid)
    return fields is not None and fields[_STATE] in "Tt"


def _fields(pid: int) -> list[str] | None:
    """Returns what the kernel says of a process; `None` if it has ended, or is hidden."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # which sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
