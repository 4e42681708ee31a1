"""What the package tells a person: warnings, and parts of messages that are worded alike."""

import inspect
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

#: Warnings point at the line that called one of these libraries.
_LIBRARIES = (__name__.partition(".")[0], "torch", "torch_geometric", "torchmetrics")


#: Whether messages are for somebody at a command line, who writes no Python.
_is_shell = ContextVar("is_shell", default=False)


@contextmanager
def for_a_shell() -> Iterator[None]:
    """Words messages for somebody at a command line."""
    token = _is_shell.set(True)
    try:
        yield
    finally:
        _is_shell.reset(token)


def written_as(python: str, shell: str) -> str:
    """Returns what is to be written, in the words of whoever reads it.

    Example:
        >>> with for_a_shell():
        ...     written_as("exclude_seen=False", "--include-seen")
        '--include-seen'
        >>> written_as("exclude_seen=False", "--include-seen")
        'exclude_seen=False'
    """
    return shell if _is_shell.get() else python


def all_items() -> str:
    """Returns how to say which items there are."""
    return written_as("RankingTask.from_frames(..., items=ids_of_all_items)", "--item-ids FILE")


def warn(message: str) -> None:
    """Warns, pointing at the line that called the package."""
    warnings.warn(message, stacklevel=_num_frames_inside())


def _num_frames_inside() -> int:
    """Returns how many of the innermost calls are inside the libraries, this one among them."""
    frame, num_inside = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _LIBRARIES:
        frame, num_inside = frame.f_back, num_inside + 1
    return num_inside


def list_some(words: Sequence[str], most: int = 5) -> str:
    """Returns words in one line, and how many more there are if they are many.

    Args:
        words (sequence of str): The words, of which there is at least one.
        most (int, optional): How many words to list at most. (default: `5`)

    Example:
        >>> list_some(["a", "b", "c"]), list_some(["a", "b", "c"], most=2)
        ('a, b, c', 'a, b and 1 more')
    """
    num_more = len(words) - most
    return ", ".join(words[:most]) + (f" and {num_more} more" if num_more > 0 else "")


def singular(noun: str) -> str:
    """Returns what one of some rows is called, such as `"query"` of `"queries"`."""
    return "query" if noun == "queries" else noun.removesuffix("s")


def counted(number: int, noun: str) -> str:
    """Returns how many there are of a noun in the plural, such as `"1 user"` or `"2,000 users"`."""
    return f"{number:,} {singular(noun) if number == 1 else noun}"
