"""Parts of messages that are worded the same everywhere."""

from collections.abc import Sequence


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
