"""Rankings that are interrupted between two chunks, and go on from their folder."""

from unittest.mock import patch

import torch

from pyg_recmetrics.ranking import finished
from pyg_recmetrics.ranking.schedule import Schedule


class Interrupted(Exception):  # noqa: N818 (it is no error of anything)
    """What ends a ranking before its time."""


class Interruptions:
    """Ends rankings after so many chunks.

    Args:
        num_chunks: How many chunks they rank; `None` for all.
        seconds: How many seconds lie between two files.
    """

    def __init__(self, num_chunks=None, seconds=0):
        self.num_chunks, self.seconds = num_chunks, seconds
        self.users = []  # who has been ranked, in every pass

    def __enter__(self):
        every = Schedule.chunks

        def some(schedule, num_rows):
            for chunk in every(schedule, num_rows):
                if self.num_chunks is not None and len(self.users) >= self.num_chunks:
                    raise Interrupted
                self.users.append(chunk.users)
                yield chunk

        self._patches = [
            patch.object(Schedule, "chunks", some),
            patch.object(finished, "SECONDS_BETWEEN", self.seconds),
        ]
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, kind, *_):
        for each in self._patches:
            each.stop()
        return kind is Interrupted


def in_pieces(call, draw):
    """Returns what `call(batch_size=...)` returns after some interruptions, and how many."""
    for attempt in range(draw.randint(1, 5)):
        limit, seconds = draw.randint(0, 2 * attempt + 1), draw.choice([0, 0, 0, 1000])
        with Interruptions(limit, seconds):
            return call(batch_size=draw.choice([1, 2, 3, 50])), attempt
    return call(batch_size=draw.choice([None, 2, 7])), attempt + 1


def assert_same(one, other):
    """Checks that two rankings, or dictionaries of them, agree in all things to the last bit."""
    one, other = (dict(_leaves(x if isinstance(x, dict) else x.to_dict())) for x in (one, other))
    assert one.keys() == other.keys()
    for name, value in one.items():
        if torch.is_tensor(value):
            torch.testing.assert_close(value, other[name], rtol=0, atol=0, equal_nan=True, msg=name)
        else:
            assert value == other[name], name


def _leaves(fields, prefix=""):
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
