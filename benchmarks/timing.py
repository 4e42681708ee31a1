"""How the benchmarks take times and memory."""

import ctypes
import math
import re
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch

Result = TypeVar("Result")

#: What takes longer than this many seconds is timed once.
SLOW = 10

_FORGET_PEAK = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


def in_turn(functions: Mapping[str, Callable[[], object]], num_runs: int) -> dict[str, list[float]]:
    """Calls all functions in turn, several times, and returns the seconds of each call.

    The caller has called each of them before, to warm up.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(num_runs):
        for name, function in functions.items():
            if seconds[name] and seconds[name][0] > SLOW:
                continue
            start = time.perf_counter()
            function()
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(each) for name, each in seconds.items()}


def extra_memory(function: Callable[[], Result]) -> tuple[Result, float]:
    """Returns what a function returns, and the megabytes that it took at its peak.

    These are resident memory above what the process had before. They are `NaN` where the operating
    system is not Linux.
    """
    if not _FORGET_PEAK.exists():
        return function(), math.nan
    # Memory that was freed, but not given back, would hide what the function takes.
    ctypes.CDLL(None).malloc_trim(0)
    _FORGET_PEAK.write_text("5")
    before = _status("VmRSS")
    result = function()
    return result, (_status("VmHWM") - before) / 2**10


def _status(name: str) -> int:
    """Returns a line of the status of this process, in KiB."""
    found = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(), flags=re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{_STATUS} has no line {name}")
    return int(found[1])


def machine(device: torch.device | None = None) -> str:
    """Names the version of torch and what it runs on."""
    if device is not None and device.type == "cuda":
        place = torch.cuda.get_device_name(device)
    else:
        place = f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
    return f"torch {torch.__version__}, {place}"
