"""Who is still there: processes notice when another one fails, ends, stops or stays away."""

import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextvars import ContextVar
from threading import Event, Thread
from typing import Any, NamedTuple, NoReturn
from weakref import WeakKeyDictionary

import torch.distributed

from pyg_recmetrics.processes.machine import has_ended, is_stopped, machine, start_of

#: Where stores are, which :mod:`torch.distributed` does not declare.
_stores: Any = torch.distributed

#: How many seconds pass from one sign of life to the next.
_BEAT = 0.5

#: For how many seconds another process may give no sign of life. It cannot give one while a library
#: holds the lock of Python, which takes seconds at most.
_SILENCE = 30.0

#: How many seconds remain for what is on its way when a process has gone.
_GRACE = 2.0

#: How many seconds it may take to find out who has gone, where something else tells that.
_SEARCH = 5.0

#: How many seconds pass, at least and at most, until a process looks again at what it waits for.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1e-4, 0.05

#: How many processes an error names.
_MAX_NAMED = 5


class Stopped(BaseException):
    """This process stops after a chunk, since another one has raised an error."""


class Facts(NamedTuple):
    """What processes know of each other from the start on: positive numbers."""

    machine: int
    pid: int
    start: int
    token: int  # a random number, of the first process

    @classmethod
    def own(cls) -> "Facts":
        """Returns those of this process."""
        pid = os.getpid()
        return cls(machine(), pid, start_of(pid), 1 + secrets.randbits(60))


class _State(NamedTuple):
    """What a process tells of itself, again and again."""

    token: int  # of the ranking that it has joined last; zero while it waits for the others to join
    is_inside: bool
    num_waits: int  # how often it has waited for the others
    progress: int  # how many chunks it has ranked
    beats: int
    host: str


