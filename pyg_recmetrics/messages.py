"""What the package tells a person: warnings, and parts of messages that are worded alike."""

import inspect
import warnings
from collections.abc import Sequence

#: Warnings point at the line that called one of these libraries.
_LIBRARIES = (__name__.partition(".")[0], "torch", "torch_geometric", "torchmetrics")


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
