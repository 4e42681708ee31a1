"""An error in one process is an error in all of them, and so is the end of one."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import torch

from pyg_recmetrics.processes.exchange import collect_parts, from_process, take_smallest
from pyg_recmetrics.processes.group import (
    name_of_process,
    num_processes,
    process_index,
    timeout_in_seconds,
)
from pyg_recmetrics.processes.watch import (
    Facts,
    Stopped,
    Watch,
    connected_store,
    current,
    out_of_step,
)


def watching(device: torch.device) -> AbstractContextManager[None]:
    """Lets processes notice one another's end, from when all have come here until the block ends.

    All processes come here at the same time, or wait for those who do not. Within another one, this
    does nothing.
    """
    is_needed = num_processes() > 1 and current.get() is None
    return _watching(device) if is_needed else nullcontext()


@contextmanager
def _watching(device: torch.device) -> Iterator[None]:
    store = connected_store()
    if store is None:
        yield
        return
    if why := out_of_step.get(torch.distributed.group.WORLD):
        raise RuntimeError(
            f"the process group is out of step, since {why}: destroy it, and initialise another one"
        )
    watch = Watch(store, process_index(), num_processes(), timeout_in_seconds.get())
    token = current.set(watch)
    told = None
    try:
        own = torch.tensor([Facts.own()], device=device)
        of_all = collect_parts(own, [1] * num_processes())
        watch.join([Facts(*facts) for facts in of_all.tolist()])
        yield
    except BaseException as error:
        told = _describe(error)
        raise
    finally:
        current.reset(token)
        watch.leave(told)


def look_around() -> None:
    """Raises if another process has ended or raised an error. Call it after each chunk.

    This takes no time: it looks at what a thread has found out. Call it within
    :func:`fail_together`.
    """
    watch = current.get()
    if watch is not None:
        watch.look()


def fail_together(device: torch.device) -> AbstractContextManager[None]:
    """Raises in every process if the block raises in one, so that no process waits in vain."""
    return _failing_together(device) if num_processes() > 1 else nullcontext()


@contextmanager
def _failing_together(device: torch.device) -> Iterator[None]:
    try:
        yield
    except Stopped as stopped:
        _exchange(None, device)
        raise RuntimeError(str(stopped)) from None
    except BaseException as error:
        with suppress(RuntimeError):  # its own error says more
            _exchange(error, device)
        raise
    _exchange(None, device)


def _exchange(error: BaseException | None, device: torch.device) -> None:
    """Tells the other processes about an error in this one, and raises if one of them has one."""
    told = "" if error is None else f"{name_of_process()} could not rank: {_describe(error)}"
    watch = current.get()
    if watch is not None:
        if error is not None and watch.gone is not None:
            return  # there is nobody to tell
        if error is not None:
            watch.tell(told)
        watch.meet()
    failing = torch.tensor(num_processes() if error is None else process_index(), device=device)
    take_smallest(failing)
    source = int(failing)
    if source == num_processes():
        return
    message = _broadcast(told, source, device)
    if error is None:
        raise RuntimeError(message) from None


def _describe(error: BaseException) -> str:
    """The type, the message and the notes of an error, in one line."""
    notes: list[str] = getattr(error, "__notes__", [])
    try:
        message = str(error)
    except Exception:  # the processes need to end, whatever the error says
        message = "(without a message that can be read)"
    text = " ".join([f"{type(error).__name__}: {message}", *map(str, notes)])
    return text.encode(errors="backslashreplace").decode()


def _broadcast(message: str, source: int, device: torch.device) -> str:
    """Returns the message of the process `source` in every process."""
    encoded = torch.tensor(list(message.encode()), dtype=torch.uint8, device=device)
    size = int(from_process(source, torch.tensor(encoded.numel(), device=device)))
    if source != process_index():
        encoded = torch.empty(size, dtype=torch.uint8, device=device)
    return bytes(from_process(source, encoded).tolist()).decode()