class Watch:
    """What a process knows of the others, from when it joins them until the ranking ends.

    A thread gives signs of life by way of the store of the process group, and looks for those of
    the others. The process itself never waits for the store: all it does between two chunks is to
    read an attribute.

    Args:
        store (torch.distributed.Store): That of the process group, see :func:`connected_store`.
        index (int): The index of this process.
        size (int): The number of processes.
        limit (float): How many seconds to wait for a process that does not get on.
    """

    def __init__(self, store: Any, index: int, size: int, limit: float) -> None:
        self._store = store
        self._index, self._size, self._limit = index, size, limit
        self._silence = min(_SILENCE, limit)
        self._host = socket.gethostname()
        self._token = self._num_waits = self._progress = self._beats = 0
        #: Which process has gone, and how; and which has raised an error.
        self._gone: str | None = None
        self._error: str | None = None
        self._notes: dict[str, str] = {}
        self._neighbours: dict[int, tuple[int, int]] = {}
        #: What a process told last, and since when it has told the same.
        self._signs: dict[int, tuple[object, float]] = {}
        self._next_sign: tuple[str | None, float] = (None, time.monotonic())
        self._num_met = self._num_arrived = self._num_open = 0
        self._waits_since: float | None = None
        self._is_searching = False
        self._last_look = self._last_beat = time.monotonic()
        #: For how many seconds the thread did not run, as its process was stopped.
        self._seconds_asleep = 0.0
        #: How many signs of life it had given when the next one was found overdue, and when.
        self._overdue: tuple[int, float] = (0, 0.0)
        self._wake, self._is_over = Event(), Event()
        self._thread = Thread(target=self._run, name="pyg_recmetrics.watch", daemon=True)
        self._thread.start()

    def join(self, facts: list[Facts]) -> None:
        """Notes that all processes are there, and what each of them has told of itself."""
        own = facts[self._index]
        for index, other in enumerate(facts):
            if index != self._index and other.machine == own.machine > 0:
                self._neighbours[index] = other.pid, other.start
        self._next_sign = None, time.monotonic() - self._seconds_asleep
        self._token = facts[0].token

    def leave(self, error: str | None) -> None:
        """Ends the watch, and tells the others if it ends in an error."""
        if error is not None:
            self._notes["gone"] = self._gone or f"{self.name(self._index)} left the others: {error}"
        self._is_over.set()
        self._wake.set()
        self._thread.join(_SEARCH)  # it is stuck if the store is

    def tell(self, error: str) -> None:
        """Tells the others about an error, so that they stop after their chunk."""
        self._notes["error"] = error
        self._wake.set()

    def look(self) -> None:
        """Raises if another process has gone or has raised an error. Call it after each chunk."""
        self._progress += 1
        if (gone := self.gone) is not None:
            self._leave_behind(gone)
        if self._error is not None:
            raise Stopped(self._error)

    def meet(self) -> None:
        """Waits until all processes have come here."""
        self._num_met += 1
        self._wake.set()
        self.wait(lambda: self._num_open == self._num_met)

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Waits for something that others do, and raises if one of them has gone."""
        self._num_waits += 1
        self._waits_since = time.monotonic()
        gone_since, pause = None, _SHORTEST_PAUSE
        while not is_over():
            now = time.monotonic()
            if (gone := self.gone) is None:
                gone_since = None
            elif gone_since is None:
                gone_since = now
            elif now - gone_since > _GRACE:
                self._leave_behind(gone)
            time.sleep(pause)
            pause = min(1.2 * pause, _LONGEST_PAUSE)
        self._waits_since = None

    def _leave_behind(self, gone: str) -> NoReturn:
        """Raises since a process has gone, while others may still wait for this one."""
        out_of_step[torch.distributed.group.WORLD] = gone
        raise RuntimeError(gone)

    def search(self) -> str | None:
        """Returns which process has gone, given that there is one; `None` if that stays unknown."""
        self._waits_since, self._is_searching = time.monotonic(), True
        while self.gone is None and time.monotonic() < self._waits_since + _SEARCH:
            time.sleep(_LONGEST_PAUSE)
        self._is_searching = False
        return self.gone

    @property
    def gone(self) -> str | None:
        """Which process has gone, and how; `None` if all are there."""
        if self._gone is None and self._is_overdue():
            return self._why_silent()
        return self._gone

    def name(self, index: int) -> str:
        """Returns a process in words."""
        host = self._host if index in (self._index, *self._neighbours) else None
        if host is None and (state := self._state(index)) is not None:
            host = state.host
        return f"process {index} of {self._size}" + ("" if host is None else f" on {host}")

    def _run(self) -> None:
        """What the thread does."""
        try:
            next_beat, pause = 0.0, _SHORTEST_PAUSE
            while not self._is_over.is_set():
                now = time.monotonic()
                if now >= next_beat:
                    self._beat()
                    next_beat = now + _BEAT
                self._tell_notes()
                is_meeting = self._num_open < self._num_met
                if is_meeting:
                    self._arrive()
                pause = min(1.2 * pause, _LONGEST_PAUSE) if is_meeting else _SHORTEST_PAUSE
                self._wake.wait(pause if is_meeting else max(0.0, next_beat - time.monotonic()))
                self._wake.clear()
            self._tell_notes()
            self._tell_state(is_inside=False)
        except Exception as error:  # of the store
            if self._gone is None:
                self._gone = self._why_lost(error)

    def _beat(self) -> None:
        """Gives a sign of life, and looks for those of others."""
        self._beats += 1
        self._tell_state(is_inside=True)
        now = time.monotonic()
        # Others may have been stopped at the same time, and have been silent since then.
        self._seconds_asleep += max(0.0, now - self._last_beat - _GRACE)
        self._last_beat = now
        now -= self._seconds_asleep
        if self._token:
            self._error = self._error or self._get(f"{self._token}/error")
            self._gone = self._gone or self._get(f"{self._token}/gone")
            self._look_at_neighbours()
            self._look_at_next(now)
        if self._waits_since is not None:
            self._look_for_missing(now)

    def _is_overdue(self) -> bool:
        """Returns whether the thread has waited for the store for too long.

        If this process was stopped itself, the thread gets its turn before the second look.
        """
        now = time.monotonic()
        if now - self._last_beat <= self._silence + _BEAT:
            return False
        beats, since = self._overdue
        if beats != self._beats:
            self._overdue = self._beats, now
            return False
        return now - since > _GRACE

    def _look_at_neighbours(self) -> None:
        """Finds out whether a process of this machine has ended."""
        for index, (pid, start) in list(self._neighbours.items()):
            if not has_ended(pid, start):
                continue
            if not self._has_left(index):
                self._note_gone(_ended(self.name(index)))
            del self._neighbours[index]

    def _look_at_next(self, now: float) -> None:
        """Finds out whether the next process still gives signs of life."""
        index = (self._index + 1) % self._size
        sign, (last, since) = self._get(f"state/{index}"), self._next_sign
        if sign != last:
            self._next_sign = sign, now
        elif now - since > self._silence and not self._has_left(index):
            if index in self._neighbours and not is_stopped(self._neighbours[index][0]):
                return  # a library holds the lock of Python there, until the limit is over
            self._note_gone(
                f"{self.name(index)} has given no sign of life for {self._silence:.0f} s: it was "
                f"stopped, or its machine is lost"
            )

    def _look_for_missing(self, now: float) -> None:
        """Finds out for whom this process waits, and whether these do not get on."""
        limit = _SEARCH / 2 if self._is_searching else self._limit
        if now - self._last_look < limit / 8:
            return
        self._last_look = now
        missing = []
        for index in range(self._size):
            if index != self._index and not self._gets_on(index, now, limit):
                missing.append(index)
        if missing:
            self._note_gone(self._about_missing(missing))

    def _gets_on(self, index: int, now: float, limit: float) -> bool:
        """Returns whether a process is where this one is, or has changed within a limit."""
        state = self._state(index)
        sign: object = state
        if state is not None and state.token == self._token and state.is_inside:
            if state.token and state.num_waits >= self._num_waits:
                self._signs.pop(index, None)
                return True
            if state.token:
                sign = state._replace(beats=0)  # that it lives is not enough
        if index not in self._signs or self._signs[index][0] != sign:
            self._signs[index] = sign, now
        return now - self._signs[index][1] < limit

    def _about_missing(self, missing: list[int]) -> str:
        """Says who is missing."""
        names = ", ".join(self.name(index) for index in missing[:_MAX_NAMED])
        if more := missing[_MAX_NAMED:]:
            names += f" and {len(more)} more"
        if self._is_searching:
            return f"{names} ended, or did not join the others"
        what = "neither ranked a chunk nor joined" if self._token else "did not join"
        return (
            f"{names} {what} the others within {self._limit:.0f} s, which "
            f"'pyg_recmetrics.distributed.timeout()' sets"
        )

    def _why_lost(self, error: Exception) -> str:
        """Says who has gone, if the store cannot be reached."""
        end = time.monotonic() + _GRACE  # what has lost its connections may not have ended yet
        while time.monotonic() < end:
            for index, (pid, start) in self._neighbours.items():
                if has_ended(pid, start):
                    return _ended(self.name(index))
            time.sleep(_LONGEST_PAUSE)
        return f"the process that keeps the store of the process group has ended: {error}"

    def _why_silent(self) -> str:
        """Says who was stopped, if the store does not answer."""
        for index, (pid, _) in self._neighbours.items():
            if is_stopped(pid):
                return f"{self.name(index)} was stopped while others ranked"
        return (
            f"the store of the process group has not answered for {self._silence:.0f} s: the "
            f"process that keeps it was stopped, or its machine is lost"
        )

    def _has_left(self, index: int) -> bool:
        """Returns whether a process has come to the end of this ranking."""
        state = self._state(index)
        return state is not None and state.token == self._token and not state.is_inside

    def _arrive(self) -> None:
        """Tells that this process waits for the others, and finds out whether all of them do."""
        key = f"{self._token}/arrived"
        num_new = self._num_met - self._num_arrived
        num_arrived = self._store.add(key, num_new)
        self._num_arrived += num_new
        if num_arrived >= self._size * self._num_arrived:
            self._num_open = self._num_arrived

    def _note_gone(self, text: str) -> None:
        """Notes who has gone, and tells it to the others."""
        if self._gone is None:
            self._gone = self._notes["gone"] = text

    def _tell_notes(self) -> None:
        """Tells what there is to tell, unless others were faster."""
        while self._notes and self._token:
            kind, text = self._notes.popitem()
            if self._get(f"{self._token}/{kind}") is None:
                self._store.set(f"{self._token}/{kind}", text)

    def _tell_state(self, *, is_inside: bool) -> None:
        counts = self._num_waits, self._progress, self._beats
        state = _State(self._token, is_inside, *counts, self._host)
        self._store.set(f"state/{self._index}", json.dumps(state))

    def _state(self, index: int) -> _State | None:
        text = self._get(f"state/{index}")
        return None if text is None else _State(*json.loads(text))

    def _get(self, key: str) -> str | None:
        """Returns what the store has, without waiting for it."""
        return self._store.get(key).decode() if self._store.check([key]) else None


def _ended(name: str) -> str:
    return (
        f"{name} ended while others ranked, without an error: it was killed, perhaps because "
        f"memory ran out"
    )


#: What this process knows of the others, while they rank together.
current: ContextVar[Watch | None] = ContextVar("current", default=None)


#: Process groups whose processes may wait for each other in different places, and why.
out_of_step: "WeakKeyDictionary[Any, str]" = WeakKeyDictionary()

#: The connections to the stores of process groups. To make one may take longer than to rank.
_connections: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()


def connected_store() -> Any:
    """Returns the store of the process group; `None` if it has none, such as a group of MPI."""
    group = torch.distributed.group.WORLD
    if group not in _connections:
        store = torch.distributed.distributed_c10d._get_default_store()
        _connections[group] = None if store is None else _own_connection(store)
    return _connections[group]


def _own_connection(store: Any) -> Any:
    """Returns a store with a connection of its own, which nobody else keeps busy."""
    base = store
    while isinstance(base, _stores.PrefixStore):
        base = base.underlying_store
    if isinstance(base, _stores.TCPStore) and hasattr(store, "clone"):  # since torch 2.7
        store = store.clone()
    return _stores.PrefixStore("pyg_recmetrics", store)
