"""An error in one process is an error in all of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from pyg_recmetrics.processes.exchange import naming_the_end, take_smallest
from pyg_recmetrics.processes.group import num_processes, process_index


@contextmanager
def fail_together(device: torch.device) -> Iterator[None]:
    """Raises in every process if the block raises in one, so that no process waits in vain."""
    try:
        yield
    except BaseException as error:
        _exchange(error, device)
        raise
    _exchange(None, device)


def _exchange(error: BaseException | None, device: torch.device) -> None:
    """Tells the other processes about an error in this one, and raises if one of them has one."""
    if num_processes() == 1:
        return
    failing = torch.tensor(num_processes() if error is None else process_index(), device=device)
    take_smallest(failing)
    source = int(failing)
    if source == num_processes():
        return
    message = _broadcast("" if error is None else _describe(error), source, device)
    if error is None:
        raise RuntimeError(f"process {source} of {num_processes()} could not rank: {message}")


def _describe(error: BaseException) -> str:
    """The type, the message and the notes of an error, in one line."""
    notes: list[str] = getattr(error, "__notes__", [])
    try:
        message = str(error)
    except Exception:  # the processes need to end, whatever the error says
        message = "(without a message that can be read)"
    return " ".join([f"{type(error).__name__}: {message}", *map(str, notes)])


def _broadcast(message: str, source: int, device: torch.device) -> str:
    """Returns the message of the process `source` in every process."""
    content = message.encode(errors="backslashreplace")
    encoded = torch.tensor(list(content), dtype=torch.uint8, device=device)
    size = torch.tensor(encoded.numel(), device=device)
    with naming_the_end():
        dist.broadcast(size, source)
        if source != process_index():
            encoded = torch.empty(int(size), dtype=torch.uint8, device=device)
        dist.broadcast(encoded, source)
    return bytes(encoded.tolist()).decode()
