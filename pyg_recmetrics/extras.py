"""Packages that only some need, and what to install where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing(package: str, extra: str, needed_by: str) -> Iterator[None]:
    """Says in what extra a package comes if it cannot be imported inside."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"'{needed_by}' needs {package}: pip install 'pyg-recmetrics[{extra}]'"
        ) from error
